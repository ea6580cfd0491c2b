package preview_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/preview"
)

var began = time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)

// event returns the nth event of the source shop. Its payload is the number.
func event(n int) core.Event {
	return core.Event{ID: core.ID(fmt.Sprintf("01J%023d", n)), Source: "shop", Payload: []byte(strconv.Itoa(n)), CreatedAt: began.Add(time.Duration(n) * time.Second)}
}

// side returns a side of consumers that decides by itself. It names the filter in each reason.
func side(decide func(core.Event) preview.Outcome, consumers ...preview.Consumer) preview.Side {
	return preview.Side{
		Decide: decide, Sources: map[string]string{"shop": "event"}, Consumers: consumers,
		Why: func(e core.Event, l core.Lane) string { return "declined by " + string(l) },
	}
}

// always returns a decision that is the same for each event.
func always(o preview.Outcome) func(core.Event) preview.Outcome {
	return func(core.Event) preview.Outcome { return o }
}

// job returns an outcome with one job of the handler mail.
func job(change func(*preview.Job)) preview.Outcome {
	j := preview.Job{NewJob: core.NewJob{Lane: "handler/mail", MaxAttempts: 5}, Body: []byte(`{"a":1}`), ContentType: "application/json"}
	if change != nil {
		change(&j)
	}
	return preview.Outcome{Jobs: []preview.Job{j}}
}

var mail = preview.Consumer{Lane: "handler/mail", Settings: map[string]string{"url": "a", "method": "POST"}}

// compare compares two sides over the first n events.
func compare(before, after preview.Side, n int) preview.Report {
	c := preview.New(before, after, preview.Options{Examples: 2})
	for i := range n {
		c.Add(event(i))
	}
	return c.Report()
}

