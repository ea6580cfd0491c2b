package store

import (
	"context"
	"sync"
	"time"
)

// A sweep looks for rows whose owner is gone: parts of jobs and runs that an interrupted Purge
// left behind. Each Purge reads one slice of one table, from where the last slice of this
// process ended. So a sweep costs the same however large the table is, and in time every row is
// seen. Rows are deleted under the condition that their owner is still gone.

// sweptTables are the tables in their order.
var sweptTables = [...]string{"attempts", "steps", "step_texts", "history", "callbacks"}

// scanPositions are how far this process has read tables: those of a sweep, and events, see
// findExpired. They are kept in memory; a process that restarts begins anew.
type scanPositions struct {
	mu     sync.Mutex        // guards the fields below
	behind map[string]string // the last key that was read, by table
	turn   int               // counts sweeps
}

// position returns the key behind which the next slice of a table begins.
func (p *scanPositions) position(table string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.behind[table]
}

// move sets the key behind which the next slice begins; "" for the beginning of the table.
func (p *scanPositions) move(table, behind string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.behind == nil {
		p.behind = map[string]string{}
	}
	p.behind[table] = behind
}

// lastOf returns the key at which a slice ended. A slice with fewer rows than asked for reached
// the end of its table, so the next one begins at the beginning: "".
func lastOf(slice [][]any, full int) string {
	if len(slice) < full {
		return ""
	}
	return rowKey(slice[len(slice)-1])
}

// nextTable returns the table to sweep now.
func (p *scanPositions) nextTable() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn++
	return sweptTables[p.turn%len(sweptTables)]
}

// sweepOneTable reads a slice of one table and deletes the parts of owners that are gone.
func (s *Store) sweepOneTable(ctx context.Context, limit int) error {
	table := s.scanned.nextTable()
	scan, parts := s.sql.sliceAttempts, jobParts(&s.sql)
	switch table {
	case "steps":
		scan, parts = s.sql.sliceSteps, runParts(&s.sql)
	case "step_texts":
		scan, parts = s.sql.sliceTexts, runParts(&s.sql)
	case "history":
		scan, parts = s.sql.sliceHistory, runParts(&s.sql)
	case "callbacks":
		scan, parts = s.sql.sliceCallbacks, runParts(&s.sql)
	}
	rows, err := s.read(ctx, scan, s.scanned.position(table), int64(limit))
	if err != nil {
		return err
	}
	for i, row := range rows {
		owner := row[sliceOwner] // rows of one owner come together
		if intOf(row[sliceOwners]) > 0 || i > 0 && owner == rows[i-1][sliceOwner] {
			continue
		}
		if err := s.deleteParts(ctx, owner, parts); err != nil {
			return err
		}
	}
	s.scanned.move(table, lastOf(rows, limit))
	return nil
}

// forgetGates deletes gates without information: no failures, not a stray, and no time that is
// later than before. There are as many gates as lanes, so all of them are read.
func (s *Store) forgetGates(ctx context.Context, before time.Time) error {
	ms, us := millis(before), before.UnixMicro()
	rows, err := s.read(ctx, s.sql.idleGates, ms, ms, us, ms, int64(partChunk))
	if err != nil || len(rows) == 0 {
		return err
	}
	for i, row := range rows {
		rows[i] = []any{rowKey(row), ms, ms, us, ms}
	}
	_, err = s.write(ctx, s.sql.forgetGates.on(rows...))
	return err
}

// The columns of a slice: the owner of a row, and how many owners with that id exist, 0 or 1.
const (
	sliceOwner = iota
	sliceOwners
)

// sweepSQL are the statements of sweeps and of forgetGates.
type sweepSQL struct {
	sliceAttempts, sliceSteps, sliceTexts, sliceHistory, sliceCallbacks statement
	idleGates, forgetGates                                              statement
}

func newSweepSQL(d Dialect) sweepSQL {
	return sweepSQL{
		sliceAttempts:  reading("slice_attempts", d.sql(sliceSQL("job_id", "attempts{use PRIMARY}", "jobs"))),
		sliceSteps:     reading("slice_steps", d.sql(sliceSQL("run_id", "steps{use steps_path}", "runs"))),
		sliceTexts:     reading("slice_texts", d.sql(sliceSQL("run_id", "step_texts{use PRIMARY}", "runs"))),
		sliceHistory:   reading("slice_history", d.sql(sliceSQL("run_id", "history{use PRIMARY}", "runs"))),
		sliceCallbacks: reading("slice_callbacks", d.sql(sliceSQL("run_id", "callbacks{use callbacks_step}", "runs"))),

		// lane > '' lets the statement go by the primary key.
		idleGates:   reading("idle_gates", d.sql(`SELECT lane FROM gates{use PRIMARY} WHERE lane > '' AND `+idleGate("?", "?", "?", "?")+` LIMIT {limit}`)),
		forgetGates: writing("forget_gates", d.deleteRows("gates", `gates.lane = r.lane AND `+idleGate("r#closed", "r#until", "r#next", "r#held"))),
	}
}

// sliceSQL reads owners from a slice of a table, in the order of an index that leads with them,
// and counts how many owners with each id exist.
func sliceSQL(column, table, owners string) string {
	return `SELECT slice.owner, (SELECT COUNT(*) FROM ` + owners + ` WHERE ` + owners + `.id = slice.owner) AS owners
		FROM (SELECT ` + column + ` AS owner FROM ` + table + ` WHERE ` + column + ` > ? ORDER BY ` + column + ` LIMIT {limit}) AS slice ORDER BY slice.owner`
}

// idleGate is the condition that a gate has the same effect as no gate. That of a source is kept as
// long as the source has a number: jobs may be parked under its hold.
func idleGate(closed, until, next, held string) string {
	return `gates.failures = 0 AND gates.stray_since IS NULL AND gates.closed_at < ` + closed + ` AND gates.open_until < ` + until + ` AND gates.next_us < ` + next +
		` AND gates.held_until < ` + held + ` AND (SELECT COUNT(*) FROM source_holds WHERE source_holds.lane = gates.lane) = 0`
}
