package store

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// The attempt that completes a job is kept in the job's own row, in the column success. The row is
// written at that moment anyway, so a job that succeeds at once needs no row of attempts. A text in
// place of columns is one value to bind, and no statement looks into it. It is the last attempt of its
// job, and is listed last, also if the clock of its process is behind.
//
// Rows of attempts have all others: attempts that failed, those with an exchange, and those whose
// reply is long.

// maxSuccessReply is how many bytes of a reply the column has. SQLite writes a row of jobs that is
// longer than 1,000 bytes into further pages.
const maxSuccessReply = 512

// keptInJob reports whether the attempt after which a job has this status is kept in the job.
func keptInJob(a *core.Attempt, s core.Status) bool {
	return s == core.Completed && a.Error == "" && a.Exchange == nil && len(a.Response) <= maxSuccessReply
}

// successOf returns the column success for such an attempt, and nil for others. It has the number, the
// status code, the duration and the start in milliseconds, and the reply.
func successOf(a *core.Attempt, s core.Status) any {
	if !keptInJob(a, s) {
		return nil
	}
	b := make([]byte, 0, 32+len(a.Response))
	for _, n := range [...]int64{int64(a.Number), int64(a.StatusCode), a.Duration.Milliseconds(), a.StartedAt.UnixMilli()} {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}
	return string(append(b, a.Response...))
}

// decodeSuccess reads the column success. A text that is not as expected counts as none: only the
// gateway writes it.
func decodeSuccess(text string) (a core.Attempt, ok bool) {
	parts := strings.SplitN(text, " ", 5)
	if len(parts) < 5 {
		return a, false
	}
	var numbers [4]int64
	for i := range numbers {
		var err error
		if numbers[i], err = strconv.ParseInt(parts[i], 10, 64); err != nil {
			return a, false
		}
	}
	return core.Attempt{
		Number:     int(numbers[0]),
		StatusCode: int(numbers[1]),
		Duration:   time.Duration(numbers[2]) * time.Millisecond,
		StartedAt:  time.UnixMilli(numbers[3]).UTC(),
		Response:   parts[4],
	}, true
}

// keptIn returns the attempt of a transition that is kept in a job, or nil. It is the last one: a run
// that became full can have the replies of two workers to one step in a transition.
func keptIn(t *core.Transition, job core.ID) (kept *core.AttemptRecord) {
	end := slices.IndexFunc(t.JobsEnd, func(j core.JobChange) bool { return j.ID == job })
	if end < 0 || !succeeds(t, job) {
		return nil
	}
	for i := range t.Attempts {
		if a := &t.Attempts[i]; a.JobID == job && keptInJob(&a.Attempt, t.JobsEnd[end].Status) {
			kept = a
		}
	}
	return kept
}

// successIn returns the column success for a job that a transition changes.
func successIn(t *core.Transition, job core.JobChange) any {
	if kept := keptIn(t, job.ID); kept != nil {
		return successOf(&kept.Attempt, job.Status)
	}
	return nil
}

// succeeds reports whether a transition makes a step succeed. That happens once, so the job of a step
// has one success at most. If a step ends otherwise, another worker's late reply can follow.
func succeeds(t *core.Transition, step core.ID) bool {
	return slices.ContainsFunc(t.Changed, func(c core.StepChange) bool {
		return c.ID == step && c.Status == core.StepSucceeded
	})
}
