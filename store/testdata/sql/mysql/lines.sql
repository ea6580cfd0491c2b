-- lock_lines
INSERT INTO line_locks (stripe)
VALUES (?)/*row*/, (?)/*row*/
ON DUPLICATE KEY UPDATE stripe = stripe

-- insert_lined_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at, line, scheduled_at)
SELECT r.id_, events.id, r.lane_, r.job_key_, 'entering', 0, r.max_attempts_, NULL, NULL, '', r.created_at_,
    NULL, r.line_, r.wanted_at_
FROM
  (SELECT ? AS id_, ? AS lane_, ? AS job_key_, ? AS max_attempts_, ? AS created_at_, ? AS line_,
      ? AS wanted_at_, ? AS event_id_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN events FORCE INDEX (`PRIMARY`)
WHERE events.id = r.event_id_
ON DUPLICATE KEY UPDATE jobs.id = jobs.id

-- entered
UPDATE
  (SELECT ? AS id_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
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
WHERE jobs.id = r.id_
  AND jobs.status = 'entering'

-- take_only_slot
INSERT INTO line_slots (line, slot, job_id, reached, stopped_at)
SELECT jobs.line, 1, jobs.id, 0, 0
FROM
  (SELECT ? AS id_, ? AS status_, ? AS lease_/*row*/
  UNION ALL SELECT ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
WHERE jobs.id = r.id_
  AND jobs.status = r.status_
  AND COALESCE(jobs.lease, '') = r.lease_
  AND
  (SELECT p.place
  FROM line_places AS p FORCE INDEX (`PRIMARY`)
  WHERE p.line = jobs.line
  ORDER BY p.place DESC
  LIMIT 1) IS NULL
ON DUPLICATE KEY UPDATE line_slots.line = line_slots.line

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
  (SELECT ? AS id_, ? AS status_, ? AS lease_, ? AS highest_/*row*/
  UNION ALL SELECT ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
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
  FROM line_places AS p FORCE INDEX (`PRIMARY`)
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
  FROM line_places AS p FORCE INDEX (`PRIMARY`)
  WHERE p.line = jobs.line
  ORDER BY p.place DESC
  LIMIT 1),
  (SELECT MAX(s.reached)
  FROM line_slots AS s
  WHERE s.line = jobs.line), 0) + ROW_NUMBER() OVER (PARTITION BY jobs.line ORDER BY jobs.id), jobs.id
FROM
  (SELECT ? AS id_, ? AS status_, ? AS lease_/*row*/
  UNION ALL SELECT ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
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
  FROM line_places AS p FORCE INDEX (`PRIMARY`)
  WHERE p.line = jobs.line
  ORDER BY p.place
  LIMIT 1),
  (SELECT MAX(s.reached) + 1000000
  FROM line_slots AS s
  WHERE s.line = jobs.line), 0) - ROW_NUMBER() OVER (PARTITION BY jobs.line ORDER BY jobs.id), jobs.id
FROM
  (SELECT ? AS id_, ? AS status_, ? AS lease_/*row*/
  UNION ALL SELECT ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
WHERE jobs.id = r.id_
  AND jobs.status = r.status_
  AND COALESCE(jobs.lease, '') = r.lease_
  AND NOT EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id)

-- leave_places
DELETE `line_places`
FROM
  (SELECT ? AS line_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN line_slots FORCE INDEX (`PRIMARY`)
STRAIGHT_JOIN line_places FORCE INDEX (`PRIMARY`)
WHERE line_slots.line = r.line_
  AND line_places.line = line_slots.line
  AND line_places.place = line_slots.reached
  AND line_places.job_id = line_slots.job_id

-- admit_holders
UPDATE
  (SELECT ? AS now_, ? AS at_, ? AS same_, ? AS line_/*row*/
  UNION ALL SELECT ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN line_slots FORCE INDEX (`PRIMARY`)
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
SET due_at = CASE WHEN jobs.scheduled_at > r.now_ THEN jobs.scheduled_at ELSE r.at_ END,
    status = CASE WHEN jobs.scheduled_at > r.same_ THEN 'scheduled' ELSE 'available' END
WHERE line_slots.line = r.line_
  AND jobs.id = line_slots.job_id
  AND jobs.status = 'waiting'

-- pass_and_admit
UPDATE
  (SELECT ? AS now_, ? AS highest_, ? AS line_, ? AS job_, ? AS status_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN line_slots FORCE INDEX (`PRIMARY`)
LEFT JOIN jobs AS ended FORCE INDEX (`PRIMARY`) ON ended.id = r.job_
STRAIGHT_JOIN line_places AS p FORCE INDEX (`PRIMARY`)
LEFT JOIN jobs FORCE INDEX (`PRIMARY`) ON jobs.id = p.job_id
  AND jobs.status = 'waiting'
SET line_slots.job_id = p.job_id, line_slots.reached = p.place, line_slots.stopped_at = 0,
    jobs.due_at = CASE WHEN jobs.scheduled_at > r.now_ THEN jobs.scheduled_at ELSE r.now_ END,
    jobs.status = CASE WHEN jobs.scheduled_at > r.now_ THEN 'scheduled' ELSE 'available' END
WHERE line_slots.slot <= r.highest_
  AND line_slots.line = r.line_
  AND line_slots.job_id = r.job_
  AND COALESCE(ended.status, r.status_) = r.status_
  AND p.line = line_slots.line
  AND p.place = COALESCE((SELECT n.place
  FROM line_places AS n FORCE INDEX (`PRIMARY`)
  WHERE n.line = line_slots.line
    AND n.place > CASE WHEN r.highest_ = 1 THEN line_slots.reached ELSE -4611686018427387904 END
  ORDER BY n.place
  LIMIT 1),
  (SELECT n.place
  FROM line_places AS n FORCE INDEX (`PRIMARY`)
  WHERE n.line = line_slots.line
  ORDER BY n.place
  LIMIT 1))

-- leave_and_vacate
DELETE p, v
FROM
  (SELECT ? AS line_, ? AS job_, ? AS status_/*row*/
  UNION ALL SELECT ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN line_slots AS s FORCE INDEX (`PRIMARY`)
LEFT JOIN line_places AS p FORCE INDEX (`PRIMARY`) ON p.line = s.line
  AND p.place = s.reached
  AND p.job_id = s.job_id
LEFT JOIN jobs AS ended FORCE INDEX (`PRIMARY`) ON ended.id = r.job_
LEFT JOIN line_slots AS v FORCE INDEX (`PRIMARY`) ON v.line = s.line
  AND v.slot = s.slot
  AND s.job_id = r.job_
  AND COALESCE(ended.status, r.status_) = r.status_
WHERE s.line = r.line_

-- stop_lines
UPDATE
  (SELECT ? AS at_, ? AS line_, ? AS job_, ? AS ended_/*row*/
  UNION ALL SELECT ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN line_slots FORCE INDEX (`PRIMARY`)
SET stopped_at = r.at_
WHERE line_slots.line = r.line_
  AND line_slots.job_id = r.job_
  AND
  (SELECT jobs.status
  FROM jobs
  WHERE jobs.id = r.ended_) = 'dead'

-- reentered
UPDATE
  (SELECT ? AS id_, ? AS lease_/*row*/
  UNION ALL SELECT ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
SET status = 'waiting', attempt = attempt - 1, due_at = NULL, lease = NULL, scheduled_at = NULL
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
  (SELECT ? AS id_, ? AS lease_/*row*/
  UNION ALL SELECT ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_
