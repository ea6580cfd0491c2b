-- slice_attempts
SELECT slice.owner,
  (SELECT COUNT(*)
  FROM jobs
  WHERE jobs.id = slice.owner) AS owners
FROM
  (SELECT job_id AS owner
  FROM attempts FORCE INDEX (`PRIMARY`)
  WHERE job_id > ?
  ORDER BY job_id
  LIMIT ?) AS slice
ORDER BY slice.owner

-- slice_steps
SELECT slice.owner,
  (SELECT COUNT(*)
  FROM runs
  WHERE runs.id = slice.owner) AS owners
FROM
  (SELECT run_id AS owner
  FROM steps FORCE INDEX (`steps_path`)
  WHERE run_id > ?
  ORDER BY run_id
  LIMIT ?) AS slice
ORDER BY slice.owner

-- slice_texts
SELECT slice.owner,
  (SELECT COUNT(*)
  FROM runs
  WHERE runs.id = slice.owner) AS owners
FROM
  (SELECT run_id AS owner
  FROM step_texts FORCE INDEX (`PRIMARY`)
  WHERE run_id > ?
  ORDER BY run_id
  LIMIT ?) AS slice
ORDER BY slice.owner

-- slice_history
SELECT slice.owner,
  (SELECT COUNT(*)
  FROM runs
  WHERE runs.id = slice.owner) AS owners
FROM
  (SELECT run_id AS owner
  FROM history FORCE INDEX (`PRIMARY`)
  WHERE run_id > ?
  ORDER BY run_id
  LIMIT ?) AS slice
ORDER BY slice.owner

-- slice_callbacks
SELECT slice.owner,
  (SELECT COUNT(*)
  FROM runs
  WHERE runs.id = slice.owner) AS owners
FROM
  (SELECT run_id AS owner
  FROM callbacks FORCE INDEX (`callbacks_step`)
  WHERE run_id > ?
  ORDER BY run_id
  LIMIT ?) AS slice
ORDER BY slice.owner

-- idle_gates
SELECT lane
FROM gates FORCE INDEX (`PRIMARY`)
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
LIMIT ?

-- forget_gates
DELETE `gates`
FROM
  (SELECT ? AS lane_, ? AS closed_, ? AS until_, ? AS next_, ? AS held_/*row*/
  UNION ALL SELECT ?, ?, ?, ?, ?/*row*/) AS r
STRAIGHT_JOIN gates FORCE INDEX (`PRIMARY`)
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
