package boot

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/infra/test/wait"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// A fleet is the functions of one gateway, with one database and one handler for all events.
type fleet struct {
	t         *testing.T
	conn      store.Conn
	yaml      string
	env       map[string]string
	delivered chan string // event id of each delivery
	status    chan int    // answers to the next deliveries; 200 if it is empty
}

func newFleet(t *testing.T, more string) *fleet {
	t.Helper()
	conn, err := sqlite.Open(filepath.Join(t.TempDir(), "gateway.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := store.New(conn, store.SQLite, time.Now).Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, conn: conn, delivered: make(chan string, 100), status: make(chan int, 100)}
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case status := <-f.status:
			w.WriteHeader(status)
		default:
		}
		f.delivered <- r.Header.Get("X-Gateway-Event-Id")
	}))
	t.Cleanup(sink.Close)
	f.yaml = minimal + more + `
server: {allow_private_urls: true}
handlers:
  billing: {source: app, url: "` + sink.URL + `", retry: {interval: 1s, backoff: fixed}}
`
	return f
}

func (f *fleet) function(part gateway.Part) (*function, *assembly) {
	f.t.Helper()
	fn, _ := newTest(f.t, part, f.yaml, f.env)
	fn.drive = func(config.Database) (func(context.Context) (store.Conn, error), store.Dialect, error) {
		return func(context.Context) (store.Conn, error) { return kept{f.conn}, nil }, store.SQLite, nil
	}
	a, err := fn.ready(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	return fn, a
}

// kept is a connection that functions share. Close leaves it open.
type kept struct{ store.Conn }

func (kept) Close() error { return nil }

func (f *fleet) accept() {
	f.t.Helper()
	fn, _ := f.function(gateway.IntakeRoutes)
	if r := (&server{fn}).ask(f.t, post("/events/app/order.created", "{}")); r.StatusCode != 202 {
		f.t.Fatalf("%+v, want the event accepted", r)
	}
}

// worked decodes the answer of an invocation of the worker.
func worked(t *testing.T, text []byte, err error) (r workReport) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// TestScheduledWork: a tick delivers the due jobs, and ends if no job is due before the next
// tick.
func TestScheduledWork(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "")
	f.accept()
	f.accept()
	fn, _ := f.function(gateway.Deliveries)
	worker := &ticking{fn, fn.work}
	text, err := worker.Invoke(within(t, time.Minute), []byte(`{"source":"aws.scheduler"}`))
	if r := worked(t, text, err); r != (workReport{Completed: 2}) || len(f.delivered) != 2 {
		t.Errorf("%+v, %d deliveries, want 2", r, len(f.delivered))
	}
	text, err = worker.Invoke(within(t, time.Minute), nil)
	if string(text) != `{"completed":0,"failed":0,"dead":0,"released":0,"lost":0}` || err != nil {
		t.Errorf("Invoke = %s, %v, want zeroes", text, err)
	}
}

// TestScheduledWorkDeletes: a scheduled tick deletes old records.
func TestScheduledWorkDeletes(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "")
	f.accept()
	fn, a := f.function(gateway.Deliveries)
	worker := &ticking{fn, fn.work}
	_, err := worker.Invoke(within(t, time.Minute), []byte(`{"nudge":true}`))
	if err != nil {
		t.Fatal(err)
	}
	later, _ := f.function(gateway.Deliveries)
	later.assembled = nil
	later.clock = func() time.Time { return time.Now().Add(100 * time.Hour) }
	if _, err := (&ticking{later, later.work}).Invoke(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	page, err := a.Store.Events(context.Background(), core.EventFilter{})
	if err != nil || len(page.Items) != 0 {
		t.Errorf("%d events, %v, want them deleted", len(page.Items), err)
	}
}

// TestNudgedWork: a nudged worker takes an event that is stored in the second after its nudge.
func TestNudgedWork(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "")
	fn, _ := f.function(gateway.Deliveries)
	for range 20 { // on a busy machine, storing may take longer than the worker stays awake
		f.accept()
		result := make(chan workReport, 1)
		go func() {
			text, err := (&ticking{fn, fn.work}).Invoke(within(t, time.Minute), nudge)
			result <- worked(t, text, err)
		}()
		<-f.delivered
		f.accept()
		if r := <-result; r.Completed == 2 {
			return
		}
	}
	t.Error("a worker that was nudged never stayed awake for another event")
}

