-- due
SELECT r.lane_ AS lane,
  (SELECT due_at
  FROM jobs FORCE INDEX (`jobs_waiting`)
  WHERE due_lane = r.same_lane_
    AND due_at >= r.floor_
  ORDER BY due_at
  LIMIT 1) AS due, gates.failures, gates.open_until, gates.closed_at, gates.next_us, gates.moved_by,
      gates.held_since, gates.held_until, gates.opened_at, gates.openings
FROM
  (SELECT ? AS lane_, ? AS same_lane_, ? AS floor_, ? AS gate_/*row*/
  UNION ALL SELECT ?, ?, ?, ?/*row*/) AS r
LEFT JOIN gates FORCE INDEX (`PRIMARY`) ON gates.lane = r.gate_

-- insert_attempts
INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at)
SELECT jobs.id, jobs.lease, r.attempt_, r.status_code_, r.error_, r.response_, r.duration_ms_, r.created_at_
FROM
  (SELECT ? AS attempt_, ? AS status_code_, ? AS error_, ? AS response_, ? AS duration_ms_, ? AS created_at_,
      ? AS id_, ? AS lease_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_
FOR UPDATE
ON DUPLICATE KEY UPDATE attempts.job_id = attempts.job_id

-- insert_attempts_recorded
INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at, exchange,
    sent_body)
SELECT jobs.id, jobs.lease, r.attempt_, r.status_code_, r.error_, r.response_, r.duration_ms_, r.created_at_,
    r.exchange_, r.sent_body_
FROM
  (SELECT ? AS attempt_, ? AS status_code_, ? AS error_, ? AS response_, ? AS duration_ms_, ? AS created_at_,
      ? AS exchange_, ? AS sent_body_, ? AS id_, ? AS lease_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_
FOR UPDATE
ON DUPLICATE KEY UPDATE attempts.job_id = attempts.job_id

-- insert_events_if
INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at)
SELECT r.event_, r.source_, r.type_, r.payload_, r.content_type_, r.headers_, r.delivery_id_, r.created_at_
FROM
  (SELECT ? AS event_, ? AS source_, ? AS type_, ? AS payload_, ? AS content_type_, ? AS headers_,
      ? AS delivery_id_, ? AS created_at_, ? AS id_, ? AS lease_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_
ON DUPLICATE KEY UPDATE events.id = events.id

-- settle
UPDATE
  (SELECT ? AS status_, ? AS attempt_, ? AS due_at_, ? AS last_error_, ? AS finished_at_, ? AS success_,
      ? AS id_, ? AS lease_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
SET status = r.status_, attempt = r.attempt_, due_at = r.due_at_, lease = NULL, last_error = r.last_error_,
    finished_at = r.finished_at_, success = NULLIF(r.success_, '')
WHERE jobs.id = r.id_
  AND jobs.status = 'running'
  AND jobs.lease = r.lease_

-- settled
SELECT attempts.job_id, attempts.lease
FROM
  (SELECT ? AS id_, ? AS lease_/*row*/
  UNION ALL SELECT ?, ?/*row*/) AS r
STRAIGHT_JOIN attempts
WHERE attempts.job_id = r.id_
  AND attempts.lease = r.lease_

-- settled_success
SELECT jobs.id AS job, r.lease_ AS lease
FROM
  (SELECT ? AS lease_, ? AS id_, ? AS success_/*row*/
  UNION ALL SELECT ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
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
UPDATE jobs FORCE INDEX (`jobs_waiting`)
SET due_at = ?
WHERE due_lane = ?
  AND due_at > ?
  AND status = 'running'
