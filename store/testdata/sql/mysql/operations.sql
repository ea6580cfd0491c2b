-- insert_operation
INSERT INTO operations (id, spec, state, error, seq, walked, looked, acted, skipped, started_at, finished_at,
    mark)
VALUES (?, ?, ?, '', 0, '', 0, 0, 0, NULL, NULL, '')/*row*/, (?, ?, ?, '', 0, '', 0, 0, 0, NULL, NULL,
    '')/*row*/
ON DUPLICATE KEY UPDATE operations.id = operations.id

-- operation
SELECT id, spec, state, error, seq, walked, looked, acted, skipped, started_at, finished_at
FROM operations
WHERE id = ?

-- operations
SELECT id, spec, state, error, seq, walked, looked, acted, skipped, started_at, finished_at
FROM operations FORCE INDEX (`PRIMARY`)
WHERE id < ?
ORDER BY id DESC
LIMIT ?

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
  FROM operation_picks FORCE INDEX (`PRIMARY`)
  WHERE operation = ?) + ?
WHERE id = ?
  AND seq = ?
  AND mark = ?

-- move_operation
UPDATE operations
SET walked = ?, looked = looked + ?, skipped = skipped + ?, state = ?, error = ?, finished_at = ?
WHERE id = ?
  AND seq = ?
  AND mark = ?
  AND
  (SELECT COUNT(*)
  FROM operation_picks FORCE INDEX (`PRIMARY`)
  WHERE operation = ?) >= ?

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
  (SELECT ? AS operation_, ? AS job_, ? AS of_, ? AS seq_, ? AS mark_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
WHERE jobs.id = r.job_
  AND jobs.status IN ('dead', 'canceled')
  AND (lane < 'workflow/' OR lane >= 'workflow0')
  AND lane <> 'operation/all'
  AND EXISTS
  (SELECT 1
  FROM operations AS o FORCE INDEX (`PRIMARY`)
  WHERE o.id = r.of_
    AND o.seq = r.seq_
    AND o.mark = r.mark_)
FOR UPDATE SKIP LOCKED

-- revive_picked
UPDATE
  (SELECT ? AS now_, ? AS id_, ? AS operation_, ? AS same_/*row*/
  UNION ALL SELECT ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
SET status = 'available', due_at = r.now_, finished_at = NULL,
    max_attempts = CASE WHEN max_attempts < 2147483647 THEN attempt + max_attempts - earlier ELSE max_attempts
    END, earlier = attempt
WHERE jobs.id = r.id_
  AND EXISTS
  (SELECT 1
  FROM operation_picks AS p FORCE INDEX (`PRIMARY`)
  WHERE p.operation = r.operation_
    AND p.item = r.same_)

-- enter_picked
UPDATE
  (SELECT ? AS id_, ? AS operation_, ? AS same_/*row*/
  UNION ALL SELECT ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
SET status = 'entering', scheduled_at = CASE WHEN EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id) THEN scheduled_at END, finished_at = NULL,
        max_attempts = CASE WHEN max_attempts < 2147483647 THEN attempt + max_attempts - earlier ELSE
        max_attempts END, earlier = attempt
WHERE jobs.id = r.id_
  AND EXISTS
  (SELECT 1
  FROM operation_picks AS p FORCE INDEX (`PRIMARY`)
  WHERE p.operation = r.operation_
    AND p.item = r.same_)

-- entered_again
UPDATE
  (SELECT ? AS now_, ? AS id_/*row*/
  UNION ALL SELECT ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
SET status = CASE WHEN EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id) THEN 'available' ELSE 'waiting' END, due_at = CASE WHEN EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id) THEN r.now_ END
WHERE jobs.id = r.id_
  AND jobs.status = 'entering'

-- pick_waiting
INSERT INTO operation_picks (operation, item)
SELECT r.operation_, jobs.id
FROM
  (SELECT ? AS operation_, ? AS job_, ? AS now_, ? AS of_, ? AS seq_, ? AS mark_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
WHERE jobs.id = r.job_
  AND (jobs.status IN ('available', 'scheduled', 'waiting',
      'retryable') OR jobs.status = 'running' AND jobs.due_at <= r.now_)
  AND (lane < 'workflow/' OR lane >= 'workflow0')
  AND lane <> 'operation/all'
  AND EXISTS
  (SELECT 1
  FROM operations AS o FORCE INDEX (`PRIMARY`)
  WHERE o.id = r.of_
    AND o.seq = r.seq_
    AND o.mark = r.mark_)
FOR UPDATE SKIP LOCKED

-- cancel_picked
UPDATE
  (SELECT ? AS now_, ? AS id_, ? AS operation_, ? AS same_/*row*/
  UNION ALL SELECT ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
SET scheduled_at = COALESCE(scheduled_at, due_at), status = 'canceled', due_at = NULL, lease = NULL,
    finished_at = r.now_
WHERE jobs.id = r.id_
  AND EXISTS
  (SELECT 1
  FROM operation_picks AS p FORCE INDEX (`PRIMARY`)
  WHERE p.operation = r.operation_
    AND p.item = r.same_)

-- pick_events
INSERT INTO operation_picks (operation, item)
SELECT r.operation_, events.id
FROM
  (SELECT ? AS operation_, ? AS event_, ? AS of_, ? AS seq_, ? AS mark_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN events FORCE INDEX (`PRIMARY`)
WHERE events.id = r.event_
  AND EXISTS
  (SELECT 1
  FROM operations AS o FORCE INDEX (`PRIMARY`)
  WHERE o.id = r.of_
    AND o.seq = r.seq_
    AND o.mark = r.mark_)

-- insert_picked_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_, operation_picks.item, r.lane_, r.job_key_, 'available', 0, r.max_attempts_, r.due_at_, NULL, '',
    r.created_at_, NULL
FROM
  (SELECT ? AS id_, ? AS lane_, ? AS job_key_, ? AS max_attempts_, ? AS due_at_, ? AS created_at_,
      ? AS operation_, ? AS event_id_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN operation_picks FORCE INDEX (`PRIMARY`)
WHERE operation_picks.operation = r.operation_
  AND operation_picks.item = r.event_id_

-- insert_picked_scheduled_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_, operation_picks.item, r.lane_, r.job_key_, 'scheduled', 0, r.max_attempts_, r.due_at_, NULL, '',
    r.created_at_, NULL
FROM
  (SELECT ? AS id_, ? AS lane_, ? AS job_key_, ? AS max_attempts_, ? AS due_at_, ? AS created_at_,
      ? AS operation_, ? AS event_id_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN operation_picks FORCE INDEX (`PRIMARY`)
WHERE operation_picks.operation = r.operation_
  AND operation_picks.item = r.event_id_

-- insert_picked_lined_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at, line, scheduled_at)
SELECT r.id_, operation_picks.item, r.lane_, r.job_key_, 'entering', 0, r.max_attempts_, NULL, NULL, '',
    r.created_at_, NULL, r.line_, r.wanted_at_
FROM
  (SELECT ? AS id_, ? AS lane_, ? AS job_key_, ? AS max_attempts_, ? AS created_at_, ? AS line_,
      ? AS wanted_at_, ? AS operation_, ? AS event_id_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN operation_picks FORCE INDEX (`PRIMARY`)
WHERE operation_picks.operation = r.operation_
  AND operation_picks.item = r.event_id_

-- walk_dead
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line
FROM jobs FORCE INDEX (`jobs_lists`)
WHERE list_name = 'dead'
  AND lapses_at IS NULL
  AND lane = ?
  AND id >= ?
  AND lane = ?
  AND id < ?
ORDER BY lane, id
LIMIT ?

-- walk_canceled
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line
FROM jobs FORCE INDEX (`jobs_lists`)
WHERE list_name = 'canceled'
  AND lapses_at IS NULL
  AND lane = ?
  AND id >= ?
  AND lane = ?
  AND id < ?
ORDER BY lane, id
LIMIT ?

-- event_kinds
SELECT events.id AS event, events.source AS source, events.type AS type
FROM
  (SELECT ? AS id_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN events FORCE INDEX (`PRIMARY`)
WHERE events.id = r.id_
