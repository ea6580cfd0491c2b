-- insert_event
INSERT OR FAIL INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING

-- insert_event_encoded
INSERT OR FAIL INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at,
    encoding)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING

-- drop_bare_event
DELETE
FROM events
WHERE events.id = ?
  AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.event_id = events.id
    AND jobs.id >= substr(events.id, 1, 21)
    AND jobs.id < substr(events.id, 1, 21) || '~')
  AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.event_id = events.id
    AND substr(id, 1, 21) <> substr(event_id, 1, 21))
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.event_id = events.id)

-- insert_jobs
INSERT OR FAIL INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease,
    last_error, created_at, finished_at)
VALUES (?, ?, ?, ?, 'available', 0, ?, ?, NULL, '', ?, NULL)
ON CONFLICT DO NOTHING

-- insert_jobs_if
INSERT OR FAIL INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease,
    last_error, created_at, finished_at)
SELECT ?, events.id, ?, ?, 'available', 0, ?, ?, NULL, '', ?, NULL
FROM events
WHERE events.id = ?
ON CONFLICT DO NOTHING

-- insert_scheduled_jobs
INSERT OR FAIL INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease,
    last_error, created_at, finished_at)
VALUES (?, ?, ?, ?, 'scheduled', 0, ?, ?, NULL, '', ?, NULL)
ON CONFLICT DO NOTHING

-- insert_scheduled_jobs_if
INSERT OR FAIL INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease,
    last_error, created_at, finished_at)
SELECT ?, events.id, ?, ?, 'scheduled', 0, ?, ?, NULL, '', ?, NULL
FROM events
WHERE events.id = ?
ON CONFLICT DO NOTHING

-- insert_keyless_jobs_if
INSERT OR FAIL INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease,
    last_error, created_at, finished_at)
SELECT ?, events.id, ?, ?, 'available', 0, ?, ?, NULL, '', ?, NULL
FROM events
WHERE events.id = ?
ON CONFLICT DO NOTHING

-- insert_keyless_scheduled_jobs_if
INSERT OR FAIL INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease,
    last_error, created_at, finished_at)
SELECT ?, events.id, ?, ?, 'scheduled', 0, ?, ?, NULL, '', ?, NULL
FROM events
WHERE events.id = ?
ON CONFLICT DO NOTHING

-- stored
SELECT events.id AS arrival, events.id AS event, ((SELECT COUNT(*)
  FROM jobs
  WHERE jobs.event_id = events.id
    AND jobs.id >= substr(events.id, 1, 21)
    AND jobs.id < substr(events.id, 1, 21) || '~'
    AND NOT EXISTS
    (SELECT 1
    FROM steps
    WHERE steps.id = jobs.id)) +
  (SELECT COUNT(*)
  FROM jobs
  WHERE jobs.event_id = events.id
    AND substr(id, 1, 21) <> substr(event_id, 1, 21)
    AND NOT EXISTS
    (SELECT 1
    FROM steps
    WHERE steps.id = jobs.id)) +
  (SELECT COUNT(*)
  FROM runs
  WHERE runs.event_id = events.id)) AS jobs
FROM events
WHERE events.id = ?

-- delivered
SELECT ? AS arrival, events.id AS event, 0 AS jobs
FROM events
WHERE events.source = ?
  AND events.delivery_id = ?

-- delivered_as
SELECT ? AS arrival, events.id AS event, ((SELECT COUNT(*)
  FROM jobs
  WHERE jobs.event_id = events.id
    AND jobs.id >= substr(events.id, 1, 21)
    AND jobs.id < substr(events.id, 1, 21) || '~'
    AND NOT EXISTS
    (SELECT 1
    FROM steps
    WHERE steps.id = jobs.id)) +
  (SELECT COUNT(*)
  FROM jobs
  WHERE jobs.event_id = events.id
    AND substr(id, 1, 21) <> substr(event_id, 1, 21)
    AND NOT EXISTS
    (SELECT 1
    FROM steps
    WHERE steps.id = jobs.id)) +
  (SELECT COUNT(*)
  FROM runs
  WHERE runs.event_id = events.id)) AS jobs
FROM events
WHERE events.source = ?
  AND events.delivery_id = ?

-- keyed_as
SELECT ? AS arrival, jobs.event_id AS event, 0 AS jobs
FROM jobs
WHERE jobs.lane = ?
  AND jobs.job_key = ?
