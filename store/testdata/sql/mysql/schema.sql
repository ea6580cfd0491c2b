-- schema_read
SELECT number
FROM schema_steps

-- schema_step
CREATE TABLE IF NOT EXISTS events (
  id VARBINARY(255) NOT NULL PRIMARY KEY,
  source VARBINARY(255) NOT NULL,
  type VARBINARY(255) NOT NULL,
  payload LONGBLOB NOT NULL,
  content_type LONGBLOB NOT NULL,
  headers LONGBLOB NOT NULL,
  delivery_id VARBINARY(255),
  created_at BIGINT NOT NULL) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_record
INSERT INTO schema_steps (number, applied_at)
VALUES (?, ?)
ON DUPLICATE KEY UPDATE number = number

-- schema_step
CREATE UNIQUE INDEX events_delivery ON events (source, delivery_id)

-- schema_step
CREATE TABLE IF NOT EXISTS jobs (
  id VARBINARY(255) NOT NULL PRIMARY KEY,
  event_id VARBINARY(255) NOT NULL,
  lane VARBINARY(255) NOT NULL,
  job_key VARBINARY(255),
  status VARBINARY(255) NOT NULL,
  attempt BIGINT NOT NULL,
  max_attempts BIGINT NOT NULL,
  due_at BIGINT,
  lease VARBINARY(255),
  last_error LONGBLOB NOT NULL,
  created_at BIGINT NOT NULL,
  finished_at BIGINT,
  due_lane VARBINARY(255) GENERATED ALWAYS AS (CASE WHEN due_at IS NOT NULL THEN lane END) STORED) ENGINE =
      InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
CREATE UNIQUE INDEX jobs_key ON jobs (lane, job_key)

-- schema_step
CREATE INDEX jobs_event ON jobs (event_id)

-- schema_step
CREATE TABLE IF NOT EXISTS attempts (
  job_id VARBINARY(255) NOT NULL,
  lease VARBINARY(255) NOT NULL,
  attempt BIGINT NOT NULL,
  status_code BIGINT NOT NULL,
  error LONGBLOB NOT NULL,
  response LONGBLOB NOT NULL,
  duration_ms BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (job_id, lease)) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
CREATE INDEX jobs_finished ON jobs (finished_at, id)

-- schema_step
CREATE TABLE IF NOT EXISTS cron_marks (
  source VARBINARY(255) NOT NULL PRIMARY KEY,
  schedule LONGBLOB NOT NULL,
  until_at BIGINT NOT NULL) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
CREATE TABLE IF NOT EXISTS gates (
  lane VARBINARY(255) NOT NULL PRIMARY KEY,
  failures BIGINT NOT NULL,
  open_until BIGINT NOT NULL,
  closed_at BIGINT NOT NULL,
  moved_by VARBINARY(255) NOT NULL,
  taker VARBINARY(255) NOT NULL,
  base_us BIGINT NOT NULL,
  next_us BIGINT NOT NULL,
  stray_since BIGINT) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
CREATE TABLE IF NOT EXISTS definitions (
  hash VARBINARY(255) NOT NULL PRIMARY KEY,
  body LONGBLOB NOT NULL) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
CREATE TABLE IF NOT EXISTS runs (
  id VARBINARY(255) NOT NULL PRIMARY KEY,
  workflow VARBINARY(255) NOT NULL,
  event_id VARBINARY(255) NOT NULL,
  definition VARBINARY(255) NOT NULL,
  status VARBINARY(255) NOT NULL,
  epoch BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  step LONGBLOB NOT NULL,
  output LONGBLOB,
  error LONGBLOB NOT NULL,
  deadline_at BIGINT,
  created_at BIGINT NOT NULL,
  started_at BIGINT,
  finished_at BIGINT) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
CREATE INDEX runs_event ON runs (event_id, id)

-- schema_step
CREATE INDEX runs_status ON runs (status, id)

-- schema_step
CREATE INDEX runs_finished ON runs (finished_at, id)

