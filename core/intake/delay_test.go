package intake

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

// TestDelays: the sender of an API event says when all of its jobs are due. Otherwise the delay of
// each consumer counts.
func TestDelays(t *testing.T) {
	at := received.Truncate(time.Millisecond)
	later := at.Add(90 * time.Minute).Truncate(time.Second)
	year := at.Add(core.MaxDelay)
	for name, c := range map[string]struct {
		headers []string
		kind    Kind
		want    []time.Time // of handler/now and of handler/slow, whose delay is a minute
	}{
		"no header":              {nil, Event, []time.Time{{}, at.Add(time.Minute)}},
		"delay":                  {[]string{"X-Gateway-Delay", "30m"}, Event, []time.Time{at.Add(30 * time.Minute), at.Add(30 * time.Minute)}},
		"delay in seconds":       {[]string{"X-Gateway-Delay", "5"}, Event, []time.Time{at.Add(5 * time.Second), at.Add(5 * time.Second)}},
		"no delay":               {[]string{"X-Gateway-Delay", "0s"}, Event, []time.Time{at, at}},
		"a year":                 {[]string{"X-Gateway-Delay", "365d"}, Event, []time.Time{year, year}},
		"time with a zone":       {[]string{"X-Gateway-Deliver-At", later.In(time.FixedZone("", 3600)).Format(time.RFC3339)}, Event, []time.Time{later, later}},
		"the past":               {[]string{"X-Gateway-Deliver-At", "2020-01-01"}, Event, []time.Time{time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}},
		"a year from now":        {[]string{"X-Gateway-Deliver-At", year.Format(time.RFC3339Nano)}, Event, []time.Time{year, year}},
		"not signed by webhooks": {[]string{"X-Gateway-Delay", "30m"}, Webhook, []time.Time{{}, at.Add(time.Minute)}},
	} {
		t.Run(name, func(t *testing.T) {
			source := map[Kind]string{Event: "app", Webhook: "plain"}[c.kind]
			d := newDoor(testSources, Consumer{Lane: "handler/now", Source: source, MaxAttempts: 1}, Consumer{Lane: "handler/slow", Source: source, MaxAttempts: 1, Delay: time.Minute})
			r := request(c.kind, source, `{}`, c.headers...)
			r.At = at
			if _, err := d.Receive(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			var got []time.Time
			for _, j := range d.inbox.got[0].Jobs {
				got = append(got, j.DueAt)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("due (-want +got):\n%s", diff)
			}
			if h := d.inbox.got[0].Event.Headers; len(h) > 0 {
				t.Errorf("headers %v are kept with the event, want none", h)
			}
		})
	}
}

// TestDelaysRefused: a malformed delay is refused with the name of the header and the allowed
// values, and nothing is stored.
func TestDelaysRefused(t *testing.T) {
	at := received.Truncate(time.Millisecond)
	for name, c := range map[string]struct {
		header Header
		want   string
	}{
		"no duration":       {Header{delayFor: {"soon"}}, `X-Gateway-Delay must be one duration from 0s to 365d, such as 30m; not "soon"`},
		"empty":             {Header{delayFor: {""}}, `X-Gateway-Delay must be one duration from 0s to 365d, such as 30m; not ""`},
		"negative":          {Header{delayFor: {"-5s"}}, `not "-5s"`},
		"beyond a year":     {Header{delayFor: {"366d"}}, `not "366d"`},
		"two delays":        {Header{delayFor: {"5s", "6s"}}, `X-Gateway-Delay must be one duration`},
		"no time":           {Header{deliverAt: {"tomorrow"}}, `X-Gateway-Deliver-At must be one time, such as 2006-01-02T15:04:05Z, at most 365 days from now; not "tomorrow"`},
		"time beyond":       {Header{deliverAt: {at.Add(core.MaxDelay + time.Second).Format(time.RFC3339)}}, `at most 365 days from now; not "`},
		"two times":         {Header{deliverAt: {"2026-11-21", "2026-11-22"}}, `X-Gateway-Deliver-At must be one time`},
		"both":              {Header{deliverAt: {"2026-11-21"}, delayFor: {"5s"}}, `X-Gateway-Deliver-At and X-Gateway-Delay exclude each other`},
		"a very long value": {Header{delayFor: {strings.Repeat("x", 9000)}}, `not "` + strings.Repeat("x", 64) + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(testSources, Consumer{Lane: "handler/now", Source: "app", MaxAttempts: 1})
			r := request(Event, "app", `{}`)
			r.At = at
			for k, v := range c.header {
				r.Header[k] = v
			}
			_, err := d.Receive(t.Context(), r)
			if !core.IsKind(err, core.Invalid) || !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), c.want) || len(d.inbox.got) > 0 {
				t.Errorf("Receive = %v, stored %d; want a refusal with %q", err, len(d.inbox.got), c.want)
			}
		})
	}
}

// TestDelaysOfBatch: a delay counts for all events of a batch.
func TestDelaysOfBatch(t *testing.T) {
	d := newDoor(testSources, Consumer{Lane: "handler/now", Source: "app", MaxAttempts: 1})
	const one = `{"specversion":"1.0","id":"%","source":"s","type":"t"}`
	r := request(Event, "app", "["+strings.ReplaceAll(one, "%", "1")+","+strings.ReplaceAll(one, "%", "2")+"]", "Content-Type", arrayOfEvents, delayFor, "1h")
	if _, err := d.ReceiveAll(t.Context(), r); err != nil || len(d.inbox.got) != 2 {
		t.Fatalf("ReceiveAll = %v, stored %d, want 2", err, len(d.inbox.got))
	}
	for i, a := range d.inbox.got {
		if due := a.Jobs[0].DueAt; !due.Equal(r.At.Add(time.Hour)) {
			t.Errorf("job of event %d is due at %v, want an hour after %v", i, due, r.At)
		}
	}
}

// TestDelayRings: the worker hears when a delayed job is due, and not that there is work now.
func TestDelayRings(t *testing.T) {
	d := newDoor(testSources, Consumer{Lane: "handler/now", Source: "app", MaxAttempts: 1})
	heard := d.Bell.Listen("handler/now")
	r := request(Event, "app", `{}`, delayFor, "1h")
	if _, err := d.Receive(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if coming := heard.Coming()["handler/now"]; len(heard.Rung()) > 0 || !coming.Equal(r.At.Add(time.Hour)) {
		t.Errorf("heard of work now, or of work at %v, want it in an hour", coming)
	}
}
