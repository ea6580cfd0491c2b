-- source_holds
SELECT number, source, held_at, COALESCE((SELECT gates.held_until
  FROM gates
  WHERE gates.lane = source_holds.lane), 0) AS held_until
FROM source_holds
ORDER BY number

-- number_source
INSERT INTO source_holds (source, number, lane, held_at)
SELECT r.source_, r.number_, r.lane_, r.held_at_
FROM
  (SELECT unnest(?::text[]) AS source_, unnest(?::bigint[]) AS number_, unnest(?::text[]) AS lane_,
      unnest(?::bigint[]) AS held_at_) AS r
WHERE 1 = 1
ON CONFLICT DO NOTHING

-- renew_number
UPDATE source_holds
SET held_at = ?
WHERE number = ?
  AND source = ?

-- forget_number
DELETE
FROM source_holds
WHERE number = ?
  AND held_at = ?
  AND NOT EXISTS
  (SELECT 1
  FROM gates
  WHERE gates.lane = source_holds.lane
    AND gates.held_until > ?)

-- due_bound
SELECT due_at
FROM jobs
WHERE lane = ?
  AND due_at >= ?
  AND due_at <= ?
ORDER BY due_at, id
LIMIT 1 OFFSET ?::bigint

-- park
WITH picked AS MATERIALIZED
  (SELECT ctid AS handle
  FROM jobs
  WHERE lane = ?
    AND due_at >= ?
    AND due_at <= ?
    AND EXISTS
    (SELECT 1
    FROM source_holds
    JOIN gates ON gates.lane = source_holds.lane
    WHERE source_holds.source =
      (SELECT events.source
      FROM events
      WHERE events.id = jobs.event_id)
      AND gates.held_until > ?)
  ORDER BY due_at, id
  LIMIT ?::bigint
  FOR UPDATE SKIP LOCKED)
UPDATE jobs
SET due_at = due_at - 8796093022208 * COALESCE((SELECT source_holds.number
  FROM source_holds
  WHERE source_holds.source =
    (SELECT events.source
    FROM events
    WHERE events.id = jobs.event_id)), 0)
WHERE ctid = ANY(ARRAY(SELECT handle
  FROM picked))

-- return_parked
WITH picked AS MATERIALIZED
  (SELECT ctid AS handle
  FROM jobs
  WHERE lane = ?
    AND due_at >= ?
    AND due_at < ?
  ORDER BY due_at, id
  LIMIT ?::bigint
  FOR UPDATE SKIP LOCKED)
UPDATE jobs
SET due_at = due_at + ?
WHERE ctid = ANY(ARRAY(SELECT handle
  FROM picked))

-- parked
SELECT r.lane_ AS lane,
  (SELECT due_at
  FROM jobs
  WHERE lane = r.same_lane_
    AND due_at >= r.from_
    AND due_at < r.below_
  ORDER BY due_at
  LIMIT 1) AS due
FROM
  (SELECT unnest(?::text[]) AS lane_, unnest(?::text[]) AS same_lane_, unnest(?::bigint[]) AS from_,
      unnest(?::bigint[]) AS below_) AS r
WHERE 1 = 1

-- begin_ramp
UPDATE gates
SET held_until = ?
WHERE lane = ?
  AND held_until < ?
  AND EXISTS
  (SELECT 1
  FROM jobs
  WHERE lane = ?
    AND due_at >= ?
    AND due_at < ?)

-- claim_sifted
WITH picked AS MATERIALIZED
  (SELECT ctid AS handle
  FROM jobs
  WHERE lane = ?
    AND due_at >= ?
    AND due_at <= ?
    AND NOT EXISTS
    (SELECT 1
    FROM jobs AS mine
    WHERE mine.lane = ?
      AND mine.due_at = ?
      AND mine.lease = ?)
    AND NOT EXISTS
    (SELECT 1
    FROM source_holds
    JOIN gates ON gates.lane = source_holds.lane
    WHERE source_holds.source =
      (SELECT events.source
      FROM events
      WHERE events.id = jobs.event_id)
      AND gates.held_until > ?)
    AND NOT EXISTS
    (SELECT 1
    FROM gates
    WHERE gates.lane = ?
      AND (gates.open_until <> 0 OR gates.closed_at > ? AND gates.closed_at <= ? OR gates.held_until > ?))
  ORDER BY due_at, id
  LIMIT ?::bigint
  FOR UPDATE SKIP LOCKED)
UPDATE jobs
SET status = 'running', attempt = attempt + 1, scheduled_at = due_at, due_at = ?, lease = ?
WHERE ctid = ANY(ARRAY(SELECT handle
  FROM picked))

-- claim_sifted_passed
WITH picked AS MATERIALIZED
  (SELECT ctid AS handle
  FROM jobs
  WHERE lane = ?
    AND due_at >= ?
    AND due_at <= ?
    AND NOT EXISTS
    (SELECT 1
    FROM jobs AS mine
    WHERE mine.lane = ?
      AND mine.due_at = ?
      AND mine.lease = ?)
    AND NOT EXISTS
    (SELECT 1
    FROM source_holds
    JOIN gates ON gates.lane = source_holds.lane
    WHERE source_holds.source =
      (SELECT events.source
      FROM events
      WHERE events.id = jobs.event_id)
      AND gates.held_until > ?)
    AND EXISTS
    (SELECT 1
    FROM gates
    WHERE gates.lane = ?
      AND gates.taker = ?
      AND gates.held_until <= ?)
  ORDER BY due_at, id
  LIMIT ?::bigint
  FOR UPDATE SKIP LOCKED)
UPDATE jobs
SET status = 'running', attempt = attempt + 1, scheduled_at = due_at, due_at = ?, lease = ?
WHERE ctid = ANY(ARRAY(SELECT handle
  FROM picked))

-- peek_sifted
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
  AND NOT EXISTS
  (SELECT 1
  FROM source_holds
  JOIN gates ON gates.lane = source_holds.lane
  WHERE source_holds.source =
    (SELECT events.source
    FROM events
    WHERE events.id = jobs.event_id)
    AND gates.held_until > ?)
ORDER BY due_at, jobs.id
LIMIT ?::bigint
