-- schema_read
SELECT number
FROM schema_steps

-- schema_lock
SELECT pg_advisory_xact_lock(8888118118118)

-- schema_step
CREATE TABLE IF NOT EXISTS events (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  source TEXT COLLATE "C" NOT NULL,
  type TEXT COLLATE "C" NOT NULL,
  payload TEXT NOT NULL,
  content_type TEXT NOT NULL,
  headers TEXT NOT NULL,
  delivery_id TEXT COLLATE "C",
  created_at BIGINT NOT NULL) WITH (autovacuum_vacuum_insert_scale_factor = 0.05)

-- schema_record
INSERT INTO schema_steps (number, applied_at)
VALUES (?, ?)
ON CONFLICT DO NOTHING

-- schema_step
CREATE UNIQUE INDEX IF NOT EXISTS events_delivery ON events (source, delivery_id)
WHERE delivery_id IS NOT NULL

-- schema_step
CREATE TABLE IF NOT EXISTS jobs (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  event_id TEXT COLLATE "C" NOT NULL,
  lane TEXT COLLATE "C" NOT NULL,
  job_key TEXT COLLATE "C",
  status TEXT COLLATE "C" NOT NULL,
  attempt BIGINT NOT NULL,
  max_attempts BIGINT NOT NULL,
  due_at BIGINT,
  lease TEXT COLLATE "C",
  last_error TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  finished_at BIGINT) WITH (fillfactor = 85,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.02)

-- schema_step
CREATE UNIQUE INDEX IF NOT EXISTS jobs_key ON jobs (lane, job_key)
WHERE job_key IS NOT NULL

-- schema_step
CREATE INDEX IF NOT EXISTS jobs_dead ON jobs (lane, id)
WHERE status = 'dead'

-- schema_step
CREATE TABLE IF NOT EXISTS attempts (
  job_id TEXT COLLATE "C" NOT NULL,
  lease TEXT COLLATE "C" NOT NULL,
  attempt BIGINT NOT NULL,
  status_code BIGINT NOT NULL,
  error TEXT NOT NULL,
  response TEXT NOT NULL,
  duration_ms BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (job_id, lease))

-- schema_step
CREATE INDEX IF NOT EXISTS jobs_finished ON jobs (finished_at, id)
WHERE finished_at IS NOT NULL

-- schema_step
CREATE TABLE IF NOT EXISTS cron_marks (
  source TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  schedule TEXT NOT NULL,
  until_at BIGINT NOT NULL)

-- schema_step
CREATE TABLE IF NOT EXISTS gates (
  lane TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  failures BIGINT NOT NULL,
  open_until BIGINT NOT NULL,
  closed_at BIGINT NOT NULL,
  moved_by TEXT COLLATE "C" NOT NULL,
  taker TEXT COLLATE "C" NOT NULL,
  base_us BIGINT NOT NULL,
  next_us BIGINT NOT NULL,
  stray_since BIGINT) WITH (fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 1000)

-- schema_step
CREATE TABLE IF NOT EXISTS definitions (
  hash TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  body TEXT NOT NULL)

-- schema_step
CREATE TABLE IF NOT EXISTS runs (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  workflow TEXT COLLATE "C" NOT NULL,
  event_id TEXT COLLATE "C" NOT NULL,
  definition TEXT COLLATE "C" NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  epoch BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  step TEXT NOT NULL,
  output TEXT,
  error TEXT NOT NULL,
  deadline_at BIGINT,
  created_at BIGINT NOT NULL,
  started_at BIGINT,
  finished_at BIGINT) WITH (fillfactor = 70,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000)

-- schema_step
CREATE INDEX IF NOT EXISTS runs_event ON runs (event_id, id)

-- schema_step
CREATE INDEX IF NOT EXISTS runs_status ON runs (status, id)

-- schema_step
CREATE INDEX IF NOT EXISTS runs_finished ON runs (finished_at, id)
WHERE finished_at IS NOT NULL

