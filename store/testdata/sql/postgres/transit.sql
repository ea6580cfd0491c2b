-- insert_history
INSERT INTO history (run_id, seq, mark, at, epoch, type, path, data)
SELECT runs.id, runs.seq + 1, r.mark_, r.at_, r.epoch_, r.type_, r.path_, r.data_
FROM
  (SELECT unnest(?::text[]) AS mark_, unnest(?::bigint[]) AS at_, unnest(?::bigint[]) AS epoch_,
      unnest(?::text[]) AS type_, unnest(?::text[]) AS path_, unnest(?::text[]) AS data_,
      unnest(?::text[]) AS run_, unnest(?::bigint[]) AS seq_) AS r, runs
WHERE runs.id = r.run_
  AND runs.seq = r.seq_
FOR UPDATE OF runs
ON CONFLICT DO NOTHING

-- more_history
INSERT INTO history (run_id, seq, mark, at, epoch, type, path, data)
SELECT mine.run_id, r.seq_, mine.mark, r.at_, r.epoch_, r.type_, r.path_, r.data_
FROM
  (SELECT unnest(?::bigint[]) AS seq_, unnest(?::bigint[]) AS at_, unnest(?::bigint[]) AS epoch_,
      unnest(?::text[]) AS type_, unnest(?::text[]) AS path_, unnest(?::text[]) AS data_,
      unnest(?::text[]) AS run_, unnest(?::bigint[]) AS first_, unnest(?::text[]) AS mark_) AS r,
      history AS mine
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
  (SELECT unnest(?::text[]) AS job_, unnest(?::text[]) AS lease_, unnest(?::bigint[]) AS attempt_,
      unnest(?::bigint[]) AS status_code_, unnest(?::text[]) AS error_, unnest(?::text[]) AS response_,
      unnest(?::bigint[]) AS duration_ms_, unnest(?::bigint[]) AS created_at_, unnest(?::text[]) AS run_,
      unnest(?::bigint[]) AS first_, unnest(?::text[]) AS mark_) AS r, history AS mine
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
  (SELECT unnest(?::text[]) AS job_, unnest(?::text[]) AS lease_, unnest(?::bigint[]) AS attempt_,
      unnest(?::bigint[]) AS status_code_, unnest(?::text[]) AS error_, unnest(?::text[]) AS response_,
      unnest(?::bigint[]) AS duration_ms_, unnest(?::bigint[]) AS created_at_, unnest(?::text[]) AS exchange_,
      unnest(?::text[]) AS sent_body_, unnest(?::text[]) AS run_, unnest(?::bigint[]) AS first_,
      unnest(?::text[]) AS mark_) AS r, history AS mine
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
  (SELECT unnest(?::text[]) AS event_, unnest(?::text[]) AS source_, unnest(?::text[]) AS type_,
      unnest(?::text[]) AS payload_, unnest(?::text[]) AS content_type_, unnest(?::text[]) AS headers_,
      unnest(?::text[]) AS delivery_id_, unnest(?::bigint[]) AS created_at_, unnest(?::text[]) AS run_,
      unnest(?::bigint[]) AS first_, unnest(?::text[]) AS mark_) AS r, history AS mine
WHERE mine.run_id = r.run_
  AND mine.seq = r.first_
  AND mine.mark = r.mark_
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)
ORDER BY 2, 7, 1

-- insert_texts
INSERT INTO step_texts (run_id, name, body)
SELECT mine.run_id, r.name_, r.body_
FROM
  (SELECT unnest(?::text[]) AS name_, unnest(?::text[]) AS body_, unnest(?::text[]) AS run_,
      unnest(?::bigint[]) AS first_, unnest(?::text[]) AS mark_) AS r, history AS mine
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
  (SELECT unnest(?::text[]) AS id_, unnest(?::bigint[]) AS epoch_, unnest(?::text[]) AS parent_,
      unnest(?::text[]) AS branch_, unnest(?::text[]) AS path_, unnest(?::text[]) AS name_,
      unnest(?::text[]) AS type_, unnest(?::text[]) AS status_, unnest(?::bigint[]) AS attempt_,
      unnest(?::text[]) AS state_, unnest(?::text[]) AS output_, unnest(?::text[]) AS error_,
      unnest(?::text[]) AS carry_, unnest(?::text[]) AS fan_, unnest(?::text[]) AS leaf_of_,
      unnest(?::bigint[]) AS started_at_, unnest(?::bigint[]) AS finished_at_, unnest(?::text[]) AS state_in_,
      unnest(?::text[]) AS output_in_, unnest(?::text[]) AS run_, unnest(?::bigint[]) AS first_,
      unnest(?::text[]) AS mark_) AS r, history AS mine
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
  (SELECT unnest(?::text[]) AS status_, unnest(?::bigint[]) AS attempt_, unnest(?::text[]) AS output_,
      unnest(?::text[]) AS error_, unnest(?::text[]) AS carry_, unnest(?::text[]) AS fan_,
      unnest(?::text[]) AS last_, unnest(?::bigint[]) AS finished_at_, unnest(?::text[]) AS output_in_,
      unnest(?::text[]) AS id_, unnest(?::text[]) AS run_, unnest(?::bigint[]) AS first_,
      unnest(?::text[]) AS mark_) AS r
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
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS run_, unnest(?::bigint[]) AS first_,
      unnest(?::text[]) AS mark_) AS r
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
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS lane_, unnest(?::text[]) AS status_,
      unnest(?::bigint[]) AS max_attempts_, unnest(?::bigint[]) AS due_at_,
      unnest(?::bigint[]) AS created_at_, unnest(?::text[]) AS run_, unnest(?::bigint[]) AS first_,
      unnest(?::text[]) AS mark_) AS r, history AS mine
