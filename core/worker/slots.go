package worker

import (
	"context"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// slots send jobs, one at a time each, and pass the outcomes on to the settler.
type slots struct {
	*Worker
	hard     context.Context
	roster   *roster
	window   *window
	queue    *queue
	leases   *leases
	gates    *gateView
	alarm    *alarm
	returns  *returns
	outcomes chan<- settlement

	running sync.WaitGroup
}

// start starts n slots.
func (s *slots) start(n int) {
	for range n {
		s.running.Go(s.slot)
	}
}

// idle returns a channel that is closed once all slots have ended.
func (s *slots) idle() <-chan struct{} {
	idle := make(chan struct{})
	go func() {
		s.running.Wait()
		close(idle)
	}()
	return idle
}

// slot sends one job at a time until the queue has ended. It gives a job back unsent if its
// breaker is open, unless the job is the probe, or if its lease is too short.
func (s *slots) slot() {
	for {
		// The gate may have closed, and the lease may have grown short, while the job waited in the
		// queue. So both are checked here and not when the job is taken.
		job, ok := s.queue.next()
		if !ok {
			return
		}
		var took time.Duration
		held := s.gates.gate(job.Lane).Held(s.Clock())
		if held || s.gates.breakerOpen(job.Lane) && !job.Probe || s.leaseTooShort(job) {
			s.returns.add(job)
		} else {
			began := s.Clock()
			s.send(job)
			took = s.Clock().Sub(began)
		}
		s.queue.done(job.Lane, took)
		s.alarm.nudge()
	}
}

// leaseTooShort reports whether the lease of a job that had to wait here may end before its
// delivery does. Another process is to deliver such a job.
func (s *slots) leaseTooShort(job *core.TakenJob) bool {
	to := s.roster.target(job.Lane)
	need := to.Timeout
	if !s.window.budget.End.IsZero() {
		need += lateGrace // the lease may end with the process
	}
	// A target with a Hold that is not longer than its Timeout cannot be helped by returning jobs:
	// they would come back for ever.
	return to.Hold > to.Timeout && s.leases.left(job.ID, s.Clock()) < need
}

// send makes one attempt and hands its outcome to the settler. The outcome of an attempt that
// the tick cut off is dropped, and the lease of its job ends.
func (s *slots) send(job *core.TakenJob) {
	s.sending.Add(1)
	defer s.sending.Add(-1)
	to := s.roster.target(job.Lane)
	if to.Steps != nil {
		s.step(to, job)
		return
	}
	o := s.attempt(s.hard, to, job)
	s.queue.pace.send.add(o.Attempt.Duration)
	s.gates.countPending(o)
	if o.Status == core.Completed || s.hard.Err() == nil { // else the tick cut it off, and its lease ends
		s.outcomes <- settlement{job: job, outcome: o}
	}
}

// step makes one attempt of a step.
func (s *slots) step(to Target, job *core.TakenJob) {
	ctx, cancel := context.WithTimeout(s.hard, to.Hold)
	defer cancel()
	started := s.Clock()
	var end core.StepEnd
	var current bool
	err := core.Contain(func() (err error) {
		end, current, err = to.Steps.Attempt(ctx, *job)
		return err
	})
	s.queue.pace.send.add(s.Clock().Sub(started))
	result := settlement{job: job}
	switch {
	// The order of the cases matters: a step that the tick cut off has an error too.
	case s.hard.Err() != nil && (err != nil || current && end.Kind == core.Refused):
		return // the tick cut it off, and its lease ends
	case err != nil:
		s.Observe(core.Troubled{Doing: doing(job.Lane), Err: err})
		result.kind, result.soon = postponed, core.IsKind(err, core.Unavailable)
	case !current:
		result.kind, result.outcome = stale, to.Lines.Apply(job.Job, closed(job, s.Clock()))
	default:
		result.kind, result.end, result.steps = stepped, &end, to.Steps
	}
	s.outcomes <- result
}

// doing names the work of an attempt without a Sender, for the log.
func doing(l core.Lane) string {
	if l.Operation() {
		return "do an operation"
	}
	return "run a workflow"
}
