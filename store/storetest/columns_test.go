package storetest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// Each column of the schema must be stored and read back. This file proves that the suite notices
// if a column is not. For each column it makes a SQLite database that forgets the column:
// triggers replace each value that a statement writes there by the empty value of the column. One
// check of the suite, named below, must then fail. A column that no statement writes, or that no
// method reads, also fails this test: forgetting it changes nothing.
//
// SQLite stands for all databases here, since the columns, the lists of columns in statements and
// the code that reads rows are the same for all dialects.

// columnChecks names, for each column, a check that fails if the values of the column are lost.
// If several checks do, it names one that compares a value as users see it.
//
// For a new column, write a sentence about its effect at the interface in core, a check with the
// sentence, and an entry here.
var columnChecks = map[string]string{
	"attempts.attempt":     saysAttempts,
	"attempts.created_at":  saysAttempts,
	"attempts.duration_ms": saysAttempts,
	"attempts.error":       saysAttempts,
	"attempts.job_id":      saysAttempts,
	"attempts.lease":       saysSettled + "/after the job was taken again",
	"attempts.response":    saysAttempts,
	"attempts.exchange":    saysExchanges,
	"attempts.sent_body":   saysSentBody,
	"attempts.status_code": saysAttempts,

	"audit.action":  saysAudited + "/with each filter",
	"audit.actor":   saysAudited + "/with each filter",
	"audit.address": saysRecord,
	"audit.detail":  saysRecord,
	"audit.id":      saysAudited,
	"audit.role":    saysRecord,
	"audit.target":  saysAudited + "/with each filter",
	"audit.via":     saysRecord,

	"callbacks.expires_at": saysAwaited,
	"callbacks.run_id":     saysRecorded,
	"callbacks.step_id":    saysAwaited,
	"callbacks.token_hash": saysAwaited,

	"operations.acted":       saysSlice,
	"operations.error":       saysEnd,
	"operations.finished_at": saysEnd,
	"operations.id":          saysOperation,
	"operations.looked":      saysSlice,
	"operations.mark":        saysSlice,
	"operations.seq":         saysSlice,
	"operations.skipped":     saysSlice,
	"operations.spec":        saysOperation,
	"operations.started_at":  saysSlice,
	"operations.state":       saysOperation,
	"operations.walked":      saysSlice,

	"operation_picks.item":      saysSlice,
	"operation_picks.operation": saysSlice,

	"minutes.accepted":  saysCount,
	"minutes.at":        saysCount,
	"minutes.completed": saysCount,
	"minutes.dead":      saysCount,
	"minutes.failed":    saysCount,
	"minutes.lane":      saysCount,
	"minutes.process":   saysSum,

	"cron_marks.schedule": saysMarks,
	"cron_marks.source":   saysMarks,
	"cron_marks.until_at": saysMarks,

	"definitions.body": saysDefinition,
	"definitions.hash": saysDefinition,

	"events.content_type": saysEvent,
	"events.created_at":   saysEvent,
	"events.delivery_id":  saysDelivery,
	"events.encoding":     "Binary payloads are stored byte for byte",
	"events.headers":      saysEvent,
	"events.id":           saysEvent,
	"events.payload":      saysEvent,
	"events.source":       saysEvent,
	"events.type":         saysEvent,

	"gates.base_us":     saysStarts + "/in sequence",
	"gates.closed_at":   saysNoPass + "/after it closed",
	"gates.failures":    saysCounts,
	"gates.held_since":  saysHoldKeeps,
	"gates.held_until":  saysHold + "/until a time",
	"gates.hold_reason": saysHolding,
	"gates.lane":        saysCounts,
	"gates.moved_by":    saysOpens,
	"gates.next_us":     saysStarts + "/in sequence",
	"gates.open_until":  saysOpens,
	"gates.opened_at":   saysOpenings,
	"gates.openings":    saysOpenings,
	"gates.stray_since": saysStrays,
	"gates.taker":       saysNewest + "/a success",

	"history.at":     saysHistory,
	"history.data":   saysHistory,
	"history.epoch":  saysHistory,
	"history.mark":   saysTransitAgain + "/immediately",
	"history.path":   saysHistory,
	"history.run_id": saysHistory,
	"history.seq":    saysHistory,
	"history.type":   saysHistory,

	"jobs.attempt":      saysTake + "/leases",
	"jobs.created_at":   saysAccept + "/the jobs",
	"jobs.due_at":       saysAccept + "/the jobs",
	"jobs.earlier":      saysRetry,
	"jobs.event_id":     saysAccept + "/the jobs",
	"jobs.finished_at":  saysSettle + "/completed",
	"jobs.id":           saysAccept + "/the jobs",
	"jobs.job_key":      saysKey + "/left out",
	"jobs.lane":         saysAccept + "/the jobs",
	"jobs.last_error":   saysSettle + "/dead",
	"jobs.lease":        saysTake + "/leases",
	"jobs.line":         saysAdmitted,
	"jobs.max_attempts": saysAccept + "/the jobs",
	"jobs.scheduled_at": saysTake + "/leases",
	"jobs.success":      saysAttempts + "/of completed jobs",
	"jobs.status":       saysAccept + "/the jobs",

	"line_places.job_id":    saysNext,
	"line_places.line":      saysLineOrder,
	"line_places.place":     saysLineOrder,
	"line_slots.job_id":     saysNext,
	"line_slots.line":       saysAdmitted,
	"line_slots.reached":    saysNext,
	"line_slots.slot":       saysAdmitted + "/a limit of 2",
	"line_slots.stopped_at": saysStopsLine,

	"runs.created_at":  saysRunsStored,
	"runs.deadline_at": saysRunsStored,
	"runs.definition":  saysRunsStored,
	"runs.epoch":       saysRunsStored,
	"runs.error":       saysAllOrNothing + "/in sequence",
	"runs.event_id":    saysRunsStored,
	"runs.finished_at": saysRun,
	"runs.id":          saysRunsStored,
	"runs.output":      saysRun,
	"runs.seq":         saysRun,
	"runs.started_at":  saysRun,
	"runs.status":      saysRunsStored,
	"runs.step":        saysRunsStored,
	"runs.workflow":    saysRunsStored,
	"runs.writers":     saysAllOrNothing,
	"runs.written":     saysAllOrNothing,

	"source_holds.lane":   saysSourceHeld,
	"source_holds.number": saysSourceBack + "/while another source is held",
	"source_holds.source": saysSourceHeld,

	"steps.attempt":     saysAllOrNothing,
	"steps.branch":      saysAllOrNothing,
	"steps.carry":       saysAllOrNothing,
	"steps.epoch":       saysRunsStored,
	"steps.error":       saysAllOrNothing,
	"steps.fan":         saysAllOrNothing,
	"steps.finished_at": saysAllOrNothing,
	"steps.held_until":  saysAllOrNothing + "/HeldUntil of the steps that it ends",
	"steps.id":          saysRunsStored,
	"steps.leaf_of":     saysAllOrNothing,
	"steps.name":        saysRunsStored,
	"steps.output":      saysAllOrNothing,
	"steps.output_in":   saysAllOrNothing + "/with large states",
	"steps.parent_id":   saysAllOrNothing,
	"steps.path":        saysRunsStored,
	"steps.run_id":      saysRunsStored,
	"steps.started_at":  saysRunsStored,
	"steps.state":       saysAllOrNothing + "/steps whose output is their state",
	"steps.state_in":    saysAllOrNothing,
	"steps.status":      saysRunsStored,
	"steps.type":        saysRunsStored,

	"step_texts.body":   saysAllOrNothing,
	"step_texts.name":   saysAllOrNothing,
	"step_texts.run_id": saysAllOrNothing,

	"turns.holder":   "A Turn sent twice takes the turn once",
	"turns.name":     saysTurn,
	"turns.until_at": saysTurn,
}

