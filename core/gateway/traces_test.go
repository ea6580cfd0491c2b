package gateway_test

import (
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
)

// A tracer records the facts that it gets.
type tracer struct{ facts chan core.Fact }

func (tracer) Begin(core.Span) core.Span {
	return core.Span{Trace: [16]byte{1}, ID: [8]byte{2}, Flags: 1}
}

func (r tracer) Observe(f core.Fact) { r.facts <- f }

// The intake's span is stored with the event. The handler gets the attempt's span. The tracer
// gets facts with both.
func TestTraces(t *testing.T) {
	url, got := recorder(t)
	s := &spy{openStore(t, filepath.Join(t.TempDir(), "gateway.db")), make(chan core.Outcome, 100), make(chan int, 100), nil}
	told := tracer{make(chan core.Fact, 100)}
	g, err := gateway.New(load(t, billing(url, "timeout: 5s")), gateway.Deps{
		Store: s, Clock: core.SystemClock, Log: slog.New(slog.DiscardHandler), SoleTaker: true, Traces: told,
	})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(g.Handler())
	t.Cleanup(front.Close)
	w := &wired{g, s, front.URL}
	w.send(t)
	intake := told.Begin(core.Span{})
	accepted, ok := await(t, told.facts).(core.Accepted)
	if !ok || accepted.Event.Headers["traceparent"] != intake.String() {
		t.Errorf("reported %+v, want an event in %v", accepted, intake)
	}
	heard := await(t, got).Header.Get("Traceparent")
	settled, ok := await(t, told.facts).(core.Settled)
	if want := intake.Attempt(settled.Job).String(); !ok || heard != want || settled.Event.Headers["traceparent"] != intake.String() {
		t.Errorf("the handler heard of %s, and reported %+v; want %s in %v", heard, settled, want, intake)
	}
}
