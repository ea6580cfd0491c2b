package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// exports is a service that yields n events, and then err if it is not nil.
type exports struct {
	eventService
	n       int
	err     error
	yielded int
}

func (e *exports) Export(context.Context, core.EventFilter, int, bool) iter.Seq2[manage.Told, error] {
	return func(yield func(manage.Told, error) bool) {
		for e.yielded < e.n {
			e.yielded++
			event := core.Event{ID: tailID(e.yielded), Source: "shop", Type: "order.created", Payload: fmt.Appendf(nil, `{"n": %d}`, e.yielded)}
			if !yield(manage.Told{Event: event}, nil) {
				return
			}
		}
		if e.err != nil {
			yield(manage.Told{}, e.err)
		}
	}
}

// TestExportFails: after an error, the events read so far are written in whole lines, and the
// command fails.
func TestExportFails(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, n := range []int{0, 1, 5000} {
		var out strings.Builder
		err := session{}.app(&out).exportFrom(t.Context(), &exports{n: n, err: broken}, core.EventFilter{}, 10_000)
		if !errors.Is(err, broken) || strings.Count(out.String(), "\n") != n {
			t.Errorf("after %d events: %d lines, %v", n, strings.Count(out.String(), "\n"), err)
		}
		for line := range strings.Lines(out.String()) {
			if !json.Valid([]byte(line)) {
				t.Fatalf("line %q is cut off", line)
			}
		}
	}
}

// TestExportUnread: an export stops reading events after the reader of stdout has ended.
func TestExportUnread(t *testing.T) {
	events := &exports{n: 1_000_000}
	err := session{}.app(closedPipe{}).exportFrom(t.Context(), events, core.EventFilter{}, events.n)
	if !errors.Is(err, syscall.EPIPE) || events.yielded > 5000 {
		t.Errorf("%v after %d events", err, events.yielded)
	}
}

// TestExportInterrupted: Ctrl-C ends an export while the server still sends, with exit code
// 130.
func TestExportInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Api-Version", "1")
		fmt.Fprintln(w, `{"id":"01J90000000000000000000001","source":"s","event_type":"t","payload":1,"headers":{},"jobs":[],"workflow_runs":[]}`)
		_ = http.NewResponseController(w).Flush()
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	code, stdout, stderr := session{}.run(ctx, "export", "events", "--url", server.URL)
	if code != exitInterrupted || stderr != "gateway: interrupted\n" || strings.Count(stdout, "\n") > 1 {
		t.Errorf("ends with %d, prints %q and says %q", code, stdout, stderr)
	}
}

// TestExportCutOff: an export fails if the server ends in the middle of it.
func TestExportCutOff(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Api-Version", "1")
		fmt.Fprintln(w, `{"id":"01J90000000000000000000001","source":"s","event_type":"t","payload":1,"headers":{},"jobs":[],"workflow_runs":[]}`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	code, stdout, stderr := session{}.run(t.Context(), "export", "events", "--url", server.URL)
	if code != exitFailed || strings.Count(stdout, "\n") != 1 || !strings.Contains(stderr, "broke off its answer") {
		t.Errorf("ends with %d, prints %q and says %q", code, stdout, stderr)
	}
}
