-- insert_definitions
INSERT INTO definitions (hash, body)
SELECT r.hash_, r.body_
FROM
  (SELECT unnest(?::text[]) AS hash_, unnest(?::text[]) AS body_) AS r
WHERE 1 = 1
ON CONFLICT DO NOTHING

-- insert_runs
INSERT INTO runs (id, workflow, event_id, definition, status, epoch, seq, step, output, error, deadline_at,
    created_at, started_at, finished_at, written, writers)
SELECT r.id_, r.workflow_, jobs.event_id, r.definition_, 'pending', 1, 0, r.step_, NULL, '', r.deadline_at_,
    jobs.created_at, NULL, NULL, 0, NULL
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS workflow_, unnest(?::text[]) AS definition_,
      unnest(?::text[]) AS step_, unnest(?::bigint[]) AS deadline_at_, unnest(?::text[]) AS job_) AS r, jobs
WHERE jobs.id = r.job_
ON CONFLICT DO NOTHING

-- insert_first_steps
INSERT INTO steps (id, run_id, epoch, parent_id, branch, path, name, type, status, attempt, state, output,
    error, carry, fan, leaf_of, started_at, finished_at, state_in, output_in)
SELECT r.id_, runs.id, 1, NULL, '', runs.step, runs.step, r.type_, 'ready', 0, NULL, NULL, '', '', '', NULL,
    runs.created_at, NULL, NULL, NULL
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS type_, unnest(?::text[]) AS run_) AS r, runs
WHERE runs.id = r.run_
ON CONFLICT DO NOTHING

-- definition
SELECT body
FROM definitions
WHERE hash = ?

-- situations
SELECT steps.id AS steps_id, steps.run_id AS steps_run_id, steps.epoch AS steps_epoch,
    steps.parent_id AS steps_parent_id, steps.branch AS steps_branch, steps.path AS steps_path,
    steps.name AS steps_name, steps.type AS steps_type, steps.status AS steps_status,
    steps.attempt AS steps_attempt, COALESCE(steps.state, CASE WHEN steps.state_in IS NOT NULL THEN
  (SELECT step_texts.body
  FROM step_texts
  WHERE step_texts.run_id = steps.run_id
    AND step_texts.name = steps.state_in) END) AS steps_state, COALESCE(steps.output,
        CASE WHEN steps.output_in IS NOT NULL THEN
  (SELECT step_texts.body
  FROM step_texts
  WHERE step_texts.run_id = steps.run_id
    AND step_texts.name = steps.output_in) END) AS steps_output, steps.error AS steps_error,
        steps.carry AS steps_carry, steps.fan AS steps_fan, steps.leaf_of AS steps_leaf_of,
        steps.started_at AS steps_started_at, steps.finished_at AS steps_finished_at,
        steps.state_in AS steps_state_in, steps.output_in AS steps_output_in, runs.workflow AS runs_workflow,
        runs.event_id AS runs_event_id, runs.definition AS runs_definition, runs.status AS runs_status,
        runs.epoch AS runs_epoch, runs.seq AS runs_seq, runs.step AS runs_step, runs.output AS runs_output,
        runs.error AS runs_error, runs.deadline_at AS runs_deadline_at, runs.created_at AS runs_created_at,
        runs.started_at AS runs_started_at, runs.finished_at AS runs_finished_at,
        runs.written AS runs_written, runs.writers AS runs_writers, above0.parent_id AS above0_parent_id,
        above0.branch AS above0_branch, above0.path AS above0_path, above0.name AS above0_name,
        above0.type AS above0_type, above0.status AS above0_status, above0.attempt AS above0_attempt,
        above0.error AS above0_error, above0.carry AS above0_carry, above0.fan AS above0_fan,
        above0.leaf_of AS above0_leaf_of, above0.started_at AS above0_started_at,
        above0.finished_at AS above0_finished_at, above1.parent_id AS above1_parent_id,
        above1.branch AS above1_branch, above1.path AS above1_path, above1.name AS above1_name,
        above1.type AS above1_type, above1.status AS above1_status, above1.attempt AS above1_attempt,
        above1.error AS above1_error, above1.carry AS above1_carry, above1.fan AS above1_fan,
        above1.leaf_of AS above1_leaf_of, above1.started_at AS above1_started_at,
        above1.finished_at AS above1_finished_at, above2.parent_id AS above2_parent_id,
        above2.branch AS above2_branch, above2.path AS above2_path, above2.name AS above2_name,
        above2.type AS above2_type, above2.status AS above2_status, above2.attempt AS above2_attempt,
        above2.error AS above2_error, above2.carry AS above2_carry, above2.fan AS above2_fan,
        above2.leaf_of AS above2_leaf_of, above2.started_at AS above2_started_at,
        above2.finished_at AS above2_finished_at, above3.parent_id AS above3_parent_id,
        above3.branch AS above3_branch, above3.path AS above3_path, above3.name AS above3_name,
        above3.type AS above3_type, above3.status AS above3_status, above3.attempt AS above3_attempt,
        above3.error AS above3_error, above3.carry AS above3_carry, above3.fan AS above3_fan,
        above3.leaf_of AS above3_leaf_of, above3.started_at AS above3_started_at,
        above3.finished_at AS above3_finished_at, above4.parent_id AS above4_parent_id,
        above4.branch AS above4_branch, above4.path AS above4_path, above4.name AS above4_name,
        above4.type AS above4_type, above4.status AS above4_status, above4.attempt AS above4_attempt,
        above4.error AS above4_error, above4.carry AS above4_carry, above4.fan AS above4_fan,
        above4.leaf_of AS above4_leaf_of, above4.started_at AS above4_started_at,
        above4.finished_at AS above4_finished_at
