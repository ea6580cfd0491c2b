package gateway_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/manage"
)

// Like the tests of wiring_test.go, these tests check that a setting reaches its service.

const private = "server: {allow_private_urls: true}"

// flow returns a configuration with one workflow of the source shop, with these steps.
func flow(steps string, sections ...string) string {
	return strings.Join(append(sections, "sources: {shop: {type: event}}",
		"workflows: {flow: {source: shop, steps: ["+steps+"]}}"), "\n")
}

// runOf waits until the run of an event is as stands requires, and returns it.
func runOf(t *testing.T, s core.Store, event core.ID, stands func(core.Run) bool) core.Run {
	t.Helper()
	var page core.Page[core.Run]
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var err error
		if page, err = s.Runs(context.Background(), core.RunFilter{EventID: event}); err != nil {
			t.Fatal(err)
		}
		if len(page.Items) == 1 && stands(page.Items[0]) {
			run, err := s.Run(context.Background(), page.Items[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			return run
		}
	}
	t.Fatalf("after %v the runs are %+v", patience, page.Items)
	return core.Run{}
}

func finished(r core.Run) bool { return r.Status.Finished() }
func always(core.Run) bool     { return true }

// run sends an event to the source shop, and waits until its run is as stands requires.
func (w *wired) run(t *testing.T, stands func(core.Run) bool) core.Run {
	t.Helper()
	event := w.accept202(t, "order.created")
	w.deliver(t)
	return runOf(t, w.spy, event, stands)
}

// answering is a receiver that answers each request with the function answer.
func answering(t *testing.T, answer func(n int, w http.ResponseWriter)) (url string, got chan *http.Request) {
	t.Helper()
	got = make(chan *http.Request, 100)
	n := make(chan int, 1)
	n <- 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		got <- r
		i := <-n
		n <- i + 1
		answer(i, w)
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

func TestSourceAndEventsStartWorkflows(t *testing.T) {
	w := wire(t, `
sources: {shop: {type: event}, desk: {type: event}}
handlers: {flow: {source: shop, events: [order.created], url: 'https://a.example', retry: {max: 3}}}
workflows:
  all: {source: shop, steps: [{name: a, url: 'https://a.example'}]}
  orders: {source: shop, events: [order.*], timeout: 60, steps: [{name: b, type: wait, seconds: 1}]}
  tickets: {source: desk, steps: [{name: c, url: 'https://a.example'}]}`)
	for eventType, want := range map[string]map[core.Lane]int{
		"order.created": {"handler/flow": 3, "workflow/all": core.Unlimited, "workflow/orders": core.Unlimited},
		"order.paid":    {"workflow/all": core.Unlimited, "workflow/orders": core.Unlimited},
		"refund.denied": {"workflow/all": core.Unlimited},
	} {
		event, attempts := w.accept202(t, eventType), map[core.Lane]int{}
		for _, j := range w.jobs(t, core.JobFilter{EventID: event}) {
			attempts[j.Lane] = j.MaxAttempts
		}
		if diff := cmp.Diff(want, attempts); diff != "" {
			t.Errorf("jobs of %s and their attempts (-want +got):\n%s", eventType, diff)
		}
		page, err := w.spy.Runs(context.Background(), core.RunFilter{EventID: event})
		if err != nil || len(page.Items) != strings.Count(strings.Join(lanesOf(want), " "), "workflow/") {
			t.Errorf("runs of %s: %+v, %v, want one for each workflow", eventType, page.Items, err)
		}
		for _, r := range page.Items {
			deadline := map[string]time.Duration{"orders": time.Minute}[r.Workflow]
			if r.Status != core.RunPending || !r.DeadlineAt.IsZero() != (deadline > 0) || deadline > 0 && r.DeadlineAt.Sub(r.CreatedAt) != deadline {
				t.Errorf("run %+v, want it pending with a deadline after %v", r, deadline)
			}
		}
	}
}

func lanesOf(jobs map[core.Lane]int) (lanes []string) {
	for l := range jobs {
		lanes = append(lanes, string(l))
	}
	return lanes
}

func TestParams(t *testing.T) {
	w := wire(t, `
sources: {shop: {type: event}}
handlers: {billing: {source: shop, url: 'https://a.example'}}
workflows: {flow: {source: shop, params: [{name: total, type: number}, {name: note, required: false}], steps: [{name: a, url: 'https://a.example'}]}}`)
	for body, want := range map[string]int{`{"total": 42}`: 202, `{"total": "42"}`: 400, `{}`: 400, `{"total": 1, "note": 2}`: 400, `x`: 400} {
		status, reply := call(t, "POST", w.url+"/events/shop/order.created", "", body)
		if status != want || want == 400 && !strings.Contains(reply, "workflow flow: $") {
			t.Errorf("POST %s = %d %s, want %d", body, status, reply, want)
		}
	}
	if jobs := w.jobs(t, core.JobFilter{}); len(jobs) != 2 {
		t.Errorf("%d jobs, want those of one event", len(jobs))
	}
}

func TestStepsAreCalled(t *testing.T) {
	url, got := answering(t, func(_ int, w http.ResponseWriter) { io.WriteString(w, `{"ok": true}`) })
	w := wire(t, flow("{name: charge, url: '"+url+"/charge', method: PUT, headers: {X-Team: red}, result_path: $.paid}", private, "delivery: {signing_secret: for-all}"))
	run := w.run(t, finished)
	r := await(t, got)
	body, _ := io.ReadAll(r.Body)
	sum := mac([]byte("for-all"), r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), string(body))
	shown := []string{r.Method, r.URL.Path, r.Header.Get("X-Team"), r.Header.Get("x-gateway-workflow"), r.Header.Get("x-gateway-run-id"),
		r.Header.Get("idempotency-key"), r.Header.Get("user-agent"), r.Header.Get("webhook-signature"), string(body), string(run.Status), string(run.Output)}
	want := []string{"PUT", "/charge", "red", "flow", string(run.ID), string(run.ID) + ".1.charge", "gateway/test",
		"v1," + base64.StdEncoding.EncodeToString(sum), `{"total": 42}`, "completed", `{"paid":{"ok":true},"total":42}`}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("request and run (-want +got):\n%s", diff)
	}
}

