package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Due returns when lanes are due, and their gates. See core.Worklist. It asks for each lane, or,
// if there are many, for those in which jobs wait.
func (s *Store) Due(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error) {
	if len(lanes) == 0 {
		return nil, nil
	}
	if len(lanes) > manyLanes {
		return s.dueOfMany(ctx, lanes)
	}
	return s.dueOf(ctx, lanes)
}

// manyLanes is the number of lanes up to which Due asks for each lane, in one statement.
const manyLanes = 250

// sortedLanes are lanes in the order of their names.
type sortedLanes []core.Lane

// sortLanes returns the lanes in the order of their names. It copies them only if they are not
// sorted; those of a worker are.
func sortLanes(lanes []core.Lane) sortedLanes {
	if slices.IsSorted(lanes) {
		return lanes
	}
	return slices.Sorted(slices.Values(lanes))
}

func (all sortedLanes) has(lane string) bool {
	_, found := slices.BinarySearch(all, core.Lane(lane))
	return found
}

// dueOfMany is Due for many lanes, in few of which jobs wait. What it costs depends on those, and on
// the number of gates.
func (s *Store) dueOfMany(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error) {
	all := sortLanes(lanes)
	waiting, gates, err := s.waitingOf(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("read the lanes in which jobs wait: %w", err)
	}
	due := map[core.Lane]core.Outlook{}
	if len(waiting) > 0 {
		if due, err = s.dueOf(ctx, waiting); err != nil {
			return nil, err
		}
	}
	for _, row := range gates {
		r := rowReader{row}
		lane := core.Lane(r.text())
		if _, answered := due[lane]; answered || !all.has(string(lane)) {
			continue
		}
		if o := (core.Outlook{Gate: r.gate()}); o != (core.Outlook{}) {
			due[lane] = o
		}
	}
	return due, nil
}

// waitingOf returns the given lanes in which jobs wait, and the rows of all gates, each with the columns
// of the statement gates. It returns all of the lanes if jobs wait in so many of them that to find
// them takes more statements than to ask about each.
func (s *Store) waitingOf(ctx context.Context, lanes sortedLanes) (waiting []core.Lane, gates [][]any, err error) {
	results, err := s.readBatch(ctx, s.sql.lanesWaiting.with(""), s.sql.allGates.with())
	if err != nil {
		return nil, nil, err
	}
	gates = results[1].Rows
	names, complete, err := s.distinctAfter(ctx, results[0].Rows, len(lanes)/manyLanes, s.sql.lanesWaiting)
	if err != nil || !complete {
		return lanes, gates, err
	}
	for _, name := range names {
		if lanes.has(name) {
			waiting = append(waiting, core.Lane(name))
		}
	}
	return waiting, gates, nil
}

// dueOf is Due for a few lanes. It reads one index entry and one gate for each, in one
// statement. The due time that it finds becomes the floor of the lane, see duefloor.go.
func (s *Store) dueOf(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error) {
	began, rows, bottom, anyBottom := s.clock(), make([][]any, len(lanes)), map[core.Lane]bool{}, false
	for i, l := range lanes {
		var from int64
		from, bottom[l] = s.floors.lookFrom(l, began)
		anyBottom = anyBottom || bottom[l]
		rows[i] = []any{string(l), string(l), from, string(l)}
	}
	looks := []Stmt{s.sql.due.on(rows...)}
	if anyBottom {
		looks = append(looks, s.sql.sourceHolds.with())
	}
	results, err := s.readBatch(ctx, looks...)
	if err != nil {
		return nil, fmt.Errorf("read due times: %w", err)
	}
	if len(looks) > 1 {
		s.sources.observe(results[1].Rows)
	}
	due := make(map[core.Lane]core.Outlook, len(lanes))
	for _, row := range results[0].Rows {
		r := rowReader{row}
		lane, first := core.Lane(r.text()), r.value()
		s.floors.observed(lane, first, bottom[lane], began)
		// A lane with no job and no gate needs no entry.
		if o := (core.Outlook{DueAt: timeOf(first), Gate: r.gate()}); o != (core.Outlook{}) {
			due[lane] = o
		}
	}
	if err := s.parkedDue(ctx, lanes, due); err != nil {
		return nil, fmt.Errorf("read the lanes of held sources: %w", err)
	}
	return due, nil
}

