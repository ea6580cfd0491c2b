package intake

import (
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/units"
)

// Headers by which the sender of an API event says when its jobs are due. They are not kept with
// the event. Webhooks have no such headers: signatures do not cover them.
const (
	deliverAt = "X-Gateway-Deliver-At" // a time
	delayFor  = "X-Gateway-Delay"      // a duration, from the request on
)

// dueAt returns when the jobs of an event are due; zero if the sender did not say it.
func (e *envelope) dueAt() (time.Time, error) {
	h := e.request.Header
	at, timed := h[deliverAt]
	delay, delayed := h[delayFor]
	switch {
	case e.request.Kind != Event || !timed && !delayed:
		return time.Time{}, nil
	case timed && delayed:
		return time.Time{}, malformed("%s and %s exclude each other", deliverAt, delayFor)
	case delayed:
		d, err := units.ParseDuration(h.Get(delayFor))
		if err != nil || len(delay) > 1 || d.Duration > core.MaxDelay {
			return time.Time{}, malformed("%s must be one duration from 0s to 365d, such as 30m; not %.64q", delayFor, h.Get(delayFor))
		}
		return e.request.At.Add(d.Duration), nil
	}
	due, err := core.ParseTime(h.Get(deliverAt))
	if err != nil || len(at) > 1 || due.After(e.request.At.Add(core.MaxDelay)) {
		return time.Time{}, malformed("%s must be one time, such as 2006-01-02T15:04:05Z, at most 365 days from now; not %.64q", deliverAt, h.Get(deliverAt))
	}
	return due, nil
}

// postpone makes all jobs of an arrival due at the time that the sender asked for, in place of
// the delays of their consumers. A time that has passed means at once.
func postpone(a core.Arrival, due time.Time) {
	if due.IsZero() {
		return
	}
	for i := range a.Jobs {
		a.Jobs[i].DueAt = due
	}
}

// ring wakes the workers of a job's lane, at once or when the job is due.
func (in *Intake) ring(j core.NewJob) {
	if j.DueAt.After(in.Clock()) {
		in.Bell.RingAt(j.Lane, j.DueAt)
	} else {
		in.Bell.Ring(j.Lane)
	}
}
