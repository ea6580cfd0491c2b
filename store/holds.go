package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Hold holds a lane. See core.Holds. The hold is in the lane's gate, which each claim reads. So no
// claim that begins after this commit takes a job. See "Gates" in doc.go for earlier claims.
func (s *Store) Hold(ctx context.Context, now time.Time, lane core.Lane, until time.Time, reason string) error {
	if until.IsZero() {
		until = core.NoEnd
	}
	at := now.UnixMilli()
	err := s.numberSource(ctx, now, lane)
	if err != nil {
		return fmt.Errorf("hold lane %q: %w", lane, err)
	}
	stmts := []Stmt{s.sql.insertGate.on([]any{string(lane)})}
	if entry := s.audited(ctx, s.sql.auditHeld, []any{until.UnixMilli(), at, reason, string(lane)}); len(entry) > 0 {
		if s.sql.lockGate.sql != "" {
			stmts = append(stmts, s.sql.lockGate.on([]any{string(lane)}))
		}
		stmts = append(stmts, entry...)
	}
	results, err := s.write(ctx, append(stmts,
		s.sql.hold.on([]any{at, at, reason, until.UnixMilli(), string(lane)}).noMerge(),
		s.sql.sourceHolds.with())...)
	if err != nil {
		return fmt.Errorf("hold lane %q: %w", lane, err)
	}
	s.sources.observe(results[len(results)-1].Rows)
	return nil
}

// Unhold ends the holds of lanes. See core.Holds. A hold that this call ended has held_until =
// now and no beginning, so the read at the end finds the same holds when the batch is sent twice.
// A hold that ends by itself at this time keeps its beginning.
func (s *Store) Unhold(ctx context.Context, now time.Time, lanes ...core.Lane) ([]core.Lane, error) {
	if len(lanes) == 0 {
		return nil, nil
	}
	at := now.UnixMilli()
	var ends, reads, guards [][]any
	for _, l := range slices.Compact(slices.Sorted(slices.Values(lanes))) {
		ends, reads = append(ends, []any{at, string(l), at}), append(reads, []any{string(l)})
		guards = append(guards, []any{at, string(l)})
	}
	results, err := s.write(ctx, append([]Stmt{
		s.sql.unhold.on(ends...).sortedBy(unheldLane).noMerge(),
		s.sql.gates.on(reads...),
		s.sql.sourceHolds.with()}, s.audited(ctx, s.sql.auditReleased, guards...)...)...)
	if err != nil {
		return nil, fmt.Errorf("end holds: %w", err)
	}
	s.sources.observe(results[2].Rows)
	var released []core.Lane
	for l, g := range gatesOf(reads, results[1].Rows) {
		if g.HeldUntil.UnixMilli() == at && g.HeldSince.IsZero() {
			released = append(released, l)
		}
	}
	slices.Sort(released)
	return released, nil
}

// unheldLane is the position of the lane in a row of unhold.
const unheldLane = 1

// Holding returns the holds that have not ended. See core.Holds. It reads all gates, of which
// there is one for each lane at most.
func (s *Store) Holding(ctx context.Context, now time.Time) ([]core.Hold, error) {
	results, err := s.readBatch(ctx, s.sql.holding.with(now.UnixMilli()))
	if err != nil {
		return nil, fmt.Errorf("list holds: %w", err)
	}
	holds := make([]core.Hold, 0, len(results[0].Rows))
	for _, row := range results[0].Rows {
		r := rowReader{row}
		h := core.Hold{Lane: core.Lane(r.text()), Since: timeUnlessZero(r.value(), time.UnixMilli),
			Until: timeUnlessZero(r.value(), time.UnixMilli), Reason: r.text()}
		if h.Until.Equal(core.NoEnd) {
			h.Until = time.Time{}
		}
		holds = append(holds, h)
	}
	return holds, nil
}

// holdsSQL are the statements on holds. See "Gates" in doc.go.
type holdsSQL struct{ hold, unhold, holding statement }

func newHoldsSQL(d Dialect) holdsSQL {
	return holdsSQL{
		// held_until comes last: MySQL evaluates SET from left to right and reads the new
		// values. A lane that is held keeps the time since which it is.
		hold: writing("hold_lane", d.updateRows("gates", `held_since = CASE WHEN held_until > r#now THEN held_since ELSE r#since END,
			hold_reason = r.reason, held_until = r#until`, `gates.lane = r.lane`)),
		unhold: writing("unhold_lanes", d.updateRows("gates", `held_since = 0, hold_reason = NULL, held_until = r#ended`,
			`gates.lane = r.lane AND gates.held_until > r#now`)),
		// lane > '' lets the statement go by the primary key.
		holding: reading("holding", d.sql(`SELECT lane, held_since, held_until, hold_reason FROM gates{use PRIMARY}
			WHERE lane > '' AND held_until > ? ORDER BY lane`)),
	}
}
