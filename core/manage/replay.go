package manage

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/operate"
)

// Bounds of a replay.
const (
	DefaultReplay = 100     // events that are selected by default
	MaxReplay     = 100_000 // events that are selected by their number

	CountTurn = 1000             // events that one call counts
	CountTime = 10 * time.Second // about how long one count takes
)

// A Span is the events from one to another, both included. The zero value is none.
type Span struct{ First, Last core.ID }

// Replayed counts the events that were looked at, the events that got jobs, and these jobs.
type Replayed struct {
	Looked, Events, Jobs int

	// Span has all selected events, replayed or not; it is zero if no
	// event was selected.
	Span

	// Next is the first id of the rest of the span, or "" if there is no rest for the caller.
	Next core.ID

	// Going is the operation that goes on with the events that are left; "" if none are left to it.
	Going core.ID
}

// Replay gives new jobs to the events that the filter selects, the oldest first. With a
// span it replays the events of the span: all of them, or at most f.Limit if that is set; then Next
// says where to continue. Without a span it replays the newest events, at most f.Limit, 1 to
// [MaxReplay]; 0 means [DefaultReplay]. An event that no consumer wants counts in Looked only.
//
// An operation without a rate replays them: see [Operations.Do]. If no event gets jobs, there is none.
// If time is over or after an error, the numbers are those until then, and Going goes on.
//
// A dry replay returns the numbers and writes nothing. It counts at most [CountTurn] events, and
// starts no further chunk after [CountTime], so that its answer is in time; then Next says where to
// continue. The returned span always selects the same events: later events are after it, and purged
// events are gone. So a replay of the span of a dry run replays the events that the dry run
// counted.
func (e *Events) Replay(ctx context.Context, f core.EventFilter, s Span, dry bool) (Replayed, error) {
	n, err := selected(f.Limit, s)
	if err != nil {
		return Replayed{}, err
	}
	part := s
	if s == (Span{}) {
		s, err = e.span(ctx, f, n)
		part = s
	} else if f.Limit > 0 && !dry {
		part, err = e.oldest(ctx, f, s)
	}
	switch {
	case err != nil || s == (Span{}):
		return Replayed{}, err
	case dry:
		return e.count(ctx, f, s, n)
	}
	done, err := e.rush(ctx, f, s, part)
	if part.Last < s.Last {
		done.Next = part.Last.Next()
	}
	return done, err
}

// selected returns how many events are selected at most.
func selected(limit int, s Span) (int, error) {
	switch {
	case (s.First == "") != (s.Last == ""):
		return 0, core.Refuse(core.Invalid, "first and last go together: give both, or neither")
	case s.First > s.Last:
		return 0, core.Refuse(core.Invalid, "first must not be above last")
	case limit < 0 || limit > MaxReplay:
		return 0, core.Refuse(core.Invalid, "limit must be a whole number from 1 to %d; not %d", MaxReplay, limit)
	case limit == 0 && s == (Span{}):
		return DefaultReplay, nil
	case limit == 0:
		return MaxReplay, nil
	}
	return limit, nil
}

// oldest returns the part of a span that has the oldest f.Limit events that the filter selects.
func (e *Events) oldest(ctx context.Context, f core.EventFilter, s Span) (Span, error) {
	left, last := f.Limit, s.Last
	for chunk, err := range e.within(ctx, f, s, f.Limit) {
		if err != nil {
			return Span{}, err
		}
		if left -= len(chunk); left == 0 {
			last = chunk[len(chunk)-1].ID
		}
	}
	return Span{s.First, last}, nil
}

