package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// failureText is the beginning of an error. Its unit is a character, except on MySQL: a byte.
var failureText = `SUBSTR(last_error, 1, ` + strconv.Itoa(core.MaxFailureText) + `)`

// A failureRange is the failed jobs of a lane in one index, newest first. They are read piece by
// piece.
type failureRange struct {
	lane   core.Lane
	status core.Status // core.Dead for jobs_dead, core.Retryable for jobs_waiting
	below  string      // the next piece begins below this id
	open   bool        // whether it may have jobs that belong to the answer
}

// Failures lists failed jobs, the newest first. See core.Ledger. No index has the failed jobs of
// all lanes in the order of their ids. So it reads a piece of each lane, with a fair share of the
// limit, and goes on in the lanes that may still have jobs newer than the oldest one found. It
// reads at most three times as many jobs as it returns, in a few rounds; with one lane it reads each
// job once.
//
// On D1, where each row that is read is paid for, a call costs at most some 30,000 jobs with their
// index entries, and twice FailureReach index entries for each lane with so many unfinished jobs.
func (s *Store) Failures(ctx context.Context, f core.FailureFilter) (core.Page[core.FailedJob], error) {
	limit := core.MaxFailures
	if f.Limit > 0 {
		limit = min(f.Limit, limit)
	}
	ranges, err := s.failureRanges(ctx, f)
	if err != nil {
		return core.Page[core.FailedJob]{}, fmt.Errorf("list failed jobs: %w", err)
	}
	found, err := s.readFailures(ctx, f, ranges, limit+1)
	if err != nil {
		return core.Page[core.FailedJob]{}, fmt.Errorf("list failed jobs: %w", err)
	}
	page := core.Page[core.FailedJob]{Items: found[:min(limit, len(found))], More: len(found) > limit}
	if !page.More {
		page.More, err = s.beyondReach(ctx, ranges)
	}
	return page, err
}

// failureRanges returns the ranges in which a filter may find failed jobs.
func (s *Store) failureRanges(ctx context.Context, f core.FailureFilter) (ranges []*failureRange, err error) {
	top := newestID
	if !f.Until.IsZero() {
		top = string(core.FirstID(f.Until))
	}
	for _, kind := range []struct {
		status core.Status
		lanes  statement
	}{{core.Dead, s.sql.lanesDead}, {core.Retryable, s.sql.lanesWaiting}} {
		lanes := []string{string(f.Lane)}
		if f.Lane == "" {
			if lanes, err = s.distinct(ctx, kind.lanes); err != nil {
				return nil, err
			}
		}
		for _, lane := range lanes {
			ranges = append(ranges, &failureRange{lane: core.Lane(lane), status: kind.status, below: top, open: true})
		}
	}
	return ranges, nil
}

// readFailures returns the newest jobs of ranges together, up to most of them.
func (s *Store) readFailures(ctx context.Context, f core.FailureFilter, ranges []*failureRange, most int) (found []core.FailedJob, err error) {
	open, quota := ranges, 0
	for len(open) > 0 {
		// A job may be found twice if it changes between two rounds, so a round may find no new ones.
		quota = max(2*quota, (most-len(found)+len(open)-1)/len(open), 1)
		stmts := make([]Stmt, len(open))
		for i, r := range open {
			stmts[i] = s.failuresOf(r, f, quota)
		}
		results, err := s.readBatch(ctx, stmts...)
		if err != nil {
			return nil, err
		}
		for i, r := range open {
			found = append(found, r.read(results[i].Rows, quota)...)
		}
		found = newestFailures(found, most)
		for _, r := range open {
			r.open = r.open && (len(found) < most || r.below > string(found[most-1].ID))
		}
		open = slices.DeleteFunc(slices.Clone(open), func(r *failureRange) bool { return !r.open })
	}
	return found, nil
}

// failuresOf reads the next piece of a range.
func (s *Store) failuresOf(r *failureRange, f core.FailureFilter, quota int) Stmt {
	lane, first := string(r.lane), ""
	if !f.Since.IsZero() {
		first = string(core.FirstID(f.Since))
	}
	if r.status == core.Dead {
		return s.sql.failuresDead.with(lane, first, lane, r.below, int64(quota))
	}
	return s.sql.failuresRetryable.with(lane, int64(core.FailureReach), s.clock().UnixMilli(), first, r.below, int64(quota))
}

// read returns the jobs of a piece. A piece with fewer rows than its quota is the last one.
func (r *failureRange) read(rows [][]any, quota int) []core.FailedJob {
	jobs := make([]core.FailedJob, 0, len(rows))
	for _, row := range rows {
		read := rowReader{row}
		j := core.FailedJob{ID: read.id(), Lane: r.lane, Status: r.status}
		text := read.text()
		j.Error = strings.ToValidUTF8(text[:min(len(text), core.MaxFailureText)], "")
		jobs = append(jobs, j)
		if r.below > string(j.ID) { // the rows may be in any order
			r.below = string(j.ID)
		}
	}
	r.open = len(rows) == quota
	return jobs
}

// newestFailures returns the newest of some jobs, newest first, and each once.
func newestFailures(jobs []core.FailedJob, most int) []core.FailedJob {
	slices.SortFunc(jobs, func(a, b core.FailedJob) int { return strings.Compare(string(b.ID), string(a.ID)) })
	jobs = slices.CompactFunc(jobs, func(a, b core.FailedJob) bool { return a.ID == b.ID })
	return jobs[:min(most, len(jobs))]
}

// beyondReach reports whether a lane has more unfinished jobs than failuresRetryable reads.
func (s *Store) beyondReach(ctx context.Context, ranges []*failureRange) (bool, error) {
	var stmts []Stmt
	for _, r := range ranges {
		if r.status == core.Retryable {
			stmts = append(stmts, s.sql.waitingBeyond.with(string(r.lane), int64(core.FailureReach)))
		}
	}
	results, err := s.readBatch(ctx, stmts...)
	if err != nil {
		return false, fmt.Errorf("list failed jobs: %w", err)
	}
	return slices.ContainsFunc(results, func(r Result) bool { return len(r.Rows) > 0 }), nil
}
