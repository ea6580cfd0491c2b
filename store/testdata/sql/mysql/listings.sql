-- events
SELECT id, source, type, '' AS payload, content_type, '' AS headers, delivery_id, created_at, encoding
FROM events FORCE INDEX (`PRIMARY`)
WHERE id >= ?
  AND id < ?
  AND source <> ?
ORDER BY id DESC
LIMIT ?

-- nth_event
SELECT id
FROM events FORCE INDEX (`PRIMARY`)
WHERE id >= ?
  AND id < ?
  AND source <> ?
ORDER BY id DESC
LIMIT 1 OFFSET ?

-- oldest_event
SELECT id
FROM events FORCE INDEX (`PRIMARY`)
WHERE id >= ?
  AND id < ?
  AND source <> ?
ORDER BY id
LIMIT 1

-- event_sizes
SELECT id, LENGTH(payload) + LENGTH(headers) AS size
FROM events FORCE INDEX (`PRIMARY`)
WHERE id >= ?
  AND id < ?
  AND source <> ?
ORDER BY id
LIMIT ?

-- event_sizes
SELECT id, LENGTH(payload) + LENGTH(headers) AS size
FROM events FORCE INDEX (`PRIMARY`)
WHERE id >= ?
  AND id < ?
  AND source <> ?
ORDER BY id DESC
LIMIT ?

-- events
SELECT id, source, type, '' AS payload, content_type, '' AS headers, delivery_id, created_at, encoding
FROM events FORCE INDEX (`PRIMARY`)
WHERE id >= ?
  AND id < ?
  AND source <> ?
  AND created_at >= ?
  AND created_at < ?
ORDER BY id DESC
LIMIT ?

-- nth_event
SELECT id
FROM events FORCE INDEX (`PRIMARY`)
WHERE id >= ?
  AND id < ?
  AND source <> ?
  AND created_at >= ?
  AND created_at < ?
ORDER BY id DESC
LIMIT 1 OFFSET ?

-- oldest_event
SELECT id
FROM events FORCE INDEX (`PRIMARY`)
WHERE id >= ?
  AND id < ?
  AND source <> ?
  AND created_at >= ?
  AND created_at < ?
ORDER BY id
LIMIT 1

-- event_sizes
SELECT id, LENGTH(payload) + LENGTH(headers) AS size
FROM events FORCE INDEX (`PRIMARY`)
WHERE id >= ?
  AND id < ?
  AND source <> ?
  AND created_at >= ?
  AND created_at < ?
ORDER BY id
LIMIT ?

-- event_sizes
SELECT id, LENGTH(payload) + LENGTH(headers) AS size
FROM events FORCE INDEX (`PRIMARY`)
WHERE id >= ?
  AND id < ?
  AND source <> ?
  AND created_at >= ?
  AND created_at < ?
ORDER BY id DESC
LIMIT ?

-- events_by_source
SELECT id, source, type, '' AS payload, content_type, '' AS headers, delivery_id, created_at, encoding
FROM events FORCE INDEX (`events_by_source`)
WHERE source = ?
  AND id >= ?
  AND source = ?
  AND id < ?
ORDER BY source DESC, id DESC
LIMIT ?

-- nth_event_by_source
SELECT id
FROM events FORCE INDEX (`events_by_source`)
WHERE source = ?
  AND id >= ?
  AND source = ?
  AND id < ?
ORDER BY source DESC, id DESC
LIMIT 1 OFFSET ?

-- oldest_event_by_source
SELECT id
FROM events FORCE INDEX (`events_by_source`)
WHERE source = ?
  AND id >= ?
  AND source = ?
  AND id < ?
ORDER BY source, id
LIMIT 1

-- event_sizes_by_source
SELECT id, LENGTH(payload) + LENGTH(headers) AS size
FROM events FORCE INDEX (`events_by_source`)
WHERE source = ?
  AND id >= ?
  AND source = ?
  AND id < ?
ORDER BY source, id
LIMIT ?

-- event_sizes_by_source
SELECT id, LENGTH(payload) + LENGTH(headers) AS size
FROM events FORCE INDEX (`events_by_source`)
WHERE source = ?
  AND id >= ?
  AND source = ?
  AND id < ?
ORDER BY source DESC, id DESC
LIMIT ?