// count counts the events of a span that the filter selects, and the jobs that a replay would make.
func (e *Events) count(ctx context.Context, f core.EventFilter, s Span, n int) (Replayed, error) {
	total, stop := Replayed{Span: s, Next: s.First}, e.clock().Add(CountTime)
	left, late := min(n, CountTurn), false
	for chunk, err := range e.within(ctx, f, s, left) {
		if err != nil {
			return total, err
		}
		wanted, jobs := e.wanted(e.match, chunk)
		total.Looked, total.Events, total.Jobs = total.Looked+len(chunk), total.Events+len(wanted), total.Jobs+jobs
		total.Next = chunk[len(chunk)-1].ID.Next()
		left -= len(chunk)
		if late = !e.clock().Before(stop); late {
			break
		}
	}
	if left > 0 && !late || total.Next > s.Last { // there are no more
		total.Next = ""
	}
	return total, nil
}

// rush replays the events of a part of the selected span by an operation.
func (e *Events) rush(ctx context.Context, f core.EventFilter, s, part Span) (Replayed, error) {
	total := Replayed{Span: s}
	op, err := e.Bulk.Do(ctx, Rush{Operation: replayOf(f, part), Change: replaying(f, s), Did: func(b operate.Batch, op core.Operation) {
		total.Jobs += e.made(ctx, b, op.Acted-total.Events)
		if total.Looked, total.Events = op.Looked, op.Acted; e.Progress != nil {
			e.Progress(total)
		}
	}})
	total.Looked, total.Events = op.Looked, op.Acted
	if op.State == core.OperationRunning {
		total.Going = op.ID
	}
	return total, err
}

// replayOf returns the operation that replays the events of a span that a filter selects.
func replayOf(f core.EventFilter, s Span) core.Operation {
	return core.Operation{Action: core.ReplayAction, Filter: core.OperationFilter{
		Source: f.Source, Type: f.Type, DeliveryID: f.DeliveryID, Since: f.Since, Until: f.Until, First: s.First, Last: s.Last}}
}

// made returns how many jobs a slice made that gave jobs to so many events.
func (e *Events) made(ctx context.Context, b operate.Batch, events int) (n int) {
	made := map[core.ID]bool{}
	var ids []core.ID
	for _, a := range b.Arrivals {
		ids = append(ids, a.Event.ID)
		for _, j := range a.Jobs {
			made[j.ID] = true
		}
	}
	if events == len(b.Arrivals) {
		return len(made)
	}
	// An event was purged meanwhile. An error is ignored: the jobs are made, and only their number is wrong.
	stored, _ := e.store.JobsOf(ctx, ids)
	for _, jobs := range stored {
		for _, j := range jobs {
			if made[j.ID] {
				n++
			}
		}
	}
	return n
}

// ReplayOne gives new jobs to one event, for some consumers; for all that want it if there are none
// in to. The error for a missing event is [ErrEvent]. A lane in to is refused as by
// [Operations.Begin].
func (e *Events) ReplayOne(ctx context.Context, id core.ID, to ...core.Lane) (Replayed, error) {
	if err := e.Names.receivers(to); err != nil {
		return Replayed{}, err
	}
	event, err := e.event(ctx, id)
	if err != nil {
		return Replayed{}, err
	}
	wanted, _ := e.wanted(func(event core.Event) core.Arrival { return operate.Only(e.match(event), to) }, []core.Event{event})
	done := Replayed{Looked: 1, Span: Span{id, id}}
	if len(wanted) == 0 {
		return done, nil
	}
	if done.Jobs, err = e.store.Replay(audited(ctx, core.AuditReplay, string(id)), e.clock(), wanted...); err != nil {
		return Replayed{Span: done.Span}, err
	}
	for _, j := range wanted[0].Jobs {
		e.Bell.Ring(j.Lane)
	}
	done.Events = 1
	tell(e.Observe, core.Replayed{Event: event, Asked: wanted[0].Jobs})
	return done, nil
}

// wanted returns the events that consumers want, and the number of their jobs.
func (e *Events) wanted(match Match, events []core.Event) (wanted []core.Arrival, jobs int) {
	for _, event := range events {
		a := match(event)
		for _, u := range a.Undecided {
			tell(e.Observe, core.FilterFailed{Event: event, Undecided: u})
		}
		if len(a.Jobs) > 0 {
			wanted = append(wanted, a)
			jobs += len(a.Jobs)
		}
	}
	return wanted, jobs
}
