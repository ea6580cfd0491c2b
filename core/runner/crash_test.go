package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/workflow"
)

// everything is a workflow with steps of every type, one in another.
const everything = `
  everything:
    source: shop
    events: [order]
    steps:
      - {name: check, url: 'https://a.example/check', result_path: $.stock, retry: {max: 3, interval: 5s}}
      - {name: route, type: choice, default: ask, choices: [{when: '$.total > 1000', goto: ship}]}
      - {name: ask, type: callback, url: 'https://a.example/ask', result_path: $.approval}
      - name: prepare
        type: parallel
        result_path: $.prepared
        branches:
          - {name: pay, url: 'https://a.example/pay'}
          - {name: print, steps: [{name: one, url: 'https://a.example/one'}, {name: two, url: 'https://a.example/two'}]}
          - {name: parcels, steps: [{name: pack, type: map, items_path: $.items, max_concurrency: 2, iterator: {name: item, url: 'https://a.example/pack'}}]}
      - {name: cool, type: wait, seconds: 30}
      - {name: ship, url: 'https://a.example/ship', result_path: $.shipped}
`

const order = `{"total": 7, "items": [1, 2, 3, 4, 5]}`

// answering answers steps according to their requests, refuses the first try of check, and
// passes the token of ask to resume.
func (w *world) answering(resume func(token string)) {
	w.answer = func(_ context.Context, r workflow.Request, job core.TakenJob) Answer {
		switch path := job.Situation.Step.Path; {
		case path == "check" && job.Situation.Step.Attempt == 0:
			return Answer{StatusCode: 503, Error: "status: 503"}
		case path == "ask":
			_, after, _ := strings.Cut(string(r.Body), `"token":"`)
			token, _, _ := strings.Cut(after, `"`)
			go resume(token)
			return Answer{StatusCode: 202}
		case strings.Contains(path, "pack/"):
			return Answer{StatusCode: 200, Body: slices.Concat([]byte(`{"packed":`), r.Body, []byte("}"))}
		default:
			return Answer{StatusCode: 200, Body: []byte(`"` + path + `"`)}
		}
	}
}

// returning resumes a step half a minute after it asked.
func (w *world) returning() {
	w.answering(func(token string) {
		for range 20 {
			time.Sleep(30 * time.Second)
			if err := w.runner().Callback(context.Background(), token, []byte(`{"yes": true}`)); err == nil || core.IsKind(err, core.NotFound) {
				return
			}
		}
	})
}

const finalState = `{"approval":{"yes":true},"items":[1,2,3,4,5],"prepared":{"parcels":[{"packed":1},{"packed":2},{"packed":3},{"packed":4},{"packed":5}],` +
	`"pay":"prepare/pay","print":"prepare/print/two"},"shipped":"ship","stock":"check","total":7}`

// check reports the faults of a run of everything.
func (w *world) check(t *testing.T, when string, run core.Run) {
	t.Helper()
	if run.Status != core.RunCompleted || string(run.Output) != finalState {
		t.Errorf("%s: run is %s (%s) with\n%s\nwant\n%s", when, run.Status, run.Error, run.Output, finalState)
	}
	if left := w.left(run.ID); len(left) > 0 {
		t.Errorf("%s: left: %v", when, left)
	}
	succeeded := map[string]int{}
	for _, line := range w.entriesOf(run.ID, core.EntrySucceeded) {
		succeeded[line]++
	}
	for line, n := range succeeded {
		if n != 1 {
			t.Errorf("%s: %s %d times", when, line, n)
		}
	}
	if len(succeeded) != 15 {
		t.Errorf("%s: %d steps succeeded, want 15", when, len(succeeded))
	}
}

var wantKeys = []string{"1.ask", "1.check", "1.prepare/parcels/pack/0/item", "1.prepare/parcels/pack/1/item", "1.prepare/parcels/pack/2/item",
	"1.prepare/parcels/pack/3/item", "1.prepare/parcels/pack/4/item", "1.prepare/pay", "1.prepare/print/one", "1.prepare/print/two", "1.ship"}

func TestEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, everything)
		w.returning()
		run := w.finish(w.start("everything", order))
		w.check(t, "undisturbed", run)
		keys := w.keys()
		if diff := cmp.Diff(wantKeys, slices.Sorted(maps.Keys(keys))); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		if len(w.requests) != 12 {
			t.Errorf("%d requests, want one for each key and one more for check", len(w.requests))
		}
	})
}

