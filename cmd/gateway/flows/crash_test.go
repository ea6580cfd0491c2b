package flows_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

// everyStep has each type of step, two levels deep, and failures with each remedy.
const everyStep = `
workflows:
  everything:
    source: shop
    steps:
      - {name: check, url: http://receiver/check, input: '{"try": {{$$.step.attempt}}}', result_path: $.stock, retry: {max: 4, interval: 1s, errors: [5xx]}}
      - {name: route, type: choice, default: check, choices: [{when: $.stock.available == true, goto: prepare}]}
      - name: prepare
        type: parallel
        result_path: $.prepared
        branches:
          - {name: payment, url: http://receiver/pay}
          - name: parcels
            steps:
              - {name: pack, type: map, items_path: $.items, max_concurrency: 2, result_path: $.packed, iterator: {name: one, url: http://receiver/one}}
              - {name: label, url: http://receiver/label, on_failure: continue, result_path: null}
          - name: desk
            steps:
              - {name: ask, type: callback, url: http://receiver/ask, callback_timeout: 86400, result_path: $.said}
              - {name: lost, url: http://receiver/lost, catch: [{errors: [4xx], goto: found}], end: true}
              - {name: found, type: parallel, branches: [{name: x, url: http://receiver/x}, {name: y, steps: [{name: nap, type: wait, seconds: 30}]}]}
      - {name: sleep, type: wait, seconds: 300}
      - {name: notify, url: http://receiver/notify}
`

// containers are the steps of everyStep that are joined.
var containers = []string{"prepare", "prepare/parcels/pack", "prepare/desk/found"}

// A life is a run of everyStep on several gateways, of which one dies.
type life struct {
	*world
	hospital *hospital
	dying    *fuse // of the gateway that dies, and of the gateways before it
	died     bool
	run      core.ID
	pending  map[string]bool // calls that were under way when it died, by key
	gone     sync.WaitGroup  // dead gateways
}

func newLife(w *world, h *hospital, point int) *life {
	l := &life{world: w, hospital: h, dying: newFuse(point), pending: map[string]bool{}}
	w.receiver.fuses = h.of
	w.receiver.another = everyReply
	return l
}

// everyReply is the receiver's reply in a life. It depends on the number of ended attempts of
// the step, which is in the body. If it depended on the number of requests or on
// x-gateway-attempt, a repeated call after a death would change the course of the run.
func everyReply(q *request) *reply {
	first := strings.Contains(q.Body, `"try": 1}`)
	switch {
	case q.step == "check" && first:
		return &reply{status: 503}
	case q.step == "check":
		return &reply{status: 200, body: `{"available": false}`}
	case q.step == "check#2":
		return &reply{status: 200, body: `{"available": true}`}
	case q.path == "/lost":
		return &reply{status: 404}
	case q.path == "/label":
		return &reply{status: 500}
	case q.path == "/one":
		return &reply{status: 200, body: `{"packed": ` + q.Body + `}`}
	}
	return nil
}

// next makes the next gateway: one with the dying fuse until a gateway has died, then one that
// lives.
func (l *life) next() {
	f := l.dying
	if l.died {
		f = newFuse(0)
	}
	l.hospital.admit(l.world, f)
}

// live runs the run to its end, with a death on the way.
func (l *life) live() error {
	if err := l.start(); err != nil {
		return err
	}
	for range maxTicks {
		if l.tick(); l.world.run(l.run).Status.Finished() {
			return nil
		}
		due := l.world.next()
		if wait := due.Sub(l.clock.now()); !due.IsZero() && wait > 0 {
			l.clock.move(wait)
		}
		if token := l.receiver.token("prepare/desk/ask"); token != "" && l.waits() {
			l.callBack(token)
		} else if due.IsZero() {
			return fmt.Errorf("nothing is due: %s", l.where())
		}
	}
	return errStuck
}

const order = `{"order_id": "A1", "items": [{"n": 1}, {"n": 2}, {"n": 3}]}`

