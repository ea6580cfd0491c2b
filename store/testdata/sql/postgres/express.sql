-- insert_taken_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at, scheduled_at)
SELECT r.id_, events.id, r.lane_, NULL, CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN 'running' ELSE
    'available' END, CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN 1 ELSE 0 END, r.max_attempts_,
    CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN r.until_ ELSE r.due_at_ END,
    CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN r.lease_ ELSE NULL END, '', r.created_at_, NULL,
    CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN r.scheduled_at_ ELSE NULL END
FROM unnest(?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::bigint[], ?::text[], ?::bigint[], ?::bigint[],
    ?::text[], ?::bigint[], ?::bigint[], ?::bigint[], ?::text[], ?::bigint[], ?::text[]) AS r(id_, lane_,
    max_attempts_, until_, due_at_, lease_, created_at_, scheduled_at_, gate_, ramp_, horizon_, free_,
    source_, held_, event_id_)
CROSS JOIN events
LEFT JOIN gates ON gates.lane = r.gate_
  AND (gates.open_until <> 0 OR gates.closed_at > r.ramp_ AND gates.closed_at <= r.horizon_ OR
      gates.held_until > r.free_)
LEFT JOIN gates held ON held.lane = r.source_
  AND held.held_until > r.held_
WHERE events.id = r.event_id_
ORDER BY 3, 4, 1
ON CONFLICT DO NOTHING
RETURNING jobs.id, jobs.lease

-- taken_at_once
SELECT jobs.id, jobs.lease
FROM unnest(?::text[]) AS r(id_)
CROSS JOIN jobs
WHERE jobs.id = r.id_
