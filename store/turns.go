package store

import (
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Turn reports whether this process has a turn. See core.Upkeep. The caller writes a new name
// into the row if the turn of the last holder is over, and reads which name is there. So the
// batch can be sent twice, and of several processes one finds its own name.
func (s *Store) Turn(ctx context.Context, now time.Time, name string, hold time.Duration) (bool, error) {
	ownName := string(s.leases.Next())
	stmts := s.turnStmts(now, name, ownName, hold)
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return false, fmt.Errorf("turn %q: %w", name, err)
	}
	rows := results[len(stmts)-1].Rows
	return len(rows) > 0 && rowKey(rows[0]) == ownName, nil
}

// turnStmts are the statements of a Turn for a holder. The last one reads the holder.
func (s *Store) turnStmts(now time.Time, name, holder string, hold time.Duration) []Stmt {
	end := now.Add(hold)
	return []Stmt{
		s.sql.insertTurn.on([]any{name}),
		s.sql.turn.with(millis(end), holder, name, millis(now), millis(end.Add(core.TurnHorizon))),
		s.sql.whose.with(name),
	}
}

// turnsSQL are the statements of a Turn.
type turnsSQL struct{ insertTurn, turn, whose statement }

func newTurnsSQL(d Dialect) turnsSQL {
	return turnsSQL{
		insertTurn: writing("insert_turn", d.insertIfAbsent("turns", `name, until_at, holder`, `r.name, 0, ''`, "", "", "name")),
		// until_at beyond core.TurnHorizon was written before the clock was set back, and
		// counts as over.
		turn:  writing("turn", d.sql(`UPDATE turns SET until_at = ?, holder = ? WHERE name = ? AND (until_at <= ? OR until_at > ?)`)),
		whose: reading("whose_turn", d.sql(`SELECT holder FROM turns WHERE name = ?`)),
	}
}
