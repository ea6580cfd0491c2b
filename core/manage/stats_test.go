package manage

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

// census counts its calls. Tallies, Ended and Completed take some time each.
type census struct {
	asked, askedEnded   int
	askedCompleted      int
	busy, dead, done    int // running, dead and completed jobs
	takes, ends, counts time.Duration
	err                 error
	broken              string // the method that fails with err
}

func (c *census) fail(method string) error {
	if c.broken == method {
		return c.err
	}
	return nil
}

func (c *census) Tallies(ctx context.Context, _ time.Time, lanes []core.Lane) (map[core.Lane]core.Tally, error) {
	c.asked++
	if slices.ContainsFunc(lanes, func(l core.Lane) bool { return l.Source() != "" }) {
		return nil, errors.New("jobs of a source's lane were counted")
	}
	select {
	case <-time.After(c.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return map[core.Lane]core.Tally{"handler/a": {Pending: c.asked, Processing: c.busy}}, c.fail("Tallies")
}

func (c *census) Ended(_ context.Context, lanes []core.Lane) (map[core.Lane]core.Ended, error) {
	c.askedEnded++
	if slices.ContainsFunc(lanes, func(l core.Lane) bool { return l.Source() != "" }) {
		return nil, errors.New("jobs of a source's lane were counted")
	}
	<-time.After(c.ends)
	return map[core.Lane]core.Ended{"handler/a": {Dead: c.dead}, "alert/host": {Dead: 1}}, c.fail("Ended")
}

func (c *census) Due(context.Context, []core.Lane) (map[core.Lane]core.Outlook, error) {
	return map[core.Lane]core.Outlook{
		"handler/a":   {Gate: core.Gate{Failures: 5}},
		"source/shop": {Gate: core.Gate{HeldSince: noon, HeldUntil: core.NoEnd}},
	}, c.fail("Due")
}

func (c *census) Completed(context.Context) (int, error) {
	c.askedCompleted++
	<-time.After(c.counts)
	return c.done, c.fail("Completed")
}

func statistics(c *census) *Statistics {
	return NewStatistics(c, time.Now, []core.Lane{"handler/a", "queue/q", "source/shop", "source/timer"}, nil)
}

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &census{busy: 2, dead: 3, done: 9}
		lanes := []core.Lane{"handler/a", "queue/q", "alert/host", "source/shop", "source/timer"}
		s := NewStatistics(c, time.Now, lanes, core.Places{"alert/host": {Lane: "alert/1", Host: "hooks"}})
		got, err := s.Stats(t.Context())
		want := Stats{At: time.Now(), Completed: 9, Lanes: []LaneStats{
			{Lane: "handler/a", Tally: core.Tally{Pending: 1, Processing: 2}, Ended: core.Ended{Dead: 3}, Gate: core.Gate{Failures: 5}},
			{Lane: "queue/q"},
			{Lane: "alert/1", Host: "hooks", Ended: core.Ended{Dead: 1}},
		}, Sources: []SourceStats{{"shop", core.Gate{HeldSince: noon, HeldUntil: core.NoEnd}}, {Name: "timer"}}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("Stats: %v (-want +got):\n%s", err, diff)
		}
	})
}

// All jobs are counted at the same time.
func TestStatsAreCountedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		got, err := statistics(&census{takes: time.Second, ends: time.Second, counts: time.Second, done: 9}).Stats(t.Context())
		if took := time.Since(began); err != nil || got.Completed != 9 || took != time.Second {
			t.Errorf("Stats: %d completed after %v, %v, want 9 after %v", got.Completed, took, err, time.Second)
		}
	})
}

// Quiet waits for a query that outlives callers that got an older answer.
func TestStatsAreQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := statistics(&census{takes: 2 * time.Second, busy: muchCounted, ends: 3 * time.Second, dead: muchCounted})
		waits := func(what string, most, want time.Duration) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), most)
			defer cancel()
			began := time.Now()
			if s.Quiet(ctx); time.Since(began) != want {
				t.Errorf("%s: quiet after %v, want %v", what, time.Since(began), want)
			}
		}
		waits("nobody asked", time.Minute, 0)
		for _, age := range []time.Duration{0, mostLast} {
			time.Sleep(age) // until the answer is stale
			if _, err := s.Lanes(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		waits("too long", time.Second, time.Second)
		waits("until it is counted", time.Minute, 2*time.Second)
		waits("it is counted", time.Minute, 0)
	})
}

