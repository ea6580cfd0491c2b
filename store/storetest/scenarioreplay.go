package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// scenarioReplays is the part of the [scenario] in which old events get new jobs and runs.
func scenarioReplays(p *play) {
	first, second := p.replayArrival("anew", "first", "a", "b"), p.replayArrival("anew too", "flow", "w")
	p.replayAll(first)
	p.replayAll(second, first)
	p.take("w", "anew too/0")
	p.transitions("the end of a run of an old event", true, p.endRun("anew too/0", core.RunCompleted))
	p.replayAll(first, second)
}

// replayArrival returns an arrival that gives a named event new jobs in lanes. A job in a workflow's lane
// comes with a run.
func (p *play) replayArrival(name, event string, lanes ...string) core.Arrival {
	a := core.Arrival{Event: core.Event{ID: p.arrivals[event].Event.ID}}
	for i, l := range lanes {
		job := fmt.Sprintf("%s/%d", name, i)
		n := core.NewJob{ID: p.ids.Next(), Lane: p.lanes[l], MaxAttempts: core.Unlimited}
		a.Jobs, p.names[n.ID] = append(a.Jobs, n), job
		if w := n.Lane.Workflow(); w != "" {
			run := core.NewRun{ID: p.ids.Next(), Workflow: w, Definition: definition(defaultWorkflow), StepID: n.ID, Step: "first", StepType: "http"}
			a.Runs, p.names[run.ID] = append(a.Runs, run), "run of "+job
			a.Event.CreatedAt = p.now
			p.wantRuns[job] = pending(a)[len(a.Runs)-1].Run
			p.unrecorded[n.ID] = true
		}
	}
	return a
}

// replayAll replays arrivals, and checks that all of their jobs are stored.
func (p *play) replayAll(arrivals ...core.Arrival) {
	p.Helper()
	want := 0
	for _, a := range arrivals {
		want += len(a.Jobs)
	}
	p.step("replay", func() error {
		got, err := p.store.Replay(context.Background(), p.now, arrivals...)
		if err == nil {
			p.equal(p.name, got, want)
		}
		return err
	})
}

// replayedLate purges an event just before Replay would store its jobs. The other event of the
// call gets its job.
func replayedLate(r *rig, f *Fault) {
	bare, left := r.arrival(), r.arrival(r.lane)
	r.accepted(bare)
	r.accepted(left)
	r.now = r.now.Add(leaseTime)
	gone, other := r.replayOf(bare.Event.ID, []core.Lane{r.lane}, defaultWorkflow), r.replayOf(left.Event.ID, []core.Lane{r.lane})
	f.justBefore("insert_jobs_if", func() { r.equal("Purge", r.purge(10), 1) })
	r.equal("Replay", r.replay(gone, other), 1)
	r.wantAbsent(gone)
	r.wantNoRun(gone.Runs[0].ID, gone.Runs[0].StepID)
	r.wantJob(r.replayed(other)[0])
}

// replayedMeanwhile begins a Replay at the moment at which a Purge deletes the event. On some
// databases one waits for the other's row lock, and then sees rows as they were before.
func replayedMeanwhile(r *rig, f *Fault) {
	for range r.scaled(60) {
		bare := r.arrival()
		r.accepted(bare)
		r.now = r.now.Add(time.Second)
		a := r.replayOf(bare.Event.ID, []core.Lane{r.lane, "queue/b"}, defaultWorkflow)
		var stored int
		var err error
		done := make(chan struct{})
		f.justBefore("purge_events", func() {
			go func() {
				defer close(done)
				stored, err = r.store.Replay(context.Background(), r.now, a)
			}()
		})
		r.purge(10)
		<-done
		r.equal("Replay: error", err, nil)
		r.equal("jobs", len(r.jobs(core.JobFilter{EventID: bare.Event.ID}).Items), stored)
		if stored == 0 {
			r.wantNoEvent(bare.Event.ID)
			continue
		}
		r.equal("Replay", stored, 3)
		r.storedEvent(bare.Event.ID)
	}
}

// turnsTwice asks for a turn over a connection that sends each batch twice. Another caller asks
// between the two sendings, after the turn ended.
func turnsTwice(r *rig, f *Fault) {
	f.twice = true
	r.equal("Turn", r.turn("purge", leaseTime), true)
	r.equal("Turn again", r.turn("purge", leaseTime), false)
	r.now = r.now.Add(leaseTime)
	f.between = func() {
		f.twice = false
		r.equal("Turn of another caller", r.turn("purge", leaseTime), false)
	}
	r.equal("Turn after it is over", r.turn("purge", leaseTime), true)
}