// TestOneStaysAwake: a worker that is nudged while another has the turn to stay awake delivers
// the due jobs too.
func TestOneStaysAwake(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "")
	fn, a := f.function(gateway.Deliveries)
	f.turn(a, awakeTurn)
	f.accept()
	text, err := (&ticking{fn, fn.work}).Invoke(within(t, time.Minute), nudge)
	if r := worked(t, text, err); r != (workReport{Completed: 1}) {
		t.Errorf("%+v, want what was due delivered", r)
	}
}

// TestLateCommits: a job of another process may be due before the last look of this
// environment: the other process has a slow clock, or its commit took long. The worker finds
// the job.
func TestLateCommits(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "")
	fn, _ := f.function(gateway.Deliveries)
	fn.assembled, fn.clock = nil, func() time.Time { return time.Now().Add(time.Second) }
	a, err := fn.ready(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	f.turn(a, awakeTurn)
	if next, _, err := a.Worker.Next(context.Background(), fn.clock().Add(time.Hour), 0); !next.IsZero() || err != nil {
		t.Fatalf("Next = %v, %v, want nothing yet", next, err)
	}
	f.accept()
	a.store.ForgetFloors()
	if next, _, err := a.Worker.Next(context.Background(), fn.clock().Add(time.Hour), 0); next.IsZero() || next.After(fn.clock()) || err != nil {
		t.Errorf("Next = %v, %v, want what was stored meanwhile", next, err)
	}
	text, err := (&ticking{fn, fn.work}).Invoke(within(t, time.Minute), nudge)
	if r := worked(t, text, err); r != (workReport{Completed: 1}) {
		t.Errorf("%+v, want it delivered", r)
	}
}

// turn takes a turn for the rest of a test, as another worker would.
func (f *fleet) turn(a *assembly, name string) {
	f.t.Helper()
	wait.For(f.t, 10*time.Second, "the turn "+name+" is free", func() bool {
		mine, err := a.Store.Turn(context.Background(), time.Now(), name, time.Hour)
		return err == nil && mine
	})
}

// TestNudgedWorkerLingers: one worker waits for a retry that is due within its minute. Other
// workers leave the retry to that worker.
func TestNudgedWorkerLingers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "")
	f.yaml = strings.Replace(f.yaml, "interval: 1s", "interval: 3s", 1)
	f.status <- 500
	f.accept()
	fn, a := f.function(gateway.Deliveries)
	text, err := (&ticking{fn, fn.work}).Invoke(within(t, time.Minute), nudge)
	if r := worked(t, text, err); r.Completed != 1 || r.Failed != 1 {
		t.Errorf("%+v, want the retry waited for", r)
	}
	f.turn(a, lingerTurn)
	f.status <- 500
	f.yaml = strings.Replace(f.yaml, "interval: 3s", "interval: 10s", 1)
	f.accept()
	fn, _ = f.function(gateway.Deliveries)
	text, err = (&ticking{fn, fn.work}).Invoke(within(t, time.Minute), nudge)
	if r := worked(t, text, err); r.Completed != 0 || r.Failed != 1 {
		t.Errorf("%+v, want the retry left to the worker whose turn it is", r)
	}
	if n, err := a.Store.Depth(context.Background()); err != nil || n != 1 {
		t.Errorf("Depth = %d, %v, want the retry waiting", n, err)
	}
}

// TestLingering: with GATEWAY_LINGER=always, a worker waits for jobs that other processes
// store.
func TestLingering(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "")
	f.env = map[string]string{"GATEWAY_LINGER": "always"}
	fn, _ := f.function(gateway.Deliveries)
	result := make(chan workReport, 1)
	go func() {
		text, err := (&ticking{fn, fn.work}).Invoke(within(t, time.Minute), nil)
		result <- worked(t, text, err)
	}()
	for range 2 {
		f.accept()
		<-f.delivered
	}
	fn.terminate()
	select {
	case r := <-result:
		if r.Completed != 2 {
			t.Errorf("%+v, want both delivered", r)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("SIGTERM does not end the tick")
	}
}

