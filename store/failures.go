package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/order"
)

// failureText is the beginning of an error. Its unit is a character, except on MySQL: a byte.
var failureText = `SUBSTR(last_error, 1, ` + strconv.Itoa(core.MaxFailureText) + `)`

// A failureRange is the failed jobs of a lane in one index, newest first. Their ids are read piece by
// piece.
type failureRange struct {
	lane   core.Lane
	status core.Status // core.Dead for jobs_dead, core.Retryable for jobs_waiting
	below  string      // the next piece begins below this id
	open   bool        // whether it may have jobs that belong to the answer
}

// A failure is a failed job whose error is not read yet.
type failure struct {
	id string
	of *failureRange
}

// Failures lists failed jobs, the newest first. See core.Ledger. No index has the failed jobs of
// all lanes in the order of their ids. So it reads the ids first, which the indexes have: a piece of
// each lane, with a fair share of the limit. It goes on in the lanes that may still have jobs newer
// than the oldest one that counts. It reads at most three times as many ids as it returns jobs, in a
// few rounds; with one lane it reads each id once. Then it reads the errors of the jobs that it
// returns, in the order of their ids. Jobs with neighbouring ids are on the same page of the
// database, whatever their lanes, so each page is read once.
//
// On D1, where each row that is read is paid for, a call costs at most some 30,000 index entries and
// 10,000 jobs, and twice FailureReach index entries for each lane with so many unfinished jobs.
func (s *Store) Failures(ctx context.Context, f core.FailureFilter) (page core.Page[core.FailedJob], err error) {
	limit := core.MaxFailures
	if f.Limit > 0 {
		limit = min(f.Limit, limit)
	}
	ranges, err := s.failureRanges(ctx, f)
	if err != nil {
		return page, fmt.Errorf("list failed jobs: %w", err)
	}
	found, err := s.findFailures(ctx, f, ranges, limit+1)
	if err != nil {
		return page, fmt.Errorf("list failed jobs: %w", err)
	}
	texts := s.textsOf(found[:min(limit, len(found))])
	stmts := texts
	if page.More = len(found) > limit; !page.More {
		stmts = append(stmts, s.beyondReach(ranges)...)
	}
	results, err := s.readBatch(ctx, stmts...)
	if err != nil {
		return core.Page[core.FailedJob]{}, fmt.Errorf("list failed jobs: %w", err)
	}
	page.Items = withTexts(found, results[:len(texts)])
	page.More = page.More || slices.ContainsFunc(results[len(texts):], func(r Result) bool { return len(r.Rows) > 0 })
	return page, nil
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

// findFailures returns the newest jobs of ranges together, up to most of them. Dead jobs are found
// first: then few of the unfinished jobs, which are not in the order of their ids, are new enough to
// count.
func (s *Store) findFailures(ctx context.Context, f core.FailureFilter, ranges []*failureRange, most int) (found []failure, err error) {
	floor := "" // no job below this id counts
	if !f.Since.IsZero() {
		floor = string(core.FirstID(f.Since))
	}
	for _, status := range []core.Status{core.Dead, core.Retryable} {
		quota := 0
		for {
			open := slices.DeleteFunc(slices.Clone(ranges), func(r *failureRange) bool { return r.status != status || !r.open || r.below <= floor })
			if len(open) == 0 {
				break
			}
			quota = max(2*quota, (most+len(open)-1)/len(open))
			stmts := make([]Stmt, len(open))
			for i, r := range open {
				stmts[i] = s.failuresOf(r, floor, quota)
			}
			results, err := s.readBatch(ctx, stmts...)
			if err != nil {
				return nil, err
			}
			for i, r := range open {
				found = append(found, r.read(results[i].Rows, quota)...)
			}
			if found = newestFailures(found, most); len(found) == most {
				floor = found[most-1].id
			}
		}
	}
	return found, nil
}

// failuresOf reads the ids of the next piece of a range.
func (s *Store) failuresOf(r *failureRange, floor string, quota int) Stmt {
	lane := string(r.lane)
	if r.status == core.Dead {
		return s.sql.failuresDead.with(lane, floor, lane, r.below, int64(quota))
	}
	return s.sql.failuresRetryable.with(lane, int64(core.FailureReach), floor, r.below, s.clock().UnixMilli(), int64(quota))
}

// read returns the jobs of a piece. A piece with fewer rows than its quota is the last one.
func (r *failureRange) read(rows [][]any, quota int) []failure {
	jobs := make([]failure, len(rows))
	for i, row := range rows {
		jobs[i] = failure{rowKey(row), r}
		r.below = min(r.below, jobs[i].id) // the rows may be in any order
	}
	r.open = len(rows) == quota
	return jobs
}

// newestFailures returns the newest of some jobs, newest first, and each once.
func newestFailures(jobs []failure, most int) []failure {
	order.Sort(jobs, func(a, b failure) int { return strings.Compare(b.id, a.id) })
	jobs = slices.CompactFunc(jobs, func(a, b failure) bool { return a.id == b.id })
	return jobs[:min(most, len(jobs))]
}

// textsOf reads the beginnings of the errors of jobs.
func (s *Store) textsOf(found []failure) []Stmt {
	ids := make([]string, len(found))
	for i, job := range found {
		ids[i] = job.id
	}
	return s.dialect.onKeys(s.sql.failureTexts, ids)
}

// withTexts returns jobs with the rows of textsOf. Jobs that were deleted in between are left out.
func withTexts(found []failure, results []Result) []core.FailedJob {
	texts, next := make([]*string, len(found)), 0
	for _, result := range results {
		for _, row := range result.Rows {
			id := rowKey(row)
			if next == len(found) || found[next].id != id { // mostly, the rows are in the order of the ids
				var exists bool
				next, exists = slices.BinarySearchFunc(found, id, func(job failure, id string) int { return strings.Compare(id, job.id) })
				if !exists {
					continue
				}
			}
			text := textOf(row[1])
			text = strings.ToValidUTF8(text[:min(len(text), core.MaxFailureText)], "")
			texts[next] = &text
			next++
		}
	}
	jobs := make([]core.FailedJob, 0, len(found))
	for i, job := range found {
		if texts[i] != nil {
			jobs = append(jobs, core.FailedJob{ID: core.ID(job.id), Lane: job.of.lane, Status: job.of.status, Error: *texts[i]})
		}
	}
	return jobs
}

// beyondReach reads a job of each lane that has more unfinished jobs than failuresRetryable reads.
func (s *Store) beyondReach(ranges []*failureRange) (stmts []Stmt) {
	for _, r := range ranges {
		if r.status == core.Retryable {
			stmts = append(stmts, s.sql.waitingBeyond.with(string(r.lane), int64(core.FailureReach)))
		}
	}
	return stmts
}
