package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// A distant is a gateway on another machine.
type distant struct {
	health stub
	token  string // token of its management API; "" for none
	stats  string
	ahead  time.Duration // how far its clock is ahead of this machine's
	dumb   bool          // its replies have no header Date
}

func (d distant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", time.Now().Add(d.ahead).UTC().Format(http.TimeFormat))
	if d.dumb {
		w.Header()["Date"] = nil
	}
	switch {
	case r.URL.Path == "/health":
		d.health.ServeHTTP(w, r)
	case d.token != "" && r.Header.Get("Authorization") != "Bearer "+d.token:
		stub{status: 401, body: "Invalid token"}.ServeHTTP(w, r)
	default:
		stub{status: 200, body: d.stats}.ServeHTTP(w, r)
	}
}

func TestDoctorFromOutside(t *testing.T) {
	well := stub{status: 200, body: `{"status":"ok","queue_depth":3}`}
	const fine = "ok       server    a gateway runs at $AT; unfinished jobs: 3\n"
	const taken = "ok       security  the management API asks for a token, and takes this one\n"
	const flows = "ok       lines     no line is stopped\n"
	const free = "ok       holds     nothing is held\n" + flows
	const closed = "ok       breakers  all closed: no handler's deliveries wait for it to recover\n" + free
	for _, c := range []struct {
		name  string
		there distant
		want  string // without the line of a correct clock
		code  int
	}{
		{"well", distant{health: well, token: "t"}, fine + taken + closed, exitDone},
		{"open", distant{health: well, stats: "{}"}, fine +
			"warning  security  the management API asks for no token: everyone who reaches it may read and change everything; set api.auth_token\n" + closed, exitDone},
		{"another token", distant{health: well, token: "another"}, fine +
			"failed   security  the gateway at $AT refused the token; is it in api.auth_token or api.tokens of its configuration?\n", exitFailed},
		{"ill", distant{health: stub{status: 503, body: `{"status":"error","detail":"disk \u001b full"}`}, token: "t"},
			`failed   server    the gateway at $AT is not well: disk \x1b full; see its log` + "\n" + taken + closed, exitFailed},
		{"behind", distant{health: stub{status: 200, body: `{"status":"ok","queue_depth":3,"config":{"state":"unreachable","since":"\u001b"}}`}, token: "t"},
			`warning  server    the gateway at $AT does not follow its newest configuration since \x1b: unreachable; its log says why` + "\n" + taken + closed, exitDone},
		{"a page", distant{health: stub{status: 200, body: "<html>", foreign: true}},
			"failed   server  the server at $AT is not a gateway: 200 OK; give the address of one with --url\n", exitFailed},
		{"recovering", distant{health: well, token: "t", stats: `{"handlers":[{"name":"mail\u202e","circuit_breaker":"open"},{"name":"stock","circuit_breaker":"closed"},{"name":"bill","circuit_breaker":"half-open"}]}`},
			fine + taken + `warning  breakers  that of handler mail\u202e is open: too many deliveries failed in a row; "gateway jobs list --handler mail\u202e --status retryable --url $AT" shows why; when it works again, "gateway breaker reset mail\u202e --url $AT" spares the wait` + "\n" +
				`warning  breakers  that of handler bill is half-open: too many deliveries failed in a row; "gateway jobs list --handler bill --status retryable --url $AT" shows why; when it works again, "gateway breaker reset bill --url $AT" spares the wait` + "\n" + free, exitDone},
		{"held", distant{health: well, token: "t", stats: `{"at":"2026-11-20T12:00:00","handlers":[{"name":"mail\u202e","circuit_breaker":"closed","held_since":"2026-11-20T11:00:00","held_until":null}],` +
			`"queues":[{"name":"work","held_since":"2026-11-18T12:00:00","held_until":"2026-11-21T12:00:00"},{"name":"free","held_since":null,"held_until":null}],"workflows":[{"name":"ship","held_since":"2026-11-20T11:00:00","held_until":null}],` +
			`"sources":[{"name":"github","held_since":"2026-11-18T12:00:00","held_until":null},{"name":"shop","held_since":null,"held_until":null}]}`},
			fine + taken + strings.TrimSuffix(closed, free) + `ok       holds     mail\u202e is held since 2026-11-20T11:00:00.000` + "\n" +
				`warning  holds     queue/work is held since 2026-11-18T12:00:00.000 until 2026-11-21T12:00:00.000; "gateway release queue/work --url $AT" lets it go on` + "\n" +
				"ok       holds     workflow/ship is held since 2026-11-20T11:00:00.000\n" +
				`warning  holds     source/github is held since 2026-11-18T12:00:00.000; "gateway release source/github --url $AT" lets it go on` + "\n" + flows, exitDone},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.there.stats == "" {
				c.there.stats = "{}"
			}
			server := httptest.NewServer(c.there)
			defer server.Close()
			code, stdout, stderr := session{env: map[string]string{"GATEWAY_TOKEN": "t"}}.run(t.Context(), "doctor", "--url", server.URL)
			lines := slices.DeleteFunc(strings.SplitAfter(stdout, "\n"), func(l string) bool {
				return strings.HasPrefix(l, "ok       clock     the gateway's agrees with this machine's to within ")
			})
			if got, want := strings.Join(lines, ""), strings.ReplaceAll(c.want, "$AT", server.URL); code != c.code || got != want {
				t.Errorf("exit code %d and\n%s(%s)want code %d and\n%s", code, got, stderr, c.code, want)
			}
		})
	}
}

// The header Date has a resolution of 1 s: doctor does not call a clock wrong within that.
func TestClockOfAGateway(t *testing.T) {
	for _, c := range []struct {
		ahead time.Duration
		dumb  bool
		want  string
	}{
		{ahead: 0, want: "ok       clock     the gateway's agrees with this machine's"},
		{ahead: 10 * time.Second, want: "warning  clock     the gateway's is "},
		{ahead: -10 * time.Minute, want: "failed   clock     the gateway's is "},
		{dumb: true, want: "skipped  clock     the gateway does not tell the time"},
	} {
		server := httptest.NewServer(distant{health: stub{status: 200, body: `{"status":"ok","queue_depth":0}`}, stats: "{}", ahead: c.ahead, dumb: c.dumb})
		_, stdout, _ := session{}.run(t.Context(), "doctor", "--url", server.URL)
		server.Close()
		if !strings.Contains(stdout, "\n"+c.want) {
			t.Errorf("a clock that is %s ahead, dumb %v: %s, want a line %q", c.ahead, c.dumb, stdout, c.want)
		}
	}
}
