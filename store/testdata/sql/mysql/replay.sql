-- hold_events
SELECT events.id AS event
FROM
  (SELECT ? AS id_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN events FORCE INDEX (`PRIMARY`)
WHERE events.id = r.id_
FOR UPDATE

-- replayed
SELECT jobs.id AS job
FROM
  (SELECT ? AS id_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
WHERE jobs.id = r.id_
