package storetest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// TestBrokenArchivesFail requires that checks fail on stores that break one sentence about the
// requests of operators each. See broken_test.go.
func TestBrokenArchivesFail(t *testing.T) {
	for _, tc := range []struct {
		breaks string
		open   func(*Model) core.Store
		fails  []string
	}{
		{"Nth counts from 0", func(m *Model) core.Store { return countsFromZero{m} }, []string{saysNth}},
		{"Nth is nothing beyond the oldest", func(m *Model) core.Store { return nthOrNone{m} }, []string{saysNth}},
		{"Nth applies After", func(m *Model) core.Store { return nthBelow{m} }, []string{saysNthFilter}},
		{"Read begins above the id", func(m *Model) core.Store { return readsAbove{m} }, []string{saysRead}},
		{"Read has no bound", func(m *Model) core.Store { return readsAll{m} }, []string{saysRead + "/at most MaxRead"}},
		{"Read shows summaries", func(m *Model) core.Store { return readsSummaries{m} }, []string{saysRead}},
		{"JobsOf names all events", func(m *Model) core.Store { return jobsOfAll{m} }, []string{saysNoJobsOf}},
		{"AttemptsOf names all jobs", func(m *Model) core.Store { return attemptsOfAll{m} }, []string{saysNoAttempts}},
		{"AttemptsOf shows replies", func(m *Model) core.Store { return attemptsOfReplies{m} }, []string{saysNoReplies}},
		{"AttemptsOf shows exchanges", func(m *Model) core.Store { return attemptsOfExchanges{m} }, []string{saysNoReplies + "/exchanges"}},
		{"Attempts leaves out exchanges", func(m *Model) core.Store { return attemptsBare{m} }, []string{saysExchanges, saysExchanges + "/of steps"}},
		{"Attempts shows bodies", func(m *Model) core.Store { return attemptsWithBodies{m} }, []string{saysExchanges, saysExchanges + "/of steps"}},
		{"SentBody returns the oldest", func(m *Model) core.Store { return sentFirst{m} }, []string{saysNewestBody}},
		{"SentBody returns a part", func(m *Model) core.Store { return sentPart{m} }, []string{saysSentBody}},
		{"SentBody returns any attempt's", func(m *Model) core.Store { return sentAny{m} }, []string{saysNoBody}},
		{"Attempts lists too many", func(m *Model) core.Store { return attemptsUnbounded{m} }, []string{saysSomeAttempts}},
		{"Attempts lists the first ones again", func(m *Model) core.Store { return attemptsFromTheStart{m} }, []string{saysSomeAttempts}},
		{"AttemptsOf shows the newest first", func(m *Model) core.Store { return attemptsOfNewest{m} }, []string{saysAttemptsOf}},
		{"SourcesOf has an empty source for unknown events", func(m *Model) core.Store { return sourcesOfAll{m} }, []string{saysNoSource}},
		{"SourcesOf has one event", func(m *Model) core.Store { return sourcesOfOne{m} }, []string{saysSources}},
		{"Failures leaves out retryable jobs", func(m *Model) core.Store { return failuresDead{m} }, []string{saysFailures}},
		{"Failures has all lanes", func(m *Model) core.Store { return failuresOfAll{m} }, []string{saysFailures + "/of a lane"}},
		{"Failures ignores the times", func(m *Model) core.Store { return failuresEver{m} }, []string{saysFailures + "/of a period"}},
		{"Failures cuts a character in two", func(m *Model) core.Store { return failuresCut{m} }, []string{saysFailures + "/long errors"}},
		{"Failures has no end", func(m *Model) core.Store { return failuresEndless{m} }, []string{saysOlder, saysOlder + "/among many lanes"}},
		{"JobsOf shows the newest first", func(m *Model) core.Store { return jobsOfNewest{m} }, []string{saysJobsOf}},
		{"Finished begins later", func(m *Model) core.Store { return finishedLater{m} }, []string{saysFinished, saysFinished + "/page by page"}},
		{"Finished ignores after", func(m *Model) core.Store { return finishedAgain{m} }, []string{saysFinishedAfter}},
		{"Finished leaves out lower ids of later times", func(m *Model) core.Store { return finishedAbove{m} }, []string{saysFinishedAfter}},
		{"Completed counts dead jobs", func(m *Model) core.Store { return completesDead{m} }, []string{saysCompleted}},
		{"Replay stores again", func(m *Model) core.Store { return replaysAgain{m} }, []string{saysReplayTwice, saysReplayTwice + "/concurrently"}},
		{"Replay makes jobs due at an old time", func(m *Model) core.Store { return replaysThen{m} }, []string{saysReplayNow, saysReplay}},
		{"Replay counts all given jobs", func(m *Model) core.Store { return replaysCounted{m} }, []string{saysReplayNone}},
		{"Turn looks before it writes", func(m *Model) core.Store { return &turnsLate{Model: m} }, []string{saysTurn + "/concurrent callers"}},
		{"Turn ignores the name", func(m *Model) core.Store { return turnsOne{m} }, []string{saysTurn + "/each name by itself"}},
		{"Turn trusts a stored end however late", func(m *Model) core.Store { return turnsEver{m} }, []string{saysTurnBack}},
		{"Purge leaves gates", func(m *Model) core.Store { return purgesNoGates{m} }, []string{saysPurgeGates}},
		{"Tallies counts retryable jobs as available", func(m *Model) core.Store { return talliesAvailable{m} }, []string{saysTallies + "/after a failed attempt"}},
		{"Tallies leaves out the oldest due time", func(m *Model) core.Store { return talliesYoung{m} }, []string{saysTallies + "/oldest due time"}},
	} {
		t.Run(tc.breaks, func(t *testing.T) {
			for _, name := range tc.fails {
				c, failed := find(t, name), false
				for i := 0; i < 20 && !failed; i++ {
					failed = failure(func(t tb) { c.run(newRig(t, tc.open(NewModel(core.SystemClock)), Options{})) }) != ""
				}
				if !failed {
					t.Errorf("the check %q passes a store whose %s", name, tc.breaks)
				}
			}
		})
	}
}