// Settle records outcomes. See core.Worklist. All of its statements are guarded by heldGuard,
// so an outcome whose lease is lost changes nothing, and a batch that is sent twice settles
// once.
func (s *Store) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	if len(outcomes) == 0 {
		return core.Settlement{}, nil
	}
	stmts, settled, lanes := s.settleStmts(outcomes)
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return core.Settlement{}, fmt.Errorf("settle: %w", err)
	}
	// Later claims of this process must see the jobs that wait again, and the jobs of alerts.
	for _, o := range outcomes {
		if !o.Status.Finished() {
			s.floors.jobWritten(o.DueAt)
		}
		if o.Line.Key != "" { // the next job of its line
			s.floors.jobWritten(o.At)
		}
		if o.GivesRise != nil {
			s.floors.jobWritten(o.GivesRise.Event.CreatedAt)
		}
	}
	var after core.Settlement
	if len(lanes) > 0 {
		after.Gates = gatesOf(lanes, results[len(results)-1].Rows)
	}
	// Fewer rows than outcomes: some were settled before, or lost their lease. Only then is it
	// worth a read to find out which.
	if results[settled].Changed < int64(len(outcomes)) {
		after.Lost, err = s.lostOutcomes(ctx, outcomes)
	}
	return after, err
}

// settleStmts are the statements of a Settle. settled is the position of the statement that
// ends the leases. All statements that require a held lease come before it: attempts, events
// that an outcome causes, and verdicts for gates. lanes are the lanes whose gates are read
// after it, if there are any.
func (s *Store) settleStmts(outcomes []core.Outcome) (stmts []Stmt, settled int, lanes [][]any) {
	moves, lanes := s.gateStmts(outcomes)
	if len(lanes) == 0 && s.sql.settleAtOnce.sql != "" && !slices.ContainsFunc(outcomes, notAtOnce) {
		stmts = append(moves, s.settleAtOnce(outcomes))
	} else {
		stmts = append(append(s.heldStmts(outcomes), moves...), s.settleAll(outcomes))
	}
	settled = len(stmts) - 1
	stmts = append(stmts, s.lineEndStmts(outcomes)...)
	if len(lanes) > 0 {
		stmts = append(stmts, s.sql.gates.on(lanes...))
	}
	return stmts, settled, lanes
}

// notAtOnce reports whether an outcome leaves more than its job and a row of attempts without an
// exchange, or less.
func notAtOnce(o core.Outcome) bool {
	return o.GivesRise != nil || o.Attempt.Exchange != nil || keptInJob(&o.Attempt, o.Status)
}

// settleAtOnce ends the leases and inserts the attempts in one statement, which locks each job once.
// Outcomes that count as failures, or cause an event, are not settled this way: the lock that comes
// with an attempt ensures that they leave nothing if the lease is lost before the statement settle. A
// success may set a count of failures to 0 although its lease is lost in the next moment.
func (s *Store) settleAtOnce(outcomes []core.Outcome) Stmt {
	rows := make([][]any, len(outcomes))
	for i := range outcomes {
		o, a := &outcomes[i], &outcomes[i].Attempt
		rows[i] = append(settledRow(o), string(o.JobID), string(o.Lease), int64(a.StatusCode), a.Response, a.Duration.Milliseconds(), millis(a.StartedAt))
	}
	return s.sql.settleAtOnce.on(rows...)
}

// heldStmts insert the attempts of outcomes, and the events that they cause.
func (s *Store) heldStmts(outcomes []core.Outcome) []Stmt {
	var events, jobs [][]any
	for _, o := range outcomes {
		if o.GivesRise != nil {
			events = append(events, append(eventRow(o.GivesRise.Event), string(o.JobID), string(o.Lease)))
			ready, _ := jobRows(*o.GivesRise, false) // alerts are never delayed
			jobs = append(jobs, ready...)
		}
	}
	stmts := s.insertAttempts(outcomes)
	if len(events) > 0 {
		stmts = append(stmts, s.sql.insertEventIf.on(events...))
	}
	if len(jobs) > 0 {
		stmts = append(stmts, s.sql.insertJobIf.on(jobs...))
	}
	return stmts
}

