package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/runner"
	"github.com/eventgateway/gateway/core/workflow"
)

func stepsOf(t testing.TB, c *Client, secrets ...string) runner.Caller {
	t.Helper()
	s, err := c.Steps(secrets, "")
	if err != nil {
		t.Fatalf("Steps = %v", err)
	}
	return s
}

// stepJob is the job of a step on its third attempt, taken for the seventh time.
func stepJob() core.TakenJob {
	job := taken("01HZY8Q4000000000000000JOB", `{"not": "sent"}`)
	job.Attempt, job.MaxAttempts = 7, core.Unlimited
	job.Situation.Run = core.Run{ID: "01HZY8Q4000000000000000RUN", Workflow: "fulfil"}
	job.Situation.Step = core.Step{Path: "prepare/parcels/pack/17/item#2", Attempt: 2}
	return job
}

func asked(url, body string) workflow.Request {
	return workflow.Request{Method: "POST", URL: url, Body: []byte(body), Key: "01HZY8Q4000000000000000RUN.1.charge"}
}

// ask makes one call with a deadline that is far away.
func ask(t testing.TB, s runner.Caller, r workflow.Request, job core.TakenJob) runner.Answer {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return s.Call(ctx, r, job)
}

// TestStepGolden holds every header of a step's call.
func TestStepGolden(t *testing.T) {
	arrived := make(chan request, 1)
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		header := map[string]string{}
		for name, values := range r.Header {
			header[strings.ToLower(name)] = strings.Join(values, " | ")
		}
		arrived <- request{r.Method, r.RequestURI, r.Host, string(body), r.ContentLength, header}
	})
	client := newClient(t)
	client.clock = func() time.Time { return time.UnixMilli(1_614_265_330_900) }
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	job := stepJob()
	job.Event.Headers = map[string]string{"traceparent": trace, "tracestate": "a=1", "ce-id": "not sent", "ce-specversion": "1.0", "ce-source": "x", "ce-type": "x"}
	r := asked(url+"/charge?x=1", vectorBody)
	r.Headers = map[string]string{"x-api-key": "k"}
	if got := ask(t, stepsOf(t, client, vectorSecret), r, job); got.Error != "" {
		t.Fatalf("Call = %+v, want no error", got)
	}
	signer, _ := newSigner([]string{vectorSecret})
	got := <-arrived
	want := request{
		method: "POST", path: "/charge?x=1", host: got.host, body: vectorBody, length: int64(len(vectorBody)),
		header: map[string]string{
			"content-length":       "20",
			"content-type":         "application/json",
			"user-agent":           "gateway/1.2.3",
			"idempotency-key":      "01HZY8Q4000000000000000RUN.1.charge",
			"x-gateway-event-id":   "01HZY8Q4000000000000000EVT",
			"x-gateway-event-type": "order.created",
			"x-gateway-source":     "shop",
			"x-gateway-job-id":     "01HZY8Q4000000000000000JOB",
			"x-gateway-attempt":    "7",
			"x-gateway-hops":       "1",
			"x-gateway-workflow":   "fulfil",
			"x-gateway-run-id":     "01HZY8Q4000000000000000RUN",
			"x-gateway-step":       "prepare/parcels/pack/17/item#2",
			"traceparent":          trace,
			"tracestate":           "a=1",
			"webhook-id":           "01HZY8Q4000000000000000JOB",
			"webhook-timestamp":    vectorTimestamp,
			"webhook-signature":    signer.sign("01HZY8Q4000000000000000JOB", vectorTimestamp, []byte(vectorBody)),
			"x-api-key":            "k",
		},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(request{})); diff != "" {
		t.Errorf("called (-want +got):\n%s", diff)
	}
}

func TestStepMethodsAndHeaders(t *testing.T) {
	got := make(chan *http.Request, 1)
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) { got <- r })
	s := stepsOf(t, newClient(t))
	for _, method := range methods {
		r := workflow.Request{Method: method, URL: url, Key: "k", Headers: map[string]string{
			"content-type": "text/plain", "user-agent": "acme", "idempotency-key": "own", "X-Gateway-Step": "mine",
		}}
		if method != "GET" {
			r.Body = []byte("{}")
		}
		if a := ask(t, s, r, stepJob()); a.Error != "" {
			t.Errorf("%s: Call = %+v", method, a)
		}
		seen := <-got
		shown := []string{seen.Method, seen.Header.Get("Content-Type"), seen.UserAgent(), seen.Header.Get("Idempotency-Key"), seen.Header.Get("X-Gateway-Step")}
		if diff := cmp.Diff([]string{method, "text/plain", "acme", "own", "mine"}, shown); diff != "" || seen.Header.Get("Webhook-Id") != "" {
			t.Errorf("%s: called with %v (-want +got):\n%s", method, seen.Header, diff)
		}
	}
	ask(t, s, workflow.Request{Method: "GET", URL: url}, stepJob())
	if r := <-got; r.Header.Get("Content-Type") != "" || r.ContentLength != 0 {
		t.Errorf("a GET has %v and %d bytes, want neither type nor body", r.Header, r.ContentLength)
	}
}

