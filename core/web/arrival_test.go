package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core/web"
)

// wide is a bound that no connection of these tests reaches.
var wide = web.Crowd{Most: 1000, Each: 1000}

func half(path string, length int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n{", path, length)
}

func wholeRequest(path string, length int) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", path, length) +
		`{"x":"` + strings.Repeat("x", length-8) + `"}`
}

const (
	small     = 100
	largeBody = 100 << 10
)

// Requests whose small body has not arrived do not keep other requests from being served.
func TestHalfBodiesTakeNoSlot(t *testing.T) {
	for _, path := range []string{"/webhooks/plain", "/callback/x", "/api/queues/work/ack", "/events/order"} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, newWorld(t, "max_inbound 1").handler(), wide)
			for range 100 {
				s.call("192.0.2.1").say(half(path, small))
			}
			for _, from := range []string{"192.0.2.1", "192.0.2.2"} {
				c := s.call(from)
				c.say(wholeRequest("/webhooks/plain", small))
				if got := c.answer(); got != "200" {
					t.Errorf("beside 100 half bodies for %s, from %s: %s, want 200", path, from, got)
				}
			}
		})
	}
}

// A request with half of a large body takes a slot. So one client gets only a part of the
// slots for such requests, and so do all clients together.
func TestHalfLargeBodiesTakeAShare(t *testing.T) {
	for name, head := range map[string]string{
		"declared": half("/webhooks/plain", largeBody),
		"chunked":  "POST /webhooks/plain HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, newWorld(t, "max_inbound 8").handler(), wide)
			begun := time.Now()
			var attackers []*call
			for range 50 {
				c := s.call("192.0.2.1")
				c.say(head)
				attackers = append(attackers, c)
			}
			for _, length := range []int{small, largeBody} {
				c := s.call("192.0.2.2")
				c.say(wholeRequest("/webhooks/plain", length))
				if got := c.answer(); got != "200" {
					t.Errorf("%s: beside 50 half bodies, %d bytes of another client: %s, want 200", name, length, got)
				}
			}
			if took := time.Since(begun); took > time.Second {
				t.Errorf("%s: the other client waited for %v", name, took)
			}
			answers := map[string]int{}
			for _, c := range attackers {
				answers[c.answer()]++
			}
			if answers["408"] < 2 || answers["408"]+answers["503"] != 50 {
				t.Errorf("%s: answers to half bodies: %v, want 408 for those that got a slot, and 503", name, answers)
			}
			if took := time.Since(begun); took > time.Minute {
				t.Errorf("%s: half bodies were waited for for %v", name, took)
			}
		})
	}
}

// TestHalfLargeBodiesOfManyAddresses: a network of /64 has the share of one client, and many
// clients that send half of a large body leave half of all slots.
func TestHalfLargeBodiesOfManyAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		attackers, victim string
		length            int
	}{
		"one network of /64": {"2001:db8:0:1::%x", "2001:db8:0:2::1", largeBody},
		"many clients":       {"192.0.2.%d", "192.0.2.99", small},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, newWorld(t, "max_inbound 8").handler(), wide)
			for i := range 50 {
				s.call(fmt.Sprintf(c.attackers, i+1)).say(half("/events/order", largeBody))
			}
			begun := time.Now()
			victim := s.call(c.victim)
			victim.say(wholeRequest("/webhooks/plain", c.length))
			if got := victim.answer(); got != "200" || time.Since(begun) > time.Second {
				t.Errorf("%s: %d bytes of another client beside 50 half bodies: %s after %v, want 200 at once", name, c.length, got, time.Since(begun))
			}
		})
	}
}

