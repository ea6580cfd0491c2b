-- insert_history
INSERT INTO history (run_id, seq, mark, at, epoch, type, path, data)
SELECT runs.id, runs.seq + 1, r.mark_, r.at_, r.epoch_, r.type_, r.path_, r.data_
FROM
  (SELECT column1 AS mark_, column2 AS at_, column3 AS epoch_, column4 AS type_, column5 AS path_,
      column6 AS data_, column7 AS run_, column8 AS seq_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
CROSS JOIN runs
WHERE runs.id = r.run_
  AND runs.seq = r.seq_
ON CONFLICT DO NOTHING

-- more_history
INSERT INTO history (run_id, seq, mark, at, epoch, type, path, data)
SELECT mine.run_id, r.seq_, mine.mark, r.at_, r.epoch_, r.type_, r.path_, r.data_
FROM
  (SELECT column1 AS seq_, column2 AS at_, column3 AS epoch_, column4 AS type_, column5 AS path_,
      column6 AS data_, column7 AS run_, column8 AS first_, column9 AS mark_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
CROSS JOIN history AS mine
WHERE mine.run_id = r.run_
  AND mine.seq = r.first_
  AND mine.mark = r.mark_
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)

-- insert_step_attempts
INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at)
SELECT r.job_, r.lease_, r.attempt_, r.status_code_, r.error_, r.response_, r.duration_ms_, r.created_at_
FROM
  (SELECT column1 AS job_, column2 AS lease_, column3 AS attempt_, column4 AS status_code_, column5 AS error_,
      column6 AS response_, column7 AS duration_ms_, column8 AS created_at_, column9 AS run_,
      column10 AS first_, column11 AS mark_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
CROSS JOIN history AS mine
WHERE mine.run_id = r.run_
  AND mine.seq = r.first_
  AND mine.mark = r.mark_
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)

-- insert_step_attempts_recorded
INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at, exchange,
    sent_body)
SELECT r.job_, r.lease_, r.attempt_, r.status_code_, r.error_, r.response_, r.duration_ms_, r.created_at_,
    r.exchange_, r.sent_body_
FROM
  (SELECT column1 AS job_, column2 AS lease_, column3 AS attempt_, column4 AS status_code_, column5 AS error_,
      column6 AS response_, column7 AS duration_ms_, column8 AS created_at_, column9 AS exchange_,
      column10 AS sent_body_, column11 AS run_, column12 AS first_, column13 AS mark_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
      ?)/*row*/)) AS r
CROSS JOIN history AS mine
WHERE mine.run_id = r.run_
  AND mine.seq = r.first_
  AND mine.mark = r.mark_
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)

-- insert_rises
INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at)
SELECT r.event_, r.source_, r.type_, r.payload_, r.content_type_, r.headers_, r.delivery_id_, r.created_at_
FROM
  (SELECT column1 AS event_, column2 AS source_, column3 AS type_, column4 AS payload_,
      column5 AS content_type_, column6 AS headers_, column7 AS delivery_id_, column8 AS created_at_,
      column9 AS run_, column10 AS first_, column11 AS mark_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
CROSS JOIN history AS mine
WHERE mine.run_id = r.run_
  AND mine.seq = r.first_
  AND mine.mark = r.mark_
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)

-- insert_texts
INSERT INTO step_texts (run_id, name, body)
SELECT mine.run_id, r.name_, r.body_
FROM
  (SELECT column1 AS name_, column2 AS body_, column3 AS run_, column4 AS first_, column5 AS mark_
  FROM (VALUES (?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?)/*row*/)) AS r
CROSS JOIN history AS mine
WHERE mine.run_id = r.run_
  AND mine.seq = r.first_
  AND mine.mark = r.mark_
ON CONFLICT DO NOTHING

-- insert_steps
INSERT INTO steps (id, run_id, epoch, parent_id, branch, path, name, type, status, attempt, state, output,
    error, carry, fan, leaf_of, started_at, finished_at, state_in, output_in)
SELECT r.id_, mine.run_id, r.epoch_, r.parent_, r.branch_, r.path_, r.name_, r.type_, r.status_, r.attempt_,
    r.state_, r.output_, r.error_, r.carry_, r.fan_, r.leaf_of_, r.started_at_, r.finished_at_, r.state_in_,
    r.output_in_
