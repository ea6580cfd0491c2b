-- insert_lined_jobs
INSERT OR FAIL INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease,
    last_error, created_at, finished_at, line, scheduled_at)
SELECT ?, events.id, ?, ?, 'entering', 0, ?, NULL, NULL, '', ?, NULL, ?, ?
FROM events
WHERE events.id = ?
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
WHERE jobs.id = ?
  AND jobs.status = 'entering'

-- take_only_slot
INSERT OR FAIL INTO line_slots (line, slot, job_id, reached, stopped_at)
SELECT jobs.line, 1, jobs.id, 0, 0
FROM jobs
WHERE jobs.id = ?
  AND jobs.status = ?
  AND COALESCE(jobs.lease, '') = ?
  AND
  (SELECT p.place
  FROM line_places AS p
  WHERE p.line = jobs.line
  ORDER BY p.place DESC
  LIMIT 1) IS NULL
ON CONFLICT DO NOTHING

-- take_free_slot
INSERT OR FAIL INTO line_slots (line, slot, job_id, reached, stopped_at)
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
FROM jobs
WHERE jobs.id = ?
  AND jobs.status = ?
  AND COALESCE(jobs.lease, '') = ?
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
      AND f.slot = s.slot + 1)) END <= ? + 0

-- join_line
INSERT OR FAIL INTO line_places (line, place, job_id)
SELECT jobs.line, COALESCE((SELECT p.place
  FROM line_places AS p
  WHERE p.line = jobs.line
  ORDER BY p.place DESC
  LIMIT 1),
  (SELECT MAX(s.reached)
  FROM line_slots AS s
  WHERE s.line = jobs.line), 0) + ROW_NUMBER() OVER (PARTITION BY jobs.line ORDER BY jobs.id), jobs.id
FROM jobs
WHERE jobs.id = ?
  AND jobs.status = ?
  AND COALESCE(jobs.lease, '') = ?
  AND NOT EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id)

-- rejoin_line
INSERT OR FAIL INTO line_places (line, place, job_id)
SELECT jobs.line, COALESCE((SELECT p.place
  FROM line_places AS p
  WHERE p.line = jobs.line
  ORDER BY p.place
  LIMIT 1),
  (SELECT MAX(s.reached) + 1000000
  FROM line_slots AS s
  WHERE s.line = jobs.line), 0) - ROW_NUMBER() OVER (PARTITION BY jobs.line ORDER BY jobs.id), jobs.id
FROM jobs
WHERE jobs.id = ?
  AND jobs.status = ?
  AND COALESCE(jobs.lease, '') = ?
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
WHERE (line, slot) =
  (SELECT line_slots.line, line_slots.slot
  FROM line_slots
  WHERE line_slots.slot <= ?
    AND line_slots.line = ?
    AND line_slots.job_id = ?
    AND
    (SELECT p.place
    FROM line_places AS p
    WHERE p.line = line_slots.line
    ORDER BY p.place DESC
    LIMIT 1) IS NOT NULL
    AND NOT EXISTS
    (SELECT 1
    FROM jobs
    WHERE jobs.id = ?
      AND jobs.status <> ?))

-- leave_places
DELETE
FROM line_places
WHERE (line, place) =
  (SELECT line_places.line, line_places.place
  FROM line_slots
  CROSS JOIN line_places
  WHERE line_slots.line = ?
    AND line_places.line = line_slots.line
    AND line_places.place = line_slots.reached
    AND line_places.job_id = line_slots.job_id)

-- admit_holders
UPDATE jobs
SET due_at = CASE WHEN jobs.scheduled_at > ? THEN jobs.scheduled_at ELSE ? END,
    status = CASE WHEN jobs.scheduled_at > ? THEN 'scheduled' ELSE 'available' END
WHERE id =
  (SELECT jobs.id
  FROM line_slots
  CROSS JOIN jobs
  WHERE line_slots.line = ?
    AND jobs.id = line_slots.job_id
    AND jobs.status = 'waiting')

-- vacate_slots
DELETE
FROM line_slots
WHERE (line, slot) =
  (SELECT line_slots.line, line_slots.slot
  FROM line_slots
  WHERE line_slots.line = ?
    AND line_slots.job_id = ?
    AND NOT EXISTS
    (SELECT 1
    FROM jobs
    WHERE jobs.id = ?
      AND jobs.status <> ?))

-- stop_lines
UPDATE line_slots
SET stopped_at = ?
WHERE line_slots.line = ?
  AND line_slots.job_id = ?
  AND
  (SELECT jobs.status
  FROM jobs
  WHERE jobs.id = ?) = 'dead'

-- reentered
UPDATE jobs
SET status = 'waiting', attempt = attempt - 1, due_at = NULL, lease = NULL, scheduled_at = NULL
WHERE jobs.id = ?
  AND jobs.status = 'running'
  AND jobs.lease = ?
  AND NOT EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id)

-- still_held
SELECT jobs.id AS job
FROM jobs
WHERE jobs.id = ?
  AND jobs.status = 'running'
  AND jobs.lease = ?
