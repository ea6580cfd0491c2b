package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

const testVersion = "v9.9.9"

const someID = "01J90000000000000000000001"

// A stub gives the same answer to every request, as a gateway does.
type stub struct{ header, body string }

func (s stub) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X-Api-Version", "1")
	if name, value, ok := strings.Cut(s.header, ": "); ok {
		w.Header().Set(name, value)
	}
	io.WriteString(w, s.body)
}

// A transport answers without a network.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// A body returns a line every 59 s, for a number of lines, and then nothing more.
type body struct {
	ctx   context.Context
	lines int
}

func (b *body) Read(p []byte) (int, error) {
	if b.lines == 0 {
		<-b.ctx.Done()
		return 0, b.ctx.Err()
	}
	b.lines--
	select {
	case <-time.After(stallTimeout - time.Second):
		return copy(p, "{\"id\":\""+someID+"\",\"payload\":1}\n"), nil
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
}

func (b *body) Close() error { return nil }

// An export may take any time, but a pause of stallTimeout ends it.
func TestExportThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		header := http.Header{"X-Api-Version": {"1"}}
		calls := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: header, Request: r, Body: &body{r.Context(), 3}}, nil
		})}
		c := New(Options{Base: &url.URL{Scheme: "http", Host: "h"}, HTTP: calls})
		n := 0
		var last error
		for told, err := range c.Events().Export(t.Context(), core.EventFilter{}, 9, false) {
			if last = err; err == nil && told.ID == someID && string(told.Payload) == "1" {
				n++
			}
		}
		if n != 3 || last == nil || last.Error() != "the gateway at http://h has been silent for 1m0s" {
			t.Errorf("%d events, then %v; want 3, then that it was silent", n, last)
		}
		silent := transport(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		c.calls = &http.Client{Transport: silent}
		if _, err := c.Events().List(t.Context(), core.EventFilter{}); !core.IsKind(err, core.Unavailable) ||
			err.Error() != "the gateway at http://h has not answered within 1m15s" {
			t.Errorf("List of a server that does not answer = %v", err)
		}
	})
}

// A slow user of an export's data does not count as a pause of the server.
func TestExportThatIsReadSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := strings.Repeat("{\"id\":\""+someID+"\",\"payload\":1}\n", 3)
		calls := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			read := iotest.OneByteReader(&ended{r.Context(), strings.NewReader(lines)})
			return &http.Response{StatusCode: 200, Header: http.Header{"X-Api-Version": {"1"}}, Request: r, Body: io.NopCloser(read)}, nil
		})}
		c := New(Options{Base: &url.URL{Scheme: "http", Host: "h"}, HTTP: calls})
		n := 0
		for _, err := range c.Events().Export(t.Context(), core.EventFilter{}, 9, false) {
			if n++; err != nil {
				t.Fatalf("event %d: %v", n, err)
			}
			time.Sleep(4 * stallTimeout)
		}
		if n != 3 {
			t.Errorf("%d events, want 3", n)
		}
	})
}

// ended reads like its reader until ctx ends, like the body of a reply.
type ended struct {
	ctx context.Context
	io.Reader
}

func (e *ended) Read(p []byte) (int, error) {
	if e.ctx.Err() != nil {
		return 0, e.ctx.Err()
	}
	return e.Reader.Read(p)
}

