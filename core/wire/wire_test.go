package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 7e6, time.UTC)

func text(t *testing.T, record any) string {
	t.Helper()
	out, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestRecordsOfNothing: a field without a value is null. Only the fields of other kinds of jobs
// are absent.
func TestRecordsOfNothing(t *testing.T) {
	for _, tt := range []struct {
		record any
		want   string
	}{
		{JobOf(core.Job{MaxAttempts: core.Unlimited}), `{"id":"","event_id":"","handler":"","status":"","attempt":0,"max_attempts":null,` +
			`"scheduled_at":null,"completed_at":null,"last_error":null,"created_at":null}`},
		{StoryOf(core.Job{Lane: "workflow/w", Step: "a/b", RunID: "R", MaxAttempts: 3}, manage.Wait{}, nil), `{"id":"","event_id":"","handler":"workflow/w/a/b","status":"","attempt":0,"max_attempts":3,` +
			`"scheduled_at":null,"completed_at":null,"last_error":null,"created_at":null,"workflow_run_id":"R","step":"a/b","attempts":[]}`},
		{JobOf(core.Job{Lane: "queue/q"}).Queue, `"q"`},
		{WaitingOf(core.Job{}, manage.Wait{For: manage.NoWorkerYet}).Waiting, `{"for":"worker","until":null}`},
		{AttemptOf(core.Attempt{}), `{"attempt":0,"status_code":null,"error":null,"duration_ms":0,"response":null,"created_at":null}`},
		{EventOf(manage.Told{}), `{"id":"","source":"","event_type":"","payload":"","payload_encoding":"text","headers":{},"idempotency_key":null,"created_at":null,"jobs":[],"workflow_runs":[]}`},
		{EventsOf(core.Page[core.Event]{}), `{"events":[],"has_more":false}`},
		{FoundOf(manage.Found{}), `{"events":[],"has_more":false,"scanned":0,"next":null}`},
		{FoundJobsOf(manage.FoundJobs{}), `{"jobs":[],"has_more":false,"scanned":0,"next":null}`},
		{StoryOfRun(manage.Inspected{}), `{"id":"","workflow":"","event_id":"","status":"","current_step":null,"epoch":0,"created_at":null,"started_at":null,"completed_at":null,"error":null,"output":null,"steps":[],"history":[]}`},
		{EntryOf(core.Entry{}), `{"seq":0,"at":null,"epoch":0,"type":"","step":null,"data":null}`},
		{StatsOf(manage.Stats{}), `{"at":null,"handlers":[],"queues":[],"workflows":[],"alerts":[],"sources":[],"jobs":{"available":0,"scheduled":0,"waiting":0,"running":0,"retryable":0,"dead":0,"canceled":0,"completed":0}}`},
		{ErrorsOf(manage.Errors{}), `{"errors":[],"scanned":0,"has_more":false}`},
		{ErrorGroupOf(manage.ErrorGroup{}), `{"handler":"","kind":null,"count":0,"dead":0,"retrying":0,"newest_at":null,"oldest_at":null,"example":"","last_error":null}`},
		{StoryOfLine(manage.LineStory{}), `{"key":"","admitted":0,"waiting":0,"stopped_since":null,"stopped_by":null,"jobs":[],"next":[]}`},
		{NewsOf(manage.News{}), `{"events":[],"jobs":[],"cursor":{"event":"","finished":null,"job":null},"has_more":false,"followed":0}`},
	} {
		if diff := cmp.Diff(tt.want, text(t, tt.record)); diff != "" {
			t.Errorf("%T (-want +got):\n%s", tt.record, diff)
		}
	}
}

// TestRecordsAreReadAgain: a record that is written and read is the same record.
func TestRecordsAreReadAgain(t *testing.T) {
	want := EventOf(manage.Told{
		Event: core.Event{ID: "E", Source: "shop", Type: "order", Payload: []byte(`{"n":1.0}`), ContentType: "application/json", DeliveryID: "d", CreatedAt: noon},
		Jobs:  []core.Job{{ID: "J", Lane: "handler/h", LastError: "<\x1b>", DueAt: noon}},
		Runs:  []core.Run{{ID: "R", Step: "s", StartedAt: noon}},
		Waits: map[core.ID]manage.Wait{"J": {For: manage.NotDue, Until: noon}},
	})
	var got Event
	if err := json.Unmarshal([]byte(text(t, want)), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	for _, bad := range []string{`"yesterday"`, `7`, `{}`} {
		if err := json.Unmarshal([]byte(bad), new(Time)); err == nil {
			t.Errorf("%s is read as a time", bad)
		}
	}
}

// TestTexts: texts are escaped like the record around them.
func TestTexts(t *testing.T) {
	record := SummaryOf(core.Event{Source: "<&>", DeliveryID: "<&>\u2028\n"})
	if got := text(t, record); !strings.Contains(got, `"idempotency_key":"\u003c\u0026\u003e\u2028\n"`) {
		t.Errorf("marshaled: %s", got)
	}
	line, err := Event{EventTail: EventTail{IdempotencyKey: record.IdempotencyKey}}.Line()
	if err != nil || !strings.Contains(string(line), `"idempotency_key":"<&>\u2028\n"`) {
		t.Errorf("as a line: %s, %v", line, err)
	}
}

// TestLines: each record is one line for any payload. The payload is unchanged except for
// JSON's white space.
func TestLines(t *testing.T) {
	for payload, want := range map[string]string{
		"{\r\n \"b\": 1.00, \"a\":\"<&>\u2028\", \"a\": 12345678901234567890}": `{"b":1.00,"a":"<&>` + "\u2028" + `","a":12345678901234567890}`,
		"a=1&b=\n\"2\"": `"a=1\u0026b=\n\"2\"","payload_encoding":"text"`,
		"":              `"","payload_encoding":"text"`,
		`"text"`:        `"text"`,
		"\"\xff\"":      `"\"\ufffd\"","payload_encoding":"text"`,
	} {
		line, err := EventOf(manage.Told{Event: core.Event{Payload: []byte(payload)}}).Line()
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(line), "\n"); n != 1 || line[len(line)-1] != '\n' {
			t.Errorf("%q: %d line feeds in %q, want one at the end", payload, n, line)
		}
		if !strings.Contains(string(line), `"payload":`+want+`,"headers"`) {
			t.Errorf("%q: %s, want %s", payload, line, want)
		}
	}
}

// TestScheduledAt: scheduled_at stays when a job is taken and when it ends.
func TestScheduledAt(t *testing.T) {
	due, lease := noon.Add(time.Minute), noon.Add(2*time.Minute)
	for _, tt := range []struct {
		job             core.Job
		scheduled, ends time.Time
	}{
		{core.Job{Status: core.Available, DueAt: due}, due, time.Time{}},
		{core.Job{Status: core.Running, DueAt: lease, ScheduledAt: due}, due, lease},
		{core.Job{Status: core.Retryable, DueAt: lease, ScheduledAt: due}, lease, time.Time{}},
		{core.Job{Status: core.Scheduled, DueAt: lease, ScheduledAt: due}, lease, time.Time{}},
		{core.Job{Status: core.Completed, ScheduledAt: due}, due, time.Time{}},
		{core.Job{Status: core.Dead, ScheduledAt: due}, due, time.Time{}},
		{core.Job{Status: core.Dead}, time.Time{}, time.Time{}}, // of an earlier version
	} {
		if got := JobOf(tt.job); !got.ScheduledAt.Equal(tt.scheduled) || !got.LeaseEndsAt.Equal(tt.ends) {
			t.Errorf("%s: scheduled at %v, lease ends at %v, want %v, %v", tt.job.Status, got.ScheduledAt, got.LeaseEndsAt, tt.scheduled, tt.ends)
		}
	}
	old := Job{Status: core.Running, ScheduledAt: Time{lease}} // an older server tells when the lease ends
	if got := old.Core(); !got.DueAt.Equal(lease) {
		t.Errorf("running job of an older server: due at %v, want %v", got.DueAt, lease)
	}
}

func TestStats(t *testing.T) {
	gate := core.Gate{Failures: core.BreakerThreshold, OpenUntil: noon.Add(time.Second)}
	half := core.Gate{Failures: core.BreakerThreshold, OpenUntil: noon}
	tally := core.Tally{Pending: 8, Waiting: 2, Stopped: 1, Scheduled: 1, Retryable: 2, Processing: 3, OldestDue: noon.Add(-1500 * time.Millisecond)}
	ended := core.Ended{Dead: 4, Canceled: 5}
	got := StatsOf(manage.Stats{At: noon, Completed: 9, Lanes: []manage.LaneStats{
		{Lane: "handler/a", Tally: tally, Ended: ended, Gate: gate},
		{Lane: "handler/b", Gate: half},
		{Lane: "queue/q", Tally: tally, Ended: ended, Gate: core.Gate{HeldSince: noon.Add(-time.Second), HeldUntil: core.NoEnd}},
		{Lane: "workflow/w", Tally: core.Tally{OldestDue: noon.Add(time.Hour)}, Gate: core.Gate{HeldSince: noon.Add(-time.Second), HeldUntil: noon.Add(time.Second)}},
		{Lane: "alert/slack-1", Gate: core.Gate{HeldSince: noon.Add(-time.Second), HeldUntil: noon}},
	}, Sources: []manage.SourceStats{
		{Name: "github", Gate: core.Gate{HeldSince: noon.Add(-time.Second), HeldUntil: noon.Add(time.Second)}},
		{Name: "shop", Gate: core.Gate{HeldUntil: noon}},
	}})
	const none = `"available":0,"scheduled":0,"waiting":0,"running":0,"retryable":0,"dead":0,"canceled":0,"oldest_due_seconds":`
	const some = `"available":3,"scheduled":1,"waiting":2,"running":3,"retryable":2,"dead":4,"canceled":5,"oldest_due_seconds":1.5`
	const free = `,"held_since":null,"held_until":null`
	want := `{"at":"2026-11-20T12:00:00.007",` +
		`"handlers":[{"name":"a",` + some + free + `,"lines_stopped":1,"circuit_breaker":"open","circuit_breaker_until":"2026-11-20T12:00:01.007","rate_limit_until":null},{"name":"b",` + none + `null` + free + `,"circuit_breaker":"half-open","circuit_breaker_until":"2026-11-20T12:00:00.007","rate_limit_until":null}],` +
		`"queues":[{"name":"q",` + some + `,"held_since":"2026-11-20T11:59:59.007","held_until":null,"lines_stopped":1,"pending":8,"processing":3}],` +
		`"workflows":[{"name":"w",` + none + `0,"held_since":"2026-11-20T11:59:59.007","held_until":"2026-11-20T12:00:01.007"}],` +
		`"alerts":[{"name":"slack-1",` + none + `null` + free + `,"circuit_breaker":"closed","circuit_breaker_until":null,"rate_limit_until":null}],` +
		`"sources":[{"name":"github","held_since":"2026-11-20T11:59:59.007","held_until":"2026-11-20T12:00:01.007"},{"name":"shop"` + free + `}],` +
		`"jobs":{"available":6,"scheduled":2,"waiting":4,"running":6,"retryable":4,"dead":8,"canceled":10,"completed":9}}`
	if diff := cmp.Diff(want, text(t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPayloads: every payload comes back unchanged, in each of its encodings.
func TestPayloads(t *testing.T) {
	cloudEvent := map[string]string{"ce-specversion": "1.0"}
	for _, tt := range []struct {
		event                       core.Event
		payload, inEvents, inQueues string
	}{
		{core.Event{Payload: []byte(`{"n":1.0}`)}, `{"n":1.0}`, "", ""},
		{core.Event{Payload: []byte("a=1")}, `"a=1"`, "text", ""},
		{core.Event{Payload: []byte{0, 0xff}, Binary: true, ContentType: "application/json"}, `"AP8="`, "base64", "base64"},
		{core.Event{Headers: cloudEvent}, `null`, "none", "none"},
		{core.Event{Headers: cloudEvent, ContentType: "text/plain"}, `""`, "text", ""},
		{core.Event{Headers: cloudEvent, ContentType: "application/json", Payload: []byte("null")}, `null`, "", ""},
	} {
		event := EventOf(manage.Told{Event: tt.event})
		message := MessageOf(core.TakenJob{Event: tt.event})
		if string(event.Payload) != tt.payload || event.PayloadEncoding != tt.inEvents {
			t.Errorf("EventOf(%q): payload %s, encoding %q, want %s, %q", tt.event.Payload, event.Payload, event.PayloadEncoding, tt.payload, tt.inEvents)
		}
		if string(message.Payload) != tt.payload || message.PayloadEncoding != tt.inQueues {
			t.Errorf("MessageOf(%q): payload %s, encoding %q, want %s, %q", tt.event.Payload, message.Payload, message.PayloadEncoding, tt.payload, tt.inQueues)
		}
		told, err := event.Core()
		held, err2 := message.Core()
		if err != nil || err2 != nil || string(told.Event.Payload) != string(tt.event.Payload) || string(held.Event.Payload) != string(tt.event.Payload) ||
			told.Event.Binary != tt.event.Binary || held.Event.Binary != tt.event.Binary {
			t.Errorf("%q came back as %q (%v), of a message as %q (%v)", tt.event.Payload, told.Event.Payload, err, held.Event.Payload, err2)
		}
	}
	for _, bad := range []Event{
		{Payload: []byte(`1`), EventTail: EventTail{PayloadEncoding: "text"}},
		{Payload: []byte(`"/w="`), EventTail: EventTail{PayloadEncoding: "base64"}},
		{Payload: []byte(`"x"`), EventTail: EventTail{PayloadEncoding: "rot13"}},
	} {
		if _, err := bad.Core(); err == nil || !strings.Contains(err.Error(), "payload") {
			t.Errorf("Core() of %s as %s = %v, want an error that names the field", bad.Payload, bad.PayloadEncoding, err)
		}
	}
}
