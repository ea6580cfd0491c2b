package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// sinceEver is how a gate's times are stored: zero for never.
func zeroIfNever(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func timeUnlessZero(v any, at func(int64) time.Time) time.Time {
	if n, ok := v.(int64); ok && n != 0 {
		return at(n).UTC()
	}
	return time.Time{}
}

// gateState is what a Gate is read from.
const gateState = `gates.failures, gates.open_until, gates.closed_at, gates.next_us, gates.moved_by`

// gate reads gateState; of a lane without a row, the zero Gate.
func (r *rowReader) gate() core.Gate {
	return core.Gate{
		Failures:  r.number(),
		OpenUntil: timeUnlessZero(r.value(), time.UnixMilli),
		ClosedAt:  timeUnlessZero(r.value(), time.UnixMilli),
		NextAt:    timeUnlessZero(r.value(), time.UnixMicro),
		MovedBy:   r.id(),
	}
}

// gatesOf are the gates of lanes, among rows of which some may be another caller's.
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

// tells tells whether an outcome says something about its handler.
func movesGate(o *core.Outcome) bool { return o.Lane != "" && (o.Verdict != core.NoVerdict || o.Probe) }

// turns are the outcomes that tell something, by lane and in order. Of several for
// one attempt only the first is one.
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

// verdicts are the statements by which outcomes move gates, and the lanes whose
// gates are to be read afterwards.
//
// As long as there was nothing but success, all lanes share one statement, which
// changes nothing unless something had failed before. Else outcomes go one after the
// other: whether a failure counts depends on those before it, and on whether they are
// lost, which only the database knows. Then each lane has its turn, also those that
// saw nothing but success: whoever settles or takes locks gates in the order of lanes,
// each once, so that they wait in line and not in a circle.
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
		stmts[0].NoMerge = true
		return stmts, lanes
	}
	var successes [][]any
	for _, l := range order {
		successes = append(successes, succeededRows(onePerTake(byLane[l]))...)
	}
	if len(successes) > 0 {
		stmts = []Stmt{s.sql.succeed.on(successes...).sortedBy(succeededLane)}
	}
	return stmts, nil
}

func isFailure(o *core.Outcome) bool { return o.Verdict == core.Failure }

// move are the statements that move the gate of one lane.
func (s *Store) laneGateStmts(l core.Lane, outcomes []*core.Outcome) (stmts []Stmt) {
	if run := sameVerdict(outcomes); len(run) == len(outcomes) && run[0].Verdict == core.Success {
		outcomes = onePerTake(run)
	}
	if slices.ContainsFunc(outcomes, isFailure) {
		stmts = append(stmts, s.sql.insertGate.on([]any{string(l)}))
	}
	return append(stmts, s.orderedVerdictStmts(outcomes)...)
}

// runOf are the first outcomes, as long as they have the same verdict.
func sameVerdict(outcomes []*core.Outcome) []*core.Outcome {
	n := 1
	for n < len(outcomes) && outcomes[n].Verdict == outcomes[0].Verdict {
		n++
	}
	return outcomes[:n]
}

// inTurn are statements that move one gate by outcomes in their order. In a row of
// successes, or of probes that ended without a verdict, the order makes no difference.
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
				stmts = append(stmts, s.sql.fail.with(almost, job, almost, almost, until, string(o.Lane), lease, job, lease))
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

// onePerTake are the first outcomes of each lease, all of one lane: one success is
// as good as many, and looking at the gate for each of a hundred would cost a twelfth
// of settling them. If just that one is lost, the others of its lease do not count.
func onePerTake(outcomes []*core.Outcome) (some []*core.Outcome) {
	for _, o := range outcomes {
		if !slices.ContainsFunc(some, func(s *core.Outcome) bool { return s.Lease == o.Lease }) {
			some = append(some, o)
		}
	}
	return some
}

// probesOf are the rows of endProbe for jobs that are given back: one for each take
// in a lane, in the order of lanes.
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

// succeededLane is the place of the lane in a row of succeed.
const succeededLane = 2

