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
func sinceEver(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func unlessNever(v any, at func(int64) time.Time) time.Time {
	if n, ok := v.(int64); ok && n != 0 {
		return at(n).UTC()
	}
	return time.Time{}
}

// scanGate reads gateState; of a lane without a row, the zero Gate.
func scanGate(row []any) core.Gate {
	return core.Gate{
		Failures:  whole(row[0]),
		OpenUntil: unlessNever(row[1], time.UnixMilli),
		ClosedAt:  unlessNever(row[2], time.UnixMilli),
		NextAt:    unlessNever(row[3], time.UnixMicro),
		MovedBy:   core.ID(str(row[4])),
	}
}

// gatesOf are the gates of lanes, among rows of which some may be another caller's.
func gatesOf(lanes, rows [][]any) map[core.Lane]core.Gate {
	of := make(map[core.Lane]core.Gate, len(lanes))
	for _, l := range lanes {
		of[core.Lane(str(l[0]))] = core.Gate{}
	}
	for _, row := range rows {
		l := core.Lane(str(row[0]))
		if _, asked := of[l]; asked {
			of[l] = scanGate(row[1:])
		}
	}
	return of
}

// tells tells whether an outcome says something about its handler.
func tells(o *core.Outcome) bool { return o.Lane != "" && (o.Verdict != core.NoVerdict || o.Probe) }

// turns are the outcomes that tell something, by lane and in order. Of several for
// one attempt only the first is one.
func turns(outcomes []core.Outcome) map[core.Lane][]*core.Outcome {
	type attempt struct {
		job   core.ID
		lease core.Lease
	}
	of, seen := map[core.Lane][]*core.Outcome{}, make(map[attempt]bool, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		if a := (attempt{o.JobID, o.Lease}); tells(o) && !seen[a] {
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
func (s *Store) verdicts(outcomes []core.Outcome) (stmts []Stmt, lanes [][]any) {
	of := turns(outcomes)
	order := slices.Sorted(maps.Keys(of))
	for _, l := range order {
		if slices.ContainsFunc(of[l], func(o *core.Outcome) bool { return failed(o) || o.Probe }) {
			lanes = append(lanes, []any{string(l)})
		}
	}
	if len(lanes) > 0 {
		for _, l := range order {
			stmts = append(stmts, s.move(l, of[l])...)
		}
		stmts[0].Apart = true
		return stmts, lanes
	}
	var well [][]any
	for _, l := range order {
		well = append(well, succeededRows(onePerTake(of[l]))...)
	}
	if len(well) > 0 {
		stmts = []Stmt{{Name: "succeed", SQL: s.sql.succeed, Rows: well, Sorted: succeededLane}}
	}
	return stmts, nil
}

func failed(o *core.Outcome) bool { return o.Verdict == core.Failure }

// move are the statements that move the gate of one lane.
func (s *Store) move(l core.Lane, outcomes []*core.Outcome) (stmts []Stmt) {
	if run := runOf(outcomes); len(run) == len(outcomes) && run[0].Verdict == core.Success {
		outcomes = onePerTake(run)
	}
	if slices.ContainsFunc(outcomes, failed) {
		stmts = append(stmts, Stmt{Name: "insert_gates", SQL: s.sql.insertGate, Rows: [][]any{{string(l)}}})
	}
	return append(stmts, s.inTurn(outcomes)...)
}

// runOf are the first outcomes, as long as they have the same verdict.
func runOf(outcomes []*core.Outcome) []*core.Outcome {
	n := 1
	for n < len(outcomes) && outcomes[n].Verdict == outcomes[0].Verdict {
		n++
	}
	return outcomes[:n]
}

// inTurn are statements that move one gate by outcomes in their order. In a row of
// successes, or of probes that ended without a verdict, the order makes no difference.
func (s *Store) inTurn(outcomes []*core.Outcome) (stmts []Stmt) {
	for len(outcomes) > 0 {
		run := runOf(outcomes)
		outcomes = outcomes[len(run):]
		switch run[0].Verdict {
		case core.Success:
			stmts = append(stmts, Stmt{Name: "succeed", SQL: s.sql.succeed, Rows: succeededRows(run)})
		case core.Failure:
			for _, o := range run {
				job, lease, b := string(o.JobID), string(o.Lease), o.Breaker.Numbers()
				almost, until := int64(b.Failures-1), o.At.Add(b.Cooldown).UnixMilli()
				stmts = append(stmts, Stmt{Name: "fail", SQL: s.sql.fail,
					Args: []any{almost, job, almost, almost, until, string(o.Lane), lease, job, lease}})
			}
		default:
			rows := make([][]any, len(run))
			for i, o := range run {
				rows[i] = endProbeRow(o.At, o.Lane, o.Lease)
			}
			stmts = append(stmts, Stmt{Name: "end_probe", SQL: s.sql.endProbe, Rows: rows})
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
	slices.SortStableFunc(rows, func(a, b []any) int { return cmp.Compare(str(a[1]), str(b[1])) })
	return rows
}

// succeededLane is where a row of succeed has its lane, from 1.
const succeededLane = 3

// succeededRows are rows of succeed.
func succeededRows(outcomes []*core.Outcome) [][]any {
	rows := make([][]any, len(outcomes))
	for i, o := range outcomes {
		job, lease := string(o.JobID), string(o.Lease)
		rows[i] = []any{o.At.UnixMilli(), job, string(o.Lane), lease, job, lease}
	}
	return rows
}

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
		Stmt{Name: "close_gates", SQL: s.sql.closeGate, Rows: closes, Sorted: closedLane, Apart: true},
		Stmt{Name: "gates", SQL: s.sql.gates, Rows: reads, Reads: true})
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

// closedLane is where a row of closeGate has its lane, from 1.
const closedLane = 2

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
		stmts = append(stmts, Stmt{Name: "clear_strays", SQL: s.sql.clearStray, Rows: marked})
	}
	if len(strays) > 0 {
		marks, ends := make([][]any, len(strays)), make([][]any, len(strays))
		for i, row := range strays {
			marks[i], ends[i] = []any{now.UnixMilli(), row[0]}, []any{row[0], now.Add(-core.StrayTime).UnixMilli()}
		}
		stmts = append(stmts,
			Stmt{Name: "insert_gates", SQL: s.sql.insertGate, Rows: strays},
			Stmt{Name: "mark_strays", SQL: s.sql.markStray, Rows: marks},
			Stmt{Name: "set_back", SQL: s.sql.setBack, Rows: ends},
			Stmt{Name: "gates", SQL: s.sql.gates, Rows: strays, Reads: true})
	}
	stmts[0].Apart = true
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return nil, fmt.Errorf("mark strays: %w", err)
	}
	since, own := map[core.Lane]time.Time{}, map[string]bool{}
	for _, row := range strays {
		own[str(row[0])] = true
	}
	for _, row := range results[len(results)-1].Rows {
		if lane := str(row[0]); own[lane] {
			since[core.Lane(lane)] = instant(row[straySince])
		}
	}
	return since, nil
}

// Unknown are the lanes in which jobs wait that are not among the known ones. Unlike
// Strays it writes nothing, and so does not tell since when.
func (s *Store) Unknown(ctx context.Context, known []core.Lane) ([]core.Lane, error) {
	rows, _, err := s.findStrays(ctx, known)
	lanes := make([]core.Lane, len(rows))
	for i, row := range rows {
		lanes[i] = core.Lane(str(row[0]))
	}
	return lanes, err
}

// straySince is where a row of gates has it.
const straySince = 6

// beyond is above every lane.
const beyond = "\U0010ffff"

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
	bounds = append(bounds, beyond)
	var gaps [][]any
	for i, above := range bounds[1:] {
		gaps = append(gaps, []any{bounds[i], above, above})
	}
	var marks []Stmt
	if len(rows) > 0 {
		marks = []Stmt{{Name: "gates", SQL: s.sql.gates, Rows: rows, Reads: true}}
	}
	for len(gaps) > 0 {
		look := append([]Stmt{{Name: "waiting_lanes", SQL: s.sql.waiting, Rows: gaps, Reads: true}}, marks...)
		results, err := s.readBatch(ctx, look...)
		if err != nil {
			return nil, nil, fmt.Errorf("look for strays: %w", err)
		}
		if len(marks) > 0 {
			for _, row := range results[1].Rows {
				if row[straySince] != nil {
					marked = append(marked, []any{row[0]})
				}
			}
		}
		gaps, marks = nil, nil
		for _, row := range results[0].Rows {
			if lane, end := row[0], row[1]; lane != nil {
				strays, gaps = append(strays, []any{lane}), append(gaps, []any{lane, end, end})
			}
		}
	}
	byLane := func(a, b []any) int { return cmp.Compare(str(a[0]), str(b[0])) }
	slices.SortFunc(strays, byLane)
	slices.SortFunc(marked, byLane)
	return strays, marked, nil
}