-- schema_step
CREATE TABLE IF NOT EXISTS steps (
  id VARBINARY(255) NOT NULL PRIMARY KEY,
  run_id VARBINARY(255) NOT NULL,
  epoch BIGINT NOT NULL,
  parent_id VARBINARY(255),
  branch LONGBLOB NOT NULL,
  path VARBINARY(1024) NOT NULL,
  name LONGBLOB NOT NULL,
  type LONGBLOB NOT NULL,
  status VARBINARY(255) NOT NULL,
  attempt BIGINT NOT NULL,
  state LONGBLOB,
  output LONGBLOB,
  error LONGBLOB NOT NULL,
  carry LONGBLOB NOT NULL,
  fan LONGBLOB NOT NULL,
  leaf_of VARBINARY(255),
  started_at BIGINT,
  finished_at BIGINT) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
CREATE UNIQUE INDEX steps_path ON steps (run_id, epoch, path)

-- schema_step
CREATE INDEX steps_leaf ON steps (leaf_of)

-- schema_step
CREATE TABLE IF NOT EXISTS history (
  run_id VARBINARY(255) NOT NULL,
  seq BIGINT NOT NULL,
  mark VARBINARY(255) NOT NULL,
  at BIGINT,
  epoch BIGINT NOT NULL,
  type VARBINARY(255) NOT NULL,
  path LONGBLOB NOT NULL,
  data LONGBLOB NOT NULL,
  PRIMARY KEY (run_id, seq)) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
CREATE TABLE IF NOT EXISTS callbacks (
  token_hash VARBINARY(255) NOT NULL PRIMARY KEY,
  run_id VARBINARY(255) NOT NULL,
  step_id VARBINARY(255) NOT NULL,
  expires_at BIGINT) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
CREATE INDEX callbacks_step ON callbacks (run_id, step_id)

-- schema_step
CREATE INDEX jobs_waiting ON jobs (due_lane, due_at, id, status)

-- schema_step
DROP INDEX `jobs_due` ON jobs

-- schema_step
DROP INDEX `jobs_last` ON jobs

-- schema_step
CREATE TABLE IF NOT EXISTS turns (
  name VARBINARY(255) NOT NULL PRIMARY KEY,
  until_at BIGINT NOT NULL,
  holder VARBINARY(255) NOT NULL) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
CREATE INDEX events_by_source ON events (source, id)

-- schema_step
CREATE INDEX events_by_kind ON events (type, source, id)

-- schema_step
DROP INDEX `events_by_type` ON events

-- schema_step
CREATE TABLE IF NOT EXISTS step_texts (
  run_id VARBINARY(255) NOT NULL,
  name VARBINARY(255) NOT NULL,
  body LONGBLOB NOT NULL,
  PRIMARY KEY (run_id, name)) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
ALTER TABLE steps ADD COLUMN state_in VARBINARY(255)

-- schema_step
ALTER TABLE steps ADD COLUMN output_in VARBINARY(255)

-- schema_step
ALTER TABLE runs ADD COLUMN written BIGINT NOT NULL DEFAULT 0

-- schema_step
ALTER TABLE runs ADD COLUMN writers LONGBLOB

-- schema_step
ALTER TABLE events ADD COLUMN encoding VARBINARY(255) NOT NULL DEFAULT ''

-- schema_step
ALTER TABLE steps ADD COLUMN held_until BIGINT

-- schema_step
ALTER TABLE jobs ADD COLUMN earlier BIGINT NOT NULL DEFAULT 0

-- schema_step
ALTER TABLE jobs ADD COLUMN scheduled_at BIGINT

-- schema_step
ALTER TABLE gates ADD COLUMN held_since BIGINT NOT NULL DEFAULT 0

-- schema_step
ALTER TABLE gates ADD COLUMN held_until BIGINT NOT NULL DEFAULT 0

-- schema_step
ALTER TABLE gates ADD COLUMN hold_reason LONGBLOB

-- schema_step
ALTER TABLE gates ADD COLUMN opened_at BIGINT NOT NULL DEFAULT 0

-- schema_step
ALTER TABLE gates ADD COLUMN openings BIGINT NOT NULL DEFAULT 0

-- schema_step
ALTER TABLE jobs ADD COLUMN line VARBINARY(1024)

-- schema_step
CREATE TABLE IF NOT EXISTS line_slots (
  line VARBINARY(1024) NOT NULL,
  slot BIGINT NOT NULL,
  job_id VARBINARY(255) NOT NULL,
  reached BIGINT NOT NULL,
  stopped_at BIGINT NOT NULL,
  PRIMARY KEY (line, slot)) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
