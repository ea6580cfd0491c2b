package server

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"
)

// sampleEvery is so long that the questions cost hardly any CPU time.
const sampleEvery = 50 * time.Millisecond

// Work is what a server did for its clients.
type Work struct {
	Statements int64         // of the gateway's, BEGIN and COMMIT included
	LogBytes   int64         // written to the log of transactions
	Waited     time.Duration // of all sessions together, for locks of others
}

// since returns the work after an earlier reading.
func (w Work) since(before Work) Work {
	return Work{w.Statements - before.Statements, w.LogBytes - before.LogBytes, w.Waited - before.Waited}
}

// StatementSettings are the settings with which PostgreSQL counts statements.
func StatementSettings(driver string) []string {
	if driver == Postgres {
		return []string{"shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track_planning=off"}
	}
	return nil
}

// Watch watches the server until stop is called. PostgreSQL must have StatementSettings.
//
// PostgreSQL has no counter of the time that sessions wait for locks. So it is asked now and then
// how many wait. MySQL counts the time itself.
func (d *Database) Watch(ctx context.Context) (stop func() (Work, error), err error) {
	db, err := d.open()
	if err != nil {
		return nil, err
	}
	read := readMySQL
	sample := func(context.Context, *sql.DB) (time.Duration, error) { return 0, nil }
	if d.Driver == Postgres {
		read, sample = readPostgres, samplePostgres
		if _, err := db.ExecContext(ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"); err != nil {
			db.Close()
			return nil, fmt.Errorf("count statements: %w", err)
		}
	}
	before, err := read(ctx, db)
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("read the counters of the server: %w", err)
	}
	sampling, cancel := context.WithCancel(ctx)
	var waited time.Duration
	var failed error
	var done sync.WaitGroup
	done.Go(func() { waited, failed = sample(sampling, db) })
	return func() (Work, error) {
		cancel()
		done.Wait()
		defer db.Close()
		if failed != nil {
			return Work{}, fmt.Errorf("count waiting sessions: %w", failed)
		}
		after, err := read(ctx, db)
		work := after.since(before)
		work.Waited += waited
		return work, err
	}, nil
}

// readPostgres leaves the statements of Watch itself out.
func readPostgres(ctx context.Context, db *sql.DB) (w Work, err error) {
	const counters = `SELECT COALESCE((SELECT SUM(calls) FROM pg_stat_statements JOIN pg_database d ON d.oid = dbid
		WHERE datname = current_database() AND query NOT LIKE '%pg_stat_%'), 0)::bigint, (pg_current_wal_insert_lsn() - '0/0')::bigint`
	err = db.QueryRowContext(ctx, counters).Scan(&w.Statements, &w.LogBytes)
	return w, err
}

// samplePostgres adds up the time that sessions wait for locks, until ctx ends.
func samplePostgres(ctx context.Context, db *sql.DB) (waited time.Duration, err error) {
	const waiting = `SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return waited, nil
		case <-time.After(sampleEvery):
		}
		var n int
		if err := db.QueryRowContext(context.WithoutCancel(ctx), waiting).Scan(&n); err != nil {
			return waited, err
		}
		now := time.Now()
		waited += time.Duration(n) * now.Sub(last)
		last = now
	}
}

// readMySQL counts its own statement too, which is one.
func readMySQL(ctx context.Context, db *sql.DB) (w Work, err error) {
	rows, err := db.QueryContext(ctx, "SHOW GLOBAL STATUS WHERE Variable_name IN ('Questions', 'Innodb_os_log_written', 'Innodb_row_lock_time')")
	if err != nil {
		return w, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var value int64
		if err := rows.Scan(&name, &value); err != nil {
			return w, err
		}
		switch name {
		case "Questions":
			w.Statements = value
		case "Innodb_os_log_written":
			w.LogBytes = value
		case "Innodb_row_lock_time":
			w.Waited = time.Duration(value) * time.Millisecond
		}
	}
	return w, rows.Err()
}
