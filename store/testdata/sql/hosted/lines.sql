-- insert_lined_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at, line, scheduled_at)
SELECT r.id_, events.id, r.lane_, r.job_key_, 'entering', 0, r.max_attempts_, NULL, NULL, '', r.created_at_,
    NULL, r.line_, r.wanted_at_
FROM
  (SELECT column1 AS id_, column2 AS lane_, column3 AS job_key_, column4 AS max_attempts_,
      column5 AS created_at_, column6 AS line_, column7 AS wanted_at_, column8 AS event_id_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
CROSS JOIN events
WHERE events.id = r.event_id_
ON CONFLICT DO NOTHING

-- entered
UPDATE jobs
SET due_at = CASE WHEN EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id) THEN scheduled_at END, status = CASE WHEN NOT EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id) THEN 'waiting' WHEN scheduled_at > created_at THEN 'scheduled' ELSE
        'available' END, scheduled_at = CASE WHEN EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id) THEN NULL ELSE scheduled_at END
FROM
  (SELECT column1 AS id_
  FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
WHERE jobs.id = r.id_
  AND jobs.status = 'entering'

-- take_only_slot
INSERT INTO line_slots (line, slot, job_id, reached, stopped_at)
SELECT jobs.line, 1, jobs.id, 0, 0
FROM
  (SELECT column1 AS id_, column2 AS status_, column3 AS lease_
  FROM (VALUES (?, ?, ?)/*row*/, (?, ?, ?)/*row*/)) AS r
CROSS JOIN jobs
WHERE jobs.id = r.id_
  AND jobs.status = r.status_
  AND COALESCE(jobs.lease, '') = r.lease_
  AND
  (SELECT p.place
  FROM line_places AS p
  WHERE p.line = jobs.line
  ORDER BY p.place DESC
  LIMIT 1) IS NULL
ON CONFLICT DO NOTHING

-- take_free_slot
INSERT INTO line_slots (line, slot, job_id, reached, stopped_at)
SELECT jobs.line, CASE WHEN NOT EXISTS
  (SELECT 1
  FROM line_slots AS f
  WHERE f.line = jobs.line
    AND f.slot = 1) THEN 1 ELSE
  (SELECT MIN(s.slot) + 1
  FROM line_slots AS s
  WHERE s.line = jobs.line
    AND NOT EXISTS
    (SELECT 1
    FROM line_slots AS f
    WHERE f.line = s.line
      AND f.slot = s.slot + 1)) END, jobs.id, 0, 0
FROM
  (SELECT column1 AS id_, column2 AS status_, column3 AS lease_, column4 AS highest_
  FROM (VALUES (?, ?, ?, ?)/*row*/, (?, ?, ?, ?)/*row*/)) AS r
CROSS JOIN jobs
WHERE jobs.id = r.id_
  AND jobs.status = r.status_
  AND COALESCE(jobs.lease, '') = r.lease_
  AND NOT EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id)
  AND
  (SELECT p.place
  FROM line_places AS p
  WHERE p.line = jobs.line
  ORDER BY p.place DESC
  LIMIT 1) IS NULL
  AND CASE WHEN NOT EXISTS
  (SELECT 1
  FROM line_slots AS f
  WHERE f.line = jobs.line
    AND f.slot = 1) THEN 1 ELSE
  (SELECT MIN(s.slot) + 1
  FROM line_slots AS s
  WHERE s.line = jobs.line
    AND NOT EXISTS
    (SELECT 1
    FROM line_slots AS f
    WHERE f.line = s.line
      AND f.slot = s.slot + 1)) END <= r.highest_ + 0

-- join_line
INSERT INTO line_places (line, place, job_id)
SELECT jobs.line, COALESCE((SELECT p.place
  FROM line_places AS p
  WHERE p.line = jobs.line
  ORDER BY p.place DESC
  LIMIT 1),
  (SELECT MAX(s.reached)
  FROM line_slots AS s
  WHERE s.line = jobs.line), 0) + ROW_NUMBER() OVER (PARTITION BY jobs.line ORDER BY jobs.id), jobs.id
FROM
  (SELECT column1 AS id_, column2 AS status_, column3 AS lease_
  FROM (VALUES (?, ?, ?)/*row*/, (?, ?, ?)/*row*/)) AS r
CROSS JOIN jobs
WHERE jobs.id = r.id_
  AND jobs.status = r.status_
  AND COALESCE(jobs.lease, '') = r.lease_
  AND NOT EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id)

