package manage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/eventgateway/gateway/core"
)

// stream is a store of events and finished jobs that shows the rows that are visible by now.
// Events are in the order of their ids, jobs in the order in which they finished.
type stream struct {
	events  []core.Event
	jobs    []core.Job
	written map[core.ID]time.Time // when a row becomes visible; rows without an entry are visible at once
	now     time.Time
	err     map[string]error
	reads   int
	most    int // the most jobs of one call
}

func (s *stream) seen(id core.ID) bool { return !s.written[id].After(s.now) }

func (s *stream) Events(_ context.Context, f core.EventFilter) (p core.Page[core.Event], _ error) {
	for _, e := range slices.Backward(s.events) {
		if !s.seen(e.ID) || f.After != "" && e.ID >= f.After {
			continue
		}
		if p.More = len(p.Items) == f.Limit; p.More {
			break
		}
		p.Items = append(p.Items, e)
	}
	return p, s.err["Events"]
}

func (s *stream) Read(_ context.Context, from core.ID, f core.EventFilter) (p core.Page[core.Event], _ error) {
	s.reads++
	for _, e := range s.events {
		if !s.seen(e.ID) || e.ID < from {
			continue
		}
		if p.More = len(p.Items) == f.Limit; p.More {
			break
		}
		e.Payload = []byte("{}")
		p.Items = append(p.Items, e)
	}
	return p, s.err["Read"]
}

func (s *stream) JobsOf(_ context.Context, events []core.ID) (map[core.ID][]core.Job, error) {
	of := map[core.ID][]core.Job{}
	for _, j := range s.jobs {
		if s.seen(j.EventID) && slices.Contains(events, j.EventID) {
			if !s.seen(j.ID) {
				j.Status, j.FinishedAt = core.Running, time.Time{}
			}
			of[j.EventID] = append(of[j.EventID], j)
		}
	}
	loaded := 0
	for _, jobs := range of {
		loaded += len(jobs)
	}
	s.most = max(s.most, loaded)
	return of, s.err["JobsOf"]
}

func (s *stream) Finished(_ context.Context, since time.Time, after core.ID, limit int) (p core.Page[core.Job], _ error) {
	for _, j := range s.jobs {
		if !s.seen(j.ID) || j.FinishedAt.Before(since) || j.FinishedAt.Equal(since) && j.ID <= after {
			continue
		}
		if p.More = len(p.Items) == limit; p.More {
			break
		}
		p.Items = append(p.Items, j)
	}
	return p, s.err["Finished"]
}

// event adds an event that was made at the time at, and is visible from seen on.
func (s *stream) event(at, seen time.Time, n int) core.ID {
	e := core.Event{ID: core.FirstID(at)[:20] + core.ID(fmt.Sprintf("%06d", n+1)), CreatedAt: at}
	s.events = append(s.events, e)
	s.written[e.ID] = seen
	return e.ID
}

// ended adds a job that finished at the time at, and is visible from seen on.
func (s *stream) ended(event core.ID, at, seen time.Time, n int) {
	j := core.Job{ID: core.ID(fmt.Sprintf("J%07d", n)), EventID: event, Status: core.Completed, FinishedAt: at}
	s.jobs = append(s.jobs, j)
	s.written[j.ID] = seen
}

func newStream() *stream {
	return &stream{written: map[core.ID]time.Time{}, now: noon, err: map[string]error{}}
}

func (s *stream) tail() *Tail { return NewTail(s, func() time.Time { return s.now }) }

func TestATailBeginsNow(t *testing.T) {
	s := newStream()
	s.ended(s.event(noon.Add(-time.Second), noon, 1), noon.Add(-time.Second), noon, 1)
	got, err := s.tail().Look(t.Context(), Cursor{}, nil)
	want := News{Next: Cursor{Event: core.FirstID(noon), Finished: noon}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Look: %v (-want +got):\n%s", err, diff)
	}
	got, err = s.tail().Look(t.Context(), Cursor{Event: core.FirstID(noon.Add(-time.Minute))}, nil)
	if err != nil || len(got.Events) != 1 || len(got.Jobs) != 1 || !got.Next.Finished.Equal(noon) {
		t.Errorf("Look from an event on = %+v, %v", got, err)
	}
	got, err = s.tail().Look(t.Context(), Cursor{Finished: noon.Add(-time.Minute)}, nil)
	if err != nil || len(got.Events) != 0 || len(got.Jobs) != 1 || got.Next.Event != core.FirstID(noon) {
		t.Errorf("Look from a time on = %+v, %v", got, err)
	}
}