// countsFromZero counts events from zero, so Nth of 1 returns the second newest.
type countsFromZero struct{ *Model }

func (s countsFromZero) Nth(ctx context.Context, f core.EventFilter, n int) (core.ID, error) {
	return s.Model.Nth(ctx, f, n+1)
}

// nthOrNone returns nothing if there are fewer than n events.
type nthOrNone struct{ *Model }

func (s nthOrNone) Nth(ctx context.Context, f core.EventFilter, n int) (core.ID, error) {
	if len(s.selected(f)) < n {
		return "", nil
	}
	return s.Model.Nth(ctx, f, n)
}

// nthBelow counts from the filter's cursor.
type nthBelow struct{ *Model }

func (s nthBelow) Nth(ctx context.Context, f core.EventFilter, n int) (core.ID, error) {
	p, err := s.Events(ctx, core.EventFilter{After: f.After, Limit: n})
	if len(p.Items) == 0 {
		return "", err
	}
	return p.Items[len(p.Items)-1].ID, err
}

// readsAbove leaves out the event with the given id.
type readsAbove struct{ *Model }

func (s readsAbove) Read(ctx context.Context, from core.ID, f core.EventFilter) (core.Page[core.Event], error) {
	return s.Model.Read(ctx, from+"!", f)
}

// readsAll returns all events of any size on one page.
type readsAll struct{ *Model }

func (s readsAll) Read(ctx context.Context, from core.ID, f core.EventFilter) (p core.Page[core.Event], err error) {
	for _, id := range s.selected(f) {
		if id >= from {
			p.Items = append(p.Items, s.events[id])
		}
	}
	return p, nil
}

// readsSummaries returns events without payloads and headers.
type readsSummaries struct{ *Model }

func (s readsSummaries) Read(ctx context.Context, from core.ID, f core.EventFilter) (core.Page[core.Event], error) {
	p, err := s.Model.Read(ctx, from, f)
	for i := range p.Items {
		p.Items[i] = summary(p.Items[i])
	}
	return p, err
}

// jobsOfAll has an entry for events without jobs.
type jobsOfAll struct{ *Model }

