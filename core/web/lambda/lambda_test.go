package lambda

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// ask has a handler answer an event and returns the answer.
func ask(t *testing.T, h http.HandlerFunc, event string) (status int, header map[string]string, body string) {
	t.Helper()
	text, err := Answer(context.Background(), h, []byte(event), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var a struct {
		StatusCode int
		Headers    map[string]string
		Body       string
	}
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	if len(text) > maxAnswer {
		t.Errorf("an answer of %d bytes, want %d at most", len(text), maxAnswer)
	}
	return a.StatusCode, a.Headers, a.Body
}

// event is one of a request, with more fields in it.
func event(more string) string {
	return `{"version":"2.0","rawPath":"/api/a","requestContext":{"stage":"$default","http":{"method":"GET","path":"/api/a","sourceIp":"192.0.2.7"}}` + more + `}`
}

func TestHandlersThatGiveUp(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"panic":               func(http.ResponseWriter, *http.Request) { panic("secret") },
		"panic in the middle": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "half"); panic("secret") },
		"abort":               func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"abort in the middle": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		},
		"a panic that is none": func(http.ResponseWriter, *http.Request) { panic(error(nil)) },
	} {
		status, header, body := ask(t, h, event(""))
		if status != 500 || body != `{"error":"Internal error"}` || header["X-Frame-Options"] != "DENY" {
			t.Errorf("%s: %d %v %q, want 500 as routes say it, and nothing else", name, status, header, body)
		}
	}
}

// TestRepliesThatAreTooLarge: a reply that Lambda would refuse is not sent, since Lambda would end
// the process.
func TestRepliesThatAreTooLarge(t *testing.T) {
	for _, tt := range []struct {
		name string
		body string
		want int
	}{
		{"6 MB of text", strings.Repeat("x", 6_000_000), 200},
		{"above 6 MiB", strings.Repeat("x", 6<<20), 400},
		{"quotes, which become twice as many", strings.Repeat(`"`, 3_200_000), 400},
		{"markup, which stays as it is", strings.Repeat("<>&", 2_000_000), 200},
		{"bytes, which become a third more", strings.Repeat("\xff", 4_900_000), 400},
	} {
		status, _, body := ask(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tt.body) }, event(""))
		if status != tt.want || tt.want == 400 && !strings.Contains(body, "6 MB") {
			t.Errorf("%s: %d %.80q, want %d", tt.name, status, body, tt.want)
		}
	}
}

// TestEndlessReplies: a handler that writes more than fits gets an error from Write, and the rest
// is not kept in memory.
func TestEndlessReplies(t *testing.T) {
	for name, end := range map[string]func(){"gives up": func() {}, "has the connection cut": func() { panic(http.ErrAbortHandler) }} {
		written, line := 0, []byte(strings.Repeat("x", 64<<10))
		status, _, body := ask(t, func(w http.ResponseWriter, _ *http.Request) {
			for written < 1<<30 {
				n, err := w.Write(line)
				if written += n; err != nil {
					end()
					return
				}
			}
		}, event(""))
		if status != 400 || !strings.Contains(body, "6 MB") || written > maxAnswer {
			t.Errorf("%s: %d %.80q after %d bytes, want 400 as soon as it is too much", name, status, body, written)
		}
	}
}

// TestHEAD: there is no body, which not every door takes away.
func TestHEAD(t *testing.T) {
	h := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "body") }
	status, header, body := ask(t, h, strings.Replace(event(""), `"GET"`, `"HEAD"`, 1))
	if status != 200 || body != "" || header["Content-Type"] != "text/plain; charset=utf-8" {
		t.Errorf("%d %v %q, want the headers of GET alone", status, header, body)
	}
}

// TestAborts: that a handler has a connection cut is no trouble of its own.
func TestAborts(t *testing.T) {
	for v, want := range map[any]bool{http.ErrAbortHandler: false, "trouble": true} {
		var written strings.Builder
		h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(v) })
		if _, err := Answer(context.Background(), h, []byte(event("")), slog.New(slog.NewTextHandler(&written, nil))); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(written.String(), "stack="); got != want {
			t.Errorf("a panic with %v is logged: %v, want %v", v, got, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	for source, want := range map[string]string{"192.0.2.7": "192.0.2.7:0", "2001:db8::1": "[2001:db8::1]:0", "": ":0"} {
		e := strings.Replace(event(""), "192.0.2.7", source, 1)
		_, _, got := ask(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RemoteAddr) }, e)
		if got != want {
			t.Errorf("RemoteAddr of %q = %q, want %q", source, got, want)
		}
	}
}

