package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
)

// A stubborn store answers all reads, and does only the work that the test allows.
type stubborn struct {
	core.Store
	refuses   map[string]error // the error of a method
	hangs     atomic.Bool      // Accept and Rehearse wait until the caller's context is done
	rehearsed atomic.Int32
}

func (s *stubborn) Depth(context.Context) (int, error) { return 0, nil }

func (s *stubborn) Accept(_ context.Context, a core.Arrival) (core.Receipt, error) {
	if s.hangs.Load() {
		time.Sleep(10 * time.Second)
		return core.Receipt{}, away
	}
	if err := s.refuses["event "+string(a.Event.Payload)]; err != nil {
		return core.Receipt{}, err
	}
	return core.Receipt{EventID: a.Event.ID}, s.refuses["Accept"]
}

func (s *stubborn) AcceptAll(context.Context, []core.Arrival) ([]core.Receipt, error) {
	return nil, s.refuses["AcceptAll"]
}

func (s *stubborn) Rehearse(ctx context.Context, w core.Work) error {
	s.rehearsed.Add(1)
	if s.hangs.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.refuses["rehearse "+string(w)]
}

func (s *stubborn) Take(context.Context, time.Time, []core.Quota) ([]core.TakenJob, error) {
	return nil, s.refuses["Take"]
}

func (s *stubborn) Settle(context.Context, ...core.Outcome) (core.Settlement, error) {
	return core.Settlement{}, s.refuses["Settle"]
}

func (s *stubborn) Transit(context.Context, ...core.Transition) ([]core.Transited, error) {
	return nil, s.refuses["Transit"]
}

func (s *stubborn) Turn(context.Context, time.Time, string, time.Duration) (bool, error) {
	return true, s.refuses["Turn"]
}

var (
	away      = core.Refuse(core.Unavailable, "database unavailable")
	errDefect = errors.New("invalid byte sequence")
)

// A patient is a gateway on a stubborn store.
type patient struct {
	*testing.T
	*gateway.Gateway
	store  *stubborn
	events int
}

func newPatient(t *testing.T) *patient {
	p := &patient{T: t, store: &stubborn{refuses: map[string]error{}}}
	g, err := gateway.New(load(t, "sources: {shop: {type: event}}"), gateway.Deps{
		Store: p.store, Clock: core.SystemClock, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Gateway = g
	p.healthy("at first", 200, 1) // no event has been stored or refused yet
	return p
}

func (p *patient) ask(method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	p.Handler().ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

// post sends an event. Without a body the event is a new one.
func (p *patient) post(want int, body ...string) {
	p.Helper()
	p.events++
	text := fmt.Sprintf(`{"n":%d}`, p.events)
	if len(body) > 0 {
		text = body[0]
	}
	if w := p.ask("POST", "/events/shop/order.created", text); w.Code != want {
		p.Errorf("POST = %d %s, want %d", w.Code, w.Body, want)
	}
}

// healthy requires a status of /health one second later, and the number of rehearsals for it.
func (p *patient) healthy(when string, status int, rehearsals int32) {
	p.Helper()
	time.Sleep(time.Second) // an answer of /health is fresh for a second
	before := p.store.rehearsed.Load()
	w := p.ask("GET", "/health", "")
	if n := p.store.rehearsed.Load() - before; w.Code != status || n != rehearsals {
		p.Errorf("%s: GET /health = %d %s after %d rehearsals, want %d after %d", when, w.Code, w.Body, n, status, rehearsals)
	}
}

// TestHealthFollowsIntake: a gateway is unhealthy while the store refuses real events, and
// healthy again with the first stored event.
func TestHealthFollowsIntake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPatient(t)
		p.post(202)
		p.healthy("all is well", 200, 0)
		p.store.refuses["Accept"], p.store.refuses["rehearse intake"] = away, away
		p.post(503)
		p.healthy("an event is refused, and a rehearsal is too", 503, 1)
		p.store.refuses["rehearse intake"] = nil
		p.post(503)
		p.post(503)
		p.healthy("events are refused, and rehearsals prove nothing", 503, 0)
		p.store.refuses["Accept"] = nil
		p.post(202)
		p.healthy("an event is stored", 200, 0)
	})
}

// TestHealthOfAGatewayWithoutEvents: a gateway that gets no events recovers when the database
// does, and notices when the database fails.
func TestHealthOfAGatewayWithoutEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPatient(t)
		p.store.refuses["Accept"], p.store.refuses["rehearse intake"] = away, away
		for range 5 {
			p.post(503)
		}
		p.healthy("events are refused", 503, 0)
		time.Sleep(3 * time.Second)
		p.healthy("no more events are sent", 503, 1)
		p.store.refuses["Accept"], p.store.refuses["rehearse intake"] = nil, nil
		p.healthy("the trouble is over", 200, 1)
		p.healthy("all is well", 200, 0)
		p.store.refuses["rehearse intake"] = away
		p.healthy("new trouble that no event has met", 200, 0)
		time.Sleep(30 * time.Second)
		p.healthy("nothing was stored for long", 503, 1)
		p.store.refuses["rehearse intake"] = nil
		p.healthy("the trouble is over again", 200, 1)
	})
}

