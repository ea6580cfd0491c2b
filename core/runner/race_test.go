package runner

import (
	"context"
	"errors"
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

// bump moves a run as another process would, without changing its data.
func (w *world) bump(run core.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.runs[run]
	r.Seq++
	e := core.Entry{Seq: r.Seq, Type: "bumped"}
	if !w.transit(core.Transition{Mark: w.ids.Next(), Seq: r.Seq - 1, Run: r, Entries: []core.Entry{e}}) {
		w.t.Error("the bump was not made")
	}
}

// first makes another process move a run first, this many times.
func (w *world) first(run core.ID, times int) {
	w.before = func(op string) error {
		if op != "transit" {
			return nil
		}
		w.watch.Lock()
		times--
		again := times >= 0
		w.watch.Unlock()
		if again {
			w.bump(run)
		}
		return nil
	}
}

func (w *world) reach(r *Runner, name string) core.StepEnd {
	w.t.Helper()
	jobs := w.take(name)
	if len(jobs) != 1 {
		w.t.Fatalf("%d jobs are due, want 1", len(jobs))
	}
	end, ok, err := r.Attempt(context.Background(), jobs[0])
	if !ok || err != nil {
		w.t.Fatalf("Attempt = %v, %v", ok, err)
	}
	return end
}

// However many times other processes move the run first, an end is stored once in the end,
// and its step is called once.
func TestSettleAmongOthers(t *testing.T) {
	for _, times := range []int{1, 3, 200} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, line(1))
			run := w.start("line", `{}`)
			r := w.runner()
			end := w.reach(r, "line")
			w.first(run, times)
			settled, err := r.Settle(context.Background(), end)
			if err != nil || settled[0] != (core.StepSettled{Status: core.Completed}) {
				t.Errorf("%d times: Settle = %+v, %v, want it completed", times, settled, err)
			}
			if n := len(w.entriesOf(run, core.EntrySucceeded)); n != 1 || len(w.requests) != 1 || w.read(run).Status != core.RunCompleted {
				t.Errorf("%d times: %d ends of the step and %d calls, want one each", times, n, len(w.requests))
			}
		})
	}
}

// A run that other processes keep moving does not begin at once; its job is released.
func TestBeginAmongOthers(t *testing.T) {
	for times, want := range map[int]bool{1: true, 70: true, 1000: false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, line(1))
			w.first(w.start("line", `{}`), times)
			_, ok, err := w.runner().Attempt(context.Background(), w.take("line")[0])
			if ok != want || (err == nil) != want {
				t.Errorf("%d times: Attempt = %v, %v, want %v", times, ok, err, want)
			}
		})
	}
}

// Two processes work on one run with many branches, and both move it all the time.
func TestTwoProcessesOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, everything)
		w.returning()
		w.before = func(string) error { time.Sleep(3 * time.Millisecond); return nil } // so that they conflict
		run := w.start("everything", order)
		ctx, stop := context.WithCancel(context.Background())
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { _, _ = w.worker(w.runner(), 2).Tick(ctx, core.Budget{Rest: time.Second}) })
		}
		time.Sleep(10 * time.Minute)
		stop()
		all.Wait()
		w.check(t, "three processes", w.read(run))
		if len(w.requests) != 12 {
			t.Errorf("%d requests, want 12", len(w.requests))
		}
	})
}

// If the answer of the store is lost, the second try gets it. If the transition was not
// stored, the second try stores it.
func TestSettleWhileTheStoreIsAway(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, line(2))
			w.start("line", `{}`)
			r := w.runner()
			end := w.reach(r, "line")
			since := time.Now()
			away := func(string) error {
				if time.Since(since) < time.Minute {
					return errAway
				}
				return nil
			}
			if late {
				w.after = away
			} else {
				w.before = away
			}
			settled, err := r.Settle(context.Background(), end)
			want := core.StepSettled{Status: core.Completed}
			if err != nil || settled[0].Lost || settled[0].Status != want.Status || settled[0].Next.IsZero() {
				t.Errorf("late %v: Settle = %+v, %v, want it completed and the next step due", late, settled, err)
			}
			if facts := factsOf[core.Troubled](w); len(facts) < 10 || len(facts) > 60 {
				t.Errorf("late %v: reported trouble %d times in a minute", late, len(facts))
			}
			if facts := factsOf[core.StepMoved](w); len(facts) != 1 {
				t.Errorf("late %v: reported %d steps, want 1", late, len(facts))
			}
		})
	}
}

