package alert

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A memory is a HealthStore without a database. It fails after a number of calls, if left is set.
// Its methods may be called concurrently.
type memory struct {
	box
	one    sync.Mutex // held by each call
	gates  map[core.Lane]core.Gate
	due    map[core.Lane]time.Time
	holds  []core.Hold
	newest map[string]core.ID
	marks  map[string]core.Mark
	turn   time.Time

	left int // calls until it fails; 0 for never
}

var errDown = errors.New("the database is down")

func newMemory() *memory {
	return &memory{gates: map[core.Lane]core.Gate{}, due: map[core.Lane]time.Time{}, newest: map[string]core.ID{}, marks: map[string]core.Mark{}}
}

// fails counts a call.
func (w *memory) fails() error {
	if w.left == 1 {
		return errDown
	}
	w.left = max(w.left-1, 0)
	return nil
}

func (w *memory) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	w.one.Lock()
	defer w.one.Unlock()
	if err := w.fails(); err != nil {
		return core.Receipt{}, err
	}
	return w.box.Accept(ctx, a)
}

func (w *memory) Due(_ context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error) {
	w.one.Lock()
	defer w.one.Unlock()
	all := map[core.Lane]core.Outlook{}
	for _, l := range lanes {
		if o := (core.Outlook{DueAt: w.due[l], Gate: w.gates[l]}); o != (core.Outlook{}) {
			all[l] = o
		}
	}
	return all, w.fails()
}

func (w *memory) Holding(_ context.Context, now time.Time) ([]core.Hold, error) {
	w.one.Lock()
	defer w.one.Unlock()
	return slices.DeleteFunc(slices.Clone(w.holds), func(h core.Hold) bool { return !h.Until.IsZero() && !h.Until.After(now) }), w.fails()
}

func (w *memory) Nth(_ context.Context, f core.EventFilter, _ int) (core.ID, error) {
	w.one.Lock()
	defer w.one.Unlock()
	return w.newest[f.Source], w.fails()
}

func (w *memory) Marks(_ context.Context, names []string) (map[string]core.Mark, error) {
	w.one.Lock()
	defer w.one.Unlock()
	some := map[string]core.Mark{}
	for _, name := range names {
		if m, ok := w.marks[name]; ok {
			some[name] = m
		}
	}
	return some, w.fails()
}

func (w *memory) Mark(_ context.Context, marks ...core.Mark) error {
	w.one.Lock()
	defer w.one.Unlock()
	if err := w.fails(); err != nil {
		return err
	}
	for _, m := range marks {
		m.Until = time.UnixMilli(m.Until.UnixMilli()).UTC()
		if old := w.marks[m.Source]; old.Schedule != m.Schedule || m.Until.After(old.Until) {
			w.marks[m.Source] = m
		}
	}
	return nil
}

func (w *memory) Turn(_ context.Context, now time.Time, name string, hold time.Duration) (bool, error) {
	w.one.Lock()
	defer w.one.Unlock()
	if name != "health" || hold >= time.Minute {
		return false, errors.New("a turn is called health and is over within a minute")
	}
	if mine := !now.Before(w.turn); mine {
		w.turn = now.Add(hold)
		return true, w.fails()
	}
	return false, w.fails()
}

// A team is a store for several Health, at a time that the test sets.
type team struct {
	*memory
	now   time.Time
	ids   *core.IDs
	shown int // alerts that news has returned
	facts seen
}

func newTeam() *team {
	s := &team{memory: newMemory(), now: time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)}
	s.ids = core.NewIDs(func() time.Time { return s.now })
	return s
}

const billing = core.Lane("handler/billing")

// process returns the Health of another process with these places.
func (s *team) process(places ...Place) *Health {
	return NewHealth(HealthDeps{Store: s.memory, IDs: s.ids, Clock: func() time.Time { return s.now }, Observe: s.facts.observe, MaxAttempts: 3,
		Places: places, Lanes: []core.Lane{billing, "queue/mail", "workflow/ship"}})
}

// round has a process make a round, and fails the test on an error.
func (s *team) round(t testing.TB, h *Health) {
	t.Helper()
	if err := h.Tick(t.Context(), core.Budget{}); err != nil {
		t.Fatalf("Tick = %v, want no error", err)
	}
}

