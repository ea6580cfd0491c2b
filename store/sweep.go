package store

import (
	"context"
	"sync"
	"time"
)

// A sweep looks for rows that nothing leads to any more: parts of jobs and runs that are
// gone, as a Purge leaves them that breaks off. Each Purge looks at a slice of one table,
// from where the last slice ended, so that it costs the same however large the table is.
// What is found is deleted under the guard that it is still so.

// swept are the tables in the order of their turns.
var sweptTables = [...]string{"attempts", "steps", "step_texts", "history", "callbacks"}

// positions are up to where tables have been looked at by this process.
type scanPositions struct {
	mu     sync.Mutex
	behind map[string]string
	turn   int
}

func (p *scanPositions) position(table string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.behind[table]
}

// move goes on behind a row, or begins anew.
func (p *scanPositions) move(table, behind string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.behind == nil {
		p.behind = map[string]string{}
	}
	p.behind[table] = behind
}

// behind is where a slice ends, of which the first column is where each row is. One that
// is not full ends with its table.
func lastOf(slice [][]any, full int) string {
	if len(slice) < full {
		return ""
	}
	return rowKey(slice[len(slice)-1])
}

// next is the table whose turn it is.
func (p *scanPositions) nextTable() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn++
	return sweptTables[p.turn%len(sweptTables)]
}

// sweep looks at a slice of one table and deletes what nothing leads to.
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
		owner := row[sliceOwner]
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

// forgetGates deletes gates that have nothing to say: nothing failed since they last let
// something through, and that is long ago. All lanes' gates are few.
func (s *Store) forgetGates(ctx context.Context, before time.Time) error {
	ms, us := millis(before), before.UnixMicro()
	rows, err := s.read(ctx, s.sql.idleGates, ms, ms, us, int64(partChunk))
	if err != nil || len(rows) == 0 {
		return err
	}
	for i, row := range rows {
		rows[i] = []any{rowKey(row), ms, ms, us}
	}
	_, err = s.write(ctx, s.sql.forgetGates.on(rows...))
	return err
}

// The columns of a slice: the owner of a row, and how many owners of that id there are.
const (
	sliceOwner = iota
	sliceOwners
)

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

		idleGates:   reading("idle_gates", d.sql(`SELECT lane FROM gates{use PRIMARY} WHERE lane > '' AND `+idleGate("?", "?", "?")+` LIMIT {limit}`)),
		forgetGates: writing("forget_gates", d.deleteRows("gates", `gates.lane = r.lane AND `+idleGate("r#closed", "r#until", "r#next"))),
	}
}

// slice is a statement that looks at some rows of a table by the column that names their
// owner, and at how many owners each has.
func sliceSQL(column, table, owners string) string {
	return `SELECT slice.owner, (SELECT COUNT(*) FROM ` + owners + ` WHERE ` + owners + `.id = slice.owner) AS owners
		FROM (SELECT ` + column + ` AS owner FROM ` + table + ` WHERE ` + column + ` > ? ORDER BY ` + column + ` LIMIT {limit}) AS slice ORDER BY slice.owner`
}

// idle is the condition of a gate that has nothing to say.
func idleGate(closed, until, next string) string {
	return `gates.failures = 0 AND gates.stray_since IS NULL AND gates.closed_at < ` + closed + ` AND gates.open_until < ` + until + ` AND gates.next_us < ` + next
}
