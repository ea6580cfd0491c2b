package main

import (
	"context"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

const (
	// tailRest is how long a tail waits between two looks; after one that failed it waits
	// twice as long each time, tailRestMost at the most.
	tailRest     = time.Second
	tailRestMost = 30 * time.Second

	// remembered is of how many events and jobs a tail knows at least how it has shown
	// them: many times what one look tells again.
	remembered = 20_000

	// followed is of how many events a tail watches the jobs until they finish.
	followed = 1000
)

// A tailing is a tail under way.
type tailing struct {
	*app
	tail   tailService
	events eventService
	source string      // that is shown; "" for all
	status core.Status // of jobs that are shown; "" for all, and events as well

	at      manage.Cursor // where the next look begins
	open    []core.ID     // events with jobs that are to finish, the one that is to be looked at next first
	seen    memory[shown]
	sources memory[string] // of events, if only those of one source are shown
}

// shown is how a job was shown last. Of an event it is the zero value.
type shown struct {
	status  core.Status
	attempt int
}

// follow looks and prints until ctx ends, nobody reads any more, or looking is refused
// in a way that trying again does not help. The first look has to succeed: a server or
// database that is not there is more likely misspelt than about to come.
func (t *tailing) follow(ctx context.Context) error {
	if t.source != "" { // the command would wait for ever for a source that is not configured
		if _, err := t.events.List(ctx, core.EventFilter{Source: t.source, Limit: 1}); err != nil {
			return err
		}
	}
	more, err := t.step(ctx)
	if err != nil {
		return err
	}
	for failures := 0; ; {
		if err := pause(ctx, restAfter(failures, more)); err != nil {
			return err
		}
		more, err = t.step(ctx)
		switch {
		case err == nil && failures > 0:
			t.notef("connected again")
			failures = 0
		case err == nil:
		case ctx.Err() != nil || t.out.err != nil || final(err):
			return err
		default:
			if failures++; failures == 1 {
				t.complain(err.Error() + "; trying again")
			}
		}
	}
}

// step looks once, prints what is new, and reports whether there is more already.
func (t *tailing) step(ctx context.Context) (more bool, err error) {
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
	if readerGone(t.out.w) {
		t.out.err = syscall.EPIPE // as the next write would say
	}
	return news.More, t.out.err
}

// toFollow is of which events the next look is to tell the jobs as well. Those of the
// events behind the cursor it tells anyway.
func (t *tailing) toFollow() []core.ID {
	var ids []core.ID
	for _, id := range t.open {
		if id <= t.at.Event && len(ids) < manage.MaxFollowed {
			ids = append(ids, id)
		}
	}
	return ids
}

// remember keeps in mind whose jobs are to finish, of those that are shown. Events that
// were looked at go behind the others, or are dropped if nothing is to come of them; of
// too many the oldest are.
func (t *tailing) remember(news manage.News, looked []core.ID) {
	if t.status.Finished() {
		return // which is told without being asked for
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
	if n := len(t.open) - followed; n > 0 {
		oldest := slices.Sorted(slices.Values(t.open))[n]
		t.open = slices.DeleteFunc(t.open, func(id core.ID) bool { return id < oldest })
	}
}

// learn finds out by which source the events of a look's jobs came in. Those that came
// in before the tail began are looked up, a page at a time: they are near each other.
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
		t.sources.put(newest, "") // unless it is found
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

// restAfter is how long to wait after so many looks that failed.
func restAfter(failures int, more bool) time.Duration {
	switch {
	case failures > 0:
		return min(tailRest<<min(failures, 10), tailRestMost)
	case more:
		return 0
	}
	return tailRest
}

// final reports whether an error is the caller's to mend, not time's.
func final(err error) bool {
	return core.IsKind(err, core.Unauthorized) || core.IsKind(err, core.Forbidden) || core.IsKind(err, core.Invalid)
}

// pause waits, unless ctx ends before.
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

// A memory holds a value for the things it was told of last: remembered many at least,
// and twice as many at the most. The zero memory is empty.
type memory[V comparable] struct{ now, before map[core.ID]V }

func (m *memory[V]) get(id core.ID) (V, bool) {
	v, ok := m.now[id]
	if !ok {
		v, ok = m.before[id]
	}
	return v, ok
}

// put remembers a value and reports whether there was another, or none.
func (m *memory[V]) put(id core.ID, v V) bool {
	last, ok := m.get(id)
	if m.now == nil || len(m.now) >= remembered {
		m.now, m.before = map[core.ID]V{}, m.now
	}
	m.now[id] = v
	return !ok || last != v
}