// Settle ends with its context, and then returns no results.
func TestSettleEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, line(1))
		w.start("line", `{}`)
		r := w.runner()
		end := w.reach(r, "line")
		w.before = func(string) error { return errAway }
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		began := time.Now()
		if settled, err := r.Settle(ctx, end); err == nil || settled != nil || time.Since(began) != 10*time.Second {
			t.Errorf("Settle = %v, %v after %v, want an error after 10 s", settled, err, time.Since(began))
		}
		if settled, err := r.Settle(context.Background()); err != nil || len(settled) != 0 {
			t.Errorf("Settle of nothing = %v, %v", settled, err)
		}
	})
}

// A run that the store refuses does not hold up other runs. Its ends count as lost.
func TestRunThatTheStoreRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, line(1))
		poison := w.start("line", `{}`)
		for range 3 {
			w.start("line", `{}`)
		}
		r := w.runner()
		var ends []core.StepEnd
		for _, job := range w.take("line") {
			end, _, err := r.Attempt(context.Background(), job)
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		w.refuse = func(t core.Transition) error {
			if t.Run.ID == poison {
				return errDefect
			}
			return nil
		}
		settled, err := r.Settle(context.Background(), ends...)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range ends {
			if lost := e.Job.Situation.Run.ID == poison; settled[i].Lost != lost {
				t.Errorf("end %d: lost %v, want %v", i, settled[i].Lost, lost)
			}
		}
		if facts := factsOf[core.Troubled](w); len(facts) != 1 || !errors.Is(facts[0].Err, errDefect) {
			t.Errorf("reported %v, want what the store refused", facts)
		}
	})
}

// Ends of steps that do not exist any more, or were answered, are lost. Ends beside them
// are not.
func TestLostEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, line(1))
		for range 3 {
			w.start("line", `{}`)
		}
		r := w.runner()
		var ends []core.StepEnd
		for _, job := range w.take("line") {
			end, _, err := r.Attempt(context.Background(), job)
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		if _, err := r.Cancel(context.Background(), ends[0].Job.Situation.Run.ID); err != nil {
			t.Fatal(err)
		}
		gone := ends[1].Job.Situation
		delete(w.steps, gone.Step.ID)
		w.runs[gone.Run.ID] = core.Run{}
		w.marks[gone.Run.ID] = append(w.marks[gone.Run.ID], "x")
		settled, err := r.Settle(context.Background(), ends...)
		want := []core.StepSettled{{Status: core.Completed}, {Lost: true, Why: "it is not stored; the step is tried again"}, {Status: core.Completed}}
		if diff := cmp.Diff(want, settled); err != nil || diff != "" {
			t.Errorf("Settle: %v (-want +got):\n%s", err, diff)
		}
	})
}

// No batch is larger than databases accept.
func TestBatches(t *testing.T) {
	of := func(kib int) *turn {
		return &turn{open: true, move: workflow.Move{Transition: core.Transition{New: []core.Step{{State: make([]byte, kib<<10)}}}}}
	}
	turns := []*turn{of(100), of(700), of(900), of(3000), of(1), {}, of(1)}
	var sizes []int
	for batch := range batches(turns) {
		sizes = append(sizes, len(batch))
	}
	if diff := cmp.Diff([]int{2, 1, 1, 2}, sizes); diff != "" {
		t.Errorf("turns stored at once (-want +got):\n%s", diff)
	}
	for range batches(turns) {
		break
	}
}

