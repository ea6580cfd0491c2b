-- hold_events
SELECT events.id AS event
FROM
  (SELECT unnest(?::text[]) AS id_) AS r, events
WHERE events.id = r.id_
FOR UPDATE OF events

-- replayed
SELECT jobs.id AS job
FROM
  (SELECT unnest(?::text[]) AS id_) AS r, jobs
WHERE jobs.id = r.id_
