package series

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

// A shelf is a store that keeps rows by their keys, with the highest counts.
type shelf struct {
	mu     sync.Mutex
	rows   map[string]core.Counts // by minute, lane and process
	calls  []time.Time
	most   int // rows of a call
	fails  error
	during func()                    // is called while counts are stored
	events map[string]map[string]int // by minute and source
	asked  []string
}

// fail makes later calls fail; nil makes them succeed.
func (s *shelf) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = err
}

func (s *shelf) CountMinutes(_ context.Context, process core.ID, counts []core.LaneCounts) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.most = append(s.calls, time.Now()), max(s.most, len(counts))
	if s.during != nil {
		s.during()
	}
	if s.fails != nil {
		return s.fails
	}
	if s.rows == nil {
		s.rows = map[string]core.Counts{}
	}
	for _, c := range counts {
		s.rows[fmt.Sprintf("%s %s %s", c.At.UTC().Format("15:04:05"), c.Lane, process)] = c.Counts
	}
	return nil
}

func (s *shelf) Received(_ context.Context, from, until time.Time, sources []string) (map[string]int, error) {
	if until.Sub(from) != time.Minute {
		return nil, errors.New("not a minute")
	}
	s.asked = append(s.asked, from.UTC().Format("15:04"))
	counts := maps.Clone(s.events[from.UTC().Format("15:04")])
	maps.DeleteFunc(counts, func(name string, _ int) bool { return !slices.Contains(sources, name) })
	return counts, s.fails
}

func (s *shelf) want(t *testing.T, want map[string]core.Counts) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff(want, s.rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// settled is the end of an attempt in a lane.
func settledIn(lane core.Lane, status core.Status) core.Fact {
	return core.Settled{Job: core.Job{Lane: lane}, Outcome: core.Outcome{Status: status}}
}

func TestFacts(t *testing.T) {
	accepted := func(source string) core.Fact { return core.Accepted{Event: core.Event{Source: source}} }
	run := func(s core.RunStatus) core.Fact { return core.RunMoved{Run: core.Run{Workflow: "w", Status: s}} }
	step := func(err string) core.Fact {
		return core.StepMoved{Run: core.Run{Workflow: "w"}, Attempt: core.Attempt{Number: 1, Error: err}}
	}
	pulled := func(a core.PullAction) core.Fact { return core.Pulled{Queue: "q", Action: a, Messages: 3} }
	for _, test := range []struct {
		facts []core.Fact
		lane  core.Lane
		want  core.Counts
	}{
		{[]core.Fact{accepted("shop"), accepted("shop")}, "source/shop", core.Counts{Accepted: 2}},
		{[]core.Fact{settledIn("handler/h", core.Completed)}, "handler/h", core.Counts{Completed: 1}},
		{[]core.Fact{settledIn("handler/h", core.Retryable), settledIn("handler/h", core.Dead)}, "handler/h", core.Counts{Failed: 2, Dead: 1}},
		{[]core.Fact{pulled(core.MessagesAcked), pulled(core.MessagesRetried), settledIn("queue/q", core.Dead)}, "queue/q",
			core.Counts{Completed: 3, Failed: 4, Dead: 1}},
		{[]core.Fact{run(core.RunRunning), step(""), step("status: 500"), run(core.RunFailed), run(core.RunCompleted)}, "workflow/w",
			core.Counts{Completed: 1, Failed: 1, Dead: 1}},
		// Facts about no consumer, and facts that repeat another one.
		{[]core.Fact{accepted(core.AlertSource), core.Repeated{Source: "shop"}, core.Unverified{Source: "shop"}, settledIn("alert/3f", core.Dead),
			settledIn(core.OperationLane, core.Completed), settledIn("workflow/w", core.Completed), pulled(core.MessagesReceived), pulled(core.MessagesDead),
			pulled(core.MessagesReturned), run(core.RunCanceled)}, "", core.Counts{}},
	} {
		c := New(core.SystemClock)
		for _, f := range test.facts {
			c.Observe(f)
		}
		var want []core.LaneCounts
		if test.lane != "" {
			want = []core.LaneCounts{{Lane: test.lane, Counts: test.want}}
		}
		got := c.Unwritten()
		for i := range got {
			got[i].At = time.Time{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("counts of %v (-want +got):\n%s", test.facts, diff)
		}
	}
}

// A rig has a Counter with a Writer that runs. In a bubble of synctest the time begins at midnight.
type rig struct {
	*shelf
	*Counter
	*Writer
	facts []core.Fact
	stop  func()
}

func begin(t *testing.T) *rig {
	r := &rig{shelf: &shelf{}, Counter: New(core.SystemClock)}
	r.Writer = NewWriter(Deps{Store: r.shelf, Clock: core.SystemClock, Process: "P", Observe: func(f core.Fact) { r.facts = append(r.facts, f) }}, r.Counter)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	r.stop = func() { cancel(); <-done }
	return r
}

func TestMinutesAreWrittenWhenTheyAreOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t)
		complete := func() { r.Counter.Observe(settledIn("handler/h", core.Completed)) }
		complete()
		time.Sleep(59 * time.Second)
		complete()
		r.want(t, nil)
		time.Sleep(10 * time.Second)
		complete()
		r.want(t, map[string]core.Counts{"00:00:00 handler/h P": {Completed: 2}})
		if got := r.Unwritten(); len(got) != 1 || got[0].Completed != 1 {
			t.Errorf("Unwritten = %v, want what the present minute has", got)
		}
		time.Sleep(5 * time.Minute) // nothing is counted in most of these minutes
		r.want(t, map[string]core.Counts{"00:00:00 handler/h P": {Completed: 2}, "00:01:00 handler/h P": {Completed: 1}})
		synctest.Wait()
		if len(r.calls) != 2 || len(r.minutes) != 0 {
			t.Errorf("%d calls of the store and %d minutes in memory, want 2 and 0", len(r.calls), len(r.minutes))
		}
		// The end of the process writes the present minute.
		complete()
		r.stop()
		r.want(t, map[string]core.Counts{"00:00:00 handler/h P": {Completed: 2}, "00:01:00 handler/h P": {Completed: 1}})
		if err := r.WriteAll(t.Context()); err != nil {
			t.Errorf("WriteAll = %v, want none", err)
		}
		r.want(t, map[string]core.Counts{"00:00:00 handler/h P": {Completed: 2}, "00:01:00 handler/h P": {Completed: 1}, "00:06:00 handler/h P": {Completed: 1}})
	})
}

