package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// burst counts how many of n requests of one client at the same moment are not refused.
func burst(h http.Handler, n int, client string) (passed int) {
	for range n {
		r := httptest.NewRequest("GET", "/nothing", nil)
		r.RemoteAddr = client
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusTooManyRequests {
			passed++
		}
	}
	return passed
}

func rated(perSecond int) http.Handler {
	return Handler(Settings{IPRateLimit: perSecond, MaxInbound: 1}, Callback(CallbackOptions{}))
}

// After silence, as many requests pass in the first second as the limit says, whenever that
// second begins. A window that slides over the seconds of the clock let fewer pass
// (ip_rate_limit: 3 let 2 pass).
func TestRateAfterSilence(t *testing.T) {
	for _, limit := range []int{1, 2, 3, 5, 100} {
		for phase := time.Duration(0); phase < time.Second; phase += 83 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				h := rated(limit)
				for _, silence := range []time.Duration{phase, time.Second, 1050 * time.Millisecond, time.Minute + phase} {
					time.Sleep(silence)
					got := burst(h, limit/2, "192.0.2.1:1")
					time.Sleep(400 * time.Millisecond)
					got += burst(h, 2*limit, "192.0.2.1:2")
					time.Sleep(400 * time.Millisecond)
					got += burst(h, 2*limit, "192.0.2.1:3")
					if got != limit {
						t.Errorf("ip_rate_limit %d, phase %v: %d passed in the second after a silence of %v, want %d", limit, phase, got, silence, limit)
					}
				}
			})
		}
	}
}

// A client that never stops gets the limit, and no more over any time than the limit and one
// burst.
func TestRateUnderLoad(t *testing.T) {
	for _, limit := range []int{1, 3, 50} {
		for _, every := range []time.Duration{time.Millisecond, 7 * time.Millisecond, 20 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				h, passed := rated(limit), 0
				const seconds = 20
				for begin := time.Now(); time.Since(begin) < seconds*time.Second; time.Sleep(every) {
					passed += burst(h, 1, "192.0.2.1:1")
				}
				offered := int(time.Second / every)
				if least, most := (seconds-1)*min(limit, offered), (seconds+1)*limit; passed < least || passed > most {
					t.Errorf("ip_rate_limit %d, a request each %v: %d passed in %d s, want %d to %d", limit, every, passed, seconds, least, most)
				}
			})
		}
	}
}

// The reply to a refused client says when its next request may pass.
func TestRateSaysWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := rated(2)
		time.Sleep(700 * time.Millisecond)
		burst(h, 2, "192.0.2.1:1")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, &http.Request{Method: "GET", RemoteAddr: "192.0.2.1:1", URL: httptest.NewRequest("GET", "/", nil).URL})
		if got := w.Header().Get("Retry-After"); w.Code != 429 || got != "1" {
			t.Errorf("a third request: %d, Retry-After %q; want 429, 1", w.Code, got)
		}
		time.Sleep(time.Second)
		if got := burst(h, 4, "192.0.2.1:1"); got != 2 {
			t.Errorf("%d of 4 passed a second later, want 2", got)
		}
	})
}

// Clients are counted apart, an IPv6 client by its network.
func TestRateOfEachClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := rated(2)
		for _, c := range []struct {
			client string
			want   int
		}{
			{"192.0.2.1:1", 2}, {"192.0.2.2:1", 2}, {"192.0.2.1:2", 0}, {"[::ffff:192.0.2.2]:1", 0},
			{"[2001:db8::1]:1", 2}, {"[2001:db8::2]:1", 0}, {"[2001:db8:0:1::1]:1", 2}, {"", 2}, {"?", 0},
		} {
			if got := burst(h, 5, c.client); got != c.want {
				t.Errorf("client %q: %d of 5 passed, want %d", c.client, got, c.want)
			}
		}
	})
}

// A client that keeps sending is remembered while other clients come and go.
func TestRateRemembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := rated(3)
		for n := range 50 {
			if got := burst(h, 5, "192.0.2.1:1"); got != 3 {
				t.Errorf("second %d: %d of 5 passed, want 3", n, got)
			}
			for part := range 9 {
				time.Sleep(100 * time.Millisecond)
				burst(h, 1, fmt.Sprintf("198.51.100.%d:1", part))
				if got := burst(h, 1, "192.0.2.1:1"); got != 0 {
					t.Errorf("second %d, part %d: a request above the limit passed", n, part)
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// The memory of the limit is bounded for any number of clients.
func TestRateIsBounded(t *testing.T) {
	l := newRate(1)
	client := func(n int) netip.Addr {
		return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
	}
	for n := range 3*maxRated + 7 {
		if !l.pass(client(n)) {
			t.Fatalf("client %d was refused its first request", n)
		}
		if known := len(l.recent) + len(l.older); known > 2*maxRated {
			t.Fatalf("%d clients are known after %d, want at most %d", known, n, 2*maxRated)
		}
	}
	if l.pass(client(3*maxRated + 6)) {
		t.Error("the last client was forgotten at once")
	}
}

func BenchmarkRate(b *testing.B) {
	l := newRate(1000)
	b.ReportAllocs()
	for n := range b.N {
		l.pass(netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}))
	}
}
