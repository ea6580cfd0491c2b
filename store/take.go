package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// takeAgain is how soon a Take must have failed to be worth another try at once.
const resendWithin = 2 * time.Second

// Take leases due jobs. See core.Worklist. All it takes is under one new lease,
// by which it is read back in the same batch.
func (s *Store) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	t := takeBatch{Store: s, now: now, lease: string(s.leases.Next()), quotas: quotas, places: make([]stmtPlaces, len(quotas))}
	t.buildStmts()
	if len(t.stmts) == 0 {
		return nil, nil
	}
	began := s.clock()
	results, err := s.write(ctx, t.stmts...)
	if core.IsKind(err, core.Unavailable) && s.clock().Sub(began) < resendWithin {
		// It may have taken jobs, which would wait for the end of a lease that nobody has.
		results, err = s.write(ctx, t.stmts...)
	}
	if err != nil {
		return nil, fmt.Errorf("take: %w", err)
	}
	if err := t.rereadClaimed(ctx, results); err != nil {
		return nil, fmt.Errorf("take: %w", err)
	}
	jobs, late := t.takenJobs(results)
	_ = s.Release(ctx, now, late...) // else they wait for the end of their lease
	return jobs, nil
}

// A taking is one Take under construction.
type takeBatch struct {
	*Store
	now    time.Time
	lease  string
	quotas []core.Quota
	stmts  []Stmt
	places []stmtPlaces // for each quota
	bases  int          // where the bases are read, or 0
}

// A place is where a quota's statements are: the claim, and behind it the one that
// reads what was claimed, and for a workflow the one that reads what its steps are in.
// Zero if it has none.
type stmtPlaces struct{ claim, read, above int }

// build makes the statements, lane by lane: a gate is locked when it is made, when it
// lets the lease in, and on MySQL also when a claim looks at it. So whoever takes or
// settles locks gates in the order of lanes, and they wait in line and not in a circle.
// A gate is made even for a probe, which finds one: on MySQL it stays locked by that if
// it does not let the lease in, where a claim would share it with another who then
// waits, as the claimer does, to have it alone.
func (t *takeBatch) buildStmts() {
	var gated [][]any
	for _, i := range t.lockOrder() {
		q := t.quotas[i]
		if hasInterval(q) {
			gated = append(gated, []any{string(q.Lane), t.lease})
		}
		if q.Pass != nil {
			gate := t.sql.insertGate.on([]any{string(q.Lane)})
			t.stmts = append(t.stmts, gate, t.admit(q))
		}
		t.places[i].claim = len(t.stmts)
		t.stmts = append(t.stmts, t.claim(q))
		if q.Pass != nil {
			t.stmts = append(t.stmts, t.accountGate(q))
		}
		t.places[i].read = len(t.stmts)
		if q.Lane.Workflow() == "" {
			t.stmts = append(t.stmts, t.sql.claimed.with(t.claimKey(q)...).upTo(q.Bytes))
			continue
		}
		t.places[i].above = t.places[i].read + 1
		t.stmts = append(t.stmts, t.sql.claimedSteps.with(t.claimKey(q)...), t.sql.aboveTaken.with(t.claimKey(q)...))
	}
	if len(gated) > 0 {
		t.bases = len(t.stmts)
		t.stmts = append(t.stmts, t.sql.bases.on(gated...))
	}
}

// order is the quotas that can bring something, in the order of their lanes.
func (t *takeBatch) lockOrder() (order []int) {
	for i, q := range t.quotas {
		if q.N > 0 && (q.Pass == nil || q.Pass.Probe > 0 || q.Pass.Ahead >= 0) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(string(t.quotas[a].Lane), string(t.quotas[b].Lane)) })
	return order
}

// paced tells whether a quota's jobs are to start one after the other.
func hasInterval(q core.Quota) bool { return q.Pass != nil && q.Pass.Probe <= 0 }

// interval is how far apart a Pass has jobs start.
func startInterval(p *core.Pass) time.Duration { return max(p.Interval, time.Microsecond) }

// most is how many jobs a quota may bring. Starts are not given away beyond the
// horizon, where a gate's next one would be taken for one of a clock set back.
func maxJobs(q core.Quota) int64 {
	switch {
	case q.Pass == nil:
		return int64(q.N)
	case q.Pass.Probe > 0:
		return 1
	}
	return min(int64(q.N), max(1, int64((core.GateHorizon-q.Pass.Ahead)/startInterval(q.Pass))))
}

