-- read_events
SELECT id, source, type, payload, content_type, headers, delivery_id, created_at, encoding
FROM
  (SELECT ? AS id_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN events FORCE INDEX (`PRIMARY`)
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
  (SELECT ? AS event_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`jobs_event`)
WHERE jobs.event_id = r.event_

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
  (SELECT ? AS id_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
WHERE jobs.id = r.id_
  AND jobs.success IS NOT NULL

-- attempts_of
SELECT attempt, status_code, error, '' AS response, duration_ms, created_at, '' AS exchange, job_id
FROM
  (SELECT ? AS id_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN attempts FORCE INDEX (`PRIMARY`)
WHERE attempts.job_id = r.id_

-- last_event
SELECT id
FROM events FORCE INDEX (`PRIMARY`)
ORDER BY id DESC
LIMIT 1

-- last_job
SELECT id
FROM jobs FORCE INDEX (`PRIMARY`)
ORDER BY id DESC
LIMIT 1

-- last_run
SELECT id
FROM runs FORCE INDEX (`PRIMARY`)
ORDER BY id DESC
LIMIT 1

-- last_job_over
SELECT finished_at
FROM jobs FORCE INDEX (`jobs_finished`)
WHERE finished_at IS NOT NULL
ORDER BY finished_at DESC
LIMIT 1

-- last_run_over
SELECT finished_at
FROM runs FORCE INDEX (`runs_finished`)
WHERE finished_at IS NOT NULL
ORDER BY finished_at DESC
LIMIT 1
