package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of the changes that a slice of an operation makes to jobs and events.

// canceledJob stores a job and cancels it.
func (r *rig) canceledJob() core.Job {
	r.Helper()
	j := r.put()
	r.cancel(j.EventID)
	return r.job(j.ID)
}

// revivedBy returns a job as a retry stores it.
func (r *rig) revivedBy(j core.Job) core.Job {
	j.MaxAttempts += j.Attempt - j.Earlier
	j.Status, j.Earlier, j.DueAt, j.FinishedAt = core.Available, j.Attempt, r.now, time.Time{}
	return j
}

func sliceRetries(r *rig) {
	dead, canceled, other := r.settled(core.Dead), r.canceledJob(), r.settled(core.Dead)
	op := r.begun(core.RetryAction)
	r.now = r.now.Add(time.Second)
	r.do(r.slice(op, canceled, dead))
	r.wantJob(r.revivedBy(dead))
	r.wantJob(r.revivedBy(canceled))
	r.wantJob(other)
	r.equal("Take", len(r.take(2)), 2)
	r.nothingDue()
}

func sliceCancels(r *rig) {
	backoff, waiting, other := r.settled(core.Retryable), r.put(), r.put()
	lapsed := r.takeOnly(waiting.ID, r.quota(1)).Job
	r.now = r.now.Add(leaseTime)
	op := r.begun(core.CancelAction)
	r.do(r.slice(op, backoff, lapsed))
	r.wantJob(r.canceled(lapsed))
	r.wantJob(r.canceled(backoff))
	r.wantJob(other)
	r.takeOnly(other.ID, r.quota(5))
	r.equal("lost", r.lost(r.ended(lapsed, core.Completed)), []core.ID{lapsed.ID})
}

// The job that stops its line goes on with its slot. A job that died without stopping its line
// enters it at the end.
func sliceRetriesLined(r *rig) {
	some := r.putLined("x", 1, 2)
	r.endLined(r.takeLined(1, some[0])[0], core.Dead, 1)
	r.takeLined(1)
	free := r.putLined("y", 1, 2)
	o := r.ended(r.takeLined(1, free[0])[0].Job, core.Dead)
	o.Lane, o.Line = r.lane, core.Line{Key: "y", Limit: 1}
	r.settle(o)
	r.wantStatus(core.Waiting, some[1])
	r.wantStatus(core.Available, free[1])
	op := r.begun(core.RetryAction)
	r.equal("acted", r.do(r.slice(op, r.stateOf(free[0], some[0])...)).Acted, 2)
	r.wantStatus(core.Available, some[0])
	r.wantStatus(core.Waiting, some[1])
	r.wantStatus(core.Waiting, free[0])
	for _, l := range r.linesOf(r.lane).Items {
		r.equal("stopped "+l.Key, l.StoppedAt, time.Time{})
	}
	for _, j := range r.takeLined(1, some[0], free[1]) {
		r.endLined(j, core.Completed, 1)
	}
	r.takeLined(1, some[1], free[0])
}

// The slots of canceled jobs go to the next jobs that are left.
func sliceCancelsLined(r *rig) {
	some := r.putLined("x", 1, 4)
	op := r.begun(core.CancelAction)
	r.equal("acted", r.do(r.slice(op, r.stateOf(some[0], some[2])...)).Acted, 2)
	r.wantStatus(core.Canceled, some[0], some[2])
	r.endLined(r.takeLined(1, some[1])[0], core.Completed, 1)
	r.takeLined(1, some[3])
}

// Canceled jobs that were sent again in the same slice change no line.
func sliceTwiceLined(r *rig) {
	for _, action := range []core.Action{core.RetryAction, core.CancelAction} {
		key := "line-" + string(action)
		some := r.putLined(key, 1, 3)
		if action == core.RetryAction {
			r.endLined(r.takeLined(1, some[0])[0], core.Dead, 1)
			r.cancel(r.job(some[1]).EventID)
		}
		op := r.begun(action)
		s := r.slice(op, r.stateOf(some[:2]...)...)
		after := r.do(s)
		r.equal("acted", after.Acted, 2)
		if action == core.RetryAction {
			r.endLined(r.takeLined(1, some[0])[0], core.Dead, 1)
		} else {
			r.retry(some[0], "")
		}
		before, lines := r.stateOf(some...), r.linesOf(r.lane)
		r.now = r.now.Add(time.Second)
		r.equal("DoSlice again", r.do(s), after)
		r.equal("jobs", r.stateOf(some...), before)
		r.equal("lines", r.linesOf(r.lane), lines)
	}
}

