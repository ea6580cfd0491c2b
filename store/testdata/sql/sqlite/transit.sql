-- insert_history
INSERT OR FAIL INTO history (run_id, seq, mark, at, epoch, type, path, data)
SELECT runs.id, runs.seq + 1, ?, ?, ?, ?, ?, ?
FROM runs
WHERE runs.id = ?
  AND runs.seq = ?
ON CONFLICT DO NOTHING

-- more_history
INSERT OR FAIL INTO history (run_id, seq, mark, at, epoch, type, path, data)
SELECT mine.run_id, ?, mine.mark, ?, ?, ?, ?, ?
FROM history AS mine
WHERE mine.run_id = ?
  AND mine.seq = ?
  AND mine.mark = ?
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)

-- insert_step_attempts
INSERT OR FAIL INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at)
SELECT ?, ?, ?, ?, ?, ?, ?, ?
FROM history AS mine
WHERE mine.run_id = ?
  AND mine.seq = ?
  AND mine.mark = ?
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)

-- insert_step_attempts_recorded
INSERT OR FAIL INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at,
    exchange, sent_body)
SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
FROM history AS mine
WHERE mine.run_id = ?
  AND mine.seq = ?
  AND mine.mark = ?
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)

-- insert_rises
INSERT OR FAIL INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at)
SELECT ?, ?, ?, ?, ?, ?, ?, ?
FROM history AS mine
WHERE mine.run_id = ?
  AND mine.seq = ?
  AND mine.mark = ?
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)

-- insert_texts
INSERT OR FAIL INTO step_texts (run_id, name, body)
SELECT mine.run_id, ?, ?
FROM history AS mine
WHERE mine.run_id = ?
  AND mine.seq = ?
  AND mine.mark = ?
ON CONFLICT DO NOTHING

-- insert_steps
INSERT OR FAIL INTO steps (id, run_id, epoch, parent_id, branch, path, name, type, status, attempt, state,
    output, error, carry, fan, leaf_of, started_at, finished_at, state_in, output_in)
SELECT ?, mine.run_id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
FROM history AS mine
WHERE mine.run_id = ?
  AND mine.seq = ?
  AND mine.mark = ?
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)

-- change_steps
UPDATE steps
SET status = ?, attempt = ?, output = ?, error = ?, carry = ?, fan = ?,
    leaf_of = CASE WHEN ? = 'yes' THEN COALESCE(parent_id, run_id) END, finished_at = ?, output_in = ?
WHERE steps.id = ?
  AND EXISTS
  (SELECT 1
  FROM history AS mine
  WHERE mine.run_id = ?
    AND mine.seq = ?
    AND mine.mark = ?
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
WHERE steps.id = ?
  AND EXISTS
  (SELECT 1
  FROM history AS mine
  WHERE mine.run_id = ?
    AND mine.seq = ?
    AND mine.mark = ?
    AND mine.seq =
    (SELECT runs.seq + 1
    FROM runs
    WHERE runs.id = mine.run_id))

-- insert_step_jobs
INSERT OR FAIL INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease,
    last_error, created_at, finished_at)
SELECT ?,
  (SELECT runs.event_id
  FROM runs
  WHERE runs.id = mine.run_id), ?, NULL, ?, 0, ?, ?, NULL, '', ?, NULL
FROM history AS mine
WHERE mine.run_id = ?
  AND mine.seq = ?
  AND mine.mark = ?
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)

-- insert_taken_step_jobs
INSERT OR FAIL INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease,
    last_error, created_at, finished_at, scheduled_at)
SELECT ?,
  (SELECT runs.event_id
  FROM runs
  WHERE runs.id = mine.run_id), ?, NULL, CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN 'running'
      ELSE 'available' END, CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN 1 ELSE 0 END, ?,
      CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN ? ELSE ? END,
      CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN ? ELSE NULL END, '', ?, NULL,
      CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN ?5 ELSE NULL END
FROM history AS mine
LEFT JOIN gates ON gates.lane = ?2
  AND gates.held_until > ?
LEFT JOIN gates held ON held.lane = ?
  AND held.held_until > ?
WHERE mine.run_id = ?
  AND mine.seq = ?
  AND mine.mark = ?
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)

-- change_jobs
UPDATE jobs
SET scheduled_at = COALESCE(scheduled_at, due_at), status = ?, due_at = ?, lease = NULL, last_error = ?,
    finished_at = ?, success = COALESCE(?, success)
WHERE jobs.id = ?
  AND EXISTS
  (SELECT 1
  FROM history AS mine
  WHERE mine.run_id = ?
    AND mine.seq = ?
    AND mine.mark = ?
    AND mine.seq =
    (SELECT runs.seq + 1
    FROM runs
    WHERE runs.id = mine.run_id))

-- insert_tokens
INSERT OR FAIL INTO callbacks (token_hash, run_id, step_id, expires_at)
SELECT ?, mine.run_id, ?, ?
FROM history AS mine
WHERE mine.run_id = ?
  AND mine.seq = ?
  AND mine.mark = ?
  AND mine.seq =
  (SELECT runs.seq + 1
  FROM runs
  WHERE runs.id = mine.run_id)

-- disarm
DELETE
FROM callbacks
WHERE callbacks.run_id = ?
  AND callbacks.step_id = ?
  AND EXISTS
  (SELECT 1
  FROM history AS mine
  WHERE mine.run_id = ?
    AND mine.seq = ?
    AND mine.mark = ?
    AND mine.seq =
    (SELECT runs.seq + 1
    FROM runs
    WHERE runs.id = mine.run_id))

-- move_runs
UPDATE runs
SET definition = ?, status = ?, epoch = ?, seq = ?, step = ?, output = ?, error = ?, deadline_at = ?,
    started_at = ?, finished_at = ?, written = ?, writers = ?
WHERE runs.id = ?
  AND runs.seq = ?
  AND EXISTS
  (SELECT 1
  FROM history AS mine
  WHERE mine.run_id = ?
    AND mine.seq = ?
    AND mine.mark = ?)

-- held_by
SELECT ? AS mark, runs.seq AS stands,
  (SELECT mine.mark
  FROM history AS mine
  WHERE mine.run_id = runs.id
    AND mine.seq = ?) AS holder,
  (SELECT jobs.lease
  FROM jobs
  WHERE jobs.id = ?) AS lease
FROM runs
WHERE runs.id = ?
