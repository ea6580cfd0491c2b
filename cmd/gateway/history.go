package main

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/eventgateway/gateway/core"
)

// noRecord is said of an attempt that was begun and never reported back.
const noRecord = "no record: the process ended or the lease ran out"

// An entry is a line of a job's history: an attempt that was recorded, or the
// number of one that was begun and is not.
type entry struct {
	number int
	record *core.Attempt
	going  bool // still running
}

// history lists every attempt a job has begun. Numbers start again at 1 when an
// operator retries a dead job.
func history(j core.Job, recorded []core.Attempt) (entries []entry) {
	next := 1
	missingUntil := func(number int) {
		for ; next < number; next++ {
			entries = append(entries, entry{number: next, going: j.Status == core.Running && next == j.Attempt})
		}
	}
	for _, r := range inOrder(recorded) {
		if r.Number < next {
			next = 1
		}
		missingUntil(r.Number)
		entries = append(entries, entry{number: r.Number, record: &r})
		next = r.Number + 1
	}
	if j.Attempt < next-1 {
		next = 1
	}
	missingUntil(attemptsBegun(j) + 1)
	return entries
}

// inOrder sorts attempts by time where their numbers do not tell the order.
// Where they do, they are believed rather than the clock.
func inOrder(attempts []core.Attempt) []core.Attempt {
	byNumber := func(a, b core.Attempt) int { return cmp.Compare(a.Number, b.Number) }
	sorted := slices.SortedStableFunc(slices.Values(attempts), byNumber)
	if len(slices.CompactFunc(slices.Clone(sorted), func(a, b core.Attempt) bool { return a.Number == b.Number })) < len(sorted) {
		slices.SortStableFunc(sorted, func(a, b core.Attempt) int { return a.StartedAt.Compare(b.StartedAt) })
	}
	return sorted
}

// Of errors and replies a table shows the beginning.
const (
	shownError    = 80
	shownResponse = 60
)

func attemptGrid(s jobStory) grid {
	g := grid{indent: "  ", heading: []string{"ATTEMPT", "STARTED", "STATUS", "DURATION", "ERROR", "RESPONSE"}}
	for _, e := range history(s.job, s.attempts) {
		number := strconv.Itoa(e.number)
		switch {
		case e.going:
			g.add(number, "-", "-", "-", "running", "-")
		case e.record == nil:
			g.add(number, "-", "-", "-", noRecord, "-")
		default:
			r := e.record
			g.add(number, moment(r.StartedAt), statusCode(r.StatusCode), span(r.Duration),
				orDash(clip(visible(r.Error), shownError)), orDash(clip(visible(r.Response), shownResponse)))
		}
	}
	return g
}

func statusCode(code int) string {
	if code == 0 {
		return "-"
	}
	return strconv.Itoa(code)
}