-- schema_step
CREATE TABLE IF NOT EXISTS steps (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  run_id TEXT COLLATE "C" NOT NULL,
  epoch BIGINT NOT NULL,
  parent_id TEXT COLLATE "C",
  branch TEXT NOT NULL,
  path TEXT COLLATE "C" NOT NULL,
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  attempt BIGINT NOT NULL,
  state TEXT,
  output TEXT,
  error TEXT NOT NULL,
  carry TEXT NOT NULL,
  fan TEXT NOT NULL,
  leaf_of TEXT COLLATE "C",
  started_at BIGINT,
  finished_at BIGINT) WITH (fillfactor = 85,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 1000)

-- schema_step
CREATE UNIQUE INDEX IF NOT EXISTS steps_path ON steps (run_id, epoch, path)

-- schema_step
CREATE INDEX IF NOT EXISTS steps_leaf ON steps (leaf_of)
WHERE leaf_of IS NOT NULL

-- schema_step
CREATE TABLE IF NOT EXISTS history (
  run_id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  mark TEXT COLLATE "C" NOT NULL,
  at BIGINT,
  epoch BIGINT NOT NULL,
  type TEXT COLLATE "C" NOT NULL,
  path TEXT NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (run_id, seq))

-- schema_step
CREATE TABLE IF NOT EXISTS callbacks (
  token_hash TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  run_id TEXT COLLATE "C" NOT NULL,
  step_id TEXT COLLATE "C" NOT NULL,
  expires_at BIGINT)

-- schema_step
CREATE INDEX IF NOT EXISTS callbacks_step ON callbacks (run_id, step_id)

-- schema_step
CREATE INDEX IF NOT EXISTS jobs_waiting ON jobs (lane, due_at, id, status)
WHERE due_at IS NOT NULL

-- schema_step
DROP INDEX IF EXISTS jobs_due

-- schema_step
CREATE INDEX IF NOT EXISTS jobs_lapsing ON jobs (lane, due_at, id)
WHERE status = 'running'
  AND attempt >= max_attempts

-- schema_step
DROP INDEX IF EXISTS jobs_last

-- schema_step
CREATE TABLE IF NOT EXISTS turns (
  name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  until_at BIGINT NOT NULL,
  holder TEXT COLLATE "C" NOT NULL)

-- schema_step
CREATE INDEX IF NOT EXISTS events_by_source ON events (source, id)

-- schema_step
CREATE INDEX IF NOT EXISTS events_by_kind ON events (type, source, id)

-- schema_step
DROP INDEX IF EXISTS events_by_type

-- schema_step
CREATE INDEX IF NOT EXISTS jobs_done ON jobs (lane, id)
WHERE status = 'completed'

-- schema_step
CREATE TABLE IF NOT EXISTS step_texts (
  run_id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (run_id, name))

-- schema_step
ALTER TABLE steps ADD COLUMN IF NOT EXISTS state_in TEXT COLLATE "C"

-- schema_step
ALTER TABLE steps ADD COLUMN IF NOT EXISTS output_in TEXT COLLATE "C"

-- schema_step
ALTER TABLE runs ADD COLUMN IF NOT EXISTS written BIGINT NOT NULL DEFAULT 0

-- schema_step
ALTER TABLE runs ADD COLUMN IF NOT EXISTS writers TEXT

-- schema_step
ALTER TABLE events ADD COLUMN IF NOT EXISTS encoding TEXT COLLATE "C" NOT NULL DEFAULT ''

-- schema_step
ALTER TABLE steps ADD COLUMN IF NOT EXISTS held_until BIGINT

-- schema_step
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS earlier BIGINT NOT NULL DEFAULT 0

-- schema_step
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS scheduled_at BIGINT

-- schema_step
ALTER TABLE gates ADD COLUMN IF NOT EXISTS held_since BIGINT NOT NULL DEFAULT 0

-- schema_step
ALTER TABLE gates ADD COLUMN IF NOT EXISTS held_until BIGINT NOT NULL DEFAULT 0

-- schema_step
ALTER TABLE gates ADD COLUMN IF NOT EXISTS hold_reason TEXT

