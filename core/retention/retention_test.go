package retention

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	kept      = 72 * time.Hour
	keptAudit = 90 * 24 * time.Hour
)

// A shelf is an Upkeep with a number of old rows. Each call of Purge deletes up to 1,000 of
// them and lasts takes. Before the first rows, a number of calls find none but report more.
type shelf struct {
	rows  int
	looks int
	takes time.Duration
	turns []bool // the answers of the first calls of Turn; later calls return true
	fails error  // of Purge

	failsKind error // of the calls that purge one kind of records

	kinds map[string][]time.Duration // for how long each call but Purge keeps its records

	asked, purged []time.Time
	before        []time.Time
}

// PurgeOperations records its call.
func (s *shelf) PurgeOperations(_ context.Context, before time.Time) error {
	s.record("operations", before)
	return s.failsKind
}

// PurgeAudit records its call.
func (s *shelf) PurgeAudit(_ context.Context, before time.Time, _ int) (int, error) {
	s.record("audit", before)
	return 0, s.failsKind
}

// PurgeMinutes records its call.
func (s *shelf) PurgeMinutes(_ context.Context, before time.Time) error {
	s.record("minutes", before)
	return s.failsKind
}

func (s *shelf) record(kind string, before time.Time) {
	if s.kinds == nil {
		s.kinds = map[string][]time.Duration{}
	}
	s.kinds[kind] = append(s.kinds[kind], time.Since(before))
}

func (s *shelf) Turn(_ context.Context, now time.Time, _ string, hold time.Duration) (bool, error) {
	s.asked = append(s.asked, now)
	if hold >= every || hold <= longest {
		return false, errors.New("a turn is longer than a pass, and over before the next")
	}
	if len(s.turns) == 0 {
		return true, nil
	}
	mine := s.turns[0]
	s.turns = s.turns[1:]
	return mine, nil
}

func (s *shelf) Purge(ctx context.Context, before time.Time, limit int) (n int, more bool, err error) {
	s.purged, s.before = append(s.purged, time.Now()), append(s.before, before)
	time.Sleep(s.takes)
	if s.fails != nil {
		return 0, false, s.fails
	}
	if s.looks--; s.looks >= 0 {
		return 0, true, ctx.Err()
	}
	n = min(2*limit, s.rows)
	s.rows -= n
	return n, s.rows > 0, ctx.Err()
}

// A run is a Purger over a shelf, with its reported facts.
type run struct {
	*shelf
	*Purger
	began time.Time
	facts []core.Fact
}

func newRun(s *shelf) *run {
	r := &run{shelf: s, began: time.Now()}
	r.Purger = New(Deps{Upkeep: s, Clock: core.SystemClock, Observe: func(f core.Fact) { r.facts = append(r.facts, f) }}, kept, keptAudit)
	return r
}

// lasting runs a tick whose budget ends d after began.
func (r *run) lasting(t *testing.T, d time.Duration) {
	t.Helper()
	if err := r.Tick(t.Context(), core.Budget{Until: r.began.Add(d), Rest: time.Second}); err != nil {
		t.Errorf("Tick = %v, want none", err)
	}
}

func (r *run) wantFacts(t *testing.T, want ...core.Fact) {
	t.Helper()
	if !slices.Equal(r.facts, want) {
		t.Errorf("facts = %+v, want %+v", r.facts, want)
	}
}

func TestOncePerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(&shelf{rows: 2500, takes: 100 * time.Millisecond, turns: []bool{false, true}})
		r.lasting(t, 5*time.Minute)
		if first := r.asked[0].Sub(r.began); first >= soon || len(r.asked) != 5 {
			t.Errorf("asked %d times, first after %v; want 5 times, first within %v", len(r.asked), first, soon)
		}
		for i, at := range r.asked[1:] {
			if since := at.Sub(r.asked[i]); since < every || since > every+time.Second {
				t.Errorf("asked again after %v, want a minute after the time before", since)
			}
		}
		// The first pass with the turn has three batches.
		wantPurged := []time.Duration{0, 100, 200}
		for i, ms := range wantPurged {
			if at := r.purged[i].Sub(r.asked[1]); at != ms*time.Millisecond {
				t.Errorf("batch %d after %v, want %v", i, at, ms*time.Millisecond)
			}
		}
		if want := r.purged[0].Add(-kept); !r.before[0].Equal(want) {
			t.Errorf("Purge before %v, want %v", r.before[0], want)
		}
		r.wantFacts(t, core.Purged{Rows: 2500, Took: 300 * time.Millisecond})
	})
}

// A pass goes on after a batch without deletions if there are more records to look at. The
// next pass continues there.
func TestLooksOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(&shelf{rows: 1500, looks: 40, takes: 2 * time.Second})
		r.lasting(t, 2*time.Minute)
		if r.looks >= 0 || len(r.asked) != 2 {
			t.Errorf("it is to look %d times more after %d passes", r.looks, len(r.asked))
		}
		r.wantFacts(t, core.Purged{Rows: 1500, Took: 36 * time.Second})
	})
}

