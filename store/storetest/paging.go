package storetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

const saysPages = "A caller that follows After from page to page sees every event that existed at the first page exactly once, also while events are accepted"

// paging checks the limits of listings, and that pages stay consistent while rows are added.
// Operators turn pages while events arrive. If pages shifted, they would miss events, and a replay
// by pages would leave some out.
var paging = role{name: "Paging", checks: []check{
	{saysPages, "events", pageUnderInserts},
	{saysPages, "jobs", pageJobsUnderInserts},
	{saysPages, "jobs that change status", pageUnderChanges},
	{saysPages, "jobs behind thousands of newer jobs", pageOlderJobs},
	{"A limit of 0 means DefaultPage", "events", defaultEvents},
	{"A limit of 0 means DefaultPage", "jobs", defaultJobs},
	{"A limit may be MaxPage", "events", maxEvents},
	{"A limit may be MaxPage", "jobs", maxJobs},
	{"More is exact when a filter selects", "", moreFiltered},
}}

// many accepts n events with one job each, by several callers at once. The ids of the events are
// in the order of the result.
func (r *rig) many(n int) []core.Arrival {
	r.Helper()
	arrivals := make([]core.Arrival, n)
	for i := range arrivals {
		arrivals[i] = r.arrival(r.lane)
	}
	r.together(callers, func(i int) error {
		for ; i < n; i += callers {
			if _, err := r.store.Accept(context.Background(), arrivals[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return arrivals
}

// inserting calls read while four writers accept events. It returns when read has returned and the
// writers have stopped.
func (r *rig) inserting(read func() error) {
	r.Helper()
	const writers = 4
	stop := make(chan struct{})
	r.concurrently(writers+1, func(i int) error {
		if i == writers {
			defer close(stop)
			return read()
		}
		for {
			select {
			case <-stop:
				return nil
			default:
			}
			if _, err := r.store.Accept(context.Background(), r.arrival(r.lane)); err != nil {
				return err
			}
		}
	})
}

// Pages of three sizes lead through the events while others arrive. Each event of the beginning
// must be shown once.
func pageUnderInserts(r *rig) {
	n := r.scaled(120)
	want := r.many(n)
	for _, limit := range []int{1, 7, 50} {
		times := map[core.ID]int{}
		r.inserting(func() error {
			for f, more := (core.EventFilter{Limit: limit}), true; more; {
				p, err := r.store.Events(context.Background(), f)
				if err != nil {
					return err
				}
				if len(p.Items) == 0 {
					return fmt.Errorf("Events(%+v) is empty after a page with More", f)
				}
				more = p.More
				for _, e := range p.Items {
					times[e.ID]++
					f.After = e.ID
				}
			}
			return nil
		})
		for i, a := range want {
			if times[a.Event.ID] != 1 {
				r.Errorf("pages of %d: the %s event was shown %d times, want once", limit, nth(i), times[a.Event.ID])
			}
		}
	}
}

// jobPages reads all pages of a filter, and returns how often each job appeared.
func (r *rig) jobPages(f core.JobFilter) (map[core.ID]int, error) {
	times := map[core.ID]int{}
	for more := true; more; {
		p, err := r.store.Jobs(context.Background(), f)
		if err != nil {
			return nil, err
		}
		more = p.More && len(p.Items) > 0
		for _, j := range p.Items {
			times[j.ID]++
			f.After = j.ID
		}
	}
	return times, nil
}

// pageOlderJobs pages through jobs in each status of two lanes. Thousands of newer jobs are in
// another lane, so that a search of the newest rows finds none of the two lanes.
func pageOlderJobs(r *rig) {
	r.now = core.SystemClock().UTC().Truncate(time.Millisecond).Add(-2 * time.Hour)
	r.ids = core.NewIDs(func() time.Time { return r.now })
	var all []core.Job
	for range 2 {
		for _, r.lane = range []core.Lane{"handler/a", "queue/b"} {
			all = append(all, r.settled(core.Completed), r.settled(core.Dead), r.settled(core.Retryable), r.leased(r.arrival(r.lane), 100*time.Hour))
			over := r.leased(r.arrival(r.lane), time.Second)
			over.Status = core.Retryable
			all = append(all, over)
		}
	}
	for _, r.lane = range []core.Lane{"queue/b", "handler/a", "queue/b"} {
		all = append(all, r.put())
	}
	// The newer jobs are more than a listing looks at before it uses another index.
	for range 3 {
		r.accepted(r.arrival(lanes("queue/newer", 1000)...))
	}
	for _, lane := range []core.Lane{"", "handler/a", "queue/b", "queue/none"} {
		for _, status := range append(core.Statuses(), "") {
			if lane == "" && (status == "" || status == core.Available) {
				continue // the newer jobs match as well
			}
			want := filtered(newest(all), func(j core.Job) bool {
				return (lane == "" || j.Lane == lane) && (status == "" || j.Status == status)
			})
			r.wantJobPages(core.JobFilter{Lane: lane, Status: status}, want)
		}
	}
}

// wantJobPages checks pages of one, two and 50 jobs.
func (r *rig) wantJobPages(f core.JobFilter, want []core.Job) {
	r.Helper()
	for _, f.Limit = range []int{1, 2, 50} {
		f.After = ""
		for left, more := want, true; more; {
			p := r.jobs(f)
			n := min(f.Limit, len(left))
			if more = len(left) > n; p.More != more {
				r.Fatalf("Jobs(%s): More = %t, want %t", shortened(f), p.More, more)
			}
			r.equal("Jobs("+shortened(f)+")", ids(p.Items), ids(left[:n]))
			if left = left[n:]; n > 0 {
				f.After = want[len(want)-len(left)-1].ID
			}
		}
	}
}

// Pages of seven lead through the jobs of a lane while others arrive.
func pageJobsUnderInserts(r *rig) {
	want := r.many(r.scaled(120))
	var times map[core.ID]int
	r.inserting(func() (err error) {
		times, err = r.jobPages(core.JobFilter{Lane: r.lane, Limit: 7})
		return err
	})
	for i, a := range want {
		if times[a.Jobs[0].ID] != 1 {
			r.Errorf("pages of 7: the %s job was shown %d times, want once", nth(i), times[a.Jobs[0].ID])
		}
	}
}

// pageUnderChanges pages through all jobs while they are taken and settled.
func pageUnderChanges(r *rig) {
	n := r.scaled(120)
	want := r.accepted(r.arrival(lanes(r.lane, n)...))
	var times map[core.ID]int
	var mu sync.Mutex
	r.concurrently(2, func(i int) error {
		if i == 0 {
			got, err := r.jobPages(core.JobFilter{Limit: 3})
			mu.Lock()
			defer mu.Unlock()
			times = got
			return err
		}
		for range n / 10 {
			taken, err := r.store.Take(context.Background(), r.now, []core.Quota{r.quota(10)})
			if err != nil {
				return err
			}
			for _, j := range taken {
				if _, err := r.store.Settle(context.Background(), r.ended(j.Job, core.Completed)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for i, j := range want {
		if times[j.ID] != 1 {
			r.Errorf("pages of 3: the %s job was shown %d times, want once", nth(i), times[j.ID])
		}
	}
}

// A listing without a limit has DefaultPage events. One more makes a second page.
func defaultEvents(r *rig) {
	all := r.many(core.DefaultPage)
	p := r.events(core.EventFilter{})
	r.equal("Events: number at the default", len(p.Items), core.DefaultPage)
	r.equal("Events: More at the default", p.More, false)
	r.accepted(r.arrival())
	p = r.events(core.EventFilter{})
	if len(p.Items) != core.DefaultPage || !p.More {
		r.Fatalf("Events above the default = %d, more: %t; want %d, more: true", len(p.Items), p.More, core.DefaultPage)
	}
	rest := r.events(core.EventFilter{After: p.Items[len(p.Items)-1].ID})
	r.equal("Events: the rest", ids(rest.Items), []core.ID{all[0].Event.ID})
	r.equal("Events: More of the rest", rest.More, false)
}

// A listing of jobs without a limit has DefaultPage jobs. One more makes a second page.
func defaultJobs(r *rig) {
	r.accepted(r.arrival(lanes(r.lane, core.DefaultPage)...))
	p := r.jobs(core.JobFilter{})
	r.equal("Jobs: number at the default", len(p.Items), core.DefaultPage)
	r.equal("Jobs: More at the default", p.More, false)
	r.put()
	p = r.jobs(core.JobFilter{})
	r.equal("Jobs: number above the default", len(p.Items), core.DefaultPage)
	r.equal("Jobs: More above the default", p.More, true)
}

// A page of MaxPage events is permitted and complete.
func maxEvents(r *rig) {
	if r.slow {
		return // this takes 1,000 arrivals; the same check of jobs takes two
	}
	r.many(core.MaxPage)
	p := r.events(core.EventFilter{Limit: core.MaxPage})
	r.equal("Events: number at the largest page", len(p.Items), core.MaxPage)
	r.equal("Events: More at the largest page", p.More, false)
	r.put()
	p = r.events(core.EventFilter{Limit: core.MaxPage})
	r.equal("Events: number above the largest page", len(p.Items), core.MaxPage)
	r.equal("Events: More above the largest page", p.More, true)
}

// A page of MaxPage jobs is permitted and in order.
func maxJobs(r *rig) {
	half := core.MaxPage / 2
	want := r.accepted(r.arrival(lanes(r.lane, half)...))
	want = append(want, r.accepted(r.arrival(lanes(r.lane, half)...))...)
	p := r.jobs(core.JobFilter{Limit: core.MaxPage})
	r.equal("Jobs: the largest page", ids(p.Items), ids(newest(want)))
	r.equal("Jobs: More at the largest page", p.More, false)
	r.put()
	p = r.jobs(core.JobFilter{Limit: core.MaxPage})
	r.equal("Jobs: number above the largest page", len(p.Items), core.MaxPage)
	r.equal("Jobs: More above the largest page", p.More, true)
}

// moreFiltered stores rows after the page that the filter does not select.
func moreFiltered(r *rig) {
	r.put()
	r.lane = "queue/b"
	r.put()
	r.put()
	f := core.JobFilter{Lane: r.lane, Limit: 2}
	r.equal("Jobs of a lane: More", r.jobs(f).More, false)
	f.Limit = 1
	r.equal("Jobs of a lane: More with one left", r.jobs(f).More, true)
	f = core.JobFilter{Status: core.Running, Limit: 1}
	r.take(1)
	r.equal("Jobs of a status: More", r.jobs(f).More, false)
	r.take(1)
	r.equal("Jobs of a status: More with one left", r.jobs(f).More, true)
}
