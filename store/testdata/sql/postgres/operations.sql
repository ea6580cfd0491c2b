-- insert_operation
INSERT INTO operations (id, spec, state, error, seq, walked, looked, acted, skipped, started_at, finished_at,
    mark)
SELECT r.id_, r.spec_, r.state_, '', 0, '', 0, 0, 0, NULL, NULL, ''
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS spec_, unnest(?::text[]) AS state_) AS r
WHERE 1 = 1
ON CONFLICT DO NOTHING

-- operation
SELECT id, spec, state, error, seq, walked, looked, acted, skipped, started_at, finished_at
FROM operations
WHERE id = ?

-- operations
SELECT id, spec, state, error, seq, walked, looked, acted, skipped, started_at, finished_at
FROM operations
WHERE id < ?
ORDER BY id DESC
LIMIT ?::bigint

-- end_operation
UPDATE operations
SET state = ?, error = ?, finished_at = ?
WHERE id = ?
  AND state = 'running'

-- purge_operations
DELETE
FROM operations
WHERE id < ?
  AND finished_at < ?

-- begin_slice
UPDATE operations
SET mark = ?, started_at = COALESCE(started_at, ?)
WHERE id = ?
  AND seq = ?
  AND state = 'running'

-- count_picks
UPDATE operations
SET acted = acted +
  (SELECT COUNT(*)
  FROM operation_picks
  WHERE operation = ?) + ?::bigint
WHERE id = ?
  AND seq = ?
  AND mark = ?

-- move_operation
UPDATE operations
SET walked = ?, looked = looked + ?::bigint, skipped = skipped + ?::bigint, state = ?, error = ?,
    finished_at = ?
WHERE id = ?
  AND seq = ?
  AND mark = ?
  AND
  (SELECT COUNT(*)
  FROM operation_picks
  WHERE operation = ?) >= ?::bigint

-- step_operation
UPDATE operations
SET seq = seq + 1
WHERE id = ?
  AND seq = ?
  AND mark = ?

-- drop_picks
DELETE
FROM operation_picks
WHERE operation = ?

-- pick_finished
INSERT INTO operation_picks (operation, item)
SELECT r.operation_, jobs.id
FROM
  (SELECT unnest(?::text[]) AS operation_, unnest(?::text[]) AS job_, unnest(?::text[]) AS of_,
      unnest(?::bigint[]) AS seq_, unnest(?::text[]) AS mark_) AS r, jobs
WHERE jobs.id = r.job_
  AND jobs.status IN ('dead', 'canceled')
  AND (lane < 'workflow/' OR lane >= 'workflow0')
  AND lane <> 'operation/all'
  AND EXISTS
  (SELECT 1
  FROM operations AS o
  WHERE o.id = r.of_
    AND o.seq = r.seq_
    AND o.mark = r.mark_)
FOR UPDATE OF jobs SKIP LOCKED

-- revive_picked
UPDATE jobs
SET status = 'available', due_at = r.now_, finished_at = NULL,
    max_attempts = CASE WHEN max_attempts < 2147483647 THEN attempt + max_attempts - earlier ELSE max_attempts
    END, earlier = attempt
FROM
  (SELECT unnest(?::bigint[]) AS now_, unnest(?::text[]) AS id_, unnest(?::text[]) AS operation_,
      unnest(?::text[]) AS same_) AS r
WHERE jobs.id = r.id_
  AND EXISTS
  (SELECT 1
  FROM operation_picks AS p
  WHERE p.operation = r.operation_
    AND p.item = r.same_)

-- enter_picked
UPDATE jobs
SET status = 'entering', scheduled_at = CASE WHEN EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id) THEN scheduled_at END, finished_at = NULL,
        max_attempts = CASE WHEN max_attempts < 2147483647 THEN attempt + max_attempts - earlier ELSE
        max_attempts END, earlier = attempt
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS operation_, unnest(?::text[]) AS same_) AS r
WHERE jobs.id = r.id_
  AND EXISTS
  (SELECT 1
  FROM operation_picks AS p
  WHERE p.operation = r.operation_
    AND p.item = r.same_)

-- entered_again
UPDATE jobs
SET status = CASE WHEN EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id) THEN 'available' ELSE 'waiting' END, due_at = CASE WHEN EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id) THEN r.now_ END
FROM
  (SELECT unnest(?::bigint[]) AS now_, unnest(?::text[]) AS id_) AS r
WHERE jobs.id = r.id_
  AND jobs.status = 'entering'