// lostOutcomes returns the jobs whose outcomes were not stored, because the lease was lost. The
// others were stored by this batch or by an earlier sending of it: they have an attempt with
// the lease, or their job has its success.
func (s *Store) lostOutcomes(ctx context.Context, outcomes []core.Outcome) ([]core.ID, error) {
	leases, successes := make([][]any, len(outcomes)), make([][]any, len(outcomes))
	for i, o := range outcomes {
		leases[i] = []any{string(o.JobID), string(o.Lease)}
		successes[i] = []any{string(o.Lease), string(o.JobID), successOf(&o.Attempt, o.Status)}
	}
	results, err := s.readBatch(ctx, s.sql.settled.on(leases...), s.sql.settledSuccess.on(successes...))
	if err != nil {
		return nil, fmt.Errorf("settle: %w", err)
	}
	type lease struct{ job, lease string }
	settled := map[lease]bool{}
	for _, row := range slices.Concat(results[0].Rows, results[1].Rows) {
		r := rowReader{row}
		settled[lease{r.text(), r.text()}] = true
	}
	var lost []core.ID
	for _, o := range outcomes {
		if !settled[lease{string(o.JobID), string(o.Lease)}] {
			lost = append(lost, o.JobID)
		}
	}
	return lost, nil
}

// insertAttempts inserts the attempts of outcomes that are not kept in their jobs. If none has an
// exchange, the statement does not have its columns: deliveries that record nothing bind no values
// for it.
func (s *Store) insertAttempts(outcomes []core.Outcome) []Stmt {
	var rows [][]any
	recorded := slices.ContainsFunc(outcomes, func(o core.Outcome) bool { return o.Attempt.Exchange != nil })
	for i := range outcomes {
		if o := &outcomes[i]; !keptInJob(&o.Attempt, o.Status) {
			rows = append(rows, attemptRow(o, recorded))
		}
	}
	switch {
	case len(rows) == 0:
		return nil
	case recorded:
		return []Stmt{s.sql.insertRecorded.on(rows...)}
	}
	return []Stmt{s.sql.insertAttempt.on(rows...)}
}

// attemptRow is a row of insertRecorded, or of insertAttempt.
func attemptRow(o *core.Outcome, recorded bool) []any {
	a := &o.Attempt
	job, lease := string(o.JobID), string(o.Lease)
	if !recorded {
		return []any{int64(a.Number), int64(a.StatusCode), a.Error, a.Response, a.Duration.Milliseconds(), millis(a.StartedAt), job, lease}
	}
	exchange, body := exchangeColumnsOf(a.Exchange)
	return []any{int64(a.Number), int64(a.StatusCode), a.Error, a.Response, a.Duration.Milliseconds(), millis(a.StartedAt), exchange, body, job, lease}
}

// successAt is the position of the success in a row of settle.
const successAt = 5

// settleAll ends the leases of outcomes. Of different outcomes of a lease, which callers may send at
// the same time, the first row of a merged statement counts. The rows are sorted so that it is one
// whose attempt is a row, which was inserted before. D1 merges no statements.
func (s *Store) settleAll(outcomes []core.Outcome) Stmt {
	rows := make([][]any, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		success, _ := successOf(&o.Attempt, o.Status).(string)
		rows[i] = append(settledRow(o), success, string(o.JobID), string(o.Lease))
	}
	slices.SortStableFunc(rows, func(a, b []any) int { return strings.Compare(a[successAt].(string), b[successAt].(string)) })
	return s.sql.settle.on(rows...).sortedBy(successAt)
}

// settledRow has the values of settledJob. A finished job has no due time, which takes it out of
// jobs_waiting.
func settledRow(o *core.Outcome) []any {
	due, finished := millis(o.DueAt), any(nil)
	if o.Status.Finished() {
		due, finished = nil, millis(o.At)
	}
	return append(make([]any, 0, 11), string(o.Status), int64(o.Attempt.Number), due, o.Attempt.Error, finished)
}

// Release gives jobs back untried. See core.Worklist. The probe of an open breaker ends first,
// in the lock order of gates, and without a verdict.
func (s *Store) Release(ctx context.Context, due time.Time, jobs ...core.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	stmts := make([]Stmt, len(jobs)+1)
	stmts[0] = s.sql.endProbe.on(probesOf(due, jobs)...)
	for i, j := range jobs {
		stmts[i+1] = s.sql.release.with(millis(due), string(j.ID), string(j.Lease))
	}
	if _, err := s.write(ctx, stmts...); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	s.floors.jobWritten(due)
	return nil
}

// Recover makes running jobs due at once. See core.Worklist.
func (s *Store) Recover(ctx context.Context, now time.Time, lanes []core.Lane) (int, error) {
	if len(lanes) == 0 {
		return 0, nil
	}
	stmts := make([]Stmt, len(lanes))
	for i, l := range lanes {
		stmts[i] = s.sql.recover.with(millis(now), string(l), millis(now))
	}
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return 0, fmt.Errorf("recover: %w", err)
	}
	s.floors.jobWritten(now)
	n := 0
	for _, r := range results {
		n += int(r.Changed)
	}
	return n, nil
}

