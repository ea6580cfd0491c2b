-- read_events
SELECT id, source, type, payload, content_type, headers, delivery_id, created_at, encoding
FROM
  (SELECT column1 AS id_
  FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
CROSS JOIN events
WHERE events.id = r.id_

-- jobs_of
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM
  (SELECT column1 AS event_
  FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
CROSS JOIN jobs
WHERE jobs.event_id = r.event_
  AND jobs.id >= substr(r.event_, 1, 21)
  AND jobs.id < substr(r.event_, 1, 21) || '~'

-- later_jobs_of
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM
  (SELECT column1 AS event_
  FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
CROSS JOIN jobs
WHERE jobs.event_id = r.event_
  AND substr(id, 1, 21) <> substr(event_id, 1, 21)

-- sent_body
SELECT sent_body
FROM attempts
WHERE job_id = ?
  AND attempt = ?
ORDER BY created_at DESC
LIMIT 1

-- successes_of
SELECT jobs.id AS job, jobs.success AS success
FROM
  (SELECT column1 AS id_
  FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
CROSS JOIN jobs
WHERE jobs.id = r.id_
  AND jobs.success IS NOT NULL

-- attempts_of
SELECT attempt, status_code, error, '' AS response, duration_ms, created_at, '' AS exchange, job_id
FROM
  (SELECT column1 AS id_
  FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
CROSS JOIN attempts
WHERE attempts.job_id = r.id_

-- last_event
SELECT id
FROM events
ORDER BY id DESC
LIMIT 1

-- last_job
SELECT id
FROM jobs
ORDER BY id DESC
LIMIT 1

-- last_run
SELECT id
FROM runs
ORDER BY id DESC
LIMIT 1

-- last_job_over
SELECT finished_at
FROM jobs
WHERE finished_at IS NOT NULL
ORDER BY finished_at DESC
LIMIT 1

-- last_run_over
SELECT finished_at
FROM runs
WHERE finished_at IS NOT NULL
ORDER BY finished_at DESC
LIMIT 1
