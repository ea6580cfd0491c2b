-- replayed
SELECT jobs.id AS job
FROM jobs
WHERE jobs.id = ?
