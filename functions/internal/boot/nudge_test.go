package boot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// unreachable is a network on which every connection is refused.
type unreachable struct{}

func (unreachable) RoundTrip(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }

// panicking is a client that panics at each request.
type panicking struct{}

func (panicking) RoundTrip(*http.Request) (*http.Response, error) { panic("not thought of") }

// invokeAPI plays Lambda's API and checks the requests.
type invokeAPI struct {
	t      *testing.T
	mu     sync.Mutex
	paths  []string
	status int
	fail   []int // statuses of the first answers, before status
	body   string
	hold   chan struct{}
}

func (a *invokeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	a.paths = append(a.paths, r.URL.EscapedPath())
	status, hold := a.status, a.hold
	if len(a.fail) > 0 {
		status, a.fail = a.fail[0], a.fail[1:]
	}
	a.mu.Unlock()
	if string(body) != `{"nudge":true}` || r.Method != "POST" || r.Header.Get("X-Amz-Invocation-Type") != "Event" || r.Header.Get("X-Amz-Security-Token") != "session" {
		a.t.Errorf("%s %s %v %s, want an asynchronous invocation", r.Method, r.URL, r.Header, body)
	}
	a.verify(r, body)
	if hold != nil {
		<-hold
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, a.body)
}

// verify signs the same request again, for the time in its header, and compares the
// signatures.
func (a *invokeAPI) verify(r *http.Request, body []byte) {
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		a.t.Errorf("X-Amz-Date: %v", err)
	}
	again, _ := http.NewRequest("POST", "http://"+r.Host+r.URL.EscapedPath(), strings.NewReader(string(body)))
	for _, name := range []string{"Content-Type", "X-Amz-Invocation-Type"} {
		again.Header.Set(name, r.Header.Get(name))
	}
	sum := sha256.Sum256(body)
	credentials := aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "key", SessionToken: "session"}
	if err := v4.NewSigner().SignHTTP(context.Background(), credentials, again, hex.EncodeToString(sum[:]), "lambda", "eu-west-1", at); err != nil {
		a.t.Error(err)
	}
	if got, want := r.Header.Get("Authorization"), again.Header.Get("Authorization"); got != want || !strings.Contains(got, "/eu-west-1/lambda/") {
		a.t.Errorf("Authorization = %s, want %s", got, want)
	}
}

func (a *invokeAPI) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.paths)
}

const withHandler = minimal + `
handlers:
  billing: {source: app, url: "https://example.com/", events: ["order.*"]}
queues:
  work: {source: app, events: ["queued"]}
`

// newNudged makes an intake function that nudges the function called name. The last result is
// the nudger's clock.
func newNudged(t *testing.T, name string) (*server, *invokeAPI, *logbook, *time.Time) {
	t.Helper()
	api := &invokeAPI{t: t, status: 202}
	l := httptest.NewServer(api)
	t.Cleanup(l.Close)
	f, log := newTest(t, gateway.IntakeRoutes, withHandler, map[string]string{
		"GATEWAY_NUDGE": name, "AWS_ENDPOINT_URL_LAMBDA": l.URL + "/",
		"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "key", "AWS_SESSION_TOKEN": "session",
	})
	f.wake = f.newNudger
	a := withStore(t, f)
	now := time.Now()
	a.nudger.clock = func() time.Time { return now }
	return &server{f}, api, log, &now
}

func TestNudges(t *testing.T) {
	s, api, _, now := newNudged(t, "arn:aws:lambda:eu-west-1:123456789012:function:worker:live")
	for i, step := range []struct {
		path  string
		later time.Duration
		want  int
	}{
		{"/events/app/order.created", 0, 1},
		{"/events/app/order.created", 0, 1},                      // the worker is awake
		{"/events/app/order.created", 999 * time.Millisecond, 1}, // the worker is still awake
		{"/events/app/order.created", time.Millisecond, 2},
		{"/events/app/queued", time.Minute, 2}, // consumers of queues come by themselves
		{"/events/app/none", time.Minute, 2},   // no consumer matches the event
		{"/events/none/order.created", time.Minute, 2},
		{"/events/app/order.created", 0, 3},
		{"/events/app/order.created", -time.Hour, 4}, // the clock was set back
	} {
		*now = now.Add(step.later)
		s.ask(t, post(step.path, "{}"))
		if n := api.count(); n != step.want {
			t.Errorf("step %d, %s: %d nudges, want %d", i, step.path, n, step.want)
		}
	}
	if want := "/2015-03-31/functions/arn:aws:lambda:eu-west-1:123456789012:function:worker:live/invocations"; api.paths[0] != want {
		t.Errorf("path = %s, want %s", api.paths[0], want)
	}
}

