package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// zeroIfNever is how gates store a time in milliseconds: 0 stands for never. Unlike null, 0 can
// be compared in conditions.
func zeroIfNever(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// timeUnlessZero reads a time of a gate in the unit of at.
func timeUnlessZero(v any, at func(int64) time.Time) time.Time {
	if n, ok := v.(int64); ok && n != 0 {
		return at(n).UTC()
	}
	return time.Time{}
}

// gateState are the columns that a core.Gate is read from. taker and base_us are internal.
const gateState = `gates.failures, gates.open_until, gates.closed_at, gates.next_us, gates.moved_by, gates.held_since, gates.held_until, ` +
	`gates.opened_at, gates.openings`

// gate reads gateState. A lane without a row has the zero Gate.
func (r *rowReader) gate() core.Gate {
	return core.Gate{
		Failures:  r.number(),
		OpenUntil: timeUnlessZero(r.value(), time.UnixMilli),
		ClosedAt:  timeUnlessZero(r.value(), time.UnixMilli),
		NextAt:    timeUnlessZero(r.value(), time.UnixMicro),
		MovedBy:   r.id(),
		HeldSince: timeUnlessZero(r.value(), time.UnixMilli),
		HeldUntil: timeUnlessZero(r.value(), time.UnixMilli),
		OpenedAt:  timeUnlessZero(r.value(), time.UnixMilli),
		Openings:  r.number(),
	}
}

// gatesOf returns the gates of lanes. Rows of other lanes belong to another caller's statement
// that was merged with this one, and are skipped.
func gatesOf(lanes, rows [][]any) map[core.Lane]core.Gate {
	of := make(map[core.Lane]core.Gate, len(lanes))
	for _, l := range lanes {
		of[core.Lane(rowKey(l))] = core.Gate{}
	}
	for _, row := range rows {
		r := rowReader{row}
		l := core.Lane(r.text())
		if _, asked := of[l]; asked {
			of[l] = r.gate()
		}
	}
	return of
}

// movesGate reports whether an outcome can change its lane's gate.
func movesGate(o *core.Outcome) bool { return o.Lane != "" && (o.Verdict != core.NoVerdict || o.Probe) }

// verdictsByLane returns the outcomes that can change a gate, by lane and in order. If an
// attempt has several outcomes, only the first counts.
func verdictsByLane(outcomes []core.Outcome) map[core.Lane][]*core.Outcome {
	type attempt struct {
		job   core.ID
		lease core.Lease
	}
	of, seen := map[core.Lane][]*core.Outcome{}, make(map[attempt]bool, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		if a := (attempt{o.JobID, o.Lease}); movesGate(o) && !seen[a] {
			seen[a] = true
			of[o.Lane] = append(of[o.Lane], o)
		}
	}
	return of
}

// gateStmts are the statements by which outcomes change gates, and the lanes whose gates are to
// be read afterwards.
//
// If all outcomes are successes, one statement handles all lanes; it changes no row unless a
// gate counts failures. Otherwise the outcomes are applied one after the other: whether a
// failure opens the breaker depends on the outcomes before it, and on which of them still hold
// their lease, which only the database knows. Then each lane gets its own statements, in the
// order of lanes and also for lanes with successes alone. Takes and Settles lock gates in this
// order, each gate once, so that they wait in line and cannot deadlock.
func (s *Store) gateStmts(outcomes []core.Outcome) (stmts []Stmt, lanes [][]any) {
	byLane := verdictsByLane(outcomes)
	order := slices.Sorted(maps.Keys(byLane))
	for _, l := range order {
		if slices.ContainsFunc(byLane[l], func(o *core.Outcome) bool { return isFailure(o) || o.Probe }) {
			lanes = append(lanes, []any{string(l)})
		}
	}
	if len(lanes) > 0 {
		for _, l := range order {
			stmts = append(stmts, s.laneGateStmts(l, byLane[l])...)
		}
		stmts[0].NoMerge = true // merging would sort by statement and break the lock order
		return stmts, lanes
	}
	var successes [][]any
	for _, l := range order {
		successes = append(successes, succeededRows(fewSuccesses(byLane[l]))...)
	}
	if len(successes) > 0 {
		stmts = []Stmt{s.sql.succeed.on(successes...).sortedBy(succeededLane)}
	}
	return stmts, nil
}

// isFailure reports whether an outcome counts against the breaker.
func isFailure(o *core.Outcome) bool { return o.Verdict == core.Failure }

// laneGateStmts are the statements that change the gate of one lane. A failure needs a row to
// count in; a success without a row has nothing to change.
func (s *Store) laneGateStmts(l core.Lane, outcomes []*core.Outcome) (stmts []Stmt) {
	if run := sameVerdict(outcomes); len(run) == len(outcomes) && run[0].Verdict == core.Success {
		outcomes = fewSuccesses(run)
	}
	if slices.ContainsFunc(outcomes, isFailure) {
		stmts = append(stmts, s.sql.insertGate.on([]any{string(l)}))
	}
	return append(stmts, s.orderedVerdictStmts(outcomes)...)
}

// sameVerdict returns the first outcomes, up to the first with another verdict.
func sameVerdict(outcomes []*core.Outcome) []*core.Outcome {
	n := 1
	for n < len(outcomes) && outcomes[n].Verdict == outcomes[0].Verdict {
		n++
	}
	return outcomes[:n]
}

// orderedVerdictStmts are statements that apply outcomes to one gate in their order. Successes
// in a row make one statement, and so do probes in a row that ended without a verdict: their
// order does not matter. Each failure is a statement of its own, since it counts up.
func (s *Store) orderedVerdictStmts(outcomes []*core.Outcome) (stmts []Stmt) {
	for len(outcomes) > 0 {
		run := sameVerdict(outcomes)
		outcomes = outcomes[len(run):]
		switch run[0].Verdict {
		case core.Success:
			stmts = append(stmts, s.sql.succeed.on(succeededRows(run)...))
		case core.Failure:
			for _, o := range run {
				job, lease, b := string(o.JobID), string(o.Lease), o.Breaker.Numbers()
				almost, until := int64(b.Failures-1), o.At.Add(b.Cooldown).UnixMilli()
				stmts = append(stmts, s.sql.fail.with(almost, job, almost, almost, o.At.UnixMilli(), almost, almost, until, string(o.Lane), lease, job, lease))
			}
		default:
			rows := make([][]any, len(run))
			for i, o := range run {
				rows[i] = endProbeRow(o.At, o.Lane, o.Lease)
			}
			stmts = append(stmts, s.sql.endProbe.on(rows...))
		}
	}
	return stmts
}

// mostSuccesses is how many successes of a lane a Settle applies to its gate.
const mostSuccesses = 3

// fewSuccesses returns the first outcome of each of the first leases; all outcomes are successes of one
// lane. One success closes the breaker as well as many do, and to check the gate for each of a hundred
// jobs would be a twelfth of the time of their Settle. The price: if these outcomes have lost their
// leases, the others do not count either.
func fewSuccesses(outcomes []*core.Outcome) (few []*core.Outcome) {
	for _, o := range outcomes {
		if len(few) == mostSuccesses {
			break
		}
		if !slices.ContainsFunc(few, func(s *core.Outcome) bool { return s.Lease == o.Lease }) {
			few = append(few, o)
		}
	}
	return few
}

// probesOf returns rows of endProbe for jobs that are given back: one for each lane and lease,
// sorted by lane, which is the lock order.
func probesOf(next time.Time, jobs []core.Job) (rows [][]any) {
	type take struct {
		lane  core.Lane
		lease core.Lease
	}
	seen := map[take]bool{}
	for _, j := range jobs {
		if t := (take{j.Lane, j.Lease}); !seen[t] {
			seen[t] = true
			rows = append(rows, endProbeRow(next, j.Lane, j.Lease))
		}
	}
	slices.SortStableFunc(rows, func(a, b []any) int { return cmp.Compare(textOf(a[endedLane]), textOf(b[endedLane])) })
	return rows
}

// succeededLane is the position of the lane in a row of succeed.
const succeededLane = 2

// succeededRows returns rows of succeed.
func succeededRows(outcomes []*core.Outcome) [][]any {
	rows := make([][]any, len(outcomes))
	for i, o := range outcomes {
		job, lease := string(o.JobID), string(o.Lease)
		rows[i] = []any{o.At.UnixMilli(), job, string(o.Lane), lease, job, lease}
	}
	return rows
}

// endedLane is the position of the lane in a row of endProbe.
const endedLane = 1

// endProbeRow is a row of endProbe. The breaker lets the next probe start at the time next.
func endProbeRow(next time.Time, l core.Lane, lease core.Lease) []any {
	return []any{next.UnixMilli(), string(l), string(lease)}
}

// CloseBreakers closes breakers. See core.Worklist. A gate that this call closed has closed_at
// = now and no job in moved_by. So the read at the end finds the same gates when the batch is
// sent twice.
func (s *Store) CloseBreakers(ctx context.Context, now time.Time, lanes ...core.Lane) ([]core.Lane, error) {
	if len(lanes) == 0 {
		return nil, nil
	}
	var closes, reads, guards [][]any
	for _, l := range slices.Compact(slices.Sorted(slices.Values(lanes))) {
		closes, reads = append(closes, []any{now.UnixMilli(), string(l)}), append(reads, []any{string(l)})
		guards = append(guards, []any{now.UnixMilli(), string(l)})
	}
	results, err := s.write(ctx, append([]Stmt{
		s.sql.closeGate.on(closes...).sortedBy(closedLane).noMerge(),
		s.sql.gates.on(reads...)}, s.audited(ctx, s.sql.auditClosed, guards...)...)...)
	if err != nil {
		return nil, fmt.Errorf("close breakers: %w", err)
	}
	var closed []core.Lane
	for l, g := range gatesOf(reads, results[1].Rows) {
		if g.ClosedAt.UnixMilli() == now.UnixMilli() && g.MovedBy == "" {
			closed = append(closed, l)
		}
	}
	slices.Sort(closed)
	return closed, nil
}

// closedLane is the position of the lane in a row of closeGate.
const closedLane = 1

// Strays returns the lanes with waiting jobs that are not known, and since when. See
// core.Worklist. Its cost depends on the number of lanes in which jobs wait, and not on the number
// of jobs.
//
// The time is stored in the lane's gate, so that all processes agree on it. Lanes that are
// known again lose it. A lane that has been a stray for core.StrayTime gets a clean gate: its
// breaker belonged to a configuration that is gone.
func (s *Store) Strays(ctx context.Context, now time.Time, known []core.Lane) (map[core.Lane]time.Time, error) {
	strays, marked, err := s.findStrays(ctx, known)
	if err != nil || len(strays)+len(marked) == 0 {
		return nil, err
	}
	var stmts []Stmt
	// The statements below lock gates. The order of each one's rows is the order of lanes.
	if len(marked) > 0 {
		stmts = append(stmts, s.sql.clearStray.on(marked...))
	}
	if len(strays) > 0 {
		marks, ends := make([][]any, len(strays)), make([][]any, len(strays))
		for i, row := range strays {
			marks[i], ends[i] = []any{now.UnixMilli(), rowKey(row)}, []any{rowKey(row), now.Add(-core.StrayTime).UnixMilli()}
		}
		stmts = append(stmts,
			s.sql.insertGate.on(strays...),
			s.sql.markStray.on(marks...),
			s.sql.setBack.on(ends...),
			s.sql.gates.on(strays...))
	}
	stmts[0].NoMerge = true
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return nil, fmt.Errorf("mark stray lanes: %w", err)
	}
	// Rows of lanes that another caller asked for are skipped.
	since, own := map[core.Lane]time.Time{}, map[string]bool{}
	for _, row := range strays {
		own[rowKey(row)] = true
	}
	for _, row := range results[len(results)-1].Rows {
		if lane := rowKey(row); own[lane] {
			since[core.Lane(lane)] = timeOf(row[straySince])
		}
	}
	return since, nil
}

