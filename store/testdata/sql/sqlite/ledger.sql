-- event
SELECT id, source, type, payload, content_type, headers, delivery_id, created_at, encoding
FROM events
WHERE id = ?

-- job
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM jobs
WHERE id = ?

-- success
SELECT success,
  (SELECT COUNT(*)
  FROM attempts
  WHERE attempts.job_id = jobs.id) AS before_it
FROM jobs
WHERE id = ?
  AND success IS NOT NULL

-- attempts
SELECT attempt, status_code, error, response, duration_ms, created_at, exchange
FROM attempts
WHERE job_id = ?
ORDER BY created_at, attempt
LIMIT ? + 0 OFFSET ? + 0

-- depth
SELECT COUNT(*)
FROM
  (SELECT 1 AS one
  FROM jobs
  WHERE due_at IS NOT NULL
  LIMIT ? + 0) AS counted

-- finished
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM jobs
WHERE finished_at >= ?
  AND (finished_at > ? OR id > ?)
  AND (lane < 'alert/' OR lane >= 'alert0')
ORDER BY finished_at, id
LIMIT ? + 0

-- count_done
SELECT COUNT(*)
FROM
  (SELECT 1 AS one
  FROM jobs
  WHERE status = 'completed'
  LIMIT ? + 0) AS counted

-- sources
WITH RECURSIVE found (value) AS
  (SELECT MIN(source)
  FROM events
  WHERE 1 = 1
    AND source > ?
  UNION ALL SELECT
    (SELECT MIN(source)
    FROM events
    WHERE 1 = 1
      AND source > found.value)
  FROM found
  WHERE found.value IS NOT NULL)
SELECT value
FROM found
WHERE value IS NOT NULL

-- sources_of
WITH RECURSIVE found (value) AS
  (SELECT MIN(source)
  FROM events
  WHERE type = ?
    AND source > ?
  UNION ALL SELECT
    (SELECT MIN(source)
    FROM events
    WHERE type = ?
      AND source > found.value)
  FROM found
  WHERE found.value IS NOT NULL)
SELECT value
FROM found
WHERE value IS NOT NULL

-- read_jobs
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM jobs
WHERE jobs.id = ?

-- event_sources
SELECT events.id AS event, events.source AS source
FROM events
WHERE events.id = ?

-- failures_dead
SELECT id
FROM jobs
WHERE status = 'dead'
  AND lane = ?
  AND id >= ?
  AND lane = ?
  AND id < ?
ORDER BY lane DESC, id DESC
LIMIT ? + 0

-- failures_retryable
SELECT id
FROM
  (SELECT id
  FROM
    (SELECT CASE WHEN id >= ? AND id < ? AND (status = 'retryable' OR (status = 'running' AND due_at <= ?))
        THEN id END AS id
    FROM jobs
    WHERE due_at IS NOT NULL
      AND lane = ?
    ORDER BY due_at DESC
    LIMIT ? + 0) AS slice
  WHERE id IS NOT NULL
  ORDER BY id DESC
  LIMIT ? + 0) AS found
WHERE 1 = 1

-- waiting_beyond
SELECT id
FROM jobs
WHERE due_at IS NOT NULL
  AND lane = ?
ORDER BY due_at DESC
LIMIT 1 OFFSET ? + 0

-- failure_texts
SELECT jobs.id AS job, SUBSTR(last_error, 1, 512) AS error
FROM json_each(?) AS r
CROSS JOIN jobs
WHERE jobs.id = r.value

-- jobs_waiting_lanes
WITH RECURSIVE found (value) AS
  (SELECT MIN(lane)
  FROM jobs
  WHERE due_at IS NOT NULL
    AND lane > ?
  UNION ALL SELECT
    (SELECT MIN(lane)
    FROM jobs
    WHERE due_at IS NOT NULL
      AND lane > found.value)
  FROM found
  WHERE found.value IS NOT NULL)
SELECT value
FROM found
WHERE value IS NOT NULL

-- jobs_dead_lanes
WITH RECURSIVE found (value) AS
  (SELECT MIN(lane)
  FROM jobs
  WHERE status = 'dead'
    AND lane > ?
  UNION ALL SELECT
    (SELECT MIN(lane)
    FROM jobs
    WHERE status = 'dead'
      AND lane > found.value)
  FROM found
  WHERE found.value IS NOT NULL)
SELECT value
FROM found
WHERE value IS NOT NULL

-- jobs_done_lanes
WITH RECURSIVE found (value) AS
  (SELECT MIN(lane)
  FROM jobs
  WHERE status = 'completed'
    AND lane > ?
  UNION ALL SELECT
    (SELECT MIN(lane)
    FROM jobs
    WHERE status = 'completed'
      AND lane > found.value)
  FROM found
  WHERE found.value IS NOT NULL)
SELECT value
FROM found
WHERE value IS NOT NULL

-- jobs_canceled_lanes
WITH RECURSIVE found (value) AS
  (SELECT MIN(lane)
  FROM jobs
  WHERE status = 'canceled'
    AND lane > ?
  UNION ALL SELECT
    (SELECT MIN(lane)
    FROM jobs
    WHERE status = 'canceled'
      AND lane > found.value)
  FROM found
  WHERE found.value IS NOT NULL)
SELECT value
FROM found
WHERE value IS NOT NULL
