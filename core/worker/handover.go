package worker

import (
	"time"

	"github.com/eventgateway/gateway/core"
)

// How a worker makes way for another one of the same process that works for its lanes
// from now on, maybe in another way: it hears no bell any more, its ticks are told to
// stop, and what they have begun goes on beside the other's.

// Leave has the worker hear no bell any more; what it has not acted on, others hear. Its
// ticks are to be told to stop then.
func (w *Worker) Leave() {
	w.gone.Store(true)
	w.Bell.Leave(w.heard)
}

// handOver tells who took over of jobs that were given back.
func (t *tick) handOver(jobs []core.Job) {
	told := map[core.Lane]bool{}
	for _, j := range jobs {
		if t.gone.Load() && !told[j.Lane] {
			told[j.Lane] = true
			t.Bell.Ring(j.Lane)
		}
	}
}

// cutAfter cuts what is under way off after a while, which begins once there is a hurry:
// deliveries, or the storing of what became of them. The function is to be called when it
// has ended.
func (t *tick) cutAfter(d time.Duration) (ended func()) {
	if t.Hurry == nil {
		stop := time.AfterFunc(d, t.stopHard)
		return func() { stop.Stop() }
	}
	done := make(chan struct{})
	go func() {
		select {
		case <-t.Hurry:
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
