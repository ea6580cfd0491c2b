package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/pull"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// A dock is a receiver that holds deliveries until it is opened.
type dock struct {
	*httptest.Server
	mu      sync.Mutex
	bodies  []string
	opened  chan struct{}
	refuses string // part of the bodies that it refuses
}

func newDock(t *testing.T) *dock {
	r := &dock{opened: make(chan struct{})}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body := make([]byte, req.ContentLength)
		_, _ = req.Body.Read(body)
		r.mu.Lock()
		r.bodies = append(r.bodies, string(body))
		r.mu.Unlock()
		<-r.opened
		if r.refuses != "" && strings.Contains(string(body), r.refuses) {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *dock) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.bodies...)
}

// linedYAML is a configuration with a handler and a queue in lines.
const linedYAML = `
server: {allow_private_urls: true}
sources: {shop: {type: event}}
handlers:
  lined: {source: shop, url: %q, retry: {max: 1}, circuit_breaker: off, lines: %s}
queues:
  lined: {source: shop, max_attempts: 1, lines: %s}
`

// TestLinesOfAProgram: a program delivers one job of a line after the other. A reload with a higher
// limit admits more of the jobs that wait, and one without lines admits all.
func TestLinesOfAProgram(t *testing.T) {
	for _, after := range []struct {
		lines string
		want  int // deliveries at the same time
	}{{"{key: $.k, limit: 3}", 3}, {"null", 5}} {
		t.Run(after.lines, func(t *testing.T) {
			r := newDock(t)
			s := openStore(t, filepath.Join(t.TempDir(), "gateway.db"))
			deps := gateway.Deps{Store: s, Clock: core.SystemClock, Log: slog.New(slog.DiscardHandler), SoleTaker: true}
			configured := func(lines string) string { return fmt.Sprintf(linedYAML, r.URL, lines, lines) }
			p, err := gateway.NewProgram(load(t, configured("{key: $.k}")), deps)
			if err != nil {
				t.Fatal(err)
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			served := make(chan error)
			go func() { served <- p.Serve(ctx, l) }()
			for i := range 5 {
				post(t, "http://"+l.Addr().String()+"/events/shop/t", fmt.Sprintf(`{"k": "a", "n": %d}`, i))
			}
			wait.For(t, 20*time.Second, "the first delivery", func() bool { return len(r.got()) == 1 })
			time.Sleep(100 * time.Millisecond)
			if n := len(r.got()); n != 1 {
				t.Errorf("%d deliveries at the same time, want 1", n)
			}
			if result, err := p.Reload(t.Context(), core.BySignal, "", load(t, configured(after.lines))); result != core.ReloadApplied {
				t.Fatal(result, err)
			}
			wait.For(t, 20*time.Second, "more deliveries after the reload", func() bool { return len(r.got()) >= after.want })
			time.Sleep(100 * time.Millisecond)
			if n := len(r.got()); n != after.want {
				t.Errorf("%d deliveries at the same time after the reload, want %d", n, after.want)
			}
			close(r.opened)
			wait.For(t, 20*time.Second, "all deliveries", func() bool { return len(r.got()) == 5 })
			cancel()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRulesOfLines: on_dead reaches the worker and the consumers of queues.
func TestRulesOfLines(t *testing.T) {
	for _, onDead := range []string{"hold", "skip"} {
		t.Run(onDead, func(t *testing.T) {
			r := newDock(t)
			close(r.opened)
			r.refuses = `"n": 0`
			s := openStore(t, filepath.Join(t.TempDir(), "gateway.db"))
			lines := "{key: $.k, on_dead: " + onDead + "}"
			g := newGateway(t, load(t, fmt.Sprintf(linedYAML, r.URL, lines, lines)), s)
			server := httptest.NewServer(g.Handler())
			defer server.Close()
			for i := range 2 {
				post(t, server.URL+"/events/shop/t", fmt.Sprintf(`{"k": "a", "n": %d}`, i))
			}
			if _, err := g.Worker.Tick(t.Context(), core.Budget{}); err != nil {
				t.Fatal(err)
			}
			request := pull.Request{Queue: "lined", N: 10}
			first, err := g.Puller.Receive(t.Context(), request)
			if err != nil || len(first) != 1 {
				t.Fatalf("Receive = %d messages, %v, want 1", len(first), err)
			}
			if _, dead, err := g.Puller.Nack(t.Context(), "lined", []string{pull.Receipt(first[0])}, 0); err != nil || dead != 1 {
				t.Errorf("Nack = %d dead, %v, want 1", dead, err)
			}
			second, err := g.Puller.Receive(t.Context(), request)
			want := map[string]int{"hold": 0, "skip": 1}[onDead]
			if err != nil || len(second) != want || len(r.got()) != 1+want {
				t.Errorf("after a dead job %d messages and %d deliveries, %v; want %d each", len(second), len(r.got())-1, err, want)
			}
		})
	}
}