// TestNudgesForLaterWork: a job that comes due before the next minute's tick has looked wakes
// the worker, which waits for the job.
func TestNudgesForLaterWork(t *testing.T) {
	s, api, _, now := newNudged(t, "worker")
	n := s.assembled.nudger
	bell := &core.Bell{}
	n.heard = bell.Listen("handler/billing", "workflow/approval", "queue/work")
	for _, step := range []struct {
		lane core.Lane
		due  time.Duration
		want int
	}{
		{"workflow/approval", 500 * time.Millisecond, 1},
		{"workflow/approval", 59 * time.Second, 1},
		{"handler/billing", 64 * time.Second, 1},
		{"workflow/approval", 10 * time.Minute, 0}, // a tick of a later minute sees the job
		{"queue/work", time.Second, 0},             // consumers of queues come by themselves
		{"handler/billing", -time.Second, 1},
	} {
		*now = now.Add(time.Minute)
		before := api.count()
		bell.RingAt(step.lane, now.Add(step.due))
		n.flush(t.Context())
		if got := api.count() - before; got != step.want {
			t.Errorf("%s due in %v: %d nudges, want %d", step.lane, step.due, got, step.want)
		}
	}
}

// TestNudgeIsRepeated: a nudge that fails for a moment is sent again. If it keeps failing it
// is owed: the next invocation sends it, even if that invocation stores nothing.
func TestNudgeIsRepeated(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fail   []int // statuses of the first answers; later answers are 202
		want   int   // calls by the request that stores the event
		warned int
		owed   int // calls by a request that stores nothing, a second later
	}{
		{"throttled once", []int{429}, 2, 0, 0},
		{"unavailable twice", []int{503, 500}, 3, 0, 0},
		{"throttled on and on", []int{429, 429, 429, 429, 429}, 4, 1, 2},
		{"not allowed", []int{403, 403, 403}, 1, 1, 0},
		{"no such function", []int{404, 404}, 1, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, api, log, now := newNudged(t, "worker")
			api.fail = tt.fail
			s.ask(t, post("/events/app/order.created", "{}"))
			if n := api.count(); n != tt.want {
				t.Errorf("%d calls, want %d", n, tt.want)
			}
			if n := strings.Count(log.String(), "could not be nudged"); n != tt.warned {
				t.Errorf("%d warnings, want %d: %s", n, tt.warned, log)
			}
			s.ask(t, post("/events/app/none", "{}")) // within the second
			if n := api.count(); n != tt.want {
				t.Errorf("%d calls within a second of the last, want %d", n, tt.want)
			}
			*now = now.Add(nudgeEvery)
			for range 2 {
				s.ask(t, post("/events/app/none", "{}"))
			}
			if n := api.count() - tt.want; n != tt.owed {
				t.Errorf("%d calls by who stores nothing, want %d", n, tt.owed)
			}
		})
	}
}

// TestNudgesBesideTheRequest: a job stored during a long request wakes the worker at once, not
// after the request.
func TestNudgesBesideTheRequest(t *testing.T) {
	s, api, _, _ := newNudged(t, "worker")
	begun, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- s.beside(t.Context(), s.assembled, func() error {
			close(begun)
			wait.For(t, 10*time.Second, "a nudge while the request goes on", func() bool { return api.count() == 1 })
			return nil
		})
	}()
	<-begun
	s.ask(t, post("/events/app/order.created", "{}"))
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestNudgesTogether: of many concurrent requests that store work, one nudges.
func TestNudgesTogether(t *testing.T) {
	s, api, _, _ := newNudged(t, "worker")
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if r := s.ask(t, post("/events/app/order.created", "{}")); r.StatusCode != 202 {
				t.Errorf("%+v, want 202", r)
			}
		})
	}
	all.Wait()
	if n := api.count(); n != 1 {
		t.Errorf("%d nudges, want 1", n)
	}
}

