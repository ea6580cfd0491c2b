package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// told returns the events or errors that are read from a text, with their lines.
func told(ctx context.Context, r io.Reader, most int) (got []string) {
	for e, err := range exportedEvents(ctx, r, most) {
		if err != nil {
			got = append(got, fmt.Sprintf("%d: %v", e.line, err))
			continue
		}
		got = append(got, fmt.Sprintf("%d: %s %s %s", e.line, e.Source, e.EventType, e.Payload))
	}
	return got
}

const anyEvent = `{"source":"s","event_type":"t","payload":1}`

func TestExportedEvents(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"blank", "\n \n\t\r\n", ""},
		{"no line break at the end", anyEvent, "1: s t 1"},
		{"blank lines count", "\n\n" + anyEvent + "\r\n\n" + anyEvent + "\n", "3: s t 1; 5: s t 1"},
		{"byte order mark", "\ufeff" + anyEvent, "1: s t 1"},
		{"unknown fields", `{"source":"s","event_type":"t","payload":1,"more":{}}`, "1: s t 1"},
		{"bytes of a payload", `{"source":"s","event_type":"t","payload": {"b":1.50, "a":1e400, "b":2}}`, `1: s t {"b":1.50, "a":1e400, "b":2}`},
		{"null", `{"source":"s","event_type":"t","payload":null}`, "1: s t null"},
		{"string", `{"source":"s","event_type":"t","payload":"x"}`, `1: s t "x"`},
		{"text", `{"source":"s","event_type":"t","payload":"x","payload_encoding":"text"}`, "1: s t x"},
		{"empty text", `{"source":"s","event_type":"t","payload":"","payload_encoding":"text"}`, "1: s t "},

		{"nonsense", "x\n" + anyEvent, "1: it is no JSON object; 2: s t 1"},
		{"cut off", `{"source":`, "1: it is no JSON object: unexpected end of JSON input"},
		{"list", "[]", "1: it is no JSON object"},
		{"two", anyEvent + anyEvent, "1: it is no JSON object: invalid character '{' after top-level value"},
		{"no source", `{"event_type":"t","payload":1}`, "1: source is missing"},
		{"no type", `{"source":"s","payload":1}`, "1: event_type is missing"},
		{"no payload", `{"source":"s","event_type":"t"}`, "1: payload is missing"},
		{"source of a wrong type", `{"source":1,"event_type":"t","payload":1}`, "1: source is not of the right type"},
		{"source that leads elsewhere", `{"source":"..","event_type":"t","payload":1}`, `1: source must be a name, not ".."`},
		{"type that leads elsewhere", `{"source":"s","event_type":"..","payload":1}`, `1: event_type must be 1 to 128 characters of A-Z a-z 0-9 . _ : / - without ".."`},
		{"time", `{"source":"s","event_type":"t","payload":1,"created_at":"x"}`, `1: created_at: "x" is not a time: write 2006-01-02T15:04:05 (UTC), or a date`},
		{"text that is none", `{"source":"s","event_type":"t","payload":1,"payload_encoding":"text"}`, "1: payload must be a string, since payload_encoding is text"},
		{"encoding", `{"source":"s","event_type":"t","payload":1,"payload_encoding":"hex"}`, `1: payload_encoding must be text, base64 or none, or left out; not "hex"`},
		{"base64", `{"source":"s","event_type":"t","payload":"/w=","payload_encoding":"base64"}`, `1: payload must be base64, since payload_encoding says so: illegal base64 data at input byte 3`},
		{"base64 of a number", `{"source":"s","event_type":"t","payload":1,"payload_encoding":"base64"}`, `1: payload must be a string, since payload_encoding is base64`},
	} {
		if got := strings.Join(told(t.Context(), strings.NewReader(c.text), 1000), "; "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestExportedEventsTooLong: a line of any length is skipped, and the next line is read.
func TestExportedEventsTooLong(t *testing.T) {
	for _, most := range []int{len(anyEvent) + 1, 70_000, 200_000} {
		fits := anyEvent + strings.Repeat(" ", most-len(anyEvent)-1) + "\n"
		long := strings.Repeat("x", most) + "\n"
		text := fits + long + anyEvent + "\n" + long + long + fits + strings.Repeat("x", 3*most)
		tooLong := fmt.Sprintf("it is longer than %d bytes", most)
		want := []string{"1: s t 1", "2: " + tooLong, "3: s t 1", "4: " + tooLong, "5: " + tooLong, "6: s t 1", "7: " + tooLong}
		if diff := cmp.Diff(want, told(t.Context(), strings.NewReader(text), most)); diff != "" {
			t.Errorf("lines of up to %d bytes (-want +got):\n%s", most, diff)
		}
	}
}

func TestExportedEventsReadError(t *testing.T) {
	broken := io.MultiReader(strings.NewReader(anyEvent+"\n"), iotest.ErrReader(errors.New("disk on fire")))
	if got := strings.Join(told(t.Context(), broken, 1000), "; "); got != "1: s t 1; 0: disk on fire" {
		t.Errorf("read %s", got)
	}
}

// TestExportedEventsInterrupted: a pipe without data does not delay an interrupt.
func TestExportedEventsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		defer w.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if got := strings.Join(told(ctx, r, 1000), "; "); got != "0: context deadline exceeded" {
			t.Errorf("read %s", got)
		}
	})
}