// Lanes does not wait for the count of completed jobs.
func TestLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := statistics(&census{broken: "Completed", err: errors.New("too many")})
		got, err := s.Lanes(t.Context())
		if err != nil || got.Completed != 0 || len(got.Lanes) != 2 || !got.At.Equal(time.Now()) {
			t.Errorf("Lanes: %+v, %v", got, err)
		}
	})
}

// The database gets one query a second at most, for any number of callers at once.
func TestStatsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &census{takes: 3 * time.Second}
		s := statistics(c)
		ask := func() {
			if _, err := s.Stats(t.Context()); err != nil {
				t.Error(err)
			}
		}
		for range 100 {
			go ask()
		}
		synctest.Wait()
		if c.asked != 1 {
			t.Errorf("asked %d times at once, want once", c.asked)
		}
		time.Sleep(3 * time.Second) // the answer is as of the question, and so is stale by now
		synctest.Wait()
		for i, want := range []int{2, 2, 2, 3} {
			c.takes = 0
			ask()
			if c.asked != want {
				t.Errorf("asked %d times %v later, want %d", c.asked, time.Duration(i)*400*time.Millisecond, want)
			}
			time.Sleep(400 * time.Millisecond)
		}
	})
}

// An answer that counted many jobs is used for longer, and again for longer if that took long, unless an
// operator changed something. That holds for unfinished, dead and completed jobs, each by themselves.
func TestStatsAreUsedForLonger(t *testing.T) {
	for kind, counting := range map[string]func(jobs int, took time.Duration) (c *census, asked *int){
		"unfinished": func(n int, took time.Duration) (*census, *int) {
			c := &census{busy: n, takes: took}
			return c, &c.asked
		},
		"dead": func(n int, took time.Duration) (*census, *int) {
			c := &census{dead: n, ends: took}
			return c, &c.askedEnded
		},
		"completed": func(n int, took time.Duration) (*census, *int) {
			c := &census{done: n, counts: took}
			return c, &c.askedCompleted
		},
	} {
		for _, tt := range []struct {
			jobs int
			took time.Duration
			used time.Duration
		}{
			{998, 0, time.Second}, {998, 600 * time.Millisecond, time.Second},
			{1998, 0, 1030 * time.Millisecond}, {1998, 600 * time.Millisecond, 1300 * time.Millisecond},
			{99_000, 0, 3970 * time.Millisecond}, {99_000, 20 * time.Millisecond, 10 * time.Second}, {99_000, 900 * time.Millisecond, mostLast},
			{900_000, 0, leastLast}, {900_000, 900 * time.Millisecond, mostLast},
		} {
			for _, change := range []bool{false, true} {
				c, asked := counting(tt.jobs, tt.took)
				used := tt.used
				if change {
					used = statsEvery
				}
				times := askedAt(t, c, asked, change, 0, used-1, used)
				if !slices.Equal(times, []int{1, 1, 2}) {
					t.Errorf("%d %s jobs counted in %v, change %t: asked %v times at first, just before %v and then, want 1, 1 and 2", tt.jobs, kind, tt.took, change, times, used)
				}
			}
		}
	}
}

