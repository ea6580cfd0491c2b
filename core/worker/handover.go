package worker

import (
	"time"

	"github.com/eventgateway/gateway/core"
)

// After a reload, another worker of the same process takes from the lanes, and may have other
// settings. The old worker gets no rings of the bell any more, and the process stops its ticks.
// The attempts that it has begun go on beside those of the new worker.

// Leave ends the rings of the bell for this worker. Rings that it has not handled yet go to other
// workers. The caller then stops the ticks.
func (w *Worker) Leave() {
	w.left.Store(true)
	w.Bell.Leave(w.heard)
}

// handOver rings for jobs that were given back, if another worker takes from their lanes now. The
// other worker would find them only at its next look.
func (w *Worker) handOver(jobs []core.Job) {
	rung := map[core.Lane]bool{}
	for _, j := range jobs {
		if w.left.Load() && !rung[j.Lane] {
			rung[j.Lane] = true
			w.Bell.Ring(j.Lane)
		}
	}
}

// cutAfter cuts off deliveries, or the storing of their outcomes, after a time that begins when
// Deps.Draining is closed. The caller calls ended when they are over.
func (t *tick) cutAfter(d time.Duration) (ended func()) {
	if t.Draining == nil {
		// Nothing announces the end of the process, so the time begins now.
		stop := time.AfterFunc(d, t.stopHard)
		return func() { stop.Stop() }
	}
	done := make(chan struct{})
	go func() {
		select {
		case <-t.Draining:
		case <-done:
			return
		}
		select {
		case <-time.After(d):
			t.stopHard()
		case <-done:
		}
	}()
	return func() { close(done) }
}
