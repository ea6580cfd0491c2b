-- marks
SELECT cron_marks.source, cron_marks.schedule, cron_marks.until_at
FROM
  (SELECT unnest(?::text[]) AS source_) AS r, cron_marks
WHERE cron_marks.source = r.source_

-- insert_mark
INSERT INTO cron_marks (source, schedule, until_at)
SELECT r.source_, r.schedule_, r.until_at_
FROM
  (SELECT unnest(?::text[]) AS source_, unnest(?::text[]) AS schedule_, unnest(?::bigint[]) AS until_at_) AS r
WHERE 1 = 1
ON CONFLICT DO NOTHING

-- move_mark
UPDATE cron_marks
SET schedule = r.schedule_, until_at = r.until_at_
FROM
  (SELECT unnest(?::text[]) AS schedule_, unnest(?::bigint[]) AS until_at_, unnest(?::text[]) AS source_,
      unnest(?::bigint[]) AS later_, unnest(?::text[]) AS other_) AS r
WHERE cron_marks.source = r.source_
  AND (cron_marks.until_at < r.later_ OR cron_marks.schedule <> r.other_)
