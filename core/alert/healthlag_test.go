package alert

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// TestLag: an alert when it begins and when it is over, and no other one within the interval.
func TestLag(t *testing.T) {
	s := newTeam()
	h := s.process(Place{Lane: "alert/a", On: []Kind{Lag}, Health: Thresholds{Lag: 5 * time.Minute, Interval: 10 * time.Minute}})
	minute := func() {
		s.now = s.now.Add(time.Minute)
		s.round(t, h)
	}
	since := s.now
	s.due["queue/mail"], s.due[billing] = since, since.Add(time.Hour)
	for range 5 {
		minute()
		s.wantNews(t, "not older than that")
	}
	minute()
	s.wantNews(t, "older", notice{Alert: Lag, Queue: "mail", Since: core.FormatTime(since),
		Message: `Queue "mail" lags: its oldest due job waits since ` + core.FormatTime(since) + `, for more than 5m`})
	minute()
	s.wantNews(t, "still older")
	s.due["queue/mail"] = s.now
	minute()
	s.wantNews(t, "over", notice{Alert: Lag, Queue: "mail", Over: true, Message: `Queue "mail" has caught up: no job has been due for more than 5m`})
	s.due["queue/mail"] = s.now.Add(-6 * time.Minute)
	for range 7 {
		minute()
		s.wantNews(t, "again, within the interval")
	}
	minute()
	s.wantNews(t, "again, after the interval", notice{Alert: Lag, Queue: "mail", Since: core.FormatTime(s.due["queue/mail"])})
	delete(s.due, "queue/mail")
	minute()
	s.wantNews(t, "empty", notice{Alert: Lag, Queue: "mail", Over: true})
}

// TestLagBehindAHold: a person wanted the jobs to wait. The time of the hold does not count.
func TestLagBehindAHold(t *testing.T) {
	s := newTeam()
	h := s.process(Place{Lane: "alert/a", On: []Kind{Lag}, Health: Thresholds{Lag: 5 * time.Minute}})
	s.due["workflow/ship"] = s.now
	s.gates["workflow/ship"] = core.Gate{HeldSince: s.now, HeldUntil: core.NoEnd}
	s.now = s.now.Add(time.Hour)
	s.round(t, h)
	s.wantNews(t, "held")
	s.gates["workflow/ship"] = core.Gate{HeldUntil: s.now}
	released := s.now
	s.now = s.now.Add(5 * time.Minute)
	s.round(t, h)
	s.wantNews(t, "released")
	s.now = s.now.Add(time.Minute)
	s.round(t, h)
	s.wantNews(t, "released for longer", notice{Alert: Lag, Workflow: "ship", Since: core.FormatTime(released)})
}

// TestThresholds: places with other thresholds get alerts of their own, places with the same
// share them.
func TestThresholds(t *testing.T) {
	s := newTeam()
	after := func(lane core.Lane, d time.Duration) Place {
		return Place{Lane: lane, On: []Kind{Lag}, Health: Thresholds{Lag: d}}
	}
	h := s.process(after("alert/a", time.Minute), after("alert/b", time.Hour), after("alert/c", time.Minute))
	s.due[billing] = s.now
	s.now = s.now.Add(2 * time.Minute)
	s.round(t, h)
	s.now = s.now.Add(time.Hour)
	s.round(t, h)
	if len(s.taken) != 2 || len(s.taken[0].Jobs) != 2 || len(s.taken[1].Jobs) != 1 || s.taken[1].Jobs[0].Lane != "alert/b" {
		t.Errorf("alerts %+v, want one to a and c, then one to b", s.taken)
	}
}

// TestOldHold: one alert for each hold, also one of a handler that left the configuration.
func TestOldHold(t *testing.T) {
	s := newTeam()
	place := Place{Lane: "alert/a", On: []Kind{Held}, Health: Thresholds{Held: 24 * time.Hour}}
	h := s.process(place)
	since := s.now
	s.holds = []core.Hold{{Lane: "handler/gone", Since: since, Reason: "their database"}}
	s.now = since.Add(24 * time.Hour)
	s.round(t, h)
	s.wantNews(t, "a day old")
	s.now = s.now.Add(time.Minute)
	s.round(t, h)
	s.wantNews(t, "older", notice{Alert: Held, Handler: "gone", Since: core.FormatTime(since), Reason: "their database",
		Message: `Handler "gone" is held since ` + core.FormatTime(since) + `, for more than 1d. To let it go on: gateway release gone`})
	s.now = s.now.Add(100 * time.Hour)
	s.round(t, s.process(place))
	s.wantNews(t, "after its alert")
	s.holds[0].Since = s.now
	s.now = s.now.Add(25 * time.Hour)
	s.round(t, h)
	s.wantNews(t, "another hold", notice{Alert: Held, Handler: "gone", Since: core.FormatTime(s.holds[0].Since), Reason: "their database"})
}

