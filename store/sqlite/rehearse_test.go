package sqlite_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// counted is a connection that adds up the rows that each statement changed.
type counted struct {
	store.Conn
	changed map[string]int64
}

func (c counted) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	results, err := c.Conn.Batch(ctx, stmts...)
	for i, r := range results {
		c.changed[stmts[i].Name] += r.Changed
	}
	return results, err
}

func opened(t *testing.T) (store.Conn, *store.Store) {
	t.Helper()
	conn, err := sqlite.Open(filepath.Join(t.TempDir(), "gateway.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s := store.New(conn, store.SQLite, core.SystemClock)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return conn, s
}

// TestRehearsalsWork: the statements of a rehearsal change rows, as they do in real work.
func TestRehearsalsWork(t *testing.T) {
	conn, _ := opened(t)
	for w, statements := range map[core.Work]string{
		core.Intake:      "insert_event insert_jobs_if insert_runs insert_first_steps undo_events undo_jobs undo_runs undo_steps",
		core.Deliveries:  "insert_event claim insert_attempts insert_gates fail settle undo_gates undo_attempts",
		core.Transitions: "insert_history more_history insert_step_attempts insert_texts insert_steps change_steps insert_step_jobs change_jobs insert_tokens move_runs undo_history undo_step_texts undo_callbacks undo_steps undo_jobs",
		core.Turns:       "insert_turn turn undo_turns",
	} {
		c := counted{conn, map[string]int64{}}
		if err := store.New(c, store.SQLite, core.SystemClock).Rehearse(t.Context(), w); err != nil {
			t.Errorf("Rehearse(%s) = %v, want none", w, err)
		}
		for _, name := range strings.Fields(statements) {
			if c.changed[name] == 0 {
				t.Errorf("Rehearse(%s): %s changed no row; all: %v", w, name, c.changed)
			}
		}
	}
}

// TestRehearsalsFail: a rehearsal fails while a table that the work writes to is missing.
func TestRehearsalsFail(t *testing.T) {
	conn, s := opened(t)
	for _, tt := range []struct {
		table string
		fails []core.Work
	}{
		{"events", []core.Work{core.Intake, core.Deliveries, core.Transitions}},
		{"jobs", []core.Work{core.Intake, core.Deliveries, core.Transitions}},
		{"runs", []core.Work{core.Intake}},
		{"attempts", []core.Work{core.Deliveries, core.Transitions}},
		{"gates", []core.Work{core.Deliveries}},
		{"history", []core.Work{core.Transitions}},
		{"step_texts", []core.Work{core.Transitions}},
		{"callbacks", []core.Work{core.Transitions}},
		{"turns", []core.Work{core.Turns}},
	} {
		rename := func(from, to string) {
			if _, err := conn.Batch(t.Context(), store.Stmt{Name: "rename", SQL: "ALTER TABLE " + from + " RENAME TO " + to}); err != nil {
				t.Fatal(err)
			}
		}
		rename(tt.table, "elsewhere")
		for _, w := range tt.fails {
			err := s.Rehearse(t.Context(), w)
			if !core.IsKind(err, core.Unavailable) || !strings.Contains(err.Error(), "gateway doctor") || !strings.Contains(err.Error(), tt.table) {
				t.Errorf("Rehearse(%s) without table %s = %v, want a refusal that names it and doctor", w, tt.table, err)
			}
		}
		rename("elsewhere", tt.table)
	}
	for _, w := range []core.Work{core.Intake, core.Deliveries, core.Transitions, core.Turns} {
		if err := s.Rehearse(t.Context(), w); err != nil {
			t.Errorf("Rehearse(%s) = %v, want none", w, err)
		}
	}
}
