-- events
SELECT id, source, type, '' AS payload, content_type, '' AS headers, delivery_id, created_at, encoding
FROM events
WHERE id >= ?
  AND id < ?
  AND source <> ?
ORDER BY id DESC
LIMIT ?::bigint

-- nth_event
SELECT id
FROM events
WHERE id >= ?
  AND id < ?
  AND source <> ?
ORDER BY id DESC
LIMIT 1 OFFSET ?::bigint

-- oldest_event
SELECT id
FROM events
WHERE id >= ?
  AND id < ?
  AND source <> ?
ORDER BY id
LIMIT 1

-- event_sizes
SELECT id, LENGTH(payload) + LENGTH(headers) AS size
FROM events
WHERE id >= ?
  AND id < ?
  AND source <> ?
ORDER BY id
LIMIT ?::bigint

-- event_sizes
SELECT id, LENGTH(payload) + LENGTH(headers) AS size
FROM events
WHERE id >= ?
  AND id < ?
  AND source <> ?
ORDER BY id DESC
LIMIT ?::bigint

-- events
SELECT id, source, type, '' AS payload, content_type, '' AS headers, delivery_id, created_at, encoding
FROM events
WHERE id >= ?
  AND id < ?
  AND source <> ?
  AND created_at >= ?
  AND created_at < ?
ORDER BY id DESC
LIMIT ?::bigint

-- nth_event
SELECT id
FROM events
WHERE id >= ?
  AND id < ?
  AND source <> ?
  AND created_at >= ?
  AND created_at < ?
ORDER BY id DESC
LIMIT 1 OFFSET ?::bigint

-- oldest_event
SELECT id
FROM events
WHERE id >= ?
  AND id < ?
  AND source <> ?
  AND created_at >= ?
  AND created_at < ?
ORDER BY id
LIMIT 1

-- event_sizes
SELECT id, LENGTH(payload) + LENGTH(headers) AS size
FROM events
WHERE id >= ?
  AND id < ?
  AND source <> ?
  AND created_at >= ?
  AND created_at < ?
ORDER BY id
LIMIT ?::bigint

-- event_sizes
SELECT id, LENGTH(payload) + LENGTH(headers) AS size
FROM events
WHERE id >= ?
  AND id < ?
  AND source <> ?
  AND created_at >= ?
  AND created_at < ?
ORDER BY id DESC
LIMIT ?::bigint

-- events_by_source
SELECT id, source, type, '' AS payload, content_type, '' AS headers, delivery_id, created_at, encoding
FROM events
WHERE (source, id) >= (?, ?)
  AND (source, id) < (?, ?)
ORDER BY source DESC, id DESC
LIMIT ?::bigint

-- nth_event_by_source
SELECT id
FROM events
WHERE (source, id) >= (?, ?)
  AND (source, id) < (?, ?)
ORDER BY source DESC, id DESC
LIMIT 1 OFFSET ?::bigint

-- oldest_event_by_source
SELECT id
FROM events
WHERE (source, id) >= (?, ?)
  AND (source, id) < (?, ?)
ORDER BY source, id
LIMIT 1

-- event_sizes_by_source
SELECT id, LENGTH(payload) + LENGTH(headers) AS size
FROM events
WHERE (source, id) >= (?, ?)
  AND (source, id) < (?, ?)
ORDER BY source, id
LIMIT ?::bigint

-- event_sizes_by_source
SELECT id, LENGTH(payload) + LENGTH(headers) AS size
FROM events
WHERE (source, id) >= (?, ?)
  AND (source, id) < (?, ?)
ORDER BY source DESC, id DESC
LIMIT ?::bigint

-- events_by_kind
SELECT id, source, type, '' AS payload, content_type, '' AS headers, delivery_id, created_at, encoding
FROM events
WHERE type = ?
  AND (source, id) >= (?, ?)
  AND type = ?
  AND (source, id) < (?, ?)
ORDER BY type DESC, source DESC, id DESC
LIMIT ?::bigint

