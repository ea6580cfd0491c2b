-- insert_operation
INSERT OR FAIL INTO operations (id, spec, state, error, seq, walked, looked, acted, skipped, started_at,
    finished_at, mark)
VALUES (?, ?, ?, '', 0, '', 0, 0, 0, NULL, NULL, '')
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
LIMIT ? + 0

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
  WHERE operation = ?) + ? + 0
WHERE id = ?
  AND seq = ?
  AND mark = ?

-- move_operation
UPDATE operations
SET walked = ?, looked = looked + ? + 0, skipped = skipped + ? + 0, state = ?, error = ?, finished_at = ?
WHERE id = ?
  AND seq = ?
  AND mark = ?
  AND
  (SELECT COUNT(*)
  FROM operation_picks
  WHERE operation = ?) >= ? + 0

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
INSERT OR FAIL INTO operation_picks (operation, item)
SELECT ?, jobs.id
FROM jobs
WHERE jobs.id = ?
  AND jobs.status IN ('dead', 'canceled')
  AND (lane < 'workflow/' OR lane >= 'workflow0')
  AND lane <> 'operation/all'
  AND EXISTS
  (SELECT 1
  FROM operations AS o
  WHERE o.id = ?
    AND o.seq = ?
    AND o.mark = ?)

-- revive_picked
UPDATE jobs
SET status = 'available', due_at = ?, finished_at = NULL,
    max_attempts = CASE WHEN max_attempts < 2147483647 THEN attempt + max_attempts - earlier ELSE max_attempts
    END, earlier = attempt
WHERE jobs.id = ?
  AND EXISTS
  (SELECT 1
  FROM operation_picks AS p
  WHERE p.operation = ?
    AND p.item = ?)

-- enter_picked
UPDATE jobs
SET status = 'entering', scheduled_at = CASE WHEN EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id) THEN scheduled_at END, finished_at = NULL,
        max_attempts = CASE WHEN max_attempts < 2147483647 THEN attempt + max_attempts - earlier ELSE
        max_attempts END, earlier = attempt
WHERE jobs.id = ?
  AND EXISTS
  (SELECT 1
  FROM operation_picks AS p
  WHERE p.operation = ?
    AND p.item = ?)

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
    AND line_slots.job_id = jobs.id) THEN ? END
WHERE jobs.id = ?
  AND jobs.status = 'entering'

-- pick_waiting
INSERT OR FAIL INTO operation_picks (operation, item)
SELECT ?, jobs.id
FROM jobs
WHERE jobs.id = ?
  AND (jobs.status IN ('available', 'scheduled', 'waiting',
      'retryable') OR jobs.status = 'running' AND jobs.due_at <= ?)
  AND (lane < 'workflow/' OR lane >= 'workflow0')
  AND lane <> 'operation/all'
  AND EXISTS
  (SELECT 1
  FROM operations AS o
  WHERE o.id = ?
    AND o.seq = ?
    AND o.mark = ?)

-- cancel_picked
UPDATE jobs
SET scheduled_at = COALESCE(scheduled_at, due_at), status = 'canceled', due_at = NULL, lease = NULL,
    finished_at = ?
WHERE jobs.id = ?
  AND EXISTS
  (SELECT 1
  FROM operation_picks AS p
  WHERE p.operation = ?
    AND p.item = ?)

-- pick_events
INSERT OR FAIL INTO operation_picks (operation, item)
SELECT ?, events.id
FROM events
WHERE events.id = ?
  AND EXISTS
  (SELECT 1
  FROM operations AS o
  WHERE o.id = ?
    AND o.seq = ?
    AND o.mark = ?)

-- insert_picked_jobs
INSERT OR FAIL INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease,
    last_error, created_at, finished_at)
SELECT ?, operation_picks.item, ?, ?, 'available', 0, ?, ?, NULL, '', ?, NULL
FROM operation_picks
WHERE operation_picks.operation = ?
  AND operation_picks.item = ?

-- insert_picked_scheduled_jobs
INSERT OR FAIL INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease,
    last_error, created_at, finished_at)
SELECT ?, operation_picks.item, ?, ?, 'scheduled', 0, ?, ?, NULL, '', ?, NULL
FROM operation_picks
WHERE operation_picks.operation = ?
  AND operation_picks.item = ?

-- insert_picked_lined_jobs
INSERT OR FAIL INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease,
    last_error, created_at, finished_at, line, scheduled_at)
SELECT ?, operation_picks.item, ?, ?, 'entering', 0, ?, NULL, NULL, '', ?, NULL, ?, ?
FROM operation_picks
WHERE operation_picks.operation = ?
  AND operation_picks.item = ?

-- walk_dead
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line
FROM jobs
WHERE status = 'dead'
  AND lane = ?
  AND id >= ?
  AND lane = ?
  AND id < ?
ORDER BY lane, id
LIMIT ? + 0

-- walk_canceled
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line
FROM jobs
WHERE status = 'canceled'
  AND lane = ?
  AND id >= ?
  AND lane = ?
  AND id < ?
ORDER BY lane, id
LIMIT ? + 0

-- event_kinds
SELECT events.id AS event, events.source AS source, events.type AS type
FROM events
WHERE events.id = ?
