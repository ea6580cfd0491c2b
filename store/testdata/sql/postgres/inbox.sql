-- insert_event
INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at)
SELECT r.id_, r.source_, r.type_, r.payload_, r.content_type_, r.headers_, r.delivery_id_, r.created_at_
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS source_, unnest(?::text[]) AS type_,
      unnest(?::text[]) AS payload_, unnest(?::text[]) AS content_type_, unnest(?::text[]) AS headers_,
      unnest(?::text[]) AS delivery_id_, unnest(?::bigint[]) AS created_at_) AS r
WHERE 1 = 1
ORDER BY 2, 7, 1
ON CONFLICT DO NOTHING

-- insert_event_encoded
INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at, encoding)
SELECT r.id_, r.source_, r.type_, r.payload_, r.content_type_, r.headers_, r.delivery_id_, r.created_at_,
    r.encoding_
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS source_, unnest(?::text[]) AS type_,
      unnest(?::text[]) AS payload_, unnest(?::text[]) AS content_type_, unnest(?::text[]) AS headers_,
      unnest(?::text[]) AS delivery_id_, unnest(?::bigint[]) AS created_at_,
      unnest(?::text[]) AS encoding_) AS r
WHERE 1 = 1
ORDER BY 2, 7, 1
ON CONFLICT DO NOTHING

-- drop_bare_event
DELETE
FROM events
USING
  (SELECT unnest(?::text[]) AS id_) AS r
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
  WHERE runs.event_id = events.id)

-- insert_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_, r.event_id_, r.lane_, r.job_key_, 'available', 0, r.max_attempts_, r.due_at_, NULL, '',
    r.created_at_, NULL
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS event_id_, unnest(?::text[]) AS lane_,
      unnest(?::text[]) AS job_key_, unnest(?::bigint[]) AS max_attempts_, unnest(?::bigint[]) AS due_at_,
      unnest(?::bigint[]) AS created_at_) AS r
WHERE
  (SELECT stored.id
  FROM jobs AS stored
  WHERE stored.id = r.id_) IS NULL
ORDER BY 3, 4, 1

-- insert_jobs_if
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_, events.id, r.lane_, r.job_key_, 'available', 0, r.max_attempts_, r.due_at_, NULL, '',
    r.created_at_, NULL
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS lane_, unnest(?::text[]) AS job_key_,
      unnest(?::bigint[]) AS max_attempts_, unnest(?::bigint[]) AS due_at_,
      unnest(?::bigint[]) AS created_at_, unnest(?::text[]) AS event_id_) AS r, events
WHERE events.id = r.event_id_
ORDER BY 3, 4, 1
ON CONFLICT DO NOTHING

-- insert_scheduled_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_, r.event_id_, r.lane_, r.job_key_, 'scheduled', 0, r.max_attempts_, r.due_at_, NULL, '',
    r.created_at_, NULL
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS event_id_, unnest(?::text[]) AS lane_,
      unnest(?::text[]) AS job_key_, unnest(?::bigint[]) AS max_attempts_, unnest(?::bigint[]) AS due_at_,
      unnest(?::bigint[]) AS created_at_) AS r
WHERE
  (SELECT stored.id
  FROM jobs AS stored
  WHERE stored.id = r.id_) IS NULL
ORDER BY 3, 4, 1

-- insert_scheduled_jobs_if
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_, events.id, r.lane_, r.job_key_, 'scheduled', 0, r.max_attempts_, r.due_at_, NULL, '',
    r.created_at_, NULL
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS lane_, unnest(?::text[]) AS job_key_,
      unnest(?::bigint[]) AS max_attempts_, unnest(?::bigint[]) AS due_at_,
      unnest(?::bigint[]) AS created_at_, unnest(?::text[]) AS event_id_) AS r, events
WHERE events.id = r.event_id_
ORDER BY 3, 4, 1
ON CONFLICT DO NOTHING

-- insert_keyless_jobs_if
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_, events.id, r.lane_, r.job_key_, 'available', 0, r.max_attempts_, r.due_at_, NULL, '',
    r.created_at_, NULL
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS lane_, unnest(?::text[]) AS job_key_,
      unnest(?::bigint[]) AS max_attempts_, unnest(?::bigint[]) AS due_at_,
      unnest(?::bigint[]) AS created_at_, unnest(?::text[]) AS event_id_) AS r, events
WHERE events.id = r.event_id_
  AND
  (SELECT stored.id
  FROM jobs AS stored
  WHERE stored.id = r.id_) IS NULL
ORDER BY 3, 4, 1

-- insert_keyless_scheduled_jobs_if
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_, events.id, r.lane_, r.job_key_, 'scheduled', 0, r.max_attempts_, r.due_at_, NULL, '',
    r.created_at_, NULL
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS lane_, unnest(?::text[]) AS job_key_,
      unnest(?::bigint[]) AS max_attempts_, unnest(?::bigint[]) AS due_at_,
      unnest(?::bigint[]) AS created_at_, unnest(?::text[]) AS event_id_) AS r, events
WHERE events.id = r.event_id_
  AND
  (SELECT stored.id
  FROM jobs AS stored
  WHERE stored.id = r.id_) IS NULL
ORDER BY 3, 4, 1

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
  (SELECT unnest(?::text[]) AS id_) AS r, events
WHERE events.id = r.id_

-- delivered
SELECT r.id_ AS arrival, events.id AS event, 0 AS jobs
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS source_, unnest(?::text[]) AS delivery_id_) AS r,
      events
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
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS source_, unnest(?::text[]) AS delivery_id_) AS r,
      events
WHERE events.source = r.source_
  AND events.delivery_id = r.delivery_id_

-- keyed_as
SELECT r.id_ AS arrival, jobs.event_id AS event, 0 AS jobs
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS lane_, unnest(?::text[]) AS job_key_) AS r, jobs
WHERE jobs.lane = r.lane_
  AND jobs.job_key = r.job_key_
