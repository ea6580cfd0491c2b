package store_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// A faultyConn is SQLite with faults that a test sets.
type faultyConn struct {
	store.Conn
	before func(stmts []store.Stmt) error // returns the error with which a batch is refused
	splits bool                           // runs each statement as a batch of its own
}

func (c faultyConn) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	if c.before != nil {
		if err := c.before(stmts); err != nil {
			return nil, err
		}
	}
	if !c.splits {
		return c.Conn.Batch(ctx, stmts...)
	}
	var all []store.Result
	for _, s := range stmts {
		res, err := c.Conn.Batch(ctx, s)
		if err != nil {
			return nil, err
		}
		all = append(all, res...)
	}
	return all, nil
}

// database opens a SQLite database in a temporary folder, with or without the tables.
func database(t *testing.T, migrated bool) store.Conn {
	t.Helper()
	conn, err := sqlite.Open(filepath.Join(t.TempDir(), "gateway.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if migrated {
		if err := store.New(conn, store.SQLite, time.Now).Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}

// TestCheckOnlyReads: Check sends no statement that writes, and counts the schema steps.
func TestCheckOnlyReads(t *testing.T) {
	for _, migrated := range []bool{false, true} {
		c := faultyConn{Conn: database(t, migrated), before: func(stmts []store.Stmt) error {
			for _, s := range stmts {
				if !s.Reads {
					t.Errorf("Check runs %s, which writes", s.Name)
				}
			}
			return nil
		}}
		k, err := store.Check(t.Context(), c, store.SQLite, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if upToDate := k.Missing == 0 && k.Step == k.Newest; upToDate != migrated || k.Newest == 0 {
			t.Errorf("Check of a database that is migrated: %v = step %d of %d, %d missing", migrated, k.Step, k.Newest, k.Missing)
		}
	}
}

// A scriptedConn answers each statement with the value under its name. It refuses a batch with a
// statement that has no value.
type scriptedConn map[string]any

func (c scriptedConn) Batch(_ context.Context, stmts ...store.Stmt) (all []store.Result, err error) {
	for _, s := range stmts {
		value, ok := c[s.Name]
		if !ok {
			return nil, errors.New(s.Name + ": not authorized")
		}
		all = append(all, store.Result{Rows: [][]any{{value}}})
	}
	return all, nil
}

func (scriptedConn) Close() error { return nil }

// TestCheckWithoutServerVersion: Check reports the rest if a database refuses to report its
// version. It fails only without a time.
func TestCheckWithoutServerVersion(t *testing.T) {
	c := scriptedConn{"check_user": "me", "check_fsync": "off", "check_synchronous_commit": nil, "check_clock": int64(0), "check_tables": int64(0)}
	k, err := store.Check(t.Context(), c, store.Postgres, time.Now)
	if err != nil || k.Server != "" || k.User != "me" || len(k.Warnings) != 1 || !strings.HasPrefix(k.Warnings[0].Detail, "fsync is off: ") {
		t.Errorf("Check = %+v, %v, want the user and one doubt", k, err)
	}
	delete(c, "check_clock")
	if _, err := store.Check(t.Context(), c, store.Postgres, time.Now); err == nil {
		t.Error("Check of a database that tells no time succeeds")
	}
}

// TestCheckOfUnreachableDatabase: Check stops at the first batch that the database does not
// answer, so that doctor does not wait for each question.
func TestCheckOfUnreachableDatabase(t *testing.T) {
	for after := range 3 {
		left := after
		c := faultyConn{Conn: database(t, true), before: func([]store.Stmt) error {
			if left--; left < 0 {
				return core.Refuse(core.Unavailable, "gone")
			}
			return nil
		}}
		if _, err := store.Check(t.Context(), c, store.SQLite, time.Now); !core.IsKind(err, core.Unavailable) {
			t.Errorf("Check of a database that goes after %d batches = %v, want unavailable", after, err)
		}
		if left != -1 {
			t.Errorf("Check asks a database that is gone %d more times", -1-left)
		}
	}
}

// TestCheckMeasuresClock: the difference of the clocks is right within ClockError.
func TestCheckMeasuresClock(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		k, err := store.Check(t.Context(), database(t, false), store.SQLite, func() time.Time { return time.Now().Add(-ahead) })
		if off := k.ClockAhead - ahead; err != nil || off.Abs() > k.ClockError || k.ClockError <= 0 {
			t.Errorf("Check = %v ahead, give or take %v, %v; want %v", k.ClockAhead, k.ClockError, err, ahead)
		}
	}
}

// TestCheckAssumesMiddleOfRoundTrip: Check assumes that the database read its clock in the
// middle of the round trip.
func TestCheckAssumesMiddleOfRoundTrip(t *testing.T) {
	asked := false
	clock := func() time.Time {
		if asked {
			return time.Now().Add(time.Hour)
		}
		asked = true
		return time.Now()
	}
	k, err := store.Check(t.Context(), database(t, false), store.SQLite, clock)
	if off := k.ClockAhead + 30*time.Minute; err != nil || off.Abs() > time.Minute || k.ClockError < 30*time.Minute {
		t.Errorf("Check = %v ahead, give or take %v, %v; want -30m, 30m", k.ClockAhead, k.ClockError, err)
	}
}

// TestRehearse: a rehearsal finds missing rights and batches that are not atomic, with the
// gateway's tables and without, and leaves nothing behind.
func TestRehearse(t *testing.T) {
	for _, c := range []struct {
		name             string
		upToDate, splits bool
		refuses          string
		writes, atomic   bool
	}{
		{name: "own tables", upToDate: true, writes: true, atomic: true},
		{name: "no tables yet", writes: true, atomic: true},
		{name: "splits, own tables", upToDate: true, splits: true, writes: true},
		{name: "splits, no tables yet", splits: true, writes: true},
		{name: "read-only, own tables", upToDate: true, refuses: "check_delete_job"},
		{name: "read-only, no tables yet", refuses: "probe_create"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := faultyConn{Conn: database(t, c.upToDate), splits: c.splits, before: func(stmts []store.Stmt) error {
				for _, s := range stmts {
					if s.Name == c.refuses {
						return errors.New("read-only")
					}
				}
				return nil
			}}
			before := contents(t, conn)
			writes, atomic := store.Rehearse(t.Context(), conn, c.upToDate)
			if (writes == nil) != c.writes || c.writes && (atomic == nil) != c.atomic {
				t.Errorf("Rehearse = %v, %v; want success %v, %v", writes, atomic, c.writes, c.atomic)
			}
			if after := contents(t, conn); after != before {
				t.Errorf("Rehearse leaves %v where there was %v", after, before)
			}
		})
	}
}

// contents returns the number of tables, and the number of events, jobs and attempts together.
func contents(t *testing.T, c store.Conn) (n [2]any) {
	t.Helper()
	for i, sql := range []string{
		"SELECT count(*) FROM sqlite_master",
		"SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM jobs) + (SELECT count(*) FROM attempts)",
	} {
		res, err := c.Batch(t.Context(), store.Stmt{Name: "count", SQL: sql, Reads: true})
		if err == nil { // without tables there is nothing to count
			n[i] = res[0].Rows[0][0]
		}
	}
	return n
}
