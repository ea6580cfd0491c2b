package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// linedStmts are the statements that store the jobs of lines of arrivals. The jobs are inserted
// first, since only the INSERT tells whether a job is a duplicate, and then enter their lines.
func (s *Store) linedStmts(arrivals ...core.Arrival) []Stmt {
	return s.linedBy(func(rows [][]any) Stmt { return s.sql.insertLined.on(rows...) }, arrivals...)
}

// linedBy is linedStmts with another INSERT. The last value of its rows is the event.
func (s *Store) linedBy(insert func(rows [][]any) Stmt, arrivals ...core.Arrival) []Stmt {
	var refs []lineRef
	var rows [][]any
	for _, a := range arrivals {
		for _, j := range a.Jobs {
			if j.Line.Key == "" {
				continue
			}
			line := lineOf(j.Lane, j.Line.Key).(string)
			refs = append(refs, lineRef{line: line, job: j.ID, limit: j.Line.Limit, status: entering})
			rows = append(rows, []any{string(j.ID), string(j.Lane), orNull(j.Key), int64(j.MaxAttempts),
				millis(a.Event.CreatedAt), line, millis(a.Due(j)), string(a.Event.ID)})
		}
	}
	if len(refs) == 0 {
		return nil
	}
	// Rows with equal keys stay in the order of the arrivals: the first is stored.
	slices.SortStableFunc(rows, func(a, b []any) int {
		if c := compareText(a[jobRowLane], b[jobRowLane]); c != 0 {
			return c
		}
		return compareText(a[jobRowKey], b[jobRowKey])
	})
	stmts := append(s.lockLines(refs), insert(rows))
	stmts = append(stmts, s.enterStmts(s.sql.joinLine, refs)...)
	ids := make([][]any, len(refs))
	for i, r := range refs {
		ids[i] = []any{string(r.job)}
	}
	return append(stmts, s.sql.entered.on(ids...))
}

// lineEndStmts are the statements of a Settle for the jobs of lines: a job that ended gives its
// slot to the next job of its line. A job that is to be retried keeps its slot in a line with a
// limit of 1. A dead job that stops its line keeps it too.
func (s *Store) lineEndStmts(outcomes []core.Outcome) []Stmt {
	var all, passed []lineRef
	var stopped [][]any
	var now time.Time
	for _, o := range outcomes {
		if o.Line.Key == "" || o.Status == core.Retryable && o.Line.Limit == 1 {
			continue
		}
		ref := lineRef{line: lineOf(o.Lane, o.Line.Key).(string), job: o.JobID, limit: o.Line.Limit, status: o.Status}
		all, now = append(all, ref), o.At
		if o.Status == core.Dead && o.StopsLine {
			stopped = append(stopped, []any{millis(o.At), ref.line, string(o.JobID), string(o.JobID)})
		} else {
			passed = append(passed, ref)
		}
	}
	if len(all) == 0 {
		return nil
	}
	stmts := s.lockLines(all)
	if len(stopped) > 0 {
		stmts = append(stmts, s.sql.stopLines.on(stopped...))
	}
	if len(passed) > 0 {
		stmts = append(stmts, s.passStmts(now, passed)...)
	}
	return stmts
}

// withSlots returns the taken jobs that have a slot of their line, or are in no line. The others
// gave their slots away when they failed. They enter their lines again at the front. A job that
// gets no slot there waits.
func (s *Store) withSlots(ctx context.Context, now time.Time, quotas []core.Quota, jobs []core.TakenJob) ([]core.TakenJob, error) {
	var refs []lineRef
	var probes []core.Job
	for _, j := range jobs {
		// A bare job may come without the name of its line. Its caller releases it.
		if !j.Unslotted || j.Line == "" {
			continue
		}
		limit := 0
		for _, q := range quotas {
			if q.Lane == j.Lane {
				limit = q.Lines
			}
		}
		refs = append(refs, lineRef{line: lineOf(j.Lane, j.Line).(string), job: j.ID, limit: limit, status: core.Running, lease: j.Lease})
		if j.Probe {
			probes = append(probes, j.Job)
		}
	}
	if len(refs) == 0 {
		return jobs, nil
	}
	stmts := s.lockLines(refs)
	stmts = append(stmts, s.enterStmts(s.sql.rejoinLine, refs)...)
	leases := make([][]any, len(refs))
	for i, r := range refs {
		leases[i] = []any{string(r.job), string(r.lease)}
	}
	stmts = append(stmts, s.sql.reentered.on(leases...), s.sql.stillHeld.on(leases...))
	results, err := s.write(ctx, stmts...)
	if err != nil {
		// The jobs come again when their leases end.
		return slices.DeleteFunc(jobs, func(j core.TakenJob) bool { return j.Unslotted && j.Line != "" }), nil
	}
	held := idsOf(results[len(results)-1].Rows)
	_ = s.endProbes(ctx, now, slices.DeleteFunc(probes, func(j core.Job) bool { return held[string(j.ID)] }))
	jobs = slices.DeleteFunc(jobs, func(j core.TakenJob) bool { return j.Unslotted && j.Line != "" && !held[string(j.ID)] })
	for i := range jobs {
		jobs[i].Unslotted = false
	}
	return jobs, nil
}

// endProbes lets the next probes start, after jobs that were taken as probes and are not tried.
func (s *Store) endProbes(ctx context.Context, now time.Time, jobs []core.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	if _, err := s.write(ctx, s.sql.endProbe.on(probesOf(now, jobs)...)); err != nil {
		return fmt.Errorf("end probe: %w", err)
	}
	return nil
}
