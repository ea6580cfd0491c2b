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
var swept = [...]string{"attempts", "steps", "step_texts", "history", "callbacks"}

// positions are up to where tables have been looked at by this process.
type positions struct {
	mu   sync.Mutex
	of   map[string]string
	turn int
}

func (p *positions) at(table string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[table]
}

// move goes on behind a row, or begins anew.
func (p *positions) move(table, behind string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[string]string{}
	}
	p.of[table] = behind
}

// behind is where a slice ends, of which the first column is where each row is. One that
// is not full ends with its table.
func behind(slice [][]any, full int) string {
	if len(slice) < full {
		return ""
	}
	return str(slice[len(slice)-1][0])
}

// next is the table whose turn it is.
func (p *positions) next() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn++
	return swept[p.turn%len(swept)]
}

// sweep looks at a slice of one table and deletes what nothing leads to.
func (s *Store) sweep(ctx context.Context, limit int) error {
	table := s.seen.next()
	look, parts := Stmt{Name: "slice_attempts", SQL: s.sql.sliceAttempts}, jobParts(s.sql)
	switch table {
	case "steps":
		look, parts = Stmt{Name: "slice_steps", SQL: s.sql.sliceSteps}, runParts(s.sql)
	case "step_texts":
		look, parts = Stmt{Name: "slice_texts", SQL: s.sql.sliceTexts}, runParts(s.sql)
	case "history":
		look, parts = Stmt{Name: "slice_history", SQL: s.sql.sliceHistory}, runParts(s.sql)
	case "callbacks":
		look, parts = Stmt{Name: "slice_callbacks", SQL: s.sql.sliceCallbacks}, runParts(s.sql)
	}
	rows, err := s.read(ctx, look.Name, look.SQL, s.seen.at(table), int64(limit))
	if err != nil {
		return err
	}
	for i, row := range rows {
		if whole(row[1]) > 0 || i > 0 && row[0] == rows[i-1][0] {
			continue
		}
		if err := s.dismantle(ctx, row[0], parts); err != nil {
			return err
		}
	}
	s.seen.move(table, behind(rows, limit))
	return nil
}

// forgetGates deletes gates that have nothing to say: nothing failed since they last let
// something through, and that is long ago. All lanes' gates are few.
func (s *Store) forgetGates(ctx context.Context, before time.Time) error {
	ms, us := millis(before), before.UnixMicro()
	rows, err := s.read(ctx, "idle_gates", s.sql.idleGates, ms, ms, us, int64(partsAt))
	if err != nil || len(rows) == 0 {
		return err
	}
	for i, row := range rows {
		rows[i] = []any{row[0], ms, ms, us}
	}
	_, err = s.write(ctx, Stmt{Name: "forget_gates", SQL: s.sql.forgetGates, Rows: rows})
	return err
}