// A job that is both a job of a new event and a finished job is in the news once.
func TestJobsAreToldOnce(t *testing.T) {
	s := newStream()
	s.ended(s.event(noon, noon, 1), noon, noon, 1)
	s.ended("an old one", noon, noon, 2)
	got, err := s.tail().Look(t.Context(), Cursor{Event: core.FirstID(noon.Add(-time.Minute)), Finished: noon.Add(-time.Minute)}, nil)
	if err != nil || len(got.Jobs) != 2 || got.Jobs[0].ID != "J0000001" || got.Jobs[1].ID != "J0000002" {
		t.Errorf("Look = %+v, %v", got.Jobs, err)
	}
}

// With any times of commits and looks, no row is missed that is visible within lateMost, and
// no look exceeds its bounds.
func TestNothingIsMissed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStream()
		at := noon
		for n := range rapid.IntRange(0, 60).Draw(t, "events") {
			at = at.Add(time.Duration(rapid.IntRange(0, 900).Draw(t, "pause")) * time.Millisecond)
			late := time.Duration(rapid.IntRange(0, int(lateMost/time.Millisecond)).Draw(t, "late")) * time.Millisecond
			id := s.event(at, at.Add(late), n)
			s.ended(id, at.Add(late), at.Add(late+time.Duration(rapid.IntRange(0, 5000).Draw(t, "settled"))*time.Millisecond), n)
		}
		slices.SortStableFunc(s.jobs, func(a, b core.Job) int { return a.FinishedAt.Compare(b.FinishedAt) })
		watch(t, s, at.Add(3*lateMost), func() time.Duration {
			return time.Duration(rapid.IntRange(1, 4000).Draw(t, "rest")) * time.Millisecond
		})
	})
}

// watch looks again and again until a time, and checks that all rows were in the news.
func watch(t interface{ Fatalf(string, ...any) }, s *stream, until time.Time, rest func() time.Duration) {
	events, over := map[core.ID]bool{}, map[core.ID]bool{}
	cursor := Cursor{Event: core.FirstID(s.now), Finished: s.now}
	for more := false; s.now.Before(until) || more; {
		news, err := s.tail().Look(context.Background(), cursor, nil)
		if err != nil || len(news.Events) > core.MaxPage || !slices.IsSortedFunc(news.Events, func(a, b core.Event) int { return compareID(a.ID, b.ID) }) {
			t.Fatalf("Look = %d events, %v; want at most %d, in order", len(news.Events), err, core.MaxPage)
		}
		for _, e := range news.Events {
			if events[e.ID] = true; e.Payload != nil {
				t.Fatalf("event %s is told with its payload", e.ID)
			}
		}
		for _, j := range news.Jobs {
			over[j.ID] = over[j.ID] || j.Status == core.Completed
		}
		if news.Next.Event < cursor.Event || news.Next.Finished.Before(cursor.Finished) || news.More && news.Next == cursor {
			t.Fatalf("from %v to %v, more %v: it goes back, or round in circles", cursor, news.Next, news.More)
		}
		cursor = news.Next
		if more = news.More; !more {
			s.now = s.now.Add(rest())
		}
	}
	if len(events) != len(s.events) {
		t.Fatalf("%d events were told of %d", len(events), len(s.events))
	}
	for _, j := range s.jobs {
		if !over[j.ID] {
			t.Fatalf("that job %s, over at %v, seen at %v, is over was not told", j.ID, j.FinishedAt, s.written[j.ID])
		}
	}
}

func compareID(a, b core.ID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// A burst of events is shown completely, page by page, and so is a burst that goes on.
func TestStorms(t *testing.T) {
	for name, every := range map[string]time.Duration{"at once": 0, "for a while": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			s := newStream()
			at := noon
			for n := range 7_500 {
				at = at.Add(every)
				s.ended(s.event(at, at, n), at.Add(time.Millisecond), at.Add(time.Millisecond), n)
			}
			watch(t, s, at.Add(3*lateMost), func() time.Duration { return time.Second })
			if s.reads == 0 {
				t.Error("nothing was read from the oldest on, though there was more than a page")
			}
		})
	}
}