// TestNudgesThatFail: the sender sees no error, and the log has one warning for each failed
// nudge.
func TestNudgesThatFail(t *testing.T) {
	for name, spoil := range map[string]func(*server, *invokeAPI){
		"refused": func(_ *server, a *invokeAPI) {
			a.status, a.body = 403, `{"Message":"not authorized to perform: lambda:InvokeFunction"}`
		},
		"throttled": func(_ *server, a *invokeAPI) { a.status = 429 },
		"null":      func(_ *server, a *invokeAPI) { a.status, a.body = 400, "null" },
		"HTML":      func(_ *server, a *invokeAPI) { a.status, a.body = 502, "<html>\x1b[31m"+strings.Repeat("x", 1<<20) },
		"moved":     func(_ *server, a *invokeAPI) { a.status, a.body = 304, "" },
		"panics":    func(s *server, _ *invokeAPI) { s.assembled.nudger.client.Transport = panicking{} },
		"away":      func(s *server, _ *invokeAPI) { s.assembled.nudger.client.Transport = unreachable{} },
		"silent": func(s *server, a *invokeAPI) {
			a.hold = make(chan struct{})
			t.Cleanup(func() { close(a.hold) })
			s.assembled.nudger.client.Timeout = 50 * time.Millisecond
		},
	} {
		s, api, log, _ := newNudged(t, "worker")
		spoil(s, api)
		for range 2 {
			if r := s.ask(t, post("/events/app/order.created", "{}")); r.StatusCode != 202 {
				t.Errorf("%s: %+v, want 202", name, r)
			}
		}
		if n := strings.Count(log.String(), "could not be nudged"); n != 1 {
			t.Errorf("%s: %d warnings, want 1: %s", name, n, log)
		}
		if text := log.String(); strings.Contains(text, "\x1b") || len(text) > 2000 {
			t.Errorf("%s: the log has what came as it came: %.300q", name, text)
		}
		if name == "refused" && !strings.Contains(log.String(), "lambda:InvokeFunction") {
			t.Errorf("the log does not say why: %s", log)
		}
		if strings.Contains(log.String(), "key") || strings.Contains(log.String(), "session") {
			t.Errorf("%s: the log tells a secret: %s", name, log)
		}
	}
}

func TestNobodyIsNudged(t *testing.T) {
	s, api, log, _ := newNudged(t, "")
	s.ask(t, post("/events/app/order.created", "{}"))
	if api.count() != 0 || strings.Contains(log.String(), "nudge") {
		t.Errorf("%d nudges, want none without GATEWAY_NUDGE", api.count())
	}
}

func TestServiceAddresses(t *testing.T) {
	for region, want := range map[string]string{
		"eu-west-1": "https://lambda.eu-west-1.amazonaws.com", "cn-north-1": "https://lambda.cn-north-1.amazonaws.com.cn",
		"us-gov-west-1": "https://lambda.us-gov-west-1.amazonaws.com",
	} {
		f, _ := newTest(t, gateway.IntakeRoutes, minimal, map[string]string{"GATEWAY_NUDGE": "worker", "AWS_REGION": region})
		n, err := f.newNudger((&core.Bell{}).Listen())
		if err != nil {
			t.Fatal(err)
		}
		if u, _ := url.Parse(n.url); u.Scheme+"://"+u.Host != want {
			t.Errorf("of %s: %s, want %s", region, n.url, want)
		}
	}
}

// TestSuccessors: GATEWAY_NUDGE=self makes the worker nudge its own function.
func TestSuccessors(t *testing.T) {
	for value, want := range map[string]string{"self": "gateway-worker-1", "other": "other", "": ""} {
		f, _ := newTest(t, gateway.Deliveries, minimal, map[string]string{"GATEWAY_NUDGE": value, "AWS_LAMBDA_FUNCTION_NAME": "gateway-worker-1"})
		n, err := f.newNudger((&core.Bell{}).Listen())
		if err != nil {
			t.Fatal(err)
		}
		if _, name, _ := strings.Cut(n.url, "/functions/"); strings.TrimSuffix(name, "/invocations") != want {
			t.Errorf("GATEWAY_NUDGE=%q: %q is called, want %q", value, n.url, want)
		}
	}
}
