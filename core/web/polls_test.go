package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core/web"
)

// waitingRoom is a handler with a few queues. Its polls wait until the test lets them go.
type waitingRoom struct {
	t       *testing.T
	world   *world
	handler http.Handler
	waiting chan struct{}
	arrive  chan struct{}
	replies chan *httptest.ResponseRecorder
	parked  int
	reasons chan string
}

func newWaitingRoom(t *testing.T, queues ...string) *waitingRoom {
	w := newWorld(t, "max_inbound 1")
	p := &waitingRoom{t: t, world: w, waiting: make(chan struct{}), arrive: make(chan struct{}), replies: make(chan *httptest.ResponseRecorder)}
	p.reasons = make(chan string, 10)
	w.counter.wait = func(context.Context) error {
		p.waiting <- struct{}{}
		<-p.arrive
		return nil
	}
	w.settings.Counts = &web.Counts{}
	w.settings.Refused = func(reason string) { p.reasons <- reason }
	keys := map[string][]string{}
	for _, q := range queues {
		keys[q] = nil
	}
	p.handler = web.Handler(w.settings, web.Queues(web.QueuesOptions{Puller: w.counter, Manager: w.counter, Keys: keys}))
	return p
}

// park starts up to n polls of a queue, from the addresses that from returns. It returns how
// many polls were admitted, and why the next one was not.
func (p *waitingRoom) park(n int, queue string, from func(int) string) (parked int, refused *httptest.ResponseRecorder) {
	for i := range n {
		r := httptest.NewRequest("GET", "/api/queues/"+queue+"/messages?wait=30s", nil)
		r.RemoteAddr = from(i)
		go func() {
			w := httptest.NewRecorder()
			p.handler.ServeHTTP(w, r)
			p.replies <- w
		}()
		select {
		case <-p.waiting:
			p.parked++
		case got := <-p.replies:
			return i, got
		}
	}
	return n, nil
}

// end lets all polls go.
func (p *waitingRoom) end() {
	close(p.arrive)
	for range p.parked {
		if got := <-p.replies; got.Code != 200 {
			p.t.Fatalf("a poll that waited: %d %s, want 200", got.Code, got.Body)
		}
	}
	if n := p.world.settings.Counts.Polls(); n != 0 {
		p.t.Errorf("%d polls are counted after all have ended", n)
	}
}

func many(i int) string { return fmt.Sprintf("10.0.%d.%d:4711", i/250, i%250) }

func one(int) string { return "192.0.2.7:4711" }

func ofNetwork(i int) string { return fmt.Sprintf("[2001:db8:1:2:%x::%x]:4711", i, i) }

// One queue or one client address never has all polls while there are others.
func TestPollsAreShared(t *testing.T) {
	thousand := make([]string, 1000)
	for i := range thousand {
		thousand[i] = fmt.Sprintf("q%d", i)
	}
	type claim struct {
		queue  string
		from   func(int) string
		want   int
		reason string
	}
	for _, tt := range []struct {
		name   string
		queues []string
		claims []claim
	}{
		{"the only queue has all", []string{"work"}, []claim{{"work", many, 1000, "polls"}}},
		{"one queue of two has half", []string{"work", "mail"}, []claim{{"work", many, 500, "polls_queue"}, {"mail", many, 250, "polls_queue"}}},
		{"one address leaves polls of its queue to others", []string{"work", "mail"}, []claim{{"work", one, 429, "polls_address"}, {"work", many, 71, "polls_queue"}, {"mail", many, 250, "polls_queue"}}},
		{"one queue of a thousand has half", thousand, []claim{{"q0", many, 500, "polls_queue"}, {"q1", many, 250, "polls_queue"}}},
		{"one address has three quarters", []string{"work"}, []claim{{"work", one, 750, "polls_address"}, {"work", many, 250, "polls"}}},
		{"one IPv6 network is one address", []string{"work"}, []claim{{"work", ofNetwork, 750, "polls_address"}, {"work", one, 188, "polls_address"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newWaitingRoom(t, tt.queues...)
			for _, c := range tt.claims {
				n, refused := p.park(1200, c.queue, c.from)
				if reason := <-p.reasons; n != c.want || reason != c.reason {
					t.Errorf("%d polls of %s were let in, and the next was refused for %q; want %d and %s", n, c.queue, reason, c.want, c.reason)
				}
				if refused.Code != 503 || refused.Header().Get("Retry-After") != "1" || !strings.Contains(refused.Body.String(), "wait for messages") {
					t.Errorf("poll too many: %d %s, Retry-After %q; want 503, 1", refused.Code, refused.Body, refused.Header().Get("Retry-After"))
				}
			}
			p.end()
			p.waiting, p.arrive = make(chan struct{}, 1), make(chan struct{})
			close(p.arrive)
			if got := ask(p.handler, "GET", "/api/queues/"+tt.queues[0]+"/messages", ""); got.Code != 200 {
				t.Errorf("poll after the others: %d, want 200", got.Code)
			}
		})
	}
}

// Each queue is served, however many polls the other queues have.
func TestEachQueueHasAPoll(t *testing.T) {
	queues := []string{"greedy"}
	for i := range 1500 {
		queues = append(queues, fmt.Sprintf("q%d", i))
	}
	p := newWaitingRoom(t, queues...)
	p.park(1200, "greedy", many)
	for _, q := range queues[1:] {
		if n, refused := p.park(1, q, one); n != 1 {
			t.Fatalf("the first poll of %s: %d %s, want it to wait", q, refused.Code, refused.Body)
		}
	}
	p.end()
}

// Waiting consumers and other requests take no slots from each other. A consumer without
// the key does not wait.
func TestPollsHaveTheirOwnBudget(t *testing.T) {
	p := newWaitingRoom(t, "work")
	p.park(1200, "work", many)
	for _, path := range []string{"/api/queues/work/ack"} {
		if got := ask(p.handler, "POST", path, `{"ids": []}`); got.Code >= 300 {
			t.Errorf("POST %s beside the polls: %d", path, got.Code)
		}
	}
	p.end()
	w := newWorld(t)
	if got := ask(w.handler(), "GET", "/api/queues/locked/messages", ""); got.Code != 401 || len(w.counter.calls) > 0 {
		t.Errorf("poll without the key: %d after %q, want 401", got.Code, w.counter.calls)
	}
}