// A pass deletes one of the kinds that grow slowly, and every kind has its passes. Operations are
// kept as long as events, the audit for a time of its own, and counts of minutes for 25 hours.
func TestKindsThatGrowSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const passes = 200 // a kind is left out of all of them with a probability of 1e-35
		r := newRun(&shelf{rows: 10})
		for range passes {
			if err := r.Tick(t.Context(), core.Budget{}); err != nil {
				t.Errorf("Tick = %v, want none", err)
			}
		}
		calls := 0
		for kind, want := range map[string]time.Duration{"operations": kept, "audit": keptAudit, "minutes": 25 * time.Hour} {
			calls += len(r.kinds[kind])
			if kept := slices.Compact(r.kinds[kind]); !slices.Equal(kept, []time.Duration{want}) {
				t.Errorf("%s: kept for %v, want %v in each of some passes", kind, kept, want)
			}
		}
		if calls != passes {
			t.Errorf("%d passes deleted %d times one kind, want once each", passes, calls)
		}
		r.failsKind = errors.New("gone")
		if err := r.Tick(t.Context(), core.Budget{}); !errors.Is(err, r.failsKind) {
			t.Errorf("Tick = %v, want the error of the store", err)
		}
	})
}

// A pass ends after 50 seconds. The next one begins a minute after the last began, and
// continues.
func TestPassesAreBounded(t *testing.T) {
	for _, tc := range []struct {
		takes time.Duration
		rows  int // of one pass
		took  time.Duration
		after time.Duration // from the start of a pass to the start of the next
	}{
		{time.Second, 49_000, 49 * time.Second, every},
		{100 * time.Millisecond, 499_000, 49900 * time.Millisecond, every},
		{20 * time.Second, 2000, 40 * time.Second, every},
		{2 * time.Minute, 1000, 2 * time.Minute, 2*time.Minute + every - longest},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRun(&shelf{rows: 10_000_000, takes: tc.takes})
			r.lasting(t, soon+4*every)
			passes := len(r.asked)
			if passes < 2 {
				t.Fatalf("%d passes, want more", passes)
			}
			if since := r.asked[1].Sub(r.asked[0]); since != tc.after {
				t.Errorf("the second pass began %v after the first, want %v", since, tc.after)
			}
			for _, f := range r.facts[:len(r.facts)-1] {
				if want := (core.Purged{Rows: tc.rows, Took: tc.took, More: true}); f != want {
					t.Errorf("fact = %+v, want %+v", f, want)
				}
			}
		})
	}
}

func TestOnce(t *testing.T) {
	trouble := errors.New("the disk is full")
	for _, tc := range []struct {
		name  string
		shelf shelf
		until time.Duration // 0 for no Until
		end   time.Duration // 0 for no End
		err   error
		left  int
		facts []core.Fact
	}{
		{"all", shelf{rows: 1500}, 0, 0, nil, 0, []core.Fact{core.Purged{Rows: 1500}}},
		{"nothing", shelf{}, 0, 0, nil, 0, nil},
		{"not its turn", shelf{rows: 10, turns: []bool{false}}, 0, 0, nil, 10, nil},
		{"trouble", shelf{rows: 10, fails: trouble}, 0, 0, trouble, 10, nil},
		{"little time", shelf{rows: 9000, takes: time.Second}, 3 * time.Second, 0, nil, 6000, []core.Fact{core.Purged{Rows: 3000, Took: 3 * time.Second, More: true}}},
		{"until comes first", shelf{rows: 9000, takes: time.Second}, 3 * time.Second, time.Minute, nil, 6000, []core.Fact{core.Purged{Rows: 3000, Took: 3 * time.Second, More: true}}},
		{"the end comes first", shelf{rows: 9000, takes: time.Second}, time.Minute, 8 * time.Second, nil, 4000, []core.Fact{core.Purged{Rows: 5000, Took: 5 * time.Second, More: true}}},
		{"the end is near", shelf{rows: 9000, takes: time.Second}, 0, 5 * time.Second, nil, 7000, []core.Fact{core.Purged{Rows: 2000, Took: 2 * time.Second, More: true}}},
		{"the end has come", shelf{rows: 9000, turns: []bool{false}}, 0, 2 * time.Second, nil, 9000, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRun(&tc.shelf)
				b := core.Budget{}
				if tc.until > 0 {
					b.Until = time.Now().Add(tc.until)
				}
				if tc.end > 0 {
					b.End = time.Now().Add(tc.end)
				}
				if err := r.Tick(t.Context(), b); !errors.Is(err, tc.err) {
					t.Errorf("Tick = %v, want %v", err, tc.err)
				}
				if r.rows != tc.left {
					t.Errorf("%d rows are left, want %d", r.rows, tc.left)
				}
				r.wantFacts(t, tc.facts...)
				if tc.end == endGrace && len(r.asked) > 0 {
					t.Error("a turn was taken for which there is no time")
				}
			})
		})
	}
}

// Errors are reported, and the pass is tried again a minute later. Rows that were deleted
// before the error are reported too.
func TestTroubleIsStated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trouble := errors.New("the disk is full")
		r := newRun(&shelf{rows: 10, fails: trouble})
		r.lasting(t, every)
		r.fails = nil
		r.began = time.Now()
		r.lasting(t, every)
		r.wantFacts(t, core.Troubled{Doing: "purge", Err: trouble}, core.Purged{Rows: 10})
	})
}

// A tick that is stopped returns no error, and makes no more calls.
func TestEnds(t *testing.T) {
	for _, after := range []time.Duration{0, time.Millisecond, 20 * time.Second, 20*time.Second + 50*time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			r := newRun(&shelf{rows: 1_000_000, takes: 100 * time.Millisecond})
			time.AfterFunc(after, cancel)
			if err := r.Tick(ctx, core.Budget{Rest: time.Second}); err != nil {
				t.Errorf("Tick that was ended after %v = %v, want none", after, err)
			}
			if late := time.Since(r.began) - after; late > r.takes {
				t.Errorf("Tick went on for %v", late)
			}
			for _, f := range r.facts {
				if _, ok := f.(core.Purged); !ok {
					t.Errorf("fact %+v, want none of trouble", f)
				}
			}
		})
	}
}