// An export that is cut off is an error. An export whose caller stops reading is none.
func TestExportThatEnds(t *testing.T) {
	line := `{"id":"` + someID + `","payload":"a=b","payload_encoding":"text"}` + "\n"
	for _, c := range []struct {
		name, body, header string
		events             int
		err                string
	}{
		{"whole", line + line, "", 2, ""},
		{"none", "", "", 0, ""},
		{"cut off", line + line[:20], "Content-Length: 999", 1, "the gateway at $AT broke off its answer: unexpected EOF"},
		{"half a line", line + line[:20], "", 1, "the gateway at $AT broke off its answer: unexpected EOF"},
		{"odd encoding", `{"payload":"","payload_encoding":"rot13"}`, "", 0, `the reply of the gateway at $AT is not understood (payload_encoding: "rot13" is not known; known are text, base64 and none); is it of this version (` + testVersion + `)?`},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(stub{header: c.header, body: c.body})
			defer server.Close()
			base, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			events, said := 0, ""
			for told, err := range New(Options{Base: base, Version: testVersion, HTTP: server.Client()}).Events().Export(t.Context(), core.EventFilter{}, 9, false) {
				switch {
				case err != nil:
					said = strings.ReplaceAll(err.Error(), server.URL, "$AT")
				case string(told.Payload) == "a=b":
					events++
				}
			}
			if events != c.events || said != c.err {
				t.Errorf("%d events and error %q, want %d and %q", events, said, c.events, c.err)
			}
		})
	}
}

// TestQuestions shows the requests of the client as they are sent.
func TestQuestions(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		asked = append(asked, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, r.RequestURI, text)))
		stub{body: `{}`}.ServeHTTP(w, r)
	}))
	defer server.Close()
	c := &Client{calls: server.Client()}
	c.base, _ = url.Parse(server.URL + "/behind/")
	at := time.Date(2026, 11, 20, 12, 0, 0, 7e6, time.FixedZone("", 3600))
	ctx, events, jobs, queues, runs := t.Context(), c.Events(), c.Jobs(), c.Queues(), c.Runs()
	filter := core.EventFilter{Source: "a&b", Type: "x/y", DeliveryID: "d&1", Since: at, Until: at.Add(time.Second), Limit: 7}
	var errs []error
	note := func(_ any, err error) { errs = append(errs, err) }
	note(events.List(ctx, core.EventFilter{}))
	note(events.Replay(ctx, filter, manage.Span{}, true))
	note(events.Replay(ctx, core.EventFilter{}, manage.Span{First: someID, Last: someID}, false))
	note(jobs.List(ctx, core.JobFilter{Status: core.Dead, Lane: "queue/q", After: someID, Limit: 3}))
	note(jobs.Search(ctx, manage.JobSearch{JobFilter: core.JobFilter{Status: core.Dead, Since: at, Limit: 3}, Source: "a&b", Type: "x/y", Error: "c=d"}))
	note(jobs.Errors(ctx, core.FailureFilter{Lane: "handler/h", Since: at}))
	note(jobs.Attempts(ctx, someID, 0))
	note(jobs.Attempts(ctx, someID, 100))
	note(jobs.Retry(ctx, someID))
	note(jobs.RetryAll(ctx, ""))
	note(jobs.RetryAll(ctx, "handler/h"))
	note(queues.Peek(ctx, "..", 5))
	note(queues.DeadLetters(ctx, "a/b", someID, 0))
	note(queues.Retry(ctx, "q", ""))
	note(queues.Retry(ctx, "q", someID))
	note(queues.Drain(ctx, "q"))
	note(runs.List(ctx, core.RunFilter{Status: core.RunFailed, Workflow: "w", EventID: someID}))
	note(runs.Redrive(ctx, someID, manage.Redrive{From: "failed"}))
	note(runs.Cancel(ctx, someID))
	note(c.Audit().List(ctx, core.AuditFilter{Actor: "os:a", Action: core.AuditHold, Target: "queue/q", Since: filter.Since, Until: filter.Until, After: someID, Limit: 3}))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	filter.Limit = 0
	for range events.Export(ctx, filter, 1_000_000, false) {
	}
	for range events.Export(ctx, filter, 5, true) {
	}
	want := []string{
		"GET /behind/api/events",
		`POST /behind/api/events/replay {"source":"a\u0026b","event_type":"x/y","delivery_id":"d\u00261","since":"2026-11-20T11:00:00.007","until":"2026-11-20T11:00:01.007","limit":7,"dry_run":true}`,
		`POST /behind/api/events/replay {"first":"` + someID + `","last":"` + someID + `"}`,
		"GET /behind/api/jobs?after=" + someID + "&handler=queue%2Fq&limit=3&status=dead",
		"GET /behind/api/jobs?error=c%3Dd&event_type=x%2Fy&limit=3&since=2026-11-20T11%3A00%3A00.007&source=a%26b&status=dead",
		"GET /behind/api/jobs/errors?handler=h&since=2026-11-20T11%3A00%3A00.007",
		"GET /behind/api/jobs/" + someID + "/attempts",
		"GET /behind/api/jobs/" + someID + "/attempts?after=100",
		"POST /behind/api/jobs/" + someID + "/retry",
		"POST /behind/api/jobs/retry {}",
		`POST /behind/api/jobs/retry {"handler":"h"}`,
		"GET /behind/api/queues/%2E%2E/peek?limit=5",
		"GET /behind/api/queues/a%2Fb/dlq?after=" + someID + "&limit=50",
		"POST /behind/api/queues/q/retry {}",
		`POST /behind/api/queues/q/retry {"id":"` + someID + `"}`,
		"POST /behind/api/queues/q/drain",
		"GET /behind/api/workflow-runs?event_id=" + someID + "&status=failed&workflow=w",
		"POST /behind/api/workflow-runs/" + someID + `/redrive {"from":"failed"}`,
		"POST /behind/api/workflow-runs/" + someID + "/cancel",
		"GET /behind/api/audit?action=holds.hold&actor=os%3Aa&after=" + someID + "&limit=3&since=2026-11-20T11%3A00%3A00.007&target=queue%2Fq&until=2026-11-20T11%3A00%3A01.007",
		"GET /behind/api/export/events?delivery_id=d%261&event_type=x%2Fy&limit=1000000&since=2026-11-20T11%3A00%3A00.007&source=a%26b&until=2026-11-20T11%3A00%3A01.007",
		"GET /behind/api/export/events?delivery_id=d%261&event_type=x%2Fy&jobs=false&limit=5&since=2026-11-20T11%3A00%3A00.007&source=a%26b&until=2026-11-20T11%3A00%3A01.007",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
}