func TestRedrive(t *testing.T) {
	for _, fromFailed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, line(3))
			down := true
			w.answer = func(_ context.Context, r workflow.Request, _ core.TakenJob) Answer {
				if down && strings.HasSuffix(r.URL, "/1") {
					return Answer{StatusCode: 500, Error: "status: 500"}
				}
				return Answer{StatusCode: 200}
			}
			id := w.start("line", `{}`)
			if r := w.finish(id); r.Status != core.RunFailed {
				t.Fatalf("run is %s", r.Status)
			}
			heard, r := w.bell.Listen("workflow/line"), w.runner()
			w.first(id, 3)
			got, err := r.Redrive(context.Background(), id, fromFailed, core.Definition{})
			if err != nil || got.Status != core.RunPending || got.Epoch != 2 || got.Seq != w.read(id).Seq {
				t.Errorf("Redrive = %+v, %v, want a pending run in its second epoch", got, err)
			}
			if rung := heard.Rung(); len(rung) != 1 {
				t.Errorf("rung: %v, want the lane", rung)
			}
			if _, err := r.Redrive(context.Background(), id, fromFailed, core.Definition{}); !core.IsKind(err, core.Invalid) ||
				!strings.Contains(err.Error(), string(id)+" is pending") {
				t.Errorf("second Redrive = %v, want that it is pending", err)
			}
			down = false
			if r := w.finish(id); r.Status != core.RunCompleted {
				t.Errorf("run is %s: %s", r.Status, r.Error)
			}
			want := map[string]int{"1.s00": 1, "1.s01": 1, "2.s00": 1, "2.s01": 1, "2.s02": 1}
			if fromFailed {
				delete(want, "2.s00")
				delete(want, "2.s01")
				want["1.s01"] = 2 // under the same key
			}
			if diff := cmp.Diff(want, w.keys()); diff != "" {
				t.Errorf("from failed %v: calls (-want +got):\n%s", fromFailed, diff)
			}
			if left := w.left(id); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, everything)
		w.answering(func(string) {})
		id := w.start("everything", order)
		r := w.runner()
		w.tick()
		time.Sleep(time.Minute)
		w.tick() // it waits for a callback now
		w.first(id, 3)
		got, err := r.Cancel(context.Background(), id)
		if err != nil || got.Status != core.RunCanceled || got.Error != "canceled" {
			t.Errorf("Cancel = %+v, %v, want a canceled run", got, err)
		}
		if left := w.left(id); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		if _, err := r.Cancel(context.Background(), id); !core.IsKind(err, core.Invalid) || !strings.Contains(err.Error(), "is canceled") {
			t.Errorf("second Cancel = %v, want that it is canceled", err)
		}
		if _, err := r.Cancel(context.Background(), "01ARZ3NDEKTSV4RRFFQ69G5FAV"); !core.IsKind(err, core.NotFound) {
			t.Errorf("Cancel of nothing = %v, want that it is not found", err)
		}
	})
}

// A reply that is too large for the database fails its step, and the call is not repeated.
func TestReplyWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, line(2))
		large, fine := w.start("line", `{}`), w.start("line", `{}`)
		r := w.runner()
		var ends []core.StepEnd
		for _, job := range w.take("line") {
			end, ok, err := r.Attempt(t.Context(), job)
			if !ok || err != nil {
				t.Fatalf("Attempt = %v, %v", ok, err)
			}
			end.Kind, end.Body = core.Replied, []byte(`"large"`)
			ends = append(ends, end)
		}
		w.refuse = func(t core.Transition) error {
			if t.Run.ID == large && slices.ContainsFunc(t.New, func(s core.Step) bool { return string(s.State) == `"large"` }) {
				return core.Refuse(core.TooLarge, "event too large for the database")
			}
			return nil
		}
		if _, err := r.Settle(t.Context(), ends...); err != nil {
			t.Fatal(err)
		}
		w.refuse = nil
		if run := w.read(large); run.Status != core.RunFailed || !strings.Contains(run.Error, "too large for the database") {
			t.Errorf("run with the large reply: %s, %q, want it failed", run.Status, run.Error)
		}
		if run := w.read(fine); run.Status != core.RunRunning {
			t.Errorf("the other run is %s, want running", run.Status)
		}
	})
}

// A pending run is canceled with its event, however many times other processes move it first. A
// run of which a worker has begun a step is left alone.
func TestCancelPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, line(1))
		pending, running := w.start("line", `{}`), core.ID("")
		w.first(pending, 3)
		run, err := w.runner().CancelPending(t.Context(), pending)
		if err != nil || run.Status != core.RunCanceled || w.read(pending).Status != core.RunCanceled {
			t.Errorf("CancelPending of a pending run = %s, %v, want it canceled", run.Status, err)
		}
		if jobs := w.take("line"); len(jobs) != 0 {
			t.Errorf("%d jobs of the canceled run are due, want none", len(jobs))
		}
		running = w.start("line", `{}`)
		w.reach(w.runner(), "line")
		for _, id := range []core.ID{pending, running} {
			was := w.read(id).Status
			if _, err := w.runner().CancelPending(t.Context(), id); !core.IsKind(err, core.Invalid) || !strings.Contains(err.Error(), string(was)) {
				t.Errorf("CancelPending of a run that is %s = %v, want a refusal that says so", was, err)
			}
			if now := w.read(id).Status; now != was {
				t.Errorf("the run that was %s is %s now", was, now)
			}
		}
		if len(w.requests) != 1 {
			t.Errorf("%d calls were made, want the one of the running run", len(w.requests))
		}
	})
}