func TestStepTimeout(t *testing.T) {
	h := holding(t)
	w := wire(t, flow("{name: a, url: '"+h.url+"'}", private, "delivery: {timeout: 30ms}"))
	run := w.run(t, finished)
	if run.Status != core.RunFailed || !strings.HasPrefix(run.Error, "step a: timeout: no answer within ") || !strings.HasSuffix(run.Error, "ms") {
		t.Errorf("run is %s with %q, want it failed with a timeout after about 30 ms", run.Status, run.Error)
	}
}

func TestStepLease(t *testing.T) {
	h := holding(t)
	w := wire(t, flow("{name: a, url: '"+h.url+"'}", private, "delivery: {timeout: 90s}", "worker: {stale_threshold_secs: 60}"))
	before := time.Now().Truncate(time.Millisecond)
	w.send(t)
	defer h.release()
	await(t, h.arrived)
	jobs := w.jobs(t, core.JobFilter{Status: core.Running})
	if len(jobs) != 1 || jobs[0].DueAt.Before(before.Add(105*time.Second)) || jobs[0].DueAt.After(time.Now().Add(105*time.Second)) {
		t.Errorf("running jobs %+v, want one whose lease ends after 105 s", jobs)
	}
}

func TestStepsAllowPrivateURLs(t *testing.T) {
	url, _ := receiver(t, 200)
	run := wire(t, flow("{name: a, url: '"+url+"'}")).run(t, finished)
	if !strings.HasPrefix(run.Error, "step a: blocked: ") {
		t.Errorf("run is %s with %q, want its call blocked", run.Status, run.Error)
	}
}

func TestStepRetry(t *testing.T) {
	url, got := receiver(t, 500)
	w := wire(t, flow("{name: a, url: '"+url+"', retry: {max: 2}}", private, "delivery: {default_retry: {interval: 1h, backoff: fixed, max: 9}}"))
	w.send(t)
	next(t, got)
	var jobs []core.Job
	for deadline := time.Now().Add(patience); len(jobs) == 0 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		jobs = w.jobs(t, core.JobFilter{Status: core.Retryable})
	}
	if len(jobs) != 1 || time.Until(jobs[0].DueAt) < 47*time.Minute || time.Until(jobs[0].DueAt) > 73*time.Minute {
		t.Errorf("retryable jobs %+v, want one due in about an hour", jobs)
	}
}