FROM
  (SELECT unnest(?::text[]) AS id_) AS r, steps
JOIN runs ON runs.id = steps.run_id
LEFT JOIN steps AS above0 ON above0.id = steps.parent_id
LEFT JOIN steps AS above1 ON above1.id = above0.parent_id
LEFT JOIN steps AS above2 ON above2.id = above1.parent_id
LEFT JOIN steps AS above3 ON above3.id = above2.parent_id
LEFT JOIN steps AS above4 ON above4.id = above3.parent_id
WHERE steps.id = r.id_

-- survey_open
SELECT id, run_id, epoch, parent_id, branch, path, name, type, status, attempt, state, output, error, carry,
    fan, leaf_of, started_at, finished_at, state_in, output_in
FROM steps
WHERE run_id = ?
  AND epoch = ?
  AND status IN ('ready', 'running', 'waiting')

-- survey_failed
SELECT id, run_id, epoch, parent_id, branch, path, name, type, status, attempt, state, output, error, carry,
    fan, leaf_of, started_at, finished_at, state_in, output_in
FROM steps
WHERE run_id = ?
  AND epoch = ?
  AND status = 'failed'

-- survey_ids
SELECT steps.id AS steps_id, steps.run_id AS steps_run_id, steps.epoch AS steps_epoch,
    steps.parent_id AS steps_parent_id, steps.branch AS steps_branch, steps.path AS steps_path,
    steps.name AS steps_name, steps.type AS steps_type, steps.status AS steps_status,
    steps.attempt AS steps_attempt, steps.state AS steps_state, steps.output AS steps_output,
    steps.error AS steps_error, steps.carry AS steps_carry, steps.fan AS steps_fan,
    steps.leaf_of AS steps_leaf_of, steps.started_at AS steps_started_at,
    steps.finished_at AS steps_finished_at, steps.state_in AS steps_state_in,
    steps.output_in AS steps_output_in
FROM
  (SELECT unnest(?::text[]) AS id_) AS r, steps
WHERE steps.id = r.id_

-- survey_leaves
SELECT steps.id AS steps_id, steps.run_id AS steps_run_id, steps.epoch AS steps_epoch,
    steps.parent_id AS steps_parent_id, steps.branch AS steps_branch, steps.path AS steps_path,
    steps.name AS steps_name, steps.type AS steps_type, steps.status AS steps_status,
    steps.attempt AS steps_attempt, steps.state AS steps_state, steps.output AS steps_output,
    steps.error AS steps_error, steps.carry AS steps_carry, steps.fan AS steps_fan,
    steps.leaf_of AS steps_leaf_of, steps.started_at AS steps_started_at,
    steps.finished_at AS steps_finished_at, steps.state_in AS steps_state_in,
    steps.output_in AS steps_output_in
FROM
  (SELECT unnest(?::text[]) AS parent_) AS r, steps
WHERE steps.leaf_of = r.parent_

-- survey_paths
SELECT steps.id AS steps_id, steps.run_id AS steps_run_id, steps.epoch AS steps_epoch,
    steps.parent_id AS steps_parent_id, steps.branch AS steps_branch, steps.path AS steps_path,
    steps.name AS steps_name, steps.type AS steps_type, steps.status AS steps_status,
    steps.attempt AS steps_attempt, steps.state AS steps_state, steps.output AS steps_output,
    steps.error AS steps_error, steps.carry AS steps_carry, steps.fan AS steps_fan,
    steps.leaf_of AS steps_leaf_of, steps.started_at AS steps_started_at,
    steps.finished_at AS steps_finished_at, steps.state_in AS steps_state_in,
    steps.output_in AS steps_output_in
FROM
  (SELECT unnest(?::text[]) AS run_, unnest(?::bigint[]) AS epoch_, unnest(?::text[]) AS path_) AS r, steps
WHERE steps.run_id = r.run_
  AND steps.epoch = r.epoch_
  AND steps.path = r.path_

-- texts_of
SELECT step_texts.name, step_texts.body
FROM
  (SELECT unnest(?::text[]) AS run_, unnest(?::text[]) AS name_) AS r, step_texts
WHERE step_texts.run_id = r.run_
  AND step_texts.name = r.name_

-- awaited
SELECT step_id, run_id
FROM callbacks
WHERE token_hash IN (?, ?)
  AND (step_id = '' OR expires_at > ?)
