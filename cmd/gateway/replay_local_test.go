package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/cmd/gateway/internal/remote"
	"github.com/eventgateway/gateway/core/config"
)

// A target answers posts by their path, and accepts posts to any other path.
type target struct {
	answers map[string][]string // each "<status> <body>" or "!<error>"; the last one is repeated
	got     []string
	waits   []time.Duration // times of the posts, since the first
	began   time.Time
}

func (a *target) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	if a.began.IsZero() {
		a.began = time.Now()
	}
	a.waits = append(a.waits, time.Since(a.began))
	path := r.URL.EscapedPath()
	a.got = append(a.got, fmt.Sprintf("%s %s %s", r.Method, path, body))
	answer := `202 {"event_id":"01J90000000000000000000009","duplicate":false,"jobs_created":1}`
	if left := a.answers[path]; len(left) > 0 {
		answer = left[0]
		a.answers[path] = left[min(1, len(left)-1):]
	}
	if text, broken := strings.CutPrefix(answer, "!"); broken {
		return nil, errors.New(text)
	}
	var code int
	var reply string
	fmt.Sscan(answer, &code)
	_, reply, _ = strings.Cut(answer, " ")
	return &http.Response{StatusCode: code, Header: http.Header{"Retry-After": {"7"}, "X-Api-Version": {"1"}}, Body: io.NopCloser(strings.NewReader(reply)), Request: r}, nil
}

// replayTo replays a file to a target and returns the output.
func replayTo(ctx context.Context, to http.RoundTripper, lines string) (p *posting, printed string, err error) {
	var out strings.Builder
	s := session{stdin: strings.NewReader(lines)}.system(&out, &out)
	r := localReplay{file: "-", yes: true, to: &url.URL{Scheme: "http", Host: "gateway.example"}, maxLine: 1000}
	p = &posting{app: newApp(s), localReplay: r, calls: remote.HTTPClient(answerTimeout)}
	p.calls.Transport = to
	err = p.run(ctx)
	return p, out.String(), err
}

// lineOf is a line of an export.
func lineOf(eventType string) string {
	return fmt.Sprintf(`{"id":"01J90000000000000000000001","source":"shop","event_type":%q,"payload":{"n": 1}}`+"\n", eventType)
}

// TestReplayGoesOn: each event is sent once, in order, whether or not earlier events failed.
func TestReplayGoesOn(t *testing.T) {
	to := &target{answers: map[string][]string{
		"/events/shop/seen":    {`200 {"event_id":"01J90000000000000000000009","duplicate":true,"jobs_created":0}`},
		"/events/shop/refused": {"400 {\"error\":\"no \\u001b[2J schema\"}"},
		"/events/shop/nowhere": {"404 Unknown source"},
		"/events/shop/silent":  {"500 "},
		"/events/shop/cut":     {"!connection reset"},
	}}
	lines := lineOf("a") + lineOf("seen") + "x\n" + lineOf("refused") + lineOf("nowhere") + lineOf("silent") + lineOf("cut") + lineOf("b/c") +
		`{"source":"shop","event_type":"t","payload":1,"headers":{"content-type":"a\nb"}}` + "\n" +
		`{"source":"shop","event_type":"x","payload":1,"headers":{"x-other":"a\nb","content-type":"a\tb"}}` + "\n"
	p, printed, err := replayTo(t.Context(), to, lines)
	if want := (posted{Sent: 3, Duplicates: 1, Failed: 6}); p.sent != want || !errors.Is(err, errReported) {
		t.Errorf("%+v, %v, want %+v and failure", p.sent, err, want)
	}
	const event = ", event 01J90000000000000000000001: "
	if diff := cmp.Diff(`gateway: line 3: it is no JSON object
gateway: line 4`+event+`400 Bad Request: no \x1b[2J schema
gateway: line 5`+event+`404 Not Found: Unknown source
gateway: line 6`+event+`500 Internal Server Error
gateway: line 7`+event+`no answer: connection reset
gateway: line 9: headers: content-type holds a line break or control character, which no request can: "a\nb"
sent 3, duplicates 1, failed 6
`, printed); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	want := []string{"a", "seen", "refused", "nowhere", "silent", "cut", "b%2Fc"}
	for i, name := range want {
		want[i] = "POST /events/shop/" + name + ` {"n": 1}`
	}
	want = append(want, "POST /events/shop/x 1")
	if diff := cmp.Diff(want, to.got); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// TestReplayWaitsForTheBusy: a replay waits for a busy gateway, for a bounded number of tries.
func TestReplayWaitsForTheBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &target{answers: map[string][]string{
			"/events/shop/a": {"429 Too many requests", "503 Too many concurrent requests", "202 Event accepted"},
			"/events/shop/b": {"503 Service unavailable"},
		}}
		p, printed, err := replayTo(t.Context(), to, lineOf("a")+lineOf("b"))
		if want := (posted{Sent: 1, Failed: 1}); p.sent != want || !errors.Is(err, errReported) {
			t.Errorf("%+v, %v, want %+v and failure", p.sent, err, want)
		}
		if !strings.Contains(printed, "line 2, event 01J90000000000000000000001: 503 Service Unavailable: Service unavailable\n") {
			t.Errorf("printed %s", printed)
		}
		s := time.Second
		if diff := cmp.Diff([]time.Duration{0, 7 * s, 14 * s, 14 * s, 21 * s, 28 * s, 35 * s, 42 * s}, to.waits); diff != "" {
			t.Errorf("sent at (-want +got):\n%s", diff)
		}
	})
}