-- events_by_kind
SELECT id, source, type, '' AS payload, content_type, '' AS headers, delivery_id, created_at, encoding
FROM events FORCE INDEX (`events_by_kind`)
WHERE type = ?
  AND source = ?
  AND id >= ?
  AND type = ?
  AND source = ?
  AND id < ?
ORDER BY type DESC, source DESC, id DESC
LIMIT ?

-- nth_event_by_kind
SELECT id
FROM events FORCE INDEX (`events_by_kind`)
WHERE type = ?
  AND source = ?
  AND id >= ?
  AND type = ?
  AND source = ?
  AND id < ?
ORDER BY type DESC, source DESC, id DESC
LIMIT 1 OFFSET ?

-- oldest_event_by_kind
SELECT id
FROM events FORCE INDEX (`events_by_kind`)
WHERE type = ?
  AND source = ?
  AND id >= ?
  AND type = ?
  AND source = ?
  AND id < ?
ORDER BY type, source, id
LIMIT 1

-- event_sizes_by_kind
SELECT id, LENGTH(payload) + LENGTH(headers) AS size
FROM events FORCE INDEX (`events_by_kind`)
WHERE type = ?
  AND source = ?
  AND id >= ?
  AND type = ?
  AND source = ?
  AND id < ?
ORDER BY type, source, id
LIMIT ?

-- event_sizes_by_kind
SELECT id, LENGTH(payload) + LENGTH(headers) AS size
FROM events FORCE INDEX (`events_by_kind`)
WHERE type = ?
  AND source = ?
  AND id >= ?
  AND type = ?
  AND source = ?
  AND id < ?
ORDER BY type DESC, source DESC, id DESC
LIMIT ?

-- events_by_delivery
SELECT id, source, type, '' AS payload, content_type, '' AS headers, delivery_id, created_at, encoding
FROM events FORCE INDEX (`events_delivery`)
WHERE source = ?
  AND delivery_id = ?
  AND id >= ?
  AND id < ?
LIMIT ?

-- nth_event_by_delivery
SELECT id
FROM events FORCE INDEX (`events_delivery`)
WHERE source = ?
  AND delivery_id = ?
  AND id >= ?
  AND id < ?
LIMIT 1 OFFSET ?

-- oldest_event_by_delivery
SELECT id
FROM events FORCE INDEX (`events_delivery`)
WHERE source = ?
  AND delivery_id = ?
  AND id >= ?
  AND id < ?
LIMIT 1

-- event_sizes_by_delivery
SELECT id, LENGTH(payload) + LENGTH(headers) AS size
FROM events FORCE INDEX (`events_delivery`)
WHERE source = ?
  AND delivery_id = ?
  AND id >= ?
  AND id < ?
LIMIT ?

-- event_ids_by_kind
SELECT id
FROM events FORCE INDEX (`events_by_kind`)
WHERE type = ?
  AND source = ?
  AND id >= ?
  AND type = ?
  AND source = ?
  AND id < ?
ORDER BY type DESC, source DESC, id DESC
LIMIT ?

-- event_ids_by_delivery
SELECT id
FROM events FORCE INDEX (`events_delivery`)
WHERE source = ?
  AND delivery_id = ?
  AND id >= ?
  AND id < ?
  AND type = ?
LIMIT ?

-- jobs
SELECT id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at,
    finished_at, earlier, scheduled_at, line,
  (SELECT steps.run_id
  FROM steps
  WHERE steps.id = jobs.id) AS run_id,
  (SELECT steps.path
  FROM steps
  WHERE steps.id = jobs.id) AS step
FROM jobs FORCE INDEX (`PRIMARY`)
WHERE id < ?
ORDER BY id DESC
LIMIT ?

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
  FROM jobs FORCE INDEX (`jobs_event`)
  WHERE event_id = ?
    AND id >= ?
    AND id < ?
  ORDER BY id DESC
  LIMIT ?) AS jobs
WHERE 1 = 1
ORDER BY id DESC
LIMIT ?

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
  FROM jobs FORCE INDEX (`jobs_event`)
  WHERE event_id = ?
    AND id >= ?
    AND id < ?
  ORDER BY id DESC
  LIMIT ?) AS jobs
WHERE 1 = 1
  AND lane = ?
  AND status = 'running'
  AND due_at > ?
