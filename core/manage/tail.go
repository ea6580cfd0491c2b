package manage

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A TailStore has the methods of a store that Tail uses.
type TailStore interface {
	Events(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error)
	Read(ctx context.Context, from core.ID, f core.EventFilter) (core.Page[core.Event], error)
	JobsOf(ctx context.Context, events []core.ID) (map[core.ID][]core.Job, error)
	Finished(ctx context.Context, since time.Time, after core.ID, limit int) (core.Page[core.Job], error)
}

// lateMost is how long after an id was made, or a time was read, its row may appear:
// writing takes time, and clocks differ. A Cursor stays so far behind the present.
const lateMost = 5 * time.Second

// Bounds of a look. An event may concern thousands of consumers, and their jobs must fit
// into memory, here and in the reader of the news.
const (
	// manyJobs is the number of jobs after which a look ends. The next look continues.
	manyJobs = 5000

	// jobsEach is how many jobs of one event a look returns, the first ones. Of the others
	// it returns only the finished ones.
	jobsEach = 1000

	// fewEvents is how many events' jobs the first query reads, before the number of jobs
	// per event is known. severalEvents bounds the later queries.
	fewEvents     = 10
	severalEvents = 50
)

// MaxFollowed is how many events a look may follow.
const MaxFollowed = 100

// A Cursor is the position of a tail: after this event, and after the jobs that finished
// before this time, or at this time with an id up to this job's. A zero event or time
// stands for now.
type Cursor struct {
	Event    core.ID
	Finished time.Time
	Job      core.ID
}

// News is the result of a look: events, the oldest first, without payloads, and jobs as
// they are now. The jobs are the jobs of the events, the finished jobs, and the unfinished
// jobs of followed events. Successive looks may repeat a job; the caller leaves out jobs
// that it has seen in the same state.
type News struct {
	Events []core.Event
	Jobs   []core.Job
	Next   Cursor
	More   bool // there are more already, which a look at Next finds

	// Followed is how many of the events to follow were looked at, the first ones. If such
	// an event has no jobs among the news, all its jobs have finished.
	Followed int
}

// Tail reads news. A caller asks it about once a second.
type Tail struct {
	// Names are the configured names; nil knows none.
	Names *Names

	store TailStore
	clock core.Clock
}

// NewTail makes the service.
func NewTail(store TailStore, clock core.Clock) *Tail { return &Tail{store: store, clock: clock} }

// Look returns the news after a cursor, at most [core.MaxPage] events and as many finished
// jobs; Next continues after them. The next look repeats the events of the last seconds,
// and the jobs that finished then. Of at most [MaxFollowed] further events it returns the
// unfinished jobs, however old they are.
func (t *Tail) Look(ctx context.Context, from Cursor, follow []core.ID) (News, error) {
	now := t.clock()
	news := News{Next: from}
	if from.Event == "" {
		news.Next.Event = core.FirstID(now)
	} else if err := t.events(ctx, now, &news); err != nil {
		return News{}, err
	}
	if from.Finished.IsZero() {
		news.Next.Finished = now.Truncate(time.Millisecond)
	} else if err := t.finished(ctx, now, &news); err != nil {
		return News{}, err
	}
	err := t.follow(ctx, follow, &news)
	news.Jobs = t.Names.places().Jobs(news.Jobs)
	return news, err
}

// events finds the events after the cursor and their jobs.
func (t *Tail) events(ctx context.Context, now time.Time, news *News) error {
	events, more, err := t.behind(ctx, news.Next.Event)
	if err != nil {
		return err
	}
	jobs, reached, err := t.jobsOf(ctx, idsOf(events), every)
	if err != nil {
		return err
	}
	more = more || reached < len(events)
	news.Events, news.Jobs = events[:reached], jobs
	edge := core.FirstID(now.Add(-lateMost))
	if more {
		last := events[reached-1].ID
		news.More = last < edge
		edge = min(edge, last)
	}
	news.Next.Event = max(news.Next.Event, edge)
	return nil
}

