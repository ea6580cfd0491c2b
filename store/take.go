package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// resendWithin bounds when a failed Take is sent again at once. After a longer failure another
// try would most likely take as long again.
const resendWithin = 2 * time.Second

// Take leases due jobs. See core.Worklist. It is one batch, unless sources are held. A claim takes
// nothing then, so a Take that got nothing reads whether it is so.
func (s *Store) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	if !slices.ContainsFunc(quotas, bringsJobs) {
		return nil, nil
	}
	if len(s.sources.get()) > 0 {
		return s.takeBesideHolds(ctx, now, quotas)
	}
	jobs, _, err := s.takeOnce(ctx, now, quotas, nil)
	if err != nil || len(jobs) > 0 {
		return jobs, err
	}
	rows, err := s.read(ctx, s.sql.sourceHolds)
	if err != nil {
		return nil, fmt.Errorf("read held sources: %w", err)
	}
	if len(s.sources.observe(rows)) == 0 {
		return nil, nil
	}
	return s.takeBesideHolds(ctx, now, quotas)
}

// takeOnce leases due jobs in one batch. All jobs of the batch get the same new lease, by which the
// last statements of the batch find them again, to read them with their events. The lease also
// makes the batch repeatable: a claim that finds jobs with its lease claims no more. bounds are nil
// or, for each quota, the due time up to which jobs of held sources are parked and others claimed;
// then the number of parked jobs is returned as well.
func (s *Store) takeOnce(ctx context.Context, now time.Time, quotas []core.Quota, bounds []int64) (jobs []core.TakenJob, parked int64, err error) {
	t := takeBatch{Store: s, now: now, lease: string(s.leases.Next()), quotas: quotas, bounds: bounds, places: make([]stmtPlaces, len(quotas))}
	t.buildStmts()
	began := s.clock()
	results, err := s.write(ctx, t.stmts...)
	if core.IsKind(err, core.Unavailable) && s.clock().Sub(began) < resendWithin {
		// The first sending may have claimed jobs. Without a second sending they would wait
		// until their lease expires, since no worker knows that it holds them.
		results, err = s.write(ctx, t.stmts...)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("take: %w", err)
	}
	if err := t.rereadClaimed(ctx, results); err != nil {
		return nil, 0, fmt.Errorf("take: %w", err)
	}
	jobs, late := t.takenJobs(results)
	_ = s.Release(ctx, now, late...) // else they wait until their lease expires
	jobs, err = s.withSlots(ctx, now, quotas, jobs)
	return jobs, t.parked(results), err
}

// A takeBatch builds the statements of one Take and reads their results.
type takeBatch struct {
	*Store
	now    time.Time
	lease  string
	quotas []core.Quota
	bounds []int64 // see takeOnce
	stmts  []Stmt
	places []stmtPlaces // for each quota
	bases  int          // the position of the statement that reads base_us of the gates; 0 for none
}

// stmtPlaces are the positions of a quota's statements in the batch. read is the statement that
// reads the claimed jobs, and above, for a workflow, reads the steps above. All are 0 for a
// quota that sends none.
type stmtPlaces struct{ claim, read, above int }

