-- lock_lines
INSERT INTO line_locks (stripe)
SELECT DISTINCT r.stripe_
FROM
  (SELECT unnest(?::text[]) AS stripe_) AS r
WHERE 1 = 1
ORDER BY 1
ON CONFLICT (stripe) DO
UPDATE
SET stripe = line_locks.stripe
WHERE FALSE

-- insert_lined_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at, line, scheduled_at)
SELECT r.id_, events.id, r.lane_, r.job_key_, 'entering', 0, r.max_attempts_, NULL, NULL, '', r.created_at_,
    NULL, r.line_, r.wanted_at_
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS lane_, unnest(?::text[]) AS job_key_,
      unnest(?::bigint[]) AS max_attempts_, unnest(?::bigint[]) AS created_at_, unnest(?::text[]) AS line_,
      unnest(?::bigint[]) AS wanted_at_, unnest(?::text[]) AS event_id_) AS r, events
WHERE events.id = r.event_id_
ORDER BY 3, 4, 1
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
  (SELECT unnest(?::text[]) AS id_) AS r
WHERE jobs.id = r.id_
  AND jobs.status = 'entering'

-- take_only_slot
INSERT INTO line_slots (line, slot, job_id, reached, stopped_at)
SELECT jobs.line, 1, jobs.id, 0, 0
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS status_, unnest(?::text[]) AS lease_) AS r, jobs
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
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS status_, unnest(?::text[]) AS lease_,
      unnest(?::bigint[]) AS highest_) AS r, jobs
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
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS status_, unnest(?::text[]) AS lease_) AS r, jobs
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
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS status_, unnest(?::text[]) AS lease_) AS r, jobs
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
SET job_id = COALESCE((SELECT p.job_id
  FROM line_places AS p
  WHERE p.line = line_slots.line
    AND p.place > CASE WHEN r.highest_ = 1 THEN line_slots.reached ELSE -4611686018427387904 END
  ORDER BY p.place
  LIMIT 1),
  (SELECT p.job_id
  FROM line_places AS p
  WHERE p.line = line_slots.line
  ORDER BY p.place
  LIMIT 1)), reached = COALESCE((SELECT p.place
  FROM line_places AS p
  WHERE p.line = line_slots.line
    AND p.place > CASE WHEN r.highest_ = 1 THEN line_slots.reached ELSE -4611686018427387904 END
  ORDER BY p.place
  LIMIT 1),
  (SELECT p.place
  FROM line_places AS p
  WHERE p.line = line_slots.line
  ORDER BY p.place
  LIMIT 1)), stopped_at = 0
FROM
  (SELECT unnest(?::bigint[]) AS highest_, unnest(?::text[]) AS line_, unnest(?::text[]) AS job_,
      unnest(?::text[]) AS ended_, unnest(?::text[]) AS status_) AS r
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
USING
  (SELECT unnest(?::text[]) AS line_) AS r, line_slots
WHERE line_slots.line = r.line_
  AND line_places.line = line_slots.line
  AND line_places.place = line_slots.reached
  AND line_places.job_id = line_slots.job_id

-- admit_holders
UPDATE jobs
SET due_at = CASE WHEN jobs.scheduled_at > r.now_ THEN jobs.scheduled_at ELSE r.at_ END,
    status = CASE WHEN jobs.scheduled_at > r.same_ THEN 'scheduled' ELSE 'available' END
FROM
  (SELECT unnest(?::bigint[]) AS now_, unnest(?::bigint[]) AS at_, unnest(?::bigint[]) AS same_,
      unnest(?::text[]) AS line_) AS r, line_slots
WHERE line_slots.line = r.line_
  AND jobs.id = line_slots.job_id
  AND jobs.status = 'waiting'

-- vacate_slots
DELETE
FROM line_slots
USING
  (SELECT unnest(?::text[]) AS line_, unnest(?::text[]) AS job_, unnest(?::text[]) AS ended_,
      unnest(?::text[]) AS status_) AS r
WHERE line_slots.line = r.line_
  AND line_slots.job_id = r.job_
  AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.id = r.ended_
    AND jobs.status <> r.status_)

-- stop_lines
UPDATE line_slots
SET stopped_at = r.at_
FROM
  (SELECT unnest(?::bigint[]) AS at_, unnest(?::text[]) AS line_, unnest(?::text[]) AS job_,
      unnest(?::text[]) AS ended_) AS r
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
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS lease_) AS r
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
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS lease_) AS r, jobs
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_