// news returns the alerts since the last call, each as its kind and the times and numbers that
// belong to it.
func (s *team) news(t testing.TB) (all []notice) {
	t.Helper()
	for _, a := range s.taken[s.shown:] {
		var n notice
		if err := json.Unmarshal(a.Event.Payload, &n); err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	s.shown = len(s.taken)
	return all
}

// wantNews fails unless the alerts since the last call are these. Messages are compared only
// if they are given.
func (s *team) wantNews(t testing.TB, when string, want ...notice) {
	t.Helper()
	got := s.news(t)
	for i := range got {
		if got[i].CreatedAt != core.FormatTime(s.now) && (i >= len(want) || want[i].CreatedAt == "") {
			t.Errorf("%s: the alert was made at %s, want %s", when, got[i].CreatedAt, core.FormatTime(s.now))
		}
		if got[i].CreatedAt = ""; i < len(want) && want[i].Message == "" {
			got[i].Message = ""
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: alerts (-want +got):\n%s", when, diff)
	}
}

// open opens the breaker of billing now.
func (s *team) open() {
	g := s.gates[billing]
	g.Failures, g.OpenUntil, g.OpenedAt, g.Openings = 5, s.now.Add(time.Minute), s.now, g.Openings+1
	s.gates[billing] = g
}

// close closes the breaker of billing now.
func (s *team) close() {
	g := s.gates[billing]
	g.Failures, g.OpenUntil, g.ClosedAt = 0, time.Time{}, s.now
	s.gates[billing] = g
}

func at(s *team) string { return core.FormatTime(s.now) }

var breakers = Place{Lane: "alert/a", On: []Kind{CircuitOpened, CircuitClosed}, Health: Thresholds{Interval: 10 * time.Minute}}

// TestBreakerIsTold: the process in which a breaker moves alerts at once, with all that an
// operator needs.
func TestBreakerIsTold(t *testing.T) {
	s := newTeam()
	h := s.process(breakers)
	s.round(t, h)
	s.wantNews(t, "before")
	s.open()
	opened := at(s)
	h.Noticed(core.BreakerMoved{Lane: billing})
	if stored := h.Flush(t.Context()); !stored {
		t.Error("Flush = false, want true")
	}
	s.wantNews(t, "opened", notice{Alert: CircuitOpened, Handler: "billing", Since: opened,
		Message: `The circuit breaker of handler "billing" opened after 5 failures in a row. Deliveries wait until a probe succeeds. To close it now: gateway breaker reset billing`})
	s.now = s.now.Add(90 * time.Second)
	s.close()
	h.Noticed(core.BreakerMoved{Lane: billing})
	h.Noticed(core.BreakerMoved{Lane: "handler/gone"})
	h.Flush(t.Context())
	s.wantNews(t, "closed", notice{Alert: CircuitClosed, Handler: "billing", Since: opened,
		Message: `The circuit breaker of handler "billing" closed, and deliveries go on. It was open for 1m30s`})
	if stored := h.Flush(t.Context()); stored {
		t.Error("Flush without a move = true, want false")
	}
	s.now = s.now.Add(time.Hour)
	s.round(t, h)
	s.wantNews(t, "an hour later")
}

// TestHealthAlertIsAnEvent: with a job for each place that wants it, once for a place, and with
// a fact.
func TestHealthAlertIsAnEvent(t *testing.T) {
	s := newTeam()
	only := breakers
	only.Lane, only.On = "alert/b", []Kind{CircuitOpened}
	h := s.process(breakers, only, Place{Lane: "alert/c", On: []Kind{DLQ}}, breakers)
	s.open()
	s.round(t, h)
	s.now = s.now.Add(time.Minute)
	s.close()
	s.round(t, h)
	if len(s.taken) != 2 || len(s.facts.facts) != 2 {
		t.Fatalf("%d alerts and %d facts, want 2 each", len(s.taken), len(s.facts.facts))
	}
	for i, want := range [][]core.Lane{{"alert/a", "alert/b"}, {"alert/a"}} {
		a := s.taken[i]
		var lanes []core.Lane
		for _, j := range a.Jobs {
			if lanes = append(lanes, j.Lane); j.MaxAttempts != 3 {
				t.Errorf("alert %d: MaxAttempts = %d, want 3", i, j.MaxAttempts)
			}
		}
		if !slices.Equal(lanes, want) || a.Event.Source != core.AlertSource || a.Event.DeliveryID == "" {
			t.Errorf("alert %d goes to %v with source %q and delivery id %q, want %v, %q and any", i, lanes, a.Event.Source, a.Event.DeliveryID, want, core.AlertSource)
		}
	}
}

// TestFlappingBreaker: it opens and closes each minute. Within the interval only the first
// opening causes an alert, and its closing.
func TestFlappingBreaker(t *testing.T) {
	s := newTeam()
	h := s.process(breakers)
	move := func(how func()) {
		how()
		h.Noticed(core.BreakerMoved{Lane: billing})
		h.Flush(t.Context())
	}
	first := at(s)
	move(s.open)
	s.wantNews(t, "first opening", notice{Alert: CircuitOpened, Handler: "billing", Since: first})
	s.now = s.now.Add(30 * time.Second)
	move(s.close)
	s.wantNews(t, "first closing", notice{Alert: CircuitClosed, Handler: "billing", Since: first})
	for range 9 {
		s.now = s.now.Add(30 * time.Second)
		move(s.open)
		s.now = s.now.Add(30 * time.Second)
		s.round(t, h)
		move(s.close)
		s.wantNews(t, "within the interval")
	}
	s.now = s.now.Add(time.Minute)
	second := at(s)
	move(s.open)
	s.wantNews(t, "after the interval", notice{Alert: CircuitOpened, Handler: "billing", Since: second, LeftOut: 9,
		Message: `The circuit breaker of handler "billing" opened after 5 failures in a row. Deliveries wait until a probe succeeds. To close it now: gateway breaker reset billing. Openings without an alert since the last one: 9`})
	s.now = s.now.Add(time.Second)
	move(s.close)
	s.wantNews(t, "after the interval", notice{Alert: CircuitClosed, Handler: "billing", Since: second})
	// An opening within the interval that lasts causes an alert when the interval ends.
	s.now = s.now.Add(time.Minute)
	third := at(s)
	move(s.open)
	for range 8 {
		s.now = s.now.Add(time.Minute)
		s.round(t, h)
		s.wantNews(t, "within the second interval")
	}
	s.now = s.now.Add(time.Minute)
	s.round(t, h)
	s.wantNews(t, "open at the end of the interval", notice{Alert: CircuitOpened, Handler: "billing", Since: third})
}

// TestOpeningOfADeadProcess: the process dies before it stores the alert, and another process
// closes the breaker. The next round tells both.
func TestOpeningOfADeadProcess(t *testing.T) {
	s := newTeam()
	h := s.process(breakers)
	s.round(t, h)
	opened := at(s)
	s.open()
	s.now = s.now.Add(40 * time.Second)
	s.close()
	s.now = s.now.Add(20 * time.Second)
	s.round(t, h)
	s.wantNews(t, "the next round",
		notice{Alert: CircuitOpened, Handler: "billing", Since: opened, Message: `The circuit breaker of handler "billing" opened at ` + opened + `, and has closed since`},
		notice{Alert: CircuitClosed, Handler: "billing", Since: opened, Message: `The circuit breaker of handler "billing" closed, and deliveries go on. It was open for 40s`})
	// Before a place asked for alerts, it is no news.
	s = newTeam()
	s.open()
	s.close()
	s.now = s.now.Add(time.Hour)
	s.round(t, s.process(breakers))
	s.wantNews(t, "an opening that was over long before")
}

// TestClosedAndOpenedAgain: no process looks in between. The alert about the closing comes first.
func TestClosedAndOpenedAgain(t *testing.T) {
	s := newTeam()
	h := s.process(breakers)
	first := at(s)
	s.open()
	s.round(t, h)
	s.wantNews(t, "opened", notice{Alert: CircuitOpened, Handler: "billing", Since: first})
	s.now = s.now.Add(20 * time.Minute)
	s.close()
	s.now = s.now.Add(time.Second)
	s.open()
	s.round(t, h)
	s.wantNews(t, "closed and opened", notice{Alert: CircuitClosed, Handler: "billing", Since: first},
		notice{Alert: CircuitOpened, Handler: "billing", Since: at(s)})
}

// TestEachTransitionIsToldOnce: two processes notice, die between any two writes, and restart.
// Without an interval there is exactly one alert for each opening and closing.
func TestEachTransitionIsToldOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newTeam()
		always := breakers
		always.Health.Interval = 0
		all := []*Health{s.process(always), s.process(always)}
		var want []Kind
		for range rapid.IntRange(1, 12).Draw(t, "moves") {
			s.now = s.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
			if len(want)%2 == 0 {
				s.open()
				want = append(want, CircuitOpened)
			} else {
				s.close()
				want = append(want, CircuitClosed)
			}
			for i, h := range all {
				h.Noticed(core.BreakerMoved{Lane: billing})
				if s.left = rapid.IntRange(0, 7).Draw(t, "calls until it dies"); rapid.Bool().Draw(t, "flushes") {
					h.Flush(context.Background())
				} else {
					_ = h.Tick(context.Background(), core.Budget{})
				}
				if s.left == 1 {
					all[i] = s.process(always)
				}
			}
			// The round of the next minute comes before the breaker moves again.
			s.left, s.now = 0, s.now.Add(time.Minute)
			if err := all[0].Tick(context.Background(), core.Budget{}); err != nil {
				t.Fatal(err)
			}
		}
		var got []Kind
		for _, a := range s.taken {
			got = append(got, Kind(strings.TrimPrefix(a.Event.Type, "alert.")))
		}
		if !slices.Equal(got, want) {
			t.Errorf("alerts %v, want %v", got, want)
		}
	})
}
