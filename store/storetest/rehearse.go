package storetest

import (
	"context"
	"sync"

	"github.com/eventgateway/gateway/core"
)

// Checks of Rehearse, with which readiness probes do real work with rows of their own. A failure
// means that probes leave rows behind, or that callers see events that no sender sent.

const (
	saysRehearse       = "Rehearse does work of the given kind with rows of its own, and deletes these rows in the same commit"
	saysRehearseUnseen = "No other caller sees the rows"
	saysRehearseEnds   = "It ends when ctx is done"
)

// works are all kinds of work.
var works = []core.Work{core.Intake, core.Deliveries, core.Transitions, core.Turns}

// rehearse rehearses one kind of work.
func (r *rig) rehearse(w core.Work) {
	r.Helper()
	if err := r.store.Rehearse(context.Background(), w); err != nil {
		r.Errorf("Rehearse(%s) = %v, want none", w, err)
	}
}

// rehearse checks that Rehearse of each kind of work, called twice, leaves no row.
func rehearse(r *rig) {
	for _, w := range works {
		r.rehearse(w)
		r.rehearse(w)
	}
	r.wantEmptyStore()
}

// wantEmptyStore checks that there is no event, job or run.
func (r *rig) wantEmptyStore() {
	r.Helper()
	ctx := context.Background()
	events, err := r.store.Events(ctx, core.EventFilter{})
	if err != nil || len(events.Items) > 0 {
		r.Errorf("Events = %v, %v, want none", events.Items, err)
	}
	jobs, err := r.store.Jobs(ctx, core.JobFilter{})
	if err != nil || len(jobs.Items) > 0 {
		r.Errorf("Jobs = %v, %v, want none", jobs.Items, err)
	}
	runs, err := r.store.Runs(ctx, core.RunFilter{})
	if err != nil || len(runs.Items) > 0 {
		r.Errorf("Runs = %v, %v, want none", runs.Items, err)
	}
}

// Listings are read all the time while each kind of work is rehearsed several times.
func rehearseUnseen(r *rig) {
	var callers sync.WaitGroup
	for _, w := range works {
		callers.Go(func() {
			for range r.scaled(8) {
				r.rehearse(w)
			}
		})
	}
	done := make(chan struct{})
	go func() { callers.Wait(); close(done) }()
	for {
		r.wantEmptyStore()
		select {
		case <-done:
			return
		default:
		}
	}
}

// A probe with a deadline that has passed must not report a healthy store.
func rehearseEnds(r *rig) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, w := range works {
		if err := r.store.Rehearse(ctx, w); err == nil {
			r.Errorf("Rehearse(%s) of a context that is done = nil, want an error", w)
		}
	}
}
