package reference

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"sync"
	"time"

	driver "modernc.org/sqlite" // of the project's default store
)

// The tables have the columns that delivery needs, and three indexes for the gateway's nine.
// That difference is part of the price of its features.
var sqliteSchema = []string{
	`CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, source TEXT NOT NULL, type TEXT NOT NULL, payload TEXT NOT NULL, created_at INTEGER NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS jobs (id TEXT PRIMARY KEY, event_id TEXT NOT NULL, attempt INTEGER NOT NULL, due_at INTEGER) WITHOUT ROWID`,
	`CREATE INDEX IF NOT EXISTS jobs_due ON jobs (due_at) WHERE due_at IS NOT NULL`,
	`CREATE TABLE IF NOT EXISTS attempts (job_id TEXT NOT NULL, attempt INTEGER NOT NULL, status INTEGER NOT NULL, error TEXT, duration_ms INTEGER NOT NULL, created_at INTEGER NOT NULL, PRIMARY KEY (job_id, attempt)) WITHOUT ROWID`,
	// One process owns the file, so an earlier process left the unfinished jobs in a crash,
	// and they are due at once.
	`UPDATE jobs SET due_at = 0 WHERE due_at IS NOT NULL`,
}

// The limit is an expression because SQLite looks at the value of a bare
// parameter there when it plans, and plans again each time one is bound: 4% of an
// event's CPU.
const (
	insertEvent   = `INSERT INTO events (id, source, type, payload, created_at) VALUES (?, ?, ?, ?, ?)`
	insertJob     = `INSERT INTO jobs (id, event_id, attempt, due_at) VALUES (?, ?, 0, ?)`
	insertAttempt = `INSERT INTO attempts (job_id, attempt, status, error, duration_ms, created_at) VALUES (?, ?, ?, ?, ?, ?)`
	finishJob     = `UPDATE jobs SET due_at = ? WHERE id = ?`
	claimJobs     = `UPDATE jobs SET attempt = attempt + 1, due_at = ? WHERE id IN
		(SELECT id FROM jobs WHERE due_at <= ? ORDER BY due_at, id LIMIT ? + 0)
		RETURNING id, attempt, (SELECT payload FROM events WHERE events.id = event_id)`
)

// sqlite is the one writer: a single connection with prepared statements, used by the holder of
// the lock. The lock is the mutex: SQLite has one writer, and a second connection would wait in
// the file instead, by polling.
type sqlite struct {
	sync.Mutex
	db   *sql.DB
	conn *sql.Conn
	ids  *ids

	begin, commit, rollback             *sql.Stmt
	event, job, attempt, finish, claims *sql.Stmt
}

// openSQLite opens the file and creates the tables. In WAL mode synchronous(FULL) syncs the log
// at each commit, as the promise of the gateway demands; NORMAL would not. Where the system has
// fdatasync, that is the sync of both.
func openSQLite(path string) (*sqlite, error) {
	_, _ = driver.Fdatasync(true)
	options := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(5000)"}}
	db, err := sql.Open("sqlite", "file:"+path+"?"+options.Encode())
	if err != nil {
		return nil, err
	}
	s := &sqlite{db: db, ids: newIDs()}
	if err := s.prepare(context.Background()); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return s, nil
}

// prepare takes the one connection out of the pool of database/sql, and prepares the statements
// on it. A pool would prepare them anew on each connection that it opens.
func (s *sqlite) prepare(ctx context.Context) (err error) {
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return err
	}
	for _, text := range sqliteSchema {
		if _, err := s.conn.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		// IMMEDIATE takes the write lock at once: a transaction that reads first and writes
		// later can be refused.
		{&s.begin, "BEGIN IMMEDIATE"}, {&s.commit, "COMMIT"}, {&s.rollback, "ROLLBACK"},
		{&s.event, insertEvent}, {&s.job, insertJob}, {&s.attempt, insertAttempt},
		{&s.finish, finishJob}, {&s.claims, claimJobs},
	} {
		if *p.stmt, err = s.conn.PrepareContext(ctx, p.text); err != nil {
			return err
		}
	}
	return nil
}

// close waits for the holder of the lock.
func (s *sqlite) close() error {
	s.Lock()
	defer s.Unlock()
	if err := s.conn.Close(); err != nil {
		return err
	}
	return s.db.Close()
}

// transaction runs fn between BEGIN and COMMIT. It does without sql.Tx, which
// would prepare each statement again. The caller holds the lock.
func (s *sqlite) transaction(fn func() error) error {
	if _, err := s.begin.Exec(); err != nil {
		return err
	}
	if err := fn(); err != nil {
		_, _ = s.rollback.Exec()
		return err
	}
	_, err := s.commit.Exec()
	return err
}

// accept stores events with a job each. The caller holds the lock.
func (s *sqlite) accept(batch []*post) error {
	now := time.Now().UnixMilli()
	return s.transaction(func() error {
		for _, p := range batch {
			event, job := s.ids.pair(now)
			if _, err := s.event.Exec(event, p.source, p.kind, p.payload, now); err != nil {
				return err
			}
			if _, err := s.job.Exec(job, event, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// turn settles outcomes, with their attempt rows, and claims up to free due jobs
// in the same commit. The caller holds the lock.
func (s *sqlite) turn(done []outcome, free int) (claimed []job, err error) {
	now := time.Now().UnixMilli()
	err = s.transaction(func() error {
		for _, o := range done {
			if err := s.settle(o, now); err != nil {
				return err
			}
		}
		claimed, err = s.claim(free, now)
		return err
	})
	return claimed, err
}

// settle finishes a job, or makes it due again, and records its attempt.
func (s *sqlite) settle(o outcome, now int64) error {
	if _, err := s.finish.Exec(o.due(now), o.id); err != nil {
		return err
	}
	_, err := s.attempt.Exec(o.id, o.attempt, o.status, o.problem(), o.duration.Milliseconds(), now)
	return err
}

// claim leases up to free due jobs, the longest due first.
func (s *sqlite) claim(free int, now int64) ([]job, error) {
	rows, err := s.claims.Query(now+lease, now, free)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var claimed []job
	for rows.Next() {
		var j job
		if err := rows.Scan(&j.id, &j.attempt, &j.payload); err != nil {
			return nil, err
		}
		claimed = append(claimed, j)
	}
	return claimed, rows.Err()
}
