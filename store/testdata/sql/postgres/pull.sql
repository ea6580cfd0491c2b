-- ack
UPDATE jobs
SET status = 'completed', due_at = NULL, lease = NULL, last_error = '', finished_at = r.finished_at_
FROM
  (SELECT unnest(?::bigint[]) AS finished_at_, unnest(?::text[]) AS id_, unnest(?::text[]) AS lane_,
      unnest(?::text[]) AS lease_, unnest(?::bigint[]) AS caller_) AS r
WHERE jobs.id = r.id_
  AND jobs.lane = r.lane_
  AND jobs.status = 'running'
  AND jobs.lease = COALESCE(r.lease_, jobs.lease)
RETURNING r.caller_

-- extend
UPDATE jobs
SET due_at = r.due_at_
FROM
  (SELECT unnest(?::bigint[]) AS due_at_, unnest(?::text[]) AS id_, unnest(?::text[]) AS lane_,
      unnest(?::text[]) AS lease_, unnest(?::bigint[]) AS caller_) AS r
WHERE jobs.id = r.id_
  AND jobs.lane = r.lane_
  AND jobs.status = 'running'
  AND jobs.lease = COALESCE(r.lease_, jobs.lease)
RETURNING r.caller_

-- held
SELECT jobs.id AS jobs_id, jobs.event_id AS jobs_event_id, jobs.lane AS jobs_lane,
    jobs.job_key AS jobs_job_key, jobs.status AS jobs_status, jobs.attempt AS jobs_attempt,
    jobs.max_attempts AS jobs_max_attempts, jobs.due_at AS jobs_due_at, jobs.lease AS jobs_lease,
    jobs.last_error AS jobs_last_error, jobs.created_at AS jobs_created_at,
    jobs.finished_at AS jobs_finished_at, jobs.earlier AS jobs_earlier,
    jobs.scheduled_at AS jobs_scheduled_at, jobs.line AS jobs_line, events.id AS events_id,
    events.source AS events_source, events.type AS events_type, events.payload AS events_payload,
    events.content_type AS events_content_type, events.headers AS events_headers,
    events.delivery_id AS events_delivery_id, events.created_at AS events_created_at,
    events.encoding AS events_encoding
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS lane_, unnest(?::text[]) AS lease_) AS r, jobs
JOIN events ON events.id = jobs.event_id
WHERE jobs.id = r.id_
  AND jobs.lane = r.lane_
  AND jobs.status = 'running'
  AND jobs.lease = COALESCE(r.lease_, jobs.lease)

-- lapsed
SELECT jobs.id AS jobs_id, jobs.event_id AS jobs_event_id, jobs.lane AS jobs_lane,
    jobs.job_key AS jobs_job_key, jobs.status AS jobs_status, jobs.attempt AS jobs_attempt,
    jobs.max_attempts AS jobs_max_attempts, jobs.due_at AS jobs_due_at, jobs.lease AS jobs_lease,
    jobs.last_error AS jobs_last_error, jobs.created_at AS jobs_created_at,
    jobs.finished_at AS jobs_finished_at, jobs.earlier AS jobs_earlier,
    jobs.scheduled_at AS jobs_scheduled_at, jobs.line AS jobs_line, events.id AS events_id,
    events.source AS events_source, events.type AS events_type, events.payload AS events_payload,
    events.content_type AS events_content_type, events.headers AS events_headers,
    events.delivery_id AS events_delivery_id, events.created_at AS events_created_at,
    events.encoding AS events_encoding
FROM jobs
JOIN events ON events.id = jobs.event_id
WHERE status = 'running'
  AND attempt >= max_attempts
  AND lane = ?
  AND due_at >= 0
  AND due_at <= ?
ORDER BY due_at, jobs.id
LIMIT ?::bigint

-- peek
SELECT jobs.id AS jobs_id, jobs.event_id AS jobs_event_id, jobs.lane AS jobs_lane,
    jobs.job_key AS jobs_job_key, jobs.status AS jobs_status, jobs.attempt AS jobs_attempt,
    jobs.max_attempts AS jobs_max_attempts, jobs.due_at AS jobs_due_at, jobs.lease AS jobs_lease,
    jobs.last_error AS jobs_last_error, jobs.created_at AS jobs_created_at,
    jobs.finished_at AS jobs_finished_at, jobs.earlier AS jobs_earlier,
    jobs.scheduled_at AS jobs_scheduled_at, jobs.line AS jobs_line, events.id AS events_id,
    events.source AS events_source, events.type AS events_type, events.payload AS events_payload,
    events.content_type AS events_content_type, events.headers AS events_headers,
    events.delivery_id AS events_delivery_id, events.created_at AS events_created_at,
    events.encoding AS events_encoding
