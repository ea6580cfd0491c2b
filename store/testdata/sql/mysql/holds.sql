-- hold_lane
UPDATE
  (SELECT ? AS now_, ? AS since_, ? AS reason_, ? AS until_, ? AS lane_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN gates FORCE INDEX (`PRIMARY`)
SET held_since = CASE WHEN held_until > r.now_ THEN held_since ELSE r.since_ END, hold_reason = r.reason_,
    held_until = r.until_
WHERE gates.lane = r.lane_

-- unhold_lanes
UPDATE
  (SELECT ? AS ended_, ? AS lane_, ? AS now_/*row*/
  UNION ALL SELECT ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN gates FORCE INDEX (`PRIMARY`)
SET held_since = 0, hold_reason = NULL, held_until = r.ended_
WHERE gates.lane = r.lane_
  AND gates.held_until > r.now_

-- holding
SELECT lane, held_since, held_until, hold_reason
FROM gates FORCE INDEX (`PRIMARY`)
WHERE lane > ''
  AND held_until > ?
ORDER BY lane
