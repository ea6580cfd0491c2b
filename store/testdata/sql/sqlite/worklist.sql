-- due
SELECT ? AS lane,
  (SELECT due_at
  FROM jobs
  WHERE lane = ?
    AND due_at >= ?
  ORDER BY due_at
  LIMIT 1) AS due, gates.failures, gates.open_until, gates.closed_at, gates.next_us, gates.moved_by,
      gates.held_since, gates.held_until, gates.opened_at, gates.openings
FROM
  (SELECT 1) AS r
LEFT JOIN gates ON gates.lane = ?

-- insert_attempts
INSERT OR FAIL INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at)
SELECT jobs.id, jobs.lease, ?, ?, ?, ?, ?, ?
FROM jobs
WHERE jobs.id = ?
  AND jobs.status = 'running'
  AND jobs.lease = ?
ON CONFLICT DO NOTHING

-- insert_attempts_recorded
INSERT OR FAIL INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at,
    exchange, sent_body)
SELECT jobs.id, jobs.lease, ?, ?, ?, ?, ?, ?, ?, ?
FROM jobs
WHERE jobs.id = ?
  AND jobs.status = 'running'
  AND jobs.lease = ?
ON CONFLICT DO NOTHING

-- insert_events_if
INSERT OR FAIL INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at)
SELECT ?, ?, ?, ?, ?, ?, ?, ?
FROM jobs
WHERE jobs.id = ?
  AND jobs.status = 'running'
  AND jobs.lease = ?
ON CONFLICT DO NOTHING

-- settle
UPDATE jobs
SET status = ?, attempt = ?, due_at = ?, lease = NULL, last_error = ?, finished_at = ?, success = NULLIF(?,
    '')
WHERE jobs.id = ?
  AND jobs.status = 'running'
  AND jobs.lease = ?

-- settled
SELECT attempts.job_id, attempts.lease
FROM attempts
WHERE attempts.job_id = ?
  AND attempts.lease = ?

-- settled_success
SELECT jobs.id AS job, ? AS lease
FROM jobs
WHERE jobs.id = ?
  AND jobs.success = ?

-- release
UPDATE jobs
SET status = CASE WHEN attempt > earlier + 1 AND (last_error <> '' OR (lane < 'workflow/' OR lane >=
    'workflow0')) THEN 'retryable' ELSE 'available' END, attempt = attempt - 1, due_at = ?, lease = NULL
WHERE id = ?
  AND status = 'running'
  AND lease = ?

-- recover
UPDATE jobs
SET due_at = ?
WHERE lane = ?
  AND due_at > ?
  AND status = 'running'