// buildStmts makes the statements of each quota, in the order of lanes.
//
// The order is a lock order for gates. A gate is locked by the INSERT that makes it, by the
// UPDATE that admits the lease, and on MySQL by the claim that reads it. Takes and Settles both
// lock gates by lane, so that they wait in line and cannot deadlock.
//
// A probe sends the INSERT too, though its gate exists. On MySQL the INSERT takes an exclusive
// lock. Without it, a claim whose lease was not admitted takes a shared lock; two such batches
// would each wait for the other's exclusive lock.
func (t *takeBatch) buildStmts() {
	var gated [][]any
	for _, i := range t.lockOrder() {
		q := t.quotas[i]
		if hasInterval(q) {
			gated = append(gated, []any{string(q.Lane), t.lease})
		}
		// First the gate: it must exist, and it must admit the lease before the claim looks at
		// it.
		if q.Pass != nil {
			gate := t.sql.insertGate.on([]any{string(q.Lane)})
			t.stmts = append(t.stmts, gate, t.admit(q))
		}
		if t.bounds != nil {
			t.stmts = append(t.stmts, t.sql.park.with(t.parkArgs(i)...))
		}
		// The claim, and then the gate's account of how many jobs were claimed.
		t.places[i].claim = len(t.stmts)
		t.stmts = append(t.stmts, t.claim(i))
		if q.Pass != nil {
			t.stmts = append(t.stmts, t.accountGate(q))
		}
		// Last the claimed jobs are read, in the same batch, so that no round trip is added.
		t.places[i].read = len(t.stmts)
		if q.Lane.Workflow() == "" {
			read := t.sql.claimed
			if q.Lines > 0 {
				read = t.sql.claimedLined
			}
			t.stmts = append(t.stmts, read.with(t.claimKey(q)...).upTo(q.Bytes))
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

// lockOrder returns the positions of the quotas that can bring jobs, sorted by lane.
func (t *takeBatch) lockOrder() (order []int) {
	for i, q := range t.quotas {
		if bringsJobs(q) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(string(t.quotas[a].Lane), string(t.quotas[b].Lane)) })
	return order
}

// bringsJobs reports whether a quota can bring jobs. One that asks for no jobs, or whose Pass allows
// no start, cannot.
func bringsJobs(q core.Quota) bool {
	return q.N > 0 && (q.Pass == nil || q.Pass.Probe > 0 || q.Pass.Ahead >= 0)
}

// hasInterval reports whether a quota's jobs get start times, one interval after the other. A
// probe is a single job and starts at once.
func hasInterval(q core.Quota) bool { return q.Pass != nil && q.Pass.Probe <= 0 }

// startInterval returns the time between the starts of two jobs of a Pass. 1 µs is the unit of
// next_us; an interval of 0 would never move the gate on.
func startInterval(p *core.Pass) time.Duration { return max(p.Interval, time.Microsecond) }

// maxJobs returns how many jobs a quota may bring. Starts stay within core.GateHorizon: a gate
// whose next start is beyond the horizon counts as written before the clock was set back.
func maxJobs(q core.Quota) int64 {
	switch {
	case q.Pass == nil:
		return int64(q.N)
	case q.Pass.Probe > 0:
		return 1
	}
	return min(int64(q.N), max(1, int64((core.GateHorizon-q.Pass.Ahead)/startInterval(q.Pass))))
}

// admit is the statement that writes the lease into the gate, if the gate agrees with the Pass:
// the breaker closed at the same time, and the next start is near enough. For a probe: the
// breaker is open, its time has come, and a job is due.
func (t *takeBatch) admit(q core.Quota) Stmt {
	lane, closed, now := string(q.Lane), zeroIfNever(q.Pass.Closed), t.now.UnixMilli()
	if q.Pass.Probe > 0 {
		p := max(q.Pass.Probe, time.Millisecond)
		return t.sql.admitProbe.with(t.lease, t.now.Add(p).UnixMilli(),
			lane, closed, now, now, t.now.Add(2*p).UnixMilli(), lane, t.floors.claimFrom(q.Lane), now)
	}
	from, horizon := t.now.UnixMicro(), t.now.Add(core.GateHorizon).UnixMicro()
	return t.sql.admit.with(t.lease, from, horizon, from,
		lane, t.lease, closed, now, t.now.Add(q.Pass.Ahead).UnixMicro(), horizon)
}

// claim is the statement that leases due jobs. It checks that the lane is not held. Without a
// Pass it also checks that the gate has neither an open breaker nor a ramp; with a Pass, that
// the gate names its lease.
func (t *takeBatch) claim(i int) Stmt {
	q, now := t.quotas[i], t.now.UnixMilli()
	lane, end := string(q.Lane), millis(t.now.Add(q.Hold))
	claim, passed, args := t.sql.claim, t.sql.claimPassed, []any{lane, t.floors.claimFrom(q.Lane), now}
	if t.bounds != nil {
		claim, passed, args[2] = t.sql.claimSifted, t.sql.claimSiftedPassed, t.bounds[i]
	}
	args = append(args, lane, end, t.lease)
	if t.bounds != nil {
		args = append(args, now) // a source is held now
	}
	args = append(args, lane)
	if q.Pass == nil {
		args = append(append(args, freeGate(q.Lane, t.now)...), maxJobs(q), end, t.lease)
		return claim.with(args...)
	}
	return passed.with(append(args, t.lease, now, maxJobs(q), end, t.lease)...)
}

// freeGate are the times of the condition that the gate of a lane lets jobs through without a Pass:
// see closedGate.
func freeGate(l core.Lane, now time.Time) []any {
	return []any{now.Add(-core.RampTime).UnixMilli(), now.Add(core.GateHorizon).UnixMilli(), freeFrom(l, now)}
}

// freeFrom is the time at which a hold of a lane must have ended for that.
func freeFrom(l core.Lane, now time.Time) int64 {
	if l.Queue() != "" {
		return now.UnixMilli() // consumers take at their own pace, so a hold ends without a ramp
	}
	return now.Add(-core.RampTime).UnixMilli()
}

// parkArgs are the arguments of the statement that parks jobs of held sources.
func (t *takeBatch) parkArgs(i int) []any {
	lane := t.quotas[i].Lane
	return []any{string(lane), t.floors.claimFrom(lane), t.bounds[i], t.now.UnixMilli(), int64(parkWindow)}
}

// parked returns how many jobs the batch parked.
func (t *takeBatch) parked(results []Result) (n int64) {
	for i := range results {
		if t.stmts[i].Name == t.sql.park.name {
			n += results[i].Changed
		}
	}
	return n
}

// accountGate is the statement that adds the claimed jobs to the gate's next start, or gives a
// probe back that found no job. Both compute the new value from base_us, which admit stored, so
// that running them twice changes nothing more.
func (t *takeBatch) accountGate(q core.Quota) Stmt {
	lane, claim := string(q.Lane), t.claimKey(q)
	if q.Pass.Probe > 0 {
		return t.sql.refund.with(append([]any{lane, t.lease}, claim...)...)
	}
	return t.sql.charge.with(slices.Concat([]any{startInterval(q.Pass).Microseconds()}, claim, []any{lane, t.lease}, claim)...)
}

// claimKey returns the arguments of ownClaim and claimedRows: the lane, the due time that the
// claim wrote, and the lease.
func (t *takeBatch) claimKey(q core.Quota) []any {
	return []any{string(q.Lane), millis(t.now.Add(q.Hold)), t.lease}
}

// rereadClaimed repeats the reads of claimed jobs that the batch did not see. See
// [Store.rereadUntil]. The claim's Changed says how many jobs there must be. A job of a
// workflow may lack its step for good, if its run is being purged, so steps are only awaited
// for a while.
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

// allHaveSituation reports whether all jobs of a workflow were read with their steps. The steps
// above were stored earlier or together with them, so they need no check.
func allHaveSituation(rows [][]any) bool {
	return !slices.ContainsFunc(rows, func(row []any) bool { return !hasSituation(row) })
}

// hasSituation reports whether a row of takenColumns goes on with a step, its texts, and its
// run.
func hasSituation(row []any) bool {
	return len(row) >= takenStep+situationWidth && row[takenStep] != nil && row[takenRun] != nil && !lacksText(row[takenStep:])
}

// lacksSlot reports whether a row of claimed_lined has a job that gave its slot away.
func lacksSlot(q core.Quota, row []any) bool {
	return q.Lines > 0 && len(row) > takenStep && row[takenStep] == int64(0)
}

// takenJobs reads the taken jobs, in the order of the quotas. late are jobs without a start
// time: a first sending claimed them, its answer got lost, and another Take has replaced the
// gate's taker and base since. The caller releases them.
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
			j.Unslotted = lacksSlot(q, row)
			rows[n] = nil // the event has a copy of its payload, so this row can be freed
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
		// Jobs beyond the byte limit come without their events. The worker reads those later.
		for _, row := range results[t.places[i].read].cut() {
			r := rowReader{row}
			jobs = append(jobs, core.TakenJob{Job: r.job(), Bare: true, Unslotted: lacksSlot(q, row)})
		}
	}
	return jobs, late
}