// A name that does not resolve is named: users mistype names more often than servers vanish.
func TestUnknownName(t *testing.T) {
	unknown := &Client{base: &url.URL{Scheme: "https", Host: "nowhere.example"}}
	dns := &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "nowhere.example"}}
	if got, want := unknown.unreached(httptest.NewRequest("GET", "/", nil), dns).Error(), "no gateway answers at https://nowhere.example: the name nowhere.example does not resolve (no such host)"; got != want {
		t.Errorf("unreached = %s, want %s", got, want)
	}
}

// The errors of a client that is used without advice name no flag of a command.
func TestWithoutAdvice(t *testing.T) {
	for _, c := range []struct {
		reply http.Response
		want  string
	}{
		{http.Response{StatusCode: 200}, "the server at http://h is not a gateway: 200 OK"},
		{http.Response{StatusCode: 302, Header: http.Header{"Location": {"/login"}}}, "the server at http://h leads elsewhere (302 Found): /login"},
		{http.Response{StatusCode: 401, Header: http.Header{"X-Api-Version": {"1"}}}, "the gateway at http://h asks for a token"},
		{http.Response{StatusCode: 403, Header: http.Header{"X-Api-Version": {"1"}, "Www-Authenticate": {`Bearer error="insufficient_scope"`}}}, "the gateway at http://h refused this: "},
	} {
		calls := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			c.reply.Body, c.reply.Request = http.NoBody, r
			return &c.reply, nil
		})}
		client := New(Options{Base: &url.URL{Scheme: "http", Host: "h"}, HTTP: calls})
		client.calls.CheckRedirect = HTTPClient(0).CheckRedirect
		if _, err := client.Stats(t.Context()); err == nil || err.Error() != c.want {
			t.Errorf("Stats of a server that answers %d = %v, want %s", c.reply.StatusCode, err, c.want)
		}
	}
}
