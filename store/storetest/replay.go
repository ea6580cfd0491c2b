package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of Replay and Turn. Operators replay stored events to new or repaired consumers, in
// batches that may be repeated. Turns let one of several processes do a duty such as a purge. A
// failure means that consumers get an event twice or not at all, or that a duty is done by all
// processes or by none.

const (
	saysReplay      = "Replay stores new jobs and runs for events that are stored already, and returns the number of jobs, including the jobs of runs"
	saysReplayNow   = "Of each arrival's event it reads only the id, and the arrival's jobs and runs are due now"
	saysReplayKeys  = "No job has a key"
	saysReplayNone  = "An event that is not stored gets no jobs"
	saysReplayTwice = "Replaying the same arrivals again stores nothing and returns the same"
	saysTurn        = "Turn asks for the turn to do the duty with this name: exactly one caller, in any process, gets true, and every other caller gets false until hold has passed"
	saysTurnBack    = "A stored turn that ends more than TurnHorizon later than a turn that begins now was taken before the clock was set back, and is over"
)

// operations holds the checks of the Upkeep methods for operators and for periodic duties.
// scenarioreplay.go has the checks at particular moments.
var operations = role{name: "Operations", checks: []check{
	{saysReplay, "", replayJobs},
	{saysReplay, "runs", replayRuns},
	{saysReplay, "several times", replayAgain},
	{saysReplay, "found with the first jobs of the event", replayFound},
	{saysReplay, "while events are purged", raceReplay},
	{saysReplayNow, "", replayNow},
	{saysReplayKeys, "", replayKeys},
	{saysReplayNone, "", replayNone},
	{saysReplayTwice, "", replayTwice},
	{saysReplayTwice, "concurrently", replayTogether},
	{saysTurn, "", turns},
	{saysTurn, "each name by itself", turnNames},
	{saysTurn, "concurrent callers", raceTurns},
	{saysTurnBack, "", turnBack},
}}

// replay replays arrivals at the rig's time, and returns the number of their jobs.
func (r *rig) replay(arrivals ...core.Arrival) int {
	r.Helper()
	n, err := r.store.Replay(r.asked(), r.now, arrivals...)
	if err != nil {
		r.Fatalf("Replay of %d failed: %v", len(arrivals), err)
	}
	return n
}

// turn asks for the turn of a duty at the rig's time.
func (r *rig) turn(name string, hold time.Duration) bool {
	r.Helper()
	granted, err := r.store.Turn(context.Background(), r.now, name, hold)
	if err != nil {
		r.Fatalf("Turn(%s) failed: %v", name, err)
	}
	return granted
}

// replayOf returns an arrival that gives a stored event new jobs in lanes and new runs of
// workflows.
func (r *rig) replayOf(event core.ID, lanes []core.Lane, workflows ...string) core.Arrival {
	a := r.runArrival(workflows...)
	a.Event = core.Event{ID: event}
	a.Jobs = append(a.Jobs, r.arrival(lanes...).Jobs...)
	return a
}

// replayed returns the jobs of an arrival without runs as Replay stores them now.
func (r *rig) replayed(a core.Arrival) (jobs []core.Job) {
	for _, n := range a.Jobs {
		jobs = append(jobs, stored(a.Event.ID, r.now, n))
	}
	return jobs
}

// Two events get new jobs that are due now. The events and the jobs that they had stay as they
// were.
func replayJobs(r *rig) {
	done, bare := r.settled(core.Completed), r.arrival()
	r.accepted(bare)
	event := r.storedEvent(done.EventID)
	r.now = r.now.Add(time.Hour)
	first := r.replayOf(done.EventID, []core.Lane{r.lane, "queue/mail"})
	second := r.replayOf(bare.Event.ID, []core.Lane{r.lane})
	delayed := r.replayOf(bare.Event.ID, []core.Lane{r.lane})
	delayed.Jobs[0].DueAt = r.now.Add(time.Millisecond)
	r.equal("Replay", r.replay(second, first, delayed), 4)
	for _, j := range slices.Concat(r.replayed(first), r.replayed(second), r.replayed(delayed)) {
		r.wantJob(j)
	}
	r.wantJob(done)
	r.equal("event after Replay", r.storedEvent(done.EventID), event)
	r.equal("Take", ids(r.takeQuotas(r.quota(9))), []core.ID{first.Jobs[0].ID, second.Jobs[0].ID})
	r.equal("Replay of nothing", r.replay(), 0)
	r.equal("Replay without jobs", r.replay(r.replayOf(bare.Event.ID, nil)), 0)
}

