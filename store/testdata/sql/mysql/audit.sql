-- audit
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?)/*row*/
ON DUPLICATE KEY UPDATE audit.id = audit.id

-- audit_retried
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT ? AS id_, ? AS actor_, ? AS role_, ? AS address_, ? AS via_, ? AS action_, ? AS target_,
      ? AS detail_, ? AS at_, ? AS job_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN jobs.due_at = r.at_ AND jobs.status IN ('available', 'scheduled',
    'retryable') THEN 1 ELSE 0 END)
  FROM jobs FORCE INDEX (`PRIMARY`)
  WHERE jobs.id = r.job_), 0) = 1
ON DUPLICATE KEY UPDATE audit.id = audit.id

-- audit_revived
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT ? AS id_, ? AS actor_, ? AS role_, ? AS address_, ? AS via_, ? AS action_, ? AS target_,
      ? AS detail_, ? AS status_, ? AS job_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN jobs.status = r.status_ THEN 1 ELSE 0 END)
  FROM jobs FORCE INDEX (`PRIMARY`)
  WHERE jobs.id = r.job_), 0) = 1
ON DUPLICATE KEY UPDATE audit.id = audit.id

-- audit_skipped
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT ? AS id_, ? AS actor_, ? AS role_, ? AS address_, ? AS via_, ? AS action_, ? AS target_,
      ? AS detail_, ? AS job_, ? AS line_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN line_slots.job_id = r.job_ AND line_slots.stopped_at > 0 THEN 1 ELSE 0
    END)
  FROM line_slots FORCE INDEX (`PRIMARY`)
  WHERE line_slots.line = r.line_), 0) = 1
ON DUPLICATE KEY UPDATE audit.id = audit.id

-- audit_canceled
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT ? AS id_, ? AS actor_, ? AS role_, ? AS address_, ? AS via_, ? AS action_, ? AS target_,
      ? AS detail_, ? AS at_, ? AS event_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN jobs.status = 'canceled' AND jobs.finished_at = r.at_ THEN 1 ELSE 0 END)
  FROM jobs FORCE INDEX (`jobs_event`)
  WHERE jobs.event_id = r.event_), 0) > 0
ON DUPLICATE KEY UPDATE audit.id = audit.id

-- audit_replayed
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT ? AS id_, ? AS actor_, ? AS role_, ? AS address_, ? AS via_, ? AS action_, ? AS target_,
      ? AS detail_, ? AS job_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN 1 = 1 THEN 1 ELSE 0 END)
  FROM jobs FORCE INDEX (`PRIMARY`)
  WHERE jobs.id = r.job_), 0) = 1
ON DUPLICATE KEY UPDATE audit.id = audit.id

-- audit_moved
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT ? AS id_, ? AS actor_, ? AS role_, ? AS address_, ? AS via_, ? AS action_, ? AS target_,
      ? AS detail_, ? AS mark_, ? AS run_, ? AS first_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN mine.mark = r.mark_ THEN 1 ELSE 0 END)
  FROM history AS mine FORCE INDEX (`PRIMARY`)
  WHERE mine.run_id = r.run_
    AND mine.seq = r.first_), 0) = 1
ON DUPLICATE KEY UPDATE audit.id = audit.id

-- audit_begun
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT ? AS id_, ? AS actor_, ? AS role_, ? AS address_, ? AS via_, ? AS action_, ? AS target_,
      ? AS detail_, ? AS operation_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN 1 = 1 THEN 1 ELSE 0 END)
  FROM operations FORCE INDEX (`PRIMARY`)
  WHERE operations.id = r.operation_), 0) = 0
ON DUPLICATE KEY UPDATE audit.id = audit.id

-- audit_ended
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT ? AS id_, ? AS actor_, ? AS role_, ? AS address_, ? AS via_, ? AS action_, ? AS target_,
      ? AS detail_, ? AS at_, ? AS operation_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN operations.state = 'canceled' AND operations.finished_at = r.at_ THEN 1
    ELSE 0 END)
  FROM operations FORCE INDEX (`PRIMARY`)
  WHERE operations.id = r.operation_), 0) = 1
ON DUPLICATE KEY UPDATE audit.id = audit.id

-- audit_held
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT ? AS id_, ? AS actor_, ? AS role_, ? AS address_, ? AS via_, ? AS action_, ? AS target_,
      ? AS detail_, ? AS until_, ? AS now_, ? AS reason_, ? AS lane_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN gates.held_until = r.until_ AND gates.held_until > r.now_ AND
    gates.hold_reason = r.reason_ THEN 1 ELSE 0 END)
  FROM gates FORCE INDEX (`PRIMARY`)
  WHERE gates.lane = r.lane_), 0) = 0
ON DUPLICATE KEY UPDATE audit.id = audit.id

-- audit_released
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT ? AS id_, ? AS actor_, ? AS role_, ? AS address_, ? AS via_, ? AS action_, ? AS target_,
      ? AS detail_, ? AS at_, ? AS lane_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN gates.held_until = r.at_ AND gates.held_since = 0 THEN 1 ELSE 0 END)
  FROM gates FORCE INDEX (`PRIMARY`)
  WHERE gates.lane = r.lane_), 0) = 1
ON DUPLICATE KEY UPDATE audit.id = audit.id

-- audit_closed
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT ? AS id_, ? AS actor_, ? AS role_, ? AS address_, ? AS via_, ? AS action_, ? AS target_,
      ? AS detail_, ? AS at_, ? AS lane_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN gates.closed_at = r.at_ AND gates.moved_by = '' THEN 1 ELSE 0 END)
  FROM gates FORCE INDEX (`PRIMARY`)
  WHERE gates.lane = r.lane_), 0) = 1
ON DUPLICATE KEY UPDATE audit.id = audit.id

-- audit_accepted
INSERT INTO audit (id, actor, role, address, via, action, target, detail)
SELECT r.id_, r.actor_, r.role_, r.address_, r.via_, r.action_, r.target_, r.detail_
FROM
  (SELECT ? AS id_, ? AS actor_, ? AS role_, ? AS address_, ? AS via_, ? AS action_, ? AS target_,
      ? AS detail_, ? AS event_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
WHERE COALESCE((SELECT MAX(CASE WHEN 1 = 1 THEN 1 ELSE 0 END)
  FROM events FORCE INDEX (`PRIMARY`)
  WHERE events.id = r.event_), 0) = 1
ON DUPLICATE KEY UPDATE audit.id = audit.id

-- lock_gate
SELECT gates.lane AS lane
FROM
  (SELECT ? AS lane_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN gates FORCE INDEX (`PRIMARY`)
WHERE gates.lane = r.lane_
FOR UPDATE

-- old_audits
SELECT id
FROM audit FORCE INDEX (`PRIMARY`)
WHERE id < ?
ORDER BY id
LIMIT ?

-- delete_audits
DELETE `audit`
FROM
  (SELECT ? AS id_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN audit FORCE INDEX (`PRIMARY`)
WHERE audit.id = r.id_
