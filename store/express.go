package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/eventgateway/gateway/core"
)

// This file accepts an event and takes its jobs in one batch. See "Jobs that are taken at once" in
// doc.go.

// AcceptAndTake implements core.Express. Like a Take, the batch is sent again at once if it may have
// leased jobs and its answer got lost. The lease is the same, so the second sending finds the jobs.
// If that fails too, the caller gets all jobs that may be leased.
func (s *Store) AcceptAndTake(ctx context.Context, now time.Time, a core.Arrival, holds map[core.ID]time.Duration) (core.Receipt, []core.TakenJob, error) {
	x := express{now: now, event: a.Event, holds: holds}
	for _, j := range a.Jobs {
		if _, wanted := holds[j.ID]; wanted && takesAtOnce(a, j, now) {
			x.jobs = append(x.jobs, j)
		}
	}
	if len(x.jobs) > 0 {
		x.lease = string(s.leases.Next())
	}
	began := s.clock()
	receipt, taken, err := s.accept(ctx, a, x)
	if !core.IsKind(err, core.Unavailable) || core.NoEffect(err) || len(x.jobs) == 0 {
		return receipt, taken, err
	}
	if s.clock().Sub(began) < resendWithin {
		receipt, taken, err = s.accept(ctx, a, x)
	}
	if err != nil {
		each := func(core.ID) bool { return true }
		return core.Receipt{}, x.takenJobs(each), outcomeUnknown(err)
	}
	return receipt, taken, nil
}

// takesAtOnce reports whether a job of an arrival may be taken in the batch that stores it, as far as
// the job decides that.
func takesAtOnce(a core.Arrival, j core.NewJob, now time.Time) bool {
	return j.Key == "" && j.Line.Key == "" && j.Lane.Workflow() == "" && !a.Due(j).After(now) && !a.Due(j).After(a.Event.CreatedAt)
}

// An express is the jobs of an arrival that are to be taken in the batch that stores them. The zero
// express has none.
type express struct {
	now   time.Time
	lease string // of all jobs
	event core.Event
	jobs  []core.NewJob
	holds map[core.ID]time.Duration // for how long to lease each job
}

// others returns the arrival without the jobs of x.
func (x express) others(a core.Arrival) core.Arrival {
	if len(x.jobs) > 0 {
		a.Jobs = slices.DeleteFunc(slices.Clone(a.Jobs), func(j core.NewJob) bool {
			return slices.ContainsFunc(x.jobs, func(own core.NewJob) bool { return own.ID == j.ID })
		})
	}
	return a
}

// until returns the end of the lease of a job.
func (x express) until(id core.ID) time.Time { return x.now.Add(x.holds[id]) }

// expressStmts insert the jobs of x.
func (s *Store) expressStmts(x express) []Stmt {
	if len(x.jobs) == 0 {
		return nil
	}
	rows, due := make([][]any, len(x.jobs)), millis(x.event.CreatedAt)
	for i, j := range x.jobs {
		free, now := freeFrom(j.Lane, x.now), x.now.UnixMilli()
		rows[i] = []any{string(j.ID), string(j.Lane), int64(j.MaxAttempts), millis(x.until(j.ID)), due, x.lease, now, free,
			string(core.SourceLane(x.event.Source)), string(x.event.ID)}
	}
	return []Stmt{s.sql.insertTaken.on(rows...)}
}

// takenStmts ask which leases the jobs of x have, if expressStmts do not return that.
func (s *Store) takenStmts(x express) []Stmt {
	if len(x.jobs) == 0 || s.sql.insertTaken.returns {
		return nil
	}
	return []Stmt{s.takenStmt(x)}
}

func (s *Store) takenStmt(x express) Stmt {
	rows := make([][]any, len(x.jobs))
	for i, j := range x.jobs {
		rows[i] = []any{string(j.ID)}
	}
	return s.sql.takenAtOnce.on(rows...)
}

// readTaken returns the jobs of x that were taken. results are those of a batch with expressStmts
// and takenStmts.
//
// If the batch was sent again by the Conn after its answer got lost, it finds its jobs stored, and
// expressStmts return nothing of them. So they are asked for, unless the arrival is a duplicate.
func (s *Store) readTaken(ctx context.Context, x express, stmts []Stmt, results []Result, r core.Receipt) ([]core.TakenJob, error) {
	if len(x.jobs) == 0 {
		return nil, nil
	}
	answer := s.sql.takenAtOnce
	if s.sql.insertTaken.returns {
		answer = s.sql.insertTaken
	}
	leases := x.leases(results[slices.IndexFunc(stmts, func(st Stmt) bool { return st.Name == answer.name })])
	missing := func(j core.NewJob) bool { _, stored := leases[j.ID]; return !stored }
	if answer.returns && !r.Duplicate && slices.ContainsFunc(x.jobs, missing) {
		again, err := s.readBatch(ctx, s.takenStmt(x))
		if err != nil {
			return nil, fmt.Errorf("accept: %w", outcomeUnknown(err))
		}
		leases = x.leases(again[0])
	}
	return x.takenJobs(func(id core.ID) bool { return leases[id] == x.lease }), nil
}

