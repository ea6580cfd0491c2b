-- hold_lane
UPDATE gates
SET held_since = CASE WHEN held_until > r.now_ THEN held_since ELSE r.since_ END, hold_reason = r.reason_,
    held_until = r.until_
FROM
  (SELECT column1 AS now_, column2 AS since_, column3 AS reason_, column4 AS until_, column5 AS lane_
  FROM (VALUES (?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?)/*row*/)) AS r
WHERE gates.lane = r.lane_

-- unhold_lanes
UPDATE gates
SET held_since = 0, hold_reason = NULL, held_until = r.ended_
FROM
  (SELECT column1 AS ended_, column2 AS lane_, column3 AS now_
  FROM (VALUES (?, ?, ?)/*row*/, (?, ?, ?)/*row*/)) AS r
WHERE gates.lane = r.lane_
  AND gates.held_until > r.now_

-- holding
SELECT lane, held_since, held_until, hold_reason
FROM gates
WHERE lane > ''
  AND held_until > ?
ORDER BY lane