// heldGuard is the guard of every write to a taken job: the job runs and has the caller's
// lease. A worker whose lease expired and was taken over changes nothing, even if it settles
// twice.
const heldGuard = `jobs.id = r.id AND jobs.status = 'running' AND jobs.lease = r.lease`

// settledJob are the assignments of settle, but for the success.
const settledJob = `status = r.status, attempt = r#attempt, due_at = r#due_at, lease = NULL, last_error = r.last_error, finished_at = r#finished_at`

// worklistSQL are the statements of the Worklist, except Take's.
type worklistSQL struct {
	due, insertAttempt, insertRecorded, insertEventIf, settle, settleAtOnce, settled, settledSuccess, release, recover statement
}

func newWorklistSQL(d Dialect) worklistSQL {
	return worklistSQL{
		// One row for each lane, also without a job or a gate: the lane is repeated in the row,
		// since each column of r is bound once.
		due: reading("due", d.selectOuter(`r.lane AS lane, (SELECT due_at FROM jobs{use jobs_waiting}
			WHERE {waiting_lane} = r.same_lane AND due_at >= r#floor ORDER BY due_at LIMIT 1) AS due, `+gateState,
			"gates{use PRIMARY}", `gates.lane = r.gate`)),

		// The lock keeps a Take from claiming the job between this statement and settle, if its
		// lease has just expired. Otherwise the attempt of a lost outcome could stay.
		insertAttempt: uncounted("insert_attempts", d.insertIfAbsent("attempts", attemptColumns,
			`jobs.id, jobs.lease, r#attempt, r#status_code, r.error, r.response, r#duration_ms, r#created_at`, "jobs{use PRIMARY}", heldGuard+` {lock_rows jobs}`, "job_id")),
		insertRecorded: uncounted("insert_attempts_recorded", d.insertIfAbsent("attempts", exchangeColumns,
			`jobs.id, jobs.lease, r#attempt, r#status_code, r.error, r.response, r#duration_ms, r#created_at, r.exchange, r.sent_body`, "jobs{use PRIMARY}", heldGuard+` {lock_rows jobs}`, "job_id")),

		// An event that an outcome causes, such as an alert, is stored only if the lease is
		// held.
		insertEventIf: writing("insert_events_if", d.insertIfAbsent("events", eventColumns,
			`r.event, r.source, r.type, r.payload, r.content_type, r.headers, r.delivery_id, r#created_at`, "jobs{use PRIMARY}", heldGuard, "id")),

		settle: writing("settle", d.updateRows("jobs", settledJob+`, success = NULLIF(r.success, '')`, heldGuard)),
		settleAtOnce: writing("settle_at_once", d.updateAndInsert("jobs", settledJob, heldGuard,
			"attempts", attemptColumns, `jobs.id, r.lease, r#attempt, r#status_code, r.last_error, r.response, r#duration_ms, r#started_at`)),

		// The attempts that exist for pairs of job and lease.
		settled: reading("settled", d.selectRows(`attempts.job_id, attempts.lease`, "attempts", `attempts.job_id = r.id AND attempts.lease = r.lease`)),
		// The same for jobs that have a success. No two attempts of a job have the same number and
		// start.
		settledSuccess: reading("settled_success", d.selectRows(`jobs.id AS job, r.lease AS lease`, "jobs{use PRIMARY}", `jobs.id = r.id AND jobs.success = r.success`)),

		// status comes first: MySQL evaluates SET from left to right and reads the new values.
		// A job whose earlier attempt failed is shown as retryable again. The job of a step is
		// also taken when a time that it waited for has come, so there only a job with an error
		// has failed.
		release: writing("release", d.sql(`UPDATE jobs SET status = CASE WHEN attempt > earlier + 1 AND (last_error <> '' OR `+noWorkflow+`) THEN 'retryable' ELSE 'available' END,
			attempt = attempt - 1, due_at = ?, lease = NULL
			WHERE id = ? AND status = 'running' AND lease = ?`)),

		// The statement reads the lane's running jobs by jobs_waiting; due_at is the end of
		// their lease.
		recover: writing("recover", d.sql(`UPDATE jobs{use jobs_waiting} SET due_at = ? WHERE {waiting_lane} = ? AND due_at > ? AND status = 'running'`)),
	}
}