// Runs are started again from a stored event, also of a workflow that the store has never seen. An
// earlier run of the event stays.
func replayRuns(r *rig) {
	run, _ := r.failedRun()
	before := r.runView(run.ID)
	r.now = r.now.Add(time.Hour)
	a := r.replayOf(run.EventID, []core.Lane{r.lane}, defaultWorkflow, "never seen")
	r.equal("Replay", r.replay(a), 3)
	a.Event.CreatedAt = r.now
	for _, s := range pending(a) {
		r.equal("rows of a new run", r.runView(s.Run.ID), runView{Run: s.Run, Steps: []core.Step{s.Step}})
	}
	r.wantDefinition(definition("never seen"))
	r.equal("rows of the earlier run", r.runView(run.ID), before)
	r.equal("Take: situation", r.takeOnly(a.Runs[0].StepID, r.runQuota(9)).Situation, pending(a)[0])
	r.equal("runs of the event", len(r.runs(core.RunFilter{EventID: run.EventID}).Items), 3)
}

// Each replay makes a new job, since an operator may replay an event as often as needed.
func replayAgain(r *rig) {
	j := r.put()
	for i := range 3 {
		r.equal("Replay", r.replay(r.replayOf(j.EventID, []core.Lane{r.lane})), 1)
		r.equal("jobs of the event", len(r.jobs(core.JobFilter{EventID: j.EventID}).Items), i+2)
	}
	r.take(4)
}

// The ids of the jobs with which an event is stored are of the event's block, and those of replayed jobs
// are not. Both are found as the jobs of the event: in pages, by lane and status, by JobsOf, by Cancel,
// for the answer to a repeated delivery, and by a purge, which keeps an event as long as it has a job.
func replayFound(r *rig) {
	mail := core.Lane("queue/mail")
	a := r.arrival(r.lane, mail, "queue/paper")
	a.Event.DeliveryID = "once"
	event := a.Event.ID
	first := r.accepted(a)
	beside := r.put() // of another event
	taken := r.takeOnly(first[0].ID, r.quota(1)).Job
	r.settle(r.ended(taken, core.Completed))
	again := r.replayOf(event, []core.Lane{r.lane, mail})
	r.equal("Replay", r.replay(again), 2)
	later := r.replayed(again)
	r.wantJob(later[0])

	all := []core.Job{later[1], later[0], first[2], first[1], first[0]}
	r.wantJobPages(core.JobFilter{EventID: event}, all)
	r.wantJobPages(core.JobFilter{EventID: event, Lane: mail}, []core.Job{later[1], first[1]})
	r.wantJobPages(core.JobFilter{EventID: event, Status: core.Available}, all[:4])
	r.wantJobPages(core.JobFilter{EventID: event, Lane: r.lane, Status: core.Completed}, all[4:])
	r.equal("JobsOf", ids(r.jobsOf(event, beside.EventID)[event]), ids(newest(all)))
	repeat := r.arrival(r.lane)
	repeat.Event.DeliveryID = "once"
	r.equal("Accept of the delivery", r.accept(repeat), core.Receipt{EventID: event, Duplicate: true})

	r.now = r.now.Add(time.Second)
	r.equal("Cancel", r.cancel(event), core.Cancellation{Canceled: 4, Finished: 1})
	for _, j := range []core.Job{first[1], first[2], later[0], later[1]} {
		r.wantJob(r.canceled(j))
	}
	r.wantJob(beside)
	r.equal("Purge of the completed job", r.purge(10), 1)
	r.storedEvent(event)

	last := r.replayOf(event, []core.Lane{mail})
	r.equal("Replay", r.replay(last), 1)
	r.now = r.now.Add(time.Second)
	r.equal("Purge of all jobs but one", r.purge(10), 4)
	r.wantJobPages(core.JobFilter{EventID: event}, r.replayed(last)[:1])
	r.storedEvent(event)
	r.cancel(event)
	r.now = r.now.Add(time.Millisecond)
	r.equal("Purge of the last job", r.purge(10), 2)
	r.wantNoEvent(event)
}