func (s jobsOfAll) JobsOf(ctx context.Context, events []core.ID) (map[core.ID][]core.Job, error) {
	of, err := s.Model.JobsOf(ctx, events)
	for _, id := range events {
		of[id] = append([]core.Job{}, of[id]...)
	}
	return of, err
}

// jobsOfNewest lists the jobs of an event in reverse order.
type jobsOfNewest struct{ *Model }

func (s jobsOfNewest) JobsOf(ctx context.Context, events []core.ID) (map[core.ID][]core.Job, error) {
	of, err := s.Model.JobsOf(ctx, events)
	for id, jobs := range of {
		of[id] = newest(jobs)
	}
	return of, err
}

// attemptsOfAll has an entry for jobs without attempts.
type attemptsOfAll struct{ *Model }

func (s attemptsOfAll) AttemptsOf(ctx context.Context, jobs []core.ID) (map[core.ID][]core.Attempt, error) {
	of, err := s.Model.AttemptsOf(ctx, jobs)
	for _, id := range jobs {
		of[id] = append([]core.Attempt{}, of[id]...)
	}
	return of, err
}

// attemptsOfReplies returns attempts with their responses.
type attemptsOfReplies struct{ *Model }

func (s attemptsOfReplies) AttemptsOf(ctx context.Context, jobs []core.ID) (map[core.ID][]core.Attempt, error) {
	of, err := s.Model.AttemptsOf(ctx, jobs)
	for _, attempts := range of {
		for i := range attempts {
			attempts[i].Response = "ok"
		}
	}
	return of, err
}

// attemptsOfExchanges returns attempts with their exchanges.
type attemptsOfExchanges struct{ *Model }

func (s attemptsOfExchanges) AttemptsOf(ctx context.Context, jobs []core.ID) (map[core.ID][]core.Attempt, error) {
	of, err := s.Model.AttemptsOf(ctx, jobs)
	for id := range of {
		if of[id], err = s.Model.Attempts(ctx, id, 0, core.MaxPage); err != nil {
			return nil, err
		}
	}
	return of, err
}

// attemptsBare lists attempts without their exchanges.
type attemptsBare struct{ *Model }

func (s attemptsBare) Attempts(ctx context.Context, job core.ID, skip, limit int) ([]core.Attempt, error) {
	attempts, err := s.Model.Attempts(ctx, job, skip, limit)
	for i := range attempts {
		attempts[i].Exchange = nil
	}
	return attempts, err
}

// attemptsUnbounded ignores the bounds of a listing; attemptsFromTheStart only its beginning.
type (
	attemptsUnbounded    struct{ *Model }
	attemptsFromTheStart struct{ *Model }
)

func (s attemptsUnbounded) Attempts(ctx context.Context, job core.ID, skip, _ int) ([]core.Attempt, error) {
	return s.Model.Attempts(ctx, job, skip, core.MaxPage)
}

func (s attemptsFromTheStart) Attempts(ctx context.Context, job core.ID, _, limit int) ([]core.Attempt, error) {
	return s.Model.Attempts(ctx, job, 0, limit)
}

// attemptsWithBodies lists attempts with the bodies of their exchanges.
type attemptsWithBodies struct{ *Model }

func (s attemptsWithBodies) Attempts(ctx context.Context, job core.ID, skip, limit int) ([]core.Attempt, error) {
	attempts, err := s.Model.Attempts(ctx, job, skip, limit)
	for _, a := range attempts {
		if a.Exchange != nil {
			a.Exchange.Body = s.bodies(job)[0]
		}
	}
	return attempts, err
}

// bodies returns the kept bodies of a job, oldest first, or one that is empty.
func (m *Model) bodies(job core.ID) (all []string) {
	for _, a := range m.attempts[job] {
		if a.Exchange != nil && a.Exchange.Body != "" {
			all = append(all, a.Exchange.Body)
		}
	}
	return append(all, "")
}

// sentFirst returns the body of the oldest attempt.
type sentFirst struct{ *Model }

func (s sentFirst) SentBody(_ context.Context, job core.ID, _ int) (string, error) {
	return s.bodies(job)[0], nil
}