const (
	// Jobs that this batch has claimed. due_at is in the index, so they are found there. The
	// lease tells them from jobs of other claims whose leases end in the same millisecond.
	ownClaim    = `FROM jobs AS mine{use jobs_waiting} WHERE mine.{waiting_lane} = ? AND mine.due_at = ? AND mine.lease = ?`
	claimedRows = `jobs.{waiting_lane} = ? AND jobs.due_at = ? AND jobs.lease = ?`

	// Due jobs of a lane, from the lane's floor on. A claim takes none if jobs have its lease
	// already: then the batch is a second sending.
	dueJobs       = `FROM jobs{use jobs_waiting} WHERE {waiting_lane} = ? AND due_at >= ? AND due_at <= ?`
	claimableJobs = dueJobs + ` AND NOT EXISTS (SELECT 1 ` + ownClaim + `{skip_locked})`
	oldestFirst   = ` ORDER BY due_at, id LIMIT {limit}`

	// Without a Pass: the breaker is closed, and was not closed within core.RampTime. A closed_at
	// beyond core.GateHorizon was written before the clock was set back, and is ignored. One
	// comparison says that no hold lasts or has ended within core.RampTime.
	// freeGate has the three times.
	closedGate = ` AND NOT EXISTS (SELECT 1 FROM gates
		WHERE gates.lane = ? AND (` + isOpen + ` OR gates.closed_at > ? AND gates.closed_at <= ? OR gates.held_until > ?))`

	// With a Pass: admit has written the lease into the gate, unless the gate was not as the Pass
	// assumed. If the batch is sent twice, the first sending has written the lease; so the claim
	// looks for a hold that began in between.
	passedGate = ` AND EXISTS (SELECT 1 FROM gates
		WHERE gates.lane = ? AND gates.taker = ? AND ` + isFree + `)`

	// scheduled_at comes before due_at: MySQL evaluates SET from left to right and reads the
	// new values.
	setClaimed = `status = 'running', attempt = attempt + 1, scheduled_at = due_at, due_at = ?, lease = ?`
)

