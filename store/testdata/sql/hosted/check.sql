-- check_clock
SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) AS now

-- check_tables
SELECT count(*) AS tables
FROM sqlite_master
WHERE type = 'table'
  AND name = 'schema_steps'

-- check_schema
SELECT number
FROM schema_steps

-- check_insert_event
INSERT INTO events (id, source, type, payload, content_type, headers, created_at)
VALUES (?, '', '', '', '', '', 0)

-- check_insert_job
INSERT INTO jobs (id, event_id, lane, status, attempt, max_attempts, last_error, created_at)
VALUES (?, '', '', 'completed', 0, 0, '', 0)

-- check_update_job
UPDATE jobs
SET attempt = 1
WHERE id = ?

-- check_insert_attempt
INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at)
VALUES (?, '', 0, 0, '', '', 0, 0)

-- check_insert_mark
INSERT INTO cron_marks (source, schedule, until_at)
SELECT source, schedule, until_at
FROM cron_marks
WHERE source = ?
  AND 1 = 0

-- check_update_mark
UPDATE cron_marks
SET until_at = 0
WHERE source = ?
  AND 1 = 0

-- check_insert_gate
INSERT INTO gates (lane, failures, open_until, closed_at, moved_by, taker, base_us, next_us, stray_since)
SELECT lane, failures, open_until, closed_at, moved_by, taker, base_us, next_us, stray_since
FROM gates
WHERE lane = ?
  AND 1 = 0

-- check_update_gate
UPDATE gates
SET failures = 0
WHERE lane = ?
  AND 1 = 0

-- check_insert_definition
INSERT INTO definitions (hash, body)
SELECT hash, body
FROM definitions
WHERE hash = ?
  AND 1 = 0

-- check_insert_run
INSERT INTO runs (id, workflow, event_id, definition, status, epoch, seq, step, error, created_at)
VALUES (?, '', '', '', 'completed', 1, 0, '', '', 0)

-- check_update_run
UPDATE runs
SET seq = 1
WHERE id = ?

-- check_insert_step
INSERT INTO steps (id, run_id, epoch, branch, path, name, type, status, attempt, error, carry, fan)
VALUES (?, '', 1, '', '', '', '', 'succeeded', 0, '', '', '')

-- check_update_step
UPDATE steps
SET attempt = 1
WHERE id = ?

-- check_insert_history
INSERT INTO history (run_id, seq, mark, epoch, type, path, data)
VALUES (?, 1, '', 1, '', '', '')

-- check_insert_callback
INSERT INTO callbacks (token_hash, run_id, step_id)
VALUES (?, '', '')

-- check_delete_callback
DELETE
FROM callbacks
WHERE token_hash = ?

-- check_delete_history
DELETE
FROM history
WHERE run_id = ?

-- check_delete_step
DELETE
FROM steps
WHERE id = ?

-- check_delete_run
DELETE
FROM runs
WHERE id = ?

-- check_delete_attempt
DELETE
FROM attempts
WHERE job_id = ?

-- check_delete_job
DELETE
FROM jobs
WHERE id = ?

-- check_delete_event
DELETE
FROM events
WHERE id = ?

-- check_twice
INSERT INTO events (id, source, type, payload, content_type, headers, created_at)
VALUES (?, '', '', '', '', '', 0)

-- check_columns
SELECT name, sql
FROM sqlite_master
WHERE tbl_name IN ('events')
  AND sql IS NOT NULL
  AND type IN ('table', 'index')
ORDER BY type DESC, name
