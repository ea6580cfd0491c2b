-- schema_read
SELECT number
FROM schema_steps

-- schema_step
CREATE TABLE IF NOT EXISTS events (
  id TEXT NOT NULL PRIMARY KEY,
  source TEXT NOT NULL,
  type TEXT NOT NULL,
  payload TEXT NOT NULL,
  content_type TEXT NOT NULL,
  headers TEXT NOT NULL,
  delivery_id TEXT,
  created_at INTEGER NOT NULL)

-- schema_record
INSERT INTO schema_steps (number, applied_at)
VALUES (?, ?)
ON CONFLICT DO NOTHING

-- schema_step
CREATE UNIQUE INDEX IF NOT EXISTS events_delivery ON events (source, delivery_id)
WHERE delivery_id IS NOT NULL

-- schema_step
CREATE TABLE IF NOT EXISTS jobs (
  id TEXT NOT NULL PRIMARY KEY,
  event_id TEXT NOT NULL,
  lane TEXT NOT NULL,
  job_key TEXT,
  status TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  due_at INTEGER,
  lease TEXT,
  last_error TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  finished_at INTEGER) WITHOUT ROWID

-- schema_step
CREATE UNIQUE INDEX IF NOT EXISTS jobs_key ON jobs (lane, job_key)
WHERE job_key IS NOT NULL

-- schema_step
CREATE INDEX IF NOT EXISTS jobs_dead ON jobs (lane, id)
WHERE status = 'dead'

-- schema_step
CREATE TABLE IF NOT EXISTS attempts (
  job_id TEXT NOT NULL,
  lease TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  status_code INTEGER NOT NULL,
  error TEXT NOT NULL,
  response TEXT NOT NULL,
  duration_ms INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (job_id, lease)) WITHOUT ROWID

-- schema_step
CREATE INDEX IF NOT EXISTS jobs_finished ON jobs (finished_at, id)
WHERE finished_at IS NOT NULL

-- schema_step
CREATE TABLE IF NOT EXISTS cron_marks (
  source TEXT NOT NULL PRIMARY KEY,
  schedule TEXT NOT NULL,
  until_at INTEGER NOT NULL)

-- schema_step
CREATE TABLE IF NOT EXISTS gates (
  lane TEXT NOT NULL PRIMARY KEY,
  failures INTEGER NOT NULL,
  open_until INTEGER NOT NULL,
  closed_at INTEGER NOT NULL,
  moved_by TEXT NOT NULL,
  taker TEXT NOT NULL,
  base_us INTEGER NOT NULL,
  next_us INTEGER NOT NULL,
  stray_since INTEGER) WITHOUT ROWID

-- schema_step
CREATE TABLE IF NOT EXISTS definitions (
  hash TEXT NOT NULL PRIMARY KEY,
  body TEXT NOT NULL)

-- schema_step
CREATE TABLE IF NOT EXISTS runs (
  id TEXT NOT NULL PRIMARY KEY,
  workflow TEXT NOT NULL,
  event_id TEXT NOT NULL,
  definition TEXT NOT NULL,
  status TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  step TEXT NOT NULL,
  output TEXT,
  error TEXT NOT NULL,
  deadline_at INTEGER,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER)

-- schema_step
CREATE INDEX IF NOT EXISTS runs_event ON runs (event_id, id)

-- schema_step
CREATE INDEX IF NOT EXISTS runs_status ON runs (status, id)

-- schema_step
CREATE INDEX IF NOT EXISTS runs_finished ON runs (finished_at, id)
WHERE finished_at IS NOT NULL

-- schema_step
CREATE TABLE IF NOT EXISTS steps (
  id TEXT NOT NULL PRIMARY KEY,
  run_id TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  parent_id TEXT,
  branch TEXT NOT NULL,
  path TEXT NOT NULL,
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  status TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  state TEXT,
  output TEXT,
  error TEXT NOT NULL,
  carry TEXT NOT NULL,
  fan TEXT NOT NULL,
  leaf_of TEXT,
  started_at INTEGER,
  finished_at INTEGER)

-- schema_step
CREATE UNIQUE INDEX IF NOT EXISTS steps_path ON steps (run_id, epoch, path)

-- schema_step
CREATE INDEX IF NOT EXISTS steps_leaf ON steps (leaf_of)
WHERE leaf_of IS NOT NULL

-- schema_step
CREATE TABLE IF NOT EXISTS history (
  run_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  mark TEXT NOT NULL,
  at INTEGER,
  epoch INTEGER NOT NULL,
  type TEXT NOT NULL,
  path TEXT NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (run_id, seq)) WITHOUT ROWID

-- schema_step
CREATE TABLE IF NOT EXISTS callbacks (
  token_hash TEXT NOT NULL PRIMARY KEY,
  run_id TEXT NOT NULL,
  step_id TEXT NOT NULL,
  expires_at INTEGER) WITHOUT ROWID

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
  name TEXT NOT NULL PRIMARY KEY,
  until_at INTEGER NOT NULL,
  holder TEXT NOT NULL)

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
  run_id TEXT NOT NULL,
  name TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (run_id, name))