ORDER BY id DESC
LIMIT ?

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
  FROM jobs FORCE INDEX (`PRIMARY`)
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?) AS jobs
WHERE 1 = 1
  AND lane = ?
ORDER BY id DESC
LIMIT ?

-- jobs_waiting
SELECT COALESCE(id, '') AS job
FROM jobs FORCE INDEX (`jobs_waiting`)
WHERE due_lane IS NOT NULL
  AND due_lane = ?
  AND COALESCE(id, '') < ?
ORDER BY job DESC
LIMIT ?

-- jobs_dead
SELECT id AS job
FROM jobs FORCE INDEX (`jobs_lists`)
WHERE list_name = 'dead'
  AND lapses_at IS NULL
  AND lane = ?
  AND id >= ?
  AND lane = ?
  AND id < ?
ORDER BY lane DESC, id DESC
LIMIT ?

-- jobs_done
SELECT id AS job
FROM jobs FORCE INDEX (`jobs_lists`)
WHERE list_name = 'completed'
  AND lapses_at IS NULL
  AND lane = ?
  AND id >= ?
  AND lane = ?
  AND id < ?
ORDER BY lane DESC, id DESC
LIMIT ?

-- jobs_canceled
SELECT id AS job
FROM jobs FORCE INDEX (`jobs_lists`)
WHERE list_name = 'canceled'
  AND lapses_at IS NULL
  AND lane = ?
  AND id >= ?
  AND lane = ?
  AND id < ?
ORDER BY lane DESC, id DESC
LIMIT ?

-- jobs_in_lines
SELECT job_id AS job
FROM line_places FORCE INDEX (`PRIMARY`)
WHERE line_places.line > ?
  AND line_places.line < ?
  AND COALESCE(job_id, '') < ?
ORDER BY job_id DESC
LIMIT ?

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
  FROM jobs FORCE INDEX (`PRIMARY`)
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?) AS jobs
WHERE 1 = 1
  AND (status = 'available' OR (status = 'scheduled' AND due_at <= ?))
ORDER BY id DESC
LIMIT ?

-- jobs_waiting_lanes
SELECT due_lane AS value
FROM jobs FORCE INDEX (`jobs_waiting`)
WHERE due_lane IS NOT NULL
  AND due_lane > ?
ORDER BY due_lane
LIMIT 100

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
  FROM jobs FORCE INDEX (`PRIMARY`)
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?) AS jobs
WHERE 1 = 1
  AND lane = ?
  AND (status = 'available' OR (status = 'scheduled' AND due_at <= ?))
ORDER BY id DESC
LIMIT ?

-- jobs_waiting
SELECT COALESCE(id, '') AS job
FROM jobs FORCE INDEX (`jobs_waiting`)
WHERE due_lane IS NOT NULL
  AND due_lane = ?
  AND (status = 'available' OR (status = 'scheduled' AND due_at <= ?))
  AND COALESCE(id, '') < ?
ORDER BY job DESC
LIMIT ?

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
  FROM jobs FORCE INDEX (`PRIMARY`)
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?) AS jobs
WHERE 1 = 1
  AND status = 'scheduled'
  AND due_at > ?
ORDER BY id DESC
LIMIT ?

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
  FROM jobs FORCE INDEX (`PRIMARY`)
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?) AS jobs
WHERE 1 = 1
  AND lane = ?
  AND status = 'scheduled'
  AND due_at > ?
ORDER BY id DESC
LIMIT ?

-- jobs_waiting
SELECT COALESCE(id, '') AS job
FROM jobs FORCE INDEX (`jobs_waiting`)
WHERE due_lane IS NOT NULL
  AND due_lane = ?
  AND status = 'scheduled'
  AND due_at > ?
  AND COALESCE(id, '') < ?
ORDER BY job DESC
LIMIT ?

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
  FROM jobs FORCE INDEX (`PRIMARY`)
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?) AS jobs
WHERE 1 = 1
  AND status = ?
ORDER BY id DESC
LIMIT ?

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
  FROM jobs FORCE INDEX (`PRIMARY`)
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?) AS jobs
WHERE 1 = 1
  AND lane = ?
  AND status = ?
ORDER BY id DESC
LIMIT ?

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
  FROM jobs FORCE INDEX (`PRIMARY`)
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?) AS jobs
WHERE 1 = 1
  AND status = 'running'
  AND due_at > ?
