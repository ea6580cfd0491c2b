-- insert_taken_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at, scheduled_at)
SELECT r.id_, events.id, r.lane_, NULL, CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN 'running' ELSE
    'available' END, CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN 1 ELSE 0 END, r.max_attempts_,
    CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN r.until_ ELSE r.due_at_ END,
    CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN r.lease_ ELSE NULL END, '', r.due_at_, NULL,
    CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN r.due_at_ ELSE NULL END
FROM
  (SELECT unnest(?::text[]) AS id_, unnest(?::text[]) AS lane_, unnest(?::bigint[]) AS max_attempts_,
      unnest(?::bigint[]) AS until_, unnest(?::bigint[]) AS due_at_, unnest(?::text[]) AS lease_,
      unnest(?::bigint[]) AS now_, unnest(?::bigint[]) AS free_, unnest(?::text[]) AS source_,
      unnest(?::text[]) AS event_id_) AS r
CROSS JOIN events
LEFT JOIN gates ON gates.lane = r.lane_
  AND (gates.open_until <> 0 OR gates.closed_at > r.now_ - 10000 AND gates.closed_at <= r.now_ + 10000 OR
      gates.held_until > r.free_)
LEFT JOIN gates held ON held.lane = r.source_
  AND held.held_until > r.now_
WHERE events.id = r.event_id_
  AND
  (SELECT stored.id
  FROM jobs AS stored
  WHERE stored.id = r.id_) IS NULL
ORDER BY 3, 4, 1
RETURNING jobs.id, jobs.lease

-- taken_at_once
SELECT jobs.id, jobs.lease
FROM
  (SELECT unnest(?::text[]) AS id_) AS r
CROSS JOIN jobs
WHERE jobs.id = r.id_