-- rejoin_line
INSERT INTO line_places (line, place, job_id)
SELECT jobs.line, COALESCE((SELECT p.place
  FROM line_places AS p
  WHERE p.line = jobs.line
  ORDER BY p.place
  LIMIT 1),
  (SELECT MAX(s.reached) + 1000000
  FROM line_slots AS s
  WHERE s.line = jobs.line), 0) - ROW_NUMBER() OVER (PARTITION BY jobs.line ORDER BY jobs.id), jobs.id
FROM
  (SELECT column1 AS id_, column2 AS status_, column3 AS lease_
  FROM (VALUES (?, ?, ?)/*row*/, (?, ?, ?)/*row*/)) AS r
CROSS JOIN jobs
WHERE jobs.id = r.id_
  AND jobs.status = r.status_
  AND COALESCE(jobs.lease, '') = r.lease_
  AND NOT EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id)

-- pass_slots
UPDATE line_slots
SET (job_id, reached, stopped_at) =
  (SELECT p.job_id, p.place, 0
  FROM line_places AS p
  WHERE p.line = line_slots.line
  ORDER BY p.place
  LIMIT 1)
FROM
  (SELECT column1 AS highest_, column2 AS line_, column3 AS job_, column4 AS ended_, column5 AS status_
  FROM (VALUES (?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?)/*row*/)) AS r
WHERE line_slots.slot <= r.highest_
  AND line_slots.line = r.line_
  AND line_slots.job_id = r.job_
  AND
  (SELECT p.place
  FROM line_places AS p
  WHERE p.line = line_slots.line
  ORDER BY p.place DESC
  LIMIT 1) IS NOT NULL
  AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.id = r.ended_
    AND jobs.status <> r.status_)

-- leave_places
DELETE
FROM line_places
WHERE (line, place) IN
  (SELECT line_places.line, line_places.place
  FROM
    (SELECT column1 AS line_
    FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
  CROSS JOIN line_slots
  CROSS JOIN line_places
  WHERE line_slots.line = r.line_
    AND line_places.line = line_slots.line
    AND line_places.place = line_slots.reached
    AND line_places.job_id = line_slots.job_id)

-- admit_holders
UPDATE jobs
SET due_at = CASE WHEN jobs.scheduled_at > r.now_ THEN jobs.scheduled_at ELSE r.at_ END,
    status = CASE WHEN jobs.scheduled_at > r.same_ THEN 'scheduled' ELSE 'available' END
FROM
  (SELECT column1 AS now_, column2 AS at_, column3 AS same_, column4 AS line_
  FROM (VALUES (?, ?, ?, ?)/*row*/, (?, ?, ?, ?)/*row*/)) AS r, line_slots
WHERE line_slots.line = r.line_
  AND jobs.id = line_slots.job_id
  AND jobs.status = 'waiting'

-- vacate_slots
DELETE
FROM line_slots
WHERE (line, slot) IN
  (SELECT line_slots.line, line_slots.slot
  FROM
    (SELECT column1 AS line_, column2 AS job_, column3 AS ended_, column4 AS status_
    FROM (VALUES (?, ?, ?, ?)/*row*/, (?, ?, ?, ?)/*row*/)) AS r
  CROSS JOIN line_slots
  WHERE line_slots.line = r.line_
    AND line_slots.job_id = r.job_
    AND NOT EXISTS
    (SELECT 1
    FROM jobs
    WHERE jobs.id = r.ended_
      AND jobs.status <> r.status_))

-- stop_lines
UPDATE line_slots
SET stopped_at = r.at_
FROM
  (SELECT column1 AS at_, column2 AS line_, column3 AS job_, column4 AS ended_
  FROM (VALUES (?, ?, ?, ?)/*row*/, (?, ?, ?, ?)/*row*/)) AS r
WHERE line_slots.line = r.line_
  AND line_slots.job_id = r.job_
  AND
  (SELECT jobs.status
  FROM jobs
  WHERE jobs.id = r.ended_) = 'dead'

-- reentered
UPDATE jobs
SET status = 'waiting', attempt = attempt - 1, due_at = NULL, lease = NULL, scheduled_at = NULL
FROM
  (SELECT column1 AS id_, column2 AS lease_
  FROM (VALUES (?, ?)/*row*/, (?, ?)/*row*/)) AS r
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_
  AND NOT EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id)

-- still_held
SELECT jobs.id AS job
FROM
  (SELECT column1 AS id_, column2 AS lease_
  FROM (VALUES (?, ?)/*row*/, (?, ?)/*row*/)) AS r
CROSS JOIN jobs
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_
