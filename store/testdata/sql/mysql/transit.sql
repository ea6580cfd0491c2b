-- lock_runs
SELECT runs.id AS run
FROM
  (SELECT ? AS run_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN runs FORCE INDEX (`PRIMARY`)
WHERE runs.id = r.run_
FOR UPDATE

-- insert_history
INSERT INTO history (run_id, seq, mark, at, epoch, type, path, data)
SELECT runs.id, runs.seq + 1, r.mark_, r.at_, r.epoch_, r.type_, r.path_, r.data_
FROM
  (SELECT ? AS mark_, ? AS at_, ? AS epoch_, ? AS type_, ? AS path_, ? AS data_, ? AS run_, ? AS seq_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN runs FORCE INDEX (`PRIMARY`)
WHERE runs.id = r.run_
  AND runs.seq = r.seq_
FOR UPDATE
ON DUPLICATE KEY UPDATE history.run_id = history.run_id

-- more_history
INSERT INTO history (run_id, seq, mark, at, epoch, type, path, data)
SELECT mine.run_id, r.seq_, mine.mark, r.at_, r.epoch_, r.type_, r.path_, r.data_
FROM
  (SELECT ? AS seq_, ? AS at_, ? AS epoch_, ? AS type_, ? AS path_, ? AS data_, ? AS run_, ? AS first_,
      ? AS mark_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN history AS mine FORCE INDEX (`PRIMARY`)
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
  (SELECT ? AS job_, ? AS lease_, ? AS attempt_, ? AS status_code_, ? AS error_, ? AS response_,
      ? AS duration_ms_, ? AS created_at_, ? AS run_, ? AS first_, ? AS mark_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN history AS mine FORCE INDEX (`PRIMARY`)
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
  (SELECT ? AS job_, ? AS lease_, ? AS attempt_, ? AS status_code_, ? AS error_, ? AS response_,
      ? AS duration_ms_, ? AS created_at_, ? AS exchange_, ? AS sent_body_, ? AS run_, ? AS first_,
      ? AS mark_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN history AS mine FORCE INDEX (`PRIMARY`)
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
  (SELECT ? AS event_, ? AS source_, ? AS type_, ? AS payload_, ? AS content_type_, ? AS headers_,
      ? AS delivery_id_, ? AS created_at_, ? AS run_, ? AS first_, ? AS mark_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN history AS mine FORCE INDEX (`PRIMARY`)
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
  (SELECT ? AS name_, ? AS body_, ? AS run_, ? AS first_, ? AS mark_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN history AS mine FORCE INDEX (`PRIMARY`)
WHERE mine.run_id = r.run_
  AND mine.seq = r.first_
  AND mine.mark = r.mark_
ON DUPLICATE KEY UPDATE step_texts.run_id = step_texts.run_id

-- insert_steps
INSERT INTO steps (id, run_id, epoch, parent_id, branch, path, name, type, status, attempt, state, output,
    error, carry, fan, leaf_of, started_at, finished_at, state_in, output_in)
SELECT r.id_, mine.run_id, r.epoch_, r.parent_, r.branch_, r.path_, r.name_, r.type_, r.status_, r.attempt_,
    r.state_, r.output_, r.error_, r.carry_, r.fan_, r.leaf_of_, r.started_at_, r.finished_at_, r.state_in_,
    r.output_in_
FROM
  (SELECT ? AS id_, ? AS epoch_, ? AS parent_, ? AS branch_, ? AS path_, ? AS name_, ? AS type_, ? AS status_,
      ? AS attempt_, ? AS state_, ? AS output_, ? AS error_, ? AS carry_, ? AS fan_, ? AS leaf_of_,
      ? AS started_at_, ? AS finished_at_, ? AS state_in_, ? AS output_in_, ? AS run_, ? AS first_,
      ? AS mark_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN history AS mine FORCE INDEX (`PRIMARY`)
WHERE mine.run_id = r.run_
  AND mine.seq = r.first_
  AND mine.mark = r.mark_
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)

-- change_steps
UPDATE
  (SELECT ? AS status_, ? AS attempt_, ? AS output_, ? AS error_, ? AS carry_, ? AS fan_, ? AS last_,
      ? AS finished_at_, ? AS output_in_, ? AS id_, ? AS run_, ? AS first_, ? AS mark_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN steps FORCE INDEX (`PRIMARY`)
SET status = r.status_, attempt = r.attempt_, output = r.output_, error = r.error_, carry = r.carry_,
    fan = r.fan_, leaf_of = CASE WHEN r.last_ = 'yes' THEN COALESCE(parent_id, run_id) END,
    finished_at = r.finished_at_, output_in = r.output_in_
WHERE steps.id = r.id_
  AND EXISTS
  (SELECT 1
  FROM history AS mine FORCE INDEX (`PRIMARY`)
  WHERE mine.run_id = r.run_
    AND mine.seq = r.first_
    AND mine.mark = r.mark_
    AND mine.seq =
    (SELECT runs.seq + 1
    FROM runs
    WHERE runs.id = mine.run_id))

-- hold_steps
UPDATE
  (SELECT ? AS id_, ? AS run_, ? AS first_, ? AS mark_/*row*/
  UNION ALL SELECT ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN steps FORCE INDEX (`PRIMARY`)
SET held_until =
  (SELECT jobs.due_at
  FROM jobs FORCE INDEX (`PRIMARY`)
  WHERE jobs.id = steps.id
    AND jobs.status = 'running')
WHERE steps.id = r.id_
  AND EXISTS
  (SELECT 1
  FROM history AS mine FORCE INDEX (`PRIMARY`)
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
  (SELECT ? AS id_, ? AS lane_, ? AS status_, ? AS max_attempts_, ? AS due_at_, ? AS created_at_, ? AS run_,
      ? AS first_, ? AS mark_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN history AS mine FORCE INDEX (`PRIMARY`)
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
  (SELECT ? AS id_, ? AS lane_, ? AS max_attempts_, ? AS until_, ? AS due_at_, ? AS lease_, ? AS created_at_,
      ? AS free_, ? AS source_, ? AS now_, ? AS run_, ? AS first_, ? AS mark_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN history AS mine FORCE INDEX (`PRIMARY`)
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
UPDATE
  (SELECT ? AS status_, ? AS due_at_, ? AS error_, ? AS finished_at_, ? AS kept_, ? AS id_, ? AS run_,
      ? AS first_, ? AS mark_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
SET scheduled_at = COALESCE(scheduled_at, due_at), status = r.status_, due_at = r.due_at_, lease = NULL,
    last_error = r.error_, finished_at = r.finished_at_, success = COALESCE(r.kept_, success)
WHERE jobs.id = r.id_
  AND EXISTS
  (SELECT 1
  FROM history AS mine FORCE INDEX (`PRIMARY`)
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
  (SELECT ? AS hash_, ? AS step_, ? AS expires_at_, ? AS run_, ? AS first_, ? AS mark_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN history AS mine FORCE INDEX (`PRIMARY`)
WHERE mine.run_id = r.run_
  AND mine.seq = r.first_
  AND mine.mark = r.mark_
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)

-- disarm
DELETE `callbacks`
FROM
  (SELECT ? AS of_, ? AS step_, ? AS run_, ? AS first_, ? AS mark_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN callbacks FORCE INDEX (`callbacks_step`)
WHERE callbacks.run_id = r.of_
  AND callbacks.step_id = r.step_
  AND EXISTS
  (SELECT 1
  FROM history AS mine FORCE INDEX (`PRIMARY`)
  WHERE mine.run_id = r.run_
    AND mine.seq = r.first_
    AND mine.mark = r.mark_
    AND mine.seq =
    (SELECT runs.seq + 1
    FROM runs
    WHERE runs.id = mine.run_id))

-- move_runs
UPDATE
  (SELECT ? AS definition_, ? AS status_, ? AS epoch_, ? AS next_, ? AS step_, ? AS output_, ? AS error_,
      ? AS deadline_at_, ? AS started_at_, ? AS finished_at_, ? AS written_, ? AS writers_, ? AS run_,
      ? AS seq_, ? AS same_run_, ? AS first_, ? AS mark_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN runs FORCE INDEX (`PRIMARY`)
SET definition = r.definition_, status = r.status_, epoch = r.epoch_, seq = r.next_, step = r.step_,
    output = r.output_, error = r.error_, deadline_at = r.deadline_at_, started_at = r.started_at_,
    finished_at = r.finished_at_, written = r.written_, writers = r.writers_
WHERE runs.id = r.run_
  AND runs.seq = r.seq_
  AND EXISTS
  (SELECT 1
  FROM history AS mine FORCE INDEX (`PRIMARY`)
  WHERE mine.run_id = r.same_run_
    AND mine.seq = r.first_
    AND mine.mark = r.mark_)

-- held_by
SELECT r.mark_ AS mark, runs.seq AS stands,
  (SELECT mine.mark
  FROM history AS mine FORCE INDEX (`PRIMARY`)
  WHERE mine.run_id = runs.id
    AND mine.seq = r.first_) AS holder,
  (SELECT jobs.lease
  FROM jobs FORCE INDEX (`PRIMARY`)
  WHERE jobs.id = r.job_) AS lease
FROM
  (SELECT ? AS mark_, ? AS first_, ? AS job_, ? AS run_/*row*/
  UNION ALL SELECT ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN runs FORCE INDEX (`PRIMARY`)
WHERE runs.id = r.run_
