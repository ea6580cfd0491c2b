-- undo_steps
DELETE
FROM steps
WHERE id = ?

-- undo_runs
DELETE
FROM runs
WHERE id = ?

-- undo_jobs
DELETE
FROM jobs
WHERE id = ?

-- undo_events
DELETE
FROM events
WHERE id = ?

-- undo_gates
DELETE
FROM gates
WHERE lane = ?

-- undo_attempts
DELETE
FROM attempts
WHERE job_id = ?

-- undo_callbacks
DELETE
FROM callbacks
WHERE token_hash = ?

-- undo_step_texts
DELETE
FROM step_texts
WHERE run_id = ?

-- undo_history
DELETE
FROM history
WHERE run_id = ?

-- undo_turns
DELETE
FROM turns
WHERE name = ?