// Callbacks whose handling takes long leave events their slots.
func TestSlowCallbacksLeaveEventsTheirSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "max_inbound 2")
		slow, served := make(chan struct{}), make(chan struct{}, 20)
		w.store.asked = func() { served <- struct{}{}; <-slow }
		h, ended := w.handler(), make(chan int)
		for i := range 20 {
			go func() {
				r := httptest.NewRequest("POST", "/callback/x", strings.NewReader("{}"))
				r.RemoteAddr = fmt.Sprintf("192.0.2.%d:4711", i+1)
				reply := httptest.NewRecorder()
				h.ServeHTTP(reply, r)
				ended <- reply.Code
			}()
		}
		synctest.Wait()
		if len(served) != 4 {
			t.Errorf("%d callbacks are being served, want 4", len(served))
		}
		w.store.asked = nil
		if got := ask(h, "POST", "/webhooks/plain", "{}").Code; got != 200 {
			t.Errorf("an event beside slow callbacks: %d, want 200", got)
		}
		close(slow)
		for range 20 {
			<-ended
		}
	})
}

// A burst of large bodies from one client waits for its share, and gets it.
func TestBurstOfLargeBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newWorld(t, "max_inbound 8").handler(), wide)
		var calls []*call
		for range 32 {
			c := s.call("192.0.2.1")
			c.say(wholeRequest("/webhooks/plain", largeBody))
			calls = append(calls, c)
		}
		for i, c := range calls {
			if got := c.answer(); got != "200" {
				t.Errorf("body %d of a burst: %s, want 200", i+1, got)
			}
		}
	})
}

// The gateway waits for a client that sends slowly, and not for a client that has stopped.
func TestSlowLargeBody(t *testing.T) {
	const length = 1 << 20
	for rate, want := range map[int]string{40 << 10: "200", 10 << 10: "408"} { // bytes a second
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.settings.MaxBodySize = 2 * length
			s := open(t, w.handler(), wide)
			c, begun, sent := s.call("192.0.2.1"), time.Now(), make(chan struct{})
			go func() {
				defer close(sent)
				text := wholeRequest("/webhooks/plain", length)
				for len(text) > 0 {
					n := min(len(text), rate)
					if _, err := c.Write([]byte(text[:n])); err != nil {
						return
					}
					text = text[n:]
					time.Sleep(time.Second)
				}
			}()
			if got := c.answer(); got != want {
				t.Errorf("1 MiB at %d bytes a second: %s after %v, want %s", rate, got, time.Since(begun), want)
			}
			if took := time.Since(begun); want == "408" && took > 20*time.Second {
				t.Errorf("1 MiB at %d bytes a second was waited for for %v", rate, took)
			}
			_ = c.Close()
			<-sent
		})
	}
}

// The announced length of a body takes no memory before bytes arrive.
func TestMemoryGrowsAsBytesArrive(t *testing.T) {
	w := newWorld(t)
	w.settings.MaxBodySize = 1 << 30
	h := w.handler()
	r := httptest.NewRequest("POST", "/webhooks/plain", strings.NewReader("{"))
	r.ContentLength = 1 << 30
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	reply := httptest.NewRecorder()
	h.ServeHTTP(reply, r)
	runtime.ReadMemStats(&after)
	if reply.Code != 400 {
		t.Errorf("one byte of a gigabyte: %d, want 400", reply.Code)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("one byte of a gigabyte took %d bytes of memory", took)
	}
}

// Bodies of all sizes around the bounds come through byte for byte.
func TestBodiesOfAllSizes(t *testing.T) {
	const most = 70 << 10
	for _, declared := range []bool{true, false} {
		for _, n := range []int{0, 1, 16<<10 - 1, 16 << 10, 16<<10 + 1, 64 << 10, 64<<10 + 1, most - 1, most, most + 1} {
			w := newWorld(t)
			w.settings.MaxBodySize = most
			text := strings.Repeat("abcdefg\n", n/8+1)[:n]
			r := httptest.NewRequest("POST", "/webhooks/plain", strings.NewReader(text))
			if !declared {
				r.ContentLength = -1
			}
			reply := httptest.NewRecorder()
			w.handler().ServeHTTP(reply, r)
			if n > most {
				if reply.Code != 413 {
					t.Errorf("%d bytes, declared %v: %d, want 413", n, declared, reply.Code)
				}
				continue
			}
			if reply.Code != 200 || string(w.store.events[0].Payload) != text {
				t.Errorf("%d bytes, declared %v: %d, or another body", n, declared, reply.Code)
			}
		}
	}
}

