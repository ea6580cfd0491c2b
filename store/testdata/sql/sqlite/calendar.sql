-- marks
SELECT cron_marks.source, cron_marks.schedule, cron_marks.until_at
FROM cron_marks
WHERE cron_marks.source = ?

-- insert_mark
INSERT OR FAIL INTO cron_marks (source, schedule, until_at)
VALUES (?, ?, ?)
ON CONFLICT DO NOTHING

-- move_mark
UPDATE cron_marks
SET schedule = ?, until_at = ?
WHERE cron_marks.source = ?
  AND (cron_marks.until_at < ? OR cron_marks.schedule <> ?)
