-- run
SELECT id, workflow, event_id, definition, status, epoch, seq, step, output, error, deadline_at, created_at,
    started_at, finished_at, written, writers
FROM runs
WHERE id = ?

-- history
SELECT seq, at, epoch, type, path, data
FROM history
WHERE run_id = ?
  AND seq > ?
ORDER BY seq
LIMIT ?::bigint

-- outline
SELECT id, parent_id, branch, path, name, type, status, attempt, error, started_at, finished_at
FROM steps
WHERE run_id = ?
  AND epoch = ?

-- step_ids
SELECT id
FROM steps
WHERE run_id = ?
  AND epoch = ?
  AND id > ?

-- step_sizes
SELECT steps.id AS id, COALESCE(LENGTH(steps.state), 0) AS state_size, COALESCE(LENGTH(steps.output),
    0) AS output_size, steps.state_in AS state_in, steps.output_in AS output_in,
    CASE WHEN steps.output = '' THEN 'yes' ELSE 'no' END AS passes
FROM
  (SELECT unnest(?::text[]) AS id_) AS r, steps
WHERE steps.id = r.id_

-- read_steps
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
        steps.state_in AS steps_state_in, steps.output_in AS steps_output_in, steps.held_until AS held_until
FROM
  (SELECT unnest(?::text[]) AS id_) AS r, steps
WHERE steps.id = r.id_
