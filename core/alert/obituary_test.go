package alert

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/golden"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

const (
	deadJob   core.ID = "01KAG3Y8ZT9B3H7W2N5Q4R6S8V"
	deadEvent core.ID = "01KAG3Y8ZQ4D1F6G8J0K2M3P5T"
)

var diedAt = time.Date(2026, 11, 20, 7, 28, 11, 123456789, time.FixedZone("", 3600))

// died returns a job of a lane, and the outcome that makes it dead.
func died(lane core.Lane, attempts int, cause string) (core.TakenJob, core.Outcome) {
	job := core.TakenJob{
		Job: core.Job{ID: deadJob, EventID: deadEvent, Lane: lane, Attempt: attempts, MaxAttempts: attempts, Lease: "l3ase"},
		Event: core.Event{
			ID: deadEvent, Source: "shop", Type: "order.created", Payload: []byte(`{"card":"p4yload"}`),
			Headers: map[string]string{"ce-subject": "h3ader"}, DeliveryID: "d3livery",
		},
	}
	return job, core.Outcome{
		JobID: deadJob, Lease: "l3ase", Status: core.Dead, At: diedAt,
		Attempt: core.Attempt{Number: attempts, StatusCode: 500, Error: cause, Response: "r3sponse", StartedAt: diedAt},
	}
}

func newObituaries(places ...Place) *Obituaries {
	return NewObituaries(core.NewIDs(time.Now), 5, places)
}

var anywhere = Place{Lane: Lane("https://example.com/b"), On: []Kind{DLQ}}

// TestObituaries compares the posted alerts with testdata/obituaries.txtar. The file has a
// section for each death and format.
func TestObituaries(t *testing.T) {
	tests := []struct {
		name     string
		lane     core.Lane
		attempts int
		cause    string
	}{
		{"handler", "handler/billing", 5, "status: 500 Internal Server Error"},
		{"first attempt", "handler/billing", 1, "status: 410 Gone"},
		{"lease", "handler/billing", 3, core.LeaseExpired},
		{"queue", "queue/mail", 4, "nacked"},
		{"other lane", "other/thing", 2, "odd"},
		{"no error", "handler/billing", 2, ""},
		{"hostile", "handler/bill_ing", 2, "status: <!channel> & @everyone <@1> `x` *b* [l](http://e) ||s||\r\n> \x00\x1b[31m\u2028\u202ed"},
		{"not UTF-8", "handler/billing", 2, "protocol: a\xffb\xc3"},
	}
	b := newObituaries(anywhere)
	var payloads []txtar.File
	for _, tt := range tests {
		a := b.Of(died(tt.lane, tt.attempts, tt.cause))
		if a == nil {
			t.Fatalf("%s: no obituary", tt.name)
		}
		payloads = append(payloads, txtar.File{Name: tt.name, Data: a.Event.Payload})
	}
	compare(t, "testdata/obituaries.txtar", payloads)
}

// compare compares the posted forms of named alerts with a file. The file has a section for
// each alert and format.
func compare(t *testing.T, file string, payloads []txtar.File) {
	t.Helper()
	want, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := &txtar.Archive{Comment: want.Comment}
	for _, p := range payloads {
		for _, format := range []string{Generic, Slack, Discord} {
			body, err := Body(format, p.Data)
			if err != nil {
				t.Fatalf("%s as %s: %v", p.Name, format, err)
			}
			checkBody(t, format, body)
			for _, secret := range []string{"p4yload", "h3ader", "d3livery", "l3ase", "r3sponse"} {
				if strings.Contains(string(body), secret) {
					t.Errorf("%s as %s tells %q: %s", p.Name, format, secret, body)
				}
			}
			got.Files = append(got.Files, txtar.File{Name: p.Name + ", " + format, Data: append(body, '\n')})
		}
	}
	if golden.Updating() {
		golden.Write(t, file, txtar.Format(got))
		return
	}
	if diff := cmp.Diff(sections(want), sections(got)); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", file, diff)
	}
}

// sections returns the contents of an archive by name.
func sections(a *txtar.Archive) map[string]string {
	all := map[string]string{}
	for _, f := range a.Files {
		all[f.Name] = string(f.Data)
	}
	return all
}

