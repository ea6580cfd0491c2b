-- insert_minutes
INSERT INTO minutes (at, lane, process, accepted, completed, failed, dead)
VALUES (?, ?, ?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?, ?, ?)/*row*/
ON DUPLICATE KEY UPDATE minutes.at = minutes.at

-- raise_minutes
UPDATE
  (SELECT ? AS accepted_, ? AS completed_, ? AS failed_, ? AS dead_, ? AS at_, ? AS lane_, ? AS process_,
      ? AS sum_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN minutes FORCE INDEX (`PRIMARY`)
SET accepted = r.accepted_, completed = r.completed_, failed = r.failed_, dead = r.dead_
WHERE minutes.at = r.at_
  AND minutes.lane = r.lane_
  AND minutes.process = r.process_
  AND minutes.accepted + minutes.completed + minutes.failed + minutes.dead < r.sum_ + 0

-- sum_minutes
SELECT lane, span, CAST(SUM(CASE WHEN process = '' THEN accepted ELSE 0 END) AS SIGNED) AS whole,
    CAST(SUM(CASE WHEN process = '' THEN 0 ELSE accepted END) AS SIGNED) AS accepted_sum,
    CAST(SUM(completed) AS SIGNED) AS completed_sum, CAST(SUM(failed) AS SIGNED) AS failed_sum,
    CAST(SUM(dead) AS SIGNED) AS dead_sum
FROM
  (SELECT lane, process, at - at % (?) AS span, accepted, completed, failed, dead
  FROM minutes FORCE INDEX (`PRIMARY`)
  WHERE at >= ?
    AND at < ?) AS counted GROUP BY lane, span

-- received
SELECT ? AS source,
  (SELECT COUNT(*)
  FROM events FORCE INDEX (`events_by_source`)
  WHERE events.source = ?
    AND events.id >= ?
    AND events.source = ?
    AND events.id < ?) AS n
WHERE 1 = 1

-- oldest_minute
SELECT MIN(at) AS at
FROM minutes

-- purge_minutes
DELETE
FROM minutes
WHERE at < ?