// unreadColumns are the columns that no method of a store reads, with the reason.
var unreadColumns = map[string]string{
	"line_locks.stripe":       "its rows are only locked, on databases with several writers: see raceLines",
	"source_holds.held_at":    "keeps a number between two batches, while another process forgets it: see TestNumberIsRenewed in store/sqlite",
	"schema_steps.applied_at": "for people who look into the database",
	"schema_steps.number":     "drivers check it: see RunMigrations",
}

// TestEachColumnHasACheck fails if a column could be lost without a failure of the suite: a user
// would then lose that part of each event, job or run on some database. It takes the columns from
// the schema steps, so a new column fails it until a check covers the column.
func TestEachColumnHasACheck(t *testing.T) {
	if raceDetector {
		t.Skip("each check runs in one goroutine, and takes ten times as long under the detector")
	}
	path := filepath.Join(t.TempDir(), "gateway.db")
	conn, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	migrated(t, store.New(conn, store.SQLite, core.SystemClock))
	columns := columnsOf(t, conn)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	empty, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		sentence := columnChecks[name]
		if sentence == "" {
			if unreadColumns[name] == "" {
				t.Errorf("no check covers the column %s: name one in columnChecks that fails if its values are lost", name)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lost := failureWithout(t, empty, sentence, columns[name])
			if lost == "" {
				t.Fatalf("the check %q passes a store that forgets %s: it must store and compare a value other than 0 or an empty text", sentence, name)
			}
			t.Log(shortened(lost))
		})
	}
	// The failures above prove nothing if a check fails on an intact database as well.
	for _, sentence := range slices.Compact(slices.Sorted(maps.Values(columnChecks))) {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			if failed := failureWithout(t, empty, sentence, nil); failed != "" {
				t.Errorf("the check fails on a store that forgets nothing: %s", failed)
			}
		})
	}
	for name := range columnChecks {
		if columns[name] == nil {
			t.Errorf("columnChecks has %s, and the schema has no such column", name)
		}
	}
}