// TestOldHoldOfSource: the alert names the source, and the command that releases it.
func TestOldHoldOfSource(t *testing.T) {
	s := newTeam()
	h := s.process(Place{Lane: "alert/a", On: []Kind{Held}, Health: Thresholds{Held: 24 * time.Hour}})
	since := s.now
	s.holds = []core.Hold{{Lane: "source/github", Since: since}}
	s.now = since.Add(25 * time.Hour)
	s.round(t, h)
	s.wantNews(t, "a source", notice{Alert: Held, Source: "github", Since: core.FormatTime(since),
		Message: `Source "github" is held since ` + core.FormatTime(since) + `, for more than 1d. To let it go on: gateway release source/github`})
}

// TestQuiet: one alert, until an event comes again.
func TestQuiet(t *testing.T) {
	s := newTeam()
	h := s.process(Place{Lane: "alert/a", On: []Kind{Quiet}, Health: Thresholds{Quiet: map[string]time.Duration{"stripe": time.Hour}}})
	first := s.now
	s.newest["stripe"] = s.ids.Next()
	s.now = first.Add(time.Hour)
	s.round(t, h)
	s.wantNews(t, "an hour")
	s.now = s.now.Add(time.Minute)
	s.round(t, h)
	s.wantNews(t, "longer", notice{Alert: Quiet, Source: "stripe", Since: core.FormatTime(first),
		Message: `No event came from source "stripe" since ` + core.FormatTime(first) + `, for more than 1h`})
	s.now = s.now.Add(5 * time.Hour)
	s.round(t, h)
	s.wantNews(t, "after its alert")
	second := s.now
	s.newest["stripe"] = s.ids.Next()
	s.now = s.now.Add(time.Minute)
	s.round(t, h)
	s.wantNews(t, "an event came")
	s.now = s.now.Add(time.Hour)
	s.round(t, h)
	s.wantNews(t, "quiet again", notice{Alert: Quiet, Source: "stripe", Since: core.FormatTime(second)})
}

// TestQuietWithoutEvents: a source that never sent is quiet from the first check on, and one
// whose events are deleted from about its last event on.
func TestQuietWithoutEvents(t *testing.T) {
	s := newTeam()
	h := s.process(Place{Lane: "alert/a", On: []Kind{Quiet}, Health: Thresholds{Quiet: map[string]time.Duration{"stripe": 240 * time.Hour}}})
	s.round(t, h)
	first := s.now
	s.now = s.now.Add(241 * time.Hour)
	s.round(t, h)
	s.wantNews(t, "without an event", notice{Alert: Quiet, Source: "stripe", Since: core.FormatTime(first)})
	s.newest["stripe"] = s.ids.Next()
	sent := s.now
	s.now = s.now.Add(time.Minute)
	s.round(t, h)
	s.now = sent.Add(72 * time.Hour)
	s.newest["stripe"] = "" // a purge
	s.round(t, h)
	s.wantNews(t, "after a purge")
	s.now = sent.Add(241 * time.Hour)
	s.round(t, h)
	s.wantNews(t, "long after", notice{Alert: Quiet, Source: "stripe", Since: core.FormatTime(sent)})
}

// TestRoundsTakeTurns: of two processes that tick for ten minutes, one checks each minute.
func TestRoundsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTeam()
		var asked atomic.Int32
		place := Place{Lane: "alert/a", On: []Kind{Held}, Health: Thresholds{Held: time.Hour}}
		counting := counted{s.memory, &asked}
		for range 2 {
			h := NewHealth(HealthDeps{Store: counting, IDs: core.NewIDs(time.Now), Clock: time.Now, MaxAttempts: 1, Places: []Place{place}})
			go func() { _ = h.Tick(t.Context(), core.Budget{Rest: time.Second}) }()
		}
		time.Sleep(10*time.Minute - time.Second)
		if n := asked.Load(); n != 10 {
			t.Errorf("%d checks in ten minutes, want 10", n)
		}
	})
}

// A counted memory counts the checks of holds.
type counted struct {
	*memory
	asked *atomic.Int32
}

func (c counted) Holding(ctx context.Context, now time.Time) ([]core.Hold, error) {
	c.asked.Add(1)
	return c.memory.Holding(ctx, now)
}