// Callbacks and events do not take each other's slots.
func TestCallbacksHaveTheirOwnSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "max_inbound 1")
		w.store.hold, w.store.held = make(chan struct{}), make(chan struct{})
		h := w.handler()
		done := make(chan int)
		go func() { done <- ask(h, "POST", "/webhooks/plain", "{}").Code }()
		<-w.store.held
		if got := ask(h, "POST", "/callback/x", "{}").Code; got != 404 {
			t.Errorf("a callback beside an event in the only slot: %d, want 404 as of a token that is not good", got)
		}
		close(w.store.hold)
		if got := <-done; got != 200 {
			t.Errorf("the event: %d, want 200", got)
		}
	})
}

// Half of large callbacks do not keep other callbacks from being served, whether one client
// sends them or many.
func TestHalfCallbacks(t *testing.T) {
	for _, inbound := range []string{"1", "2", "3", "8"} {
		for name, from := range map[string]func(int) string{
			"one client":   func(int) string { return "192.0.2.1" },
			"many clients": func(i int) string { return fmt.Sprintf("198.51.100.%d", i+1) },
		} {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, newWorld(t, "max_inbound "+inbound).handler(), wide)
				for i := range 50 {
					s.call(from(i)).say(half("/callback/x", largeBody))
				}
				c, begun := s.call("192.0.2.2"), time.Now()
				c.say(wholeRequest("/callback/x", small))
				if got := c.answer(); got != "404" || time.Since(begun) > time.Second {
					t.Errorf("max_inbound %s, a callback beside half ones of %s: %s after %v, want 404 at once", inbound, name, got, time.Since(begun))
				}
			})
		}
	}
}

// However small max_inbound is, half of a large body leaves another client a slot for its
// large body.
func TestHalfLargeBodiesOfASmallGateway(t *testing.T) {
	for _, inbound := range []string{"2", "3"} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, newWorld(t, "max_inbound "+inbound).handler(), wide)
			for range 10 {
				s.call("192.0.2.1").say(half("/webhooks/plain", largeBody))
			}
			c, begun := s.call("192.0.2.2"), time.Now()
			c.say(wholeRequest("/webhooks/plain", largeBody))
			if got := c.answer(); got != "200" || time.Since(begun) > time.Second {
				t.Errorf("max_inbound %s: a large body of another client: %s after %v, want 200 at once", inbound, got, time.Since(begun))
			}
		})
	}
}

// A full waiting room takes in a client with few requests, and turns away the newest request
// of the client with the most.
func TestFullWaitingRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "max_inbound 1")
		w.store.hold, w.store.held = make(chan struct{}), make(chan struct{}, 5000)
		reasons := make(chan string, 5000)
		w.settings.Refused = func(reason string) { reasons <- reason }
		h := w.handler()
		enter := func(client string) <-chan int {
			done := make(chan int, 1)
			go func() {
				r := httptest.NewRequest("POST", "/webhooks/plain", strings.NewReader("{}"))
				r.RemoteAddr = client + ":4711"
				reply := httptest.NewRecorder()
				h.ServeHTTP(reply, r)
				done <- reply.Code
			}()
			return done
		}
		var crowd []<-chan int
		for i := range 4 {
			for range 300 {
				crowd = append(crowd, enter(fmt.Sprintf("192.0.2.%d", i+1)))
			}
		}
		synctest.Wait()
		single := enter("198.51.100.1")
		synctest.Wait()
		if n := len(reasons); n < 4*300-1024 || n > 4*300-1024+5 {
			t.Errorf("%d requests were turned away at once, want those beyond 1024 and few more", n)
		}
		for range 6 { // the request in the slot, one request of each of the four clients, and the lone one
			w.store.hold <- struct{}{}
			synctest.Wait()
		}
		select {
		case got := <-single:
			if got != 200 {
				t.Errorf("the only request of its client: %d, want 200", got)
			}
		default:
			t.Error("the only request of its client has no slot after each client had one")
		}
		close(w.store.hold)
		for _, done := range crowd {
			<-done
		}
	})
}

