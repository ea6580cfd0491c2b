package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// sent returns a record as a client reads it.
func sent[T any](t *rapid.T, record T) (got T) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(record); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%s: %v", b.Bytes(), err)
	}
	return got
}

// alike compares values that a record does not distinguish: nil and empty, and times by
// instant.
var alike = cmp.Options{cmpopts.EquateEmpty(), cmp.Comparer(time.Time.Equal)}

func same(t *rapid.T, what string, want, got any) {
	if diff := cmp.Diff(want, got, alike); diff != "" {
		t.Errorf("%s (-before +after):\n%s", what, diff)
	}
}

var (
	someText = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "plain", "<&>\u2028\x1b[2J", "null", `"`}))
	someName = rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_-]{0,8}`)
	someID   = rapid.Custom(func(t *rapid.T) core.ID {
		return core.ID(rapid.StringMatching(`01J9[0-9A-HJKMNP-TV-Z]{22}`).Draw(t, "id"))
	})
	someTime = rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "none") {
			return time.Time{}
		}
		return time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "ms")).UTC()
	})
	someDocument = rapid.SampledFrom([]string{"", "{}", `{"n":1.00,"s":"<>"}`, "[1,2]", `"text"`, "17", "true"})
	someBudget   = rapid.SampledFrom([]int{1, 5, core.Unlimited})
)

func someJob(t *rapid.T) core.Job {
	budget := someBudget.Draw(t, "max") // records hold numbers of attempts, which repeats do not exceed
	j := core.Job{
		ID: someID.Draw(t, "id"), EventID: someID.Draw(t, "event"), Line: someText.Draw(t, "line"), Status: rapid.SampledFrom(core.Statuses()).Draw(t, "status"),
		Attempt: rapid.IntRange(0, min(budget, 9)).Draw(t, "attempt"), MaxAttempts: budget, Earlier: rapid.IntRange(0, 9).Draw(t, "earlier"), DueAt: someTime.Draw(t, "due"),
		LastError: someText.Draw(t, "error"), CreatedAt: someTime.Draw(t, "created"), FinishedAt: someTime.Draw(t, "finished"),
	}
	switch j.ScheduledAt = someTime.Draw(t, "scheduled"); {
	case j.Status.Finished():
		j.DueAt = time.Time{}
	case j.Status == core.Running:
		j.DueAt = time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "lease")).UTC()
	default:
		j.ScheduledAt = time.Time{}
	}
	switch name := someName.Draw(t, "name"); rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		j.Lane = core.HandlerLane(name)
	case 1:
		j.Lane = core.QueueLane(name)
	default:
		j.Lane, j.RunID, j.Step = core.WorkflowLane(name), someID.Draw(t, "run"), rapid.SampledFrom([]string{"pack", "a/b/17/c#2", name}).Draw(t, "step")
	}
	return j
}

func someEvent(t *rapid.T) core.Event {
	e := core.Event{
		ID: someID.Draw(t, "event id"), Source: someName.Draw(t, "event source"), Type: someName.Draw(t, "event type"), DeliveryID: someText.Draw(t, "event delivery"), CreatedAt: someTime.Draw(t, "received"),
		ContentType: rapid.SampledFrom([]string{"", "application/json", "text/plain"}).Draw(t, "content type"),
		Headers:     rapid.MapOfN(rapid.SampledFrom([]string{"ce-id", "ce-specversion", "traceparent"}), someText, 0, 2).Draw(t, "headers"),
	}
	if e.Binary = rapid.Bool().Draw(t, "binary"); e.Binary {
		e.Payload = append(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "bytes"), 0)
	} else { // nothing else is received
		e.Payload = []byte(strings.ToValidUTF8(rapid.OneOf(someDocument, someText).Draw(t, "payload"), "?"))
	}
	return e
}

func someRun(t *rapid.T) core.Run {
	return core.Run{
		ID: someID.Draw(t, "id"), Workflow: someName.Draw(t, "workflow"), EventID: someID.Draw(t, "event"),
		Status: rapid.SampledFrom(core.RunStatuses()).Draw(t, "status"), Epoch: rapid.IntRange(1, 9).Draw(t, "epoch"),
		Step: someText.Draw(t, "step"), Error: someText.Draw(t, "error"),
		CreatedAt: someTime.Draw(t, "created"), StartedAt: someTime.Draw(t, "started"), FinishedAt: someTime.Draw(t, "finished"),
	}
}

// TestThereAndBack: a value converted to a record, sent, read and converted back is the same
// value.
func TestThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job, run := someJob(t), someRun(t)
		same(t, "job", job, sent(t, JobOf(job)).Core())
		listed := manage.JobPage{Page: core.Page[core.Job]{Items: []core.Job{job}, More: true}, Waits: map[core.ID]manage.Wait{job.ID: {For: manage.BreakerOpen, Until: someTime.Draw(t, "until")}}}
		same(t, "jobs", listed, sent(t, JobsOf(listed)).Core())
		waits := map[core.ID]manage.Wait{job.ID: {For: manage.LaneStopped, Until: someTime.Draw(t, "end"), Since: someTime.Draw(t, "since"), Reason: someText.Draw(t, "reason"), Source: someText.Draw(t, "source"), Job: someID.Draw(t, "holder"), Place: rapid.IntRange(0, 9).Draw(t, "place")}}
		same(t, "waits", waits, sent(t, JobsOf(manage.JobPage{Page: core.Page[core.Job]{Items: []core.Job{job}}, Waits: waits})).Core().Waits)
		hold := core.Hold{Lane: rapid.SampledFrom([]core.Lane{"handler/billing", "queue/mail", "workflow/ship"}).Draw(t, "lane"), Since: someTime.Draw(t, "since"), Until: someTime.Draw(t, "end"), Reason: someText.Draw(t, "reason")}
		same(t, "hold", hold, sent(t, HoldOf(hold)).Core())
		line := core.LineState{Key: someText.Draw(t, "key"), Admitted: rapid.IntRange(0, 9).Draw(t, "admitted"), Waiting: rapid.IntRange(0, 9).Draw(t, "behind"), StoppedAt: someTime.Draw(t, "stopped"), StoppedBy: someID.Draw(t, "stopper")}
		lines := core.Page[core.LineState]{Items: []core.LineState{line}, More: true}
		same(t, "lines", lines, sent(t, LinesOf(lines)).Core())
		group := manage.ErrorGroup{Lane: job.Lane, Host: job.Host, Kind: someText.Draw(t, "kind"), Dead: line.Admitted, Retrying: line.Waiting,
			Newest: someTime.Draw(t, "newest"), Oldest: someTime.Draw(t, "oldest"), Example: job.ID, Error: job.LastError}
		errs := manage.Errors{Groups: []manage.ErrorGroup{group}, Scanned: 7, More: true}
		same(t, "errors", errs, sent(t, ErrorsOf(errs)).Core())
		story := manage.LineStory{LineState: line, Holders: []core.Job{job}, Next: []core.Job{}, Waits: waits}
		same(t, "line", story, sent(t, StoryOfLine(story)).Core())
		same(t, "run", run, sent(t, RunOf(run)).Core())
		same(t, "runs", core.Page[core.Run]{Items: []core.Run{run}}, sent(t, RunsOf(core.Page[core.Run]{Items: []core.Run{run}})).Core())
		attempt := core.Attempt{
			Number: rapid.IntRange(1, 9).Draw(t, "number"), StatusCode: rapid.SampledFrom([]int{0, 200, 599}).Draw(t, "code"), Error: someText.Draw(t, "error"),
			Response: someText.Draw(t, "response"), Duration: time.Duration(rapid.IntRange(0, 1e6).Draw(t, "ms")) * time.Millisecond, StartedAt: someTime.Draw(t, "at"),
		}
		if rapid.Bool().Draw(t, "recorded") {
			attempt.Exchange = &core.Exchange{Method: "POST", URL: someText.Draw(t, "url"), Headers: map[string]string{"A": someText.Draw(t, "header")},
				ReplyHeaders: map[string]string{"B": someText.Draw(t, "reply header")}, Cut: rapid.Bool().Draw(t, "cut"), Unmasked: rapid.SampledFrom([][]string{nil, {"A", core.UnmaskedURL}}).Draw(t, "unmasked"),
				BodySize: rapid.IntRange(0, 9).Draw(t, "size"), BodySHA256: someText.Draw(t, "hash"), KeptBody: rapid.IntRange(0, 9).Draw(t, "kept")}
		}
		same(t, "attempt", attempt, sent(t, AttemptOf(attempt)).Core())
		event := core.Event{ID: job.EventID, Source: someText.Draw(t, "source"), Type: someText.Draw(t, "type"), DeliveryID: someText.Draw(t, "delivery"), CreatedAt: someTime.Draw(t, "received")}
		same(t, "summary", event, sent(t, SummaryOf(event)).Core())
		page := core.Page[core.Event]{Items: []core.Event{event}, More: true}
		same(t, "events", page, sent(t, EventsOf(page)).Core())
		found := manage.Found{Page: page, Scanned: rapid.IntRange(0, 9).Draw(t, "scanned"), Next: someID.Draw(t, "next")}
		same(t, "found events", found, sent(t, FoundOf(found)).Core())
		foundJobs := manage.FoundJobs{JobPage: listed, Scanned: found.Scanned, Next: found.Next}
		same(t, "found jobs", foundJobs, sent(t, FoundJobsOf(foundJobs)).Core())
		news := manage.News{Events: page.Items, Jobs: []core.Job{job}, Next: manage.Cursor{Event: job.EventID, Finished: job.FinishedAt}, More: true}
		same(t, "news", news, sent(t, NewsOf(news)).Core())
	})
}

// TestEventsThereAndBack: an event comes back with all of its fields, and its payload byte for byte,
// whether it is JSON, text or neither. White space around JSON is no part of the value in a record,
// and gets lost.
func TestEventsThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		told := manage.Told{Event: someEvent(t), Jobs: []core.Job{someJob(t)}, Runs: []core.Run{someRun(t)}}
		if rapid.Bool().Draw(t, "waits") {
			told.Waits = map[core.ID]manage.Wait{told.Jobs[0].ID: {For: manage.BreakerOpen, Until: someTime.Draw(t, "until")}}
		}
		line, err := EventOf(told).Line()
		if err != nil {
			t.Fatal(err)
		}
		var record Event
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got, err := record.Core()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if !told.Event.Binary && isJSON(told.Event.Payload) {
			told.Event.Payload = bytes.Trim(told.Event.Payload, " \t\r\n")
		}
		same(t, string(line), told, got)
	})
}

func TestRunsThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		document := func(label string) []byte { return []byte(someDocument.Draw(t, label)) }
		want := manage.Inspected{
			Run: someRun(t),
			Steps: []core.Step{{
				Name: "pack", Path: "pack#2", Type: "http", Status: core.StepFailed, Attempt: 2, State: document("state"), Output: document("output"),
				Error: someText.Draw(t, "error"), StartedAt: someTime.Draw(t, "started"), FinishedAt: someTime.Draw(t, "finished"), Fan: core.Fan{Total: Untold},
			}},
			History: []core.Entry{{Seq: 1, At: someTime.Draw(t, "at"), Epoch: 1, Type: core.EntryFailed, Path: someText.Draw(t, "path"), Data: someDocument.Draw(t, "data")}},
		}
		want.Output = document("result")
		same(t, "run", want, sent(t, StoryOfRun(want)).Core())
	})
}

// TestMessagesThereAndBack: in a message without payload_encoding, the content type decides
// whether a string is text or JSON.
func TestMessagesThereAndBack(t *testing.T) {
	for _, c := range []struct{ payload, contentType, want string }{
		{`{"n":1.00}`, "", `{"n":1.00}`},
		{"a=1", "application/x-www-form-urlencoded", "a=1"},
		{"a=1", "", "a=1"},
		{`"text"`, "application/json; charset=utf-8", `"text"`},
		{`"text"`, "application/cloudevents+json", `"text"`},
		{"", "text/plain", ""},
	} {
		want := core.TakenJob{
			Job:   core.Job{ID: "M", EventID: "E", Attempt: 2, MaxAttempts: core.Unlimited, LastError: "nacked", CreatedAt: noon},
			Event: core.Event{ID: "E", Type: "order", Payload: []byte(c.payload), ContentType: c.contentType, Headers: map[string]string{"ce-id": "1"}},
		}
		var record Message
		if err := json.Unmarshal([]byte(text(t, MessageOf(want))), &record); err != nil {
			t.Fatal(err)
		}
		got, err := record.Core()
		if err != nil {
			t.Fatal(err)
		}
		if c.contentType == "" {
			got.Event.ContentType = "" // chosen by the form of the payload
		}
		if diff := cmp.Diff(want, got, alike); diff != "" || string(got.Event.Payload) != c.want {
			t.Errorf("%q, %s (-before +after):\n%s", c.payload, c.contentType, diff)
		}
	}
}

func TestQueuesThereAndBack(t *testing.T) {
	want := manage.Listed{
		Queue: manage.Queue{Name: "q", Source: "shop", Events: []string{"order.*"}, Visibility: 90 * time.Second},
		Tally: core.Tally{Pending: 1, Processing: 2}, Ended: core.Ended{Dead: 3, Canceled: 4},
	}
	got, err := QueueOf(want).Core()
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-before +after):\n%s", err, diff)
	}
	if _, err := (Queue{VisibilityTimeout: "soon"}).Core(); err == nil {
		t.Error(`a visibility_timeout of "soon" is read`)
	}
}

func TestCanceledThereAndBack(t *testing.T) {
	for _, want := range []manage.Canceled{
		{Event: "E", Cancellation: core.Cancellation{Canceled: 1, Running: 2, Finished: 3}, CanceledRuns: []core.ID{"R1"}, RunningRuns: []core.ID{"R2", "R3"}},
		{Event: "E", CanceledRuns: []core.ID{}, RunningRuns: []core.ID{}},
	} {
		text, err := json.Marshal(CanceledOf(want))
		if err != nil {
			t.Fatal(err)
		}
		var record Canceled
		if err := json.Unmarshal(text, &record); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, record.Core()); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
	}
}

func TestReplayedThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := func(name string) core.ID {
			if rapid.Bool().Draw(t, "no "+name) {
				return ""
			}
			return someID.Draw(t, name)
		}
		before := manage.Replayed{
			Events: rapid.IntRange(0, 1000).Draw(t, "events"), Jobs: rapid.IntRange(0, 1000).Draw(t, "jobs"),
			Span: manage.Span{First: id("first"), Last: id("last")}, Next: id("next"), Going: id("operation"),
		}
		record := sent(t, ReplayedOf(before))
		same(t, "replayed", before, record.Core())
		if record.More != (before.Next != "") {
			t.Errorf("has_more is %t where next is %q", record.More, before.Next)
		}
	})
}

func TestParseConsumer(t *testing.T) {
	for text, want := range map[string]core.Lane{
		"billing": "handler/billing", "handler/billing": "handler/billing", "queue/my_work-2": "queue/my_work-2",
		"workflow/w": "workflow/w", "alert/0a1b2c": "alert/0a1b2c",
		"source/github": "", "": "", "queue/": "", "mailbox/a": "", "workflow/w/s": "", "a//b": "", "a\x00": "", "queue/\xff": "", "é": "", "a b": "",
	} {
		if lane, ok := ParseConsumer(text); ok != (want != "") || ok && lane != want {
			t.Errorf("ParseConsumer(%q) = %q, %t, want %q", text, lane, ok, want)
		}
	}
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]core.Lane{
		"billing": "handler/billing", "handler/billing": "handler/billing", "queue/my_work-2": "queue/my_work-2", "workflow/w": "workflow/w",
		"source": "handler/source", "source/github": "source/github", "source/my_shop-2": "source/my_shop-2",
		"alert/1": "", "source/": "", "source/a/b": "", "source/a b": "", "source/\x00": "", "sources/a": "", "": "", "handler/": "",
	} {
		if lane, ok := ParseTarget(text); ok != (want != "") || ok && lane != want {
			t.Errorf("ParseTarget(%q) = %q, %t, want %q", text, lane, ok, want)
		}
	}
}
