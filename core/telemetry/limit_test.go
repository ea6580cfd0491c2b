package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A ledger counts the lines of a log, and the left-out lines that they report.
type ledger struct {
	mu    sync.Mutex
	lines []map[string]any
}

func (l *ledger) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var fields map[string]any
	if err := json.Unmarshal(line, &fields); err != nil {
		return 0, err
	}
	l.lines = append(l.lines, fields)
	return len(line), nil
}

// sum returns the number of written lines, and the number of all lines that they stand for.
func (l *ledger) sum() (written, all int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, fields := range l.lines {
		all++
		if n, ok := fields[Repeated].(float64); ok {
			all += int(n)
		}
	}
	return len(l.lines), all
}

func newLedger(t *testing.T, filter string) (*ledger, *slog.Logger) {
	t.Helper()
	l := &ledger{}
	log, err := NewLogger(LogOptions{Out: l, Format: "json", Filter: filter})
	if err != nil {
		t.Fatal(err)
	}
	return l, log
}

// floods returns functions that log a line of a request from outside. The values that a sender
// controls differ with i.
func floods(log *slog.Logger) map[string]func(i int) {
	observe := Log(log)
	web, http, in := log.With(Target, "web"), log.With(Target, "http"), log.With(Target, "intake")
	return map[string]func(i int){
		"wrong signatures": func(i int) {
			observe(core.Unverified{Source: "github", Reason: fmt.Sprintf("x-hub-signature-256 is %d s old", i), ClientIP: fmt.Sprintf("2001:db8::%x", i)})
		},
		"foreign topics": func(i int) {
			observe(core.Unverified{Source: "orders", Reason: fmt.Sprintf("topic %q is not listed in topic_arns", fmt.Sprint("arn:", i, `"x`))})
		},
		"refused":         func(i int) { observe(core.TurnedAway{Source: "github", Kind: core.Unauthorized}) },
		"unknown sources": func(i int) { observe(core.TurnedAway{Kind: core.NotFound}) },
		"duplicates": func(i int) {
			observe(core.Repeated{Source: "open", First: core.ID(fmt.Sprint(i)), Type: fmt.Sprint(i)})
		},
		"unknown callbacks": func(i int) { observe(core.CalledIn{Result: core.CallbackUnknown}) },
		"subscriptions":     func(i int) { observe(core.Confirmed{Source: "orders", Topic: fmt.Sprint("arn:", i)}) },
		"unusable types": func(i int) {
			in.Warn("unusable event type replaced", "source", "open", "from", "type", "event_type", fmt.Sprint(i))
		},
		"lost headers": func(i int) { in.Warn("headers not kept with the event", "source", "open", "first", fmt.Sprint(i)) },
		"failures": func(i int) {
			web.Error("request failed", "method", "POST", "route", "/webhooks/{source}", "error", fmt.Sprint(i))
		},
		"panics": func(i int) {
			web.Error("panic while serving a request", "route", "/x", "panic", i, "stack", fmt.Sprint(i))
		},
		"handshakes": func(i int) {
			slog.NewLogLogger(http.Handler(), slog.LevelDebug).Printf("http: TLS handshake error from 192.0.2.1:%d: EOF", i)
		},
	}
}

// TestFloodsAreALineASecond: the log has one line a second of each kind, at every level, though
// the senders vary all values that they control. The lines report exactly how many there were.
func TestFloodsAreALineASecond(t *testing.T) {
	for name := range floods(slog.New(slog.DiscardHandler)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lines, log := newLedger(t, "debug")
				flood := floods(log)[name]
				const seconds, each = 5, 2000
				for i := range seconds * each {
					flood(i)
					time.Sleep(time.Second / each)
				}
				if written, _ := lines.sum(); written > seconds+1 {
					t.Errorf("%d lines in %d seconds, want one a second", written, seconds)
				}
				time.Sleep(limitWindow)
				synctest.Wait()
				if _, all := lines.sum(); all != seconds*each {
					t.Errorf("a second after the end the lines tell of %d, want %d", all, seconds*each)
				}
				time.Sleep(2 * limitWindow)
				synctest.Wait()
				if l := log.Handler().(*filtering).limiter; len(l.buckets) != 0 || len(l.reasons) != 0 {
					t.Errorf("%d kinds and %d reasons are remembered, want none", len(l.buckets), len(l.reasons))
				}
			})
		})
	}
}

