package flows_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/trees"
	"github.com/eventgateway/gateway/store"
)

// GATEWAY_TORTURE_LEDGER is the number of runs of TestLedger on each database; without it
// there are a few. GATEWAY_TEST_SEED is the seed of its first run, which a failure prints.
const (
	ledgerRuns = "GATEWAY_TORTURE_LEDGER"
	ledgerSeed = "GATEWAY_TEST_SEED"
)

// TestLedger: runs of random trees of parallel and map steps fail, lose processes and answers
// of the database, and get late answers, at random points. They are redriven from the failed
// step until they are completed. The ledger of calls must show three facts:
//
//   - A call that was answered 2xx is never made again once a living process has stored the
//     answer. The call of a callback step is made again until a callback is accepted, and
//     never after that.
//   - No call is made while a living process with a lease makes it.
//   - Every call has one idempotency key over its life, and no two calls have the same key.
//     The call of a callback step has one key until the next redrive, since it has another
//     token then.
func TestLedger(t *testing.T) {
	for _, p := range everywhere {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p := p.shared(t)
			first := seedOf(t)
			var ticks sync.WaitGroup
			defer ticks.Wait()
			for n := range uint64(runsOn(t, p)) {
				trial := newTrial(t, p, first+n, &ticks)
				trial.play()
				if t.Failed() {
					t.Fatalf("%s=%d shows it, of a run of\n%s%s", ledgerSeed, first+n, trial.yaml, trial.story())
				}
			}
		})
	}
}

func seedOf(t *testing.T) uint64 {
	text := os.Getenv(ledgerSeed)
	if text == "" {
		return rand.Uint64() >> 16
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", ledgerSeed, err)
	}
	return seed
}

func runsOn(t *testing.T, p place) int {
	if text := os.Getenv(ledgerRuns); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s must be the number of runs on each database, not %q", ledgerRuns, text)
		}
		return n
	}
	switch {
	case p.name == "sqlite" && !testing.Short():
		return 15
	case testing.Short():
		return 3
	}
	return 5
}

// A trial is one run, and the gateways that work on it.
type trial struct {
	*world
	*rand.Rand // only the goroutine of play uses it
	hospital   *hospital
	ledger     *ledger
	run        core.ID
	shaky      bool            // the connection loses some batches
	ticks      *sync.WaitGroup // waits for the ticks of all gateways, also of dead ones
	over       sync.WaitGroup  // waits until each gateway ends or dies
}

func newTrial(t *testing.T, p place, seed uint64, ticks *sync.WaitGroup) *trial {
	r := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t, p, "worker: {max_concurrency: 4}\n"+randomTree(r))
	trial := &trial{world: w, Rand: r, hospital: newHospital(), ticks: ticks, shaky: r.IntN(2) == 0}
	trial.ledger = newLedger(w, trial.hospital, rand.New(rand.NewPCG(seed, 1)))
	w.receiver.fuses = trial.hospital.of
	w.receiver.another = trial.ledger.answer
	w.receiver.hold = trial.ledger.holding
	w.taking = trial.ledger.taking
	return trial
}

// randomTree returns a configuration with a random workflow.
func randomTree(r *rand.Rand) string {
	return "workflows:\n  tree:\n    source: shop\n    steps:\n" + trees.Steps(r, "      ", "url: http://receiver/x")
}

// play lets random events happen to the run, and then lets it finish without disturbance.
func (t *trial) play() {
	t.run = t.accept("order", `{"items": [1, 2, 3]}`)[0]
	for range 30 + t.IntN(40) {
		t.act()
	}
	t.ledger.calm()
	t.over.Wait()
	t.wrap = nil
	for range 60 {
		if err := t.rest(); err != nil {
			t.t.Error(err)
			return
		}
		t.ledger.settledAll(t.generation)
		switch status := t.world.run(t.run).Status; {
		case status == core.RunFailed:
			t.redrive()
		case status.Finished() || !t.callBackAll():
			t.finish()
			return
		}
	}
	t.finish()
}

// finish checks the end of the run.
func (t *trial) finish() {
	if r := t.world.run(t.run); r.Status != core.RunCompleted {
		t.t.Errorf("run is %s: %s, want completed", r.Status, r.Error)
	}
	if left := t.leftovers(); len(left) > 0 {
		t.t.Errorf("left behind %s", strings.Join(left, "\n"))
	}
}