-- nth_event_by_kind
SELECT id
FROM events
WHERE type = ?
  AND (source, id) >= (?, ?)
  AND type = ?
  AND (source, id) < (?, ?)
ORDER BY type DESC, source DESC, id DESC
LIMIT 1 OFFSET ?::bigint

-- oldest_event_by_kind
SELECT id
FROM events
WHERE type = ?
  AND (source, id) >= (?, ?)
  AND type = ?
  AND (source, id) < (?, ?)
ORDER BY type, source, id
LIMIT 1

-- event_sizes_by_kind
SELECT id, LENGTH(payload) + LENGTH(headers) AS size
FROM events
WHERE type = ?
  AND (source, id) >= (?, ?)
  AND type = ?
  AND (source, id) < (?, ?)
ORDER BY type, source, id
LIMIT ?::bigint

-- event_sizes_by_kind
SELECT id, LENGTH(payload) + LENGTH(headers) AS size
FROM events
WHERE type = ?
  AND (source, id) >= (?, ?)
  AND type = ?
  AND (source, id) < (?, ?)
ORDER BY type DESC, source DESC, id DESC
LIMIT ?::bigint

-- events_by_delivery
SELECT id, source, type, '' AS payload, content_type, '' AS headers, delivery_id, created_at, encoding
FROM events
WHERE source = ?
  AND delivery_id = ?
  AND id >= ?
  AND id < ?
LIMIT ?::bigint

-- nth_event_by_delivery
SELECT id
FROM events
WHERE source = ?
  AND delivery_id = ?
  AND id >= ?
  AND id < ?
LIMIT 1 OFFSET ?::bigint

-- oldest_event_by_delivery
SELECT id
FROM events
WHERE source = ?
  AND delivery_id = ?
  AND id >= ?
  AND id < ?
LIMIT 1

-- event_sizes_by_delivery
SELECT id, LENGTH(payload) + LENGTH(headers) AS size
FROM events
WHERE source = ?
  AND delivery_id = ?
  AND id >= ?
  AND id < ?
LIMIT ?::bigint

-- event_ids_by_kind
SELECT id
FROM events
WHERE type = ?
  AND (source, id) >= (?, ?)
  AND type = ?
  AND (source, id) < (?, ?)
ORDER BY type DESC, source DESC, id DESC
LIMIT ?::bigint

-- event_ids_by_delivery
SELECT id
FROM events
WHERE source = ?
  AND delivery_id = ?
  AND id >= ?
  AND id < ?
  AND type = ?
LIMIT ?::bigint

-- jobs
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM jobs
WHERE id < ?
ORDER BY id DESC
LIMIT ?::bigint

-- jobs_of_event
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM
  (SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
      finished_at, earlier, scheduled_at, line
  FROM jobs
  WHERE event_id = ?
    AND id >= ?
    AND id < ?
  ORDER BY id DESC
  LIMIT ?::bigint) AS jobs
WHERE 1 = 1
ORDER BY id DESC
LIMIT ?::bigint

-- jobs_of_later
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM
  (SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
      finished_at, earlier, scheduled_at, line
  FROM jobs
  WHERE event_id = ?
    AND id >= ?
    AND id < ?
    AND substr(id, 1, 21) <> substr(event_id, 1, 21)
  ORDER BY id DESC
  LIMIT ?::bigint) AS jobs
WHERE 1 = 1
ORDER BY id DESC
LIMIT ?::bigint

-- jobs_of_event
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM
  (SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
      finished_at, earlier, scheduled_at, line
  FROM jobs
  WHERE event_id = ?
    AND id >= ?
    AND id < ?
  ORDER BY id DESC
  LIMIT ?::bigint) AS jobs
WHERE 1 = 1
  AND lane = ?
  AND status = 'running'
  AND due_at > ?
ORDER BY id DESC
LIMIT ?::bigint

-- jobs_of_later
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM
  (SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
      finished_at, earlier, scheduled_at, line
  FROM jobs
  WHERE event_id = ?
    AND id >= ?
    AND id < ?
    AND substr(id, 1, 21) <> substr(event_id, 1, 21)
  ORDER BY id DESC
  LIMIT ?::bigint) AS jobs