var errCrash = errors.New("the process is gone")

// A crash kills a process at an effect: before it, or just after it. Later actions of the
// process have no effect, until another process begins.
type crash struct {
	mu      sync.Mutex
	left    int // effects until then
	dead    bool
	counted int
}

func (c *crash) effect() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counted++
	if c.left--; c.left == 0 {
		c.dead = true
	}
	if c.dead {
		return errCrash
	}
	return nil
}

func (c *crash) reborn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = false
}

func (c *crash) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// through runs everything with a process that dies at the nth effect, a write of the
// store or a call, before or after it takes place. It returns how many effects there were.
func through(t *testing.T, n int) (effects int) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWorld(t, everything), &crash{left: n}
		w.returning()
		outside := w.answer
		w.answer = func(ctx context.Context, r workflow.Request, job core.TakenJob) Answer {
			if c.effect() != nil {
				<-ctx.Done()
			}
			a := outside(ctx, r, job)
			if c.effect() != nil {
				<-ctx.Done()
			}
			return a
		}
		w.before = func(string) error { return c.effect() }
		w.after = w.before
		run := w.start("everything", order)
		for range 300 {
			ctx, stop := context.WithCancel(context.Background())
			go func() {
				for !c.isDead() && ctx.Err() == nil {
					time.Sleep(time.Second)
				}
				stop()
			}()
			_, _ = w.worker(w.runner(), 3).Tick(ctx, core.Budget{})
			stop()
			if w.read(run).Status.Finished() {
				break
			}
			c.reborn()
			time.Sleep(15 * time.Second)
		}
		c.reborn()
		time.Sleep(time.Hour) // all waits come to their end
		when := fmt.Sprintf("dead at effect %d", n)
		w.check(t, when, w.read(run))
		if diff := cmp.Diff(wantKeys, slices.Sorted(maps.Keys(w.keys()))); diff != "" {
			t.Errorf("%s: keys (-want +got):\n%s", when, diff)
		}
		for key, n := range w.keys() {
			if most := 2 + strings.Count(key, "check"); n > most {
				t.Errorf("%s: %s was called %d times, want at most %d", when, key, n, most)
			}
		}
		effects = c.counted
	})
	return effects
}

// The process dies at every possible point.
func TestCrashAtEveryPoint(t *testing.T) {
	all := through(t, 0)
	step := 1
	if testing.Short() {
		step = 7
	}
	for n := 1; n <= all && !t.Failed(); n += step {
		through(t, n)
	}
	t.Logf("%d points", all)
}

// The store fails one call, before or after its effect, for each call in turn. No step is
// called twice because of that, and no end is lost. In a short run one call in four fails, another
// one after its effect than before it.
func TestStoreIsAwayOnce(t *testing.T) {
	away := func(t *testing.T, n int, late bool) (calls int) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, everything)
			w.returning()
			var mu sync.Mutex
			what := ""
			fail := func(op string) error {
				mu.Lock()
				defer mu.Unlock()
				if calls++; calls == n {
					what = op
					return errAway
				}
				return nil
			}
			if late {
				w.after = fail
			} else {
				w.before = fail
			}
			id := w.start("everything", order)
			worker := w.worker(w.runner(), 3)
			ctx, stop := context.WithCancel(context.Background())
			reports := make(chan core.Report)
			go func() {
				r, _ := worker.Tick(ctx, core.Budget{Rest: time.Second})
				reports <- r
			}()
			time.Sleep(10 * time.Minute)
			stop()
			r := <-reports
			when := fmt.Sprintf("away at call %d, %s, late: %v", n, what, late)
			w.check(t, when, w.read(id))
			if len(w.requests) != 12 || r.Lost > 0 {
				t.Errorf("%s: %d requests and %+v, want 12 and nothing lost", when, len(w.requests), r)
			}
		})
		return calls
	}
	stride := 1
	if testing.Short() {
		stride = 4
	}
	for first, late := range []bool{false, true} {
		for n := 1 + first*stride/2; n <= 100 && !t.Failed(); n += stride {
			away(t, n, late)
		}
	}
}
