-- cancel
WITH picked AS
  (SELECT id AS handle
  FROM jobs
  WHERE event_id = ?
    AND id >= ?
    AND id < ?
    AND (status IN ('available', 'scheduled', 'waiting', 'retryable') OR status = 'running' AND due_at <= ?)
    AND (lane < 'workflow/' OR lane >= 'workflow0'))
UPDATE jobs
SET scheduled_at = COALESCE(scheduled_at, due_at), status = 'canceled', due_at = NULL, lease = NULL,
    finished_at = ?
WHERE id IN
  (SELECT handle
  FROM picked)

-- cancel_later
WITH picked AS
  (SELECT id AS handle
  FROM jobs
  WHERE event_id = ?
    AND id >= ?
    AND id < ?
    AND substr(id, 1, 21) <> substr(event_id, 1, 21)
    AND (status IN ('available', 'scheduled', 'waiting', 'retryable') OR status = 'running' AND due_at <= ?)
    AND (lane < 'workflow/' OR lane >= 'workflow0'))
UPDATE jobs
SET scheduled_at = COALESCE(scheduled_at, due_at), status = 'canceled', due_at = NULL, lease = NULL,
    finished_at = ?
WHERE id IN
  (SELECT handle
  FROM picked)

-- canceled
SELECT COUNT(CASE WHEN status = 'canceled' AND finished_at = ? THEN 1 END) AS canceled,
    COUNT(CASE WHEN status = 'running' AND due_at > ? THEN 1 END) AS running,
    COUNT(CASE WHEN status IN ('completed', 'dead', 'canceled') THEN 1 END) AS finished,
    COUNT(CASE WHEN status IN ('available', 'scheduled', 'waiting',
    'retryable') OR status = 'running' AND due_at <= ? THEN 1 END) AS waiting
FROM jobs
WHERE event_id = ?
  AND id >= ?
  AND id < ?
  AND (lane < 'workflow/' OR lane >= 'workflow0')

-- canceled_later
SELECT COUNT(CASE WHEN status = 'canceled' AND finished_at = ? THEN 1 END) AS canceled,
    COUNT(CASE WHEN status = 'running' AND due_at > ? THEN 1 END) AS running,
    COUNT(CASE WHEN status IN ('completed', 'dead', 'canceled') THEN 1 END) AS finished,
    COUNT(CASE WHEN status IN ('available', 'scheduled', 'waiting',
    'retryable') OR status = 'running' AND due_at <= ? THEN 1 END) AS waiting
FROM jobs
WHERE event_id = ?
  AND id >= ?
  AND id < ?
  AND substr(id, 1, 21) <> substr(event_id, 1, 21)
  AND (lane < 'workflow/' OR lane >= 'workflow0')

-- lines_of_event
SELECT id, line
FROM jobs
WHERE event_id = ?
  AND id >= ?
  AND id < ?
  AND line IS NOT NULL

-- lines_of_later
SELECT id, line
FROM jobs
WHERE event_id = ?
  AND id >= ?
  AND id < ?
  AND substr(id, 1, 21) <> substr(event_id, 1, 21)
  AND line IS NOT NULL

-- canceled_places
DELETE
FROM line_places
WHERE line_places.job_id = ?
  AND
  (SELECT jobs.status
  FROM jobs
  WHERE jobs.id = ?) = 'canceled'

-- canceled_event
SELECT id
FROM events
WHERE id = ?