WHERE 1 = 1
  AND lane = ?
  AND status = 'running'
  AND due_at > ?
ORDER BY id DESC
LIMIT ?::bigint

-- jobs_near
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM
  (SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
      finished_at, earlier, scheduled_at, line
  FROM jobs
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?::bigint) AS jobs
WHERE 1 = 1
  AND lane = ?
ORDER BY id DESC
LIMIT ?::bigint

-- jobs_waiting
SELECT COALESCE(id, '') AS job
FROM jobs
WHERE due_at IS NOT NULL
  AND lane = ?
  AND COALESCE(id, '') < ?
ORDER BY job DESC
LIMIT ?::bigint

-- jobs_dead
SELECT id AS job
FROM jobs
WHERE status = 'dead'
  AND (lane, id) >= (?, ?)
  AND (lane, id) < (?, ?)
ORDER BY lane DESC, id DESC
LIMIT ?::bigint

-- jobs_done
SELECT id AS job
FROM jobs
WHERE status = 'completed'
  AND (lane, id) >= (?, ?)
  AND (lane, id) < (?, ?)
ORDER BY lane DESC, id DESC
LIMIT ?::bigint

-- jobs_canceled
SELECT id AS job
FROM jobs
WHERE status = 'canceled'
  AND (lane, id) >= (?, ?)
  AND (lane, id) < (?, ?)
ORDER BY lane DESC, id DESC
LIMIT ?::bigint

-- jobs_in_lines
SELECT job_id AS job
FROM line_places
WHERE line_places.line > ?
  AND line_places.line < ?
  AND COALESCE(job_id, '') < ?
ORDER BY job_id DESC
LIMIT ?::bigint

-- jobs_near
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM
  (SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
      finished_at, earlier, scheduled_at, line
  FROM jobs
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?::bigint) AS jobs
WHERE 1 = 1
  AND (status = 'available' OR (status = 'scheduled' AND due_at <= ?))
ORDER BY id DESC
LIMIT ?::bigint

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

-- jobs_near
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM
  (SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
      finished_at, earlier, scheduled_at, line
  FROM jobs
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?::bigint) AS jobs
WHERE 1 = 1
  AND lane = ?
  AND (status = 'available' OR (status = 'scheduled' AND due_at <= ?))
ORDER BY id DESC
LIMIT ?::bigint

-- jobs_waiting
SELECT COALESCE(id, '') AS job
FROM jobs
WHERE due_at IS NOT NULL
  AND lane = ?
  AND (status = 'available' OR (status = 'scheduled' AND due_at <= ?))
  AND COALESCE(id, '') < ?
ORDER BY job DESC
LIMIT ?::bigint

-- jobs_near
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM
  (SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
      finished_at, earlier, scheduled_at, line
  FROM jobs
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?::bigint) AS jobs
WHERE 1 = 1
  AND status = 'scheduled'
  AND due_at > ?
ORDER BY id DESC
LIMIT ?::bigint

-- jobs_near
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM
  (SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
      finished_at, earlier, scheduled_at, line
  FROM jobs
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?::bigint) AS jobs
WHERE 1 = 1
  AND lane = ?
  AND status = 'scheduled'
  AND due_at > ?
ORDER BY id DESC
LIMIT ?::bigint

-- jobs_waiting
SELECT COALESCE(id, '') AS job
FROM jobs
WHERE due_at IS NOT NULL
  AND lane = ?
  AND status = 'scheduled'
  AND due_at > ?
  AND COALESCE(id, '') < ?
ORDER BY job DESC
LIMIT ?::bigint

-- jobs_near
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM
  (SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
      finished_at, earlier, scheduled_at, line
  FROM jobs
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?::bigint) AS jobs
WHERE 1 = 1
  AND status = ?
ORDER BY id DESC
LIMIT ?::bigint

