-- over_jobs
SELECT id, event_id, attempt, finished_at
FROM jobs FORCE INDEX (`jobs_finished`)
WHERE finished_at < ?
  AND NOT EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id)
ORDER BY finished_at, id
LIMIT ?

-- over_runs
SELECT id, event_id, seq, finished_at
FROM runs FORCE INDEX (`runs_finished`)
WHERE finished_at < ?
ORDER BY finished_at, id
LIMIT ?

-- over_events
SELECT events.id AS looked, CASE WHEN events.created_at < ? AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.event_id = events.id) AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.event_id = events.id) THEN events.id END AS over_id, events.created_at
FROM
  (SELECT id, created_at
  FROM events FORCE INDEX (`PRIMARY`)
  WHERE id > ?
    AND id < ?
  ORDER BY id
  LIMIT ?) AS events
ORDER BY events.id

-- purge_jobs
DELETE `jobs`
FROM
  (SELECT ? AS id_, ? AS before_/*row*/
  UNION ALL SELECT ?, ?/*row*/) AS r
STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`)
WHERE jobs.id = r.id_
  AND jobs.finished_at < r.before_
  AND NOT EXISTS
  (SELECT 1
  FROM line_slots
  WHERE line_slots.line = jobs.line
    AND line_slots.job_id = jobs.id)

-- purge_attempts
DELETE `attempts`
FROM
  (SELECT ? AS id_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN attempts FORCE INDEX (`PRIMARY`)
WHERE attempts.job_id = r.id_
  AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.id = attempts.job_id)

-- purge_events
DELETE `events`
FROM
  (SELECT ? AS id_, ? AS before_/*row*/
  UNION ALL SELECT ?, ?/*row*/) AS r
STRAIGHT_JOIN events FORCE INDEX (`PRIMARY`)
WHERE events.id = r.id_
  AND events.created_at < r.before_
  AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.event_id = events.id)
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.event_id = events.id)

-- purge_runs
DELETE `runs`
FROM
  (SELECT ? AS id_, ? AS before_/*row*/
  UNION ALL SELECT ?, ?/*row*/) AS r
STRAIGHT_JOIN runs FORCE INDEX (`PRIMARY`)
WHERE runs.id = r.id_
  AND runs.finished_at < r.before_

-- purge_steps
DELETE `steps`
FROM
  (SELECT ? AS run_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN steps FORCE INDEX (`steps_path`)
WHERE steps.run_id = r.run_
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.id = steps.run_id)

-- purge_texts
DELETE `step_texts`
FROM
  (SELECT ? AS run_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN step_texts FORCE INDEX (`PRIMARY`)
WHERE step_texts.run_id = r.run_
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.id = step_texts.run_id)

-- purge_history
DELETE `history`
FROM
  (SELECT ? AS run_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN history FORCE INDEX (`PRIMARY`)
WHERE history.run_id = r.run_
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.id = history.run_id)

-- purge_callbacks
DELETE `callbacks`
FROM
  (SELECT ? AS run_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN callbacks FORCE INDEX (`callbacks_step`)
WHERE callbacks.run_id = r.run_
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.id = callbacks.run_id)

-- pick_attempts
SELECT job_id, lease
FROM attempts
WHERE job_id = ?
LIMIT ?

-- delete_attempts
DELETE `attempts`
FROM
  (SELECT ? AS id_, ? AS lease_/*row*/
  UNION ALL SELECT ?, ?/*row*/) AS r
STRAIGHT_JOIN attempts FORCE INDEX (`PRIMARY`)
WHERE attempts.job_id = r.id_
  AND attempts.lease = r.lease_
  AND NOT EXISTS
  (SELECT 1
  FROM jobs
  WHERE jobs.id = attempts.job_id)

-- pick_steps
SELECT id
FROM steps FORCE INDEX (`steps_path`)
WHERE run_id = ?
LIMIT ?

-- delete_steps
DELETE `steps`
FROM
  (SELECT ? AS id_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN steps FORCE INDEX (`PRIMARY`)
WHERE steps.id = r.id_
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.id = steps.run_id)

-- pick_texts
SELECT run_id, name
FROM step_texts FORCE INDEX (`PRIMARY`)
WHERE run_id = ?
LIMIT ?

-- delete_texts
DELETE `step_texts`
FROM
  (SELECT ? AS run_, ? AS name_/*row*/
  UNION ALL SELECT ?, ?/*row*/) AS r
STRAIGHT_JOIN step_texts FORCE INDEX (`PRIMARY`)
WHERE step_texts.run_id = r.run_
  AND step_texts.name = r.name_
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.id = step_texts.run_id)

-- pick_history
SELECT run_id, seq
FROM history
WHERE run_id = ?
LIMIT ?

-- delete_history
DELETE `history`
FROM
  (SELECT ? AS run_, ? AS seq_/*row*/
  UNION ALL SELECT ?, ?/*row*/) AS r
STRAIGHT_JOIN history FORCE INDEX (`PRIMARY`)
WHERE history.run_id = r.run_
  AND history.seq = r.seq_
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.id = history.run_id)

-- pick_callbacks
SELECT token_hash
FROM callbacks FORCE INDEX (`callbacks_step`)
WHERE run_id = ?
LIMIT ?

-- delete_callbacks
DELETE `callbacks`
FROM
  (SELECT ? AS hash_/*row*/
  UNION ALL SELECT ?/*row*/) AS r
STRAIGHT_JOIN callbacks FORCE INDEX (`PRIMARY`)
WHERE callbacks.token_hash = r.hash_
  AND NOT EXISTS
  (SELECT 1
  FROM runs
  WHERE runs.id = callbacks.run_id)