// TestReplayStops: an error that would hit every event ends the replay and is printed once.
func TestReplayStops(t *testing.T) {
	for _, c := range []struct{ name, bearer, answer, want string }{
		{"no token", "", "401 Invalid token", "the gateway at http://gateway.example asks for a token; put one of its api.auth_token or api.tokens into GATEWAY_TOKEN, or a file for --token-file"},
		{"wrong token", "t", "401 Invalid token", "the gateway at http://gateway.example refused the token; is it in api.auth_token or api.tokens of its configuration?"},
		{"low role", "t", `403 token "ci" has the role read; this needs send`, `the gateway at http://gateway.example refused this: token "ci" has the role read; this needs send; put a token with the needed role into GATEWAY_TOKEN, or a file for --token-file`},
		{"no gateway", "", "stranger", "the server at http://gateway.example is not a gateway: 200 OK; give the address of one with --target"},
		{"nobody there", "", "dial", `no gateway answers at http://gateway.example (refused); "gateway start" starts one, --target names another`},
	} {
		var sent int
		known := http.Header{"X-Api-Version": {"1"}}
		to := roundTrip(func(r *http.Request) (*http.Response, error) {
			switch sent++; {
			case sent == 1:
				return &http.Response{StatusCode: 202, Header: known, Body: http.NoBody, Request: r}, nil
			case c.answer == "dial":
				return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
			case c.answer == "stranger":
				return &http.Response{StatusCode: 200, Body: http.NoBody, Request: r}, nil
			}
			status, text, _ := strings.Cut(c.answer, " ")
			code, _ := strconv.Atoi(status)
			refused := http.Header{"X-Api-Version": {"1"}, "Www-Authenticate": {"Bearer"}}
			if code == 403 {
				refused.Set("WWW-Authenticate", `Bearer error="insufficient_scope"`)
			}
			return &http.Response{StatusCode: code, Header: refused, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
		})
		var out strings.Builder
		p := &posting{app: newApp(session{stdin: strings.NewReader(strings.Repeat(lineOf("a"), 5))}.system(&out, &out)), calls: remote.HTTPClient(answerTimeout),
			localReplay: localReplay{file: "-", to: &url.URL{Scheme: "http", Host: "gateway.example"}, maxLine: 1000, bearer: c.bearer}}
		p.calls.Transport = to
		if err := p.run(t.Context()); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		if sent != 2 || out.String() != "sent 1, duplicates 0, failed 0\n" {
			t.Errorf("%s: %d requests, printed %s", c.name, sent, out.String())
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestReplayInterrupted: an interrupt ends a replay between events and during a pause.
func TestReplayInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		to := &target{answers: map[string][]string{"/events/shop/b": {"503 busy"}}}
		p, printed, err := replayTo(ctx, to, lineOf("a")+strings.Repeat(lineOf("b"), 3))
		if !errors.Is(err, context.DeadlineExceeded) || p.sent.Sent != 1 || printed != "sent 1, duplicates 0, failed 0\n" {
			t.Errorf("%+v, %v, printed %s", p.sent, err, printed)
		}
	})
}

// TestReplayAsks: the user is asked after the file is counted, and the answer decides.
func TestReplayAsks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events.jsonl")
	if err := os.WriteFile(file, []byte(lineOf("order.created")+"x\n"+lineOf("order.paid")+lineOf("refund")), 0o600); err != nil {
		t.Fatal(err)
	}
	const question = "gateway: line 2: it is no JSON object\ngateway: replay "
	for _, c := range []struct {
		answer string
		args   []string
		code   int
		want   string
	}{
		{"n\n", nil, exitFailed, question + "3 events to http://127.0.0.1:1? [y/N] gateway: nothing was done\n"},
		{"", []string{"-t", "order.*"}, exitFailed, question + "2 of 3 events to http://127.0.0.1:1? [y/N] gateway: nothing was done\n"},
		{"y\n", []string{"-t", "refund"}, exitFailed, question + "1 of 3 events to http://127.0.0.1:1? [y/N] gateway: no gateway answers at http://127.0.0.1:1 (connect: connection refused); \"gateway start\" starts one, --target names another\n"},
		{"", []string{"-t", "other"}, exitFailed, "gateway: line 2: it is no JSON object\n"},
	} {
		s := session{stdin: strings.NewReader(c.answer), attended: true}
		code, _, stderr := s.run(t.Context(), append([]string{"replay-local", file, "--target", "http://127.0.0.1:1"}, c.args...)...)
		if code != c.code || stderr != c.want {
			t.Errorf("%q to %q: ends with %d and\n%s\nwant %d and\n%s", c.answer, c.args, code, stderr, c.code, c.want)
		}
	}
}