// admit is the statement that writes the lease into the gate, if that lets it.
func (t *takeBatch) admit(q core.Quota) Stmt {
	lane, closed, now := string(q.Lane), zeroIfNever(q.Pass.Closed), t.now.UnixMilli()
	if q.Pass.Probe > 0 {
		p := max(q.Pass.Probe, time.Millisecond)
		return t.sql.admitProbe.with(t.lease, t.now.Add(p).UnixMilli(),
			lane, closed, now, t.now.Add(2*p).UnixMilli(), lane, t.floors.claimFrom(q.Lane), now)
	}
	from, horizon := t.now.UnixMicro(), t.now.Add(core.GateHorizon).UnixMicro()
	return t.sql.admit.with(t.lease, from, horizon, from,
		lane, t.lease, closed, t.now.Add(q.Pass.Ahead).UnixMicro(), horizon)
}

func (t *takeBatch) claim(q core.Quota) Stmt {
	lane, end, now := string(q.Lane), millis(t.now.Add(q.Hold)), t.now.UnixMilli()
	args := []any{lane, t.floors.claimFrom(q.Lane), now, lane, end, t.lease, lane}
	if q.Pass == nil {
		args = append(args, t.now.Add(-core.RampTime).UnixMilli(), t.now.Add(core.GateHorizon).UnixMilli(), maxJobs(q), end, t.lease)
		return t.sql.claim.with(args...)
	}
	return t.sql.claimPassed.with(append(args, t.lease, maxJobs(q), end, t.lease)...)
}

// account moves the gate on by what was claimed, or gives a probe back that found
// no job after all. What it writes does not depend on how often it is run.
func (t *takeBatch) accountGate(q core.Quota) Stmt {
	lane, claim := string(q.Lane), t.claimKey(q)
	if q.Pass.Probe > 0 {
		return t.sql.refund.with(append([]any{lane, t.lease}, claim...)...)
	}
	return t.sql.charge.with(slices.Concat([]any{startInterval(q.Pass).Microseconds()}, claim, []any{lane, t.lease}, claim)...)
}

// mine are the arguments by which what a quota claimed is found.
func (t *takeBatch) claimKey(q core.Quota) []any {
	return []any{string(q.Lane), millis(t.now.Add(q.Hold)), t.lease}
}

// complete reads once more what was claimed and could not be read. See
// [Store.eventually]. A job that has no situation may have lost its step.
func (t *takeBatch) rereadClaimed(ctx context.Context, results []Result) error {
	for _, p := range t.places {
		if p == (stmtPlaces{}) {
			continue
		}
		end := max(p.read, p.above) + 1
		said, reads := results[p.read:end], t.stmts[p.read:end]
		all := func(r []Result) bool { return int64(len(r[0].Rows)) >= results[p.claim].Changed }
		if p.above > 0 {
			found, err := t.reread(ctx, said, reads, func(r []Result) bool { return all(r) && allHaveSituation(r[0].Rows) })
			if err != nil {
				return err
			}
			said = found
		}
		found, err := t.rereadUntil(ctx, said, reads, all)
		if err != nil {
			return err
		}
		copy(results[p.read:end], found)
	}
	return nil
}

// situated tells whether jobs of a workflow were read with their steps. What those are
// in is stored no later, so it is read with them.
func allHaveSituation(rows [][]any) bool {
	return !slices.ContainsFunc(rows, func(row []any) bool { return !hasSituation(row) })
}

// hasSituation tells whether a row of takenColumns ends with a step, with its texts, and its
// run.
func hasSituation(row []any) bool {
	return len(row) >= takenStep+situationWidth && row[takenStep] != nil && row[takenRun] != nil && !lacksText(row[takenStep:])
}

// jobs reads what was taken, in the order asked. Late are jobs that were claimed by
// a first sending whose answer got lost, and whose gate has let others through
// since: nobody knows when they were to start.
func (t *takeBatch) takenJobs(results []Result) (jobs []core.TakenJob, late []core.Job) {
	bases := map[core.Lane]int64{}
	if t.bases > 0 {
		for _, row := range results[t.bases].Rows {
			r := rowReader{row}
			lane := core.Lane(r.text())
			bases[lane], _ = r.value().(int64)
		}
	}
	for i, q := range t.quotas {
		if t.places[i] == (stmtPlaces{}) {
			continue
		}
		base, admitted := bases[q.Lane]
		above := map[core.ID][]any{}
		if at := t.places[i].above; at > 0 {
			for _, row := range results[at].Rows {
				r := rowReader{row}
				step := r.id()
				above[step] = r.row
			}
		}
		rows := results[t.places[i].read].Whole()
		slices.SortFunc(rows, byKey)
		jobs = slices.Grow(jobs, len(results[t.places[i].read].Rows))
		for n, row := range rows {
			r := rowReader{row}
			j := r.taken()
			rows[n] = nil // the event has a copy of its payload
			if hasSituation(row) {
				j.Situation = r.situation()
				over := rowReader{above[j.ID]}
				j.Situation.Above = over.above(j.Situation.Step)
			}
			switch {
			case q.Pass == nil:
			case !hasInterval(q):
				j.Probe = true
			case !admitted:
				late = append(late, j.Job)
				continue
			default:
				j.StartAt = time.UnixMicro(base).UTC().Add(time.Duration(n) * startInterval(q.Pass))
			}
			jobs = append(jobs, j)
		}
		for _, row := range results[t.places[i].read].cut() {
			r := rowReader{row}
			jobs = append(jobs, core.TakenJob{Job: r.job(), Bare: true})
		}
	}
	return jobs, late
}