func sliceForgetsStrays(r *rig) {
	dead := r.settled(core.Dead)
	r.put()
	since := r.strays()[r.lane]
	r.now = r.now.Add(time.Hour)
	r.do(r.slice(r.begun(core.RetryAction), dead))
	if now := r.strays()[r.lane]; !now.Equal(r.now) || now.Equal(since) {
		r.Errorf("the lane is a stray since %v, want since the slice at %v", now, r.now)
	}
}

// A slice acts only on jobs whose status still permits it, also if it read them before they
// changed.
func sliceStatus(r *rig) {
	dead, gone := r.settled(core.Dead), r.settled(core.Dead)
	r.retry(gone.ID, "")
	gone = r.job(gone.ID)
	r.equal("acted by a retry", r.do(r.slice(r.begun(core.RetryAction), dead, gone)).Acted, 1)
	r.wantJob(gone)
	r.wantJob(r.revivedBy(dead))
	for _, j := range r.take(2) {
		r.settle(r.ended(j.Job, core.Completed))
	}

	busy, done, waits := r.taken().Job, r.settled(core.Completed), r.put()
	r.equal("acted by a cancel", r.do(r.slice(r.begun(core.CancelAction), busy, done, waits)).Acted, 1)
	r.wantJob(busy)
	r.wantJob(done)
	r.wantJob(r.canceled(waits))
}

func sliceSteps(r *rig) {
	s := r.newRun()
	step := r.job(s.Step.ID)
	op, a := r.newOperation(core.CancelAction)
	r.begin(op, a)
	own := r.job(a.Jobs[0].ID)
	r.equal("acted", r.do(r.slice(op, step, own)).Acted, 0)
	r.wantJob(step)
	r.wantJob(own)
}

func sliceReplays(r *rig) {
	done, gone := r.settled(core.Completed), r.replayOf(r.ids.Next(), []core.Lane{r.lane})
	a := r.replayOf(done.EventID, []core.Lane{r.lane, "queue/mail"})
	a.Jobs[0].Key = "k"
	op := r.begun(core.ReplayAction)
	r.now = r.now.Add(time.Hour)
	s := r.slice(op)
	s.Arrivals = []core.Arrival{gone, a}
	r.equal("acted", r.do(s).Acted, 1)
	a.Jobs[0].Key = ""
	for _, j := range r.replayed(a) {
		r.wantJob(j)
	}
	r.wantJob(done)
	r.wantAbsent(gone)
	r.takeOnly(a.Jobs[0].ID, r.quota(5))
}

// A slice with an event that was purged since it was read moves the cursor behind it. Otherwise the
// other events of the slice would be read and replayed again.
func sliceOfPurged(r *rig) {
	purged, stored := r.replayOf(r.ids.Next(), []core.Lane{r.lane}), r.replayOf(r.settled(core.Completed).EventID, []core.Lane{r.lane})
	s := r.slice(r.begun(core.ReplayAction))
	s.Arrivals, s.Cursor, s.Looked = []core.Arrival{purged, stored}, "behind both", 2
	moved := r.do(s)
	r.equal("acted", moved.Acted, 1)
	r.equal("cursor", moved.Cursor, "behind both")
	r.equal("looked", moved.Looked, 2)
	r.wantAbsent(purged)
}

func sliceReplaysAll(r *rig) {
	event := r.put().EventID
	r.take(1)
	a := r.replayOf(event, []core.Lane{r.lane, r.lane, r.lane}, "never seen")
	plain := len(a.Jobs) - 3
	a.Jobs[plain].DueAt = r.now.Add(time.Hour)
	a.Jobs[plain+1].Line, a.Jobs[plain+2].Line = core.Line{Key: "x", Limit: 1}, core.Line{Key: "x", Limit: 1}
	s := r.slice(r.begun(core.ReplayAction))
	s.Arrivals = []core.Arrival{a}
	r.equal("acted", r.do(s).Acted, 1)
	r.wantStatus(core.Scheduled, a.Jobs[plain].ID)
	r.wantStatus(core.Available, a.Jobs[plain+1].ID)
	r.wantStatus(core.Waiting, a.Jobs[plain+2].ID)
	a.Event.CreatedAt = r.now
	for _, p := range pending(a) {
		r.equal("rows of a new run", r.runView(p.Run.ID), runView{Run: p.Run, Steps: []core.Step{p.Step}})
	}
}