// TestReplayToken: the token of the configuration is sent to this machine and to the address
// that the configuration names.
func TestReplayToken(t *testing.T) {
	for _, c := range []struct {
		target, given string
		want          string
	}{
		{"", "", "configured"},
		{"http://127.0.0.1:9000", "", "configured"},
		{"http://[::1]:9000", "", "configured"},
		{"http://localhost", "", "configured"},
		{"https://GATEWAY.example:8443/below", "", "configured"},
		{"http://gateway.example:8443", "", "withheld"},
		{"https://gateway.example", "", "withheld"},
		{"https://gateway.example.evil.example:8443", "", "withheld"},
		{"https://evil.example", "", "withheld"},
		{"https://evil.example", "given", "given"},
		{"http://127.0.0.1:9000", "given", "given"},
	} {
		cfg := config.Default()
		cfg.API.AuthToken = config.Secrets{"configured"}
		cfg.Server.Host, cfg.Server.PublicURL = "0.0.0.0", "https://gateway.example:8443/in"
		a := newApp(session{}.system(io.Discard, io.Discard))
		a.tokenFlag = c.given
		r := localReplay{target: c.target}
		if err := a.aim(t.Context(), cfg, &r); err != nil {
			t.Fatal(err)
		}
		got := r.bearer
		if r.withheld {
			got += "withheld"
		}
		if got != c.want {
			t.Errorf("--target %q with token %q: %q, want %q", c.target, c.given, got, c.want)
		}
	}
}
