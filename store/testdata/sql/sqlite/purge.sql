-- over_jobs
SELECT id, event_id, attempt, finished_at
FROM jobs
WHERE finished_at < ?
  AND NOT EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id)
ORDER BY finished_at, id
LIMIT ? + 0

-- over_runs
SELECT id, event_id, seq, finished_at
FROM runs
WHERE finished_at < ?
ORDER BY finished_at, id
LIMIT ? + 0

-- over_events
SELECT events.id AS looked, CASE WHEN events.created_at < ? AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.event_id = events.id
    AND jobs.id >= substr(events.id, 1, 21)
    AND jobs.id < substr(events.id, 1, 21) || '~') AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.event_id = events.id
    AND substr(id, 1, 21) <> substr(event_id, 1, 21)) AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.event_id = events.id) THEN events.id END AS over_id, events.created_at
FROM
  (SELECT id, created_at
  FROM events
  WHERE id > ?
    AND id < ?
  ORDER BY id
  LIMIT ? + 0) AS events
ORDER BY events.id

-- purge_jobs
DELETE
FROM jobs
WHERE jobs.id = ?
  AND jobs.finished_at < ?
  AND NOT EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id)

-- purge_attempts
DELETE
FROM attempts
WHERE attempts.job_id = ?
  AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.id = attempts.job_id)

-- purge_events
DELETE
FROM events
WHERE events.id = ?
  AND events.created_at < ?
  AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.event_id = events.id
    AND jobs.id >= substr(events.id, 1, 21)
    AND jobs.id < substr(events.id, 1, 21) || '~')
  AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.event_id = events.id
    AND substr(id, 1, 21) <> substr(event_id, 1, 21))
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.event_id = events.id)

-- purge_runs
DELETE
FROM runs
WHERE runs.id = ?
  AND runs.finished_at < ?

-- purge_steps
DELETE
FROM steps
WHERE steps.run_id = ?
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.id = steps.run_id)

-- purge_texts
DELETE
FROM step_texts
WHERE step_texts.run_id = ?
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.id = step_texts.run_id)

-- purge_history
DELETE
FROM history
WHERE history.run_id = ?
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.id = history.run_id)

-- purge_callbacks
DELETE
FROM callbacks
WHERE callbacks.run_id = ?
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.id = callbacks.run_id)

-- pick_attempts
SELECT job_id, lease
FROM attempts
WHERE job_id = ?
LIMIT ? + 0

-- delete_attempts
DELETE
FROM attempts
WHERE attempts.job_id = ?
  AND attempts.lease = ?
  AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.id = attempts.job_id)

-- pick_steps
SELECT id
FROM steps
WHERE run_id = ?
LIMIT ? + 0

-- delete_steps
DELETE
FROM steps
WHERE steps.id = ?
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.id = steps.run_id)

-- pick_texts
SELECT run_id, name
FROM step_texts
WHERE run_id = ?
LIMIT ? + 0

-- delete_texts
DELETE
FROM step_texts
WHERE step_texts.run_id = ?
  AND step_texts.name = ?
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.id = step_texts.run_id)

-- pick_history
SELECT run_id, seq
FROM history
WHERE run_id = ?
LIMIT ? + 0

-- delete_history
DELETE
FROM history
WHERE history.run_id = ?
  AND history.seq = ?
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.id = history.run_id)

-- pick_callbacks
SELECT token_hash
FROM callbacks
WHERE run_id = ?
LIMIT ? + 0

-- delete_callbacks
DELETE
FROM callbacks
WHERE callbacks.token_hash = ?
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.id = callbacks.run_id)
