-- marks
SELECT cron_marks.source, cron_marks.schedule, cron_marks.until_at
FROM
  (SELECT column1 AS source_
  FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
CROSS JOIN cron_marks
WHERE cron_marks.source = r.source_

-- insert_mark
INSERT INTO cron_marks (source, schedule, until_at)
VALUES (?, ?, ?)/*row*/, (?, ?, ?)/*row*/
ON CONFLICT DO NOTHING

-- move_mark
UPDATE cron_marks
SET schedule = r.schedule_, until_at = r.until_at_
FROM
  (SELECT column1 AS schedule_, column2 AS until_at_, column3 AS source_, column4 AS later_, column5 AS other_
  FROM (VALUES (?, ?, ?, ?, ?)/*row*/, (?, ?, ?, ?, ?)/*row*/)) AS r
WHERE cron_marks.source = r.source_
  AND (cron_marks.until_at < r.later_ OR cron_marks.schedule <> r.other_)
