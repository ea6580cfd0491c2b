package manage

import (
	"context"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/eventgateway/gateway/core"
)

// How many small events are processed at a time. [core.MaxRead] bounds large ones.
const (
	readChunk = 100 // events that are read in one step
	tellChunk = 25  // events whose jobs are read in one step; a run with many steps has thousands of jobs

	// triedChunk is about how many attempts are read in one step.
	triedChunk = 250
)

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
