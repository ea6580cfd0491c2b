package main

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/egress"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/worker"
)

const (
	// quietFor is for how long no event comes until listen asks less often.
	quietFor  = 10 * time.Minute
	quietRest = 3 * time.Second

	// reachRest is the pause between two tries while nothing answers at --to.
	reachRest = 500 * time.Millisecond

	// behindEvery is the least time between two notes about how far listen is behind.
	behindEvery = 10 * time.Second
)

// A listening is a listen under way. It holds the summaries of one page of events and the payload
// of one event, however many events wait in the gateway.
type listening struct {
	*app
	tail   tailService
	events eventService

	drop
	choice
	again func(last core.ID) (commandLine string) // the command that goes on after this event

	at      manage.Cursor
	seen    map[core.ID]bool // events after the cursor that a look had; the next one repeats them
	waiting []core.Event     // chosen and not yet posted, the oldest first
	more    bool             // the gateway has more events already
	last    core.ID          // the highest id of an event that was dealt with
	counts  struct{ delivered, failed, unread, passed int }

	heard time.Time // when the last event came
	told  time.Time // when the note about being behind was last due
}

// A drop is where events are posted, and how.
type drop struct {
	to      string
	calls   *egress.Client
	sender  worker.Sender
	signed  bool
	lane    core.Lane // of the handler as which events are delivered
	timeout time.Duration
	wait    time.Duration // for how long an event is tried again while nothing answers
	away    time.Time     // since when nothing answers; zero if the last event was answered
}

// A choice says which events are posted.
type choice struct {
	source    string // "" for all
	eventType string // a type, a prefix with *, or "" for all
	match     func(core.Event) bool
	declined  func(core.Event) []core.Declined // nil if no handler of a configuration is named
}

// listen posts events until ctx ends, the reader of stdout ends, or the gateway refuses a call for a
// reason that does not pass. Then it prints a summary.
func (l *listening) listen(ctx context.Context) error {
	if l.source != "" { // for an unknown source, the command would wait for ever
		if _, err := l.events.List(ctx, core.EventFilter{Source: l.source, Limit: 1}); err != nil {
			return err
		}
	}
	// The first look only sets the position, unless the user gave one. It must succeed: a gateway
	// that does not answer has more likely a wrong address than a slow start.
	l.heard = l.clock()
	if err := l.look(ctx); err != nil {
		return err
	}
	l.introduce()
	err := l.persist(ctx, len(l.waiting) > 0, l.rest, l.step)
	l.summarise()
	return err
}

// rest returns the pause between two looks.
func (l *listening) rest() time.Duration {
	if l.clock().Sub(l.heard) > quietFor {
		return quietRest
	}
	return tailRest
}

// step posts the events that wait, then looks for more. An error leaves the events that wait for
// the next step, with the event that failed as the first.
func (l *listening) step(ctx context.Context) (more bool, err error) {
	if len(l.waiting) == 0 {
		if err := l.look(ctx); err != nil {
			return false, err
		}
	}
	l.told = l.clock()
	for len(l.waiting) > 0 {
		l.noteBehind()
		if err := l.pass(ctx, l.waiting[0]); err != nil {
			return false, err
		}
		// An event that is stored late has a lower id than events that were posted before it.
		l.last, l.waiting = max(l.last, l.waiting[0].ID), l.waiting[1:]
		if err := l.out.Check(); err != nil {
			return false, err
		}
	}
	return l.more, nil
}

// look reads the next events. It is called when none waits, so that events are read as fast as they
// are posted.
func (l *listening) look(ctx context.Context) error {
	news, err := l.tail.Look(ctx, l.at, nil)
	if err != nil {
		return err
	}
	for _, e := range news.Events {
		if l.seen[e.ID] {
			continue
		}
		l.seen[e.ID], l.heard = true, l.clock()
		if l.mayWant(e) {
			l.waiting = append(l.waiting, e)
		}
	}
	l.at.Event, l.more = news.Next.Event, news.More
	// A look repeats only events after its cursor.
	maps.DeleteFunc(l.seen, func(id core.ID, _ bool) bool { return id <= l.at.Event })
	return nil
}

// pass reads an event in full and posts it, unless it is not wanted. The error is the gateway's, or
// that of ctx. An event that cannot be read for itself is reported, and is no error.
func (l *listening) pass(ctx context.Context, e core.Event) error {
	told, err := l.events.Inspect(ctx, e.ID)
	switch {
	// It was purged, or is too large for a function's answer.
	case core.IsKind(err, core.NotFound), core.IsKind(err, core.Invalid):
		l.counts.unread++
		return l.printUnread(e, err)
	case err != nil:
		return err
	}
	if !l.wants(told.Event) {
		l.counts.passed++
		return nil
	}
	return l.deliver(ctx, l.jobOf(told))
}

// mayWant reports whether an event is selected, as far as its summary says so.
func (c *choice) mayWant(e core.Event) bool {
	return (c.source == "" || e.Source == c.source) && matchesType(c.eventType, e.Type)
}

// wants reports whether the payload of an event is selected.
func (c *choice) wants(e core.Event) bool {
	return (c.match == nil || c.match(e)) && (c.declined == nil || len(c.declined(e)) == 0)
}

// jobOf returns the job as which an event is delivered. If the gateway has a job of the handler
// for the event, it is that job: the id by which a receiver finds repeats is the same as in the
// gateway's own delivery. Else the id of the event is the id of the job, so that it is the same in
// each run.
func (l *listening) jobOf(told manage.Told) core.TakenJob {
	id := told.ID
	for _, j := range told.Jobs {
		if j.Lane == l.lane {
			id = j.ID
			break
		}
	}
	return core.TakenJob{Job: core.Job{ID: id, EventID: told.ID, Lane: l.lane, Attempt: 1, MaxAttempts: 1}, Event: told.Event}
}

// deliver posts an event and prints the answer. The error comes from ctx, or from standard output.
func (l *listening) deliver(ctx context.Context, job core.TakenJob) error {
	for {
		began := l.clock()
		reply := l.send(ctx, job)
		ended := l.clock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !unconnected(reply) {
			l.away = time.Time{}
		} else if l.missed(ended, reply.Error) {
			if err := pause(ctx, reachRest); err != nil {
				return err
			}
			continue
		}
		if reply.OK {
			l.counts.delivered++
		} else {
			l.counts.failed++
		}
		return l.printDelivery(job, core.Attempt{Number: 1, StatusCode: reply.StatusCode, Error: reply.Error,
			Response: reply.Response, StartedAt: began, Duration: max(0, ended.Sub(began))})
	}
}

// send posts an event once.
func (l *listening) send(ctx context.Context, job core.TakenJob) worker.Reply {
	ctx, cancel := core.WithLimit(ctx, l.timeout)
	defer cancel()
	return l.sender.Send(ctx, job)
}

// unconnected reports whether nothing of a delivery was sent, because no connection came about. A
// connection that broke is another case: the receiver may have acted on the event.
func unconnected(r worker.Reply) bool {
	return strings.HasPrefix(r.Error, "connect: ") || strings.HasPrefix(r.Error, "dns: ")
}

// missed notes that nothing answers at --to, and reports whether to try the same event again. The
// time to wait is for the whole outage: once it is over, each event is tried once.
func (l *listening) missed(now time.Time, why string) bool {
	if l.away.IsZero() {
		l.away = now
		if l.wait > 0 {
			l.Notef("nothing answers at %s (%s); trying again for %s", shownURL(l.to), why, l.wait)
		}
	}
	return now.Sub(l.away) < l.wait
}
