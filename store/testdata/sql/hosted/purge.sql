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
WHERE id IN
  (SELECT jobs.id
  FROM
    (SELECT column1 AS id_, column2 AS before_
    FROM (VALUES (?, ?)/*row*/, (?, ?)/*row*/)) AS r
  CROSS JOIN jobs
  WHERE jobs.id = r.id_
    AND jobs.finished_at < r.before_
    AND NOT EXISTS
    (SELECT 1
    FROM line_slots
    WHERE line_slots.line = jobs.line
      AND line_slots.job_id = jobs.id))

-- purge_attempts
DELETE
FROM attempts
WHERE job_id IN
  (SELECT attempts.job_id
  FROM
    (SELECT column1 AS id_
    FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
  CROSS JOIN attempts
  WHERE attempts.job_id = r.id_
    AND NOT EXISTS
    (SELECT 1
    FROM jobs
    WHERE jobs.id = attempts.job_id))

-- purge_events
DELETE
FROM events
WHERE id IN
  (SELECT events.id
  FROM
    (SELECT column1 AS id_, column2 AS before_
    FROM (VALUES (?, ?)/*row*/, (?, ?)/*row*/)) AS r
  CROSS JOIN events
  WHERE events.id = r.id_
    AND events.created_at < r.before_
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
    WHERE runs.event_id = events.id))

-- purge_runs
DELETE
FROM runs
WHERE id IN
  (SELECT runs.id
  FROM
    (SELECT column1 AS id_, column2 AS before_
    FROM (VALUES (?, ?)/*row*/, (?, ?)/*row*/)) AS r
  CROSS JOIN runs
  WHERE runs.id = r.id_
    AND runs.finished_at < r.before_)

-- purge_steps
DELETE
FROM steps
WHERE id IN
  (SELECT steps.id
  FROM
    (SELECT column1 AS run_
    FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
  CROSS JOIN steps
  WHERE steps.run_id = r.run_
    AND NOT EXISTS
    (SELECT 1
    FROM runs
    WHERE runs.id = steps.run_id))

-- purge_texts
DELETE
FROM step_texts
WHERE run_id IN
  (SELECT step_texts.run_id
  FROM
    (SELECT column1 AS run_
    FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
  CROSS JOIN step_texts
  WHERE step_texts.run_id = r.run_
    AND NOT EXISTS
    (SELECT 1
    FROM runs
    WHERE runs.id = step_texts.run_id))

-- purge_history
DELETE
FROM history
WHERE run_id IN
  (SELECT history.run_id
  FROM
    (SELECT column1 AS run_
    FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
  CROSS JOIN history
  WHERE history.run_id = r.run_
    AND NOT EXISTS
    (SELECT 1
    FROM runs
    WHERE runs.id = history.run_id))

-- purge_callbacks
DELETE
FROM callbacks
WHERE token_hash IN
  (SELECT callbacks.token_hash
  FROM
    (SELECT column1 AS run_
    FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
  CROSS JOIN callbacks
  WHERE callbacks.run_id = r.run_
    AND NOT EXISTS
    (SELECT 1
    FROM runs
    WHERE runs.id = callbacks.run_id))

-- pick_attempts
SELECT job_id, lease
FROM attempts
WHERE job_id = ?
LIMIT ? + 0

-- delete_attempts
DELETE
FROM attempts
WHERE job_id IN
  (SELECT attempts.job_id
  FROM
    (SELECT column1 AS id_, column2 AS lease_
    FROM (VALUES (?, ?)/*row*/, (?, ?)/*row*/)) AS r
  CROSS JOIN attempts
  WHERE attempts.job_id = r.id_
    AND attempts.lease = r.lease_
    AND NOT EXISTS
    (SELECT 1
    FROM jobs
    WHERE jobs.id = attempts.job_id))

-- pick_steps
SELECT id
FROM steps
WHERE run_id = ?
LIMIT ? + 0

-- delete_steps
DELETE
FROM steps
WHERE id IN
  (SELECT steps.id
  FROM
    (SELECT column1 AS id_
    FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
  CROSS JOIN steps
  WHERE steps.id = r.id_
    AND NOT EXISTS
    (SELECT 1
    FROM runs
    WHERE runs.id = steps.run_id))

-- pick_texts
SELECT run_id, name
FROM step_texts
WHERE run_id = ?
LIMIT ? + 0

-- delete_texts
DELETE
FROM step_texts
WHERE run_id IN
  (SELECT step_texts.run_id
  FROM
    (SELECT column1 AS run_, column2 AS name_
    FROM (VALUES (?, ?)/*row*/, (?, ?)/*row*/)) AS r
  CROSS JOIN step_texts
  WHERE step_texts.run_id = r.run_
    AND step_texts.name = r.name_
    AND NOT EXISTS
    (SELECT 1
    FROM runs
    WHERE runs.id = step_texts.run_id))

-- pick_history
SELECT run_id, seq
FROM history
WHERE run_id = ?
LIMIT ? + 0

-- delete_history
DELETE
FROM history
WHERE run_id IN
  (SELECT history.run_id
  FROM
    (SELECT column1 AS run_, column2 AS seq_
    FROM (VALUES (?, ?)/*row*/, (?, ?)/*row*/)) AS r
  CROSS JOIN history
  WHERE history.run_id = r.run_
    AND history.seq = r.seq_
    AND NOT EXISTS
    (SELECT 1
    FROM runs
    WHERE runs.id = history.run_id))

-- pick_callbacks
SELECT token_hash
FROM callbacks
WHERE run_id = ?
LIMIT ? + 0

-- delete_callbacks
DELETE
FROM callbacks
WHERE token_hash IN
  (SELECT callbacks.token_hash
  FROM
    (SELECT column1 AS hash_
    FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
  CROSS JOIN callbacks
  WHERE callbacks.token_hash = r.hash_
    AND NOT EXISTS
    (SELECT 1
    FROM runs
    WHERE runs.id = callbacks.run_id))
