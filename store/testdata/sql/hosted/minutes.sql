-- insert_minutes
INSERT INTO minutes (at, lane, process, accepted, completed, failed, dead)
VALUES (?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?)/*row*/
ON CONFLICT DO NOTHING

-- raise_minutes
UPDATE minutes
SET accepted = r.accepted_, completed = r.completed_, failed = r.failed_, dead = r.dead_
FROM
  (SELECT column1 AS accepted_, column2 AS completed_, column3 AS failed_, column4 AS dead_, column5 AS at_,
      column6 AS lane_, column7 AS process_, column8 AS sum_
  FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?, ?)/*row*/)) AS r
WHERE minutes.at = r.at_
  AND minutes.lane = r.lane_
  AND minutes.process = r.process_
  AND minutes.accepted + minutes.completed + minutes.failed + minutes.dead < r.sum_ + 0

-- sum_minutes
SELECT lane, span, SUM(CASE WHEN process = '' THEN accepted ELSE 0 END) AS whole,
    SUM(CASE WHEN process = '' THEN 0 ELSE accepted END) AS accepted_sum, SUM(completed) AS completed_sum,
    SUM(failed) AS failed_sum, SUM(dead) AS dead_sum
FROM
  (SELECT lane, process, at - at % (? + 0) AS span, accepted, completed, failed, dead
  FROM minutes
  WHERE at >= ?
    AND at < ?) AS counted GROUP BY lane, span

-- received
SELECT r.source_ AS source,
  (SELECT COUNT(*)
  FROM events
  WHERE events.source = r.same_
    AND events.id >= r.from_
    AND events.source = r.other_
    AND events.id < r.below_) AS n
FROM
  (SELECT column1 AS source_, column2 AS same_, column3 AS from_, column4 AS other_, column5 AS below_
  FROM (VALUES (?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?)/*row*/)) AS r
WHERE 1 = 1

-- oldest_minute
SELECT MIN(at) AS at
FROM minutes

-- purge_minutes
DELETE
FROM minutes
WHERE at < ?