// takeSQL are the statements of a Take. See "Gates" in doc.go.
type takeSQL struct {
	claim, claimPassed, claimed, claimedLined, claimedSteps, aboveTaken statement
	admit, admitProbe, charge, refund, bases                            statement
}

func newTakeSQL(d Dialect) takeSQL {
	t := d.sql
	return takeSQL{
		// While a source is held, claims with another text are sent: see parked.go.
		claim:       writing("claim", d.updatePicked("jobs", setClaimed, claimableJobs+noHeldSource+closedGate+oldestFirst)),
		claimPassed: writing("claim_passed", d.updatePicked("jobs", setClaimed, claimableJobs+noHeldSource+passedGate+oldestFirst)),

		// By jobs_waiting, which the claim has just read, and not by the lease, which no index
		// has.
		claimed: reading("claimed", t(`SELECT `+takenColumns+` FROM jobs{use jobs_waiting}`+withEvents+` WHERE `+claimedRows)),

		// With whether a job of a line has a slot.
		claimedLined: reading("claimed_lined", t(`SELECT `+takenColumns+`, CASE WHEN jobs.line IS NULL OR `+hasSlot+` THEN 1 ELSE 0 END AS slotted
			FROM jobs{use jobs_waiting}`+withEvents+` WHERE `+claimedRows)),

		// Jobs of workflows are read with their step and run, and in a second statement with
		// the steps above. Few steps have a step above, and those columns are most of a
		// situation's. PostgreSQL might begin a joint plan with the steps instead of the
		// claimed jobs.
		claimedSteps: reading("claimed_steps", t(`SELECT `+takenColumns+`, `+stepAndRun+` FROM jobs{use jobs_waiting}`+withEvents+`
			LEFT JOIN steps{use PRIMARY} ON steps.id = jobs.id LEFT`+withRun+` WHERE `+claimedRows)),
		aboveTaken: reading("above_taken", t(`SELECT steps.id`+above()+` FROM jobs{use jobs_waiting} JOIN steps{use PRIMARY} ON steps.id = jobs.id`+withAbove()+`
			WHERE `+claimedRows+` AND COALESCE(steps.parent_id, '') <> ''`)),

		// The start of the first job is base_us: now, or the gate's next start if that is
		// later. A next_us beyond the horizon was written before the clock was set back. A gate
		// that has the lease already is not written again: its base must stay.
		admit: writing("admit", t(`UPDATE gates SET taker = ?, base_us = CASE WHEN next_us < ? OR next_us > ? THEN ? ELSE next_us END
			WHERE lane = ? AND taker <> ? AND closed_at = ? AND `+isClosed+` AND `+isFree+` AND (next_us <= ? OR next_us > ?)`)),

		// A probe stores open_until in base_us, for refund. The condition on due jobs keeps the
		// gate from being written for nothing.
		admitProbe: writing("admit_probe", t(`UPDATE gates SET taker = ?, base_us = open_until, open_until = ?
			WHERE lane = ? AND closed_at = ? AND `+isOpen+` AND `+isFree+` AND (open_until <= ? OR open_until > ?)
			AND EXISTS (SELECT 1 `+dueJobs+`)`)),

		// Each claimed job moves the next start by one interval. Only the newest taker may
		// write.
		charge: writing("charge", t(`UPDATE gates SET next_us = base_us + ? * (SELECT COUNT(*) `+ownClaim+`)
			WHERE lane = ? AND taker = ? AND EXISTS (SELECT 1 `+ownClaim+`)`)),
		// A probe that claimed no job, since another worker was faster, sets open_until back.
		refund: writing("refund", t(`UPDATE gates SET open_until = base_us
			WHERE lane = ? AND taker = ? AND NOT EXISTS (SELECT 1 `+ownClaim+`)`)),
		// A lane is missing from the rows if another Take has become the gate's taker.
		bases: reading("bases", d.selectRows(`gates.lane, gates.base_us`, "gates{use PRIMARY}", `gates.lane = r.lane AND gates.taker = r.taker`)),
	}
}
