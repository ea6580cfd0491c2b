-- insert_event
INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?)/*row*/
ON CONFLICT DO NOTHING

-- insert_event_encoded
INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at, encoding)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/
ON CONFLICT DO NOTHING

-- drop_bare_event
DELETE
FROM events
WHERE id IN
  (SELECT events.id
  FROM
    (SELECT column1 AS id_
    FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
  CROSS JOIN events
  WHERE events.id = r.id_
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
    WHERE runs.event_id = events.id))

-- insert_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
VALUES (?, ?, ?, ?, 'available', 0, ?, ?, NULL, '', ?, NULL)/*row*/, (?, ?, ?, ?, 'available', 0, ?, ?, NULL,
    '', ?, NULL)/*row*/
ON CONFLICT DO NOTHING

-- insert_jobs_if
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_, events.id, r.lane_, r.job_key_, 'available', 0, r.max_attempts_, r.due_at_, NULL, '',
    r.created_at_, NULL
FROM
  (SELECT column1 AS id_, column2 AS lane_, column3 AS job_key_, column4 AS max_attempts_, column5 AS due_at_,
      column6 AS created_at_, column7 AS event_id_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
CROSS JOIN events
WHERE events.id = r.event_id_
ON CONFLICT DO NOTHING

-- insert_scheduled_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
VALUES (?, ?, ?, ?, 'scheduled', 0, ?, ?, NULL, '', ?, NULL)/*row*/, (?, ?, ?, ?, 'scheduled', 0, ?, ?, NULL,
    '', ?, NULL)/*row*/
ON CONFLICT DO NOTHING

-- insert_scheduled_jobs_if
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_, events.id, r.lane_, r.job_key_, 'scheduled', 0, r.max_attempts_, r.due_at_, NULL, '',
    r.created_at_, NULL
FROM
  (SELECT column1 AS id_, column2 AS lane_, column3 AS job_key_, column4 AS max_attempts_, column5 AS due_at_,
      column6 AS created_at_, column7 AS event_id_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
CROSS JOIN events
WHERE events.id = r.event_id_
ON CONFLICT DO NOTHING

-- insert_keyless_jobs_if
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_, events.id, r.lane_, r.job_key_, 'available', 0, r.max_attempts_, r.due_at_, NULL, '',
    r.created_at_, NULL
FROM
  (SELECT column1 AS id_, column2 AS lane_, column3 AS job_key_, column4 AS max_attempts_, column5 AS due_at_,
      column6 AS created_at_, column7 AS event_id_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
CROSS JOIN events
WHERE events.id = r.event_id_
ON CONFLICT DO NOTHING

-- insert_keyless_scheduled_jobs_if
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_, events.id, r.lane_, r.job_key_, 'scheduled', 0, r.max_attempts_, r.due_at_, NULL, '',
    r.created_at_, NULL
FROM
  (SELECT column1 AS id_, column2 AS lane_, column3 AS job_key_, column4 AS max_attempts_, column5 AS due_at_,
      column6 AS created_at_, column7 AS event_id_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
CROSS JOIN events
WHERE events.id = r.event_id_
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
FROM
  (SELECT column1 AS id_
  FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
CROSS JOIN events
WHERE events.id = r.id_

-- delivered
SELECT r.id_ AS arrival, events.id AS event, 0 AS jobs
FROM
  (SELECT column1 AS id_, column2 AS source_, column3 AS delivery_id_
  FROM (VALUES (?, ?, ?)/*row*/, (?, ?, ?)/*row*/)) AS r
CROSS JOIN events
WHERE events.source = r.source_
  AND events.delivery_id = r.delivery_id_

-- delivered_as
SELECT r.id_ AS arrival, events.id AS event, ((SELECT COUNT(*)
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
FROM
  (SELECT column1 AS id_, column2 AS source_, column3 AS delivery_id_
  FROM (VALUES (?, ?, ?)/*row*/, (?, ?, ?)/*row*/)) AS r
CROSS JOIN events
WHERE events.source = r.source_
  AND events.delivery_id = r.delivery_id_

-- keyed_as
SELECT r.id_ AS arrival, jobs.event_id AS event, 0 AS jobs
FROM
  (SELECT column1 AS id_, column2 AS lane_, column3 AS job_key_
  FROM (VALUES (?, ?, ?)/*row*/, (?, ?, ?)/*row*/)) AS r
CROSS JOIN jobs
WHERE jobs.lane = r.lane_
  AND jobs.job_key = r.job_key_
