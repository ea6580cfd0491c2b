-- insert_minutes
INSERT INTO minutes (at, lane, process, accepted, completed, failed, dead)
SELECT r.at_, r.lane_, r.process_, r.accepted_, r.completed_, r.failed_, r.dead_
FROM
  (SELECT unnest(?::bigint[]) AS at_, unnest(?::text[]) AS lane_, unnest(?::text[]) AS process_,
      unnest(?::bigint[]) AS accepted_, unnest(?::bigint[]) AS completed_, unnest(?::bigint[]) AS failed_,
      unnest(?::bigint[]) AS dead_) AS r
WHERE 1 = 1
ON CONFLICT DO NOTHING

-- raise_minutes
UPDATE minutes
SET accepted = r.accepted_, completed = r.completed_, failed = r.failed_, dead = r.dead_
FROM
  (SELECT unnest(?::bigint[]) AS accepted_, unnest(?::bigint[]) AS completed_, unnest(?::bigint[]) AS failed_,
      unnest(?::bigint[]) AS dead_, unnest(?::bigint[]) AS at_, unnest(?::text[]) AS lane_,
      unnest(?::text[]) AS process_, unnest(?::bigint[]) AS sum_) AS r
WHERE minutes.at = r.at_
  AND minutes.lane = r.lane_
  AND minutes.process = r.process_
  AND minutes.accepted + minutes.completed + minutes.failed + minutes.dead < r.sum_ + 0

-- sum_minutes
SELECT lane, span, SUM(CASE WHEN process = '' THEN accepted ELSE 0 END)::bigint AS whole,
    SUM(CASE WHEN process = '' THEN 0 ELSE accepted END)::bigint AS accepted_sum,
    SUM(completed)::bigint AS completed_sum, SUM(failed)::bigint AS failed_sum,
    SUM(dead)::bigint AS dead_sum FROM
  (SELECT lane, process, at - at % (?::bigint) AS span, accepted, completed, failed, dead
  FROM minutes
  WHERE at >= ?
    AND at < ?) AS counted GROUP BY lane, span

-- received
SELECT r.source_ AS source,
  (SELECT COUNT(*)
  FROM events
  WHERE (events.source, events.id) >= (r.same_, r.from_)
    AND (events.source, events.id) < (r.other_, r.below_)) AS n
FROM
  (SELECT unnest(?::text[]) AS source_, unnest(?::text[]) AS same_, unnest(?::text[]) AS from_,
      unnest(?::text[]) AS other_, unnest(?::text[]) AS below_) AS r
WHERE 1 = 1

-- oldest_minute
SELECT MIN(at) AS at
FROM minutes

-- purge_minutes
DELETE
FROM minutes
WHERE at < ?
