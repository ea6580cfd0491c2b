package runner

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/workflow"
)

// crowd is a workflow that asks for as many callbacks as its event has items, at once.
const crowd = `
  crowd:
    source: shop
    events: [order]
    steps:
      - {name: all, type: map, items_path: $.items, iterator: {name: ask, type: callback, url: 'https://a.example/ask'}}
`

// newCrowd begins such a run, until its items are due. Each store of a transition takes a
// while.
func newCrowd(t *testing.T, n int) (*world, *Runner, core.ID) {
	t.Helper()
	w := newWorld(t, crowd)
	run := w.start("crowd", `{"items":[`+strings.Repeat("1,", n-1)+`1]}`)
	r := w.runner()
	if _, err := r.Settle(t.Context(), w.reach(r, "crowd")); err != nil {
		t.Fatal(err)
	}
	w.before = func(string) error { time.Sleep(5 * time.Millisecond); return nil }
	return w, r, run
}

// ask makes all items send their notices at once, and returns their tokens.
func (w *world) ask(t *testing.T, r *Runner) (tokens []string) {
	t.Helper()
	w.answer = func(_ context.Context, q workflow.Request, _ core.TakenJob) Answer {
		_, after, _ := strings.Cut(string(q.Body), `"token":"`)
		token, _, _ := strings.Cut(after, `"`)
		w.watch.Lock()
		defer w.watch.Unlock()
		tokens = append(tokens, token)
		return Answer{StatusCode: 202}
	}
	var all sync.WaitGroup
	for jobs := w.take("crowd"); len(jobs) > 0; jobs = w.take("crowd") {
		for _, job := range jobs {
			all.Go(func() {
				end, ok, err := r.Attempt(t.Context(), job)
				if err != nil || !ok {
					t.Errorf("Attempt = %v, %v", ok, err)
					return
				}
				if _, err := r.Settle(t.Context(), end); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	return tokens
}

// callAll posts callbacks with all tokens at once, and returns the error of each.
func (w *world) callAll(r *Runner, tokens []string) []error {
	errs := make([]error, len(tokens))
	var all sync.WaitGroup
	for i, token := range tokens {
		all.Go(func() { errs[i] = r.Callback(context.Background(), token, fmt.Append(nil, i)) })
	}
	all.Wait()
	return errs
}

// Any number of callers of one process that move one run at once cause no conflicts, and
// their waiting ends are stored together.
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 600
		w, r, run := newCrowd(t, n)
		before := w.ops["transit"]
		tokens := w.ask(t, r)
		if most := w.ops["transit"] - before; len(tokens) != n || most > 40 {
			t.Errorf("%d tokens after %d transits, want %d after 40 at most", len(tokens), most, n)
		}
		began, before := time.Now(), w.ops["transit"]
		for _, err := range w.callAll(r, tokens) {
			if err != nil {
				t.Fatalf("Callback = %v", err)
			}
		}
		if most := w.ops["transit"] - before; w.read(run).Status != core.RunCompleted || most > 20 {
			t.Errorf("run is %s after %d transits, want it completed after 20 at most", w.read(run).Status, most)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%d callbacks took %v", n, took)
		}
		if left := w.left(run); len(left) > 0 || len(r.lines) > 0 {
			t.Errorf("left: %v and %d lines", left, len(r.lines))
		}
	})
}

// A caller that gives up leaves a sent transition to the next caller, which gets its
// result.
func TestTurnGoesOnWithoutItsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r, run := newCrowd(t, 10)
		tokens := w.ask(t, r)
		lost := 5
		w.after = func(op string) error {
			w.watch.Lock()
			defer w.watch.Unlock()
			if op != "transit" || lost == 0 {
				return nil
			}
			lost--
			return errAway
		}
		refused := 0
		for _, err := range w.callAll(r, tokens) {
			if core.IsKind(err, core.Unavailable) {
				refused++
			} else if err != nil {
				t.Errorf("Callback = %v, want nothing or that it cannot be done now", err)
			}
		}
		if n := len(w.entriesOf(run, core.EntrySucceeded)); refused != 1 || n != 11 {
			t.Errorf("%d were refused, and %d steps succeeded; want one and all", refused, n)
		}
	})
}