func idsOf(events []core.Event) []core.ID {
	ids := make([]core.ID, len(events))
	for i, e := range events {
		ids[i] = e.ID
	}
	return ids
}

// jobsOf finds the jobs of events, up to jobsEach of each, until it has seen manyJobs. It
// returns for how many events it did so: for at least one, if there is one.
func (t *Tail) jobsOf(ctx context.Context, events []core.ID, tells func(core.Job) bool) (found []core.Job, reached int, err error) {
	seen, most := 0, 1
	for ask := fewEvents; reached < len(events) && seen < manyJobs && len(found) < manyJobs; {
		asked := events[reached:min(reached+ask, len(events))]
		jobs, err := t.store.JobsOf(ctx, asked)
		if err != nil {
			return nil, 0, err
		}
		for _, id := range asked {
			if len(found) >= manyJobs {
				break
			}
			seen, most = seen+len(jobs[id]), max(most, len(jobs[id]))
			found = append(found, first(jobsEach, jobs[id], tells)...)
			reached++
		}
		ask = min(max(1, manyJobs/most), severalEvents)
	}
	return found, reached, nil
}

// first returns up to n of the jobs for which tells is true.
func first(n int, jobs []core.Job, tells func(core.Job) bool) (told []core.Job) {
	for _, j := range jobs {
		if len(told) < n && tells(j) {
			told = append(told, j)
		}
	}
	return told
}

func every(core.Job) bool { return true }

func unfinished(j core.Job) bool { return !j.Status.Finished() }

// follow finds the unfinished jobs of events.
func (t *Tail) follow(ctx context.Context, events []core.ID, news *News) error {
	jobs, reached, err := t.jobsOf(ctx, events[:min(len(events), MaxFollowed)], unfinished)
	news.Followed = reached
	news.add(jobs)
	return err
}

// add adds jobs, except jobs that are among the news already.
func (n *News) add(jobs []core.Job) {
	told := make(map[core.ID]bool, len(n.Jobs))
	for _, j := range n.Jobs {
		told[j.ID] = true
	}
	for _, j := range jobs {
		if !told[j.ID] {
			n.Jobs = append(n.Jobs, j)
		}
	}
}

// behind returns the events above an id, the oldest first, and whether there are more.
// Usually they are few, and found from the newest one on. If there are many, it reads from
// the oldest.
func (t *Tail) behind(ctx context.Context, id core.ID) ([]core.Event, bool, error) {
	var found []core.Event
	for _, limit := range []int{core.DefaultPage, core.MaxPage - core.DefaultPage} {
		f := core.EventFilter{Limit: limit}
		if len(found) > 0 {
			f.After = found[len(found)-1].ID
		}
		page, err := t.store.Events(ctx, f)
		if err != nil {
			return nil, false, err
		}
		end := slices.IndexFunc(page.Items, func(e core.Event) bool { return e.ID <= id })
		if end < 0 && page.More {
			found = append(found, page.Items...)
			continue
		}
		if end < 0 {
			end = len(page.Items)
		}
		found = append(found, page.Items[:end]...)
		slices.Reverse(found)
		return found, false, nil
	}
	page, err := t.store.Read(ctx, behind(id), core.EventFilter{Limit: core.MaxPage})
	for i := range page.Items {
		page.Items[i].Payload, page.Items[i].Headers = nil, nil
	}
	return page.Items, page.More && len(page.Items) > 0, err
}

// finished finds the jobs that finished after the cursor.
func (t *Tail) finished(ctx context.Context, now time.Time, news *News) error {
	next := &news.Next
	page, err := t.store.Finished(ctx, next.Finished, next.Job, core.MaxPage)
	if err != nil {
		return err
	}
	news.add(page.Items)
	edge := now.Add(-lateMost).Truncate(time.Millisecond)
	if page.More && len(page.Items) > 0 {
		if last := page.Items[len(page.Items)-1]; last.FinishedAt.Before(edge) {
			next.Finished, next.Job, news.More = last.FinishedAt, last.ID, true
			return nil
		}
	}
	if edge.After(next.Finished) {
		next.Finished, next.Job = edge, ""
	}
	return nil
}
