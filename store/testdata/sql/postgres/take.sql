-- claim
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
    FROM source_holds)
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

-- claim_passed
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
    FROM source_holds)
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

-- claimed
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
WHERE jobs.lane = ?
  AND jobs.due_at = ?
  AND jobs.lease = ?

-- claimed_lined
SELECT jobs.id AS jobs_id, jobs.event_id AS jobs_event_id, jobs.lane AS jobs_lane,
    jobs.job_key AS jobs_job_key, jobs.status AS jobs_status, jobs.attempt AS jobs_attempt,
    jobs.max_attempts AS jobs_max_attempts, jobs.due_at AS jobs_due_at, jobs.lease AS jobs_lease,
    jobs.last_error AS jobs_last_error, jobs.created_at AS jobs_created_at,
    jobs.finished_at AS jobs_finished_at, jobs.earlier AS jobs_earlier,
    jobs.scheduled_at AS jobs_scheduled_at, jobs.line AS jobs_line, events.id AS events_id,
    events.source AS events_source, events.type AS events_type, events.payload AS events_payload,
    events.content_type AS events_content_type, events.headers AS events_headers,
    events.delivery_id AS events_delivery_id, events.created_at AS events_created_at,
    events.encoding AS events_encoding, CASE WHEN jobs.line IS NULL OR EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id) THEN 1 ELSE 0 END AS slotted
FROM jobs
JOIN events ON events.id = jobs.event_id
WHERE jobs.lane = ?
  AND jobs.due_at = ?
  AND jobs.lease = ?

-- claimed_steps
SELECT jobs.id AS jobs_id, jobs.event_id AS jobs_event_id, jobs.lane AS jobs_lane,
    jobs.job_key AS jobs_job_key, jobs.status AS jobs_status, jobs.attempt AS jobs_attempt,
    jobs.max_attempts AS jobs_max_attempts, jobs.due_at AS jobs_due_at, jobs.lease AS jobs_lease,
    jobs.last_error AS jobs_last_error, jobs.created_at AS jobs_created_at,
    jobs.finished_at AS jobs_finished_at, jobs.earlier AS jobs_earlier,
    jobs.scheduled_at AS jobs_scheduled_at, jobs.line AS jobs_line, events.id AS events_id,
    events.source AS events_source, events.type AS events_type, events.payload AS events_payload,
    events.content_type AS events_content_type, events.headers AS events_headers,
    events.delivery_id AS events_delivery_id, events.created_at AS events_created_at,
    events.encoding AS events_encoding, steps.id AS steps_id, steps.run_id AS steps_run_id,
    steps.epoch AS steps_epoch, steps.parent_id AS steps_parent_id, steps.branch AS steps_branch,
    steps.path AS steps_path, steps.name AS steps_name, steps.type AS steps_type,
    steps.status AS steps_status, steps.attempt AS steps_attempt, COALESCE(steps.state,
    CASE WHEN steps.state_in IS NOT NULL THEN
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
        runs.written AS runs_written, runs.writers AS runs_writers
FROM jobs
JOIN events ON events.id = jobs.event_id
LEFT JOIN steps ON steps.id = jobs.id
LEFT JOIN runs ON runs.id = steps.run_id
WHERE jobs.lane = ?
  AND jobs.due_at = ?
  AND jobs.lease = ?

-- above_taken
SELECT steps.id, above0.parent_id AS above0_parent_id, above0.branch AS above0_branch,
    above0.path AS above0_path, above0.name AS above0_name, above0.type AS above0_type,
    above0.status AS above0_status, above0.attempt AS above0_attempt, above0.error AS above0_error,
    above0.carry AS above0_carry, above0.fan AS above0_fan, above0.leaf_of AS above0_leaf_of,
    above0.started_at AS above0_started_at, above0.finished_at AS above0_finished_at,
    above1.parent_id AS above1_parent_id, above1.branch AS above1_branch, above1.path AS above1_path,
    above1.name AS above1_name, above1.type AS above1_type, above1.status AS above1_status,
    above1.attempt AS above1_attempt, above1.error AS above1_error, above1.carry AS above1_carry,
    above1.fan AS above1_fan, above1.leaf_of AS above1_leaf_of, above1.started_at AS above1_started_at,
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
FROM jobs
JOIN steps ON steps.id = jobs.id
LEFT JOIN steps AS above0 ON above0.id = steps.parent_id
LEFT JOIN steps AS above1 ON above1.id = above0.parent_id
LEFT JOIN steps AS above2 ON above2.id = above1.parent_id
LEFT JOIN steps AS above3 ON above3.id = above2.parent_id
LEFT JOIN steps AS above4 ON above4.id = above3.parent_id
WHERE jobs.lane = ?
  AND jobs.due_at = ?
  AND jobs.lease = ?
  AND COALESCE(steps.parent_id, '') <> ''

-- admit
UPDATE gates
SET taker = ?, base_us = CASE WHEN next_us < ? OR next_us > ? THEN ? ELSE next_us END
WHERE lane = ?
  AND taker <> ?
  AND closed_at = ?
  AND gates.open_until = 0
  AND gates.held_until <= ?
  AND (next_us <= ? OR next_us > ?)

-- admit_probe
UPDATE gates
SET taker = ?, base_us = open_until, open_until = ?
WHERE lane = ?
  AND closed_at = ?
  AND gates.open_until <> 0
  AND gates.held_until <= ?
  AND (open_until <= ? OR open_until > ?)
  AND EXISTS
  (SELECT 1
  FROM jobs
  WHERE lane = ?
    AND due_at >= ?
    AND due_at <= ?)

-- charge
UPDATE gates
SET next_us = base_us + ? *
  (SELECT COUNT(*)
  FROM jobs AS mine
  WHERE mine.lane = ?
    AND mine.due_at = ?
    AND mine.lease = ?)
WHERE lane = ?
  AND taker = ?
  AND EXISTS
  (SELECT 1
  FROM jobs AS mine
  WHERE mine.lane = ?
    AND mine.due_at = ?
    AND mine.lease = ?)

-- refund
UPDATE gates
SET open_until = base_us
WHERE lane = ?
  AND taker = ?
  AND NOT EXISTS
  (SELECT 1
  FROM jobs AS mine
  WHERE mine.lane = ?
    AND mine.due_at = ?
    AND mine.lease = ?)

-- bases
SELECT gates.lane, gates.base_us
FROM
  (SELECT unnest(?::text[]) AS lane_, unnest(?::text[]) AS taker_) AS r, gates
WHERE gates.lane = r.lane_
  AND gates.taker = r.taker_
