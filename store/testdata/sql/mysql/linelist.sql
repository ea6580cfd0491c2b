-- line_list
SELECT line, COUNT(*) AS slots, MAX(stopped_at) AS stopped
FROM line_slots FORCE INDEX (`PRIMARY`)
WHERE line > ?
  AND line < ? GROUP BY line
ORDER BY line
LIMIT ?

-- first_line
SELECT line
FROM line_slots FORCE INDEX (`PRIMARY`)
WHERE line > ?
ORDER BY line
LIMIT 1

-- count_places
SELECT COUNT(*) AS places
FROM
  (SELECT 1 AS one
  FROM line_places FORCE INDEX (`PRIMARY`)
  WHERE line = ?
  LIMIT ?) AS counted

-- next_places
SELECT job_id
FROM line_places FORCE INDEX (`PRIMARY`)
WHERE line = ?
ORDER BY place
LIMIT ?

-- stopped_by
SELECT job_id
FROM line_slots FORCE INDEX (`PRIMARY`)
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
  (SELECT ? AS line_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN line_slots FORCE INDEX (`PRIMARY`)
WHERE line_slots.line = r.line_

-- dead_lined
SELECT id, line
FROM jobs FORCE INDEX (`jobs_lists`)
WHERE list_name = 'dead'
  AND lapses_at IS NULL
  AND lane = ?
  AND id > ?
  AND line IS NOT NULL
ORDER BY id
LIMIT ?

-- lines_held
SELECT jobs.id AS job, jobs.line AS line
FROM
  (SELECT ? AS id_, ? AS lane_, ? AS lease_/*row*/
  UNION ALL SELECT ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
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
  (SELECT ? AS line_, ? AS same_, ? AS highest_/*row*/
  UNION ALL SELECT ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN line_places FORCE INDEX (`PRIMARY`)
WHERE line_places.line = r.line_
  AND line_places.place =
  (SELECT p.place
  FROM line_places AS p FORCE INDEX (`PRIMARY`)
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
UPDATE
  (SELECT ? AS now_, ? AS id_, ? AS status_/*row*/
  UNION ALL SELECT ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
SET status = 'available', due_at = r.now_, finished_at = NULL,
    max_attempts = CASE WHEN max_attempts < 2147483647 THEN attempt + max_attempts - earlier ELSE max_attempts
    END, earlier = attempt
WHERE jobs.id = r.id_
  AND jobs.status = r.status_
  AND EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id)

-- start_lines
UPDATE
  (SELECT ? AS line_, ? AS job_, ? AS same_/*row*/
  UNION ALL SELECT ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN line_slots FORCE INDEX (`PRIMARY`)
SET stopped_at = 0
WHERE line_slots.line = r.line_
  AND line_slots.job_id = r.job_
  AND COALESCE((SELECT jobs.status
  FROM jobs
  WHERE jobs.id = r.same_), '') <> 'dead'

-- revive_others
UPDATE
  (SELECT ? AS now_, ? AS id_, ? AS status_/*row*/
  UNION ALL SELECT ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
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
WHERE jobs.id = r.id_
  AND jobs.status = r.status_

-- tally_waiting
SELECT
  (SELECT COUNT(*)
  FROM
    (SELECT 1 AS one
    FROM line_places FORCE INDEX (`PRIMARY`)
    WHERE line_places.line > ?
      AND line_places.line < ?
    LIMIT ?) AS counted) AS waiting,
  (SELECT COUNT(*)
  FROM
    (SELECT stopped_at
    FROM line_slots FORCE INDEX (`PRIMARY`)
    WHERE line > ?
      AND line < ?
    LIMIT ?) AS counted
  WHERE stopped_at > 0) AS stopped

-- depth_waiting
SELECT COUNT(*)
FROM
  (SELECT 1 AS one
  FROM line_places
  LIMIT ?) AS counted

-- jobs_in_lines
SELECT job_id AS job
FROM line_places FORCE INDEX (`PRIMARY`)
WHERE line_places.line > ?
  AND line_places.line < ?
  AND COALESCE(job_id, '') < ?
ORDER BY job_id DESC
LIMIT ?
