-- hold_lane
UPDATE gates
SET held_since = CASE WHEN held_until > ? THEN held_since ELSE ? END, hold_reason = ?, held_until = ?
WHERE gates.lane = ?

-- unhold_lanes
UPDATE gates
SET held_since = 0, hold_reason = NULL, held_until = ?
WHERE gates.lane = ?
  AND gates.held_until > ?

-- holding
SELECT lane, held_since, held_until, hold_reason
FROM gates
WHERE lane > ''
  AND held_until > ?
ORDER BY lane