// Steps that wait for a time or a callback have the status scheduled, not retryable.
func TestWaitingStepsAreScheduled(t *testing.T) {
	url, _ := receiver(t, 200)
	for name, step := range map[string]string{
		"a time":              "type: wait, seconds: 3600",
		"a callback":          "type: callback, callback_timeout: 3600",
		"a callback, told of": "type: callback, callback_timeout: 3600, url: '" + url + "'",
	} {
		t.Run(name, func(t *testing.T) {
			w := wire(t, flow("{name: a, "+step+"}", private))
			w.send(t)
			var jobs []core.Job
			for deadline := time.Now().Add(patience); len(jobs) == 0 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
				jobs = w.jobs(t, core.JobFilter{Status: "scheduled"})
			}
			if len(jobs) != 1 || time.Until(jobs[0].DueAt) < 59*time.Minute || jobs[0].Status != "scheduled" {
				t.Errorf("scheduled jobs %+v, want one due in an hour; all jobs: %+v", jobs, w.jobs(t, core.JobFilter{}))
			}
		})
	}
}

// Only events and callbacks wake the worker of this gateway, since its Rest is an hour.
func TestEventsAndCallbacksWakeTheWorker(t *testing.T) {
	url, got := recorder(t)
	var steps []string
	for i := range 5 {
		steps = append(steps, fmt.Sprintf("{name: s%d, type: callback, url: '%s'}", i, url))
	}
	g, err := gateway.New(load(t, flow(strings.Join(steps, ", "), private)), gateway.Deps{
		Store: openStore(t, filepath.Join(t.TempDir(), "gateway.db")), Clock: core.SystemClock,
		Log: slog.New(slog.DiscardHandler), Version: "test", Rest: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	base, stop := serve(t, g)
	defer stop()
	pause := time.NewTicker(100 * time.Millisecond) // after each event, the worker keeps looking for a moment
	defer pause.Stop()
	<-pause.C
	post(t, base+"/events/shop/order.created", "{}")
	for range steps {
		token := noticeOf(t, await(t, got)).Token
		<-pause.C
		post(t, base+"/callback/"+token, "{}")
	}
}

type notice struct {
	Token, Workflow, Step string
	URL                   string `json:"callback_url"`
}

func noticeOf(t *testing.T, r *http.Request) (n notice) {
	t.Helper()
	if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCallbacks(t *testing.T) {
	for public, want := range map[string]string{"": "http://localhost:8888", ", public_url: 'https://events.example/in/'": "https://events.example/in"} {
		url, got := recorder(t)
		w := wire(t, flow("{name: approve, type: callback, url: '"+url+"', result_path: $.approval}", "server: {allow_private_urls: true"+public+"}"))
		event := w.accept202(t, "order.created")
		w.deliver(t)
		notice := noticeOf(t, await(t, got))
		if notice.URL != want+"/callback/"+notice.Token || notice.Workflow != "flow" || notice.Step != "approve" {
			t.Errorf("notice %+v, want a callback_url under %s", notice, want)
		}
		for i, c := range []struct {
			body string
			want int
		}{{`{"by": "ann"}`, 200}, {`{"by": "bob"}`, 404}, {`{"by": "ann"}`, 200}} {
			if got, body := call(t, "POST", w.url+"/callback/"+notice.Token, "", c.body); got != c.want {
				t.Errorf("callback %d = %d %s, want %d", i+1, got, body, c.want)
			}
		}
		run := runOf(t, w.spy, event, finished)
		if got, want := string(run.Output), `{"approval":{"by":"ann"},"total":42}`; got != want {
			t.Errorf("run is %s with output %s, want %s", run.Status, got, want)
		}
	}
}

func TestRunRoutes(t *testing.T) {
	url, got := receiver(t, 400, 200)
	w := wire(t, flow("{name: a, url: '"+url+"'}", private, "api: {auth_token: t0ken}"))
	r, _ := http.NewRequest("POST", w.url+"/events/shop/order.created", strings.NewReader("{}"))
	r.Header.Set("Authorization", "Bearer t0ken")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	event := core.ID(resp.Header.Get("x-gateway-event-id"))
	w.deliver(t)
	next(t, got)
	run := runOf(t, w.spy, event, finished)
	path := w.url + "/api/workflow-runs"
	for _, tt := range []struct {
		method, path, token string
		want                int
	}{
		{"GET", path, "", 401}, {"GET", path, "t0ken", 200}, {"GET", path + "/" + string(run.ID), "t0ken", 200},
		{"POST", path + "/" + string(run.ID) + "/redrive", "", 401}, {"POST", path + "/" + string(run.ID) + "/redrive", "t0ken", 200},
	} {
		if got, body := call(t, tt.method, tt.path, tt.token, ""); got != tt.want {
			t.Errorf("%s %s = %d %s, want %d", tt.method, tt.path, got, body, tt.want)
		}
	}
	next(t, got)
	again := runOf(t, w.spy, event, func(r core.Run) bool { return r.Status == core.RunCompleted })
	if again.Epoch != 2 {
		t.Errorf("redriven run has epoch %d, want 2", again.Epoch)
	}
}

func TestFailedRunsAreAlerted(t *testing.T) {
	steps, _ := receiver(t, 500)
	url, got := recorder(t)
	w := wire(t, flow("{name: a, url: '"+steps+"'}", private, "alerts: {url: '"+url+"', on: [dlq]}"))
	run := w.run(t, finished)
	var alert struct{ Alert, Workflow, Error string }
	if err := json.NewDecoder(await(t, got).Body).Decode(&alert); err != nil {
		t.Fatal(err)
	}
	if alert.Alert != "dlq" || alert.Workflow != "flow" || alert.Error != run.Error {
		t.Errorf("alert %+v, want one of the workflow with %q", alert, run.Error)
	}
}

// loadWith loads a configuration with a variable HOST.
func loadWith(t *testing.T, yaml, host string) *config.Config {
	t.Helper()
	c, err := config.Load(config.Options{
		FS: fstest.MapFS{"gateway.yaml": {Data: []byte(yaml)}}, Path: "gateway.yaml",
		Lookup: func(string) (string, bool) { return host, true },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A run follows the definition that its workflow had when the run began, but with the current
// variables. That holds if the workflow was changed or removed.
func TestRunsFollowTheirDefinition(t *testing.T) {
	old, got := receiver(t, 200)
	other, wrong := receiver(t, 200)
	for name, changed := range map[string]string{
		"another": flow("{name: b, url: '"+other+"'}", private),
		"none":    private + "\nsources: {shop: {type: event}}",
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, filepath.Join(t.TempDir(), "gateway.db"))
			front := httptest.NewServer(newGateway(t, loadWith(t, flow("{name: a, url: '${HOST}/old'}", private), "http://gone.invalid"), s).Handler())
			defer front.Close()
			event := core.ID(post(t, front.URL+"/events/shop/order.created", "{}").Header.Get("x-gateway-event-id"))
			_, stop := serve(t, newGateway(t, loadWith(t, changed, old), s))
			run := runOf(t, s, event, finished)
			if err := stop(); err != nil {
				t.Errorf("Serve = %v, want nil", err)
			}
			if run.Status != core.RunCompleted || len(got) != 1 || len(wrong) != 0 {
				t.Errorf("run is %s with %q, %d calls where it should, %d elsewhere", run.Status, run.Error, len(got), len(wrong))
			}
			next(t, got)
		})
	}
}

// The command line changes runs beside a gateway, on the same store.
func TestRunsOfTheCommandLine(t *testing.T) {
	yaml := flow("{name: a, type: wait, seconds: 3600}")
	w := wire(t, yaml)
	run := runOf(t, w.spy, w.accept202(t, "order.created"), always)
	runs := gateway.Runs(load(t, yaml), w.Store, core.SystemClock)
	if got, err := runs.Cancel(t.Context(), run.ID); err != nil || got.Status != core.RunCanceled || got.Error != "canceled" {
		t.Errorf("Cancel = %+v, %v, want it canceled", got, err)
	}
	if got, err := runs.Redrive(t.Context(), run.ID, manage.Redrive{}); err != nil || got.Status != core.RunPending || got.Epoch != 2 {
		t.Errorf("Redrive = %+v, %v, want it pending in epoch 2", got, err)
	}
}

func TestScheduleStartsWorkflows(t *testing.T) {
	w := wire(t, `
sources: {nightly: {type: cron, schedule: '0 2 * * *'}}
workflows: {flow: {source: nightly, params: [{name: schedule}], steps: [{name: a, url: 'https://a.example'}]}}`)
	if err := w.Intake.Fire(t.Context(), "nightly", time.Now()); err != nil {
		t.Fatal(err)
	}
	page, err := w.spy.Runs(t.Context(), core.RunFilter{Workflow: "flow"})
	if err != nil || len(page.Items) != 1 {
		t.Errorf("runs %+v, %v, want one", page.Items, err)
	}
}
