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

// A failure is a failed job.
type failure struct {
	id   string
	of   *failureRange
	text any // its error; nil if it is not read yet
}

// Failures lists failed jobs, the newest first. See core.Ledger. No index has the failed jobs of
// all lanes in the order of their ids. So it reads a piece of each lane, with a fair share of the
// limit, and goes on in the lanes that may still have jobs newer than the oldest one that counts. It
// reads at most three times as many jobs as it returns, in a few rounds; with one lane it reads each
// job once.
//
// On SQLite and D1 it reads the ids first, which the indexes have, and then the errors of the jobs
// that it returns, in the order of their ids. Jobs with neighbouring ids are on the same page of the
// database, whatever their lanes, so each page is read once. PostgreSQL and MySQL take twice as long
// for that as for the errors of each piece.
//
// On D1, where each row that is read is paid for, a call costs at most some 24,000 index entries and
// 8,000 jobs, and twice FailureReach index entries for each lane with so many unfinished jobs.
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
	page.More = len(found) > limit
	found = found[:min(limit, len(found))]
	var stmts []Stmt
	if !page.More {
		stmts = s.beyondReach(ranges)
	}
	beyond := len(stmts)
	if s.dialect.keyList != "" && len(found) > 0 {
		stmts = append(stmts, s.textsOf(found))
	}
	results, err := s.readBatch(ctx, stmts...)
	if err != nil {
		return core.Page[core.FailedJob]{}, fmt.Errorf("list failed jobs: %w", err)
	}
	page.More = page.More || slices.ContainsFunc(results[:beyond], func(r Result) bool { return len(r.Rows) > 0 })
	if len(results) > beyond {
		addTexts(found, results[beyond].Rows)
	}
	page.Items = failedJobs(found)
	return page, nil
}

// failureRanges returns the ranges in which a filter may find failed jobs.
func (s *Store) failureRanges(ctx context.Context, f core.FailureFilter) (ranges []*failureRange, err error) {
	top := newestID
	if !f.Until.IsZero() {
		top = string(core.FirstID(f.Until))
	}
	lanes := [][]string{{string(f.Lane)}, {string(f.Lane)}}
	if f.Lane == "" {
		if lanes, err = s.distincts(ctx, s.sql.lanesDead, s.sql.lanesWaiting); err != nil {
			return nil, err
		}
	}
	for i, status := range []core.Status{core.Dead, core.Retryable} {
		for _, lane := range lanes[i] {
			ranges = append(ranges, &failureRange{lane: core.Lane(lane), status: status, below: top, open: true})
		}
	}
	return ranges, nil
}

// findFailures returns the newest jobs of ranges together, up to most of them. On SQLite and D1 it finds
// dead jobs first: then few of the unfinished jobs, which are not in the order of their ids, are new
// enough to count. Elsewhere that would be a round trip more.
func (s *Store) findFailures(ctx context.Context, f core.FailureFilter, ranges []*failureRange, most int) (found []*failure, err error) {
	floor := "" // no job below this id counts
	if !f.Since.IsZero() {
		floor = string(core.FirstID(f.Since))
	}
	turns := [][]core.Status{{core.Dead, core.Retryable}}
	if s.dialect.keyList != "" {
		turns = [][]core.Status{{core.Dead}, {core.Retryable}}
	}
	for _, turn := range turns {
		quota := 0
		for {
			open := slices.DeleteFunc(slices.Clone(ranges), func(r *failureRange) bool { return !slices.Contains(turn, r.status) || !r.open || r.below <= floor })
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

// failuresOf reads the next piece of a range.
func (s *Store) failuresOf(r *failureRange, floor string, quota int) Stmt {
	lane := string(r.lane)
	if r.status == core.Dead {
		return s.sql.failuresDead.with(lane, floor, lane, r.below, int64(quota))
	}
	return s.sql.failuresRetryable.with(floor, r.below, s.clock().UnixMilli(), lane, int64(core.FailureReach), int64(quota))
}

// read returns the jobs of a piece. A piece with fewer rows than its quota is the last one.
func (r *failureRange) read(rows [][]any, quota int) []*failure {
	all, jobs := make([]failure, len(rows)), make([]*failure, len(rows))
	for i, row := range rows {
		all[i] = failure{id: rowKey(row), of: r}
		jobs[i] = &all[i]
		if len(row) > 1 {
			jobs[i].text = row[1]
		}
		r.below = min(r.below, jobs[i].id) // the rows may be in any order
	}
	r.open = len(rows) == quota
	return jobs
}

// newestFailures returns the newest of some jobs, newest first, and each once. They are pointers since
// all types share the code that sorts pointers, see package order.
func newestFailures(jobs []*failure, most int) []*failure {
	slices.SortFunc(jobs, func(a, b *failure) int { return strings.Compare(b.id, a.id) })
	jobs = slices.CompactFunc(jobs, func(a, b *failure) bool { return a.id == b.id })
	return jobs[:min(most, len(jobs))]
}

// textsOf reads the beginnings of the errors of jobs.
func (s *Store) textsOf(found []*failure) Stmt {
	ids := make([]string, len(found))
	for i, job := range found {
		ids[i] = job.id
	}
	return s.sql.failureTexts.onKeys(ids)
}

// addTexts adds the rows of textsOf to jobs, which are in order.
func addTexts(found []*failure, rows [][]any) {
	next := 0
	for _, row := range rows {
		id := rowKey(row)
		if next == len(found) || found[next].id != id { // mostly, the rows are in the order of the ids
			var exists bool
			next, exists = slices.BinarySearchFunc(found, id, func(job *failure, id string) int { return strings.Compare(id, job.id) })
			if !exists {
				continue
			}
		}
		found[next].text = row[1]
		next++
	}
}

// failedJobs returns jobs with the beginnings of their errors. Jobs that were deleted before their
// errors were read are left out.
func failedJobs(found []*failure) []core.FailedJob {
	var jobs []core.FailedJob
	for _, job := range found {
		if job.text == nil {
			continue
		}
		text := textOf(job.text)
		text = strings.ToValidUTF8(text[:min(len(text), core.MaxFailureText)], "")
		jobs = append(jobs, core.FailedJob{ID: core.ID(job.id), Lane: job.of.lane, Status: job.of.status, Error: text})
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
