//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/wait"
)

const pollConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
sources: {app: {type: event}}
queues: {mail: {source: app}}
`

const (
	maxPolls = 750 // at once, from one client address

	pollMessages = 20

	// Bounds for the cost of waiting polls: far above the measured cost, and far below the
	// cost of one database poll for each of them.
	pollMemory = 100 << 20
	pollCPU    = 0.1 // of one core
)

// TestPolls: waiting consumers cost little, and do not delay other requests. Each new message
// goes to one of them. A gateway that shuts down answers each of them.
func TestPolls(t *testing.T) {
	tests := []struct {
		name string
		on   func(testing.TB) *store
		more bool // whether a second process can accept messages
	}{
		{"SQLite", ownFile, false},
		{"PostgreSQL", onPostgres, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := tt.on(t)
			g := newGatewayOn(t, st, pollConfig, nil)
			g.start()
			q := queue{g: g, name: "mail"}
			alone := g.cpu(look() / 5)
			before := g.memory("VmRSS")
			c := park(q)
			c.full()
			parked := g.cpu(look())
			grown := g.memory("VmRSS") - before
			t.Logf("%d polls: %.2f %% CPU, without any %.2f %%; %.1f MiB more resident memory", maxPolls, 100*parked, 100*alone, float64(grown)/(1<<20))
			if parked > pollCPU || grown > pollMemory {
				t.Errorf("%d polls cost %.1f %% CPU and %d MiB, want at most %.0f %% and %d MiB", maxPolls, 100*parked, grown>>20, 100*pollCPU, pollMemory>>20)
			}
			if !g.healthy() {
				t.Error("/health does not answer 200 beside parked polls")
			}
			var waits []time.Duration
			for range pollMessages {
				waits = append(waits, c.deliver(g))
			}
			t.Logf("messages were received %v (p50) to %v after they were sent", percentile(waits, 50), percentile(waits, 100))
			left := maxPolls - pollMessages
			if tt.more {
				other := newGatewayOn(t, st, pollConfig, nil)
				other.start()
				t.Logf("a message of another process was received %v after it was sent", c.deliver(other))
				left--
			}
			g.signal(syscall.SIGTERM)
			for range left {
				if got := c.next(); got.status != http.StatusOK || len(got.Messages) != 0 || got.Messages == nil {
					t.Fatalf("a poll was answered %d %v, %v at the end, want 200 and no messages", got.status, got.Messages, got.err)
				}
			}
			if code := g.wait(10 * time.Second); code != 0 {
				t.Errorf("exit code after SIGTERM = %d, want 0", code)
			}
		})
	}
}

// look is the duration of a measurement.
func look() time.Duration {
	if testing.Short() {
		return time.Second
	}
	return 5 * time.Second
}

// pollers are maxPolls consumers with one poll each.
type pollers struct {
	queue
	answers chan polling
}

type polling struct {
	messages
	status int
	at     time.Time
	err    error
}

func park(q queue) *pollers {
	c := &pollers{q, make(chan polling, maxPolls)}
	for range maxPolls {
		go func() { c.answers <- c.poll() }()
	}
	return c
}

// poll polls until the gateway has a free place for it.
func (c *pollers) poll() (p polling) {
	for range 1000 {
		a, err := c.ask(context.Background(), http.MethodGet, "/messages?wait=30s", "", nil)
		p = polling{status: a.status, at: time.Now(), err: err}
		if err == nil && a.status == http.StatusOK {
			p.err = json.Unmarshal([]byte(a.body), &p.messages)
		}
		if a.status != http.StatusServiceUnavailable {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	return p
}

// full waits until there is no place for another poll.
func (c *pollers) full() {
	c.g.t.Helper()
	wait.For(c.g.t, 20*time.Second, "no room for one more poll", func() bool {
		a, err := c.ask(context.Background(), http.MethodGet, "/messages", "", nil)
		if err != nil || a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") == "" {
			c.g.t.Fatalf("a poll is answered %d %q, %v, want 200, or 503 with Retry-After", a.status, a.body, err)
		}
		return a.status == http.StatusServiceUnavailable
	})
}

// next returns the next answer.
func (c *pollers) next() polling {
	c.g.t.Helper()
	select {
	case p := <-c.answers:
		return p
	case <-time.After(20 * time.Second):
		c.g.t.Fatal("no answer to a poll within 20s")
		return polling{}
	}
}

// deliver sends one message to a gateway and returns the time until a poller had it.
func (c *pollers) deliver(g *gateway) time.Duration {
	c.g.t.Helper()
	began := time.Now()
	event := g.send("/events/mail.sent", `{}`)
	p := c.next()
	if p.status != http.StatusOK || len(p.Messages) != 1 || p.Messages[0].EventID != event || p.Messages[0].Attempt != 1 {
		c.g.t.Fatalf("a poll was answered %d %+v, %v, want the first attempt of event %s alone", p.status, p.Messages, p.err, event)
	}
	return p.at.Sub(began).Round(100 * time.Microsecond)
}

// cpu returns the share of a core that the gateway uses during a time.
func (g *gateway) cpu(over time.Duration) float64 {
	g.t.Helper()
	before := g.ticks()
	<-time.After(over)
	const ticks = 100 // per second, on every Linux
	return float64(g.ticks()-before) / ticks / over.Seconds()
}

// ticks returns the CPU time of the gateway, in the unit of /proc.
func (g *gateway) ticks() (sum int) {
	g.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", g.pid()))
	if err != nil {
		g.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest) // from the third field on
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			g.t.Fatal(err)
		}
		sum += n
	}
	return sum
}
