-- insert_minutes
INSERT INTO minutes (at, lane, process, accepted, completed, failed, dead)
SELECT r.at_, r.lane_, r.process_, r.accepted_, r.completed_, r.failed_, r.dead_
FROM unnest(?::bigint[], ?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[]) AS r(at_,
    lane_, process_, accepted_, completed_, failed_, dead_)
WHERE 1 = 1
ON CONFLICT DO NOTHING

-- raise_minutes
UPDATE minutes
SET accepted = r.accepted_, completed = r.completed_, failed = r.failed_, dead = r.dead_
FROM unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::text[], ?::text[],
    ?::bigint[]) AS r(accepted_, completed_, failed_, dead_, at_, lane_, process_, sum_)
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
FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::text[]) AS r(source_, same_, from_, other_, below_)
WHERE 1 = 1

-- oldest_minute
SELECT MIN(at) AS at
FROM minutes

-- purge_minutes
DELETE
FROM minutes
WHERE at < ?