// askedAt asks for the statistics after each of some times, and returns how often a query had been made by
// then. With change, an operator changes something after each answer.
func askedAt(t *testing.T, c *census, asked *int, change bool, after ...time.Duration) (times []int) {
	synctest.Test(t, func(t *testing.T) {
		s, began := statistics(c), time.Now()
		defer s.Quiet(t.Context())
		for _, after := range after {
			time.Sleep(time.Until(began.Add(after)))
			if _, err := s.Stats(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if change {
				s.Forget()
			}
			times = append(times, *asked)
		}
	})
	return times
}

// Callers do not wait while many dead jobs are counted again.
func TestStatsOfManyDeadJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &census{ends: 3 * time.Second, dead: muchCounted}
		s := statistics(c)
		_, used := usedFor(muchCounted)
		for i, waits := range []time.Duration{3 * time.Second, 0} {
			c.dead += i
			began := time.Now()
			got, err := s.Stats(t.Context())
			if took := time.Since(began); err != nil || got.Lanes[0].Dead != muchCounted || took != waits {
				t.Errorf("%d dead after %v, %v, want %d after %v", got.Lanes[0].Dead, took, err, muchCounted, waits)
			}
			time.Sleep(used) // until the answer is stale
		}
		s.Quiet(t.Context())
	})
}

// With many jobs, only the first caller waits for the count, and no count is older than one
// minute.
func TestStatsOfManyJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &census{takes: 3 * time.Second, busy: muchCounted - 1}
		s := statistics(c)
		ask := func(when string, waits time.Duration, want int) {
			t.Helper()
			began := time.Now()
			got, err := s.Stats(t.Context())
			if err != nil || got.Lanes[0].Pending != want || time.Since(began) != waits {
				t.Errorf("%s: the answer of question %d after %v, %v; want %d after %v", when, got.Lanes[0].Pending, time.Since(began), err, want, waits)
			}
		}
		_, used := usedFor(muchCounted)
		ask("at first", 3*time.Second, 1)
		time.Sleep(used - 3*time.Second)
		ask("out of date", 0, 1)
		ask("at once", 0, 1)
		time.Sleep(4 * time.Second)
		ask("meanwhile there is another", 0, 2)
		time.Sleep(toldFor - 4*time.Second)
		ask("that is as old as it may be", 0, 2)
		time.Sleep(2 * toldFor)
		ask("this one is too old", 3*time.Second, 4)
		time.Sleep(used - 3*time.Second)
		c.err, c.broken = errors.New("disk full"), "Due"
		ask("before it fails", 0, 4)
		time.Sleep(4 * time.Second)
		if _, err := s.Stats(t.Context()); !errors.Is(err, c.err) {
			t.Errorf("after it failed: %v, want %v", err, c.err)
		}
	})
}

// A caller that hangs up does not cancel the query for the others.
func TestStatsForWhoeverIsStillThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &census{takes: time.Second}
		s := statistics(c)
		ctx, hangUp := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { _, err := s.Stats(ctx); gone <- err }()
		synctest.Wait()
		hangUp()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("who hung up is told %v", err)
		}
		if got, err := s.Stats(t.Context()); err != nil || got.Lanes[0].Pending != 1 || c.asked != 1 {
			t.Errorf("the others: %+v, %v after %d questions", got, err, c.asked)
		}
	})
}

// All waiting callers get an error, and the next call makes a new query.
func TestStatsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &census{err: errors.New("disk full")}
		s := statistics(c)
		for _, method := range []string{"Tallies", "Due", "Ended", "Completed"} {
			c.broken = method
			if _, err := s.Stats(t.Context()); !errors.Is(err, c.err) {
				t.Errorf("Stats where %s fails = %v", method, err)
			}
			time.Sleep(statsEvery) // until the answers that succeeded are stale
			synctest.Wait()        // for the other count, which may be under way still
		}
		c.broken, c.takes = "", time.Hour
		if _, err := s.Stats(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Stats of a database that does not answer = %v", err)
		}
		c.takes = 0
		if _, err := s.Stats(t.Context()); err != nil {
			t.Errorf("Stats after all that = %v", err)
		}
	})
}

// If the clock is set back, an old count does not stay fresh.
func TestStatsAfterTheClockWasSetBack(t *testing.T) {
	now := noon
	c := &census{}
	s := NewStatistics(c, func() time.Time { return now }, nil, nil)
	for _, now = range []time.Time{noon, noon.Add(-time.Hour)} {
		if got, err := s.Stats(t.Context()); err != nil || !got.At.Equal(now) {
			t.Errorf("Stats at %v are of %v, %v", now, got.At, err)
		}
	}
}
