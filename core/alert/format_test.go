package alert

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/egress"
	"github.com/eventgateway/gateway/core/worker"
	"github.com/google/go-cmp/cmp"
)

var plain = notice{
	Alert: VerificationFailure, Message: `3 requests to source "git-hub_1" could not be verified`, Source: "git-hub_1",
	Reason: "Invalid signature: X-Hub-Signature-256 is absent", ClientIP: "2001:db8::1", Count: 3, CreatedAt: "2026-11-20T07:28:11.123",
}

var hostile = notice{
	Alert: VerificationFailure, Message: "<!channel> & @everyone `x` *b* [l](http://e) ||s|| <@1>", Source: "`](http://e)",
	Reason: "a\n**b**: `c`\x00\u2028\u202ed <!here> &amp; @here \\", CreatedAt: "2026-11-20T07:28:11.123",
}

var dead = notice{
	Alert: DLQ, Message: "A job of handler billing is dead", Source: "shop", EventID: "E1", EventType: "order.created",
	Handler: "billing", JobID: "J1", Attempts: 5, Error: "status: 503", CreatedAt: "2026-11-20T07:28:11.123",
}

func TestBody(t *testing.T) {
	tests := []struct {
		name   string
		format string
		notice notice
		want   string // compared as JSON
	}{
		{"generic", Generic, plain, `{"alert": "verification_failure", "message": "3 requests to source \"git-hub_1\" could not be verified",
			"source": "git-hub_1", "reason": "Invalid signature: X-Hub-Signature-256 is absent", "client_ip": "2001:db8::1", "count": 3,
			"created_at": "2026-11-20T07:28:11.123"}`},
		{"slack", Slack, plain, `{"text": "3 requests to source \"git-hub_1\" could not be verified\nsource: ` + "`git-hub_1`" + `\ncount: ` + "`3`" + `\nclient_ip: ` +
			"`2001:db8::1`" + `\ncreated_at: ` + "`2026-11-20T07:28:11.123`" + `\nreason: ` + "`Invalid signature: X-Hub-Signature-256 is absent`" + `"}`},
		{"discord", Discord, plain, `{"content": "3 requests to source \"git-hub\\_1\" could not be verified", "embeds": [{"title": "verification\\_failure",
			"description": "source: ` + "`git-hub_1`" + `\ncount: ` + "`3`" + `\nclient_ip: ` + "`2001:db8::1`" + `\ncreated_at: ` +
			"`2026-11-20T07:28:11.123`" + `\nreason: ` + "`Invalid signature: X-Hub-Signature-256 is absent`" + `"}], "allowed_mentions": {"parse": []}}`},

		{"hostile slack", Slack, hostile, `{"text": "&lt;!channel&gt; &amp; @everyone ` + "`x`" + ` *b* [l](http://e) ||s|| &lt;@1&gt;` +
			`\nsource: ` + "`'](http://e)`" + `\ncreated_at: ` + "`2026-11-20T07:28:11.123`" +
			`\nreason: ` + "`a **b**: 'c'   d &lt;!here&gt; &amp;amp; @here \\\\`" + `"}`},
		{"hostile discord", Discord, hostile, `{"content": "\\<!channel\\> & @everyone ` + "\\\\`x\\\\`" + ` \\*b\\* \\[l\\](http://e) \\|\\|s\\|\\| \\<@1\\>",
			"embeds": [{"title": "verification\\_failure", "description": "source: ` + "`'](http://e)`" + `\ncreated_at: ` + "`2026-11-20T07:28:11.123`" +
			`\nreason: ` + "`a **b**: 'c'   d <!here> &amp; @here \\\\`" + `"}], "allowed_mentions": {"parse": []}}`},

		{"dead generic", Generic, dead, `{"alert": "dlq", "message": "A job of handler billing is dead", "source": "shop", "event_id": "E1",
			"event_type": "order.created", "handler": "billing", "job_id": "J1", "attempts": 5, "error": "status: 503", "created_at": "2026-11-20T07:28:11.123"}`},
		{"dead slack", Slack, dead, `{"text": "A job of handler billing is dead\nsource: ` + "`shop`" + `\nevent_type: ` + "`order.created`" + `\nhandler: ` +
			"`billing`" + `\nattempts: ` + "`5`" + `\nevent_id: ` + "`E1`" + `\njob_id: ` + "`J1`" + `\ncreated_at: ` + "`2026-11-20T07:28:11.123`" +
			`\nerror: ` + "`status: 503`" + `"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Body(tt.format, tt.notice.encode())
			if err != nil {
				t.Fatal(err)
			}
			var want, have any
			if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
				t.Fatalf("the test's own JSON: %v", err)
			}
			if err := json.Unmarshal(got, &have); err != nil {
				t.Fatalf("Body = %s: %v", got, err)
			}
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("Body is other than wanted:\n%s", diff)
			}
		})
	}
}

func TestLongTextIsCut(t *testing.T) {
	for name, c := range map[string]string{"letters": "a", "escapes": "&", "emoji": "👩‍🚒", "marks": "*", "backticks": "`"} {
		text := strings.Repeat(c, 10_000)
		n := plain
		n.Message, n.Reason, n.Error = text, text, text
		for _, format := range []string{Slack, Discord} {
			body, err := Body(format, n.encode())
			if err != nil {
				t.Fatal(err)
			}
			checkBody(t, format, body)
			if got := strings.Count(string(body), "…"); got < 2 {
				t.Errorf("%s as %s: %d cuts in %s", name, format, got, body)
			}
			if !strings.Contains(string(body), "2001:db8::1") {
				t.Errorf("%s as %s: a long reason took the place of the address", name, format)
			}
		}
	}
}

func TestFit(t *testing.T) {
	tests := []struct {
		s     string
		limit int
		want  string
	}{
		{"", 16, ""},
		{"abcd", 4, "abcd"},
		{"abcde", 4, "abc…"},
		{"ab&", 7, "ab&amp;"},
		{"ab&c", 7, "ab…"},
		{"ab&cde", 9, "ab&amp;c…"},
		{"a😀", 3, "a😀"},
		{"a😀b", 3, "a…"},
		{"a\r\nb", 16, "a  b"},
		{"a\xffb", 16, "a�b"},
	}
	for _, tt := range tests {
		if got := fit(tt.s, tt.limit, slackEscapes); got != tt.want {
			t.Errorf("fit(%q, %d) = %q, want %q", tt.s, tt.limit, got, tt.want)
		}
	}
}

func TestBodyOfWhatIsNoAlert(t *testing.T) {
	for _, payload := range []string{"", "alert", "[]", `{"count": "3"}`} {
		for _, format := range []string{Generic, Slack, Discord} {
			if got, err := Body(format, []byte(payload)); err == nil {
				t.Errorf("Body(%s, %q) = %s, want an error", format, payload, got)
			}
		}
	}
	if _, err := Body("teams", plain.encode()); err == nil || !strings.Contains(err.Error(), "generic, slack, discord") {
		t.Errorf("Body(teams) = %v, want an error that lists the formats", err)
	}
}

// TestSenderPosts sends an alert over HTTP with the sender of deliveries.
func TestSenderPosts(t *testing.T) {
	type posted struct{ contentType, body string }
	got := make(chan posted, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- posted{r.Header.Get("Content-Type"), string(body)}
		_, _ = io.WriteString(w, "ok")
	}))
	defer server.Close()
	client := egress.New(egress.Options{AllowPrivate: true, Concurrency: 1, Version: "test", Clock: time.Now})
	inner, err := client.HTTP(egress.Target{Name: string(Lane(server.URL)), URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	job := core.TakenJob{Job: core.Job{ID: "J1", Attempt: 1}, Event: core.Event{
		ID: "E1", Source: core.AlertSource, Type: VerificationFailure.EventType(), Payload: plain.encode(), ContentType: "text/plain",
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, format := range []string{Generic, Slack, Discord} {
		if r := Sender(inner, format).Send(ctx, job); !r.OK {
			t.Fatalf("%s: reply %+v", format, r)
		}
		body, _ := Body(format, plain.encode())
		if p, want := <-got, (posted{"application/json", string(body)}); p != want {
			t.Errorf("%s: posted %+v, want %+v", format, p, want)
		}
	}
	if string(job.Event.Payload) != string(plain.encode()) {
		t.Error("the job's own payload was changed")
	}
}

type never struct{}

func (never) Send(context.Context, core.TakenJob) worker.Reply { panic("sent") }

func TestSenderOfWhatIsNoAlert(t *testing.T) {
	job := core.TakenJob{Event: core.Event{Payload: []byte("{")}}
	if r := Sender(never{}, Slack).Send(t.Context(), job); r.OK || !strings.HasPrefix(r.Error, "transform: ") {
		t.Errorf("reply %+v, want a failure of class transform", r)
	}
}

func FuzzBody(f *testing.F) {
	f.Add("A request could not be verified", "X-Signature is absent", "192.0.2.1", uint8(1))
	f.Add("<!channel> &lt; @everyone", "`</code>`\n<@1> [x](y)", "::1%eth0", uint8(3))
	f.Add("👩‍🚒", "&", "`", uint8(255))
	f.Add("a**", "\\", "\xff\x00\u202e", uint8(250))
	f.Add(`{"message":"a","count":1}`, "", "", uint8(1))
	f.Fuzz(func(t *testing.T, message, reason, ip string, times uint8) {
		stored := message[:min(len(message), maxFuzzed)] // any text
		message, reason, ip = repeated(message, int(times)), repeated(reason, 4*int(times)), repeated(ip, int(times))
		n := notice{Alert: Kind(ip), Message: message, Source: message, Handler: ip, Reason: reason, Error: reason, ClientIP: ip, Count: int(times)}
		for _, format := range []string{Slack, Discord} {
			body, err := Body(format, n.encode())
			if err != nil {
				t.Fatalf("Body(%s): %v", format, err)
			}
			checkBody(t, format, body)
			if body, err := Body(format, []byte(stored)); err == nil {
				checkBody(t, format, body)
			}
		}
	})
}

// maxFuzzed is the most bytes of a text while fuzzing, some more than the largest text of a body.
// A fuzzed text has up to thousands of bytes, and a thousand times as many would take seconds: go test
// ends a process that needs more than 10 seconds for one input, as it then does on a busy machine.
const maxFuzzed = 16 << 10

// repeated returns s so many times in a row, cut to maxFuzzed bytes.
func repeated(s string, times int) string {
	s = strings.Repeat(s, min(times, maxFuzzed/max(1, len(s))+1))
	return s[:min(len(s), maxFuzzed)]
}

// checkBody checks a body against the limits of its service.
func checkBody(t *testing.T, format string, body []byte) {
	t.Helper()
	decode := func(into any) {
		d := json.NewDecoder(strings.NewReader(string(body)))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil || !utf8.Valid(body) {
			t.Fatalf("%s: %s is not as expected: %v", format, body, err)
		}
	}
	switch format {
	case Slack:
		var m struct{ Text string }
		decode(&m)
		checkText(t, "text", m.Text, 2900)
		rest := strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "").Replace(m.Text)
		if strings.ContainsAny(rest, "<>&") {
			t.Errorf("text %q has characters that are not escaped", m.Text)
		}
	case Discord:
		var m struct {
			Content string
			Embeds  []struct{ Title, Description string }
			Mention *struct{ Parse *[]string } `json:"allowed_mentions"`
		}
		decode(&m)
		if m.Mention == nil || m.Mention.Parse == nil || len(*m.Mention.Parse) != 0 || !strings.Contains(string(body), `"parse":[]`) {
			t.Errorf("%s may mention somebody", body)
		}
		if len(m.Embeds) != 1 {
			t.Fatalf("%d embeds", len(m.Embeds))
		}
		checkText(t, "content", m.Content, 2000)
		checkText(t, "title", m.Embeds[0].Title, 256)
		checkText(t, "description", m.Embeds[0].Description, 4096)
		checkEscapes(t, m.Content)
		checkEscapes(t, m.Embeds[0].Title)
	}
}

// checkText checks the size of a text, and that each line of details is a label and one
// complete code span.
func checkText(t *testing.T, name, text string, limit int) {
	t.Helper()
	if n := len(utf16.Encode([]rune(text))); n > limit {
		t.Errorf("%s has %d characters, more than %d", name, n, limit)
	}
	lines := strings.Split(text, "\n")
	if name != "description" {
		lines = lines[1:] // the message
	}
	for _, line := range lines {
		label, value, ok := strings.Cut(line, ": `")
		value, closed := strings.CutSuffix(value, "`")
		if line != "" && (!ok || !closed || strings.Contains(value, "`") || strings.ContainsAny(label, " <>&`")) {
			t.Errorf("%s: line %q is no label with one code span", name, line)
		}
	}
}

// checkEscapes checks that each character with a meaning in Discord's Markdown follows a
// backslash.
func checkEscapes(t *testing.T, text string) {
	t.Helper()
	escaped := false
	for _, r := range text {
		if escaped {
			escaped = false
			continue
		}
		if escaped = r == '\\'; strings.ContainsRune("`*_~|<>[]\n", r) {
			t.Errorf("%q has a %q that is not escaped", text, r)
		}
	}
	if escaped {
		t.Errorf("%q ends within an escape", text)
	}
}
