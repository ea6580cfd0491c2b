-- insert_gates
INSERT OR FAIL INTO gates (lane, failures, open_until, closed_at, moved_by, taker, base_us, next_us,
    stray_since)
VALUES (?, 0, 0, 0, '', '', 0, 0, NULL)
ON CONFLICT DO NOTHING

-- gates
SELECT gates.lane, gates.failures, gates.open_until, gates.closed_at, gates.next_us, gates.moved_by,
    gates.held_since, gates.held_until, gates.opened_at, gates.openings, gates.stray_since
FROM gates
WHERE gates.lane = ?

-- all_gates
SELECT gates.lane, gates.failures, gates.open_until, gates.closed_at, gates.next_us, gates.moved_by,
    gates.held_since, gates.held_until, gates.opened_at, gates.openings, gates.stray_since
FROM gates

-- succeed
UPDATE gates
SET closed_at = CASE WHEN gates.open_until <> 0 THEN ? ELSE closed_at END,
    moved_by = CASE WHEN gates.open_until <> 0 THEN ? ELSE moved_by END,
    taker = CASE WHEN gates.open_until <> 0 THEN '' ELSE taker END, open_until = 0, failures = 0
WHERE gates.lane = ?
  AND gates.failures > 0
  AND (gates.open_until = 0 OR gates.taker = ?)
  AND EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.id = ?
    AND jobs.status = 'running'
    AND jobs.lease = ?)

-- fail
UPDATE gates
SET moved_by = CASE WHEN gates.open_until <> 0 THEN '' WHEN failures >= ? THEN ? ELSE moved_by END,
    taker = CASE WHEN gates.open_until <> 0 OR failures >= ? THEN '' ELSE taker END,
    opened_at = CASE WHEN gates.open_until = 0 AND failures >= ? THEN ? ELSE opened_at END,
    openings = CASE WHEN gates.open_until = 0 AND failures >= ? THEN openings + 1 ELSE openings END,
    open_until = CASE WHEN gates.open_until <> 0 OR failures >= ? THEN ? ELSE open_until END,
    failures = failures + 1
WHERE lane = ?
  AND (gates.open_until = 0 OR gates.taker = ?)
  AND EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.id = ?
    AND jobs.status = 'running'
    AND jobs.lease = ?)

-- end_probe
UPDATE gates
SET open_until = ?, taker = ''
WHERE gates.lane = ?
  AND gates.open_until <> 0
  AND gates.taker = ?

-- close_gates
UPDATE gates
SET closed_at = CASE WHEN gates.open_until <> 0 THEN ? ELSE closed_at END, moved_by = '',
    taker = CASE WHEN gates.open_until <> 0 THEN '' ELSE taker END, open_until = 0, failures = 0
WHERE gates.lane = ?
  AND gates.failures > 0

-- mark_strays
UPDATE gates
SET stray_since = ?
WHERE gates.lane = ?
  AND gates.stray_since IS NULL

-- set_back
UPDATE gates
SET failures = 0, open_until = 0, closed_at = 0, moved_by = '', taker = '', base_us = 0, next_us = 0,
    opened_at = 0, openings = 0
WHERE gates.lane = ?
  AND gates.stray_since <= ?

-- clear_strays
UPDATE gates
SET stray_since = NULL
WHERE gates.lane = ?