// The second of two slices has other ids for the same jobs, as a second worker would make them.
func sliceTwiceReplay(r *rig) {
	event := r.put().EventID
	op := r.begun(core.ReplayAction)
	var slices []core.Slice
	for range 2 {
		s := r.slice(op)
		a := r.replayOf(event, []core.Lane{r.lane, "queue/mail", r.lane}, defaultWorkflow)
		a.Jobs[len(a.Jobs)-1].Line = core.Line{Key: "x", Limit: 1}
		s.Arrivals = []core.Arrival{a}
		slices = append(slices, s)
	}
	after := r.do(slices[0])
	jobs, runs := r.jobs(core.JobFilter{EventID: event}), r.runs(core.RunFilter{EventID: event})
	for _, s := range []core.Slice{slices[1], slices[0]} {
		r.equal("DoSlice again", r.do(s), after)
		r.equal("jobs", r.jobs(core.JobFilter{EventID: event}), jobs)
		r.equal("runs", r.runs(core.RunFilter{EventID: event}), runs)
	}
}

// Some matches are no longer there. The others are acted on, and the cursor stays.
func partOfSlice(r *rig) {
	op := r.begun(core.RetryAction)
	dead, other := r.settled(core.Dead), r.put()
	s := r.slice(op, dead, other)
	s.State = core.OperationFinished
	want := op
	want.Seq, want.Acted, want.StartedAt = 1, 1, r.now
	got := r.do(s)
	r.equal("DoSlice", got, want)
	s = r.slice(got)
	s.State = core.OperationFinished
	r.equal("state of the next slice", r.do(s).State, core.OperationFinished)
}

func walkFinished(r *rig) {
	var want []core.ID
	var bounds []core.Job
	for _, lane := range []core.Lane{"handler/a", "handler/b", "queue/c"} {
		r.lane = lane
		for range 3 {
			bounds = append(bounds, r.settled(core.Dead))
			r.settled(core.Completed)
			r.canceledJob()
			r.now = r.now.Add(time.Second)
		}
		r.put()
	}
	want = ids(bounds)
	r.equal("walk", ids(r.walk(core.FinishedWalk{Status: core.Dead})), want)
	r.equal("fields", r.walk(core.FinishedWalk{Status: core.Dead}), bounds)
	r.equal("walk from a lane", ids(r.walk(core.FinishedWalk{Status: core.Dead, Lane: "handler/b"})), want[3:])
	r.equal("walk in a lane", ids(r.walk(core.FinishedWalk{Status: core.Dead, Lane: "handler/b", Only: true})), want[3:6])
	r.equal("walk after a job", ids(r.walk(core.FinishedWalk{Status: core.Dead, Lane: "handler/b", After: want[3]})), want[4:])
	r.equal("walk between ids", ids(r.walk(core.FinishedWalk{Status: core.Dead, From: want[1], Below: want[4]})), want[1:4])
	r.equal("number of canceled jobs", len(r.walk(core.FinishedWalk{Status: core.Canceled})), 9)
	r.equal("walk in another lane", len(r.walk(core.FinishedWalk{Status: core.Dead, Lane: "handler/none", Only: true})), 0)
}

func walkPages(r *rig) {
	var want []core.ID
	for _, lane := range []core.Lane{"handler/a", "handler/b"} {
		r.lane = lane
		for range 3 {
			want = append(want, r.canceledJob().ID)
		}
	}
	var got []core.ID
	w := core.FinishedWalk{Status: core.Canceled, Limit: 2}
	for {
		page := r.walk(w)
		got = append(got, ids(page)...)
		if len(page) < w.Limit {
			break
		}
		w.Lane, w.After = page[1].Lane, page[1].ID
	}
	r.equal("pages", got, want)
}

func walkSteps(r *rig) {
	run, _ := r.failedRun()
	r.wantRunStatus(run.ID, core.RunFailed)
	j := r.settled(core.Dead)
	r.equal("walk", ids(r.walk(core.FinishedWalk{Status: core.Dead})), []core.ID{j.ID})
}

func (r *rig) wantRunStatus(id core.ID, s core.RunStatus) {
	r.Helper()
	r.equal("status of the run", r.run(id).Status, s)
}

func (r *rig) kinds(events ...core.ID) map[core.ID]core.EventKind {
	r.Helper()
	got, err := r.store.KindsOf(context.Background(), events)
	if err != nil {
		r.Fatalf("KindsOf failed: %v", err)
	}
	return got
}

func kindsOf(r *rig) {
	a, b := r.arrival(), r.arrival()
	b.Event.Source, b.Event.Type = "other", "invoice.paid"
	r.accepted(a)
	r.accepted(b)
	r.equal("KindsOf", r.kinds(a.Event.ID, b.Event.ID, a.Event.ID), map[core.ID]core.EventKind{
		a.Event.ID: {Source: "shop", Type: "order.created"}, b.Event.ID: {Source: "other", Type: "invoice.paid"},
	})
}

func kindsOfNone(r *rig) {
	r.equal("KindsOf no event", len(r.kinds()), 0)
	known := r.put().EventID
	r.equal("number of KindsOf", len(r.kinds(known, r.ids.Next())), 1)
}