// sentPart loses the last byte.
type sentPart struct{ *Model }

func (s sentPart) SentBody(ctx context.Context, job core.ID, number int) (string, error) {
	body, err := s.Model.SentBody(ctx, job, number)
	return body[:max(0, len(body)-1)], err
}

// sentAny returns a body for attempts that kept none.
type sentAny struct{ *Model }

func (s sentAny) SentBody(context.Context, core.ID, int) (string, error) { return "another", nil }

// attemptsOfNewest lists the attempts of a job in reverse order.
type attemptsOfNewest struct{ *Model }

func (s attemptsOfNewest) AttemptsOf(ctx context.Context, jobs []core.ID) (map[core.ID][]core.Attempt, error) {
	of, err := s.Model.AttemptsOf(ctx, jobs)
	for _, attempts := range of {
		slices.Reverse(attempts)
	}
	return of, err
}

// sourcesOfAll has an entry for events that are not stored.
type sourcesOfAll struct{ *Model }

func (s sourcesOfAll) SourcesOf(ctx context.Context, events []core.ID) (map[core.ID]string, error) {
	of, err := s.Model.SourcesOf(ctx, events)
	for _, id := range events {
		of[id] += ""
	}
	return of, err
}

// sourcesOfOne returns the source of the first event alone.
type sourcesOfOne struct{ *Model }

func (s sourcesOfOne) SourcesOf(ctx context.Context, events []core.ID) (map[core.ID]string, error) {
	return s.Model.SourcesOf(ctx, events[:min(1, len(events))])
}

// failuresDead lists dead jobs alone.
type failuresDead struct{ *Model }

func (s failuresDead) Failures(ctx context.Context, f core.FailureFilter) (core.Page[core.FailedJob], error) {
	p, err := s.Model.Failures(ctx, f)
	p.Items = filtered(p.Items, func(j core.FailedJob) bool { return j.Status == core.Dead })
	return p, err
}

// failuresOfAll ignores the lane.
type failuresOfAll struct{ *Model }

func (s failuresOfAll) Failures(ctx context.Context, f core.FailureFilter) (core.Page[core.FailedJob], error) {
	f.Lane = ""
	return s.Model.Failures(ctx, f)
}

// failuresEver ignores the times.
type failuresEver struct{ *Model }

func (s failuresEver) Failures(ctx context.Context, f core.FailureFilter) (core.Page[core.FailedJob], error) {
	f.Since, f.Until = time.Time{}, time.Time{}
	return s.Model.Failures(ctx, f)
}

// failuresCut leaves the bytes of a character that is cut in two.
type failuresCut struct{ *Model }

func (s failuresCut) Failures(ctx context.Context, f core.FailureFilter) (core.Page[core.FailedJob], error) {
	p, err := s.Model.Failures(ctx, f)
	for i, j := range p.Items {
		if len(j.Error) < core.MaxFailureText && len(s.jobs[j.ID].LastError) > core.MaxFailureText {
			p.Items[i].Error = s.jobs[j.ID].LastError[:core.MaxFailureText]
		}
	}
	return p, err
}

// failuresEndless ignores the limit.
type failuresEndless struct{ *Model }

func (s failuresEndless) Failures(ctx context.Context, f core.FailureFilter) (core.Page[core.FailedJob], error) {
	f.Limit = 0
	return s.Model.Failures(ctx, f)
}

// finishedLater leaves out jobs of exactly the given time.
type finishedLater struct{ *Model }

func (s finishedLater) Finished(ctx context.Context, since time.Time, after core.ID, limit int) (core.Page[core.Job], error) {
	return s.Model.Finished(ctx, since.Add(time.Millisecond), after, limit)
}

// finishedAgain begins each page at the start of the given time.
type finishedAgain struct{ *Model }

func (s finishedAgain) Finished(ctx context.Context, since time.Time, _ core.ID, limit int) (core.Page[core.Job], error) {
	return s.Model.Finished(ctx, since, "", limit)
}

// finishedAbove compares ids also for jobs of later times.
type finishedAbove struct{ *Model }

