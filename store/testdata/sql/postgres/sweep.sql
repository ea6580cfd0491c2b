-- slice_attempts
SELECT slice.owner,
  (SELECT COUNT(*)
  FROM jobs
  WHERE jobs.id = slice.owner) AS owners
FROM
  (SELECT job_id AS owner
  FROM attempts
  WHERE job_id > ?
  ORDER BY job_id
  LIMIT ?::bigint) AS slice
ORDER BY slice.owner

-- slice_steps
SELECT slice.owner,
  (SELECT COUNT(*)
  FROM runs
  WHERE runs.id = slice.owner) AS owners
FROM
  (SELECT run_id AS owner
  FROM steps
  WHERE run_id > ?
  ORDER BY run_id
  LIMIT ?::bigint) AS slice
ORDER BY slice.owner

-- slice_texts
SELECT slice.owner,
  (SELECT COUNT(*)
  FROM runs
  WHERE runs.id = slice.owner) AS owners
FROM
  (SELECT run_id AS owner
  FROM step_texts
  WHERE run_id > ?
  ORDER BY run_id
  LIMIT ?::bigint) AS slice
ORDER BY slice.owner

-- slice_history
SELECT slice.owner,
  (SELECT COUNT(*)
  FROM runs
  WHERE runs.id = slice.owner) AS owners
FROM
  (SELECT run_id AS owner
  FROM history
  WHERE run_id > ?
  ORDER BY run_id
  LIMIT ?::bigint) AS slice
ORDER BY slice.owner

-- slice_callbacks
SELECT slice.owner,
  (SELECT COUNT(*)
  FROM runs
  WHERE runs.id = slice.owner) AS owners
FROM
  (SELECT run_id AS owner
  FROM callbacks
  WHERE run_id > ?
  ORDER BY run_id
  LIMIT ?::bigint) AS slice
ORDER BY slice.owner

-- idle_gates
SELECT lane
FROM gates
WHERE lane > ''
  AND gates.failures = 0
  AND gates.stray_since IS NULL
  AND gates.closed_at < ?
  AND gates.open_until < ?
  AND gates.next_us < ?
  AND gates.held_until < ?
  AND
  (SELECT COUNT(*)
  FROM source_holds
  WHERE source_holds.lane = gates.lane) = 0
LIMIT ?::bigint

-- forget_gates
DELETE
FROM gates
USING
  (SELECT unnest(?::text[]) AS lane_, unnest(?::bigint[]) AS closed_, unnest(?::bigint[]) AS until_,
      unnest(?::bigint[]) AS next_, unnest(?::bigint[]) AS held_) AS r
WHERE gates.lane = r.lane_
  AND gates.failures = 0
  AND gates.stray_since IS NULL
  AND gates.closed_at < r.closed_
  AND gates.open_until < r.until_
  AND gates.next_us < r.next_
  AND gates.held_until < r.held_
  AND
  (SELECT COUNT(*)
  FROM source_holds
  WHERE source_holds.lane = gates.lane) = 0
