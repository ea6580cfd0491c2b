-- retry
UPDATE jobs
SET status = 'available', due_at = ?, finished_at = NULL,
    max_attempts = CASE WHEN max_attempts < 2147483647 THEN attempt + max_attempts - earlier ELSE max_attempts
    END, earlier = attempt
WHERE status IN ('dead', 'canceled')
  AND id = ?
  AND (lane < 'workflow/' OR lane >= 'workflow0')

-- retry_early
UPDATE jobs
SET due_at = ?
WHERE status IN ('available', 'scheduled', 'retryable')
  AND due_at > ?
  AND id = ?
  AND (lane < 'workflow/' OR lane >= 'workflow0')

-- retry
UPDATE
  (SELECT id AS handle
  FROM jobs FORCE INDEX (`jobs_lists`)
  WHERE list_name = 'dead'
    AND lapses_at IS NULL
    AND lane = ?
    AND line IS NULL
  LIMIT ?
  FOR UPDATE SKIP LOCKED) AS picked
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`) ON jobs.id = picked.handle
SET status = 'available', due_at = ?, finished_at = NULL,
    max_attempts = CASE WHEN max_attempts < 2147483647 THEN attempt + max_attempts - earlier ELSE max_attempts
    END, earlier = attempt

-- retry
UPDATE
  (SELECT id AS handle
  FROM jobs FORCE INDEX (`jobs_lists`)
  WHERE list_name = 'dead'
    AND lapses_at IS NULL
    AND (lane < 'workflow/' OR lane >= 'workflow0')
    AND line IS NULL
  LIMIT ?
  FOR UPDATE SKIP LOCKED) AS picked
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`) ON jobs.id = picked.handle
SET status = 'available', due_at = ?, finished_at = NULL,
    max_attempts = CASE WHEN max_attempts < 2147483647 THEN attempt + max_attempts - earlier ELSE max_attempts
    END, earlier = attempt

-- count_dead
SELECT COUNT(*)
FROM jobs FORCE INDEX (`jobs_lists`)
WHERE list_name = 'dead'
  AND lapses_at IS NULL
  AND (lane < 'workflow/' OR lane >= 'workflow0')

-- count_dead
SELECT COUNT(*)
FROM jobs FORCE INDEX (`jobs_lists`)
WHERE list_name = 'dead'
  AND lapses_at IS NULL
  AND lane = ?

-- forget_strays
UPDATE gates FORCE INDEX (`PRIMARY`)
SET stray_since = NULL
WHERE lane > ''
  AND stray_since IS NOT NULL

-- ping
SELECT 1