// A slot that becomes free goes to clients in turn.
func TestClientsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "max_inbound 1")
		w.store.hold, w.store.held = make(chan struct{}), make(chan struct{}, 20)
		h := w.handler()
		order := make(chan string, 20)
		enter := func(client string) {
			go func() {
				r := httptest.NewRequest("POST", "/webhooks/plain", strings.NewReader("{}"))
				r.RemoteAddr = client + ":4711"
				reply := httptest.NewRecorder()
				h.ServeHTTP(reply, r)
				order <- fmt.Sprintf("%s %d", client, reply.Code)
			}()
			synctest.Wait()
		}
		for range 5 {
			enter("192.0.2.1")
		}
		enter("192.0.2.2")
		for range 6 {
			w.store.hold <- struct{}{} // lets one request through
			synctest.Wait()
		}
		var got []string
		for range 6 {
			got = append(got, <-order)
		}
		if got[2] != "192.0.2.2 200" && got[1] != "192.0.2.2 200" {
			t.Errorf("served in the order %q; want 192.0.2.2 second or third", got)
		}
	})
}

// A request waits for a slot for a second, and no longer.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "max_inbound 1")
		w.store.hold, w.store.held = make(chan struct{}), make(chan struct{}, 20)
		h, begun := w.handler(), time.Now()
		done := make(chan int)
		go func() { done <- ask(h, "POST", "/webhooks/plain", "{}").Code }()
		<-w.store.held
		got := ask(h, "POST", "/webhooks/plain", "{}")
		if took := time.Since(begun); got.Code != 503 || took != time.Second || got.Header().Get("Retry-After") != "1" {
			t.Errorf("a request beside one in the only slot: %d after %v, Retry-After %q; want 503 after 1s, 1", got.Code, took, got.Header().Get("Retry-After"))
		}
		close(w.store.hold)
		<-done
		if got := ask(h, "POST", "/webhooks/plain", "{}").Code; got != 200 {
			t.Errorf("a request after that: %d, want 200", got)
		}
	})
}

// Behind a proxy, connections are not bounded by client. Half-sent bodies are.
func TestHalfBodiesFromBehindAProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newWorld(t, "trust_proxy").handler(), wide)
		post := func(client, text string) *call {
			c := s.call("192.0.2.1")
			c.say(strings.Replace(text, "Host: x\r\n", "Host: x\r\nX-Forwarded-For: "+client+"\r\n", 1))
			return c
		}
		for range 256 {
			post("198.51.100.1", half("/webhooks/plain", small))
		}
		if got := post("198.51.100.1", half("/webhooks/plain", small)).answer(); got != "503" {
			t.Errorf("the 257th half body of a client: %s, want 503", got)
		}
		if got := post("198.51.100.2", wholeRequest("/webhooks/plain", small)).answer(); got != "200" {
			t.Errorf("a body of another client: %s, want 200", got)
		}
	})
}

// The requests of operators that do not read their replies leave slots for events.
func TestOperatorsTakeAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "max_inbound 8")
		h := w.handler()
		stuck := &stuckWriter{httptest.NewRecorder(), make(chan struct{})}
		var ended [20]chan struct{}
		for i := range ended {
			ended[i] = make(chan struct{})
			go func() {
				defer close(ended[i])
				h.ServeHTTP(stuck, httptest.NewRequest("GET", "/api/events", nil))
			}()
		}
		synctest.Wait()
		if got := ask(h, "POST", "/webhooks/plain", "{}").Code; got != 200 {
			t.Errorf("an event beside 20 replies that nobody reads: %d, want 200", got)
		}
		close(stuck.read)
		for _, e := range ended {
			<-e
		}
	})
}

// A stuckWriter is a response writer whose writes wait until the client reads.
type stuckWriter struct {
	*httptest.ResponseRecorder
	read chan struct{}
}

func (s *stuckWriter) Header() http.Header { return http.Header{} }

func (s *stuckWriter) WriteHeader(int) {}

func (s *stuckWriter) Write(p []byte) (int, error) {
	<-s.read
	return len(p), nil
}