// succeededRows are rows of succeed.
func succeededRows(outcomes []*core.Outcome) [][]any {
	rows := make([][]any, len(outcomes))
	for i, o := range outcomes {
		job, lease := string(o.JobID), string(o.Lease)
		rows[i] = []any{o.At.UnixMilli(), job, string(o.Lane), lease, job, lease}
	}
	return rows
}

// endedLane is the place of the lane in a row of endProbe.
const endedLane = 1

// endProbeRow is a row of endProbe: after it there may be another probe at a time.
func endProbeRow(next time.Time, l core.Lane, lease core.Lease) []any {
	return []any{next.UnixMilli(), string(l), string(lease)}
}

// CloseBreakers closes breakers. See core.Worklist. A gate that it closed carries the time
// and no job, so a batch that was sent twice still tells which gates those are.
func (s *Store) CloseBreakers(ctx context.Context, now time.Time, lanes ...core.Lane) ([]core.Lane, error) {
	if len(lanes) == 0 {
		return nil, nil
	}
	var closes, reads [][]any
	for _, l := range slices.Compact(slices.Sorted(slices.Values(lanes))) {
		closes, reads = append(closes, []any{now.UnixMilli(), string(l)}), append(reads, []any{string(l)})
	}
	results, err := s.write(ctx,
		s.sql.closeGate.on(closes...).sortedBy(closedLane).noMerge(),
		s.sql.gates.on(reads...))
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

// closedLane is the place of the lane in a row of closeGate.
const closedLane = 1

// Strays tells in which lanes jobs wait that nobody knows. See core.Worklist. It
// looks between the known lanes, so it costs as much as there are lanes, however
// many jobs wait in them.
func (s *Store) Strays(ctx context.Context, now time.Time, known []core.Lane) (map[core.Lane]time.Time, error) {
	strays, marked, err := s.findStrays(ctx, known)
	if err != nil || len(strays)+len(marked) == 0 {
		return nil, err
	}
	var stmts []Stmt
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
		return nil, fmt.Errorf("mark strays: %w", err)
	}
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

// UnknownLanes are the lanes in which jobs wait that are not among the known ones. Unlike
// Strays it writes nothing, and so does not tell since when.
func (s *Store) UnknownLanes(ctx context.Context, known []core.Lane) ([]core.Lane, error) {
	rows, _, err := s.findStrays(ctx, known)
	lanes := make([]core.Lane, len(rows))
	for i, row := range rows {
		lanes[i] = core.Lane(rowKey(row))
	}
	return lanes, err
}

// straySince is its place in a row of gates.
const straySince = 6

// beyond is above every lane.
const aboveAllLanes = "\U0010ffff"

// findStrays finds the lanes in which jobs wait that are not known, and the known
// ones that are still marked, each as rows. It looks for the first lane in each gap
// between known ones, and then, if there was one, for the next behind it.
func (s *Store) findStrays(ctx context.Context, known []core.Lane) (strays, marked [][]any, err error) {
	bounds := make([]string, 0, len(known)+2)
	bounds = append(bounds, "")
	var rows [][]any
	for _, l := range slices.Compact(slices.Sorted(slices.Values(known))) {
		bounds, rows = append(bounds, string(l)), append(rows, []any{string(l)})
	}
	bounds = append(bounds, aboveAllLanes)
	var gaps [][]any
	for i, above := range bounds[1:] {
		gaps = append(gaps, []any{bounds[i], above, above})
	}
	var marks []Stmt
	if len(rows) > 0 {
		marks = []Stmt{s.sql.gates.on(rows...)}
	}
	for len(gaps) > 0 {
		look := append([]Stmt{s.sql.waiting.on(gaps...)}, marks...)
		results, err := s.readBatch(ctx, look...)
		if err != nil {
			return nil, nil, fmt.Errorf("look for strays: %w", err)
		}
		if len(marks) > 0 {
			for _, row := range results[1].Rows {
				if row[straySince] != nil {
					marked = append(marked, row[:1])
				}
			}
		}
		gaps, marks = nil, nil
		for _, row := range results[0].Rows {
			r := rowReader{row}
			if lane, end := r.value(), r.value(); lane != nil {
				strays, gaps = append(strays, []any{lane}), append(gaps, []any{lane, end, end})
			}
		}
	}
	slices.SortFunc(strays, byKey)
	slices.SortFunc(marked, byKey)
	return strays, marked, nil
}

const gateColumns = `lane, failures, open_until, closed_at, moved_by, taker, base_us, next_us, stray_since`

// What a gate's breaker is.
const (
	isOpen   = `gates.open_until <> 0`
	isClosed = `gates.open_until = 0`

	// Of an open one only the newest probe decides. Opening takes the taker's name
	// out, so that this is a probe.
	mayMove = `(` + isClosed + ` OR gates.taker = `
)

type gatesSQL struct {
	insertGate, gates, succeed, fail, endProbe, closeGate statement
	waiting, markStray, setBack, clearStray               statement
}

func newGatesSQL(d Dialect) gatesSQL {
	return gatesSQL{
		insertGate: writing("insert_gates", d.insertIfAbsent("gates", gateColumns, `r.lane, 0, 0, 0, '', '', 0, 0, NULL`, "", "", "lane")),
		gates:      reading("gates", d.selectRows(`gates.lane, `+gateState+`, gates.stray_since`, "gates{use PRIMARY}", `gates.lane = r.lane`)),

		// Verdicts count once: while the job is held. open_until and failures come last, since
		// MySQL evaluates SET from left to right with the new values. Where nothing failed, a
		// success changes no row.
		succeed: writing("succeed", d.updateRows("gates", `closed_at = CASE WHEN `+isOpen+` THEN r#closed_at ELSE closed_at END,
			moved_by = CASE WHEN `+isOpen+` THEN r.moved_by ELSE moved_by END, taker = CASE WHEN `+isOpen+` THEN '' ELSE taker END,
			open_until = 0, failures = 0`,
			`gates.lane = r.lane AND gates.failures > 0 AND `+mayMove+`r.taker) AND EXISTS (SELECT 1 FROM jobs WHERE `+heldGuard+`)`)),
		fail: writing("fail", d.sql(`UPDATE gates SET moved_by = CASE WHEN `+isOpen+` THEN '' WHEN failures >= ? THEN ? ELSE moved_by END,
			taker = CASE WHEN `+isOpen+` OR failures >= ? THEN '' ELSE taker END,
			open_until = CASE WHEN `+isOpen+` OR failures >= ? THEN ? ELSE open_until END, failures = failures + 1
			WHERE lane = ? AND `+mayMove+`?) AND EXISTS (SELECT 1 FROM jobs
			WHERE jobs.id = ? AND jobs.status = 'running' AND jobs.lease = ?)`)),
		// The newest probe has its name in the gate for as long as it is held.
		endProbe: writing("end_probe", d.updateRows("gates", `open_until = r#open_until, taker = ''`,
			`gates.lane = r.lane AND `+isOpen+` AND gates.taker = r.taker`)),
		closeGate: writing("close_gates", d.updateRows("gates", `closed_at = CASE WHEN `+isOpen+` THEN r#closed_at ELSE closed_at END,
			moved_by = '', taker = CASE WHEN `+isOpen+` THEN '' ELSE taker END, open_until = 0, failures = 0`,
			`gates.lane = r.lane AND gates.failures > 0`)),

		// The first lane between two others in which jobs wait.
		waiting: reading("waiting_lanes", d.selectRanges(`(SELECT {waiting_lane} FROM jobs{use jobs_waiting} WHERE {in_waiting}
			AND {waiting_lane} > r.above AND {waiting_lane} < r.below ORDER BY {waiting_lane} LIMIT 1) AS lane, r.end AS below`)),
		markStray: writing("mark_strays", d.updateRows("gates", `stray_since = r#since`, `gates.lane = r.lane AND gates.stray_since IS NULL`)),
		setBack: writing("set_back", d.updateRows("gates", `failures = 0, open_until = 0, closed_at = 0, moved_by = '', taker = '', base_us = 0, next_us = 0`,
			`gates.lane = r.lane AND gates.stray_since <= r#before`)),
		clearStray: writing("clear_strays", d.updateRows("gates", `stray_since = NULL`, `gates.lane = r.lane`)),
	}
}
