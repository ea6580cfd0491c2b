-- audit
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?)/*row*/
ON CONFLICT DO NOTHING

-- audit_retried
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT column1 AS id_, column2 AS actor_, column3 AS role_, column4 AS address_, column5 AS via_,
      column6 AS action_, column7 AS target_, column8 AS detail_, column9 AS at_, column10 AS job_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN jobs.due_at = r.at_ AND jobs.status IN ('available', 'scheduled',
    'retryable') THEN 1 ELSE 0 END)
  FROM jobs
  WHERE jobs.id = r.job_), 0) = 1
ON CONFLICT DO NOTHING

-- audit_revived
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT column1 AS id_, column2 AS actor_, column3 AS role_, column4 AS address_, column5 AS via_,
      column6 AS action_, column7 AS target_, column8 AS detail_, column9 AS status_, column10 AS job_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN jobs.status = r.status_ THEN 1 ELSE 0 END)
  FROM jobs
  WHERE jobs.id = r.job_), 0) = 1
ON CONFLICT DO NOTHING

-- audit_skipped
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT column1 AS id_, column2 AS actor_, column3 AS role_, column4 AS address_, column5 AS via_,
      column6 AS action_, column7 AS target_, column8 AS detail_, column9 AS job_, column10 AS line_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN line_slots.job_id = r.job_ AND line_slots.stopped_at > 0 THEN 1 ELSE 0
    END)
  FROM line_slots
  WHERE line_slots.line = r.line_), 0) = 1
ON CONFLICT DO NOTHING

-- audit_canceled
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT column1 AS id_, column2 AS actor_, column3 AS role_, column4 AS address_, column5 AS via_,
      column6 AS action_, column7 AS target_, column8 AS detail_, column9 AS at_, column10 AS event_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
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
  (SELECT column1 AS id_, column2 AS actor_, column3 AS role_, column4 AS address_, column5 AS via_,
      column6 AS action_, column7 AS target_, column8 AS detail_, column9 AS job_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN 1 = 1 THEN 1 ELSE 0 END)
  FROM jobs
  WHERE jobs.id = r.job_), 0) = 1
ON CONFLICT DO NOTHING

-- audit_moved
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT column1 AS id_, column2 AS actor_, column3 AS role_, column4 AS address_, column5 AS via_,
      column6 AS action_, column7 AS target_, column8 AS detail_, column9 AS mark_, column10 AS run_,
      column11 AS first_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN mine.mark = r.mark_ THEN 1 ELSE 0 END)
  FROM history AS mine
  WHERE mine.run_id = r.run_
    AND mine.seq = r.first_), 0) = 1
ON CONFLICT DO NOTHING

-- audit_begun
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT column1 AS id_, column2 AS actor_, column3 AS role_, column4 AS address_, column5 AS via_,
      column6 AS action_, column7 AS target_, column8 AS detail_, column9 AS operation_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN 1 = 1 THEN 1 ELSE 0 END)
  FROM operations
  WHERE operations.id = r.operation_), 0) = 0
ON CONFLICT DO NOTHING

-- audit_ended
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT column1 AS id_, column2 AS actor_, column3 AS role_, column4 AS address_, column5 AS via_,
      column6 AS action_, column7 AS target_, column8 AS detail_, column9 AS at_, column10 AS operation_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN operations.state = 'canceled' AND operations.finished_at = r.at_ THEN 1
    ELSE 0 END)
  FROM operations
  WHERE operations.id = r.operation_), 0) = 1
ON CONFLICT DO NOTHING

-- audit_held
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT column1 AS id_, column2 AS actor_, column3 AS role_, column4 AS address_, column5 AS via_,
      column6 AS action_, column7 AS target_, column8 AS detail_, column9 AS until_, column10 AS now_,
      column11 AS reason_, column12 AS lane_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN gates.held_until = r.until_ AND gates.held_until > r.now_ AND
    gates.hold_reason = r.reason_ THEN 1 ELSE 0 END)
  FROM gates
  WHERE gates.lane = r.lane_), 0) = 0
ON CONFLICT DO NOTHING

-- audit_released
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT column1 AS id_, column2 AS actor_, column3 AS role_, column4 AS address_, column5 AS via_,
      column6 AS action_, column7 AS target_, column8 AS detail_, column9 AS at_, column10 AS lane_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN gates.held_until = r.at_ AND gates.held_since = 0 THEN 1 ELSE 0 END)
  FROM gates
  WHERE gates.lane = r.lane_), 0) = 1
ON CONFLICT DO NOTHING

-- audit_closed
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT column1 AS id_, column2 AS actor_, column3 AS role_, column4 AS address_, column5 AS via_,
      column6 AS action_, column7 AS target_, column8 AS detail_, column9 AS at_, column10 AS lane_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN gates.closed_at = r.at_ AND gates.moved_by = '' THEN 1 ELSE 0 END)
  FROM gates
  WHERE gates.lane = r.lane_), 0) = 1
ON CONFLICT DO NOTHING

-- audit_accepted
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT column1 AS id_, column2 AS actor_, column3 AS role_, column4 AS address_, column5 AS via_,
      column6 AS action_, column7 AS target_, column8 AS detail_, column9 AS event_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN 1 = 1 THEN 1 ELSE 0 END)
  FROM events
  WHERE events.id = r.event_), 0) = 1
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
WHERE id IN
  (SELECT audit.id
  FROM
    (SELECT column1 AS id_
    FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
  CROSS JOIN audit
  WHERE audit.id = r.id_)
