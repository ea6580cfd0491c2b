-- insert_event
INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at)
SELECT r.id_, r.source_, r.type_, r.payload_, r.content_type_, r.headers_, r.delivery_id_, r.created_at_
FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[],
    ?::bigint[]) AS r(id_, source_, type_, payload_, content_type_, headers_, delivery_id_, created_at_)
WHERE 1 = 1
ORDER BY 2, 7, 1
ON CONFLICT DO NOTHING

-- insert_event_encoded
INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at, encoding)
SELECT r.id_, r.source_, r.type_, r.payload_, r.content_type_, r.headers_, r.delivery_id_, r.created_at_,
    r.encoding_
FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[],
    ?::text[]) AS r(id_, source_, type_, payload_, content_type_, headers_, delivery_id_, created_at_,
    encoding_)
WHERE 1 = 1
ORDER BY 2, 7, 1
ON CONFLICT DO NOTHING

-- drop_bare_event
DELETE
FROM events
USING unnest(?::text[]) AS r(id_)
WHERE events.id = r.id_
  AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.event_id = events.id)
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.event_id = events.id)

-- insert_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_, r.event_id_, r.lane_, r.job_key_, 'available', 0, r.max_attempts_, r.due_at_, NULL, '',
    r.created_at_, NULL
FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::bigint[]) AS r(id_,
    event_id_, lane_, job_key_, max_attempts_, due_at_, created_at_)
WHERE 1 = 1
ORDER BY 3, 4, 1
ON CONFLICT DO NOTHING

-- insert_jobs_if
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_, events.id, r.lane_, r.job_key_, 'available', 0, r.max_attempts_, r.due_at_, NULL, '',
    r.created_at_, NULL
FROM unnest(?::text[], ?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::bigint[], ?::text[]) AS r(id_,
    lane_, job_key_, max_attempts_, due_at_, created_at_, event_id_), events
WHERE events.id = r.event_id_
ORDER BY 3, 4, 1
ON CONFLICT DO NOTHING

-- insert_scheduled_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_, r.event_id_, r.lane_, r.job_key_, 'scheduled', 0, r.max_attempts_, r.due_at_, NULL, '',
    r.created_at_, NULL
FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::bigint[]) AS r(id_,
    event_id_, lane_, job_key_, max_attempts_, due_at_, created_at_)
WHERE 1 = 1
ORDER BY 3, 4, 1
ON CONFLICT DO NOTHING

-- insert_scheduled_jobs_if
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_, events.id, r.lane_, r.job_key_, 'scheduled', 0, r.max_attempts_, r.due_at_, NULL, '',
    r.created_at_, NULL
FROM unnest(?::text[], ?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::bigint[], ?::text[]) AS r(id_,
    lane_, job_key_, max_attempts_, due_at_, created_at_, event_id_), events
WHERE events.id = r.event_id_
ORDER BY 3, 4, 1
ON CONFLICT DO NOTHING

-- stored
SELECT events.id AS arrival, events.id AS event, ((SELECT COUNT(*)
  FROM jobs
  WHERE jobs.event_id = events.id
    AND NOT EXISTS
    (SELECT 1
    FROM steps
    WHERE steps.id = jobs.id)) +
  (SELECT COUNT(*)
  FROM runs
  WHERE runs.event_id = events.id)) AS jobs
FROM unnest(?::text[]) AS r(id_), events
WHERE events.id = r.id_

-- delivered
SELECT r.id_ AS arrival, events.id AS event, 0 AS jobs
FROM unnest(?::text[], ?::text[], ?::text[]) AS r(id_, source_, delivery_id_), events
WHERE events.source = r.source_
  AND events.delivery_id = r.delivery_id_

-- delivered_as
SELECT r.id_ AS arrival, events.id AS event, ((SELECT COUNT(*)
  FROM jobs
  WHERE jobs.event_id = events.id
    AND NOT EXISTS
    (SELECT 1
    FROM steps
    WHERE steps.id = jobs.id)) +
  (SELECT COUNT(*)
  FROM runs
  WHERE runs.event_id = events.id)) AS jobs
FROM unnest(?::text[], ?::text[], ?::text[]) AS r(id_, source_, delivery_id_), events
WHERE events.source = r.source_
  AND events.delivery_id = r.delivery_id_

-- keyed_as
SELECT r.id_ AS arrival, jobs.event_id AS event, 0 AS jobs
FROM unnest(?::text[], ?::text[], ?::text[]) AS r(id_, lane_, job_key_), jobs
WHERE jobs.lane = r.lane_
  AND jobs.job_key = r.job_key_