func TestStepAnswers(t *testing.T) {
	full := strings.Repeat("x", maxResult)
	accented := strings.Repeat("é", 3000)
	type header = map[string]string
	for name, c := range map[string]struct {
		status int
		header header
		body   string
		want   runner.Answer
	}{
		"200":                 {200, nil, `{"ok": true}`, runner.Answer{StatusCode: 200, Body: []byte(`{"ok": true}`), Response: `{"ok": true}`}},
		"202 empty":           {202, nil, "", runner.Answer{StatusCode: 202, Body: []byte{}}},
		"204":                 {204, nil, "", runner.Answer{StatusCode: 204, Body: []byte{}}},
		"200, later":          {200, header{"Retry-After": "5"}, "x", runner.Answer{StatusCode: 200, Body: []byte("x"), Response: "x"}},
		"kept in part":        {200, nil, accented, runner.Answer{StatusCode: 200, Body: []byte(accented), Response: accented[:core.MaxResponse]}},
		"just enough":         {200, nil, full, runner.Answer{StatusCode: 200, Body: []byte(full), Response: full[:core.MaxResponse]}},
		"too large":           {200, nil, full + "x", runner.Answer{StatusCode: 200, TooLarge: true, Response: full[:core.MaxResponse]}},
		"far too large":       {201, nil, full + full + full, runner.Answer{StatusCode: 201, TooLarge: true, Response: full[:core.MaxResponse]}},
		"not UTF-8":           {200, nil, "a\xffb", runner.Answer{StatusCode: 200, Error: "data: the reply is not UTF-8 text", Response: "a\uFFFDb"}},
		"NUL":                 {200, nil, "a\x00b", runner.Answer{StatusCode: 200, Error: "data: the reply is not UTF-8 text", Response: "a\uFFFDb"}},
		"gzip":                {200, header{"Content-Encoding": "gzip"}, zipped(`{"ok": true}`), runner.Answer{StatusCode: 200, Body: []byte(`{"ok": true}`), Response: `{"ok": true}`}},
		"gzip, old name":      {200, header{"Content-Encoding": " X-GZIP"}, zipped("x"), runner.Answer{StatusCode: 200, Body: []byte("x"), Response: "x"}},
		"gzip, just enough":   {200, header{"Content-Encoding": "gzip"}, zipped(full), runner.Answer{StatusCode: 200, Body: []byte(full), Response: full[:core.MaxResponse]}},
		"gzip, too large":     {200, header{"Content-Encoding": "gzip"}, zipped(full + "x"), runner.Answer{StatusCode: 200, TooLarge: true, Response: full[:core.MaxResponse]}},
		"gzip, a bomb":        {200, header{"Content-Encoding": "gzip"}, zeros(), runner.Answer{StatusCode: 200, TooLarge: true, Response: strings.Repeat("\uFFFD", core.MaxResponse/3)}},
		"gzip, not UTF-8":     {200, header{"Content-Encoding": "gzip"}, zipped("a\xff"), runner.Answer{StatusCode: 200, Error: "data: the reply is not UTF-8 text", Response: "a\uFFFD"}},
		"gzip, empty":         {200, header{"Content-Encoding": "gzip"}, "", runner.Answer{StatusCode: 200, Body: []byte{}}},
		"gzip in name only":   {200, header{"Content-Encoding": "gzip"}, "plain", runner.Answer{StatusCode: 200, Body: []byte("plain"), Response: "plain"}},
		"gzip, unnamed":       {200, nil, zipped("x")[:3], runner.Answer{StatusCode: 200, Error: "data: the reply is not UTF-8 text", Response: "\x1f\uFFFD\b"}},
		"gzip, broken":        {200, header{"Content-Encoding": "gzip"}, zipped("x")[:10] + "\xff\xff\xff\xff", runner.Answer{StatusCode: 200, Error: "data: the reply is broken gzip"}},
		"gzip, wrong sum":     {200, header{"Content-Encoding": "gzip"}, swapped(zipped("x")), runner.Answer{StatusCode: 200, Error: "data: the reply is broken gzip", Response: "x"}},
		"gzip, cut":           {200, header{"Content-Encoding": "gzip"}, zipped("x")[:14], runner.Answer{StatusCode: 200, Error: "data: the reply is broken gzip", Response: "x"}},
		"brotli":              {200, header{"Content-Encoding": "br"}, "x\xff", runner.Answer{StatusCode: 200, Error: `data: the reply is compressed as "br", which was not asked for; only gzip is read`, Response: "x\uFFFD"}},
		"gzip twice":          {200, header{"Content-Encoding": "gzip, gzip"}, zipped(zipped("x")), runner.Answer{StatusCode: 200, Error: `data: the reply is compressed as "gzip, gzip", which was not asked for; only gzip is read`, Response: clean(zipped(zipped("x")), core.MaxResponse)}},
		"identity":            {200, header{"Content-Encoding": "identity"}, "x", runner.Answer{StatusCode: 200, Body: []byte("x"), Response: "x"}},
		"brotli in name only": {200, header{"Content-Encoding": "br"}, "plain", runner.Answer{StatusCode: 200, Body: []byte("plain"), Response: "plain"}},
		"302":                 {302, header{"Location": "http://169.254.169.254/s3cret"}, "", runner.Answer{StatusCode: 302, Error: "status: 302 Found to 169.254.169.254; redirects are not followed"}},
		"400":                 {400, header{"Retry-After": "5"}, "no", runner.Answer{StatusCode: 400, Error: "status: 400 Bad Request", Response: "no"}},
		"429, seconds":        {429, header{"Retry-After": "5"}, "", runner.Answer{StatusCode: 429, Error: "status: 429 Too Many Requests", RetryAfter: 5 * time.Second}},
		"503, date":           {503, header{"Retry-After": "Fri, 20 Nov 2026 09:01:30 GMT"}, "", runner.Answer{StatusCode: 503, Error: "status: 503 Service Unavailable", RetryAfter: 90 * time.Second}},
		"503, for a week":     {503, header{"Retry-After": "604800"}, "", runner.Answer{StatusCode: 503, Error: "status: 503 Service Unavailable", RetryAfter: 24 * time.Hour}},
		"500, large":          {500, nil, full + "x", runner.Answer{StatusCode: 500, Error: "status: 500 Internal Server Error", Response: full[:core.MaxResponse]}},
		"500, not UTF-8":      {500, nil, "\xff", runner.Answer{StatusCode: 500, Error: "status: 500 Internal Server Error", Response: "\uFFFD"}},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range c.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			client := newClient(t)
			client.clock = func() time.Time { return time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC) }
			got := ask(t, stepsOf(t, client), asked(url, "{}"), stepJob())
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Call (-want +got):\n%.2000s", diff)
			}
		})
	}
}

func zipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(text))
	z.Close()
	return b.String()
}

// swapped changes the checksum at the end of compressed data.
func swapped(zipped string) string {
	b := []byte(zipped)
	b[len(b)-5] ^= 1
	b[len(b)-6] ^= 1
	return string(b)
}

// TestStepDisorderlyAnswers: the first word of an error is the defect of the answer, for every
// status. An answer that was cut short has no body.
func TestStepDisorderlyAnswers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, c := range map[string]struct {
		talk   func(net.Conn)
		status int
		want   string
	}{
		"closes at once":       {say(), 0, "protocol: connection closed before there was an answer"},
		"garbage":              {say("hello\r\n\r\n"), 0, "protocol: malformed HTTP response"},
		"closes in mid-body":   {say(ok, "Content-Length: 100\r\n\r\n{}"), 200, "protocol: connection closed in the middle of the answer"},
		"bad chunks":           {say(ok, "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}"), 200, "protocol: the answer broke off: "},
		"resets in mid-body":   {func(conn net.Conn) { say(ok, "Content-Length: 100\r\n\r\n{}")(conn); reset(conn) }, -1, "protocol: "},
		"failure cut in body":  {say("HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\noops"), 500, "status: 500 Internal Server Error"},
		"switches protocols":   {say("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"), 101, "status: 101 Switching Protocols"},
		"one byte too many":    {say("HTTP/1.0 200 OK\r\n\r\n", strings.Repeat("x", maxResult+1)), 200, ""},
		"endless, without end": {untilClosedAfter(ok+"\r\n", strings.Repeat("x", 4096)), 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ask(t, stepsOf(t, newClient(t)), asked(serveRaw(t, c.talk), "{}"), stepJob())
			if got.StatusCode != c.status && c.status >= 0 || !strings.HasPrefix(got.Error, c.want) || (c.want == "") != got.TooLarge || got.Body != nil {
				t.Errorf("Call = %.300v, want status %d and error %q", got, c.status, c.want)
			}
		})
	}
}