FROM
  (SELECT column1 AS id_, column2 AS epoch_, column3 AS parent_, column4 AS branch_, column5 AS path_,
      column6 AS name_, column7 AS type_, column8 AS status_, column9 AS attempt_, column10 AS state_,
      column11 AS output_, column12 AS error_, column13 AS carry_, column14 AS fan_, column15 AS leaf_of_,
      column16 AS started_at_, column17 AS finished_at_, column18 AS state_in_, column19 AS output_in_,
      column20 AS run_, column21 AS first_, column22 AS mark_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?,
      ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
CROSS JOIN history AS mine
WHERE mine.run_id = r.run_
  AND mine.seq = r.first_
  AND mine.mark = r.mark_
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)

-- change_steps
UPDATE steps
SET status = r.status_, attempt = r.attempt_, output = r.output_, error = r.error_, carry = r.carry_,
    fan = r.fan_, leaf_of = CASE WHEN r.last_ = 'yes' THEN COALESCE(parent_id, run_id) END,
    finished_at = r.finished_at_, output_in = r.output_in_
FROM
  (SELECT column1 AS status_, column2 AS attempt_, column3 AS output_, column4 AS error_, column5 AS carry_,
      column6 AS fan_, column7 AS last_, column8 AS finished_at_, column9 AS output_in_, column10 AS id_,
      column11 AS run_, column12 AS first_, column13 AS mark_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
      ?)/*row*/)) AS r
WHERE steps.id = r.id_
  AND EXISTS
  (SELECT 1
  FROM history AS mine
  WHERE mine.run_id = r.run_
    AND mine.seq = r.first_
    AND mine.mark = r.mark_
    AND mine.seq =
    (SELECT runs.seq + 1
    FROM runs
    WHERE runs.id = mine.run_id))

-- hold_steps
UPDATE steps
SET held_until =
  (SELECT jobs.due_at
  FROM jobs
  WHERE jobs.id = steps.id
    AND jobs.status = 'running')
FROM
  (SELECT column1 AS id_, column2 AS run_, column3 AS first_, column4 AS mark_
  FROM (VALUES (?, ?, ?, ?)/*row*/, (?, ?, ?, ?)/*row*/)) AS r
WHERE steps.id = r.id_
  AND EXISTS
  (SELECT 1
  FROM history AS mine
  WHERE mine.run_id = r.run_
    AND mine.seq = r.first_
    AND mine.mark = r.mark_
    AND mine.seq =
    (SELECT runs.seq + 1
    FROM runs
    WHERE runs.id = mine.run_id))

-- insert_step_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at)
SELECT r.id_,
  (SELECT runs.event_id
  FROM runs
  WHERE runs.id = mine.run_id), r.lane_, NULL, r.status_, 0, r.max_attempts_, r.due_at_, NULL, '',
      r.created_at_, NULL
FROM
  (SELECT column1 AS id_, column2 AS lane_, column3 AS status_, column4 AS max_attempts_, column5 AS due_at_,
      column6 AS created_at_, column7 AS run_, column8 AS first_, column9 AS mark_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
CROSS JOIN history AS mine
WHERE mine.run_id = r.run_
  AND mine.seq = r.first_
  AND mine.mark = r.mark_
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)

-- insert_taken_step_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at, scheduled_at)
SELECT r.id_,
  (SELECT runs.event_id
  FROM runs
  WHERE runs.id = mine.run_id), r.lane_, NULL, CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN
      'running' ELSE 'available' END, CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN 1 ELSE 0 END,
      r.max_attempts_, CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN r.until_ ELSE r.due_at_ END,
      CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN r.lease_ ELSE NULL END, '', r.created_at_, NULL,
      CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN r.due_at_ ELSE NULL END
FROM
  (SELECT column1 AS id_, column2 AS lane_, column3 AS max_attempts_, column4 AS until_, column5 AS due_at_,
      column6 AS lease_, column7 AS created_at_, column8 AS free_, column9 AS source_, column10 AS now_,
      column11 AS run_, column12 AS first_, column13 AS mark_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
      ?)/*row*/)) AS r