// A function writes a minute in several invocations. Each row has all that was counted.
func TestAMinuteIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t)
		r.stop()
		for n := range 3 {
			r.Counter.Observe(settledIn("handler/h", core.Completed))
			if err := r.WriteAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.want(t, map[string]core.Counts{"00:00:00 handler/h P": {Completed: n + 1}})
			if got := r.Unwritten(); len(got) != 0 {
				t.Errorf("Unwritten = %v, want none", got)
			}
		}
		if err := r.WriteAll(t.Context()); err != nil || len(r.calls) != 3 {
			t.Errorf("%d calls of the store, %v; want 3, since the last had nothing to write", len(r.calls), err)
		}
	})
}

// WriteFinished leaves the present minute alone.
func TestFinishedMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t)
		r.stop()
		for range 3 {
			r.Counter.Observe(settledIn("handler/h", core.Completed))
			for range 2 {
				if err := r.WriteFinished(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(40 * time.Second)
		}
		r.want(t, map[string]core.Counts{"00:00:00 handler/h P": {Completed: 2}})
		if len(r.calls) != 1 {
			t.Errorf("%d calls of the store, want 1", len(r.calls))
		}
	})
}

// A fact that comes while its minute is being stored is not forgotten with the minute.
func TestCountsWhileTheyAreStored(t *testing.T) {
	at := time.Date(2000, 1, 1, 0, 0, 30, 0, time.UTC)
	c, s := New(func() time.Time { return at }), &shelf{}
	w := NewWriter(Deps{Store: s, Clock: func() time.Time { return at.Add(time.Minute) }, Process: "P"}, c)
	c.Observe(settledIn("handler/h", core.Completed))
	s.during = func() { c.Observe(settledIn("handler/h", core.Completed)) }
	if err := w.WriteFinished(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.during = nil
	if err := w.WriteFinished(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.want(t, map[string]core.Counts{"00:00:00 handler/h P": {Completed: 2}})
}

func TestTroubleLosesNothingForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t)
		away := errors.New("away")
		r.fail(away)
		for range 70 {
			for _, lane := range []core.Lane{"handler/a", "handler/b", "handler/c", "handler/d", "handler/e", "handler/f", "handler/g", "handler/h", "handler/i"} {
				r.Counter.Observe(settledIn(lane, core.Completed))
			}
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if want := (core.Troubled{Doing: "count minutes", Err: away}); len(r.facts) < 69 || r.facts[0] != want {
			t.Errorf("%d facts, first %v; want one each minute, %v", len(r.facts), r.facts[:1], want)
		}
		r.fail(nil)
		time.Sleep(time.Minute)
		r.stop()
		if len(r.rows) != 60*9 || r.most != maxRows {
			t.Errorf("%d rows, at most %d in a call; want those of the last 60 minutes, at most %d", len(r.rows), r.most, maxRows)
		}
		if len(r.minutes) != 0 {
			t.Errorf("%d minutes are in memory, want none", len(r.minutes))
		}
	})
}

