package manage

import (
	"context"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/operate"
)

// How many small events are processed at a time. [core.MaxRead] bounds large ones.
const (
	readChunk = 100 // events that are read, and given new jobs, in one step
	tellChunk = 25  // events whose jobs are read in one step; a run with many steps has thousands of jobs

	// triedChunk is about how many attempts are read in one step.
	triedChunk = 250
)

// Replay gives new jobs to the events that the filter selects, the oldest first. With a
// span it replays the events of the span: all of them, or at most f.Limit if that is set.
// Without a span it replays the newest events, at most f.Limit, 1 to [MaxReplay]; 0 means
// [DefaultReplay]. A dry replay returns the numbers and writes nothing. An event that no
// consumer wants counts in Looked only.
//
// One call processes at most [ReplayTurn] events, and starts no further chunk after
// [ReplayTime], so that its answer is in time; then Next says where to continue. The
// returned span always selects the same events: later events are after it, and purged
// events are gone. So a replay of the span of a dry run replays the events that the dry run
// counted.
//
// After an error it returns the replayed numbers, and where to continue.
func (e *Events) Replay(ctx context.Context, f core.EventFilter, s Span, dry bool) (Replayed, error) {
	n, err := turn(f.Limit, s)
	if err == nil && s == (Span{}) {
		s, err = e.span(ctx, f, n)
	}
	if err != nil || s == (Span{}) {
		return Replayed{}, err
	}
	ctx = replaying(ctx, f, s) // one entry for all its commits
	total, stop := Replayed{Span: s, Next: s.First}, e.clock().Add(ReplayTime)
	left, late := min(n, ReplayTurn), false
	for chunk, err := range e.within(ctx, f, s, left) {
		if err == nil {
			err = e.take(ctx, chunk, dry, &total)
		}
		if err != nil {
			return total, err
		}
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

// turn returns how many events are selected at most.
func turn(limit int, s Span) (int, error) {
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

// take replays a chunk, and adds its numbers.
func (e *Events) take(ctx context.Context, chunk []core.Event, dry bool, total *Replayed) error {
	done, err := e.replay(ctx, e.match, chunk, dry)
	if err != nil {
		return err
	}
	total.Looked += done.Looked
	total.Events += done.Events
	total.Jobs += done.Jobs
	total.Next = chunk[len(chunk)-1].ID.Next()
	return nil
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
	match := func(event core.Event) core.Arrival { return operate.Only(e.match(event), to) }
	done, err := e.replay(audited(ctx, core.AuditReplay, string(id)), match, []core.Event{event}, false)
	done.Span = Span{id, id}
	return done, err
}

// replay gives jobs to events for the consumers that they match.
func (e *Events) replay(ctx context.Context, match Match, events []core.Event, dry bool) (Replayed, error) {
	var wanted []core.Arrival
	jobs := 0
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
	if dry || len(wanted) == 0 {
		return Replayed{Looked: len(events), Events: len(wanted), Jobs: jobs}, nil
	}
	jobs, err := e.store.Replay(ctx, e.clock(), wanted...)
	if err != nil {
		return Replayed{}, err
	}
	for _, a := range wanted {
		for _, j := range a.Jobs {
			e.Bell.Ring(j.Lane)
		}
		tell(e.Observe, core.Replayed{Event: a.Event, Asked: a.Jobs})
	}
	return Replayed{Looked: len(events), Events: len(wanted), Jobs: jobs}, nil
}

// within yields the events of a span that the filter selects in chunks, the oldest first,
// at most n.
func (e *Events) within(ctx context.Context, f core.EventFilter, s Span, n int) iter.Seq2[[]core.Event, error] {
	return func(yield func([]core.Event, error) bool) {
		for from := s.First; n > 0; {
			f.Limit = min(n, readChunk)
			page, err := e.store.Read(ctx, from, f)
			chunk := upTo(page.Items, s.Last)
			if (err != nil || len(chunk) > 0) && !yield(chunk, err) || err != nil {
				return
			}
			if !page.More || len(chunk) < len(page.Items) || len(chunk) == 0 {
				return
			}
			n -= len(chunk)
			from = behind(chunk[len(chunk)-1].ID)
		}
	}
}

// span returns the span of the newest n events that the filter selects. It excludes events
// that come in meanwhile.
func (e *Events) span(ctx context.Context, f core.EventFilter, n int) (s Span, err error) {
	if s.Last, err = e.store.Nth(ctx, f, 1); err == nil && s.Last == "" {
		err = e.knownSource(ctx, f.Source)
	}
	if err != nil || s.Last == "" {
		return Span{}, err
	}
	if s.First, err = e.store.Nth(ctx, f, n); err != nil || s.First == "" {
		return Span{}, err
	}
	return s, nil
}

// upTo returns the events whose id is not above last.
func upTo(events []core.Event, last core.ID) []core.Event {
	i := slices.IndexFunc(events, func(e core.Event) bool { return e.ID > last })
	if i < 0 {
		return events
	}
	return events[:i]
}

// behind returns a text between this id and the next higher one: ids have one length.
func behind(id core.ID) core.ID { return id + "0" }

// lowest is less than the id of every event.
const lowest core.ID = "0"

// Export yields the newest events that the filter selects, at most n, or all of them if n
// is 0, the oldest of them first, with their jobs, attempts and runs. Its memory does not
// depend on the number of events. It excludes events that come in after it began. It ends
// after an error. An export that is bare has the events alone, and does not read their jobs, attempts
// and runs.
func (e *Events) Export(ctx context.Context, f core.EventFilter, n int, bare bool) iter.Seq2[Told, error] {
	return func(yield func(Told, error) bool) {
		s, err := e.exported(ctx, f, n)
		if err != nil {
			yield(Told{}, err)
		}
		if err != nil || s == (Span{}) {
			return
		}
		if n == 0 {
			n = math.MaxInt
		}
		for chunk, err := range e.within(ctx, f, s, n) {
			if err != nil {
				yield(Told{}, err)
				return
			}
			for part := range slices.Chunk(chunk, tellChunk) {
				if bare && !tellBare(part, yield) || !bare && !e.tell(ctx, part, yield) {
					return
				}
			}
		}
	}
}

// exported returns the span of an export: the newest n events, or all if n is 0.
func (e *Events) exported(ctx context.Context, f core.EventFilter, n int) (Span, error) {
	if n > 0 {
		return e.span(ctx, f, n)
	}
	s, err := e.span(ctx, f, 1)
	if err == nil && s != (Span{}) {
		s.First = lowest
	}
	return s, err
}

// tellBare yields events alone, and reports whether to continue.
func tellBare(events []core.Event, yield func(Told, error) bool) bool {
	for _, event := range events {
		if !yield(Told{Event: event}, nil) {
			return false
		}
	}
	return true
}

// tell yields events with their jobs, attempts and runs, and reports whether to continue.
func (e *Events) tell(ctx context.Context, events []core.Event, yield func(Told, error) bool) bool {
	ids := make([]core.ID, len(events))
	for i, event := range events {
		ids[i] = event.ID
	}
	jobs, err := e.store.JobsOf(ctx, ids)
	if err != nil {
		yield(Told{}, err)
		return false
	}
	attempts, err := e.attempts(ctx, jobs)
	if err != nil {
		yield(Told{}, err)
		return false
	}
	for _, event := range events {
		told := Told{Event: event, Jobs: e.Names.places().Jobs(jobs[event.ID]), Attempts: attempts}
		if ran(told.Jobs) {
			if told.Runs, err = e.runs(ctx, event.ID); err != nil {
				yield(Told{}, err)
				return false
			}
		}
		if !yield(told, nil) {
			return false
		}
	}
	return true
}

// attempts returns the attempts of all the jobs of some events.
func (e *Events) attempts(ctx context.Context, of map[core.ID][]core.Job) (map[core.ID][]core.Attempt, error) {
	var (
		all   = map[core.ID][]core.Attempt{}
		asked []core.ID
		tries int
	)
	ask := func() error {
		some, err := e.store.AttemptsOf(ctx, asked)
		maps.Copy(all, some)
		asked, tries = nil, 0
		return err
	}
	for _, jobs := range of {
		for _, j := range jobs {
			if tries += max(1, j.Attempt); len(asked) > 0 && tries > triedChunk {
				if err := ask(); err != nil {
					return nil, err
				}
				tries = max(1, j.Attempt)
			}
			asked = append(asked, j.ID)
		}
	}
	return all, ask()
}

// ran reports whether an event with these jobs may have runs, since reading them costs a
// query. It may if it has the job of a step. It may also if it has no jobs: the jobs of a
// run may be purged before the run.
func ran(jobs []core.Job) bool {
	return len(jobs) == 0 || slices.ContainsFunc(jobs, func(j core.Job) bool { return j.Lane.Workflow() != "" })
}
