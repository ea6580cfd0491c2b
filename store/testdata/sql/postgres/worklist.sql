-- due
SELECT r.lane_ AS lane,
  (SELECT due_at
  FROM jobs
  WHERE lane = r.same_lane_
    AND due_at >= r.floor_
  ORDER BY due_at
  LIMIT 1) AS due, gates.failures, gates.open_until, gates.closed_at, gates.next_us, gates.moved_by,
      gates.held_since, gates.held_until, gates.opened_at, gates.openings
FROM unnest(?::text[], ?::text[], ?::bigint[], ?::text[]) AS r(lane_, same_lane_, floor_, gate_)
LEFT JOIN gates ON gates.lane = r.gate_

-- insert_attempts
INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at)
SELECT jobs.id, jobs.lease, r.attempt_, r.status_code_, r.error_, r.response_, r.duration_ms_, r.created_at_
FROM unnest(?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::text[],
    ?::text[]) AS r(attempt_, status_code_, error_, response_, duration_ms_, created_at_, id_, lease_), jobs
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
FROM unnest(?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::text[], ?::text[],
    ?::text[], ?::text[]) AS r(attempt_, status_code_, error_, response_, duration_ms_, created_at_,
    exchange_, sent_body_, id_, lease_), jobs
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_
FOR UPDATE OF jobs
ON CONFLICT DO NOTHING

-- insert_events_if
INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at)
SELECT r.event_, r.source_, r.type_, r.payload_, r.content_type_, r.headers_, r.delivery_id_, r.created_at_
FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[],
    ?::text[], ?::text[]) AS r(event_, source_, type_, payload_, content_type_, headers_, delivery_id_,
    created_at_, id_, lease_), jobs
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_
ORDER BY 2, 7, 1
ON CONFLICT DO NOTHING

-- settle
UPDATE jobs
SET status = r.status_, attempt = r.attempt_, due_at = r.due_at_, lease = NULL, last_error = r.last_error_,
    finished_at = r.finished_at_
FROM unnest(?::text[], ?::bigint[], ?::bigint[], ?::text[], ?::bigint[], ?::text[], ?::text[]) AS r(status_,
    attempt_, due_at_, last_error_, finished_at_, id_, lease_)
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_

-- settled
SELECT attempts.job_id, attempts.lease
FROM unnest(?::text[], ?::text[]) AS r(id_, lease_), attempts
WHERE attempts.job_id = r.id_
  AND attempts.lease = r.lease_

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
