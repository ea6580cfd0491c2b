package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/web"
)

// A mute store stores arrivals or not, as stores says, and answers that it is unavailable unless
// speaks is set.
type mute struct {
	mu     sync.Mutex
	events map[core.ID]core.Event
	jobs   map[core.ID]core.Lane
	stores bool // the arrivals that it is given
	speaks bool
	now    time.Time
}

var errMute = &core.Refusal{Kind: core.Unavailable, Message: "database unavailable", Cause: context.DeadlineExceeded}

func (m *mute) Accept(_ context.Context, a core.Arrival) (core.Receipt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stores {
		if _, stored := m.events[a.Event.ID]; !stored {
			m.events[a.Event.ID] = a.Event
		}
		for _, j := range a.Jobs {
			m.jobs[j.ID] = j.Lane
		}
	}
	if !m.speaks {
		return core.Receipt{}, errMute
	}
	return core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}, nil
}

func (m *mute) AcceptAll(ctx context.Context, all []core.Arrival) (receipts []core.Receipt, err error) {
	for _, a := range all {
		r, err := m.Accept(ctx, a)
		if err != nil {
			return nil, err
		}
		receipts = append(receipts, r)
	}
	return receipts, nil
}

func (m *mute) Event(_ context.Context, id core.ID) (core.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.events[id]; ok {
		return e, nil
	}
	return core.Event{}, core.Refuse(core.NotFound, "event not found")
}

