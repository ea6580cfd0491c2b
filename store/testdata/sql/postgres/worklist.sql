-- due
SELECT r.lane_ AS lane,
  (SELECT due_at
  FROM jobs
  WHERE lane = r.same_lane_
    AND due_at >= r.floor_
  ORDER BY due_at
  LIMIT 1) AS due, gates.failures, gates.open_until, gates.closed_at, gates.next_us, gates.moved_by,
      gates.held_since, gates.held_until, gates.opened_at, gates.openings
FROM
  (SELECT unnest(?::text[]) AS lane_, unnest(?::text[]) AS same_lane_, unnest(?::bigint[]) AS floor_,
      unnest(?::text[]) AS gate_) AS r
LEFT JOIN gates ON gates.lane = r.gate_

-- insert_attempts
INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at)
SELECT jobs.id, jobs.lease, r.attempt_, r.status_code_, r.error_, r.response_, r.duration_ms_, r.created_at_
FROM
  (SELECT unnest(?::bigint[]) AS attempt_, unnest(?::bigint[]) AS status_code_, unnest(?::text[]) AS error_,
      unnest(?::text[]) AS response_, unnest(?::bigint[]) AS duration_ms_, unnest(?::bigint[]) AS created_at_,
      unnest(?::text[]) AS id_, unnest(?::text[]) AS lease_) AS r, jobs
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_
FOR UPDATE OF jobs
ON CONFLICT DO NOTHING

-- insert_attempts_recorded
INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at, exchange,
    sent_body)
SELECT jobs.id, jobs.lease, r.attempt_, r.status_code_, r.error_, r.response_, r.duration_ms_, r.created_at_,
    r.exchange_, r.sent_body_
FROM
  (SELECT unnest(?::bigint[]) AS attempt_, unnest(?::bigint[]) AS status_code_, unnest(?::text[]) AS error_,
      unnest(?::text[]) AS response_, unnest(?::bigint[]) AS duration_ms_, unnest(?::bigint[]) AS created_at_,
      unnest(?::text[]) AS exchange_, unnest(?::text[]) AS sent_body_, unnest(?::text[]) AS id_,
      unnest(?::text[]) AS lease_) AS r, jobs
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_
FOR UPDATE OF jobs
ON CONFLICT DO NOTHING

-- insert_events_if
INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at)
SELECT r.event_, r.source_, r.type_, r.payload_, r.content_type_, r.headers_, r.delivery_id_, r.created_at_
FROM
  (SELECT unnest(?::text[]) AS event_, unnest(?::text[]) AS source_, unnest(?::text[]) AS type_,
      unnest(?::text[]) AS payload_, unnest(?::text[]) AS content_type_, unnest(?::text[]) AS headers_,
      unnest(?::text[]) AS delivery_id_, unnest(?::bigint[]) AS created_at_, unnest(?::text[]) AS id_,
      unnest(?::text[]) AS lease_) AS r, jobs
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_
ORDER BY 2, 7, 1
ON CONFLICT DO NOTHING

-- settle
UPDATE jobs
SET status = r.status_, attempt = r.attempt_, due_at = r.due_at_, lease = NULL, last_error = r.last_error_,
    finished_at = r.finished_at_, success = NULLIF(r.success_, '')
FROM
  (SELECT unnest(?::text[]) AS status_, unnest(?::bigint[]) AS attempt_, unnest(?::bigint[]) AS due_at_,
      unnest(?::text[]) AS last_error_, unnest(?::bigint[]) AS finished_at_, unnest(?::text[]) AS success_,
      unnest(?::text[]) AS id_, unnest(?::text[]) AS lease_) AS r
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_

-- settle_at_once
WITH updated AS
  (UPDATE jobs
  SET status = r.status_, attempt = r.attempt_, due_at = r.due_at_, lease = NULL, last_error = r.last_error_,
      finished_at = r.finished_at_
  FROM
    (SELECT unnest(?::text[]) AS status_, unnest(?::bigint[]) AS attempt_, unnest(?::bigint[]) AS due_at_,
        unnest(?::text[]) AS last_error_, unnest(?::bigint[]) AS finished_at_, unnest(?::text[]) AS id_,
        unnest(?::text[]) AS lease_, unnest(?::bigint[]) AS status_code_, unnest(?::text[]) AS response_,
        unnest(?::bigint[]) AS duration_ms_, unnest(?::bigint[]) AS started_at_) AS r
  WHERE jobs.id = r.id_
    AND jobs.status = 'running'
    AND jobs.lease = r.lease_
  RETURNING jobs.id, r.lease_, r.attempt_, r.status_code_, r.last_error_, r.response_, r.duration_ms_,
      r.started_at_)
INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at)
SELECT *
FROM updated

-- settled
SELECT attempts.job_id, attempts.lease
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS lease_) AS r, attempts
WHERE attempts.job_id = r.id_
  AND attempts.lease = r.lease_

-- settled_success
SELECT jobs.id AS job, r.lease_ AS lease
FROM
  (SELECT unnest(?::text[]) AS lease_, unnest(?::text[]) AS id_, unnest(?::text[]) AS success_) AS r, jobs
WHERE jobs.id = r.id_
  AND jobs.success = r.success_

-- release
UPDATE jobs
SET status = CASE WHEN attempt > earlier + 1 AND (last_error <> '' OR (lane < 'workflow/' OR lane >=
    'workflow0')) THEN 'retryable' ELSE 'available' END, attempt = attempt - 1, due_at = ?, lease = NULL
WHERE id = ?
  AND status = 'running'
  AND lease = ?

-- recover
UPDATE jobs
SET due_at = ?
WHERE lane = ?
  AND due_at > ?
  AND status = 'running'
