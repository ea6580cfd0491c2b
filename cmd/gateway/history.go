package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/order"
)

// Remarks for attempts without a record.
const (
	underWay = "running"
	acked    = "acked"
	noWord   = "neither acked nor nacked in time"
	noRecord = "no record: the process ended or the lease ran out"
)

// An entry is a line of a job's history. It is one recorded attempt, or a range of attempts
// without a record and a remark about them.
type entry struct {
	number, last int
	record       *core.Attempt
	remark       string
}

// history lists every attempt that a job has begun. The numbers continue after an operator
// retries a dead job. If an older gateway retried the job, they started again at 1.
func history(j core.Job, recorded []core.Attempt) (entries []entry) {
	if j.Lane.Workflow() != "" {
		return calls(j, recorded)
	}
	next := 1
	// The numbers before a record that no record has are attempts that ended without one: their
	// worker vanished.
	missingUntil := func(number int) {
		entries = append(entries, missing(j, next, number-1)...)
		next = number
	}
	for _, r := range inOrder(recorded) {
		// An older gateway counted from 1 again after a retry by an operator.
		if r.Number < next {
			next = 1
		}
		missingUntil(r.Number)
		entries = append(entries, entry{number: r.Number, last: r.Number, record: &r})
		next = r.Number + 1
	}
	if j.Number() < next-1 {
		next = 1
	}
	missingUntil(max(next, j.Number()+1))
	return entries
}

// calls lists the calls of a step whose outcome is known, and the call under way. The missing
// numbers belong to calls without an outcome, and to times at which a worker took the job and
// had nothing to call.
func calls(j core.Job, recorded []core.Attempt) (entries []entry) {
	next := 1
	for _, r := range inOrder(recorded) {
		entries = append(entries, entry{number: r.Number, last: r.Number, record: &r})
		next = r.Number + 1
	}
	if j.Status == core.Running {
		next = max(next, j.Number())
		entries = append(entries, entry{number: next, last: next, remark: underWay})
	}
	return entries
}

// missing returns entries for the attempts from first to last, which have no record. The job's
// newest attempt may be under way. A message's newest attempt may have been acked, which
// leaves no record.
func missing(j core.Job, first, last int) (entries []entry) {
	ended, newest := noRecord, ""
	if j.Lane.Queue() != "" {
		ended = noWord
	}
	switch {
	case last < first || last != j.Number() || j.Spent():
	case j.Status == core.Running:
		newest = underWay
	case j.Status == core.Completed && j.Lane.Queue() != "":
		newest = acked
	}
	if newest != "" {
		last--
	}
	if first <= last {
		entries = append(entries, entry{number: first, last: last, remark: ended})
	}
	if newest != "" {
		entries = append(entries, entry{number: last + 1, last: last + 1, remark: newest})
	}
	return entries
}

// inOrder sorts attempts by number, and by time if several have the same number. Numbers count
// more than times, since clocks may differ.
func inOrder(attempts []core.Attempt) []core.Attempt {
	byNumber := func(a, b core.Attempt) int { return cmp.Compare(a.Number, b.Number) }
	sorted := slices.Clone(attempts)
	order.Stable(sorted, byNumber)
	if len(slices.CompactFunc(slices.Clone(sorted), func(a, b core.Attempt) bool { return a.Number == b.Number })) < len(sorted) {
		order.Stable(sorted, func(a, b core.Attempt) int { return a.StartedAt.Compare(b.StartedAt) })
	}
	return sorted
}

// A table shows this many characters of errors and of responses.
const (
	shownError    = 80
	shownResponse = 60
)

// attemptGrid returns the table of a job's attempts. Responses are clipped more than errors: a
// response is often a page of HTML.
func attemptGrid(s jobStory) terminal.Grid {
	g := terminal.Grid{Indent: "  ", Heading: []string{"ATTEMPT", "STARTED", "STATUS", "DURATION", "ERROR", "RESPONSE"}}
	for _, e := range history(s.job, s.attempts) {
		if e.record == nil {
			g.Add(e.numbers(), "-", "-", "-", e.remark, "-")
			continue
		}
		r := e.record
		g.Add(e.numbers(), moment(r.StartedAt), statusCode(r.StatusCode), terminal.Span(r.Duration),
			terminal.OrDash(terminal.Clip(terminal.Visible(r.Error), shownError)), terminal.OrDash(terminal.Clip(terminal.Visible(r.Response), shownResponse)))
	}
	return g
}

// numbers returns the number of an attempt, or the range of several.
func (e entry) numbers() string {
	if e.number == e.last {
		return strconv.Itoa(e.number)
	}
	return fmt.Sprintf("%d-%d", e.number, e.last)
}

// statusCode writes a status of HTTP or gRPC; 0 means that there was no answer.
func statusCode(code int) string {
	if code == 0 {
		return "-"
	}
	return strconv.Itoa(code)
}