CROSS JOIN history AS mine
LEFT JOIN gates ON gates.lane = r.lane_
  AND gates.held_until > r.free_
LEFT JOIN gates held ON held.lane = r.source_
  AND held.held_until > r.now_
WHERE mine.run_id = r.run_
  AND mine.seq = r.first_
  AND mine.mark = r.mark_
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)

-- change_jobs
UPDATE jobs
SET scheduled_at = COALESCE(scheduled_at, due_at), status = r.status_, due_at = r.due_at_, lease = NULL,
    last_error = r.error_, finished_at = r.finished_at_, success = COALESCE(r.kept_, success)
FROM
  (SELECT column1 AS status_, column2 AS due_at_, column3 AS error_, column4 AS finished_at_,
      column5 AS kept_, column6 AS id_, column7 AS run_, column8 AS first_, column9 AS mark_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
WHERE jobs.id = r.id_
  AND EXISTS
  (SELECT 1
  FROM history AS mine
  WHERE mine.run_id = r.run_
    AND mine.seq = r.first_
    AND mine.mark = r.mark_
    AND mine.seq =
    (SELECT runs.seq + 1
    FROM runs
    WHERE runs.id = mine.run_id))

-- insert_tokens
INSERT INTO callbacks (token_hash, run_id, step_id, expires_at)
SELECT r.hash_, mine.run_id, r.step_, r.expires_at_
FROM
  (SELECT column1 AS hash_, column2 AS step_, column3 AS expires_at_, column4 AS run_, column5 AS first_,
      column6 AS mark_
  FROM (VALUES (?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?)/*row*/)) AS r
CROSS JOIN history AS mine
WHERE mine.run_id = r.run_
  AND mine.seq = r.first_
  AND mine.mark = r.mark_
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)

-- disarm
DELETE
FROM callbacks
WHERE token_hash IN
  (SELECT callbacks.token_hash
  FROM
    (SELECT column1 AS of_, column2 AS step_, column3 AS run_, column4 AS first_, column5 AS mark_
    FROM (VALUES (?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?)/*row*/)) AS r
  CROSS JOIN callbacks
  WHERE callbacks.run_id = r.of_
    AND callbacks.step_id = r.step_
    AND EXISTS
    (SELECT 1
    FROM history AS mine
    WHERE mine.run_id = r.run_
      AND mine.seq = r.first_
      AND mine.mark = r.mark_
      AND mine.seq =
      (SELECT runs.seq + 1
      FROM runs
      WHERE runs.id = mine.run_id)))

-- move_runs
UPDATE runs
SET definition = r.definition_, status = r.status_, epoch = r.epoch_, seq = r.next_, step = r.step_,
    output = r.output_, error = r.error_, deadline_at = r.deadline_at_, started_at = r.started_at_,
    finished_at = r.finished_at_, written = r.written_, writers = r.writers_
FROM
  (SELECT column1 AS definition_, column2 AS status_, column3 AS epoch_, column4 AS next_, column5 AS step_,
      column6 AS output_, column7 AS error_, column8 AS deadline_at_, column9 AS started_at_,
      column10 AS finished_at_, column11 AS written_, column12 AS writers_, column13 AS run_,
      column14 AS seq_, column15 AS same_run_, column16 AS first_, column17 AS mark_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
      ?, ?, ?, ?, ?, ?)/*row*/)) AS r
WHERE runs.id = r.run_
  AND runs.seq = r.seq_
  AND EXISTS
  (SELECT 1
  FROM history AS mine
  WHERE mine.run_id = r.same_run_
    AND mine.seq = r.first_
    AND mine.mark = r.mark_)

-- held_by
SELECT r.mark_ AS mark, runs.seq AS stands,
  (SELECT mine.mark
  FROM history AS mine
  WHERE mine.run_id = runs.id
    AND mine.seq = r.first_) AS holder,
  (SELECT jobs.lease
  FROM jobs
  WHERE jobs.id = r.job_) AS lease
FROM
  (SELECT column1 AS mark_, column2 AS first_, column3 AS job_, column4 AS run_
  FROM (VALUES (?, ?, ?, ?)/*row*/, (?, ?, ?, ?)/*row*/)) AS r
CROSS JOIN runs
WHERE runs.id = r.run_
