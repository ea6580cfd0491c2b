-- insert_taken_jobs
INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error,
    created_at, finished_at, scheduled_at)
SELECT r.id_, events.id, r.lane_, NULL, CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN 'running' ELSE
    'available' END, CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN 1 ELSE 0 END, r.max_attempts_,
    CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN r.until_ ELSE r.due_at_ END,
    CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN r.lease_ ELSE NULL END, '', r.due_at_, NULL,
    CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN r.due_at_ ELSE NULL END
FROM
  (SELECT ? AS id_, ? AS lane_, ? AS max_attempts_, ? AS until_, ? AS due_at_, ? AS lease_, ? AS now_,
      ? AS free_, ? AS source_, ? AS event_id_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN events FORCE INDEX (`PRIMARY`)
LEFT JOIN gates ON gates.lane = r.lane_
  AND (gates.open_until <> 0 OR gates.closed_at > r.now_ - 10000 AND gates.closed_at <= r.now_ + 10000 OR
      gates.held_until > r.free_)
LEFT JOIN gates held ON held.lane = r.source_
  AND held.held_until > r.now_
WHERE events.id = r.event_id_
ON DUPLICATE KEY UPDATE jobs.id = jobs.id

-- taken_at_once
SELECT jobs.id, jobs.lease
FROM
  (SELECT ? AS id_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
WHERE jobs.id = r.id_
