-- marks
SELECT cron_marks.source, cron_marks.schedule, cron_marks.until_at
FROM
  (SELECT ? AS source_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN cron_marks FORCE INDEX (`PRIMARY`)
WHERE cron_marks.source = r.source_

-- insert_mark
INSERT INTO cron_marks (source, schedule, until_at)
VALUES (?, ?, ?)/*row*/, (?, ?, ?)/*row*/
ON DUPLICATE KEY UPDATE cron_marks.source = cron_marks.source

-- move_mark
UPDATE
  (SELECT ? AS schedule_, ? AS until_at_, ? AS source_, ? AS later_, ? AS other_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN cron_marks FORCE INDEX (`PRIMARY`)
SET schedule = r.schedule_, until_at = r.until_at_
WHERE cron_marks.source = r.source_
  AND (cron_marks.until_at < r.later_ OR cron_marks.schedule <> r.other_)
