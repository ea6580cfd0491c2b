// Package flows_test runs workflows through the whole gateway: from the request with the event
// to the last entry of the run's history, on every database, with a new gateway for each tick,
// like in functions. One server plays all services that steps call. The clock jumps to the
// time of the next due job.
package flows_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/store"
)

var verbose = flag.Bool("log", false, "show the log of the gateways")

// base is the beginning of every configuration. With one delivery at a time, requests come in
// the order of the steps.
const base = `
server: {allow_private_urls: true, public_url: "http://gateway.test"}
worker: {max_concurrency: 1, drain_timeout_secs: 1, stale_threshold_secs: 60}
delivery: {default_retry: {interval: 10ms}}
sources: {shop: {type: event}}
`

// began is the first time of every world's clock.
var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A clock goes like the machine's, or faster, and can be moved.
type clock struct {
	speed int
	mu    sync.Mutex
	start time.Time // by the machine's clock
	moved time.Duration
}

func newClock() *clock { return &clock{speed: 1, start: time.Now()} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return began.Add(time.Duration(c.speed)*time.Since(c.start) + c.moved)
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved += d
}

// A world is a database, the services of steps, and a sequence of gateways.
type world struct {
	t        testing.TB
	conn     store.Conn
	dialect  store.Dialect
	clock    *clock
	receiver *services
	store    core.Store // not through a gateway

	yaml        string
	environment map[string]string
	wrap        func(store.Conn) store.Conn // wraps the connection of each new gateway; may be nil

	// taking is called when the gateway of a generation begins to take jobs. The function that
	// it returns is called with the taken jobs. It may be nil.
	taking func(generation int) (taken func(jobs []core.TakenJob))

	gateway    *gateway.Gateway // the newest
	generation int
	jumps      []time.Duration
}

func newWorld(t testing.TB, p place, yaml string) *world {
	w := &world{t: t, dialect: p.dialect, clock: newClock(), environment: map[string]string{}}
	w.conn = p.open(t)
	w.store = w.storeOver(w.conn)
	if err := w.store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.receiver = newServices(t)
	w.receiver.world = w
	w.forget()
	w.configure(yaml)
	return w
}

// configure sets the configuration of later gateways. In it, http://receiver stands for the
// receiver's URL.
func (w *world) configure(yaml string) {
	w.yaml = strings.ReplaceAll(yaml, "http://receiver", w.receiver.URL)
}

func (w *world) storeOver(conn store.Conn) *store.Store {
	return store.New(conn, w.dialect, w.clock.now)
}

