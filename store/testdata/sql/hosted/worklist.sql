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
  (SELECT column1 AS lane_, column2 AS same_lane_, column3 AS floor_, column4 AS gate_
  FROM (VALUES (?, ?, ?, ?)/*row*/, (?, ?, ?, ?)/*row*/)) AS r
LEFT JOIN gates ON gates.lane = r.gate_

-- insert_attempts
INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at)
SELECT jobs.id, jobs.lease, r.attempt_, r.status_code_, r.error_, r.response_, r.duration_ms_, r.created_at_
FROM
  (SELECT column1 AS attempt_, column2 AS status_code_, column3 AS error_, column4 AS response_,
      column5 AS duration_ms_, column6 AS created_at_, column7 AS id_, column8 AS lease_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
CROSS JOIN jobs
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_
ON CONFLICT DO NOTHING

-- insert_attempts_recorded
INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at, exchange,
    sent_body)
SELECT jobs.id, jobs.lease, r.attempt_, r.status_code_, r.error_, r.response_, r.duration_ms_, r.created_at_,
    r.exchange_, r.sent_body_
FROM
  (SELECT column1 AS attempt_, column2 AS status_code_, column3 AS error_, column4 AS response_,
      column5 AS duration_ms_, column6 AS created_at_, column7 AS exchange_, column8 AS sent_body_,
      column9 AS id_, column10 AS lease_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
CROSS JOIN jobs
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_
ON CONFLICT DO NOTHING

-- insert_events_if
INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at)
SELECT r.event_, r.source_, r.type_, r.payload_, r.content_type_, r.headers_, r.delivery_id_, r.created_at_
FROM
  (SELECT column1 AS event_, column2 AS source_, column3 AS type_, column4 AS payload_,
      column5 AS content_type_, column6 AS headers_, column7 AS delivery_id_, column8 AS created_at_,
      column9 AS id_, column10 AS lease_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
CROSS JOIN jobs
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_
ON CONFLICT DO NOTHING

-- settle
UPDATE jobs
SET status = r.status_, attempt = r.attempt_, due_at = r.due_at_, lease = NULL, last_error = r.last_error_,
    finished_at = r.finished_at_, success = NULLIF(r.success_, '')
FROM
  (SELECT column1 AS status_, column2 AS attempt_, column3 AS due_at_, column4 AS last_error_,
      column5 AS finished_at_, column6 AS success_, column7 AS id_, column8 AS lease_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_

-- settled
SELECT attempts.job_id, attempts.lease
FROM
  (SELECT column1 AS id_, column2 AS lease_
  FROM (VALUES (?, ?)/*row*/, (?, ?)/*row*/)) AS r
CROSS JOIN attempts
WHERE attempts.job_id = r.id_
  AND attempts.lease = r.lease_

-- settled_success
SELECT jobs.id AS job, r.lease_ AS lease
FROM
  (SELECT column1 AS lease_, column2 AS id_, column3 AS success_
  FROM (VALUES (?, ?, ?)/*row*/, (?, ?, ?)/*row*/)) AS r
CROSS JOIN jobs
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