func purgeOperations(r *rig) {
	running, done := r.begun(core.RetryAction), r.begun(core.RetryAction)
	done = r.endOperation(done.ID, "")
	purge := func(before time.Time) {
		if err := r.store.PurgeOperations(context.Background(), before); err != nil {
			r.Fatalf("PurgeOperations failed: %v", err)
		}
	}
	purge(r.now)
	r.equal("Operation that ended now", r.operation(done.ID), done)
	purge(r.now.Add(time.Millisecond))
	if _, err := r.store.Operation(context.Background(), done.ID); !core.IsKind(err, core.NotFound) {
		r.Errorf("Operation after PurgeOperations: %v, want a refusal of kind NotFound", err)
	}
	r.equal("running operation", r.operation(running.ID), running)
}

// Several workers make the same slices, each with marks of its own. Each revived job is revived
// once, although it dies again at once.
func raceSlices(r *rig) {
	n := r.scaled(24)
	var jobs []core.Job
	for range n {
		jobs = append(jobs, r.settled(core.Dead))
	}
	op := r.begun(core.RetryAction)
	r.concurrently(4, func(int) error {
		for {
			now, err := r.store.Operation(context.Background(), op.ID)
			if err != nil || now.Cursor == fmt.Sprint(n) {
				return err
			}
			at := 0
			fmt.Sscan(now.Cursor, &at)
			s := core.Slice{Operation: now, Mark: r.ids.Next(), Jobs: jobs[at : at+2], Cursor: fmt.Sprint(at + 2), Looked: 2, State: core.OperationRunning}
			if _, err := r.store.DoSlice(context.Background(), r.now, s); err != nil {
				return err
			}
			taken, err := r.store.Take(context.Background(), r.now, []core.Quota{r.quota(2)})
			if err != nil {
				return err
			}
			for _, j := range taken {
				if _, err := r.store.Settle(context.Background(), r.ended(j.Job, core.Dead)); err != nil {
					return err
				}
			}
		}
	})
	r.equal("acted", r.operation(op.ID).Acted, n)
	for _, j := range jobs {
		got := r.job(j.ID)
		r.equal("attempts before the retry", got.Earlier, j.Attempt)
	}
}

// Workers take and settle jobs, and a slice cancels them, all at the same time. The locks of both
// never wait for each other, and each job is either done or canceled.
func raceSliceTake(r *rig) {
	n := r.scaled(40)
	var jobs []core.Job
	for range n {
		jobs = append(jobs, r.accepted(r.arrival(raceLanes...))...)
	}
	for i := range r.scaled(12) {
		for _, id := range r.putLined(fmt.Sprintf("k%d", i), 1, 2) {
			jobs = append(jobs, r.job(id))
		}
	}
	op := r.begun(core.CancelAction)
	var completed atomic.Int64
	r.concurrently(4, func(i int) error {
		if i > 0 {
			for range 200 {
				taken, err := r.store.Take(context.Background(), r.now, append(slices.Clone(raceQuotas), core.Quota{Lane: r.lane, N: 2, Hold: leaseTime, Lines: 1}))
				if err != nil || len(taken) == 0 {
					return err
				}
				for _, j := range taken {
					o := r.ended(j.Job, core.Completed)
					if j.Line != "" {
						o.Lane, o.Line = j.Lane, core.Line{Key: j.Line, Limit: 1}
					}
					if _, err := r.store.Settle(context.Background(), o); err != nil {
						return err
					}
					completed.Add(1)
				}
			}
			return nil
		}
		now := op
		for some := range slices.Chunk(jobs, 20) {
			var err error
			if now, err = r.store.DoSlice(context.Background(), r.now, r.slice(now, some...)); err != nil {
				return err
			}
		}
		return nil
	})
	for _, q := range append(slices.Clone(raceQuotas), core.Quota{Lane: r.lane, N: 50, Hold: leaseTime, Lines: 1}) { // the jobs that the takers left
		for _, j := range r.takeQuotas(q) {
			o := r.ended(j.Job, core.Completed)
			if j.Line != "" {
				o.Lane, o.Line = j.Lane, core.Line{Key: j.Line, Limit: 1}
			}
			r.settle(o)
			completed.Add(1)
		}
	}
	canceled := 0
	for _, j := range jobs {
		if r.job(j.ID).Status == core.Canceled {
			canceled++
		}
	}
	r.equal("acted", r.operation(op.ID).Acted, canceled)
	if got := int(completed.Load()) + canceled; got > len(jobs) {
		r.Errorf("%d jobs were completed or canceled, of %d", got, len(jobs))
	}
}
