-- insert_taken_jobs
INSERT OR FAIL INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease,
    last_error, created_at, finished_at, scheduled_at)
SELECT ?, events.id, ?, NULL, CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN 'running' ELSE
    'available' END, CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN 1 ELSE 0 END, ?,
    CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN ? ELSE ? END,
    CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN ? ELSE NULL END, '', ?5, NULL,
    CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN ?5 ELSE NULL END
FROM events
LEFT JOIN gates ON gates.lane = ?2
  AND (gates.open_until <> 0 OR gates.closed_at > ? - 10000 AND gates.closed_at <= ?7 + 10000 OR
      gates.held_until > ?)
LEFT JOIN gates held ON held.lane = ?
  AND held.held_until > ?7
WHERE events.id = ?
ON CONFLICT DO NOTHING

-- taken_at_once
SELECT jobs.id, jobs.lease
FROM jobs
WHERE jobs.id = ?