// TestSchedulesFire: slots fire each second of an invocation, and the worker is nudged during
// it.
func TestSchedulesFire(t *testing.T) {
	t.Parallel()
	f := newFleet(t, `  clock: {type: cron, schedule: "* * * * * *"}`)
	api := &invokeAPI{t: t, status: 202}
	l := httptest.NewServer(api)
	defer l.Close()
	f.env = map[string]string{
		"GATEWAY_NUDGE": "worker", "AWS_ENDPOINT_URL_LAMBDA": l.URL,
		"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "key", "AWS_SESSION_TOKEN": "session",
	}
	f.yaml += `  ticks: {source: clock, url: "https://example.com/"}` + "\n"
	fn, a := f.function(gateway.Schedules)
	var err error
	if a.nudger, err = fn.newNudger(a.Work()); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() {
		_, err := (&ticking{fn, fn.fire}).Invoke(within(t, time.Minute), []byte(`{}`))
		over <- err
	}()
	wait.For(t, 10*time.Second, "two nudges while the invocation lasts", func() bool { return api.count() >= 2 })
	fn.terminate()
	if err := <-over; err != nil {
		t.Errorf("Invoke = %v", err)
	}
	page, err := a.Store.Events(context.Background(), core.EventFilter{Source: "clock"})
	if err != nil || len(page.Items) < 2 {
		t.Errorf("%d events, %v, want one a second", len(page.Items), err)
	}
}

// TestNoSchedules: without cron sources, an invocation ends at once.
func TestNoSchedules(t *testing.T) {
	f := newFleet(t, "")
	fn, _ := f.function(gateway.Schedules)
	if text, err := (&ticking{fn, fn.fire}).Invoke(context.Background(), nil); string(text) != "{}" || err != nil {
		t.Errorf("Invoke = %s, %v", text, err)
	}
}

func TestInvocations(t *testing.T) { synctest.Test(t, testInvocations) }

func testInvocations(t *testing.T) {
	began := time.Now().Add(-45 * time.Second) // a time of the database; deadlines are times of the machine
	for _, tt := range []struct{ left, until, end time.Duration }{
		{5 * time.Minute, 65 * time.Second, 299 * time.Second},
		{66 * time.Second, 65 * time.Second, 65 * time.Second},
		{10 * time.Second, 9 * time.Second, 9 * time.Second},
	} {
		ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(tt.left))
		in := newInvocation(ctx, nil, began)
		cancel()
		if !in.until(workFor).Equal(began.Add(tt.until)) || !in.end.Equal(began.Add(tt.end)) {
			t.Errorf("with %v left: until %v, end %v, want %v and %v", tt.left, in.until(workFor).Sub(began), in.end.Sub(began), tt.until, tt.end)
		}
	}
	for event, want := range map[string]bool{
		`{"nudge":true}`: true, `{"nudge":false}`: false, `{}`: false, ``: false, `null`: false, `"nudge"`: false, `{"nudge":"yes"}`: false,
		`{"source":"aws.scheduler","nudge":null}`: false,
	} {
		if in := newInvocation(context.Background(), []byte(event), began); in.nudged != want {
			t.Errorf("%s is a nudge: %v, want %v", event, in.nudged, want)
		}
	}
}

// TestUnreachableWork: an invocation that cannot reach the database fails, so that Lambda's
// error metric shows it.
func TestUnreachableWork(t *testing.T) {
	for _, event := range []string{`{}`, `{"nudge":true}`} {
		f := newFleet(t, "")
		fn, a := f.function(gateway.Deliveries)
		a.database.open = func(context.Context) (store.Conn, error) {
			return nil, core.Refuse(core.Unavailable, "the database cannot be reached")
		}
		if text, err := (&ticking{fn, fn.work}).Invoke(within(t, 4*time.Second), []byte(event)); err == nil {
			t.Errorf("%s: Invoke = %s, want an error", event, text)
		}
	}
}
