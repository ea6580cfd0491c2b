-- check_server
SELECT CONCAT(IF(VERSION() LIKE '%MariaDB%', 'MariaDB ', 'MySQL '), SUBSTRING_INDEX(VERSION(), '-', 1))

-- check_user
SELECT CURRENT_USER()

-- check_innodb_flush_log_at_trx_commit
SELECT NULLIF(@@innodb_flush_log_at_trx_commit, 1)

-- check_sync_binlog
SELECT IF(@@log_bin, NULLIF(@@sync_binlog, 1), NULL)

-- check_clock
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000

-- check_tables
SELECT COUNT(*)
FROM information_schema.tables
WHERE table_schema = DATABASE()
  AND table_name = 'schema_steps'

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
SELECT table_name AS tab, column_name AS col, column_type AS kind, is_nullable AS nullable,
    CASE WHEN column_default IS NULL THEN 0 ELSE 1 END AS filled, COALESCE(generation_expression,
    '') AS computed
FROM information_schema.columns
WHERE table_schema = DATABASE()
  AND table_name IN ('events')
ORDER BY table_name, ordinal_position

-- check_indexes
SELECT table_name AS tab, index_name AS ind, CAST(non_unique AS SIGNED) AS many, column_name AS col,
    COALESCE(collation, 'A') AS direction, COALESCE(sub_part, 0) AS part
FROM information_schema.statistics
WHERE table_schema = DATABASE()
  AND table_name IN ('events')
ORDER BY table_name, index_name, seq_in_index