// TestObituaryIsAnEvent: one event, with a job for each place that wants the kind.
func TestObituaryIsAnEvent(t *testing.T) {
	b := newObituaries(
		Place{Lane: "alert/a", On: []Kind{VerificationFailure}},
		Place{Lane: "alert/b", On: []Kind{DLQ}},
		Place{Lane: "alert/c", On: []Kind{VerificationFailure, DLQ}},
		Place{Lane: "alert/b", On: []Kind{DLQ}}, // again
	)
	got := b.Of(died("handler/billing", 5, "status: 500 Internal Server Error"))
	if got == nil || len(got.Jobs) != 2 {
		t.Fatalf("Of = %+v, want an event with two jobs", got)
	}
	want := &core.Arrival{
		Event: core.Event{
			ID:     got.Event.ID,
			Source: "_alerts",
			Type:   "alert.dlq",
			Payload: []byte(`{"alert":"dlq","message":"Job 01KAG3Y8ZT9B3H7W2N5Q4R6S8V for handler \"billing\" is dead after 5 attempts: ` +
				`status: 500 Internal Server Error. To try it again: gateway jobs retry 01KAG3Y8ZT9B3H7W2N5Q4R6S8V","source":"shop",` +
				`"event_id":"01KAG3Y8ZQ4D1F6G8J0K2M3P5T","event_type":"order.created","handler":"billing","job_id":"01KAG3Y8ZT9B3H7W2N5Q4R6S8V",` +
				`"attempts":5,"error":"status: 500 Internal Server Error","created_at":"2026-11-20T06:28:11.123"}`),
			ContentType: "application/json",
			CreatedAt:   time.Date(2026, 11, 20, 6, 28, 11, 123e6, time.UTC),
		},
		Jobs: []core.NewJob{{ID: got.Jobs[0].ID, Lane: "alert/b", MaxAttempts: 5}, {ID: got.Jobs[1].ID, Lane: "alert/c", MaxAttempts: 5}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Of differs (-want +got):\n%s", diff)
	}
	again := b.Of(died("handler/billing", 5, "status: 500 Internal Server Error"))
	ids := []core.ID{got.Event.ID, got.Jobs[0].ID, got.Jobs[1].ID, again.Event.ID, again.Jobs[0].ID, again.Jobs[1].ID}
	for i, id := range ids {
		if _, err := core.ParseID(string(id)); err != nil || slices.Contains(ids[:i], id) {
			t.Errorf("ids %v, want six new ones", ids)
		}
	}
}

func TestNoObituary(t *testing.T) {
	dead := func(change func(*core.TakenJob, *core.Outcome)) (core.TakenJob, core.Outcome) {
		job, o := died("handler/billing", 5, "status: 500 Internal Server Error")
		change(&job, &o)
		return job, o
	}
	b := newObituaries(anywhere)
	for name, change := range map[string]func(*core.TakenJob, *core.Outcome){
		"completed":            func(_ *core.TakenJob, o *core.Outcome) { o.Status = core.Completed },
		"retryable":            func(_ *core.TakenJob, o *core.Outcome) { o.Status = core.Retryable },
		"an alert's job":       func(j *core.TakenJob, _ *core.Outcome) { j.Lane = core.AlertLane("a") },
		"an alert's own event": func(j *core.TakenJob, _ *core.Outcome) { j.Event.Source = core.AlertSource },
		"both": func(j *core.TakenJob, _ *core.Outcome) {
			j.Lane, j.Event.Source = core.AlertLane("a"), core.AlertSource
		},
	} {
		if a := b.Of(dead(change)); a != nil {
			t.Errorf("%s: Of = %s, want none", name, a.Event.Payload)
		}
	}
	for name, b := range map[string]*Obituaries{
		"no place":              newObituaries(),
		"a place for all else":  newObituaries(Place{Lane: "alert/a", On: []Kind{VerificationFailure}}),
		"a place for nothing":   newObituaries(Place{Lane: "alert/a"}),
		"nil without its maker": nil,
	} {
		if b != nil {
			t.Errorf("%s: NewObituaries = %+v, want nil", name, b)
		}
		if a := b.Of(died("handler/billing", 5, "status: 500")); a != nil {
			t.Errorf("%s: Of = %s, want none", name, a.Event.Payload)
		}
	}
}

// TestLongErrors: 10 KB of characters that are several bytes long, or become several by
// escapes. Only the error is cut.
func TestLongErrors(t *testing.T) {
	for _, c := range []string{"é", "&", "*", "`", "👩", "\\", "\x00", "\xff"} {
		payload := newObituaries(anywhere).Of(died("handler/billing", 2, "protocol: "+strings.Repeat(c, 10<<10/len(c)))).Event.Payload
		var n notice
		if err := json.Unmarshal(payload, &n); err != nil {
			t.Fatal(err)
		}
		shown := map[string]string{"\x00": " ", "\xff": "\uFFFD"}[c]
		if shown == "" {
			shown = c
		}
		kept := func(limit int) string { // the kept part of an error
			return "protocol: " + strings.Repeat(shown, (limit-units("protocol: …"))/units(shown)) + "…"
		}
		if n.Error != kept(maxError) {
			t.Errorf("%q: error %q, want %q", c, n.Error, kept(maxError))
		}
		want := "Job " + string(deadJob) + ` for handler "billing" is dead after 2 attempts: ` + kept(maxCause) +
			". To try it again: gateway jobs retry " + string(deadJob)
		if n.Message != want {
			t.Errorf("%q: message %q, want %q", c, n.Message, want)
		}
		for _, format := range []string{Slack, Discord} {
			body, err := Body(format, payload)
			if err != nil {
				t.Fatal(err)
			}
			checkBody(t, format, body)
			if got := strings.Count(string(body), "…"); got != 2 {
				t.Errorf("%q as %s: %d cuts in %s, want those of the message and the error", c, format, got, body)
			}
		}
	}
}

func TestPace(t *testing.T) {
	for format, want := range map[string]time.Duration{Generic: 0, Slack: time.Second, Discord: 2100 * time.Millisecond} {
		if got := Pace(format); got != want {
			t.Errorf("Pace(%s) = %v, want %v", format, got, want)
		}
		if p := Pace(format); p != 0 && p+time.Second > core.GateHorizon {
			t.Errorf("Pace(%s) = %v, which a gate takes for a clock that was set back", format, p)
		}
	}
}

// FuzzObituary: for any cause of death the alert fits its bounds and reads as one line. It
// names the dead job and the command that helps.
func FuzzObituary(f *testing.F) {
	f.Add("status: 500 Internal Server Error", "billing", uint8(0), 5, uint8(1))
	f.Add("<!channel> & @everyone\n**b** `c`", "a_b-c", uint8(1), 1, uint8(3))
	f.Add("\x00\xff\u202e\u2028\x1b[31m", "x", uint8(2), 0, uint8(255))
	f.Add("&", strings.Repeat("_", 63), uint8(3), -1, uint8(255))
	f.Add("👩‍🚒\\", "", uint8(4), 1<<40, uint8(200))
	b := newObituaries(anywhere)
	f.Fuzz(func(t *testing.T, cause, name string, kind uint8, attempts int, times uint8) {
		cause, name = repeated(cause, 4*int(times)), configured(name)
		who, help, payload := anyDeath(b, kind, name, attempts, cause)
		if len(payload) > 8<<10 || !utf8.Valid(payload) || strings.ContainsRune(string(payload), 0) {
			t.Errorf("payload of %d bytes: %q", len(payload), payload)
		}
		var n notice
		if err := json.Unmarshal(payload, &n); err != nil {
			t.Fatalf("payload %s: %v", payload, err)
		}
		if strings.ContainsFunc(n.Message, unicode.IsControl) || !strings.HasPrefix(n.Message, who) {
			t.Errorf("message %q", n.Message)
		}
		if n.Handler+n.Queue+n.Workflow != name {
			t.Errorf("handler %q, queue %q, workflow %q, want one %q", n.Handler, n.Queue, n.Workflow, name)
		}
		for _, format := range []string{Slack, Discord} {
			body, err := Body(format, payload)
			if err != nil {
				t.Fatal(err)
			}
			checkBody(t, format, body)
			if !strings.Contains(string(body), help) {
				t.Errorf("%s as %s does not say %q", body, format, help)
			}
			for _, field := range []string{"job_id: `" + string(deadJob), "event_id: `" + string(deadEvent), "created_at: `2026-11-20T06:28:11.123`"} {
				if !strings.Contains(string(body), field) {
					t.Errorf("%s as %s has no room for %s", body, format, field)
				}
			}
		}
	})
}

// anyDeath returns the payload of an obituary of a job or a run, with the name of the job or
// run and the advice.
func anyDeath(b *Obituaries, kind uint8, name string, attempts int, cause string) (who, help string, payload []byte) {
	lanes := []core.Lane{core.HandlerLane(name), core.QueueLane(name)}
	job, o := died(lanes[kind%2], attempts, cause)
	job.Event.Source, job.Event.Type = name, strings.Repeat("t", 128)
	if kind%4 < 2 {
		return "Job " + string(deadJob), "To try it again: gateway jobs retry " + string(deadJob), b.Of(job, o).Event.Payload
	}
	run, step := ended(strings.Repeat(name+"/", int(kind)%16)+name, attempts, cause)
	run.Workflow = name
	help = "To go on: gateway workflow-runs redrive " + string(failedRun) + " --from failed"
	return "Workflow run " + string(failedRun), help, b.OfRun(run, step, job.Event).Event.Payload
}

// configured makes a valid name in a configuration of s.
func configured(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-') {
			return r
		}
		return -1
	}, s)
	return "n" + s[:min(len(s), 62)]
}

// TestHopsOfAlerts: an alert has the hops of the event that caused it.
func TestHopsOfAlerts(t *testing.T) {
	b := newObituaries(anywhere)
	for _, hops := range []string{"", "7"} {
		job, o := died("handler/billing", 5, "status: 500")
		event := core.Event{Source: "shop"}
		if hops != "" {
			event.Headers = map[string]string{core.Hops: hops, "traceparent": "not the alert's"}
		}
		job.Event.Headers = event.Headers
		run := core.Run{Status: core.RunFailed, Workflow: "w"}
		for about, a := range map[string]*core.Arrival{"job": b.Of(job, o), "run": b.OfRun(run, core.Step{}, event)} {
			if got := a.Event.Headers; got[core.Hops] != hops || len(got) > 1 {
				t.Errorf("headers of the alert about a %s = %v, want the hops %q alone", about, got, hops)
			}
		}
	}
}
