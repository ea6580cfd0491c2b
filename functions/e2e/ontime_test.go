//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/wait"
)

// onTimeRuns is the number of runs and events that TestOnTime measures: 3, or the number in
// GATEWAY_TEST_ONTIME. With that variable, two processes keep the CPUs busy during the test.
func onTimeRuns(t *testing.T) (n int, busy bool) {
	text := os.Getenv("GATEWAY_TEST_ONTIME")
	if text == "" {
		return 3, false
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("GATEWAY_TEST_ONTIME=%q, want a number of runs", text)
	}
	return n, true
}

// compute keeps a CPU busy until the test is over.
func compute(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the context is canceled before cleanups run
}

// A punctuality is the delays of one kind of work.
type punctuality struct {
	mu   sync.Mutex
	late []time.Duration
}

func (p *punctuality) note(late time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = append(p.late, late)
}

func (p *punctuality) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(p.late)
	at := func(q float64) time.Duration {
		return p.late[min(len(p.late)-1, int(q*float64(len(p.late))))].Round(time.Millisecond)
	}
	return fmt.Sprintf("%d, p50 %v, p99 %v, max %v", len(p.late), at(0.5), at(0.99), at(1))
}

// TestOnTime: a wait after a callback and a retry continue in time although the schedule never
// invokes the worker. Functions without work stay idle. The delays are printed and not judged:
// the machine may be busy.
func TestOnTime(t *testing.T) {
	everywhere(t, func(t *testing.T, db *database) {
		n, busy := onTimeRuns(t)
		d, r := newStory(t, db)
		var waits, retries punctuality
		if busy {
			compute(t)
			compute(t)
		}
		back := make(chan string, n)
		r.On("/ask", asking(back))
		r.On("/orders", func(i int, w http.ResponseWriter, _ *http.Request) {
			if i%2 == 1 {
				w.Header().Set("Retry-After", "3") // longer than the backoff with its jitter
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
		for i := range n {
			d.send("/events/approval.wanted", `{}`)
			url, called := <-back, time.Time{}
			wait.For(t, 30*time.Second, "the callback is taken", func() bool {
				a, err := ask("POST", url, `{"by": "desk"}`)
				called = time.Now()
				return err == nil && a.status == 200
			})
			waits.note(r.Await(t, 30*time.Second, "/notify", i+1)[i].At.Sub(called) - time.Second)
			d.send("/events/order.created", `{}`)
			tried := r.Await(t, 60*time.Second, "/orders", 2*i+2)
			retries.note(tried[2*i+1].At.Sub(tried[2*i].At) - 3*time.Second)
		}
		d.awaitIdle(30 * time.Second)
		load, _ := os.ReadFile("/proc/loadavg")
		t.Logf("waits of 1s behind a callback: %v late; retries after 3s: %v late; load %s", &waits, &retries, strings.TrimSpace(string(load)))
		calls := len(d.service.Calls())
		if calls > 4*n {
			t.Errorf("%d nudges for %d runs and events, want at most four for each pair", calls, n)
		}
		goesBy(t, 3*time.Second)
		if more := len(d.service.Calls()) - calls; more > 0 {
			t.Errorf("%d nudges with nothing left to do, want none", more)
		}
		d.stop()
		db.sound()
	})
}
