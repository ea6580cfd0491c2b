-- audit
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS actor_, unnest(?::text[]) AS role_,
      unnest(?::text[]) AS address_, unnest(?::text[]) AS via_, unnest(?::text[]) AS action_,
      unnest(?::text[]) AS target_, unnest(?::text[]) AS detail_) AS r
WHERE 1 = 1
ON CONFLICT DO NOTHING

-- audit_retried
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS actor_, unnest(?::text[]) AS role_,
      unnest(?::text[]) AS address_, unnest(?::text[]) AS via_, unnest(?::text[]) AS action_,
      unnest(?::text[]) AS target_, unnest(?::text[]) AS detail_, unnest(?::bigint[]) AS at_,
      unnest(?::text[]) AS job_) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN jobs.due_at = r.at_ AND jobs.status IN ('available', 'scheduled',
    'retryable') THEN 1 ELSE 0 END)
  FROM jobs
  WHERE jobs.id = r.job_), 0) = 1
ON CONFLICT DO NOTHING

-- audit_revived
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS actor_, unnest(?::text[]) AS role_,
      unnest(?::text[]) AS address_, unnest(?::text[]) AS via_, unnest(?::text[]) AS action_,
      unnest(?::text[]) AS target_, unnest(?::text[]) AS detail_, unnest(?::text[]) AS status_,
      unnest(?::text[]) AS job_) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN jobs.status = r.status_ THEN 1 ELSE 0 END)
  FROM jobs
  WHERE jobs.id = r.job_), 0) = 1
ON CONFLICT DO NOTHING

-- audit_skipped
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS actor_, unnest(?::text[]) AS role_,
      unnest(?::text[]) AS address_, unnest(?::text[]) AS via_, unnest(?::text[]) AS action_,
      unnest(?::text[]) AS target_, unnest(?::text[]) AS detail_, unnest(?::text[]) AS job_,
      unnest(?::text[]) AS line_) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN line_slots.job_id = r.job_ AND line_slots.stopped_at > 0 THEN 1 ELSE 0
    END)
  FROM line_slots
  WHERE line_slots.line = r.line_), 0) = 1
ON CONFLICT DO NOTHING

-- audit_canceled
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS actor_, unnest(?::text[]) AS role_,
      unnest(?::text[]) AS address_, unnest(?::text[]) AS via_, unnest(?::text[]) AS action_,
      unnest(?::text[]) AS target_, unnest(?::text[]) AS detail_, unnest(?::bigint[]) AS at_,
      unnest(?::text[]) AS event_) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN jobs.status = 'canceled' AND jobs.finished_at = r.at_ THEN 1 ELSE 0 END)
  FROM jobs
  WHERE jobs.event_id = r.event_
    AND jobs.id >= substr(r.event_, 1, 21)
    AND jobs.id < substr(r.event_, 1, 21) || '~'), 0) + COALESCE((SELECT MAX(CASE WHEN jobs.status =
        'canceled' AND jobs.finished_at = r.at_ THEN 1 ELSE 0 END)
  FROM jobs
  WHERE jobs.event_id = r.event_
    AND substr(id, 1, 21) <> substr(event_id, 1, 21)), 0) > 0
ON CONFLICT DO NOTHING

-- audit_replayed
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS actor_, unnest(?::text[]) AS role_,
      unnest(?::text[]) AS address_, unnest(?::text[]) AS via_, unnest(?::text[]) AS action_,
      unnest(?::text[]) AS target_, unnest(?::text[]) AS detail_, unnest(?::text[]) AS job_) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN 1 = 1 THEN 1 ELSE 0 END)
  FROM jobs
  WHERE jobs.id = r.job_), 0) = 1
ON CONFLICT DO NOTHING

-- audit_moved
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS actor_, unnest(?::text[]) AS role_,
      unnest(?::text[]) AS address_, unnest(?::text[]) AS via_, unnest(?::text[]) AS action_,
      unnest(?::text[]) AS target_, unnest(?::text[]) AS detail_, unnest(?::text[]) AS mark_,
      unnest(?::text[]) AS run_, unnest(?::bigint[]) AS first_) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN mine.mark = r.mark_ THEN 1 ELSE 0 END)
  FROM history AS mine
  WHERE mine.run_id = r.run_
    AND mine.seq = r.first_), 0) = 1
