//go:build linux

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/ports"
	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// An animal is a handler with unusual behaviour, and the expected state of a job that it gets.
type animal struct {
	name string
	url  string
	grpc bool
	code int    // status code of each attempt, 0 for none
	want string // beginning of the last error, "" for a success

	// wait is the least and the most time until the next attempt. Zero means the interval of
	// zooConfig: an hour, within 20 %.
	wait [2]time.Duration
}

// ends reports whether the test waits for a second attempt.
func (a animal) ends() bool { return a.wait[1] == 0 }

// Each animal has two handlers. The handler with the suffix -waits shows the state after the
// first attempt. The handler with the suffix -ends shows the end after the second attempt,
// unless that would take hours.
const (
	zooConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery: {timeout: 2s}
worker: {max_concurrency: 20}
sources: {app: {type: event}}
handlers:
`
	zooEnds = `
  %s-ends: {source: app, url: "%s", type: %s, retry: {max: 2, backoff: fixed, interval: 50ms}}`
	zooWaits = `
  %s-waits: {source: app, url: "%s", type: %s, retry: {max: 3, backoff: fixed, interval: 1h}}`
)

// TestZoo sends one event to every animal.
func TestZoo(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	animals := allAnimals(t, r)
	config, jobs := zooConfig, 0
	for _, a := range animals {
		kind := map[bool]string{false: "http", true: "grpc"}[a.grpc]
		config += fmt.Sprintf(zooWaits, a.name, a.url, kind)
		jobs++
		if a.ends() {
			config += fmt.Sprintf(zooEnds, a.name, a.url, kind)
			jobs++
		}
	}
	g := newGateway(t, config, r)
	g.env = append(g.env, "SSL_CERT_FILE="+trusted(t))
	g.start()
	g.log.watchFor("s3cret")
	event := g.send("/events/order.created", `{"total":1.50}`)
	g.awaitJobs(60*time.Second, func(j job) bool { return j.Status == "retryable" && strings.HasSuffix(j.Handler, "-waits") })
	told := g.storiesOf(event)
	list, text := g.run("jobs", "list", "--limit", "1000"), g.run("inspect", event)
	for _, a := range animals {
		if a.ends() {
			a.checkEnd(t, told[a.name+"-ends"])
		}
		a.checkWait(t, told[a.name+"-waits"])
		a.checkPrinted(t, list, text)
	}
	g.stop()
	for what, printed := range map[string]string{"jobs list": list, "inspect": text} {
		if strings.Contains(printed, "s3cret") {
			t.Errorf("%s tells what is secret in an url:\n%s", what, printed)
		}
	}
	g.ledger().check(jobs)
}

// awaitJobs waits until every job is completed or dead, or orElse returns true for it.
func (g *gateway) awaitJobs(limit time.Duration, orElse func(job) bool) {
	g.t.Helper()
	waits := func(j job) bool { return j.Status != "completed" && j.Status != "dead" && !orElse(j) }
	wait.For(g.t, limit, "no job waits", func() bool { return !slices.ContainsFunc(g.jobs(), waits) })
}

// awaitDone waits until every job is completed or dead.
func (g *gateway) awaitDone(limit time.Duration) {
	g.t.Helper()
	g.awaitJobs(limit, func(job) bool { return false })
}

// A story is a job as "inspect --json" shows it.
type story struct {
	Handler     string `json:"handler"`
	Status      string `json:"status"`
	Attempt     int    `json:"attempt"`
	ScheduledAt moment `json:"scheduled_at"`
	LastError   string `json:"last_error"`
	Attempts    []struct {
		StatusCode int    `json:"status_code"`
		Error      string `json:"error"`
		DurationMS int64  `json:"duration_ms"`
		Response   string `json:"response"`
		CreatedAt  moment `json:"created_at"`
	} `json:"attempts"`
}

// A moment is a time as --json shows it: in UTC, with milliseconds; zero for null.
type moment struct{ time.Time }

func (m *moment) UnmarshalJSON(b []byte) (err error) {
	if string(b) != "null" {
		m.Time, err = time.Parse(`"2006-01-02T15:04:05.000"`, string(b))
	}
	return err
}

// storiesOf returns the jobs of an event by handler.
func (g *gateway) storiesOf(event string) map[string]story {
	g.t.Helper()
	var e struct{ Jobs []story }
	g.runJSON(&e, "inspect", event)
	told := map[string]story{}
	for _, s := range e.Jobs {
		told[s.Handler] = s
	}
	return told
}

// checkEnd checks a finished job. A success is completed after one attempt. A failure is dead
// after two attempts with an error each. Both have the time at which the last attempt was due.
func (a animal) checkEnd(t *testing.T, s story) {
	t.Helper()
	status, attempts := "completed", 1
	if a.want != "" {
		status, attempts = "dead", 2
	}
	if s.Status != status || s.Attempt != attempts || s.ScheduledAt.IsZero() {
		t.Errorf("%s: %s after attempt %d, due at %v, want %s after attempt %d", a.name, s.Status, s.Attempt, s.ScheduledAt, status, attempts)
	}
	a.checkAttempts(t, s, attempts)
	if n := len(s.Attempts); n > 0 && s.ScheduledAt.After(s.Attempts[n-1].CreatedAt.Time) {
		t.Errorf("%s: the last attempt began at %v, before it was due at %v", a.name, s.Attempts[n-1].CreatedAt, s.ScheduledAt)
	}
}

// checkWait checks the wait of a failed job for its second attempt.
func (a animal) checkWait(t *testing.T, s story) {
	t.Helper()
	if a.want == "" {
		a.checkEnd(t, s)
		return
	}
	a.checkAttempts(t, s, 1)
	if s.Status != "retryable" || s.Attempt != 1 || s.ScheduledAt.IsZero() || len(s.Attempts) != 1 {
		t.Errorf("%s: %s after attempt %d, next %v, want retryable after attempt 1", a.name, s.Status, s.Attempt, s.ScheduledAt)
		return
	}
	least, most := a.wait[0], a.wait[1]
	if most == 0 {
		least, most = 48*time.Minute, 72*time.Minute
	}
	began := s.Attempts[0]
	ended := began.CreatedAt.Add(time.Duration(began.DurationMS) * time.Millisecond)
	if wait := s.ScheduledAt.Sub(ended); wait < least-5*time.Millisecond || wait > most+5*time.Millisecond {
		t.Errorf("%s: waits %v for the next attempt, want %v to %v", a.name, wait, least, most)
	}
}

func (a animal) checkAttempts(t *testing.T, s story, n int) {
	t.Helper()
	if !strings.HasPrefix(s.LastError, a.want) || (a.want == "") != (s.LastError == "") || len(s.Attempts) != n {
		t.Errorf("%s: last error %q after %d attempts, want %q after %d", s.Handler, s.LastError, len(s.Attempts), a.want, n)
	}
	for i, at := range s.Attempts {
		if at.StatusCode != a.code || !strings.HasPrefix(at.Error, a.want) || i == n-1 && at.Error != s.LastError {
			t.Errorf("%s: attempt %d has status %d and %q, want %d and %q", s.Handler, i+1, at.StatusCode, at.Error, a.code, a.want)
		}
		if len(at.Response) > 4096 || at.DurationMS > 10_000 {
			t.Errorf("%s: attempt %d took %d ms and left %d bytes", s.Handler, i+1, at.DurationMS, len(at.Response))
		}
	}
}

// checkPrinted checks the output for people.
func (a animal) checkPrinted(t *testing.T, list, inspected string) {
	t.Helper()
	kept := map[string][]string{a.name + "-waits": {"retryable", "1/3"}}
	if a.ends() {
		kept[a.name+"-ends"] = []string{"dead", "2/2"}
	}
	for handler, want := range kept {
		if a.want == "" {
			want[0], want[1] = "completed", "1"+want[1][1:]
		}
		line := lineWith(list, " "+handler+" ")
		for _, word := range append(want, a.want) {
			if len(word) > 50 {
				word = word[:50] // the rest may be cut off
			}
			if !strings.Contains(line, word) {
				t.Errorf("jobs list says %q of %s, want %q in it", line, handler, word)
			}
		}
	}
	if !strings.Contains(inspected, " "+a.name+"-waits: ") || !strings.Contains(inspected, a.want) {
		t.Errorf("inspect does not say %q of %s", a.want, a.name)
	}
}

func lineWith(text, word string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// TestRetryAfterIsWaitedFor: the gateway waits for the time in Retry-After, to the second.
func TestRetryAfterIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	config := zooConfig
	for _, name := range []string{"seconds", "date"} {
		config += fmt.Sprintf("  %[1]s: {source: app, url: \"%[2]s/%[1]s\", retry: {max: 2, interval: 10ms}}\n", name, r.URL())
		r.On("/"+name, func(n int, w http.ResponseWriter, _ *http.Request) {
			later := map[string]string{"seconds": "2", "date": time.Now().Add(3 * time.Second).UTC().Format(http.TimeFormat)}[name]
			w.Header().Set("Retry-After", later)
			w.WriteHeader(map[bool]int{true: 429, false: 200}[n == 1])
		})
	}
	g := newGateway(t, config, r)
	g.start()
	g.send("/events/order.created", `{}`)
	for _, name := range []string{"seconds", "date"} {
		ds := r.Await(t, 20*time.Second, "/"+name, 2)
		if waited := ds[1].At.Sub(ds[0].At); waited < 2*time.Second-10*time.Millisecond {
			t.Errorf("the second attempt came %v after an answer that asked for at least 2s (%s)", waited, name)
		}
	}
	g.awaitIdle(10 * time.Second)
	g.stop()
	g.ledger().check(2)
}

// allAnimals starts all animals.
func allAnimals(t *testing.T, r *receiver.Receiver) []animal {
	const ok = "HTTP/1.1 200 OK\r\n"
	hour := func(h float64) [2]time.Duration {
		d := time.Duration(h * float64(time.Hour))
		return [2]time.Duration{d - 2*time.Second, d}
	}
	later := func(name string, code int, value, want string, wait [2]time.Duration) animal {
		return polite(r, animal{name: name, code: code, want: want, wait: wait}, "Retry-After", value)
	}
	plain := func(code int, want string, headers ...string) animal {
		return polite(r, animal{name: fmt.Sprint("s", code), code: code, want: want}, headers...)
	}
	raw := func(name string, code int, want string, talk func(net.Conn)) animal {
		return animal{name: name, url: rawServer(t, talk) + "/?token=s3cret", code: code, want: want}
	}
	const tooMany = "status: 429 Too Many Requests"
	inThreeHours := time.Now().Add(3 * time.Hour).UTC().Format(http.TimeFormat)
	animals := []animal{
		plain(200, ""), plain(201, ""), plain(202, ""), plain(204, ""), plain(299, ""),
		plain(301, "status: 301 Moved Permanently to 169.254.169.254; redirects are not followed", "Location", "http://169.254.169.254/latest/meta-data?s3cret"),
		plain(302, "status: 302 Found; redirects are not followed", "Location", "/s302"),
		plain(304, "status: 304 Not Modified; redirects are not followed"),
		plain(307, "status: 307 Temporary Redirect to 127.0.0.1; redirects are not followed", "Location", r.URL()+"/s200"),
		plain(400, "status: 400 Bad Request"), plain(401, "status: 401 Unauthorized"), plain(404, "status: 404 Not Found"),
		plain(410, "status: 410 Gone; "), plain(418, "status: 418 I'm a teapot"), plain(499, "status: 499"),
		plain(500, "status: 500 Internal Server Error"), plain(502, "status: 502 Bad Gateway"), plain(599, "status: 599"),

		later("later-seconds", 429, "7200", tooMany, hour(2)),
		later("later-date", 429, inThreeHours, tooMany, [2]time.Duration{3*time.Hour - time.Minute, 3 * time.Hour}),
		later("later-busy", 503, "7200", "status: 503 Service Unavailable", hour(2)),
		later("later-early", 425, "7200", "status: 425 Too Early", hour(2)),
		later("later-not-asked", 400, "7200", "status: 400 Bad Request", [2]time.Duration{}),
		later("later-sooner", 429, "1", tooMany, [2]time.Duration{}),
		later("later-never", 429, "1000000000000", tooMany, hour(24)),
		later("later-year-9999", 429, "Fri, 31 Dec 9999 23:59:59 GMT", tooMany, hour(24)),
		later("later-overflow", 429, "99999999999999999999999", tooMany, [2]time.Duration{}),
		later("later-negative", 429, "-7200", tooMany, [2]time.Duration{}),
		later("later-past", 429, "Fri, 20 Nov 2020 09:00:00 GMT", tooMany, [2]time.Duration{}),
		later("later-words", 429, "in two hours", tooMany, [2]time.Duration{}),
		later("later-float", 503, "7200.5", "status: 503 Service Unavailable", [2]time.Duration{}),

		raw("garbage", 0, "protocol: malformed HTTP response", talks("\x16\x03\x01\x00\xffgarbage\r\n\r\n")),
		raw("greets", 0, "protocol: ", talks("220 mail.example.com ESMTP\r\n")),
		raw("closes", 0, "protocol: connection closed before there was an answer", talks()),
		raw("half-a-status", 0, "protocol: ", talks("HTTP/1.1 2")),
		raw("half-a-header", 0, "protocol: ", talks(ok, "Content-Le")),
		raw("huge-header", 0, "protocol: server response headers exceeded 65536 bytes", talks(ok, "X: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")),
		raw("half-a-body", 200, "", talks(ok, "Content-Length: 100\r\n\r\nthanks")),
		raw("half-a-failure", 500, "status: 500 Internal Server Error", talks("HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\noops")),
		raw("adds", 200, "", func(c net.Conn) { // net/http would log this
			talks(ok, "Content-Length: 6\r\n\r\nthanks", "and a s3cret")(c)
			_, _ = io.Copy(io.Discard, c)
		}),
		raw("not-text", 200, "", talks(ok, "\r\n\x00\xff\xfe\x1b[31m")),
		raw("endless-body", 200, "", talksOn(ok+"\r\n", strings.Repeat("x", 4096), 0)),
		raw("endless-failure", 502, "status: 502 Bad Gateway", talksOn("HTTP/1.1 502 No\r\n\r\n", strings.Repeat("x", 4096), 0)),
		raw("endless-headers", 0, "protocol: server response headers exceeded 65536 bytes", talksOn(ok, "X: y\r\n", 0)),
		raw("slow-body", 200, "", talksOn(ok+"\r\n", "x", 10*time.Millisecond)),
		raw("slow-headers", 0, "timeout: no answer within 2s", talksOn(ok, "X: y\r\n", 10*time.Millisecond)),
		raw("slow-status", 0, "timeout: no answer within 2s", talksOn("", "H", 10*time.Millisecond)),
		raw("hangs", 0, "timeout: no answer within 2s", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }),
		raw("upgrades", 101, "status: 101 Switching Protocols", talks("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")),

		{name: "refuses", url: "http://" + ports.Refusing(t) + "/?token=s3cret", want: "connect: connection refused"},
		{name: "full", url: fullServer(t), want: "timeout: no answer within 2s"},
		{name: "no-name", url: "http://handler.invalid/?token=s3cret", want: "dns: "},
		{name: "metadata", url: "http://169.254.169.254/?token=s3cret", want: "blocked: 169.254.169.254 may be a cloud's metadata service"},
	}
	animals = append(append(animals, secureAnimals(t)...), foreignAnimals(t, r)...)
	r.On("/in-time", r.Taking(time.Second))
	r.On("/too-late", r.Taking(4*time.Second))
	return append(animals,
		animal{name: "in-time", url: r.URL() + "/in-time", code: 200},
		animal{name: "too-late", url: r.URL() + "/too-late", want: "timeout: no answer within 2s"})
}

// polite is an animal with valid HTTP answers.
func polite(r *receiver.Receiver, a animal, headers ...string) animal {
	path := "/" + a.name
	a.url = r.URL() + path + "?token=s3cret"
	r.On(path, func(_ int, w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(a.code)
	})
	return a
}