// start sends the event like its sender: until it is accepted, under one delivery id.
func (l *life) start() error {
	for range 3 {
		l.next()
		g := l.begin()
		r := httptest.NewRequest("POST", "/events/shop/order", strings.NewReader(order))
		r.Header.Set("Idempotency-Key", "A1")
		a := send(g, r)
		l.noteDeath()
		if a.status == http.StatusAccepted || a.status == http.StatusOK {
			runs := l.runsOf(core.ID(a.header.Get("x-gateway-event-id")))
			if len(runs) != 1 {
				return fmt.Errorf("the event started %d runs, want 1", len(runs))
			}
			l.run = runs[0]
			return nil
		}
	}
	return fmt.Errorf("the event is not taken")
}

// tick makes a gateway work until no job is due, or until it dies.
func (l *life) tick() {
	l.next()
	f := l.hospital.of(fmt.Sprint(l.generation + 1))
	g := l.begin()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	l.gone.Go(func() {
		_, err := g.Worker.Tick(ctx, core.Budget{})
		ended <- err
	})
	select {
	case <-f.dead:
	case err := <-ended:
		if err != nil && f.alive() {
			l.t.Errorf("tick: %v", err)
		}
	case <-time.After(time.Minute):
		l.t.Error("a tick takes a minute")
	}
	l.noteDeath()
}

// noteDeath records, once the gateway is dead, the calls that may have to be repeated. They
// belong to open steps, and the receiver saw more of them than are recorded.
func (l *life) noteDeath() {
	if l.died || l.dying.alive() {
		return
	}
	l.died = true
	if l.run == "" {
		return
	}
	seen := l.calls()
	r := l.world.run(l.run)
	for _, s := range l.steps(r, core.Wanted{Open: true}) {
		key := fmt.Sprintf("%s.%d.%s", r.ID, r.Epoch, s.Path)
		if s.Status != core.StepWaiting && seen[key] > s.Attempt {
			l.pending[key] = true
		}
	}
}

// calls returns the number of requests with each key.
func (l *life) calls() map[string]int {
	l.receiver.mu.Lock()
	defer l.receiver.mu.Unlock()
	seen := map[string]int{}
	for _, c := range l.receiver.log {
		if c.request != nil {
			seen[c.key]++
		}
	}
	return seen
}

// waits reports whether the callback step waits.
func (l *life) waits() bool {
	steps := l.steps(l.world.run(l.run), core.Wanted{Paths: []string{"prepare/desk/ask"}})
	return len(steps) == 1 && steps[0].Status == core.StepWaiting
}

// callBack sends the callback until it is answered with 200, like a sender that does not know
// the outcome.
func (l *life) callBack(token string) {
	for range 3 {
		l.next()
		a := askOf(l.begin(), "POST", "/callback/"+token, `{"ok": true}`)
		broken := !l.died && !l.dying.alive()
		l.noteDeath()
		if a.status == http.StatusOK {
			return
		}
		if !broken {
			l.t.Errorf("callback: %s", a)
			return
		}
	}
}

func (l *life) where() string {
	var out strings.Builder
	s := stage{world: l.world}
	r := l.world.run(l.run)
	s.showSteps(&out, l.steps(r, core.Wanted{All: true}))
	return fmt.Sprintf("%s %s\n%s", r.Status, r.Error, out.String())
}

// A course is the result of a life. It must not depend on deaths.
type course struct {
	Status  core.RunStatus
	Output  string
	Error   string
	Steps   []string
	Entries map[string]int // numbers of entries of the history, by type and path
	Calls   map[string]int // numbers of calls, by key without the run
}

func (l *life) course() course {
	r := l.world.run(l.run)
	c := course{Status: r.Status, Output: string(r.Output), Error: r.Error, Entries: map[string]int{}, Calls: map[string]int{}}
	for _, s := range l.steps(r, core.Wanted{All: true}) {
		c.Steps = append(c.Steps, fmt.Sprint(s.Path, " ", s.Status, " ", s.Attempt, " ", s.Error))
	}
	slices.Sort(c.Steps)
	for _, e := range l.history(l.run) {
		if e.Type != core.EntryArmed { // there is one for each sent token
			c.Entries[string(e.Type)+" "+e.Path]++
		}
	}
	for key, n := range l.calls() {
		if l.pending[key] && n > 1 { // one repeated call is allowed
			n--
		}
		c.Calls[strings.TrimPrefix(key, string(l.run))] = n
	}
	return c
}