func (s finishedAbove) Finished(ctx context.Context, since time.Time, after core.ID, limit int) (core.Page[core.Job], error) {
	p, err := s.Model.Finished(ctx, since, "", limit)
	p.Items = filtered(p.Items, func(j core.Job) bool { return j.ID > after })
	return p, err
}

// completesDead counts every finished job.
type completesDead struct{ *Model }

func (s completesDead) Completed(context.Context) (n int, err error) {
	return s.change(func(j *core.Job) bool { return j.Status.Finished() }, func(*core.Job) {})
}

// replaysAgain gives the replayed jobs ids of its own.
type replaysAgain struct{ *Model }

func (s replaysAgain) Replay(ctx context.Context, now time.Time, arrivals ...core.Arrival) (int, error) {
	ids := core.NewIDs(core.SystemClock)
	for i := range arrivals {
		arrivals[i].Jobs = append([]core.NewJob{}, arrivals[i].Jobs...)
		for n := range arrivals[i].Jobs {
			arrivals[i].Jobs[n].ID = ids.Next()
		}
	}
	return s.Model.Replay(ctx, now, arrivals...)
}

// replaysThen makes jobs due an hour ago.
type replaysThen struct{ *Model }

func (s replaysThen) Replay(ctx context.Context, now time.Time, arrivals ...core.Arrival) (int, error) {
	return s.Model.Replay(ctx, now.Add(-time.Hour), arrivals...)
}

// replaysCounted counts jobs of unknown events as stored.
type replaysCounted struct{ *Model }

func (s replaysCounted) Replay(ctx context.Context, now time.Time, arrivals ...core.Arrival) (n int, err error) {
	_, err = s.Model.Replay(ctx, now, arrivals...)
	for _, a := range arrivals {
		n += len(a.Jobs)
	}
	return n, err
}

// turnsLate gives the turn also to the next caller after the caller that got it.
type turnsLate struct {
	*Model
	mu   sync.Mutex
	late bool
}

func (s *turnsLate) Turn(ctx context.Context, now time.Time, name string, hold time.Duration) (bool, error) {
	mine, err := s.Model.Turn(ctx, now, name, hold)
	s.mu.Lock()
	defer s.mu.Unlock()
	mine, s.late = mine || s.late, mine
	return mine, err
}

// turnsOne has one turn for all names.
type turnsOne struct{ *Model }

func (s turnsOne) Turn(ctx context.Context, now time.Time, _ string, hold time.Duration) (bool, error) {
	return s.Model.Turn(ctx, now, "", hold)
}

// turnsEver waits for the end of each turn, even if a wrong clock set that end far in the future.
type turnsEver struct{ *Model }

func (s turnsEver) Turn(ctx context.Context, now time.Time, name string, hold time.Duration) (bool, error) {
	if s.turns[name].After(now) {
		return false, nil
	}
	return s.Model.Turn(ctx, now, name, hold)
}

// purgesNoGates keeps resting gates for ever.
type purgesNoGates struct{ *Model }

func (s purgesNoGates) Purge(ctx context.Context, before time.Time, limit int) (int, bool, error) {
	gates := s.gates
	s.gates = nil
	n, more, err := s.Model.Purge(ctx, before, limit)
	s.gates = gates
	return n, more, err
}

// talliesAvailable counts no job as tried before.
type talliesAvailable struct{ *Model }

func (s talliesAvailable) Tallies(ctx context.Context, now time.Time, lanes []core.Lane) (map[core.Lane]core.Tally, error) {
	tallies, err := s.Model.Tallies(ctx, now, lanes)
	for l, t := range tallies {
		t.Retryable = 0
		tallies[l] = t
	}
	return tallies, err
}

// talliesYoung leaves out the due time of the oldest job.
type talliesYoung struct{ *Model }

func (s talliesYoung) Tallies(ctx context.Context, now time.Time, lanes []core.Lane) (map[core.Lane]core.Tally, error) {
	tallies, err := s.Model.Tallies(ctx, now, lanes)
	for l, t := range tallies {
		t.OldestDue = time.Time{}
		tallies[l] = t
	}
	return tallies, err
}