func TestHosts(t *testing.T) {
	with := strings.Replace(event(`,"headers":{"host":"a.example:8443","Transfer-Encoding":"chunked"}`), `"stage"`, `"domainName":"b c%.example","stage"`, 1)
	_, _, got := ask(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host, r.Header, r.URL.Host) }, with)
	if got != "a.example:8443map[]" {
		t.Errorf("Host and header = %q, want the Host header as Host, and nothing else", got)
	}
	with = strings.Replace(event(""), `"stage"`, `"domainName":"b.example","stage"`, 1)
	if _, _, got := ask(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host) }, with); got != "b.example" {
		t.Errorf("Host without a header = %q, want that of the door", got)
	}
}

func TestWhatIsNoRequest(t *testing.T) {
	for _, e := range []string{
		``, `null`, `[]`, `"text"`, `{}`, `{"nudge":true}`,
		`{"source":"aws.events","detail-type":"Scheduled Event","detail":{}}`,
		`{"version":"1.0","httpMethod":"GET","path":"/","requestContext":{"stage":"prod","httpMethod":"GET"}}`,
		`{"Records":[{"eventSource":"aws:sqs"}]}`,
		`{"requestContext":{"http":{"method":7}}}`,
	} {
		_, err := Answer(context.Background(), http.NotFoundHandler(), []byte(e), slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), "payload format 2.0") {
			t.Errorf("Answer(%s) = %v, want an error that says what is allowed", e, err)
		}
	}
}

func TestMalformedRequests(t *testing.T) {
	var printed strings.Builder
	log.SetOutput(&printed)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	for name, e := range map[string]string{
		"a body that is no base64":         event(`,"isBase64Encoded":true,"body":"%%%"`),
		"a query with a control":           event(`,"rawQueryString":"a=\u0001"`),
		"a method that is none":            strings.Replace(event(""), `"GET"`, `"G T"`, 1),
		"a query with a control, in a map": event(`,"queryStringParameters":{"a":"1"},"rawQueryString":"\u007f"`),
	} {
		status, _, body := ask(t, func(http.ResponseWriter, *http.Request) { t.Errorf("%s: was served", name) }, e)
		if status != 400 || body != "malformed request" {
			t.Errorf("%s: %d %q, want 400", name, status, body)
		}
	}
	if printed.Len() > 0 {
		t.Errorf("the library logged %q", printed.String())
	}
}

func TestStages(t *testing.T) {
	for _, tt := range []struct{ path, stage, want string }{
		{"/prod/a", "prod", "/a"}, {"/prod", "prod", "/"}, {"/prod/", "prod", "/"}, {"/prod//a", "prod", "//a"},
		{"/production", "prod", "/production"}, {"/a/prod", "prod", "/a/prod"}, {"/a", "prod", "/a"},
		{"/$default/a", "$default", "/$default/a"}, {"/a", "", "/a"}, {"", "prod", ""},
	} {
		if got := unstaged(tt.path, tt.stage); got != tt.want {
			t.Errorf("unstaged(%q, %q) = %q, want %q", tt.path, tt.stage, got, tt.want)
		}
	}
}

// TestPaths: one that a door hands on decoded becomes one that can be read.
func TestPaths(t *testing.T) {
	for path, want := range map[string]string{
		"/a b": "/a%20b", "/100%": "/100%25", "/%zz": "/%25zz", "/a?b#c": "/a%3Fb%23c", "/a%2Fb": "/a%2Fb", "/\"<>": "/%22%3C%3E",
		"/\x01\x7f": "/%01%7F", "/é": "/é", "/%4": "/%254", "": "",
	} {
		if got := escaped(path); got != want {
			t.Errorf("escaped(%q) = %q, want %q", path, got, want)
		}
		e := strings.Replace(event(""), `"/api/a"`, string(quoted(path)), 1)
		if status, _, _ := ask(t, func(http.ResponseWriter, *http.Request) {}, e); status != 200 {
			t.Errorf("%q was answered %d, want 200", path, status)
		}
	}
}

func quoted(s string) []byte {
	text, _ := json.Marshal(s)
	return text
}

func TestTheRequestEndsBeforeTheInvocation(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	invocation, _ := ctx.Deadline()
	_, err := Answer(ctx, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if at, ok := r.Context().Deadline(); !ok || !at.Equal(invocation.Add(-time.Second)) {
			t.Errorf("the request ends at %v, want a second before %v", at, invocation)
		}
	}), []byte(event("")), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
}

func TestConcurrentInvocations(t *testing.T) {
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			body := fmt.Sprintf("%d%s", i, strings.Repeat("x", i*1000))
			e := strings.Replace(event(`,"body":"`+body+`"`), `"GET"`, `"POST"`, 1)
			_, _, got := ask(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }, e)
			if got != body {
				t.Errorf("%.10q was echoed as %.10q", body, got)
			}
		})
	}
	all.Wait()
}

func BenchmarkAnswer(b *testing.B) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	e := []byte(event(`,"body":"` + strings.Repeat("x", 1000) + `"`))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Answer(context.Background(), h, e, slog.New(slog.DiscardHandler)); err != nil {
			b.Fatal(err)
		}
	}
}