// raceReplay replays events while they are purged. Each event is either deleted and has no jobs,
// or stored with all its jobs.
func raceReplay(r *rig) {
	var arrivals []core.Arrival
	for range r.scaled(40) {
		a := r.arrival()
		r.accepted(a)
		arrivals = append(arrivals, r.replayOf(a.Event.ID, []core.Lane{r.lane, "queue/b"}, defaultWorkflow))
	}
	r.now = r.now.Add(time.Second)
	stored := make([]int, len(arrivals))
	r.concurrently(3, func(i int) error {
		if i == 0 {
			for n, a := range newest(arrivals) {
				var err error
				if stored[len(arrivals)-1-n], err = r.store.Replay(context.Background(), r.now, a); err != nil {
					return err
				}
			}
			return nil
		}
		for n := 1; n > 0; {
			var err error
			if n, _, err = r.store.Purge(context.Background(), r.now, 3); err != nil {
				return err
			}
		}
		return nil
	})
	for i, a := range arrivals {
		jobs := r.jobs(core.JobFilter{EventID: a.Event.ID}).Items
		r.equal("jobs of an event that was replayed", len(jobs), stored[i])
		if stored[i] == 0 {
			r.wantNoEvent(a.Event.ID)
			r.wantNoRun(a.Runs[0].ID, a.Runs[0].StepID)
			continue
		}
		r.equal("jobs of an event that was replayed", stored[i], 3)
		r.storedEvent(a.Event.ID)
	}
}

// The arrival carries wrong values for everything but the event's id. None of them may be stored,
// and the deadline of a run counts from now.
func replayNow(r *rig) {
	j := r.put()
	want := r.storedEvent(j.EventID)
	r.now = r.now.Add(time.Hour)
	a := r.replayOf(j.EventID, []core.Lane{"queue/b"}, defaultWorkflow)
	a.Event = r.event()
	a.Event.ID, a.Event.Source, a.Event.DeliveryID, a.Event.CreatedAt = j.EventID, "another", "d", r.now.Add(leaseTime)
	r.replay(a)
	r.equal("event", r.storedEvent(j.EventID), want)
	r.equal("due time", r.job(a.Jobs[1].ID).DueAt, r.now)
	run := r.run(a.Runs[0].ID)
	r.equal("run: beginning and deadline", []time.Time{run.CreatedAt, run.DeadlineAt}, []time.Time{r.now, r.now.Add(a.Runs[0].Timeout)})
	r.equal("Due", r.due("queue/b"), map[core.Lane]time.Time{"queue/b": r.now})
}

// A key would make the replayed job a duplicate of the first one. It is left out, and the key
// still belongs to the first job.
func replayKeys(r *rig) {
	first := r.keyed("k")
	r.accepted(first)
	again := r.replayOf(first.Event.ID, []core.Lane{r.lane})
	again.Jobs[0].Key = "k"
	r.equal("Replay", r.replay(again), 1)
	r.equal("key of a job that is replayed", r.job(again.Jobs[0].ID).Key, "")
	r.equal("Accept of the key", r.accept(r.keyed("k")), core.Receipt{EventID: first.Event.ID, Duplicate: true})
}

// An event that was purged gets no jobs, since they could never be delivered. A stored event of
// the same call gets its job.
func replayNone(r *rig) {
	j := r.put()
	lost, known := r.replayOf(r.ids.Next(), []core.Lane{r.lane}, defaultWorkflow), r.replayOf(j.EventID, []core.Lane{r.lane})
	want := r.state()
	r.equal("Replay", r.replay(lost), 0)
	r.equal("state after Replay of an unknown event", r.state(), want)
	r.equal("Replay beside a known one", r.replay(lost, known), 1)
	r.wantAbsent(lost)
	r.wantNoRun(lost.Runs[0].ID, lost.Runs[0].StepID)
}