// TestDifferences: the differences for one event, with their texts.
func TestDifferences(t *testing.T) {
	none := preview.Outcome{}
	fails := preview.Outcome{Undecided: []core.Undecided{{Lane: "handler/mail", Why: errors.New("too many steps")}}}
	for name, c := range map[string]struct {
		before, after preview.Outcome
		settings      map[string]string // of the After side
		want          preview.Example
	}{
		"nothing":                {before: job(nil), after: job(nil)},
		"nothing wanted":         {before: none, after: none},
		"the same error":         {before: job(func(j *preview.Job) { j.Err = "transform: x" }), after: job(func(j *preview.Job) { j.Err = "transform: x" })},
		"the same failure":       {before: fails, after: fails},
		"lines without a key":    {before: job(nil), after: job(func(j *preview.Job) { j.Line.Limit = 1 })},
		"won":                    {before: none, after: job(nil), want: preview.Example{Kind: "won", Why: "declined by handler/mail"}},
		"lost":                   {before: job(nil), after: none, want: preview.Example{Kind: "lost", Why: "declined by handler/mail"}},
		"lost by a failure":      {before: job(nil), after: fails, want: preview.Example{Kind: "lost", Why: "its filter gives no answer: too many steps"}},
		"refused":                {before: job(nil), after: preview.Outcome{Refused: "a is missing"}, want: preview.Example{Kind: "lost", Why: "the event is refused: a is missing"}},
		"no longer refused":      {before: preview.Outcome{Refused: "a is missing"}, after: job(nil), want: preview.Example{Kind: "won", Why: "the event is refused: a is missing"}},
		"a filter fails":         {before: none, after: fails, want: preview.Example{Kind: "changed", Changes: []string{"filter"}, Why: "too many steps"}},
		"a filter fails no more": {before: fails, after: none, want: preview.Example{Kind: "changed", Changes: []string{"filter"}, Why: "too many steps"}},
		"body": {before: job(nil), after: job(func(j *preview.Job) { j.Body = []byte(`{"a":2}`) }),
			want: preview.Example{Kind: "changed", Changes: []string{"body"}, Diff: []string{"  {", `-   "a": 1`, `+   "a": 2`, "  }"}}},
		"blanks": {before: job(nil), after: job(func(j *preview.Job) { j.Body = []byte(`{"a": 1}`) }),
			want: preview.Example{Kind: "changed", Changes: []string{"body"}, Diff: []string{"  the same JSON, with other blanks"}}},
		"content type": {before: job(nil), after: job(func(j *preview.Job) { j.ContentType = "" }),
			want: preview.Example{Kind: "changed", Changes: []string{"body"}, Diff: []string{"- content-type: application/json", "+ content-type: -"}}},
		"no body": {before: job(nil), after: job(func(j *preview.Job) { j.Body, j.ContentType, j.Err = nil, "", "transform: x" }),
			want: preview.Example{Kind: "changed", Changes: []string{"body"}, Why: "transform: x"}},
		"a body again": {before: job(func(j *preview.Job) { j.Body, j.Err = nil, "transform: x" }), after: job(nil),
			want: preview.Example{Kind: "changed", Changes: []string{"body"}, Why: "no longer: transform: x"}},
		"line":     {before: job(nil), after: job(func(j *preview.Job) { j.Line = core.Line{Key: "k", Limit: 1} }), want: preview.Example{Kind: "changed", Changes: []string{"line"}}},
		"limit":    {before: job(func(j *preview.Job) { j.Line = core.Line{Key: "k", Limit: 1} }), after: job(func(j *preview.Job) { j.Line = core.Line{Key: "k", Limit: 2} }), want: preview.Example{Kind: "changed", Changes: []string{"line"}}},
		"delay":    {before: job(nil), after: job(func(j *preview.Job) { j.DueAt = began.Add(time.Minute) }), want: preview.Example{Kind: "changed", Changes: []string{"delay"}}},
		"attempts": {before: job(nil), after: job(func(j *preview.Job) { j.MaxAttempts = 6 }), want: preview.Example{Kind: "changed", Changes: []string{"attempts"}}},
		"key":      {before: job(nil), after: job(func(j *preview.Job) { j.Key = "k" }), want: preview.Example{Kind: "changed", Changes: []string{"idempotency_key"}}},
		"settings": {before: job(nil), after: job(nil), settings: map[string]string{"url": "b", "headers": ""}, want: preview.Example{Kind: "changed", Changes: []string{"headers", "method", "url"}}},
	} {
		t.Run(name, func(t *testing.T) {
			later := mail
			if c.settings != nil {
				later.Settings = c.settings
			}
			r := compare(side(always(c.before), mail), side(always(c.after), later), 1)
			var want []preview.Example
			if c.want.Kind != "" {
				c.want.Event, c.want.At, c.want.Lane = event(0).ID, event(0).CreatedAt, "handler/mail"
				want = append(want, c.want)
			}
			if !reflect.DeepEqual(r.Examples, want) {
				t.Errorf("examples %+v, want %+v", r.Examples, want)
			}
			if differs := len(want) > 0; r.Differs() != differs || r.Consumers[0].Differs() != differs {
				t.Errorf("Differs = %v, of the consumer %v, want %v", r.Differs(), r.Consumers[0].Differs(), differs)
			}
			tally := r.Consumers[0]
			counted := map[string]int{"won": tally.Won, "lost": tally.Lost, "changed": tally.Changed}
			for _, kind := range []string{"won", "lost", "changed"} {
				if n := counted[kind]; n != len(slices.DeleteFunc(slices.Clone(want), func(x preview.Example) bool { return x.Kind != kind })) {
					t.Errorf("%d events are %s", n, kind)
				}
			}
			for _, name := range c.want.Changes {
				if tally.Changes[name] != 1 {
					t.Errorf("changes %v, want one of %s", tally.Changes, name)
				}
			}
		})
	}
}