-- jobs_near
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM
  (SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
      finished_at, earlier, scheduled_at, line
  FROM jobs
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?::bigint) AS jobs
WHERE 1 = 1
  AND lane = ?
  AND status = ?
ORDER BY id DESC
LIMIT ?::bigint

-- jobs_near
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM
  (SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
      finished_at, earlier, scheduled_at, line
  FROM jobs
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?::bigint) AS jobs
WHERE 1 = 1
  AND status = 'running'
  AND due_at > ?
ORDER BY id DESC
LIMIT ?::bigint

-- jobs_near
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM
  (SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
      finished_at, earlier, scheduled_at, line
  FROM jobs
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?::bigint) AS jobs
WHERE 1 = 1
  AND lane = ?
  AND status = 'running'
  AND due_at > ?
ORDER BY id DESC
LIMIT ?::bigint

-- jobs_waiting
SELECT COALESCE(id, '') AS job
FROM jobs
WHERE due_at IS NOT NULL
  AND lane = ?
  AND status = 'running'
  AND due_at > ?
  AND COALESCE(id, '') < ?
ORDER BY job DESC
LIMIT ?::bigint

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

-- jobs_near
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM
  (SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
      finished_at, earlier, scheduled_at, line
  FROM jobs
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?::bigint) AS jobs
WHERE 1 = 1
  AND (status = 'retryable' OR (status = 'running' AND due_at <= ?))
ORDER BY id DESC
LIMIT ?::bigint

-- jobs_near
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM
  (SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
      finished_at, earlier, scheduled_at, line
  FROM jobs
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?::bigint) AS jobs
WHERE 1 = 1
  AND lane = ?
  AND (status = 'retryable' OR (status = 'running' AND due_at <= ?))
ORDER BY id DESC
LIMIT ?::bigint

-- jobs_waiting
SELECT COALESCE(id, '') AS job
FROM jobs
WHERE due_at IS NOT NULL
  AND lane = ?
  AND (status = 'retryable' OR (status = 'running' AND due_at <= ?))
  AND COALESCE(id, '') < ?
ORDER BY job DESC
LIMIT ?::bigint

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

-- runs
SELECT id, workflow, event_id, definition, status, epoch, seq, step, NULL AS output, error, deadline_at,
    created_at, started_at, finished_at, written, writers
FROM runs
WHERE id < ?
ORDER BY id DESC
LIMIT ?::bigint

-- runs
SELECT id, workflow, event_id, definition, status, epoch, seq, step, NULL AS output, error, deadline_at,
    created_at, started_at, finished_at, written, writers
FROM runs
WHERE id < ?
  AND status = ?
ORDER BY id DESC
LIMIT ?::bigint

-- runs
SELECT id, workflow, event_id, definition, status, epoch, seq, step, NULL AS output, error, deadline_at,
    created_at, started_at, finished_at, written, writers
FROM runs
WHERE id < ?
  AND workflow = ?
ORDER BY id DESC
LIMIT ?::bigint

-- runs
SELECT id, workflow, event_id, definition, status, epoch, seq, step, NULL AS output, error, deadline_at,
    created_at, started_at, finished_at, written, writers
FROM runs
WHERE id < ?
  AND event_id = ?
ORDER BY id DESC
LIMIT ?::bigint

-- runs
SELECT id, workflow, event_id, definition, status, epoch, seq, step, NULL AS output, error, deadline_at,
    created_at, started_at, finished_at, written, writers
FROM runs
WHERE id < ?
  AND status = ?
  AND workflow = ?
  AND event_id = ?
ORDER BY id DESC
LIMIT ?::bigint

-- audits
SELECT id, actor, role, address, via, action, target, detail
FROM audit
WHERE id < ?
ORDER BY id DESC
LIMIT ?::bigint

-- audits
SELECT id, actor, role, address, via, action, target, detail
FROM audit
WHERE id < ?
  AND id >= ?
  AND actor = ?
  AND action = ?
  AND target = ?
ORDER BY id DESC
LIMIT ?::bigint
