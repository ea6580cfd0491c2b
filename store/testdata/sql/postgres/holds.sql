-- hold_lane
UPDATE gates
SET held_since = CASE WHEN held_until > r.now_ THEN held_since ELSE r.since_ END, hold_reason = r.reason_,
    held_until = r.until_
FROM
  (SELECT unnest(?::bigint[]) AS now_, unnest(?::bigint[]) AS since_, unnest(?::text[]) AS reason_,
      unnest(?::bigint[]) AS until_, unnest(?::text[]) AS lane_) AS r
WHERE gates.lane = r.lane_

-- unhold_lanes
UPDATE gates
SET held_since = 0, hold_reason = NULL, held_until = r.ended_
FROM
  (SELECT unnest(?::bigint[]) AS ended_, unnest(?::text[]) AS lane_, unnest(?::bigint[]) AS now_) AS r
WHERE gates.lane = r.lane_
  AND gates.held_until > r.now_

-- holding
SELECT lane, held_since, held_until, hold_reason
FROM gates
WHERE lane > ''
  AND held_until > ?
ORDER BY lane