ORDER BY id DESC
LIMIT ?

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
  FROM jobs FORCE INDEX (`PRIMARY`)
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?) AS jobs
WHERE 1 = 1
  AND lane = ?
  AND status = 'running'
  AND due_at > ?
ORDER BY id DESC
LIMIT ?

-- jobs_waiting
SELECT COALESCE(id, '') AS job
FROM jobs FORCE INDEX (`jobs_waiting`)
WHERE due_lane IS NOT NULL
  AND due_lane = ?
  AND status = 'running'
  AND due_at > ?
  AND COALESCE(id, '') < ?
ORDER BY job DESC
LIMIT ?

-- jobs_done_lanes
SELECT lane AS value
FROM jobs FORCE INDEX (`jobs_lists`)
WHERE list_name = 'completed'
  AND lapses_at IS NULL
  AND lane > ?
ORDER BY lane
LIMIT 100

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
  FROM jobs FORCE INDEX (`PRIMARY`)
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?) AS jobs
WHERE 1 = 1
  AND (status = 'retryable' OR (status = 'running' AND due_at <= ?))
ORDER BY id DESC
LIMIT ?

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
  FROM jobs FORCE INDEX (`PRIMARY`)
  WHERE id < ?
  ORDER BY id DESC
  LIMIT ?) AS jobs
WHERE 1 = 1
  AND lane = ?
  AND (status = 'retryable' OR (status = 'running' AND due_at <= ?))
ORDER BY id DESC
LIMIT ?

-- jobs_waiting
SELECT COALESCE(id, '') AS job
FROM jobs FORCE INDEX (`jobs_waiting`)
WHERE due_lane IS NOT NULL
  AND due_lane = ?
  AND (status = 'retryable' OR (status = 'running' AND due_at <= ?))
  AND COALESCE(id, '') < ?
ORDER BY job DESC
LIMIT ?

-- jobs_dead_lanes
SELECT lane AS value
FROM jobs FORCE INDEX (`jobs_lists`)
WHERE list_name = 'dead'
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

-- runs
SELECT id, workflow, event_id, definition, status, epoch, seq, step, NULL AS output, error, deadline_at,
    created_at, started_at, finished_at, written, writers
FROM runs FORCE INDEX (`runs_event`, `runs_status`, `PRIMARY`)
WHERE id < ?
ORDER BY id DESC
LIMIT ?

-- runs
SELECT id, workflow, event_id, definition, status, epoch, seq, step, NULL AS output, error, deadline_at,
    created_at, started_at, finished_at, written, writers
FROM runs FORCE INDEX (`runs_event`, `runs_status`, `PRIMARY`)
WHERE id < ?
  AND status = ?
ORDER BY id DESC
LIMIT ?

-- runs
SELECT id, workflow, event_id, definition, status, epoch, seq, step, NULL AS output, error, deadline_at,
    created_at, started_at, finished_at, written, writers
FROM runs FORCE INDEX (`runs_event`, `runs_status`, `PRIMARY`)
WHERE id < ?
  AND workflow = ?
ORDER BY id DESC
LIMIT ?

-- runs
SELECT id, workflow, event_id, definition, status, epoch, seq, step, NULL AS output, error, deadline_at,
    created_at, started_at, finished_at, written, writers
FROM runs FORCE INDEX (`runs_event`, `runs_status`, `PRIMARY`)
WHERE id < ?
  AND event_id = ?
ORDER BY id DESC
LIMIT ?

-- runs
SELECT id, workflow, event_id, definition, status, epoch, seq, step, NULL AS output, error, deadline_at,
    created_at, started_at, finished_at, written, writers
FROM runs FORCE INDEX (`runs_event`, `runs_status`, `PRIMARY`)
WHERE id < ?
  AND status = ?
  AND workflow = ?
  AND event_id = ?
ORDER BY id DESC
LIMIT ?

-- audits
SELECT id, actor, role, address, via, action, target, detail
FROM audit FORCE INDEX (`PRIMARY`)
WHERE id < ?
ORDER BY id DESC
LIMIT ?

-- audits
SELECT id, actor, role, address, via, action, target, detail
FROM audit FORCE INDEX (`PRIMARY`)
WHERE id < ?
  AND id >= ?
  AND actor = ?
  AND action = ?
  AND target = ?
ORDER BY id DESC
LIMIT ?