// If one end makes the store refuse a shared turn, only that end fails.
func TestOneIsRefusedInACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r, run := newCrowd(t, 10)
		tokens := w.ask(t, r)
		w.refuse = func(t core.Transition) error {
			for _, c := range t.Changed {
				if string(c.Output) == "7" {
					return core.Refuse(core.TooLarge, "too large for the database")
				}
			}
			return nil
		}
		for i, err := range w.callAll(r, tokens) {
			if want := i == 7; want != core.IsKind(err, core.TooLarge) || !want && err != nil {
				t.Errorf("callback %d: %v", i, err)
			}
		}
		if n := len(w.entriesOf(run, core.EntrySucceeded)); n != 9 {
			t.Errorf("%d steps succeeded, want 9", n)
		}
	})
}

// A caller that settles ends of several runs at once never waits in a circle with another
// caller.
func TestSettleInEveryOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, line(20))
		for range 5 {
			w.start("line", `{}`)
		}
		r := w.runner()
		for w.ops["take"] < 20 {
			var ends []core.StepEnd
			for _, job := range w.take("line") {
				end, _, err := r.Attempt(t.Context(), job)
				if err != nil {
					t.Fatal(err)
				}
				ends = append(ends, end)
			}
			w.before = func(string) error { time.Sleep(time.Millisecond); return nil }
			var all sync.WaitGroup
			for i := range ends {
				turned := append(append([]core.StepEnd{}, ends[i:]...), ends[:i]...)
				all.Go(func() {
					if _, err := r.Settle(t.Context(), turned...); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		for id, run := range w.runs {
			if run.Status != core.RunCompleted || len(w.entriesOf(id, core.EntrySucceeded)) != 20 {
				t.Errorf("run is %s: %v", run.Status, w.entriesOf(id))
			}
		}
	})
}

// A callback that waits too long is refused as unavailable, and is not recorded later.
func TestCallbackNotInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r, run := newCrowd(t, 3)
		tokens := w.ask(t, r)
		away := make(chan bool)
		w.before = func(op string) error {
			if op == "transit" {
				<-away
			}
			return nil
		}
		go func() { _ = r.Callback(context.Background(), tokens[0], nil) }()
		synctest.Wait()
		began := time.Now()
		if err := r.Callback(context.Background(), tokens[1], nil); !core.IsKind(err, core.Unavailable) || time.Since(began) != moveTimeout {
			t.Errorf("Callback = %v after %v, want that it cannot be done now, after %v", err, time.Since(began), moveTimeout)
		}
		go func() { _ = r.Callback(context.Background(), tokens[2], nil) }()
		time.Sleep(time.Second)
		close(away)
		time.Sleep(time.Second)
		if n := len(w.entriesOf(run, core.EntrySucceeded)); n != 2 {
			t.Errorf("%d steps succeeded, want those of the first callback and the third", n)
		}
		if err := r.Callback(context.Background(), tokens[1], nil); err != nil {
			t.Errorf("the same Callback later = %v", err)
		}
	})
}

// The work before a call does not reduce the call's time.
func TestCallHasItsOwnTime(t *testing.T) {
	for name, workflows := range map[string]string{"line": line(1), "asking": asking} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, workflows)
			w.start(name, `{}`)
			w.before = func(op string) error {
				if op == "transit" {
					time.Sleep(4 * time.Second)
				}
				return nil
			}
			var left time.Duration
			w.answer = func(ctx context.Context, _ workflow.Request, _ core.TakenJob) Answer {
				until, _ := ctx.Deadline()
				left = time.Until(until)
				return Answer{StatusCode: 200}
			}
			r := w.runner()
			r.Timeout = 5 * time.Second
			job := w.take(name)[0]
			if _, ok, err := r.Attempt(t.Context(), job); !ok || err != nil || left != r.Timeout {
				t.Errorf("%s: Attempt = %v, %v with %v for the call, want %v", name, ok, err, left, r.Timeout)
			}
			w.before = func(string) error { time.Sleep(time.Minute); return nil }
			if _, ok, err := w.runner().Attempt(t.Context(), job); ok || !core.IsKind(err, core.Unavailable) {
				t.Errorf("%s: slow Attempt = %v, %v, want that it cannot be done now", name, ok, err)
			}
		})
	}
}