// TestOneRequestMakesNobodyUnhealthy: an event that the database refuses for its content does
// not make the gateway unhealthy, however often it is sent.
func TestOneRequestMakesNobodyUnhealthy(t *testing.T) {
	for _, tt := range []struct {
		name       string
		err        error
		post       int
		rehearsals int32
	}{
		{"refused by a statement", errDefect, 500, 1},
		{"it ends its connection", away, 503, 1},
		{"too large", core.Refuse(core.TooLarge, "too large"), 413, 0},
		{"the sender has gone", fmt.Errorf("accept: %w", context.Canceled), 500, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPatient(t)
				const bad = `{"bad":true}`
				p.store.refuses["event "+bad] = tt.err
				for range 10 {
					p.post(tt.post, bad)
				}
				p.healthy("the same event again and again", 200, tt.rehearsals)
				p.post(202)
				p.post(tt.post, bad)
				p.healthy("among others", 200, tt.rehearsals)
			})
		})
	}
	t.Run("statements refuse different events", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPatient(t)
			p.store.refuses["Accept"] = errDefect
			for range 10 {
				p.post(500)
			}
			p.healthy("none is about the database", 200, 1)
		})
	})
}

// TestOneBadPartOfBatches: a store may refuse a batch for one of its parts. Batches that have a
// part in common do not make the gateway unhealthy, wherever the part stands in them. Batches
// without a common part do.
func TestOneBadPartOfBatches(t *testing.T) {
	ctx := context.Background()
	for _, tt := range []struct {
		method string
		do     func(s core.Store, parts ...string) error
	}{
		{"AcceptAll", func(s core.Store, parts ...string) error {
			var all []core.Arrival
			for _, p := range parts {
				all = append(all, core.Arrival{Event: core.Event{Source: "shop", Payload: []byte(p)}})
			}
			_, err := s.AcceptAll(ctx, all)
			return err
		}},
		{"Settle", func(s core.Store, parts ...string) error {
			var outcomes []core.Outcome
			for _, p := range parts {
				outcomes = append(outcomes, core.Outcome{JobID: core.ID(p)})
			}
			_, err := s.Settle(ctx, outcomes...)
			return err
		}},
		{"Transit", func(s core.Store, parts ...string) error {
			var ts []core.Transition
			for _, p := range parts {
				ts = append(ts, core.Transition{Run: core.Run{ID: core.ID(p)}})
			}
			_, err := s.Transit(ctx, ts...)
			return err
		}},
	} {
		t.Run(tt.method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPatient(t)
				p.store.refuses[tt.method] = away
				for _, first := range []string{"a", "b", "c"} {
					if err := tt.do(p.Store, first, "bad"); !errors.Is(err, away) {
						t.Fatalf("%s = %v, want %v", tt.method, err, away)
					}
				}
				p.healthy("each batch has the same part", 200, 1)
				_, _ = tt.do(p.Store, "d", "e"), tt.do(p.Store, "f", "g")
				p.healthy("three batches have no part in common", 503, 0)
			})
		})
	}
}

// TestHealthWhileIntakeHangs: a database may answer reads while writes hang, for instance on
// a locked table. /health reports it before the first event times out.
func TestHealthWhileIntakeHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPatient(t)
		p.post(202)
		p.healthy("all is well", 200, 0)
		p.store.hangs.Store(true)
		began := time.Now()
		go p.ask("POST", "/events/shop/order.created", "{}")
		for p.ask("GET", "/health", "").Code != 503 {
			if time.Sleep(100 * time.Millisecond); time.Since(began) > 5*time.Second {
				t.Fatal("GET /health = 200 five seconds after an event began to hang, want 503")
			}
		}
		p.store.hangs.Store(false)
		p.post(202)
		p.healthy("events are stored again", 200, 0)
		time.Sleep(10 * time.Second) // the event that hung has timed out
		p.post(202)
		p.healthy("and another one", 200, 0)
	})
}

// TestEachKindOfWorkIsJudgedByItself: only a success of the same kind of work ends failures
// of that kind.
func TestEachKindOfWorkIsJudgedByItself(t *testing.T) {
	ctx, now := context.Background(), time.Now()
	job := 0
	works := []struct {
		method string
		work   core.Work
		do     func(core.Store) error
	}{
		{"Take", core.Deliveries, func(s core.Store) error { _, err := s.Take(ctx, now, nil); return err }},
		{"Settle", core.Deliveries, func(s core.Store) error {
			job++
			_, err := s.Settle(ctx, core.Outcome{JobID: core.ID(fmt.Sprint(job))})
			return err
		}},
		{"Transit", core.Transitions, func(s core.Store) error {
			job++
			_, err := s.Transit(ctx, core.Transition{Run: core.Run{ID: core.ID(fmt.Sprint(job))}})
			return err
		}},
		{"Turn", core.Turns, func(s core.Store) error { _, err := s.Turn(ctx, now, "purge", 0); return err }},
	}
	for _, w := range works {
		t.Run(w.method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPatient(t)
				p.store.refuses[w.method], p.store.refuses["rehearse "+string(w.work)] = away, away
				if err := w.do(p.Store); !errors.Is(err, away) {
					t.Fatalf("%s = %v, want %v", w.method, err, away)
				}
				p.healthy("it failed, and a rehearsal of it too", 503, 1)
				p.post(202)
				for _, other := range works {
					if other.method != w.method {
						_ = other.do(p.Store)
					}
				}
				p.healthy("other work succeeded", 503, 1)
				p.store.refuses[w.method] = nil
				if err := w.do(p.Store); err != nil {
					t.Fatal(err)
				}
				p.healthy("the same work succeeded", 200, 0)
			})
		})
	}
}