// story returns the history of the run, and its calls.
func (t *trial) story() string {
	var out strings.Builder
	for _, e := range t.history(t.run) {
		fmt.Fprintln(&out, e.At.Format("15:04:05.000"), e.Epoch, e.Type, e.Path, e.Data)
	}
	t.ledger.mu.Lock()
	defer t.ledger.mu.Unlock()
	for _, e := range t.ledger.calls {
		fmt.Fprintf(&out, "%s gateway %s calls %s, is answered %d%s: %v, held back: %v, lives: %v\n", e.began.Format("15:04:05.000"),
			e.generation, e.step, e.said.status, e.said.do, e.answered, e.hold != nil, t.ledger.alive(e))
	}
	return out.String()
}

// act makes one random event happen.
func (t *trial) act() {
	switch n := t.IntN(14); {
	case n >= 12:
		t.callBackOne()
	case n < 6:
		t.tickBeside()
	case n < 9:
		t.ledger.release(t.IntN(1000))
	case n == 9:
		t.ledger.killOne(t.IntN(1000))
	case n == 10:
		t.clock.move(time.Duration(1+t.IntN(90)) * time.Second)
	default:
		if due := t.next(); due.After(t.clock.now()) {
			t.clock.move(due.Sub(t.clock.now()))
		}
	}
	if t.world.run(t.run).Status == core.RunFailed && t.IntN(3) == 0 {
		t.redrive()
	}
}

// callBackOne sends a callback with the newest token of a random step that has one. The
// callback may come before the answer to the call, or after the step has ended.
func (t *trial) callBackOne() {
	if steps := t.receiver.told(); len(steps) > 0 {
		step := steps[t.IntN(len(steps))]
		t.callBack(step, t.receiver.token(step))
	}
}

// callBack sends a callback and reports whether it was accepted. It has one of two bodies:
// after one is accepted, that body is accepted again and the other is not.
func (t *trial) callBack(step, token string) bool {
	t.wrap = nil
	body := fmt.Sprintf(`{"items": [7, %d]}`, t.IntN(2))
	a := t.ask("POST", "/callback/"+token, body)
	if a.status != http.StatusOK && a.status != http.StatusNotFound {
		t.t.Errorf("callback of %s = %s, want 200 or 404", step, a)
	}
	t.ledger.calledBack(step, token+" "+body, a.status == http.StatusOK)
	return a.status == http.StatusOK
}

// callBackAll sends a callback for each step that waits for one. It reports whether there was
// such a step.
func (t *trial) callBackAll() (any bool) {
	for _, s := range t.steps(t.world.run(t.run), core.Wanted{Open: true}) {
		if s.Type != "callback" || s.Status != core.StepWaiting {
			continue
		}
		any = true
		if !slices.ContainsFunc(t.receiver.tokensOf(s.Path), func(token string) bool { return t.callBack(s.Path, token) }) {
			t.t.Errorf("no token opens the step %s, which waits for one", s.Path)
			return false
		}
	}
	return any
}

// redrive redrives the run from the failed step.
func (t *trial) redrive() {
	t.wrap = nil
	t.ledger.redrives()
	if a := t.ask("POST", "/api/workflow-runs/"+string(t.run)+"/redrive", `{"from":"failed"}`); a.status != 200 {
		t.t.Errorf("redrive = %s", a)
	}
}

// tickBeside runs a new gateway, while others wait for answers. It returns when the new
// gateway has ended, has died, or waits for an answer that is held back.
func (t *trial) tickBeside() {
	f := newFuse(0)
	if t.IntN(4) == 0 {
		f = newFuse(1 + t.IntN(20))
	}
	t.hospital.admit(t.world, f)
	if seed := t.Uint64(); t.shaky {
		inner := t.wrap
		t.wrap = func(c store.Conn) store.Conn { return &shaky{Conn: inner(c), random: rand.New(rand.NewPCG(seed, 2))} }
	}
	g := t.begin()
	own := t.generation
	held := t.ledger.awaits(own)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan bool)
	t.ticks.Go(func() {
		_, err := g.Worker.Tick(ctx, core.Budget{})
		if err == nil && f.alive() {
			t.ledger.settledAll(own)
		}
		close(ended)
	})
	t.over.Go(func() {
		defer cancel()
		select {
		case <-f.dead:
		case <-ended:
		}
	})
	select {
	case <-f.dead:
	case <-ended:
	case <-held:
	}
}

// A shaky connection loses some batches, before or after they take effect.
type shaky struct {
	store.Conn
	mu     sync.Mutex
	random *rand.Rand
}

func (s *shaky) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	s.mu.Lock()
	lost := s.random.IntN(40)
	s.mu.Unlock()
	if lost == 0 {
		return nil, errLostBatch
	}
	results, err := s.Conn.Batch(ctx, stmts...)
	if lost == 1 && err == nil {
		return nil, errLostBatch
	}
	return results, err
}

var errLostBatch = core.Refuse(core.Unavailable, "the batch or its answer is lost")