// post sends an event, and returns the status, the event's id and the error told.
func (m *mute) post(t *testing.T, path, body, repeat string) (status int, id, failure string) {
	t.Helper()
	in := intake.New(intake.Deps{
		Inbox: m, Events: m, IDs: core.NewIDs(m.clock), Clock: m.clock,
		Sources:   []intake.Source{{Name: "app", Kind: intake.Event}, {Name: "shop", Kind: intake.Event}, {Name: "hook", Kind: intake.Webhook}},
		Consumers: []intake.Consumer{{Lane: "handler/a", Source: "app", MaxAttempts: 1}, {Lane: "handler/b", Source: "app", MaxAttempts: 1}, {Lane: "handler/c", Source: "shop", MaxAttempts: 1}},
	})
	h := web.Handler(web.Settings{MaxBodySize: 1 << 20, MaxInbound: 10, Served: func(string, string, int) {}}, web.Intake(web.IntakeOptions{Receiver: in}))
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Accept", "application/json")
	if repeat != "" {
		r.Header.Set("x-gateway-repeat", repeat)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	text, _ := io.ReadAll(w.Body)
	var told struct {
		EventID string `json:"event_id"`
		Error   string `json:"error"`
	}
	if err := json.Unmarshal(text, &told); err != nil {
		t.Fatalf("POST %s = %d %q: %v", path, w.Code, text, err)
	}
	if header := w.Header().Get("X-Gateway-Event-Id"); header != told.EventID {
		t.Errorf("POST %s: header tells event %q, body %q", path, header, told.EventID)
	}
	return w.Code, told.EventID, told.Error
}

func (m *mute) clock() time.Time { return m.now }

func newMute() *mute {
	return &mute{events: map[core.ID]core.Event{}, jobs: map[core.ID]core.Lane{}, now: time.Date(2026, 11, 23, 5, 0, 0, 0, time.UTC)}
}

// A sender that repeats an event of unknown outcome under its id has it stored once, whether
// the first request was stored before the repeat, after it, or not at all.
func TestUnknownOutcomeIsRepeated(t *testing.T) {
	for _, first := range []string{"stored", "not stored", "stored later"} {
		t.Run(first, func(t *testing.T) {
			m := newMute()
			m.stores = first == "stored"
			status, id, failure := m.post(t, "/events/order.created", `{"n":1}`, "")
			if status != http.StatusServiceUnavailable || id == "" || !strings.Contains(failure, "may be stored or not") || !strings.Contains(failure, "x-gateway-repeat: "+id) {
				t.Fatalf("first request: %d, event %q, %q, want 503, an id and how to repeat it", status, id, failure)
			}
			m.now = m.now.Add(time.Minute)
			m.stores = true
			if status, again, failure := m.post(t, "/events/order.created", `{"n":1}`, id); (status != 503 && first != "stored") || again != id {
				t.Fatalf("repeat without an answer either: %d, event %q, %q, want 503 and event %s", status, again, failure, id)
			}
			m.speaks = true
			for range 2 {
				if status, again, failure := m.post(t, "/events/order.created", `{"n":1}`, strings.ToLower(id)); status != 202 || again != id {
					t.Errorf("repeat: %d, event %q, %q, want 202 and event %s", status, again, failure, id)
				}
			}
			if first == "stored later" {
				delete(m.events, core.ID(id)) // as if the repeats had looked before the first was stored
				if status, again, failure := m.post(t, "/events/order.created", `{"n":1}`, id); status != 202 || again != id {
					t.Errorf("repeat: %d, event %q, %q, want 202 and event %s", status, again, failure, id)
				}
			}
			if len(m.events) != 1 || len(m.jobs) != 2 {
				t.Errorf("%d events with jobs %v, want one with a job for each of two handlers", len(m.events), m.jobs)
			}
		})
	}
}

// An id that a request brings is of its source, of the last hour and of an event with the
// same type and payload. Whether another source has such an event, the answer does not tell.
func TestRepeatsThatAreRefused(t *testing.T) {
	const foreign = "x-gateway-repeat must be the event id that a 503 of this source told"
	for _, stored := range []bool{true, false} {
		m := newMute()
		m.stores = stored
		_, id, _ := m.post(t, "/events/app/order.created", `{"n":1}`, "")
		_, old, _ := m.post(t, "/events/app/order.created", `{"n":1}`, "")
		m.stores, m.speaks = true, true
		events, jobs := len(m.events), len(m.jobs)
		tests := []struct {
			name, path, body, id string
			at                   time.Duration
			want                 string
		}{
			{"of another source", "/events/shop/order.created", `{"n":1}`, id, 0, foreign},
			{"no id", "/events/app/order.created", `{"n":1}`, "17", 0, foreign},
			{"of the future", "/events/app/order.created", `{"n":1}`, id, -2 * time.Minute, foreign},
			{"of the past", "/events/app/order.created", `{"n":1}`, old, 61 * time.Minute, fmt.Sprintf(
				"x-gateway-repeat names an event of more than 60 minutes ago: look for it with GET /api/events/%s, or send it without this header", old)},
		}
		if stored {
			const other = "x-gateway-repeat names an event with another type or payload: repeat the request as it was, or leave the header out"
			tests = append(tests, []struct {
				name, path, body, id string
				at                   time.Duration
				want                 string
			}{
				{"of another type", "/events/app/order.paid", `{"n":1}`, id, 0, other},
				{"with another payload", "/events/app/order.created", `{"n":2}`, id, 0, other},
			}...)
		}
		noon := m.now
		for _, tt := range tests {
			m.now = noon.Add(tt.at)
			status, _, failure := m.post(t, tt.path, tt.body, tt.id)
			if status != http.StatusBadRequest || failure != tt.want {
				t.Errorf("stored: %v, id %s: %d %q, want 400 %q", stored, tt.name, status, failure, tt.want)
			}
		}
		if len(m.events) != events || len(m.jobs) != jobs {
			t.Errorf("stored: %v: %d events and %d jobs after refusals, want %d and %d", stored, len(m.events), len(m.jobs), events, jobs)
		}
	}
}

// Senders of webhooks repeat in their own way. The header of a webhook's sender is ignored.
func TestUnknownOutcomeOfWebhook(t *testing.T) {
	m := newMute()
	status, id, failure := m.post(t, "/webhooks/hook", `{"n":1}`, "17")
	if want := "The database did not answer in time; the event may be stored or not; send it again"; status != 503 || id == "" || failure != want {
		t.Errorf("webhook: %d, event %q, %q, want 503, an id and %q", status, id, failure, want)
	}
}