const (
	// What a claim took is found by the due time it wrote, which is in the index, and
	// told apart from other jobs of that millisecond by its lease.
	ownClaim    = `FROM jobs AS mine{use jobs_waiting} WHERE mine.{waiting_lane} = ? AND mine.due_at = ? AND mine.lease = ?`
	claimedRows = `jobs.{waiting_lane} = ? AND jobs.due_at = ? AND jobs.lease = ?`

	// Due jobs of a lane. A claim that is sent again, or arrives late, finds what it
	// took and takes no more.
	dueJobs       = `FROM jobs{use jobs_waiting} WHERE {waiting_lane} = ? AND due_at >= ? AND due_at <= ?`
	claimableJobs = dueJobs + ` AND NOT EXISTS (SELECT 1 ` + ownClaim + `{skip_locked})`
	oldestFirst   = ` ORDER BY due_at, id LIMIT {limit}`

	// scheduled_at comes before due_at, since MySQL evaluates SET from left to right with the
	// new values.
	setClaimed = `status = 'running', attempt = attempt + 1, scheduled_at = due_at, due_at = ?, lease = ?`
)

type takeSQL struct {
	claim, claimPassed, claimed, claimedSteps, aboveTaken statement
	admit, admitProbe, charge, refund, bases              statement
}

func newTakeSQL(d Dialect) takeSQL {
	t := d.sql
	return takeSQL{
		// Without a Pass: only while the gate is wide open. One with a Pass was admitted.
		claim: writing("claim", d.updatePicked("jobs", setClaimed, claimableJobs+` AND NOT EXISTS (SELECT 1 FROM gates
			WHERE gates.lane = ? AND (`+isOpen+` OR gates.closed_at > ? AND gates.closed_at <= ?))`+oldestFirst)),
		claimPassed: writing("claim_passed", d.updatePicked("jobs", setClaimed, claimableJobs+` AND EXISTS (SELECT 1 FROM gates
			WHERE gates.lane = ? AND gates.taker = ?)`+oldestFirst)),

		claimed: reading("claimed", t(`SELECT `+takenColumns+` FROM jobs{use jobs_waiting}`+withEvents+` WHERE `+claimedRows)),

		// What a Take of a workflow's jobs brings, in two statements: few steps are in another,
		// and the columns of what those are in are most of a situation's. So few that a plan
		// could begin with them, if it knew: it is to begin with the jobs that were claimed.
		claimedSteps: reading("claimed_steps", t(`SELECT `+takenColumns+`, `+stepAndRun+` FROM jobs{use jobs_waiting}`+withEvents+`
			LEFT JOIN steps{use PRIMARY} ON steps.id = jobs.id LEFT`+withRun+` WHERE `+claimedRows)),
		aboveTaken: reading("above_taken", t(`SELECT steps.id`+above()+` FROM jobs{use jobs_waiting} JOIN steps{use PRIMARY} ON steps.id = jobs.id`+withAbove()+`
			WHERE `+claimedRows+` AND COALESCE(steps.parent_id, '') <> ''`)),

		// A Take with a Pass writes its lease into the gate, and where its starts begin.
		// A time of next_us that is too far away was written before the clock was set back.
		admit: writing("admit", t(`UPDATE gates SET taker = ?, base_us = CASE WHEN next_us < ? OR next_us > ? THEN ? ELSE next_us END
			WHERE lane = ? AND taker <> ? AND closed_at = ? AND `+isClosed+` AND (next_us <= ? OR next_us > ?)`)),

		// For a probe, what is to be put back if there was none to take.
		admitProbe: writing("admit_probe", t(`UPDATE gates SET taker = ?, base_us = open_until, open_until = ?
			WHERE lane = ? AND closed_at = ? AND `+isOpen+` AND (open_until <= ? OR open_until > ?)
			AND EXISTS (SELECT 1 `+dueJobs+`)`)),

		charge: writing("charge", t(`UPDATE gates SET next_us = base_us + ? * (SELECT COUNT(*) `+ownClaim+`)
			WHERE lane = ? AND taker = ? AND EXISTS (SELECT 1 `+ownClaim+`)`)),
		refund: writing("refund", t(`UPDATE gates SET open_until = base_us
			WHERE lane = ? AND taker = ? AND NOT EXISTS (SELECT 1 `+ownClaim+`)`)),
		bases: reading("bases", d.selectRows(`gates.lane, gates.base_us`, "gates{use PRIMARY}", `gates.lane = r.lane AND gates.taker = r.taker`)),
	}
}
