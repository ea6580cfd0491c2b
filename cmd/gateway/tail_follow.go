package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

const (
	// tailRest is the pause between two looks. After a failed look the pause doubles each
	// time, up to tailRestMost.
	tailRest     = time.Second
	tailRestMost = 30 * time.Second

	// remembered is the least number of events and jobs whose last shown state a tail
	// remembers. It is many times the number that one look can repeat.
	remembered = 20_000

	// followed is the number of events whose jobs a tail watches until they finish.
	followed = 1000
)

// A tailing is a tail under way.
type tailing struct {
	*app
	tail   tailService
	events eventService
	source string      // the source that is shown; "" for all
	status core.Status // the status of jobs that are shown; "" for all jobs, and events too

	at      manage.Cursor // where the next look begins
	open    []core.ID     // events with unfinished jobs; the first is looked at next
	seen    memory[shown]
	sources memory[string] // sources of events, if only one source is shown
}

// shown is the last shown state of a job. It is the zero value for an event.
type shown struct {
	status  core.Status
	attempt int
}

// follow looks and prints until ctx ends, the reader of stdout ends, or a look fails for a
// reason that does not pass. The first look must succeed: a server or database that does not
// answer has more likely a wrong address than a slow start.
func (t *tailing) follow(ctx context.Context) error {
	if t.source != "" { // for a source that is not configured, the command would wait for ever
		if _, err := t.events.List(ctx, core.EventFilter{Source: t.source, Limit: 1}); err != nil {
			return err
		}
	}
	more, err := t.step(ctx)
	if err != nil {
		return err
	}
	return t.persist(ctx, more, func() time.Duration { return tailRest }, t.step)
}

// persist calls step until ctx ends, the reader of stdout ends, or a step fails for a reason that
// does not pass. It rests between two steps, unless step returned that there is more already, which
// the first argument says for the first step. A failed step is tried again after a pause.
func (a *app) persist(ctx context.Context, more bool, rest func() time.Duration, step func(context.Context) (more bool, err error)) (err error) {
	for failures := 0; ; {
		if err := pause(ctx, restAfter(failures, more, rest())); err != nil {
			return err
		}
		more, err = step(ctx)
		switch {
		case err == nil && failures > 0:
			a.Notef("connected again")
			failures = 0
		case err == nil:
		// After other errors the loop tries again, since a server may be restarting. A refused
		// token or a full disk does not pass.
		case ctx.Err() != nil || a.out.Err() != nil || final(err):
			return err
		default:
			if failures++; failures == 1 {
				a.Complain(err.Error() + "; trying again")
			}
		}
	}
}

// step looks once, prints the news, and reports whether there is more already.
func (t *tailing) step(ctx context.Context) (more bool, err error) {
	// The cursor moves only after the look has succeeded, so a failed look is repeated with the
	// same result.
	asked := t.toFollow()
	news, err := t.tail.Look(ctx, t.at, asked)
	if err != nil {
		return false, err
	}
	if t.source != "" {
		if err := t.learn(ctx, news); err != nil {
			return false, err
		}
	}
	t.at = news.Next
	t.remember(news, asked[:min(news.Followed, len(asked))])
	if err := t.print(news); err != nil {
		return false, err
	}
	return news.More, t.out.Check()
}

// toFollow returns the events whose jobs the next look must read too. The look reads the jobs
// of events after the cursor anyway.
func (t *tailing) toFollow() []core.ID {
	var ids []core.ID
	for _, id := range t.open {
		if id <= t.at.Event && len(ids) < manage.MaxFollowed {
			ids = append(ids, id)
		}
	}
	return ids
}

// remember updates the list of shown events with unfinished jobs. Events that were looked at
// go to the end of the list, or are removed if their jobs are finished. If the list is too
// long, the oldest events are removed.
func (t *tailing) remember(news manage.News, looked []core.ID) {
	if t.status.Finished() {
		return // each look returns finished jobs anyway
	}
	t.open = slices.DeleteFunc(t.open, func(id core.ID) bool { return slices.Contains(looked, id) })
	known := make(map[core.ID]bool, len(t.open))
	for _, id := range t.open {
		known[id] = true
	}
	for _, j := range news.Jobs {
		source, _ := t.sources.get(j.EventID)
		if !j.Status.Finished() && !known[j.EventID] && t.shows(source) {
			known[j.EventID] = true
			t.open = append(t.open, j.EventID)
		}
	}
	// Ids sort by time, so the smallest ids are the oldest events.
	if n := len(t.open) - followed; n > 0 {
		oldest := slices.Sorted(slices.Values(t.open))[n]
		t.open = slices.DeleteFunc(t.open, func(id core.ID) bool { return id < oldest })
	}
}

// learn finds the sources of the events of a look's jobs. It reads events from before the
// begin of the tail a page at a time, since they are near each other.
func (t *tailing) learn(ctx context.Context, news manage.News) error {
	for _, e := range news.Events {
		t.sources.put(e.ID, e.Source)
	}
	unknown := map[core.ID]bool{}
	for _, j := range news.Jobs {
		if _, known := t.sources.get(j.EventID); !known {
			unknown[j.EventID] = true
		}
	}
	for len(unknown) > 0 {
		newest := slices.Max(slices.Collect(maps.Keys(unknown)))
		above := core.FirstID(newest.Time().Add(time.Millisecond))
		page, err := t.events.List(ctx, core.EventFilter{After: above, Limit: core.MaxPage})
		if err != nil {
			return err
		}
		t.sources.put(newest, "") // unless the page has it
		for _, e := range page.Items {
			if unknown[e.ID] {
				t.sources.put(e.ID, e.Source)
				delete(unknown, e.ID)
			}
		}
		delete(unknown, newest)
	}
	return nil
}

// restAfter returns the pause after this number of failed looks in a row. It is rest if there is no
// reason for another one.
func restAfter(failures int, more bool, rest time.Duration) time.Duration {
	switch {
	case failures > 0:
		return min(tailRest<<min(failures, 10), tailRestMost)
	case more:
		return 0
	}
	return rest
}

// final reports whether an error does not pass by itself.
func final(err error) bool {
	return core.IsKind(err, core.Unauthorized) || core.IsKind(err, core.Forbidden) || core.IsKind(err, core.Invalid)
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A memory holds a value for each of the last ids that were put: at least remembered ids, and
// at most twice as many. The zero memory is empty.
type memory[V comparable] struct{ now, before map[core.ID]V }

// get returns the last value that was put for an id.
func (m *memory[V]) get(id core.ID) (V, bool) {
	v, ok := m.now[id]
	if !ok {
		v, ok = m.before[id]
	}
	return v, ok
}

// put stores a value and reports whether it is new or differs from the last one.
func (m *memory[V]) put(id core.ID, v V) bool {
	last, ok := m.get(id)
	// Two maps that change places forget old ids without a list in the order of time.
	if m.now == nil || len(m.now) >= remembered {
		m.now, m.before = map[core.ID]V{}, m.now
	}
	m.now[id] = v
	return !ok || last != v
}