// A look usually reads few rows.
func TestALookAtLittle(t *testing.T) {
	s := newStream()
	for n := range 5000 {
		s.event(noon.Add(-time.Hour), noon, n)
	}
	s.event(noon.Add(-time.Second), noon, 5000)
	got, err := s.tail().Look(t.Context(), Cursor{Event: core.FirstID(noon.Add(-time.Minute)), Finished: noon}, nil)
	if err != nil || len(got.Events) != 1 || s.reads != 0 || got.More {
		t.Errorf("Look = %d events, %v after %d reads; want one after none", len(got.Events), err, s.reads)
	}
}

func TestTailOfAStoreThatFails(t *testing.T) {
	for _, method := range []string{"Events", "Read", "JobsOf", "Finished"} {
		s := newStream()
		for n := range 2000 {
			s.event(noon.Add(-time.Second), noon, n)
		}
		s.err[method] = errors.New("disk full")
		_, err := s.tail().Look(t.Context(), Cursor{Event: core.FirstID(noon.Add(-time.Minute)), Finished: noon}, nil)
		if !errors.Is(err, s.err[method]) {
			t.Errorf("Look where %s fails = %v", method, err)
		}
	}
}

// crowd makes a stream of events one second apart, each with the same number of jobs. All
// jobs but every third have finished.
func crowd(events, jobs int) *stream {
	s := newStream()
	for n := range events {
		at := noon.Add(time.Duration(n) * time.Second)
		id := s.event(at, at, n)
		for i := range jobs {
			s.ended(id, at, at, n*jobs+i)
			if j := &s.jobs[len(s.jobs)-1]; i%3 == 0 {
				j.Status, j.FinishedAt = core.Retryable, time.Time{}
			}
		}
	}
	s.now = noon.Add(time.Hour)
	return s
}

// A look stays small however many jobs the events have, and the next look continues after it.
func TestEventsOfManyJobs(t *testing.T) {
	for _, c := range []struct{ events, jobs, each int }{{30, 900, 900}, {7, 4000, jobsEach}, {1, 12_000, jobsEach}, {300, 1, 1}} {
		s := crowd(c.events, c.jobs)
		cursor, events, jobs := Cursor{Event: core.FirstID(noon), Finished: s.now}, map[core.ID]bool{}, map[core.ID]bool{}
		for more := true; more; {
			news, err := s.tail().Look(t.Context(), cursor, nil)
			if err != nil || len(news.Jobs) >= manyJobs+jobsEach || s.most > max(manyJobs, fewEvents*c.jobs) {
				t.Fatalf("%+v: a look = %d jobs of %d, %v", c, len(news.Jobs), s.most, err)
			}
			for _, e := range news.Events {
				events[e.ID] = true
			}
			for _, j := range news.Jobs {
				jobs[j.ID] = true
			}
			cursor, more = news.Next, news.More
		}
		if len(events) != c.events || len(jobs) != c.events*c.each {
			t.Errorf("%+v: reported %d events and %d jobs", c, len(events), len(jobs))
		}
	}
}

// More jobs may finish at the same time than one look returns.
func TestManyFinishAtOnce(t *testing.T) {
	s := newStream()
	for n := range 3*core.MaxPage + 7 {
		s.ended("an old one", noon, noon, n)
	}
	watch(t, s, noon.Add(3*lateMost), func() time.Duration { return time.Second })
}

// Looks return the unfinished jobs of followed events, as far as the bounds of a look allow.
func TestFollowedEvents(t *testing.T) {
	for _, c := range []struct{ events, jobs, followed, told int }{{4, 3, 4, 4}, {150, 1, 100, 100}, {12, 1200, 10, 4000}} {
		s := crowd(c.events, c.jobs)
		ids := idsOf(s.events)
		news, err := s.tail().Look(t.Context(), Cursor{Event: core.FirstID(s.now), Finished: s.now}, ids)
		if err != nil || news.Followed != c.followed || len(news.Jobs) != c.told || len(news.Events) != 0 {
			t.Errorf("%+v: %d events are followed, and %d jobs reported, %v", c, news.Followed, len(news.Jobs), err)
		}
		for _, j := range news.Jobs {
			if j.Status.Finished() {
				t.Fatalf("%+v: job %s is told, which is %s", c, j.ID, j.Status)
			}
		}
	}
}
