-- replayed
SELECT jobs.id AS job
FROM
  (SELECT column1 AS id_
  FROM (VALUES (?)/*row*/, (?)/*row*/)) AS r
CROSS JOIN jobs
WHERE jobs.id = r.id_
