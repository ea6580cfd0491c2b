-- marks
SELECT cron_marks.source, cron_marks.schedule, cron_marks.until_at
FROM unnest(?::text[]) AS r(source_), cron_marks
WHERE cron_marks.source = r.source_

-- insert_mark
INSERT INTO cron_marks (source, schedule, until_at)
SELECT r.source_, r.schedule_, r.until_at_
FROM unnest(?::text[], ?::text[], ?::bigint[]) AS r(source_, schedule_, until_at_)
WHERE 1 = 1
ON CONFLICT DO NOTHING

-- move_mark
UPDATE cron_marks
SET schedule = r.schedule_, until_at = r.until_at_
FROM unnest(?::text[], ?::bigint[], ?::text[], ?::bigint[], ?::text[]) AS r(schedule_, until_at_, source_,
    later_, other_)
WHERE cron_marks.source = r.source_
  AND (cron_marks.until_at < r.later_ OR cron_marks.schedule <> r.other_)
