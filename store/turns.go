package store

import (
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Turn tells whose turn it is. See core.Upkeep. Who asks writes a new name into the row,
// if its time has come, and reads which name is there: so it may be asked twice.
func (s *Store) Turn(ctx context.Context, now time.Time, name string, hold time.Duration) (bool, error) {
	stmts := s.turnStmts(now, name, hold)
	me := stmts[1].Args[1].(string)
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return false, fmt.Errorf("turn to %s: %w", name, err)
	}
	rows := results[2].Rows
	return len(rows) > 0 && str(rows[0][0]) == me, nil
}

// turnStmts are the statements of a Turn. The second one writes the new name.
func (s *Store) turnStmts(now time.Time, name string, hold time.Duration) []Stmt {
	me, end := string(s.leases.Next()), now.Add(hold)
	return []Stmt{
		{Name: "insert_turn", SQL: s.sql.insertTurn, Rows: [][]any{{name}}},
		{Name: "turn", SQL: s.sql.turn, Args: []any{millis(end), me, name, millis(now), millis(end.Add(core.TurnHorizon))}},
		{Name: "whose_turn", SQL: s.sql.whose, Args: []any{name}, Reads: true},
	}
}
