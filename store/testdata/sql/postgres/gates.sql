-- insert_gates
INSERT INTO gates (lane, failures, open_until, closed_at, moved_by, taker, base_us, next_us, stray_since)
SELECT r.lane_, 0, 0, 0, '', '', 0, 0, NULL
FROM
  (SELECT unnest(?::text[]) AS lane_) AS r
WHERE 1 = 1
ON CONFLICT DO NOTHING

-- gates
SELECT gates.lane, gates.failures, gates.open_until, gates.closed_at, gates.next_us, gates.moved_by,
    gates.held_since, gates.held_until, gates.opened_at, gates.openings, gates.stray_since
FROM
  (SELECT unnest(?::text[]) AS lane_) AS r, gates
WHERE gates.lane = r.lane_

-- all_gates
SELECT gates.lane, gates.failures, gates.open_until, gates.closed_at, gates.next_us, gates.moved_by,
    gates.held_since, gates.held_until, gates.opened_at, gates.openings, gates.stray_since
FROM gates

-- succeed
UPDATE gates
SET closed_at = CASE WHEN gates.open_until <> 0 THEN r.closed_at_ ELSE closed_at END,
    moved_by = CASE WHEN gates.open_until <> 0 THEN r.moved_by_ ELSE moved_by END,
    taker = CASE WHEN gates.open_until <> 0 THEN '' ELSE taker END, open_until = 0, failures = 0
FROM
  (SELECT unnest(?::bigint[]) AS closed_at_, unnest(?::text[]) AS moved_by_, unnest(?::text[]) AS lane_,
      unnest(?::text[]) AS taker_, unnest(?::text[]) AS id_, unnest(?::text[]) AS lease_) AS r
WHERE gates.lane = r.lane_
  AND gates.failures > 0
  AND (gates.open_until = 0 OR gates.taker = r.taker_)
  AND EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.id = r.id_
    AND jobs.status = 'running'
    AND jobs.lease = r.lease_)

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
SET open_until = r.open_until_, taker = ''
FROM
  (SELECT unnest(?::bigint[]) AS open_until_, unnest(?::text[]) AS lane_, unnest(?::text[]) AS taker_) AS r
WHERE gates.lane = r.lane_
  AND gates.open_until <> 0
  AND gates.taker = r.taker_

-- close_gates
UPDATE gates
SET closed_at = CASE WHEN gates.open_until <> 0 THEN r.closed_at_ ELSE closed_at END, moved_by = '',
    taker = CASE WHEN gates.open_until <> 0 THEN '' ELSE taker END, open_until = 0, failures = 0
FROM
  (SELECT unnest(?::bigint[]) AS closed_at_, unnest(?::text[]) AS lane_) AS r
WHERE gates.lane = r.lane_
  AND gates.failures > 0

-- mark_strays
UPDATE gates
SET stray_since = r.since_
FROM
  (SELECT unnest(?::bigint[]) AS since_, unnest(?::text[]) AS lane_) AS r
WHERE gates.lane = r.lane_
  AND gates.stray_since IS NULL

-- set_back
UPDATE gates
SET failures = 0, open_until = 0, closed_at = 0, moved_by = '', taker = '', base_us = 0, next_us = 0,
    opened_at = 0, openings = 0
FROM
  (SELECT unnest(?::text[]) AS lane_, unnest(?::bigint[]) AS before_) AS r
WHERE gates.lane = r.lane_
  AND gates.stray_since <= r.before_

-- clear_strays
UPDATE gates
SET stray_since = NULL
FROM
  (SELECT unnest(?::text[]) AS lane_) AS r
WHERE gates.lane = r.lane_
