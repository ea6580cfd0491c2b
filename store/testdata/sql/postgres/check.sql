-- check_server
SELECT 'PostgreSQL ' || current_setting('server_version')

-- check_user
SELECT current_user::text

-- check_fsync
SELECT nullif(current_setting('fsync'), 'on')

-- check_full_page_writes
SELECT nullif(current_setting('full_page_writes'), 'on')

-- check_synchronous_commit
SELECT CASE current_setting('synchronous_commit') WHEN 'off' THEN 'off' END

-- check_autovacuum
SELECT nullif(current_setting('autovacuum'), 'on')

-- check_track_counts
SELECT nullif(current_setting('track_counts'), 'on')

-- check_clock
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint

-- check_tables
SELECT count(to_regclass('schema_steps'))

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
SELECT c.relname::text AS tab, a.attname::text AS col, format_type(a.atttypid,
    a.atttypmod) || CASE WHEN o.collname IS NULL OR o.collname = 'default' THEN '' ELSE ' collate ' ||
    lower(o.collname) END AS kind, CASE WHEN a.attnotnull THEN 1 ELSE 0 END AS required,
    CASE WHEN a.atthasdef THEN 1 ELSE 0 END AS filled
FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid
LEFT JOIN pg_collation AS o ON o.oid = a.attcollation
WHERE c.relname IN ('events')
  AND c.relkind IN ('r', 'p')
  AND pg_table_is_visible(c.oid)
  AND a.attnum > 0
  AND NOT a.attisdropped
ORDER BY 1, a.attnum

-- check_indexes
SELECT c.relname::text AS tab, i.relname::text AS ind, CASE WHEN x.indisprimary THEN 2 WHEN x.indisunique THEN
    1 ELSE 0 END AS uniq, CASE WHEN x.indisvalid AND x.indisready THEN 1 ELSE 0 END AS valid,
  (SELECT string_agg(pg_get_indexdef(x.indexrelid, k, true) || CASE WHEN x.indoption[k - 1] & 1 = 1 THEN '
      desc' ELSE '' END, ',' ORDER BY k)
  FROM generate_series(1, x.indnkeyatts::int) AS k) AS cols, coalesce(pg_get_expr(x.indpred, x.indrelid),
      '') AS cond
FROM pg_index AS x
JOIN pg_class AS c ON c.oid = x.indrelid
JOIN pg_class AS i ON i.oid = x.indexrelid
WHERE c.relname IN ('events')
  AND c.relkind IN ('r', 'p')
  AND pg_table_is_visible(c.oid)
ORDER BY 1, 2
