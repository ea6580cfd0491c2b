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
  FROM attempts FORCE INDEX (`PRIMARY`)
  WHERE attempts.job_id = jobs.id) AS before_it
FROM jobs
WHERE id = ?
  AND success IS NOT NULL

-- attempts
SELECT attempt, status_code, error, response, duration_ms, created_at, exchange
FROM attempts
WHERE job_id = ?
ORDER BY created_at, attempt
LIMIT ? OFFSET ?

-- depth
SELECT COUNT(*)
FROM
  (SELECT 1 AS one
  FROM jobs
  WHERE due_lane IS NOT NULL
  LIMIT ?) AS counted

-- finished
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM jobs FORCE INDEX (`jobs_finished`)
WHERE finished_at >= ?
  AND (finished_at > ? OR id > ?)
  AND (lane < 'alert/' OR lane >= 'alert0')
ORDER BY finished_at, id
LIMIT ?

-- count_done
SELECT COUNT(*)
FROM
  (SELECT 1 AS one
  FROM jobs FORCE INDEX (`jobs_lists`)
  WHERE list_name = 'completed'
    AND lapses_at IS NULL
  LIMIT ?) AS counted

-- sources
SELECT source AS value
FROM events FORCE INDEX (`events_by_source`)
WHERE 1 = 1
  AND source > ?
ORDER BY source
LIMIT 100

-- sources_of
SELECT source AS value
FROM events FORCE INDEX (`events_by_kind`)
WHERE type = ?
  AND source > ?
ORDER BY source
LIMIT 100

-- read_jobs
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM
  (SELECT ? AS id_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
WHERE jobs.id = r.id_

-- event_sources
SELECT events.id AS event, events.source AS source
FROM
  (SELECT ? AS id_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN events FORCE INDEX (`PRIMARY`)
WHERE events.id = r.id_

-- failures_dead
SELECT id, SUBSTR(last_error, 1, 512) AS error
FROM jobs FORCE INDEX (`jobs_lists`)
WHERE list_name = 'dead'
  AND lapses_at IS NULL
  AND lane = ?
  AND id >= ?
  AND lane = ?
  AND id < ?
ORDER BY lane DESC, id DESC
LIMIT ?

-- failures_retryable
SELECT id,
  (SELECT SUBSTR(last_error, 1, 512)
  FROM jobs
  WHERE jobs.id = found.id) AS error
FROM
  (SELECT id
  FROM
    (SELECT CASE WHEN id >= ? AND id < ? AND (status = 'retryable' OR (status = 'running' AND due_at <= ?))
        THEN id END AS id
    FROM jobs FORCE INDEX (`jobs_waiting`)
    WHERE due_lane IS NOT NULL
      AND due_lane = ?
    ORDER BY due_at DESC
    LIMIT ?) AS slice
  WHERE id IS NOT NULL
  ORDER BY id DESC
  LIMIT ?) AS found
WHERE 1 = 1

-- waiting_beyond
SELECT id
FROM jobs FORCE INDEX (`jobs_waiting`)
WHERE due_lane IS NOT NULL
  AND due_lane = ?
ORDER BY due_at DESC
LIMIT 1 OFFSET ?

-- jobs_waiting_lanes
SELECT due_lane AS value
FROM jobs FORCE INDEX (`jobs_waiting`)
WHERE due_lane IS NOT NULL
  AND due_lane > ?
ORDER BY due_lane
LIMIT 100

-- jobs_dead_lanes
SELECT lane AS value
FROM jobs FORCE INDEX (`jobs_lists`)
WHERE list_name = 'dead'
  AND lapses_at IS NULL
  AND lane > ?
ORDER BY lane
LIMIT 100

-- jobs_done_lanes
SELECT lane AS value
FROM jobs FORCE INDEX (`jobs_lists`)
WHERE list_name = 'completed'
  AND lapses_at IS NULL
  AND lane > ?
ORDER BY lane
LIMIT 100

-- jobs_canceled_lanes
SELECT lane AS value
FROM jobs FORCE INDEX (`jobs_lists`)
WHERE list_name = 'canceled'
  AND lapses_at IS NULL
  AND lane > ?
ORDER BY lane
LIMIT 100