// UnknownLanes returns the lanes with waiting jobs that are not known. Unlike Strays it writes
// nothing, so it does not know since when they are strays. Doctor uses it.
func (s *Store) UnknownLanes(ctx context.Context, known []core.Lane) ([]core.Lane, error) {
	rows, _, err := s.findStrays(ctx, known)
	lanes := make([]core.Lane, len(rows))
	for i, row := range rows {
		lanes[i] = core.Lane(rowKey(row))
	}
	return lanes, err
}

// straySince is the position of stray_since in a row of the statement gates.
const straySince = 10

// findStrays returns the unknown lanes with waiting jobs, and the known lanes that are still
// marked as strays, both as rows in the order of lanes.
func (s *Store) findStrays(ctx context.Context, known []core.Lane) (strays, marked [][]any, err error) {
	all := sortLanes(known)
	results, err := s.readBatch(ctx, s.sql.lanesWaiting.with(""), s.sql.allGates.with())
	if err != nil {
		return nil, nil, fmt.Errorf("find stray lanes: %w", err)
	}
	waiting, _, err := s.distinctAfter(ctx, results[0].Rows, math.MaxInt, s.sql.lanesWaiting)
	if err != nil {
		return nil, nil, fmt.Errorf("find stray lanes: %w", err)
	}
	for _, lane := range waiting {
		if !all.has(lane) {
			strays = append(strays, []any{lane})
		}
	}
	for _, row := range results[1].Rows {
		if row[straySince] != nil && all.has(rowKey(row)) {
			marked = append(marked, row[:1])
		}
	}
	slices.SortFunc(strays, byKey)
	slices.SortFunc(marked, byKey)
	return strays, marked, nil
}