// leftovers lists open steps, jobs and leases of finished runs.
func (w *world) leftovers() (all []string) {
	for _, r := range w.runs() {
		for _, s := range w.steps(r, core.Wanted{Open: true}) {
			all = append(all, fmt.Sprintf("step %s of run %s is %s", s.Path, r.ID, s.Status))
		}
	}
	for _, j := range w.jobs() {
		if !j.Status.Finished() || !j.DueAt.IsZero() || j.Lease != "" {
			all = append(all, fmt.Sprintf("job %s (%s) is %s, due %s, lease %q", j.ID, j.Step, j.Status, j.DueAt, j.Lease))
		}
	}
	if n := w.query("SELECT COUNT(*) AS n FROM callbacks WHERE step_id <> ''")[0][0]; n != int64(0) {
		all = append(all, fmt.Sprint(n, " tokens"))
	}
	if n := w.query("SELECT COUNT(*) AS n FROM jobs WHERE status = 'running' OR due_at IS NOT NULL")[0][0]; n != int64(0) {
		all = append(all, fmt.Sprint(n, " jobs that are running or due"))
	}
	return all
}

// TestDeath kills the gateway at each of its effects in turn, and lets other gateways finish
// its work.
func TestDeath(t *testing.T) {
	for _, p := range everywhere {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			stride := 1
			switch {
			case p.name != "sqlite":
				stride = 11
			case testing.Short():
				stride = 7
			}
			diePoints(t, p, stride)
		})
	}
}

func diePoints(t *testing.T, p place, stride int) {
	w, h := newWorld(t, p, everyStep), newHospital()
	whole := newLife(w, h, 0)
	if err := whole.live(); err != nil {
		t.Fatal(err)
	}
	want := whole.course()
	checkWhole(t, want)
	var lives []*life
	points := 0
	for point := 1; ; point += stride {
		w.forget()
		l := newLife(w, h, point)
		err := l.live()
		if !l.died {
			break // the run ended before this point
		}
		points++
		lives = append(lives, l)
		l.check(t, point, err, want)
		if t.Failed() {
			break
		}
	}
	for _, l := range lives {
		l.gone.Wait()
	}
	t.Logf("the undisturbed run has %d points to die at; died at %d", whole.dying.count, points)
}

// checkWhole checks that the run without a death covers all steps of everyStep.
func checkWhole(t *testing.T, c course) {
	t.Helper()
	if c.Status != core.RunCompleted {
		t.Fatalf("undisturbed: %+v", c)
	}
	for _, path := range containers {
		if n := c.Entries["step_succeeded "+path]; n != 1 {
			t.Errorf("undisturbed: %s was joined %d times, want once", path, n)
		}
	}
}

// check compares a life with a death with a life without one.
func (l *life) check(t *testing.T, point int, err error, want course) {
	t.Helper()
	died := fmt.Sprintf("died at point %d, %s", point, l.dying.what)
	if err != nil {
		t.Errorf("%s: %v", died, err)
		return
	}
	if diff := cmp.Diff(want, l.course()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", died, diff)
	}
	if left := l.leftovers(); len(left) > 0 {
		t.Errorf("%s: left behind %s", died, strings.Join(left, ", "))
	}
	if again := l.repeated(); len(again) > 0 {
		t.Errorf("%s: calls with the same x-gateway-attempt: %s", died, strings.Join(again, ", "))
	}
}

// repeated returns the calls whose key and attempt number an earlier call had.
func (l *life) repeated() (again []string) {
	l.receiver.mu.Lock()
	defer l.receiver.mu.Unlock()
	seen := map[string]bool{}
	for _, c := range l.receiver.log {
		if c.request == nil {
			continue
		}
		call := c.key + " " + c.request.Header.Get("x-gateway-attempt")
		if seen[call] {
			again = append(again, call)
		}
		seen[call] = true
	}
	return again
}