ON CONFLICT DO NOTHING

-- audit_begun
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS actor_, unnest(?::text[]) AS role_,
      unnest(?::text[]) AS address_, unnest(?::text[]) AS via_, unnest(?::text[]) AS action_,
      unnest(?::text[]) AS target_, unnest(?::text[]) AS detail_, unnest(?::text[]) AS operation_) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN 1 = 1 THEN 1 ELSE 0 END)
  FROM operations
  WHERE operations.id = r.operation_), 0) = 0
ON CONFLICT DO NOTHING

-- audit_ended
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS actor_, unnest(?::text[]) AS role_,
      unnest(?::text[]) AS address_, unnest(?::text[]) AS via_, unnest(?::text[]) AS action_,
      unnest(?::text[]) AS target_, unnest(?::text[]) AS detail_, unnest(?::bigint[]) AS at_,
      unnest(?::text[]) AS operation_) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN operations.state = 'canceled' AND operations.finished_at = r.at_ THEN 1
    ELSE 0 END)
  FROM operations
  WHERE operations.id = r.operation_), 0) = 1
ON CONFLICT DO NOTHING

-- audit_held
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS actor_, unnest(?::text[]) AS role_,
      unnest(?::text[]) AS address_, unnest(?::text[]) AS via_, unnest(?::text[]) AS action_,
      unnest(?::text[]) AS target_, unnest(?::text[]) AS detail_, unnest(?::bigint[]) AS until_,
      unnest(?::bigint[]) AS now_, unnest(?::text[]) AS reason_, unnest(?::text[]) AS lane_) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN gates.held_until = r.until_ AND gates.held_until > r.now_ AND
    gates.hold_reason = r.reason_ THEN 1 ELSE 0 END)
  FROM gates
  WHERE gates.lane = r.lane_), 0) = 0
ON CONFLICT DO NOTHING

-- audit_released
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS actor_, unnest(?::text[]) AS role_,
      unnest(?::text[]) AS address_, unnest(?::text[]) AS via_, unnest(?::text[]) AS action_,
      unnest(?::text[]) AS target_, unnest(?::text[]) AS detail_, unnest(?::bigint[]) AS at_,
      unnest(?::text[]) AS lane_) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN gates.held_until = r.at_ AND gates.held_since = 0 THEN 1 ELSE 0 END)
  FROM gates
  WHERE gates.lane = r.lane_), 0) = 1
ON CONFLICT DO NOTHING

-- audit_closed
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS actor_, unnest(?::text[]) AS role_,
      unnest(?::text[]) AS address_, unnest(?::text[]) AS via_, unnest(?::text[]) AS action_,
      unnest(?::text[]) AS target_, unnest(?::text[]) AS detail_, unnest(?::bigint[]) AS at_,
      unnest(?::text[]) AS lane_) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN gates.closed_at = r.at_ AND gates.moved_by = '' THEN 1 ELSE 0 END)
  FROM gates
  WHERE gates.lane = r.lane_), 0) = 1
ON CONFLICT DO NOTHING

-- audit_accepted
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS actor_, unnest(?::text[]) AS role_,
      unnest(?::text[]) AS address_, unnest(?::text[]) AS via_, unnest(?::text[]) AS action_,
      unnest(?::text[]) AS target_, unnest(?::text[]) AS detail_, unnest(?::text[]) AS event_) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN 1 = 1 THEN 1 ELSE 0 END)
  FROM events
  WHERE events.id = r.event_), 0) = 1
ON CONFLICT DO NOTHING

-- lock_gate
SELECT gates.lane AS lane
FROM
  (SELECT unnest(?::text[]) AS lane_) AS r, gates
WHERE gates.lane = r.lane_
FOR UPDATE OF gates

-- old_audits
SELECT id
FROM audit
WHERE id < ?
ORDER BY id
LIMIT ?::bigint

-- delete_audits
DELETE
FROM audit
USING
  (SELECT unnest(?::text[]) AS id_) AS r
WHERE audit.id = r.id_