WHERE mine.run_id = r.run_
  AND mine.seq = r.first_
  AND mine.mark = r.mark_
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)
ORDER BY 3, 4, 1

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
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS lane_, unnest(?::bigint[]) AS max_attempts_,
      unnest(?::bigint[]) AS until_, unnest(?::bigint[]) AS due_at_, unnest(?::text[]) AS lease_,
      unnest(?::bigint[]) AS created_at_, unnest(?::bigint[]) AS free_, unnest(?::text[]) AS source_,
      unnest(?::bigint[]) AS now_, unnest(?::text[]) AS run_, unnest(?::bigint[]) AS first_,
      unnest(?::text[]) AS mark_) AS r
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
ORDER BY 3, 4, 1

-- change_jobs
UPDATE jobs
SET scheduled_at = COALESCE(scheduled_at, due_at), status = r.status_, due_at = r.due_at_, lease = NULL,
    last_error = r.error_, finished_at = r.finished_at_, success = COALESCE(r.kept_, success)
FROM
  (SELECT unnest(?::text[]) AS status_, unnest(?::bigint[]) AS due_at_, unnest(?::text[]) AS error_,
      unnest(?::bigint[]) AS finished_at_, unnest(?::text[]) AS kept_, unnest(?::text[]) AS id_,
      unnest(?::text[]) AS run_, unnest(?::bigint[]) AS first_, unnest(?::text[]) AS mark_) AS r
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
  (SELECT unnest(?::text[]) AS hash_, unnest(?::text[]) AS step_, unnest(?::bigint[]) AS expires_at_,
      unnest(?::text[]) AS run_, unnest(?::bigint[]) AS first_, unnest(?::text[]) AS mark_) AS r,
      history AS mine
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
USING
  (SELECT unnest(?::text[]) AS of_, unnest(?::text[]) AS step_, unnest(?::text[]) AS run_,
      unnest(?::bigint[]) AS first_, unnest(?::text[]) AS mark_) AS r
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
    WHERE runs.id = mine.run_id))

-- move_runs
UPDATE runs
SET definition = r.definition_, status = r.status_, epoch = r.epoch_, seq = r.next_, step = r.step_,
    output = r.output_, error = r.error_, deadline_at = r.deadline_at_, started_at = r.started_at_,
    finished_at = r.finished_at_, written = r.written_, writers = r.writers_
FROM
  (SELECT unnest(?::text[]) AS definition_, unnest(?::text[]) AS status_, unnest(?::bigint[]) AS epoch_,
      unnest(?::bigint[]) AS next_, unnest(?::text[]) AS step_, unnest(?::text[]) AS output_,
      unnest(?::text[]) AS error_, unnest(?::bigint[]) AS deadline_at_, unnest(?::bigint[]) AS started_at_,
      unnest(?::bigint[]) AS finished_at_, unnest(?::bigint[]) AS written_, unnest(?::text[]) AS writers_,
      unnest(?::text[]) AS run_, unnest(?::bigint[]) AS seq_, unnest(?::text[]) AS same_run_,
      unnest(?::bigint[]) AS first_, unnest(?::text[]) AS mark_) AS r
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
  (SELECT unnest(?::text[]) AS mark_, unnest(?::bigint[]) AS first_, unnest(?::text[]) AS job_,
      unnest(?::text[]) AS run_) AS r, runs
WHERE runs.id = r.run_