// leases are the leases of the jobs of x in a result, empty for a job without one. In a merged batch the
// result has the jobs of other callers as well, so it is not made into a map: each caller would make one.
func (x express) leases(r Result) map[core.ID]string {
	own, leases := make(map[core.ID]bool, len(x.jobs)), make(map[core.ID]string, len(x.jobs))
	for _, j := range x.jobs {
		own[j.ID] = true
	}
	for _, row := range r.Rows {
		if id := core.ID(textOf(row[leasedID])); own[id] {
			leases[id] = textOf(row[leasedLease])
		}
	}
	return leases
}

// The columns that insert_taken_jobs, if it returns rows, and taken_at_once return.
const (
	leasedID = iota
	leasedLease
	leasedColumns = "jobs.id, jobs.lease"
)

// takenJobs returns some of the jobs as taken, with the event, as a Take would read them.
func (x express) takenJobs(some func(core.ID) bool) (jobs []core.TakenJob) {
	event, due := x.event, asStored(x.event.CreatedAt)
	event.CreatedAt = asStored(receivedAt(event))
	if len(event.Headers) == 0 {
		event.Headers = nil
	}
	for _, j := range x.jobs {
		if !some(j.ID) {
			continue
		}
		jobs = append(jobs, core.TakenJob{
			Job: core.Job{
				ID: j.ID, EventID: event.ID, Lane: j.Lane, Status: core.Running, Attempt: 1, MaxAttempts: j.MaxAttempts,
				DueAt: asStored(x.until(j.ID)), ScheduledAt: due, Lease: core.Lease(x.lease), CreatedAt: due,
			},
			Event: event,
		})
	}
	return jobs
}

// asStored returns a time as it is read back.
func asStored(t time.Time) time.Time { return timeOf(millis(t)) }

// expressSQL are the statements of an AcceptAndTake, beside those of an Accept.
type expressSQL struct{ insertTaken, takenAtOnce statement }

// ifTaken is one of two values of a job that is taken as it is inserted, unless its gate is shut or its
// source held. The gates of both are joined, and found by the primary key. A row of them is there only if
// it keeps the job from being taken.
func ifTaken(then, otherwise string) string {
	return "CASE WHEN gates.lane IS NULL AND held.lane IS NULL THEN " + then + " ELSE " + otherwise + " END"
}

// ifTakenColumns are the columns of such a job from status to last_error.
func ifTakenColumns() string {
	return ifTaken("'"+string(core.Running)+"'", "'"+string(core.Available)+"'") + `, ` + ifTaken("1", "0") + `, r#max_attempts, ` +
		ifTaken("r#until", "r#due_at") + `, ` + ifTaken("r.lease", "NULL") + `, ''`
}

func newExpressSQL(d Dialect) expressSQL {
	ramp, horizon := strconv.FormatInt(core.RampTime.Milliseconds(), 10), strconv.FormatInt(core.GateHorizon.Milliseconds(), 10)
	d.rowJoin = orElse(d.rowJoin, " CROSS JOIN ") // after a comma, ON does not see the row source
	return expressSQL{
		insertTaken: d.returningRows(uncounted("insert_taken_jobs", d.insertOnce("jobs", jobColumns+", scheduled_at",
			`r.id, events.id, r.lane, NULL, `+ifTakenColumns()+`, r#due_at, NULL, `+ifTaken("r#due_at", "NULL"),
			`events{use PRIMARY} LEFT JOIN gates ON gates.lane = r.lane AND (`+isOpen+` OR gates.closed_at > r#now - `+ramp+` AND gates.closed_at <= r#now + `+horizon+` OR gates.held_until > r#free)
			LEFT JOIN gates held ON held.lane = r.source AND held.held_until > r#now`,
			`events.id = r.event_id`)), leasedColumns),
		takenAtOnce: reading("taken_at_once", d.selectRows(leasedColumns, "jobs{use PRIMARY}", `jobs.id = r.id`)),
	}
}