// gateColumns are all columns of a gate.
const gateColumns = `lane, failures, open_until, closed_at, moved_by, taker, base_us, next_us, stray_since`

// The states of a gate's breaker.
const (
	isOpen   = `gates.open_until <> 0`
	isClosed = `gates.open_until = 0`

	// A lane that is not held now. Its gate has 0 in held_until if it never was.
	isFree = `gates.held_until <= ?`

	// A verdict counts if the breaker is closed, or if it comes from the newest probe of an
	// open breaker. Opening clears the taker, so the taker of an open breaker is always a
	// probe.
	mayMove = `(` + isClosed + ` OR gates.taker = `
)

// gatesSQL are the statements on gates, except Take's. See "Gates" in doc.go.
type gatesSQL struct {
	insertGate, gates, allGates, succeed, fail, endProbe, closeGate statement
	markStray, setBack, clearStray                                  statement
}

func newGatesSQL(d Dialect) gatesSQL {
	return gatesSQL{
		// Concurrent processes make the same gate; the second INSERT is skipped.
		insertGate: writing("insert_gates", d.insertIfAbsent("gates", gateColumns, `r.lane, 0, 0, 0, '', '', 0, 0, NULL`, "", "", "lane")),
		gates:      reading("gates", d.selectRows(`gates.lane, `+gateState+`, gates.stray_since`, "gates{use PRIMARY}", `gates.lane = r.lane`)),
		allGates:   reading("all_gates", d.sql(`SELECT gates.lane, `+gateState+`, gates.stray_since FROM gates`)),

		// A verdict counts once, while its job is held: a second sending finds the job settled.
		// open_until and failures come last, since MySQL evaluates SET from left to right and
		// reads the new values. The condition on failures keeps a success from writing to a
		// healthy gate.
		succeed: uncounted("succeed", d.updateRows("gates", `closed_at = CASE WHEN `+isOpen+` THEN r#closed_at ELSE closed_at END,
			moved_by = CASE WHEN `+isOpen+` THEN r.moved_by ELSE moved_by END, taker = CASE WHEN `+isOpen+` THEN '' ELSE taker END,
			open_until = 0, failures = 0`,
			`gates.lane = r.lane AND gates.failures > 0 AND `+mayMove+`r.taker) AND EXISTS (SELECT 1 FROM jobs WHERE `+heldGuard+`)`)),
		// The first question mark is the number of failures at which one more opens the
		// breaker. A failed probe opens the breaker for longer, which is no opening.
		fail: writing("fail", d.sql(`UPDATE gates SET moved_by = CASE WHEN `+isOpen+` THEN '' WHEN failures >= ? THEN ? ELSE moved_by END,
			taker = CASE WHEN `+isOpen+` OR failures >= ? THEN '' ELSE taker END,
			opened_at = CASE WHEN `+isClosed+` AND failures >= ? THEN ? ELSE opened_at END,
			openings = CASE WHEN `+isClosed+` AND failures >= ? THEN openings + 1 ELSE openings END,
			open_until = CASE WHEN `+isOpen+` OR failures >= ? THEN ? ELSE open_until END, failures = failures + 1
			WHERE lane = ? AND `+mayMove+`?) AND EXISTS (SELECT 1 FROM jobs
			WHERE jobs.id = ? AND jobs.status = 'running' AND jobs.lease = ?)`)),
		// A probe that ends without a verdict, while its lease is the gate's taker.
		endProbe: writing("end_probe", d.updateRows("gates", `open_until = r#open_until, taker = ''`,
			`gates.lane = r.lane AND `+isOpen+` AND gates.taker = r.taker`)),
		// By an operator: no job is named in moved_by.
		closeGate: writing("close_gates", d.updateRows("gates", `closed_at = CASE WHEN `+isOpen+` THEN r#closed_at ELSE closed_at END,
			moved_by = '', taker = CASE WHEN `+isOpen+` THEN '' ELSE taker END, open_until = 0, failures = 0`,
			`gates.lane = r.lane AND gates.failures > 0`)),

		// A lane keeps the first time at which it was found to be a stray.
		markStray: writing("mark_strays", d.updateRows("gates", `stray_since = r#since`, `gates.lane = r.lane AND gates.stray_since IS NULL`)),
		// A lane that has been a stray for long gets the state of a new gate.
		setBack: writing("set_back", d.updateRows("gates", `failures = 0, open_until = 0, closed_at = 0, moved_by = '', taker = '', base_us = 0, next_us = 0,
			opened_at = 0, openings = 0`,
			`gates.lane = r.lane AND gates.stray_since <= r#before`)),
		clearStray: writing("clear_strays", d.updateRows("gates", `stray_since = NULL`, `gates.lane = r.lane`)),
	}
}