CREATE TABLE IF NOT EXISTS line_places (
  line VARBINARY(1024) NOT NULL,
  place BIGINT NOT NULL,
  job_id VARBINARY(255) NOT NULL,
  PRIMARY KEY (line, place)) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
CREATE TABLE IF NOT EXISTS line_locks (stripe VARBINARY(255) NOT NULL PRIMARY KEY) ENGINE = InnoDB DEFAULT
    CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
CREATE UNIQUE INDEX line_places_job ON line_places (job_id)

-- schema_step
CREATE TABLE IF NOT EXISTS source_holds (
  source VARBINARY(255) NOT NULL PRIMARY KEY,
  number BIGINT NOT NULL,
  lane VARBINARY(255) NOT NULL,
  held_at BIGINT NOT NULL) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
CREATE UNIQUE INDEX source_holds_number ON source_holds (number)

-- schema_step
ALTER TABLE attempts ADD COLUMN exchange LONGBLOB

-- schema_step
ALTER TABLE attempts ADD COLUMN sent_body LONGBLOB

-- schema_step
CREATE TABLE IF NOT EXISTS operations (
  id VARBINARY(255) NOT NULL PRIMARY KEY,
  spec LONGBLOB NOT NULL,
  state VARBINARY(255) NOT NULL,
  error LONGBLOB NOT NULL,
  seq BIGINT NOT NULL,
  mark VARBINARY(255) NOT NULL,
  walked LONGBLOB NOT NULL,
  looked BIGINT NOT NULL,
  acted BIGINT NOT NULL,
  skipped BIGINT NOT NULL,
  started_at BIGINT,
  finished_at BIGINT) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
CREATE TABLE IF NOT EXISTS operation_picks (
  operation VARBINARY(255) NOT NULL,
  item VARBINARY(255) NOT NULL,
  PRIMARY KEY (operation, item)) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
CREATE TABLE IF NOT EXISTS audit (
  id VARBINARY(255) NOT NULL PRIMARY KEY,
  actor VARBINARY(255) NOT NULL,
  role VARBINARY(255) NOT NULL,
  address VARBINARY(255) NOT NULL,
  via VARBINARY(255) NOT NULL,
  action VARBINARY(255) NOT NULL,
  target VARBINARY(255) NOT NULL,
  detail LONGBLOB NOT NULL) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
CREATE TABLE IF NOT EXISTS minutes (
  at BIGINT NOT NULL,
  lane VARBINARY(255) NOT NULL,
  process VARBINARY(255) NOT NULL,
  accepted BIGINT NOT NULL,
  completed BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  dead BIGINT NOT NULL,
  PRIMARY KEY (at, lane, process)) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_step
ALTER TABLE jobs ADD COLUMN list_name VARBINARY(255) GENERATED ALWAYS AS (CASE WHEN status IN ('completed',
    'dead', 'canceled') THEN status WHEN status = 'running' AND attempt >= max_attempts THEN 'at last try'
    END) STORED, ADD COLUMN lapses_at BIGINT GENERATED ALWAYS AS (CASE WHEN status = 'running' AND attempt >=
    max_attempts THEN due_at END) STORED, ADD INDEX jobs_lists (list_name, lane, lapses_at, id)

-- schema_step
ALTER TABLE jobs DROP INDEX jobs_dead

-- schema_step
ALTER TABLE jobs DROP COLUMN dead_lane

-- schema_step
ALTER TABLE jobs DROP INDEX jobs_lapsing

-- schema_step
ALTER TABLE jobs DROP COLUMN last_lane

-- schema_step
ALTER TABLE jobs DROP INDEX jobs_done

-- schema_step
ALTER TABLE jobs DROP COLUMN done_lane

-- schema_step
ALTER TABLE jobs DROP INDEX jobs_canceled

-- schema_step
ALTER TABLE jobs DROP COLUMN canceled_lane

-- schema_step
ALTER TABLE jobs ADD COLUMN success LONGBLOB

-- schema_table
CREATE TABLE IF NOT EXISTS schema_steps (number BIGINT NOT NULL PRIMARY KEY,
  applied_at BIGINT NOT NULL) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- schema_tables
SELECT COUNT(*)
FROM information_schema.tables
WHERE table_schema = DATABASE()
  AND table_name = 'schema_steps'
