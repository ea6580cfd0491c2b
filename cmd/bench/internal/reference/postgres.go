package reference

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const postgresSchema = `
CREATE TABLE IF NOT EXISTS events (id text COLLATE "C" PRIMARY KEY, source text NOT NULL, type text NOT NULL, payload text NOT NULL, created_at bigint NOT NULL);
CREATE TABLE IF NOT EXISTS jobs (id text COLLATE "C" PRIMARY KEY, event_id text COLLATE "C" NOT NULL, attempt bigint NOT NULL, due_at bigint)
	WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX IF NOT EXISTS jobs_due ON jobs (due_at, id) WHERE due_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS attempts (job_id text COLLATE "C" NOT NULL, attempt bigint NOT NULL, status bigint NOT NULL, error text, duration_ms bigint NOT NULL, created_at bigint NOT NULL, PRIMARY KEY (job_id, attempt));
UPDATE jobs SET due_at = 0 WHERE due_at IS NOT NULL`

// pinned leaves the planner no choice but the indexes: on tables that have not
// been analysed it would scan. The plan is made once.
const pinned = `SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
SET jit = off; SET plan_cache_mode = force_generic_plan`

// Each is one statement, so that a commit is one round trip.
const (
	postgresAcceptOne = `WITH e AS (INSERT INTO events (id, source, type, payload, created_at) VALUES ($1, $3, $4, $5, $6))
		INSERT INTO jobs (id, event_id, attempt, due_at) VALUES ($2, $1, 0, $6)`
	postgresAccept = `WITH e AS (INSERT INTO events (id, source, type, payload, created_at)
			SELECT r.id, r.source, r.type, r.payload, $6::bigint
			FROM unnest($1::text[], $3::text[], $4::text[], $5::text[]) AS r(id, source, type, payload))
		INSERT INTO jobs (id, event_id, attempt, due_at)
			SELECT r.id, r.event, 0, $6::bigint FROM unnest($2::text[], $1::text[]) AS r(id, event)`
	postgresSettle = `WITH s AS (INSERT INTO attempts (job_id, attempt, status, error, duration_ms, created_at)
			SELECT r.job, r.attempt, r.status, r.error, r.duration, $7::bigint
			FROM unnest($1::text[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[]) AS r(job, attempt, status, error, duration))
		UPDATE jobs SET due_at = r.due FROM unnest($1::text[], $2::bigint[]) AS r(job, due) WHERE jobs.id = r.job`
	postgresClaim = `WITH picked AS MATERIALIZED (SELECT ctid AS place, due_at FROM jobs
			WHERE due_at >= $1::bigint AND due_at <= $2::bigint ORDER BY due_at, id LIMIT $3::bigint FOR UPDATE SKIP LOCKED)
		UPDATE jobs SET attempt = jobs.attempt + 1, due_at = $4::bigint FROM events
		WHERE jobs.ctid = ANY(ARRAY(SELECT place FROM picked)) AND events.id = jobs.event_id
		RETURNING jobs.id, jobs.attempt, events.payload, (SELECT max(due_at) FROM picked)`
)

// postgres goes through pgx itself, a statement or a batch of two a commit. Commits of several
// goroutines overlap: the server joins their syncs. So there is no lock.
type postgres struct {
	unlocked
	pool  *pgxpool.Pool
	ids   *ids
	floor floor
}

// openPostgres connects and creates the tables.
func openPostgres(url string, connections int) (*postgres, error) {
	ctx := context.Background()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(connections)
	// The pool pings a connection that was idle for a second, which costs a round trip. Here
	// the server is a child of the benchmark and does not go away.
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error { return c.PgConn().Exec(ctx, pinned).Close() }
	s := &postgres{ids: newIDs()}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	if _, err := s.pool.Exec(ctx, postgresSchema, pgx.QueryExecModeSimpleProtocol); err != nil {
		s.pool.Close()
		return nil, fmt.Errorf("prepare the tables: %w", err)
	}
	return s, nil
}

func (s *postgres) close() error {
	s.pool.Close()
	return nil
}

// accept stores events with a job each, in one statement and so in one commit.
func (s *postgres) accept(batch []*post) error {
	now := time.Now().UnixMilli()
	// A lone event needs no arrays.
	if len(batch) == 1 {
		event, job := s.ids.pair(now)
		_, err := s.pool.Exec(context.Background(), postgresAcceptOne, event, job, batch[0].source, batch[0].kind, batch[0].payload, now)
		return err
	}
	var events, jobs, sources, kinds, payloads = column(batch), column(batch), column(batch), column(batch), column(batch)
	for i, p := range batch {
		events[i], jobs[i] = s.ids.pair(now)
		sources[i], kinds[i], payloads[i] = p.source, p.kind, p.payload
	}
	_, err := s.pool.Exec(context.Background(), postgresAccept, events, jobs, sources, kinds, payloads, now)
	return err
}

// column makes the array of one column.
func column(batch []*post) []string { return make([]string, len(batch)) }

// turn sends both statements in one batch: pgx runs a batch as one transaction, in one round
// trip.
func (s *postgres) turn(done []outcome, free int) (claimed []job, err error) {
	now := time.Now()
	var b pgx.Batch
	if len(done) > 0 {
		b.Queue(postgresSettle, settled(done, now.UnixMilli())...)
	}
	b.Queue(postgresClaim, s.floor.from(now), now.UnixMilli(), int64(free), now.UnixMilli()+lease).Query(func(rows pgx.Rows) error {
		claimed, err = s.read(rows)
		return err
	})
	return claimed, s.pool.SendBatch(context.Background(), &b).Close()
}

// settled are the parameters of postgresSettle.
func settled(done []outcome, now int64) []any {
	n := len(done)
	jobs, dues, errs := make([]string, n), make([]*int64, n), make([]*string, n)
	attempts, statuses, durations := make([]int64, n), make([]int64, n), make([]int64, n)
	for i, o := range done {
		jobs[i], dues[i], errs[i] = o.id, o.due(now), o.problem()
		attempts[i], statuses[i], durations[i] = int64(o.attempt), int64(o.status), o.duration.Milliseconds()
	}
	return []any{jobs, dues, attempts, statuses, errs, durations, now}
}

// read returns the claimed jobs, and raises the floor to the latest of their due times.
func (s *postgres) read(rows pgx.Rows) (claimed []job, err error) {
	for rows.Next() {
		var j job
		var due int64
		if err := rows.Scan(&j.id, &j.attempt, &j.payload, &due); err != nil {
			return nil, err
		}
		s.floor.claimed(due)
		claimed = append(claimed, j)
	}
	return claimed, rows.Err()
}