func TestNilCounter(t *testing.T) {
	var c *Counter
	c.Observe(settledIn("handler/h", core.Completed))
	if got := c.Unwritten(); got != nil {
		t.Errorf("Unwritten = %v, want none", got)
	}
}

func TestCountersCountAllOfManyCallers(t *testing.T) {
	c, s := New(core.SystemClock), &shelf{}
	w := NewWriter(Deps{Store: s, Clock: core.SystemClock, Process: "P"}, c)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 1000 {
				c.Observe(settledIn("handler/h", core.Completed))
				if i == 0 {
					_ = w.WriteAll(context.Background())
				}
			}
		})
	}
	all.Wait()
	if err := w.WriteAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range s.rows {
		n += c.Completed
	}
	if n != 8000 {
		t.Errorf("%d were counted, want 8000", n)
	}
}

func TestCensus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		s := &shelf{events: map[string]map[string]int{"00:54": {"shop": 9}, "00:57": {"shop": 2, "crm": 1, "gone": 4}, "00:59": {"shop": 5}, "01:00": {"crm": 3}}}
		c := NewCensus(s, core.SystemClock, []string{"shop", "crm"})
		tick := func() {
			t.Helper()
			if err := c.Tick(t.Context()); err != nil && s.fails == nil {
				t.Errorf("Tick = %v, want none", err)
			}
		}
		// A minute is counted when it has been over for 15 seconds.
		time.Sleep(14 * time.Second)
		tick()
		s.want(t, map[string]core.Counts{"00:54:00 source/shop ": {Accepted: 9}, "00:57:00 source/shop ": {Accepted: 2}, "00:57:00 source/crm ": {Accepted: 1}})
		time.Sleep(time.Second)
		s.asked, s.rows = nil, nil
		tick()
		tick()
		if want := []string{"00:59"}; !slices.Equal(s.asked, want) {
			t.Errorf("asked for %v, want %v, once", s.asked, want)
		}
		// A minute that could not be counted is counted later, unless it is too old.
		time.Sleep(time.Minute)
		s.fails = errors.New("away")
		tick()
		s.fails, s.asked = nil, nil
		time.Sleep(10 * time.Second)
		tick()
		s.want(t, map[string]core.Counts{"00:59:00 source/shop ": {Accepted: 5}, "01:00:00 source/crm ": {Accepted: 3}})
		time.Sleep(20 * time.Minute)
		s.asked = nil
		tick()
		if want := []string{"01:16", "01:17", "01:18", "01:19", "01:20"}; !slices.Equal(s.asked, want) {
			t.Errorf("asked for %v after 20 minutes, want %v", s.asked, want)
		}
	})
}

// BenchmarkObserve counts the end of an attempt, as each delivery does.
func BenchmarkObserve(b *testing.B) {
	c := New(core.SystemClock)
	f := settledIn("handler/billing", core.Completed)
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Observe(f)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				c.Observe(f)
			}
		})
	})
}
