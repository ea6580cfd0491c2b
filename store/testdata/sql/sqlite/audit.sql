-- audit
INSERT OR FAIL INTO audit (id, actor, role, address, via, action, target, detail)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING

-- audit_retried
INSERT OR FAIL INTO audit (id, actor, role, address, via, action, target, detail)
SELECT ?, ?, ?, ?, ?, ?, ?, ?
WHERE COALESCE((SELECT MAX(CASE WHEN jobs.due_at = ? AND jobs.status IN ('available', 'scheduled',
    'retryable') THEN 1 ELSE 0 END)
  FROM jobs
  WHERE jobs.id = ?), 0) = 1
ON CONFLICT DO NOTHING

-- audit_revived
INSERT OR FAIL INTO audit (id, actor, role, address, via, action, target, detail)
SELECT ?, ?, ?, ?, ?, ?, ?, ?
WHERE COALESCE((SELECT MAX(CASE WHEN jobs.status = ? THEN 1 ELSE 0 END)
  FROM jobs
  WHERE jobs.id = ?), 0) = 1
ON CONFLICT DO NOTHING

-- audit_skipped
INSERT OR FAIL INTO audit (id, actor, role, address, via, action, target, detail)
SELECT ?, ?, ?, ?, ?, ?, ?, ?
WHERE COALESCE((SELECT MAX(CASE WHEN line_slots.job_id = ? AND line_slots.stopped_at > 0 THEN 1 ELSE 0 END)
  FROM line_slots
  WHERE line_slots.line = ?), 0) = 1
ON CONFLICT DO NOTHING

-- audit_canceled
INSERT OR FAIL INTO audit (id, actor, role, address, via, action, target, detail)
SELECT ?, ?, ?, ?, ?, ?, ?, ?
WHERE COALESCE((SELECT MAX(CASE WHEN jobs.status = 'canceled' AND jobs.finished_at = ? THEN 1 ELSE 0 END)
  FROM jobs
  WHERE jobs.event_id = ?
    AND jobs.id >= substr(?10, 1, 21)
    AND jobs.id < substr(?10, 1, 21) || '~'), 0) + COALESCE((SELECT MAX(CASE WHEN jobs.status = 'canceled' AND
        jobs.finished_at = ?9 THEN 1 ELSE 0 END)
  FROM jobs
  WHERE jobs.event_id = ?10
    AND substr(id, 1, 21) <> substr(event_id, 1, 21)), 0) > 0
ON CONFLICT DO NOTHING

-- audit_replayed
INSERT OR FAIL INTO audit (id, actor, role, address, via, action, target, detail)
SELECT ?, ?, ?, ?, ?, ?, ?, ?
WHERE COALESCE((SELECT MAX(CASE WHEN 1 = 1 THEN 1 ELSE 0 END)
  FROM jobs
  WHERE jobs.id = ?), 0) = 1
ON CONFLICT DO NOTHING

-- audit_moved
INSERT OR FAIL INTO audit (id, actor, role, address, via, action, target, detail)
SELECT ?, ?, ?, ?, ?, ?, ?, ?
WHERE COALESCE((SELECT MAX(CASE WHEN mine.mark = ? THEN 1 ELSE 0 END)
  FROM history AS mine
  WHERE mine.run_id = ?
    AND mine.seq = ?), 0) = 1
ON CONFLICT DO NOTHING

-- audit_begun
INSERT OR FAIL INTO audit (id, actor, role, address, via, action, target, detail)
SELECT ?, ?, ?, ?, ?, ?, ?, ?
WHERE COALESCE((SELECT MAX(CASE WHEN 1 = 1 THEN 1 ELSE 0 END)
  FROM operations
  WHERE operations.id = ?), 0) = 0
ON CONFLICT DO NOTHING

-- audit_ended
INSERT OR FAIL INTO audit (id, actor, role, address, via, action, target, detail)
SELECT ?, ?, ?, ?, ?, ?, ?, ?
WHERE COALESCE((SELECT MAX(CASE WHEN operations.state = 'canceled' AND operations.finished_at = ? THEN 1 ELSE
    0 END)
  FROM operations
  WHERE operations.id = ?), 0) = 1
ON CONFLICT DO NOTHING

-- audit_held
INSERT OR FAIL INTO audit (id, actor, role, address, via, action, target, detail)
SELECT ?, ?, ?, ?, ?, ?, ?, ?
WHERE COALESCE((SELECT MAX(CASE WHEN gates.held_until = ? AND gates.held_until > ? AND gates.hold_reason = ?
    THEN 1 ELSE 0 END)
  FROM gates
  WHERE gates.lane = ?), 0) = 0
ON CONFLICT DO NOTHING

-- audit_released
INSERT OR FAIL INTO audit (id, actor, role, address, via, action, target, detail)
SELECT ?, ?, ?, ?, ?, ?, ?, ?
WHERE COALESCE((SELECT MAX(CASE WHEN gates.held_until = ? AND gates.held_since = 0 THEN 1 ELSE 0 END)
  FROM gates
  WHERE gates.lane = ?), 0) = 1
ON CONFLICT DO NOTHING

-- audit_closed
INSERT OR FAIL INTO audit (id, actor, role, address, via, action, target, detail)
SELECT ?, ?, ?, ?, ?, ?, ?, ?
WHERE COALESCE((SELECT MAX(CASE WHEN gates.closed_at = ? AND gates.moved_by = '' THEN 1 ELSE 0 END)
  FROM gates
  WHERE gates.lane = ?), 0) = 1
ON CONFLICT DO NOTHING

-- audit_accepted
INSERT OR FAIL INTO audit (id, actor, role, address, via, action, target, detail)
SELECT ?, ?, ?, ?, ?, ?, ?, ?
WHERE COALESCE((SELECT MAX(CASE WHEN 1 = 1 THEN 1 ELSE 0 END)
  FROM events
  WHERE events.id = ?), 0) = 1
ON CONFLICT DO NOTHING

-- old_audits
SELECT id
FROM audit
WHERE id < ?
ORDER BY id
LIMIT ? + 0

-- delete_audits
DELETE
FROM audit
WHERE audit.id = ?