// TestHealthTakesOver: a breaker moves in a process whose configuration is being replaced. The
// Health of the next configuration tells it at once.
func TestHealthTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTeam()
		moves := NewMoves()
		health := func() *Health {
			return NewHealth(HealthDeps{Store: s.memory, IDs: core.NewIDs(time.Now), Clock: time.Now, MaxAttempts: 1,
				Places: []Place{breakers}, Lanes: []core.Lane{billing}, Moves: moves})
		}
		first, second := health(), health()
		ctx, retire := context.WithCancel(t.Context())
		go func() { _ = first.Tick(ctx, core.Budget{Rest: time.Second}) }()
		synctest.Wait()
		retire()
		synctest.Wait()
		s.now = time.Now()
		s.open()
		first.Noticed(core.BreakerMoved{Lane: billing}) // by a delivery that it still ends
		go func() { _ = second.Tick(t.Context(), core.Budget{Rest: time.Second}) }()
		synctest.Wait()
		if len(s.taken) != 1 {
			t.Errorf("%d alerts, want 1", len(s.taken))
		}
	})
}

// TestHealthPassesTheSignalOn: a signal for the Health that takes over may reach the other one
// first.
func TestHealthPassesTheSignalOn(t *testing.T) {
	h := newTeam().process(breakers)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := h.Tick(ctx, core.Budget{Rest: time.Second}); err != nil {
		t.Errorf("Tick = %v, want no error", err)
	}
	select {
	case <-h.Moves.moved:
	default:
		t.Error("the Health that runs next gets no signal")
	}
}

// TestHealthOfNobody: without a place that wants alerts on health there is no Health, and its
// methods do nothing.
func TestHealthOfNobody(t *testing.T) {
	h := NewHealth(HealthDeps{Places: []Place{{On: []Kind{DLQ, VerificationFailure}}}})
	if h != nil {
		t.Fatal("NewHealth is not nil")
	}
	h.Noticed(core.BreakerMoved{Lane: billing})
	if err := h.Tick(t.Context(), core.Budget{Rest: time.Second}); err != nil || h.Flush(t.Context()) {
		t.Errorf("Tick = %v and Flush is true, want neither", err)
	}
}

// TestStoreFailsARound: the error becomes a fact, and the next round makes the alert.
func TestStoreFailsARound(t *testing.T) {
	s := newTeam()
	h := s.process(breakers)
	s.open()
	for left := 1; left < 8; left++ {
		s.memory.left = left
		err := h.Tick(t.Context(), core.Budget{})
		s.turn, s.memory.left = time.Time{}, 0
		if err == nil && len(s.taken) == 0 {
			t.Errorf("Tick with a failure at call %d: no error and no alert", left)
		}
	}
	if len(s.taken) != 1 {
		t.Errorf("%d alerts, want 1", len(s.taken))
	}
	s.memory.left = 1
	h.Noticed(core.BreakerMoved{Lane: billing})
	h.Flush(t.Context())
	if n := len(s.facts.facts); n == 0 || !isTrouble(s.facts.facts[n-1]) {
		t.Errorf("facts %v, want one of the failure at the end", s.facts.facts)
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{24 * time.Hour: "1d", 36 * time.Hour: "36h", 90 * time.Minute: "90m", 90*time.Second + 5: "1m30s", 1500 * time.Millisecond: "1s"} {
		if got := span(d); got != want {
			t.Errorf("span(%v) = %q, want %q", d, got, want)
		}
	}
}

// TestLeftOutAfterAReset: openings from before the first alert are not counted as left out, nor
// those from before the gate was reset.
func TestLeftOutAfterAReset(t *testing.T) {
	s := newTeam()
	h := s.process(Place{Lane: "alert/a", On: []Kind{CircuitOpened}, Health: Thresholds{Interval: time.Minute}})
	s.gates[billing] = core.Gate{Openings: 7}
	s.open()
	s.round(t, h)
	s.wantNews(t, "the eighth opening, and the first alert", notice{Alert: CircuitOpened, Handler: "billing", Since: at(s)})
	s.gates[billing] = core.Gate{}
	s.now = s.now.Add(time.Hour)
	s.open()
	s.round(t, h)
	s.wantNews(t, "the first opening after a reset", notice{Alert: CircuitOpened, Handler: "billing", Since: at(s)})
}

func isTrouble(f core.Fact) bool { return f == (core.Troubled{Doing: "check health", Err: errDown}) }
