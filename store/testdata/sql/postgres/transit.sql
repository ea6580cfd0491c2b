-- insert_history
INSERT INTO history (run_id, seq, mark, at, epoch, type, path, data)
SELECT runs.id, runs.seq + 1, r.mark_, r.at_, r.epoch_, r.type_, r.path_, r.data_
FROM unnest(?::text[], ?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[],
    ?::bigint[]) AS r(mark_, at_, epoch_, type_, path_, data_, run_, seq_), runs
WHERE runs.id = r.run_
  AND runs.seq = r.seq_
FOR UPDATE OF runs
ON CONFLICT DO NOTHING

-- more_history
INSERT INTO history (run_id, seq, mark, at, epoch, type, path, data)
SELECT mine.run_id, r.seq_, mine.mark, r.at_, r.epoch_, r.type_, r.path_, r.data_
FROM unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[],
    ?::text[]) AS r(seq_, at_, epoch_, type_, path_, data_, run_, first_, mark_), history AS mine
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
FROM unnest(?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::bigint[], ?::bigint[],
    ?::text[], ?::bigint[], ?::text[]) AS r(job_, lease_, attempt_, status_code_, error_, response_,
    duration_ms_, created_at_, run_, first_, mark_), history AS mine
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
FROM unnest(?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::bigint[], ?::bigint[],
    ?::text[], ?::text[], ?::text[], ?::bigint[], ?::text[]) AS r(job_, lease_, attempt_, status_code_,
    error_, response_, duration_ms_, created_at_, exchange_, sent_body_, run_, first_, mark_), history AS mine
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
FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[],
    ?::text[], ?::bigint[], ?::text[]) AS r(event_, source_, type_, payload_, content_type_, headers_,
    delivery_id_, created_at_, run_, first_, mark_), history AS mine
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
FROM unnest(?::text[], ?::text[], ?::text[], ?::bigint[], ?::text[]) AS r(name_, body_, run_, first_, mark_),
    history AS mine
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
FROM unnest(?::text[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[],
    ?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[], ?::bigint[],
    ?::text[], ?::text[], ?::text[], ?::bigint[], ?::text[]) AS r(id_, epoch_, parent_, branch_, path_, name_,
    type_, status_, attempt_, state_, output_, error_, carry_, fan_, leaf_of_, started_at_, finished_at_,
    state_in_, output_in_, run_, first_, mark_), history AS mine
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
FROM unnest(?::text[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[],
    ?::text[], ?::text[], ?::text[], ?::bigint[], ?::text[]) AS r(status_, attempt_, output_, error_, carry_,
    fan_, last_, finished_at_, output_in_, id_, run_, first_, mark_)
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
FROM unnest(?::text[], ?::text[], ?::bigint[], ?::text[]) AS r(id_, run_, first_, mark_)
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
FROM unnest(?::text[], ?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::bigint[], ?::text[], ?::bigint[],
    ?::text[]) AS r(id_, lane_, status_, max_attempts_, due_at_, created_at_, run_, first_, mark_),
    history AS mine
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
    last_error = r.error_, finished_at = r.finished_at_
FROM unnest(?::text[], ?::bigint[], ?::text[], ?::bigint[], ?::text[], ?::text[], ?::bigint[],
    ?::text[]) AS r(status_, due_at_, error_, finished_at_, id_, run_, first_, mark_)
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
FROM unnest(?::text[], ?::text[], ?::bigint[], ?::text[], ?::bigint[], ?::text[]) AS r(hash_, step_,
    expires_at_, run_, first_, mark_), history AS mine
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
USING unnest(?::text[], ?::text[], ?::text[], ?::bigint[], ?::text[]) AS r(of_, step_, run_, first_, mark_)
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
FROM unnest(?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::bigint[],
    ?::bigint[], ?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::bigint[], ?::text[], ?::bigint[],
    ?::text[]) AS r(definition_, status_, epoch_, next_, step_, output_, error_, deadline_at_, started_at_,
    finished_at_, written_, writers_, run_, seq_, same_run_, first_, mark_)
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
    AND mine.seq = r.first_) AS holder
FROM unnest(?::text[], ?::bigint[], ?::text[]) AS r(mark_, first_, run_), runs
WHERE runs.id = r.run_