// A state that is too large for the database fails its step, for every type of step.
func TestStateWithoutRoom(t *testing.T) {
	const inline = `
  inline:
    source: shop
    events: [order]
    steps:
      - {name: hold, type: wait, seconds: 10%s}
      - {name: last, url: 'https://a.example/last'}
`
	for remedy, want := range map[string]core.RunStatus{"": core.RunFailed, ", catch: [{errors: [all], goto: last}]": core.RunCompleted} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, fmt.Sprintf(inline, remedy))
			id := w.start("inline", `{"n": 1}`)
			w.refuse = func(t core.Transition) error {
				if len(t.New) > 0 && !strings.Contains(string(t.New[0].State), "too large") {
					return core.Refuse(core.TooLarge, "event too large for the database")
				}
				return nil
			}
			run := w.finish(id)
			if run.Status != want || want == core.RunFailed && run.Error != "step hold: data: the state is too large for the database" {
				t.Errorf("run is %s: %q, want %s", run.Status, run.Error, want)
			}
			if left := w.left(id); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// If an operator cancels the run meanwhile, the cancel comes first.
func TestCanceledWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, crowd)
		id := w.start("crowd", `{"items":[1]}`)
		r := w.runner()
		end := w.reach(r, "crowd")
		transits := 0
		w.before = func(op string) error {
			if op != "transit" {
				return nil
			}
			if transits++; transits == 3 { // the first is refused, and so is the one with the end alone
				w.refuse = nil
				if _, err := w.runner().Cancel(t.Context(), id); err != nil {
					t.Error(err)
				}
			}
			return nil
		}
		w.refuse = func(core.Transition) error { return core.Refuse(core.TooLarge, "event too large for the database") }
		settled, err := r.Settle(t.Context(), end)
		if err != nil || !settled[0].Lost || w.read(id).Error != "canceled" || transits != 4 {
			t.Errorf("Settle = %+v, %v after %d transits; the run: %s", settled, err, transits, w.read(id).Error)
		}
	})
}

// A run whose definition cannot be compiled can be canceled. Every other operation is
// refused, with the reason.
func TestRunThatCannotBeCompiled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r, id := newCrowd(t, 5)
		tokens := w.ask(t, r)
		real := w.compile
		w.compile = func(core.Definition) (*workflow.Definition, error) { return nil, fmt.Errorf("GREETING is not set") }
		if err := w.callback(tokens[0], ""); !core.IsKind(err, core.Unavailable) {
			t.Errorf("Callback = %v, want that it cannot be done now", err)
		}
		run, err := w.runner().Cancel(t.Context(), id)
		if err != nil || run.Status != core.RunCanceled || run.Error != "canceled" {
			t.Errorf("Cancel = %+v, %v, want a failed run", run, err)
		}
		if left := w.left(id); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		if _, err := w.runner().Cancel(t.Context(), id); !core.IsKind(err, core.Invalid) {
			t.Errorf("second Cancel = %v, want that it is finished", err)
		}
		if _, err := w.runner().Redrive(t.Context(), id, true, core.Definition{}); !core.IsKind(err, core.Invalid) || !strings.Contains(err.Error(), "GREETING is not set") {
			t.Errorf("Redrive = %v, want why it cannot be", err)
		}
		w.compile = real
		if _, err := w.runner().Redrive(t.Context(), id, true, core.Definition{}); err != nil {
			t.Errorf("Redrive = %v", err)
		}
	})
}
