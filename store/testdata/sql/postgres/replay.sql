-- hold_events
SELECT events.id AS event
FROM unnest(?::text[]) AS r(id_), events
WHERE events.id = r.id_
FOR UPDATE OF events

-- replayed
SELECT jobs.id AS job
FROM unnest(?::text[]) AS r(id_), jobs
WHERE jobs.id = r.id_