// load loads the configuration as an overlay of base.
func (w *world) load() *config.Config {
	w.t.Helper()
	c, err := config.Load(config.Options{
		FS:   fstest.MapFS{"gateway.yaml": {Data: []byte(base)}, "gateway.flows.yaml": {Data: []byte(w.yaml)}},
		Path: "gateway.yaml", Env: "flows",
		Lookup: w.lookup,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) lookup(name string) (string, bool) {
	value, ok := w.environment[name]
	return value, ok
}

// begin makes a gateway that shares only the database with earlier gateways.
func (w *world) begin() *gateway.Gateway {
	w.t.Helper()
	w.clock.move(time.Millisecond) // its ids are greater than those of the gateway before
	w.generation++
	conn := w.conn
	if w.wrap != nil {
		conn = w.wrap(conn)
	}
	g, err := gateway.New(w.load(), w.deps(conn))
	if err != nil {
		w.t.Fatal(err)
	}
	w.gateway = g
	return g
}

func (w *world) deps(conn store.Conn) gateway.Deps {
	log := slog.New(slog.DiscardHandler)
	if *verbose {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return gateway.Deps{
		Store: timely{w.storeOver(conn), w.clock, w.generation, w.taking}, Clock: w.clock.now, Log: log,
		Version: strconv.Itoa(w.generation),
	}
}

// timely dates events by the clock of the world. The server dates them by the machine's clock,
// to measure durations.
type timely struct {
	core.Store
	clock      *clock
	generation int
	taking     func(int) func([]core.TakenJob)
}

func (s timely) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	if s.taking == nil {
		return s.Store.Take(ctx, now, quotas)
	}
	taken := s.taking(s.generation)
	jobs, err := s.Store.Take(ctx, now, quotas)
	if err == nil {
		taken(jobs)
	}
	return jobs, err
}

func (s timely) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	if a.Event.Source != core.AlertSource {
		a.Event.CreatedAt = s.clock.now().Truncate(time.Millisecond)
	}
	return s.Store.Accept(ctx, a)
}

// An answer is the gateway's response to a request.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) String() string { return strconv.Itoa(a.status) + " " + strings.TrimSpace(a.body) }

// ask sends a request to a new gateway.
func (w *world) ask(method, path, body string) answer {
	w.t.Helper()
	return askOf(w.begin(), method, path, body)
}

func askOf(g *gateway.Gateway, method, path, body string) answer {
	return send(g, httptest.NewRequest(method, path, strings.NewReader(body)))
}

// send makes a gateway serve a request.
func send(g *gateway.Gateway, r *http.Request) answer {
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	g.Handler().ServeHTTP(rec, r)
	said, _ := io.ReadAll(rec.Body)
	return answer{rec.Code, rec.Header(), string(said)}
}

// accept sends an event and returns the runs that it started.
func (w *world) accept(kind, payload string) []core.ID {
	w.t.Helper()
	a := w.ask("POST", "/events/shop/"+kind, payload)
	if a.status != http.StatusAccepted {
		w.t.Fatalf("POST /events/shop/%s = %s, want 202", kind, a)
	}
	return w.runsOf(core.ID(a.header.Get("x-gateway-event-id")))
}

func (w *world) runsOf(event core.ID) (ids []core.ID) {
	w.t.Helper()
	page, err := w.store.Runs(w.t.Context(), core.RunFilter{EventID: event})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range page.Items {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return ids
}

// maxTicks is more than any flow here needs.
const maxTicks = 300

var errStuck = errors.New("it goes on and on")

// rest ticks and moves the clock until no job is left except for callbacks.
func (w *world) rest() error {
	for range maxTicks {
		if err := w.tick(); err != nil {
			return err
		}
		due := w.next()
		if due.IsZero() {
			return nil
		}
		if wait := due.Sub(w.clock.now()); wait > 0 {
			w.jumps = append(w.jumps, wait)
			w.receiver.note(wait)
			w.clock.move(wait)
		}
	}
	return errStuck
}

// tick makes a new gateway do the due work. After a minute it gives up.
func (w *world) tick() error {
	w.t.Helper()
	g := w.begin()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := g.Worker.Tick(ctx, core.Budget{}); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("a tick took a minute")
	}
	return nil
}

// next returns when the next job is due, without jobs that only wait for a callback. It
// returns zero if there is none.
func (w *world) next() (due time.Time) {
	w.t.Helper()
	awaiting := map[core.ID]bool{}
	for _, r := range w.runs() {
		if !r.Status.Finished() {
			for _, s := range w.steps(r, core.Wanted{Open: true}) {
				awaiting[s.ID] = s.Type == "callback" && s.Status == core.StepWaiting
			}
		}
	}
	for _, j := range w.jobs() {
		if !j.Status.Finished() && !awaiting[j.ID] && (due.IsZero() || j.DueAt.Before(due)) {
			due = j.DueAt
		}
	}
	return due
}

func (w *world) runs() []core.Run {
	w.t.Helper()
	page, err := w.store.Runs(w.t.Context(), core.RunFilter{Limit: core.MaxPage})
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Reverse(page.Items)
	return page.Items
}

func (w *world) jobs() []core.Job {
	w.t.Helper()
	var all []core.Job
	for after := core.ID(""); ; {
		page, err := w.store.Jobs(w.t.Context(), core.JobFilter{After: after, Limit: core.MaxPage})
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, page.Items...)
		if !page.More {
			slices.Reverse(all)
			return all
		}
		after = all[len(all)-1].ID
	}
}

func (w *world) run(id core.ID) core.Run {
	w.t.Helper()
	r, err := w.store.Run(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) steps(r core.Run, wanted core.Wanted) []core.Step {
	w.t.Helper()
	steps, err := w.store.Survey(w.t.Context(), r.ID, r.Epoch, wanted)
	if err != nil {
		w.t.Fatal(err)
	}
	return steps
}

// history returns all entries of a run.
func (w *world) history(id core.ID) (all []core.Entry) {
	w.t.Helper()
	for {
		more, err := w.store.History(w.t.Context(), id, len(all), core.MaxPage)
		if err != nil {
			w.t.Fatal(err)
		}
		if all = append(all, more...); len(more) < core.MaxPage {
			return all
		}
	}
}

// tables are all tables in which a run leaves rows.
var tables = []string{"attempts", "callbacks", "definitions", "events", "gates", "history", "jobs", "runs", "steps"}

// forget empties the world's database, and resets its receiver and clock.
func (w *world) forget() {
	w.t.Helper()
	for _, table := range tables {
		if _, err := w.conn.Batch(context.Background(), store.Stmt{Name: "forget", SQL: "DELETE FROM " + table}); err != nil {
			w.t.Fatal(err)
		}
	}
	w.receiver.forget()
	w.clock.move(-w.clock.now().Sub(began)) // one move can be at most three centuries
}