// columnsOf returns the columns of a migrated database as "table.column". Each has the triggers
// that make the database forget the column.
func columnsOf(t *testing.T, conn store.Conn) map[string][]store.Stmt {
	t.Helper()
	objects := store.Objects(store.SQLite)
	all := map[string][]store.Stmt{}
	for _, o := range objects {
		if o.Column == "" {
			continue
		}
		kind := store.Stmt{Name: "kind", SQL: `SELECT type, "notnull" FROM pragma_table_info(?) WHERE name = ?`, Args: []any{o.Table, o.Column}, Reads: true}
		res, err := conn.Batch(context.Background(), kind)
		if err != nil || len(res[0].Rows) != 1 {
			t.Fatalf("look up %s.%s: %v, %v", o.Table, o.Column, res, err)
		}
		empty := "NULL"
		if row := res[0].Rows[0]; row[1] == int64(1) {
			empty = map[any]string{"TEXT": "''", "INTEGER": "0"}[row[0]]
		}
		var key []string
		for _, k := range objects {
			if k.Table == o.Table && k.Key {
				key = append(key, k.Column+" = NEW."+k.Column)
			}
		}
		all[o.Table+"."+o.Column] = forget(o, empty, strings.Join(key, " AND "))
	}
	return all
}

// forget returns the triggers that set a column to its empty value after each INSERT and UPDATE of
// a row. The row is found by the condition. The condition of the trigger ends the recursion.
func forget(o store.Object, empty, row string) (triggers []store.Stmt) {
	for _, change := range []string{"INSERT", "UPDATE"} {
		triggers = append(triggers, store.Stmt{Name: "forget", SQL: fmt.Sprintf(
			`CREATE TRIGGER forget_%[1]s AFTER %[1]s ON %[2]s WHEN NEW.%[3]s IS NOT %[4]s BEGIN UPDATE %[2]s SET %[3]s = %[4]s WHERE %[5]s; END`,
			change, o.Table, o.Column, empty, row)})
	}
	return triggers
}

// failureWithout runs a check, by its name, on a new copy of the empty database that has the
// triggers. It returns the check's first failure, or "" if the check passed.
func failureWithout(t *testing.T, empty []byte, name string, triggers []store.Stmt) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gateway.db")
	if err := os.WriteFile(path, empty, 0o600); err != nil {
		t.Fatal(err)
	}
	conn, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	fault := &Fault{}
	s := store.New(Faulty(conn, fault), store.SQLite, core.SystemClock)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	if _, err := conn.Batch(context.Background(), triggers...); err != nil {
		t.Fatal(err)
	}
	return failure(func(t2 tb) {
		r := newRig(t2, s, Options{Slow: true})
		for _, c := range statementChecks {
			if c.says == name {
				c.run(r, fault)
				return
			}
		}
		find(t, name).run(r)
	})
}