// TestExportReadsBack: for any received payload, the exported line gives an equal payload and
// is no longer than lineFor allows.
func TestExportReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.OneOf(
			rapid.String(),
			rapid.StringMatching(`\{"[a-z]{0,3}":[0-9]{1,3}\.[0-9]{1,3}0\}`),
			rapid.SampledFrom([]string{"", `""`, `"\u00e9\ud800"`, "{\"a\u2028\u202e\": \"\u009b\"}", "null", " 1", "\x00\x01\x7f", "a=b&c=<d>"}),
		).Draw(t, "payload")
		event := core.Event{ID: "01J90000000000000000000001", Source: "shop", Type: "order.created", Payload: []byte(payload),
			Headers: map[string]string{"ce-id": payload}, CreatedAt: time.UnixMilli(1727776800125)}
		line, err := wire.EventOf(manage.Told{Event: event}).Line()
		if err != nil {
			t.Fatal(err)
		}
		shown := terminal.VisibleJSON(line)
		if terminal.Visible(strings.TrimSuffix(string(shown), "\n")) != strings.TrimSuffix(string(shown), "\n") {
			t.Errorf("line %q is not harmless", shown)
		}
		if len(shown) > lineFor(len(payload)) {
			t.Errorf("a payload of %d bytes has a line of %d, more than %d", len(payload), len(shown), lineFor(len(payload)))
		}
		for e, err := range exportedEvents(context.Background(), strings.NewReader(string(shown)), lineFor(len(payload))) {
			if err != nil {
				t.Fatalf("line %q: %v", shown, err)
			}
			if !samePayload(payload, string(e.Payload)) {
				t.Errorf("payload %q is read back as %q", payload, e.Payload)
			}
			if e.Headers["ce-id"] != payload || !e.received.Equal(event.CreatedAt) {
				t.Errorf("read back as %+v", e)
			}
		}
	})
}

// TestLineFor: the longest line of the largest payload is within the bound.
func TestLineFor(t *testing.T) {
	const size = 1 << 20
	event := core.Event{ID: "01J90000000000000000000001", Source: "s", Type: "t", Payload: []byte(strings.Repeat("\x01", size))}
	line, err := wire.EventOf(manage.Told{Event: event}).Line()
	if err != nil || len(line) < 6*size || len(line) > lineFor(size) {
		t.Errorf("a payload of %d bytes has a line of %d, and %d are read (%v)", size, len(line), lineFor(size), err)
	}
	if got := lineFor(0); got != leastLine {
		t.Errorf("at least %d bytes of a line are read, want %d", got, leastLine)
	}
}

// samePayload reports whether two payloads are the same text, or the same JSON document.
func samePayload(a, b string) bool {
	return a == b || string(terminal.VisibleJSON(terminal.Indented([]byte(a)))) == string(terminal.VisibleJSON(terminal.Indented([]byte(b))))
}

func TestPicker(t *testing.T) {
	e := exported{Source: "shop", EventType: "order.created", received: time.Unix(1727776800, 0), Jobs: []exportedJob{{core.Completed}, {core.Dead}}}
	for _, c := range []struct {
		name string
		pick picker
		want bool
	}{
		{"everything", picker{}, true},
		{"source", picker{EventFilter: core.EventFilter{Source: "shop"}}, true},
		{"other source", picker{EventFilter: core.EventFilter{Source: "sho"}}, false},
		{"type", picker{EventFilter: core.EventFilter{Type: "order.created"}}, true},
		{"beginning of a type", picker{EventFilter: core.EventFilter{Type: "order.*"}}, true},
		{"every type", picker{EventFilter: core.EventFilter{Type: "*"}}, true},
		{"the whole type and more", picker{EventFilter: core.EventFilter{Type: "order.created*"}}, true},
		{"other beginning", picker{EventFilter: core.EventFilter{Type: "orders*"}}, false},
		{"beginning without a star", picker{EventFilter: core.EventFilter{Type: "order."}}, false},
		{"since then", picker{EventFilter: core.EventFilter{Since: e.received}}, true},
		{"since later", picker{EventFilter: core.EventFilter{Since: e.received.Add(1)}}, false},
		{"until later", picker{EventFilter: core.EventFilter{Until: e.received.Add(1)}}, true},
		{"until then", picker{EventFilter: core.EventFilter{Until: e.received}}, false},
		{"status of one job", picker{status: core.Dead}, true},
		{"status of none", picker{status: core.Retryable}, false},
	} {
		if got := c.pick.picks(e); got != c.want {
			t.Errorf("%s: picks = %v, want %v", c.name, got, c.want)
		}
		if got := c.pick.all(); got != (c.name == "everything") {
			t.Errorf("%s: all = %v", c.name, got)
		}
	}
	for _, f := range []core.EventFilter{{Since: e.received}, {Until: e.received}} {
		if (picker{EventFilter: f}).picks(exported{}) {
			t.Errorf("%+v picks an event that does not say when it was received", f)
		}
	}
}