// TestKindsAreBounded: a sender that invents reasons or names gets no more lines, and the
// limiter uses no more memory.
func TestKindsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines, log := newLedger(t, "")
		observe := Log(log)
		const many = 10_000
		for i := range many {
			observe(core.Unverified{Source: "github", Reason: "reason " + strings.Repeat("x", i%5000) + fmt.Sprint(i)})
		}
		if written, _ := lines.sum(); written > maxReasons+1 {
			t.Errorf("%d lines for reasons that are made up, want at most %d", written, maxReasons+1)
		}
		for i := range many {
			observe(core.Unverified{Source: fmt.Sprint("source", i)})
		}
		l := log.Handler().(*filtering).limiter
		if len(l.buckets) > maxLimited+1 || len(l.reasons) > maxLimited+1 {
			t.Errorf("%d kinds and %d reasons are remembered, want at most %d", len(l.buckets), len(l.reasons), maxLimited)
		}
		Flush(log)
		if _, all := lines.sum(); all != 2*many {
			t.Errorf("the lines tell of %d, want %d", all, 2*many)
		}
		if len(l.buckets) != 0 {
			t.Errorf("%d kinds are remembered after Flush", len(l.buckets))
		}
	})
}

// TestDistinctLinesStay: each line that names an event, a job or a run is written, and so is
// each line that is not caused by a request. Two kinds do not delay each other.
func TestDistinctLinesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines, log := newLedger(t, "debug")
		observe := Log(log)
		const each = 100
		for i := range each {
			id := core.ID(fmt.Sprint(i))
			observe(core.Accepted{Event: core.Event{ID: id, Source: "open"}})
			observe(core.FilterFailed{Event: core.Event{ID: id, Source: "open"}, Undecided: core.Undecided{Lane: "handler/a"}})
			observe(core.Settled{Job: core.Job{ID: id, Lane: "handler/a"}, Outcome: core.Outcome{Status: core.Dead}})
			observe(core.CalledIn{Result: core.CallbackReceived, Run: core.Run{ID: id}})
			observe(core.Troubled{Doing: "take"})
		}
		if written, all := lines.sum(); written != 5*each || all != written {
			t.Errorf("%d lines that tell of %d, want %d of themselves", written, all, 5*each)
		}
		observe(core.Unverified{Source: "a", Reason: "x-signature is absent"})
		observe(core.Unverified{Source: "b", Reason: "x-signature is absent"})
		observe(core.Unverified{Source: "b", Reason: "x-signature does not match"})
		if written, _ := lines.sum(); written != 5*each+3 {
			t.Errorf("%d more lines, want one for each source and reason", written-5*each)
		}
	})
}

// TestRepeatedLine: the line at the end of a flood is the newest one, and has the number of the
// other lines that were left out.
func TestRepeatedLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		log, err := NewLogger(LogOptions{Out: &b, Format: "json"})
		if err != nil {
			t.Fatal(err)
		}
		observe := Log(log)
		for i := range 4 {
			observe(core.Unverified{Source: "a", Reason: "x is absent", ClientIP: fmt.Sprint("192.0.2.", i)})
		}
		time.Sleep(limitWindow)
		synctest.Wait()
		all := strings.Split(strings.TrimSpace(b.String()), "\n")
		const want = `"msg":"verification failed","target":"intake","source":"a","reason":"x is absent","client_ip":"192.0.2.3","repeated":2}`
		if len(all) != 2 || !strings.HasSuffix(all[1], want) {
			t.Errorf("%d lines, the last is %s, want two, that ending in %s", len(all), all[len(all)-1], want)
		}
		time.Sleep(3 * limitWindow)
	})
}

func BenchmarkFlood(b *testing.B) {
	log, err := NewLogger(LogOptions{Out: io.Discard, Format: "json"})
	if err != nil {
		b.Fatal(err)
	}
	observe := Log(log)
	b.ReportAllocs()
	for b.Loop() {
		observe(core.Unverified{Source: "github", Reason: "x-hub-signature-256 is absent", ClientIP: "192.0.2.1"})
	}
}