// The client of an operator repeats a call that it got no answer to, also after jobs were
// completed and the run moved on. It gets the first answer again.
func replayTwice(r *rig) {
	one, two := r.put(), r.put()
	r.take(2)
	a, b := r.replayOf(one.EventID, []core.Lane{r.lane, "queue/b"}, defaultWorkflow), r.replayOf(two.EventID, []core.Lane{r.lane})
	r.wantIdempotent("Replay", func() { r.equal("Replay", r.replay(a, b), 4) })
	r.settle(r.ended(r.take(1)[0].Job, core.Completed))
	t := r.fullTransition(r.takeOnly(a.Runs[0].StepID, r.runQuota(1)))
	r.mustTransit(t)
	want := r.state()
	r.equal("Replay once more", r.replay(b, a), 4)
	r.equal("state after Replay once more", r.state(), want)
}

// 16 callers send the same replay. The run must have one first step.
func replayTogether(r *rig) {
	j := r.put()
	for range r.scaled(8) {
		a := r.replayOf(j.EventID, []core.Lane{"queue/b"}, defaultWorkflow)
		r.concurrently(callers, func(int) error {
			n, err := r.store.Replay(context.Background(), r.now, a)
			if err == nil && n != 2 {
				err = fmt.Errorf("Replay = %d, want 2", n)
			}
			return err
		})
		r.equal("steps", len(r.survey(a.Runs[0].ID, 1, core.Wanted{All: true})), 1)
	}
	r.equal("jobs of the event", len(r.jobs(core.JobFilter{EventID: j.EventID}).Items), 1+2*r.scaled(8))
}

// The turn is free again exactly at the end of its hold, also for callers with a shorter hold.
func turns(r *rig) {
	for range 3 {
		r.equal("Turn", r.turn("purge", leaseTime), true)
		for range 2 {
			r.equal("Turn again", r.turn("purge", leaseTime), false)
		}
		r.now = r.now.Add(leaseTime - time.Millisecond)
		r.equal("Turn just before its end", r.turn("purge", leaseTime), false)
		r.now = r.now.Add(time.Millisecond)
	}
	r.equal("Turn for another time", r.turn("purge", 3*leaseTime), true)
	r.now = r.now.Add(2 * leaseTime)
	r.equal("Turn with a shorter hold", r.turn("purge", leaseTime), false)
}

// Duties do not wait for each other. Names are compared byte by byte.
func turnNames(r *rig) {
	for _, name := range []string{"a", "b", "A"} {
		r.equal("Turn to "+name, r.turn(name, leaseTime), true)
	}
	r.now = r.now.Add(leaseTime)
	r.equal("Turn to a", r.turn("a", leaseTime), true)
	r.equal("Turn to a again", r.turn("a", leaseTime), false)
	r.equal("Turn to b", r.turn("b", leaseTime), true)
}

// 16 callers ask at once, round after round. In each round exactly one gets the turn.
func raceTurns(r *rig) {
	for round := range r.scaled(20) {
		var granted atomic.Int32
		r.concurrently(callers, func(int) error {
			got, err := r.store.Turn(context.Background(), r.now, "purge", leaseTime)
			if got {
				granted.Add(1)
			}
			return err
		})
		r.equal("callers that got the turn, the "+nth(round), granted.Load(), int32(1))
		r.now = r.now.Add(leaseTime)
	}
}

// If a clock was far ahead and was set back, its turn must not stop the duty until that time. A
// clock that is only a little behind must not take the turn twice.
func turnBack(r *rig) {
	r.turn("purge", leaseTime)
	began := r.now
	r.now = began.Add(-core.TurnHorizon)
	r.equal("Turn by a clock that is behind", r.turn("purge", leaseTime), false)
	r.now = began.Add(-core.TurnHorizon - time.Millisecond)
	r.equal("Turn by a clock that was set back", r.turn("purge", leaseTime), true)
	r.equal("Turn again", r.turn("purge", leaseTime), false)
	r.now = r.now.Add(leaseTime)
	r.equal("Turn later", r.turn("purge", leaseTime), true)
}
