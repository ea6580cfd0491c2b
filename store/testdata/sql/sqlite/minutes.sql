-- insert_minutes
INSERT OR FAIL INTO minutes (at, lane, process, accepted, completed, failed, dead)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING

-- raise_minutes
UPDATE minutes
SET accepted = ?, completed = ?, failed = ?, dead = ?
WHERE minutes.at = ?
  AND minutes.lane = ?
  AND minutes.process = ?
  AND minutes.accepted + minutes.completed + minutes.failed + minutes.dead < ? + 0

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
SELECT ? AS source,
  (SELECT COUNT(*)
  FROM events
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