FROM jobs
JOIN events ON events.id = jobs.event_id
WHERE lane = ?
  AND due_at >= 0
  AND due_at <= ?
ORDER BY due_at, jobs.id
LIMIT ?::bigint

-- dead_letters
SELECT jobs.id AS jobs_id, jobs.event_id AS jobs_event_id, jobs.lane AS jobs_lane,
    jobs.job_key AS jobs_job_key, jobs.status AS jobs_status, jobs.attempt AS jobs_attempt,
    jobs.max_attempts AS jobs_max_attempts, jobs.due_at AS jobs_due_at, jobs.lease AS jobs_lease,
    jobs.last_error AS jobs_last_error, jobs.created_at AS jobs_created_at,
    jobs.finished_at AS jobs_finished_at, jobs.earlier AS jobs_earlier,
    jobs.scheduled_at AS jobs_scheduled_at, jobs.line AS jobs_line, events.id AS events_id,
    events.source AS events_source, events.type AS events_type, events.payload AS events_payload,
    events.content_type AS events_content_type, events.headers AS events_headers,
    events.delivery_id AS events_delivery_id, events.created_at AS events_created_at,
    events.encoding AS events_encoding
FROM jobs
JOIN events ON events.id = jobs.event_id
WHERE status = 'dead'
  AND lane = ?
  AND jobs.id < ?
ORDER BY jobs.id DESC
LIMIT ?::bigint

-- tally
SELECT COUNT(CASE WHEN status <> 'running' OR due_at <= ? THEN 1 END) AS pending,
    COUNT(CASE WHEN status = 'retryable' OR status = 'running' AND due_at <= ? THEN 1 END) AS retryable,
    COUNT(CASE WHEN status = 'running' AND due_at > ? THEN 1 END) AS processing,
    MIN(CASE WHEN due_at >= 0 THEN due_at END) AS oldest,
    COUNT(CASE WHEN status = 'scheduled' AND due_at > ? THEN 1 END) AS scheduled
FROM
  (SELECT status, due_at
  FROM jobs
  WHERE due_at IS NOT NULL
    AND lane = ?
  ORDER BY due_at, id
  LIMIT ?::bigint) AS counted

-- tally_dead
SELECT COUNT(*) AS dead
FROM
  (SELECT 1 AS one
  FROM jobs
  WHERE status = 'dead'
    AND lane = ?
  LIMIT ?::bigint) AS counted

-- tally_canceled
SELECT COUNT(*) AS canceled
FROM
  (SELECT 1 AS one
  FROM jobs
  WHERE status = 'canceled'
    AND lane = ?
  LIMIT ?::bigint) AS counted

-- drain_waiting
SELECT id, line, NULL AS place
FROM jobs
WHERE due_at IS NOT NULL
  AND lane = ?
  AND id < ?
ORDER BY due_at, id
LIMIT ?::bigint

-- drain_dead
SELECT id, line, NULL AS place
FROM jobs
WHERE status = 'dead'
  AND lane = ?
  AND id < ?
ORDER BY id
LIMIT ?::bigint

-- drain_jobs
DELETE
FROM jobs
USING
  (SELECT unnest(?::text[]) AS id_) AS r
WHERE jobs.id = r.id_
  AND jobs.status NOT IN ('completed', 'canceled')

-- drain_attempts
DELETE
FROM attempts
USING
  (SELECT unnest(?::text[]) AS id_) AS r
WHERE attempts.job_id = r.id_
  AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.id = attempts.job_id)

-- drain_places
SELECT job_id AS id, line, place
FROM line_places
WHERE line > ?
  AND line < ?
  AND job_id < ?
ORDER BY line, place
LIMIT ?::bigint

-- drained_places
DELETE
FROM line_places
USING
  (SELECT unnest(?::text[]) AS line_, unnest(?::bigint[]) AS place_) AS r
WHERE line_places.line = r.line_
  AND line_places.place = r.place_
  AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.id = line_places.job_id)