// TestCounts: jobs, failures and repeats are counted for each side, and few events are examples.
func TestCounts(t *testing.T) {
	lined := mail
	lined.Lined = true
	before := side(func(e core.Event) preview.Outcome {
		return job(func(j *preview.Job) { j.Key = strconv.Itoa(len(e.Payload)) }) // 0 to 9, 10 to 19
	}, mail, preview.Consumer{Lane: "handler/gone"})
	after := side(func(e core.Event) preview.Outcome {
		switch n, _ := strconv.Atoi(string(e.Payload)); {
		case n >= 15:
			return preview.Outcome{Refused: fmt.Sprint("refused ", n)}
		case n >= 12:
			return preview.Outcome{Undecided: []core.Undecided{{Lane: "handler/mail", Why: errors.New("too many steps")}}}
		case n >= 8:
			return job(func(j *preview.Job) { j.Err = "transform: x" })
		}
		return job(nil)
	}, preview.Consumer{Lane: "queue/new"}, lined)
	r := compare(before, after, 20)
	want := []preview.Tally{
		{Lane: "handler/gone", Configured: [2]bool{true, false}, Changes: map[string]int{}},
		// The events 0 and 10 have a job before, and the other 18 repeat their keys.
		{Lane: "handler/mail", Configured: [2]bool{true, true}, Jobs: [2]int{2, 12}, Won: 10, Changed: 5, Repeats: [2]int{18, 0}, Unmade: [2]int{0, 4},
			Undecided: [2]int{0, 3}, Unlined: [2]int{0, 12}, Changes: map[string]int{"idempotency_key": 2, "body": 1, "filter": 3}},
		{Lane: "queue/new", Configured: [2]bool{false, true}, Changes: map[string]int{}},
	}
	if !reflect.DeepEqual(r.Consumers, want) {
		t.Errorf("consumers\n%+v, want\n%+v", r.Consumers, want)
	}
	if want := []preview.Refusal{{Source: "shop", Refused: [2]int{0, 5}, Why: [2]string{"", "refused 15"}}}; !reflect.DeepEqual(r.Refusals, want) {
		t.Errorf("refusals %+v, want %+v", r.Refusals, want)
	}
	// A refused event counts as affected, also if its only job was a repeat.
	if r.Events != 20 || r.Affected != 20 || !r.First.Equal(began) || !r.Last.Equal(event(19).CreatedAt) || r.Forgotten {
		t.Errorf("report %+v", r)
	}
	kinds := map[string]int{}
	for _, x := range r.Examples {
		kinds[x.Kind]++
		if x.Kind == "won" && x.Why != "an earlier event has the same idempotency key" {
			t.Errorf("won: %s", x.Why)
		}
	}
	if want := map[string]int{"won": 2, "changed": 2}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("examples %v, want %v", kinds, want)
	}
}

// TestSourceOfAnotherKind: the senders of a source whose type changes are refused.
func TestSourceOfAnotherKind(t *testing.T) {
	after := side(always(job(nil)), mail)
	after.Sources = map[string]string{"shop": "webhook"}
	r := compare(side(always(job(nil)), mail), after, 3)
	if want := []preview.Refusal{{Source: "shop", Refused: [2]int{0, 3}, Why: [2]string{"", "the source is of type webhook, not event"}}}; !reflect.DeepEqual(r.Refusals, want) || r.Consumers[0].Lost != 3 {
		t.Errorf("refusals %+v and tally %+v, want %+v", r.Refusals, r.Consumers[0], want)
	}
}

// TestDiff: bodies are shown in few and short lines.
func TestDiff(t *testing.T) {
	long := strings.Repeat("x", 500)
	list := func(n int) string {
		items := make([]string, n)
		for i := range items {
			items[i] = strconv.Itoa(i)
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	for name, c := range map[string]struct{ before, after, want string }{
		"text":          {"a\nb\nc", "a\nB\nc", "  a\n- b\n+ B\n  c"},
		"far apart":     {`{"a":1,"b":2,"c":3,"d":4,"e":5}`, `{"a":0,"b":2,"c":3,"d":4,"e":6}`, "  {\n-   \"a\": 1,\n+   \"a\": 0,\n    \"b\": 2,\n  …\n    \"d\": 4,\n-   \"e\": 5\n+   \"e\": 6\n  }"},
		"added":         {`{"a":1}`, `{"a":1,"b":2}`, "  {\n-   \"a\": 1\n+   \"a\": 1,\n+   \"b\": 2\n  }"},
		"moved":         {`["a","b","c"]`, `["b","c","a"]`, "  [\n-   \"a\",\n    \"b\",\n-   \"c\"\n+   \"c\",\n+   \"a\"\n  ]"},
		"from nothing":  {"", "x", "- \n+ x"},
		"bytes":         {"\xff", "x", "- 1 bytes\n+ 1 bytes"},
		"large":         {strings.Repeat("x", 65<<10), "x", "- 66560 bytes\n+ 1 bytes"},
		"long lines":    {long + "a", long + "b", "- …" + strings.Repeat("x", 40) + "a\n+ …" + strings.Repeat("x", 40) + "b"},
		"one long line": {"a", "b" + long, "- a\n+ b" + strings.Repeat("x", 159) + "…"},
	} {
		if got := strings.Join(preview.Diff([]byte(c.before), []byte(c.after)), "\n"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
	// Longer texts than are aligned, and more lines than are shown.
	lines := preview.Diff([]byte(list(1000)), []byte(strings.ReplaceAll(list(1000), "1", "7")))
	if last := lines[len(lines)-1]; len(lines) != 25 || !strings.HasSuffix(last, " more lines") {
		t.Errorf("%d lines, the last is %q", len(lines), last)
	}
}