// reset makes the closing of a connection send a TCP reset, perhaps before the client has read
// the answer.
func reset(conn net.Conn) { conn.(*net.TCPConn).SetLinger(0) }

func TestStepDeadline(t *testing.T) {
	silence := func(conn net.Conn) { io.Copy(io.Discard, conn) }
	for name, c := range map[string]struct {
		talk   func(net.Conn)
		status int
		want   string
	}{
		"never answers":           {silence, 0, "timeout: no answer within 1s"},
		"drips a body":            {func(conn net.Conn) { say("HTTP/1.1 200 OK\r\n\r\n")(conn); drip("x")(conn) }, 200, "timeout: only a part of the answer came in time: no answer within 1s"},
		"promises more than came": {func(conn net.Conn) { say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")(conn); silence(conn) }, 200, "timeout: only a part"},
		"drips a failure's body":  {func(conn net.Conn) { say("HTTP/1.1 503 No\r\n\r\n")(conn); drip("x")(conn) }, 503, "status: 503 Service Unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := core.WithLimit(t.Context(), time.Second)
			defer cancel()
			got := stepsOf(t, newClient(t)).Call(ctx, asked(serveRaw(t, c.talk), "{}"), stepJob())
			if got.StatusCode != c.status || !strings.HasPrefix(got.Error, c.want) || got.Body != nil {
				t.Errorf("Call = %+v, want status %d and error %q", got, c.status, c.want)
			}
		})
	}
}

func TestStepsAreGuarded(t *testing.T) {
	var called atomic.Bool
	url := serve(t, func(http.ResponseWriter, *http.Request) { called.Store(true) })
	guarded := New(Options{Concurrency: 1})
	t.Cleanup(guarded.Close)
	closed := listen(t)
	closed.Close()
	for url, want := range map[string]string{
		url:                                "blocked: ",
		"http://169.254.169.254/s3cret":    "blocked: ",
		"ftp://example.com/s3cret":         "blocked: the url must start with http:// or https://",
		"http://user:s3cret@example.com":   "blocked: the url must not hold a user name or password",
		"http://handler.invalid/?s3cret":   "dns: ",
		"http://" + closed.Addr().String(): "blocked: ",
	} {
		got := ask(t, stepsOf(t, guarded), asked(url, "{}"), stepJob())
		if !strings.HasPrefix(got.Error, want) || strings.Contains(got.Error, "s3cret") || got.StatusCode != 0 {
			t.Errorf("Call of %s = %+v, want error %q", url, got, want)
		}
	}
	open := ask(t, stepsOf(t, newClient(t)), asked("http://"+closed.Addr().String(), "{}"), stepJob())
	if open.Error != "connect: connection refused" {
		t.Errorf("Call of a closed port = %+v, want it refused", open)
	}
	r := asked(url, "{}")
	r.Headers = map[string]string{"Host": "s3cret"}
	if got := ask(t, stepsOf(t, newClient(t)), r, stepJob()); !strings.HasPrefix(got.Error, `blocked: header "Host" is set by the gateway`) || called.Load() {
		t.Errorf("Call with a reserved header = %+v, called %v", got, called.Load())
	}
}

// TestStepIsNotRepeated: net/http does not repeat a call whose connection broke, although the
// call has an idempotency key. The receiver may have acted on it already.
func TestStepIsNotRepeated(t *testing.T) {
	for _, method := range methods[1:] {
		for _, body := range []string{"{}", ""} {
			var calls atomic.Int32
			s := stepsOf(t, newClient(t))
			r := asked(serve(t, func(http.ResponseWriter, *http.Request) {
				if calls.Add(1) > 1 {
					panic(http.ErrAbortHandler)
				}
			}), body)
			r.Method = method
			ask(t, s, r, stepJob())
			got := ask(t, s, r, stepJob())
			if n := calls.Load(); n != 2 || got.Error != "protocol: connection closed before there was an answer" {
				t.Errorf("%s %q: Call = %+v, the receiver was called %d times, want 2", method, body, got, n)
			}
		}
	}
}

func TestStepsRefuseSecrets(t *testing.T) {
	_, err := newClient(t).Steps([]string{"whsec_s3cret!"}, "")
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("Steps = %v, want an error that tells no secret", err)
	}
}