-- pick_waiting
INSERT INTO operation_picks (operation, item)
SELECT r.operation_, jobs.id
FROM
  (SELECT unnest(?::text[]) AS operation_, unnest(?::text[]) AS job_, unnest(?::bigint[]) AS now_,
      unnest(?::text[]) AS of_, unnest(?::bigint[]) AS seq_, unnest(?::text[]) AS mark_) AS r, jobs
WHERE jobs.id = r.job_
  AND (jobs.status IN ('available', 'scheduled', 'waiting',
      'retryable') OR jobs.status = 'running' AND jobs.due_at <= r.now_)
  AND (lane < 'workflow/' OR lane >= 'workflow0')
  AND lane <> 'operation/all'
  AND EXISTS
  (SELECT 1
  FROM operations AS o
  WHERE o.id = r.of_
    AND o.seq = r.seq_
    AND o.mark = r.mark_)
FOR UPDATE OF jobs SKIP LOCKED

-- cancel_picked
UPDATE jobs
SET scheduled_at = COALESCE(scheduled_at, due_at), status = 'canceled', due_at = NULL, lease = NULL,
    finished_at = r.now_
FROM
  (SELECT unnest(?::bigint[]) AS now_, unnest(?::text[]) AS id_, unnest(?::text[]) AS operation_,
      unnest(?::text[]) AS same_) AS r
WHERE jobs.id = r.id_
  AND EXISTS
  (SELECT 1
  FROM operation_picks AS p
  WHERE p.operation = r.operation_
    AND p.item = r.same_)

-- pick_events
INSERT INTO operation_picks (operation, item)
SELECT r.operation_, events.id
FROM
  (SELECT unnest(?::text[]) AS operation_, unnest(?::text[]) AS event_, unnest(?::text[]) AS of_,
      unnest(?::bigint[]) AS seq_, unnest(?::text[]) AS mark_) AS r, events
WHERE events.id = r.event_
  AND EXISTS
  (SELECT 1
  FROM operations AS o
  WHERE o.id = r.of_
    AND o.seq = r.seq_
    AND o.mark = r.mark_)

-- insert_picked_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_, operation_picks.item, r.lane_, r.job_key_, 'available', 0, r.max_attempts_, r.due_at_, NULL, '',
    r.created_at_, NULL
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS lane_, unnest(?::text[]) AS job_key_,
      unnest(?::bigint[]) AS max_attempts_, unnest(?::bigint[]) AS due_at_,
      unnest(?::bigint[]) AS created_at_, unnest(?::text[]) AS operation_,
      unnest(?::text[]) AS event_id_) AS r, operation_picks
WHERE operation_picks.operation = r.operation_
  AND operation_picks.item = r.event_id_
ORDER BY 3, 4, 1

-- insert_picked_scheduled_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_, operation_picks.item, r.lane_, r.job_key_, 'scheduled', 0, r.max_attempts_, r.due_at_, NULL, '',
    r.created_at_, NULL
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS lane_, unnest(?::text[]) AS job_key_,
      unnest(?::bigint[]) AS max_attempts_, unnest(?::bigint[]) AS due_at_,
      unnest(?::bigint[]) AS created_at_, unnest(?::text[]) AS operation_,
      unnest(?::text[]) AS event_id_) AS r, operation_picks
WHERE operation_picks.operation = r.operation_
  AND operation_picks.item = r.event_id_
ORDER BY 3, 4, 1

-- insert_picked_lined_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at, line, scheduled_at)
SELECT r.id_, operation_picks.item, r.lane_, r.job_key_, 'entering', 0, r.max_attempts_, NULL, NULL, '',
    r.created_at_, NULL, r.line_, r.wanted_at_
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS lane_, unnest(?::text[]) AS job_key_,
      unnest(?::bigint[]) AS max_attempts_, unnest(?::bigint[]) AS created_at_, unnest(?::text[]) AS line_,
      unnest(?::bigint[]) AS wanted_at_, unnest(?::text[]) AS operation_,
      unnest(?::text[]) AS event_id_) AS r, operation_picks
WHERE operation_picks.operation = r.operation_
  AND operation_picks.item = r.event_id_
ORDER BY 3, 4, 1

-- walk_dead
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line
FROM jobs
WHERE status = 'dead'
  AND (lane, id) >= (?, ?)
  AND (lane, id) < (?, ?)
ORDER BY lane, id
LIMIT ?::bigint

-- walk_canceled
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line
FROM jobs
WHERE status = 'canceled'
  AND (lane, id) >= (?, ?)
  AND (lane, id) < (?, ?)
ORDER BY lane, id
LIMIT ?::bigint

-- event_kinds
SELECT events.id AS event, events.source AS source, events.type AS type
FROM
  (SELECT unnest(?::text[]) AS id_) AS r, events
WHERE events.id = r.id_
