package storetest

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of Newest. An operation begins above all that it returns, so a record that it leaves out is
// no match of the next operation.

const (
	saysNewestRecord = "Newest returns the highest id of the stored events, jobs and runs, and the latest time at which one of the stored jobs and runs finished"
	saysNoRecord     = `They are "" and zero if nothing is stored, or finished`
)

// wantNewest requires what Newest returns.
func (r *rig) wantNewest(id core.ID, finished time.Time) {
	r.Helper()
	gotID, got, err := r.store.Newest(context.Background())
	if err != nil {
		r.Fatalf("Newest failed: %v", err)
	}
	r.equal("Newest: id", gotID, id)
	r.equal("Newest: time", got, finished)
}

func newestOfNone(r *rig) {
	r.wantNewest("", time.Time{})
	r.wantNewest(r.put().ID, time.Time{})
}

// Jobs finish in another order than they were made, and the newest event comes last.
func newestRecord(r *rig) {
	r.put()
	r.put()
	jobs := r.take(2)
	first := r.now
	r.settle(r.ended(jobs[1].Job, core.Dead))
	r.wantNewest(max(jobs[0].ID, jobs[1].ID), first)
	r.now = r.now.Add(time.Minute)
	r.settle(r.ended(jobs[0].Job, core.Completed))
	r.wantNewest(max(jobs[0].ID, jobs[1].ID), r.now)
	a := r.arrival()
	a.Jobs = nil
	last := r.now
	r.now = r.now.Add(time.Minute)
	r.accept(a)
	r.wantNewest(a.Event.ID, last)
}

// A run has the highest id of all, and its end is the latest.
func newestOfEach(r *rig) {
	a := r.runArrival(r.workflow)
	a.Runs[0].ID = r.ids.Next()
	r.accept(a)
	r.wantNewest(a.Runs[0].ID, time.Time{})
	r.settled(core.Completed)
	j := r.put()
	r.now = r.now.Add(time.Minute)
	r.mustTransit(r.finished(r.run(a.Runs[0].ID), core.RunCanceled))
	r.wantNewest(j.ID, r.now)
}