-- schema_step
ALTER TABLE steps ADD COLUMN state_in TEXT

-- schema_step
ALTER TABLE steps ADD COLUMN output_in TEXT

-- schema_step
ALTER TABLE runs ADD COLUMN written INTEGER NOT NULL DEFAULT 0

-- schema_step
ALTER TABLE runs ADD COLUMN writers TEXT

-- schema_step
ALTER TABLE events ADD COLUMN encoding TEXT NOT NULL DEFAULT ''

-- schema_step
ALTER TABLE steps ADD COLUMN held_until INTEGER

-- schema_step
ALTER TABLE jobs ADD COLUMN earlier INTEGER NOT NULL DEFAULT 0

-- schema_step
ALTER TABLE jobs ADD COLUMN scheduled_at INTEGER

-- schema_step
ALTER TABLE gates ADD COLUMN held_since INTEGER NOT NULL DEFAULT 0

-- schema_step
ALTER TABLE gates ADD COLUMN held_until INTEGER NOT NULL DEFAULT 0

-- schema_step
ALTER TABLE gates ADD COLUMN hold_reason TEXT

-- schema_step
CREATE INDEX IF NOT EXISTS jobs_canceled ON jobs (lane, id)
WHERE status = 'canceled'

-- schema_step
ALTER TABLE gates ADD COLUMN opened_at INTEGER NOT NULL DEFAULT 0

-- schema_step
ALTER TABLE gates ADD COLUMN openings INTEGER NOT NULL DEFAULT 0

-- schema_step
ALTER TABLE jobs ADD COLUMN line TEXT

-- schema_step
CREATE TABLE IF NOT EXISTS line_slots (
  line TEXT NOT NULL,
  slot INTEGER NOT NULL,
  job_id TEXT NOT NULL,
  reached INTEGER NOT NULL,
  stopped_at INTEGER NOT NULL,
  PRIMARY KEY (line, slot)) WITHOUT ROWID

-- schema_step
CREATE TABLE IF NOT EXISTS line_places (
  line TEXT NOT NULL,
  place INTEGER NOT NULL,
  job_id TEXT NOT NULL,
  PRIMARY KEY (line, place)) WITHOUT ROWID

-- schema_step
CREATE TABLE IF NOT EXISTS line_locks (stripe TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID

-- schema_step
CREATE UNIQUE INDEX IF NOT EXISTS line_places_job ON line_places (job_id)

-- schema_step
CREATE TABLE IF NOT EXISTS source_holds (
  source TEXT NOT NULL PRIMARY KEY,
  number INTEGER NOT NULL,
  lane TEXT NOT NULL,
  held_at INTEGER NOT NULL) WITHOUT ROWID

-- schema_step
CREATE UNIQUE INDEX IF NOT EXISTS source_holds_number ON source_holds (number)

-- schema_step
ALTER TABLE attempts ADD COLUMN exchange TEXT

-- schema_step
ALTER TABLE attempts ADD COLUMN sent_body TEXT

-- schema_step
CREATE TABLE IF NOT EXISTS operations (
  id TEXT NOT NULL PRIMARY KEY,
  spec TEXT NOT NULL,
  state TEXT NOT NULL,
  error TEXT NOT NULL,
  seq INTEGER NOT NULL,
  mark TEXT NOT NULL,
  walked TEXT NOT NULL,
  looked INTEGER NOT NULL,
  acted INTEGER NOT NULL,
  skipped INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER)

-- schema_step
CREATE TABLE IF NOT EXISTS operation_picks (
  operation TEXT NOT NULL,
  item TEXT NOT NULL,
  PRIMARY KEY (operation, item)) WITHOUT ROWID

-- schema_step
CREATE TABLE IF NOT EXISTS audit (
  id TEXT NOT NULL PRIMARY KEY,
  actor TEXT NOT NULL,
  role TEXT NOT NULL,
  address TEXT NOT NULL,
  via TEXT NOT NULL,
  action TEXT NOT NULL,
  target TEXT NOT NULL,
  detail TEXT NOT NULL) WITHOUT ROWID

-- schema_step
CREATE TABLE IF NOT EXISTS minutes (
  at INTEGER NOT NULL,
  lane TEXT NOT NULL,
  process TEXT NOT NULL,
  accepted INTEGER NOT NULL,
  completed INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  dead INTEGER NOT NULL,
  PRIMARY KEY (at, lane, process)) WITHOUT ROWID

-- schema_step
ALTER TABLE jobs ADD COLUMN success TEXT

-- schema_step
CREATE INDEX IF NOT EXISTS jobs_later ON jobs (event_id, id)
WHERE substr(id, 1, 21) <> substr(event_id, 1, 21)

-- schema_step
DROP INDEX IF EXISTS jobs_event

-- schema_table
CREATE TABLE IF NOT EXISTS schema_steps (number INTEGER NOT NULL PRIMARY KEY,
  applied_at INTEGER NOT NULL)

-- schema_tables
SELECT count(*)
FROM sqlite_master
WHERE type = 'table'
  AND name = 'schema_steps'