-- schema_step
CREATE INDEX IF NOT EXISTS jobs_canceled ON jobs (lane, id)
WHERE status = 'canceled'

-- schema_step
ALTER TABLE gates ADD COLUMN IF NOT EXISTS opened_at BIGINT NOT NULL DEFAULT 0

-- schema_step
ALTER TABLE gates ADD COLUMN IF NOT EXISTS openings BIGINT NOT NULL DEFAULT 0

-- schema_step
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS line TEXT COLLATE "C"

-- schema_step
CREATE TABLE IF NOT EXISTS line_slots (
  line TEXT COLLATE "C" NOT NULL,
  slot BIGINT NOT NULL,
  job_id TEXT COLLATE "C" NOT NULL,
  reached BIGINT NOT NULL,
  stopped_at BIGINT NOT NULL,
  PRIMARY KEY (line, slot)) WITH (fillfactor = 70,
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000)

-- schema_step
CREATE TABLE IF NOT EXISTS line_places (
  line TEXT COLLATE "C" NOT NULL,
  place BIGINT NOT NULL,
  job_id TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (line, place)) WITH (autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000)

-- schema_step
CREATE TABLE IF NOT EXISTS line_locks (stripe TEXT COLLATE "C" NOT NULL PRIMARY KEY)

-- schema_step
CREATE UNIQUE INDEX IF NOT EXISTS line_places_job ON line_places (job_id)

-- schema_step
CREATE TABLE IF NOT EXISTS source_holds (
  source TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  number BIGINT NOT NULL,
  lane TEXT COLLATE "C" NOT NULL,
  held_at BIGINT NOT NULL)

-- schema_step
CREATE UNIQUE INDEX IF NOT EXISTS source_holds_number ON source_holds (number)

-- schema_step
ALTER TABLE attempts ADD COLUMN IF NOT EXISTS exchange TEXT

-- schema_step
ALTER TABLE attempts ADD COLUMN IF NOT EXISTS sent_body TEXT

-- schema_step
CREATE TABLE IF NOT EXISTS operations (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  spec TEXT NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  error TEXT NOT NULL,
  seq BIGINT NOT NULL,
  mark TEXT COLLATE "C" NOT NULL,
  walked TEXT NOT NULL,
  looked BIGINT NOT NULL,
  acted BIGINT NOT NULL,
  skipped BIGINT NOT NULL,
  started_at BIGINT,
  finished_at BIGINT)

-- schema_step
CREATE TABLE IF NOT EXISTS operation_picks (
  operation TEXT COLLATE "C" NOT NULL,
  item TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (operation, item))

-- schema_step
CREATE TABLE IF NOT EXISTS audit (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  actor TEXT COLLATE "C" NOT NULL,
  role TEXT COLLATE "C" NOT NULL,
  address TEXT COLLATE "C" NOT NULL,
  via TEXT COLLATE "C" NOT NULL,
  action TEXT COLLATE "C" NOT NULL,
  target TEXT COLLATE "C" NOT NULL,
  detail TEXT NOT NULL)

-- schema_step
CREATE TABLE IF NOT EXISTS minutes (
  at BIGINT NOT NULL,
  lane TEXT COLLATE "C" NOT NULL,
  process TEXT COLLATE "C" NOT NULL,
  accepted BIGINT NOT NULL,
  completed BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  dead BIGINT NOT NULL,
  PRIMARY KEY (at, lane, process))

-- schema_step
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS success TEXT

-- schema_step
CREATE INDEX IF NOT EXISTS jobs_later ON jobs (event_id, id)
WHERE substr(id, 1, 21) <> substr(event_id, 1, 21)

-- schema_step
DROP INDEX IF EXISTS jobs_event

-- schema_table
CREATE TABLE IF NOT EXISTS schema_steps (number BIGINT NOT NULL PRIMARY KEY,
  applied_at BIGINT NOT NULL)

-- schema_tables
SELECT count(to_regclass('schema_steps'))
