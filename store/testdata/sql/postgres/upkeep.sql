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
WITH picked AS MATERIALIZED
  (SELECT ctid AS handle
  FROM jobs
  WHERE status = 'dead'
    AND lane = ?
    AND line IS NULL
  LIMIT ?::bigint
  FOR UPDATE SKIP LOCKED)
UPDATE jobs
SET status = 'available', due_at = ?, finished_at = NULL,
    max_attempts = CASE WHEN max_attempts < 2147483647 THEN attempt + max_attempts - earlier ELSE max_attempts
    END, earlier = attempt
WHERE ctid = ANY(ARRAY(SELECT handle
  FROM picked))

-- retry
WITH picked AS MATERIALIZED
  (SELECT ctid AS handle
  FROM jobs
  WHERE status = 'dead'
    AND (lane < 'workflow/' OR lane >= 'workflow0')
    AND line IS NULL
  LIMIT ?::bigint
  FOR UPDATE SKIP LOCKED)
UPDATE jobs
SET status = 'available', due_at = ?, finished_at = NULL,
    max_attempts = CASE WHEN max_attempts < 2147483647 THEN attempt + max_attempts - earlier ELSE max_attempts
    END, earlier = attempt
WHERE ctid = ANY(ARRAY(SELECT handle
  FROM picked))

-- count_dead
SELECT COUNT(*)
FROM jobs
WHERE status = 'dead'
  AND (lane < 'workflow/' OR lane >= 'workflow0')

-- count_dead
SELECT COUNT(*)
FROM jobs
WHERE status = 'dead'
  AND lane = ?

-- forget_strays
UPDATE gates
SET stray_since = NULL
WHERE lane > ''
  AND stray_since IS NOT NULL

-- ping
SELECT 1
