-- line_list
SELECT line, COUNT(*) AS slots, MAX(stopped_at) AS stopped
FROM line_slots
WHERE line > ?
  AND line < ? GROUP BY line
ORDER BY line
LIMIT ?::bigint

-- first_line
SELECT line
FROM line_slots
WHERE line > ?
ORDER BY line
LIMIT 1

-- count_places
SELECT COUNT(*) AS places
FROM
  (SELECT 1 AS one
  FROM line_places
  WHERE line = ?
  LIMIT ?::bigint) AS counted

-- next_places
SELECT job_id
FROM line_places
WHERE line = ?
ORDER BY place
LIMIT ?::bigint

-- stopped_by
SELECT job_id
FROM line_slots
WHERE line = ?
  AND stopped_at > 0
ORDER BY slot
LIMIT 1

-- slot_holders
SELECT line_slots.line AS line, line_slots.job_id AS job, line_slots.stopped_at AS stopped,
  (SELECT jobs.status
  FROM jobs
  WHERE jobs.id = line_slots.job_id) AS status
FROM
  (SELECT unnest(?::text[]) AS line_) AS r, line_slots
WHERE line_slots.line = r.line_

-- dead_lined
SELECT id, line
FROM jobs
WHERE status = 'dead'
  AND lane = ?
  AND id > ?
  AND line IS NOT NULL
ORDER BY id
LIMIT ?::bigint

-- lines_held
SELECT jobs.id AS job, jobs.line AS line
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS lane_, unnest(?::text[]) AS lease_) AS r, jobs
WHERE jobs.id = r.id_
  AND jobs.lane = r.lane_
  AND jobs.status = 'running'
  AND jobs.lease = COALESCE(r.lease_, jobs.lease)
  AND jobs.line IS NOT NULL

-- fill_slots
INSERT INTO line_slots (line, slot, job_id, reached, stopped_at)
SELECT line_places.line, CASE WHEN NOT EXISTS
  (SELECT 1
  FROM line_slots AS f
  WHERE f.line = line_places.line
    AND f.slot = 1) THEN 1 ELSE
  (SELECT MIN(s.slot) + 1
  FROM line_slots AS s
  WHERE s.line = line_places.line
    AND NOT EXISTS
    (SELECT 1
    FROM line_slots AS f
    WHERE f.line = s.line
      AND f.slot = s.slot + 1)) END, line_places.job_id, line_places.place, 0
FROM
  (SELECT unnest(?::text[]) AS line_, unnest(?::text[]) AS same_, unnest(?::bigint[]) AS highest_) AS r,
      line_places
WHERE line_places.line = r.line_
  AND line_places.place =
  (SELECT p.place
  FROM line_places AS p
  WHERE p.line = r.same_
  ORDER BY p.place
  LIMIT 1)
  AND CASE WHEN NOT EXISTS
  (SELECT 1
  FROM line_slots AS f
  WHERE f.line = line_places.line
    AND f.slot = 1) THEN 1 ELSE
  (SELECT MIN(s.slot) + 1
  FROM line_slots AS s
  WHERE s.line = line_places.line
    AND NOT EXISTS
    (SELECT 1
    FROM line_slots AS f
    WHERE f.line = s.line
      AND f.slot = s.slot + 1)) END <= r.highest_ + 0

-- revive_holders
UPDATE jobs
SET status = 'available', due_at = r.now_, finished_at = NULL,
    max_attempts = CASE WHEN max_attempts < 2147483647 THEN attempt + max_attempts - earlier ELSE max_attempts
    END, earlier = attempt
FROM
  (SELECT unnest(?::bigint[]) AS now_, unnest(?::text[]) AS id_, unnest(?::text[]) AS status_) AS r
WHERE jobs.id = r.id_
  AND jobs.status = r.status_
  AND EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id)

-- start_lines
UPDATE line_slots
SET stopped_at = 0
FROM
  (SELECT unnest(?::text[]) AS line_, unnest(?::text[]) AS job_, unnest(?::text[]) AS same_) AS r
WHERE line_slots.line = r.line_
  AND line_slots.job_id = r.job_
  AND COALESCE((SELECT jobs.status
  FROM jobs
  WHERE jobs.id = r.same_), '') <> 'dead'

-- revive_others
UPDATE jobs
SET status = CASE WHEN EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id) THEN 'available' ELSE 'waiting' END, due_at = CASE WHEN EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id) THEN r.now_ END, scheduled_at = NULL, finished_at = NULL,
        max_attempts = CASE WHEN max_attempts < 2147483647 THEN attempt + max_attempts - earlier ELSE
        max_attempts END, earlier = attempt
FROM
  (SELECT unnest(?::bigint[]) AS now_, unnest(?::text[]) AS id_, unnest(?::text[]) AS status_) AS r
WHERE jobs.id = r.id_
  AND jobs.status = r.status_

-- tally_waiting
SELECT
  (SELECT COUNT(*)
  FROM
    (SELECT 1 AS one
    FROM line_places
    WHERE line_places.line > ?
      AND line_places.line < ?
    LIMIT ?::bigint) AS counted) AS waiting,
  (SELECT COUNT(*)
  FROM
    (SELECT stopped_at
    FROM line_slots
    WHERE line > ?
      AND line < ?
    LIMIT ?::bigint) AS counted
  WHERE stopped_at > 0) AS stopped

-- depth_waiting
SELECT COUNT(*)
FROM
  (SELECT 1 AS one
  FROM line_places
  LIMIT ?::bigint) AS counted

-- jobs_in_lines
SELECT job_id AS job
FROM line_places
WHERE line_places.line > ?
  AND line_places.line < ?
  AND COALESCE(job_id, '') < ?
ORDER BY job_id DESC
LIMIT ?::bigint
