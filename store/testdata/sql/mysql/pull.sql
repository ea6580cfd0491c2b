-- ack
UPDATE
  (SELECT ? AS finished_at_, ? AS id_, ? AS lane_, ? AS lease_/*row*/
  UNION ALL SELECT ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
SET status = 'completed', due_at = NULL, lease = NULL, last_error = '', finished_at = r.finished_at_
WHERE jobs.id = r.id_
  AND jobs.lane = r.lane_
  AND jobs.status = 'running'
  AND jobs.lease = COALESCE(r.lease_, jobs.lease)

-- extend
UPDATE
  (SELECT ? AS due_at_, ? AS id_, ? AS lane_, ? AS lease_/*row*/
  UNION ALL SELECT ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
SET due_at = r.due_at_
WHERE jobs.id = r.id_
  AND jobs.lane = r.lane_
  AND jobs.status = 'running'
  AND jobs.lease = COALESCE(r.lease_, jobs.lease)

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
  (SELECT ? AS id_, ? AS lane_, ? AS lease_/*row*/
  UNION ALL SELECT ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
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
FROM jobs FORCE INDEX (`jobs_lists`)
JOIN events ON events.id = jobs.event_id
WHERE list_name = 'at last try'
  AND lane = ?
  AND lapses_at >= 0
  AND lapses_at <= ?
ORDER BY lapses_at, jobs.id
LIMIT ?

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
FROM jobs FORCE INDEX (`jobs_waiting`)
JOIN events ON events.id = jobs.event_id
WHERE due_lane = ?
  AND due_at >= 0
  AND due_at <= ?
ORDER BY due_at, jobs.id
LIMIT ?

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
FROM jobs FORCE INDEX (`jobs_lists`)
JOIN events ON events.id = jobs.event_id
WHERE list_name = 'dead'
  AND lapses_at IS NULL
  AND lane = ?
  AND jobs.id < ?
ORDER BY jobs.id DESC
LIMIT ?

-- tally
SELECT COUNT(CASE WHEN status <> 'running' OR due_at <= ? THEN 1 END) AS pending,
    COUNT(CASE WHEN status = 'retryable' OR status = 'running' AND due_at <= ? THEN 1 END) AS retryable,
    COUNT(CASE WHEN status = 'running' AND due_at > ? THEN 1 END) AS processing,
    MIN(CASE WHEN due_at >= 0 THEN due_at END) AS oldest,
    COUNT(CASE WHEN status = 'scheduled' AND due_at > ? THEN 1 END) AS scheduled
FROM
  (SELECT status, due_at
  FROM jobs FORCE INDEX (`jobs_waiting`)
  WHERE due_lane IS NOT NULL
    AND due_lane = ?
  ORDER BY due_at, id
  LIMIT ?) AS counted

-- tally_dead
SELECT COUNT(*) AS dead
FROM
  (SELECT 1 AS one
  FROM jobs FORCE INDEX (`jobs_lists`)
  WHERE list_name = 'dead'
    AND lapses_at IS NULL
    AND lane = ?
  LIMIT ?) AS counted

-- tally_canceled
SELECT COUNT(*) AS canceled
FROM
  (SELECT 1 AS one
  FROM jobs FORCE INDEX (`jobs_lists`)
  WHERE list_name = 'canceled'
    AND lapses_at IS NULL
    AND lane = ?
  LIMIT ?) AS counted

-- drain_waiting
SELECT id, line, NULL AS place
FROM jobs FORCE INDEX (`jobs_waiting`)
WHERE due_lane IS NOT NULL
  AND due_lane = ?
  AND id < ?
ORDER BY due_at, id
LIMIT ?

-- drain_dead
SELECT id, line, NULL AS place
FROM jobs FORCE INDEX (`jobs_lists`)
WHERE list_name = 'dead'
  AND lapses_at IS NULL
  AND lane = ?
  AND id < ?
ORDER BY id
LIMIT ?

-- drain_jobs
DELETE `jobs`
FROM
  (SELECT ? AS id_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
WHERE jobs.id = r.id_
  AND jobs.status NOT IN ('completed', 'canceled')

-- drain_attempts
DELETE `attempts`
FROM
  (SELECT ? AS id_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN attempts FORCE INDEX (`PRIMARY`)
WHERE attempts.job_id = r.id_
  AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.id = attempts.job_id)

-- drain_places
SELECT job_id AS id, line, place
FROM line_places FORCE INDEX (`PRIMARY`)
WHERE line > ?
  AND line < ?
  AND job_id < ?
ORDER BY line, place
LIMIT ?

-- drained_places
DELETE `line_places`
FROM
  (SELECT ? AS line_, ? AS place_/*row*/
  UNION ALL SELECT ?, ?/*row*/) AS r
STRAIGHT_JOIN line_places FORCE INDEX (`PRIMARY`)
WHERE line_places.line = r.line_
  AND line_places.place = r.place_
  AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.id = line_places.job_id)
