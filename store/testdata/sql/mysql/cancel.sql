-- cancel
UPDATE
  (SELECT id AS handle
  FROM jobs FORCE INDEX (`jobs_event`)
  WHERE event_id = ?
    AND id >= ?
    AND id < ?
    AND (status IN ('available', 'scheduled', 'waiting', 'retryable') OR status = 'running' AND due_at <= ?)
    AND (lane < 'workflow/' OR lane >= 'workflow0')
  FOR UPDATE SKIP LOCKED) AS picked
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`) ON jobs.id = picked.handle
SET scheduled_at = COALESCE(scheduled_at, due_at), status = 'canceled', due_at = NULL, lease = NULL,
    finished_at = ?

-- canceled
SELECT COUNT(CASE WHEN status = 'canceled' AND finished_at = ? THEN 1 END) AS canceled,
    COUNT(CASE WHEN status = 'running' AND due_at > ? THEN 1 END) AS running,
    COUNT(CASE WHEN status IN ('completed', 'dead', 'canceled') THEN 1 END) AS finished,
    COUNT(CASE WHEN status IN ('available', 'scheduled', 'waiting',
    'retryable') OR status = 'running' AND due_at <= ? THEN 1 END) AS waiting
FROM jobs FORCE INDEX (`jobs_event`)
WHERE event_id = ?
  AND id >= ?
  AND id < ?
  AND (lane < 'workflow/' OR lane >= 'workflow0')

-- lines_of_event
SELECT id, line
FROM jobs FORCE INDEX (`jobs_event`)
WHERE event_id = ?
  AND id >= ?
  AND id < ?
  AND line IS NOT NULL

-- canceled_places
DELETE `line_places`
FROM
  (SELECT ? AS job_, ? AS same_/*row*/
  UNION ALL SELECT ?, ?/*row*/) AS r
STRAIGHT_JOIN line_places FORCE INDEX (`line_places_job`)
WHERE line_places.job_id = r.job_
  AND
  (SELECT jobs.status
  FROM jobs
  WHERE jobs.id = r.same_) = 'canceled'

-- canceled_event
SELECT id
FROM events
WHERE id = ?
