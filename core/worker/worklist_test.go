package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// pile is a Worklist in memory, with a switch for being out of order. Each call
// takes delay.
type pile struct {
	mu     sync.Mutex
	jobs   map[core.ID]*core.Job
	leases int
	looks  int   // calls of Due
	takes  []int // sizes of the hauls
	broken bool
	delay  time.Duration
	lag    time.Duration // between settling and knowing it

	settled  []core.Outcome
	released int
}

func newPile() *pile { return &pile{jobs: map[core.ID]*core.Job{}} }

// add puts n jobs that are due now into a lane.
func (p *pile) add(lane core.Lane, n, attempts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range n {
		id := core.ID(fmt.Sprintf("%s-%04d", lane, len(p.jobs)))
		p.jobs[id] = &core.Job{ID: id, Lane: lane, Status: core.Available, MaxAttempts: attempts, DueAt: time.Now()}
	}
}

var errBroken = errors.New("out of order")

func (p *pile) enter() error {
	time.Sleep(p.delay) // virtual
	p.mu.Lock()
	if p.broken {
		p.mu.Unlock()
		return errBroken
	}
	return nil
}

func (p *pile) breakdown(broken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = broken
}

func (p *pile) Due(_ context.Context, lanes []core.Lane) (map[core.Lane]time.Time, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	p.looks++
	due := map[core.Lane]time.Time{}
	for _, j := range p.jobs {
		at, ok := due[j.Lane]
		if slices.Contains(lanes, j.Lane) && !j.DueAt.IsZero() && (!ok || j.DueAt.Before(at)) {
			due[j.Lane] = j.DueAt
		}
	}
	return due, nil
}

func (p *pile) Take(_ context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	p.leases++
	var taken []core.TakenJob
	for _, q := range quotas {
		for _, j := range p.due(q.Lane, now)[:min(q.N, len(p.due(q.Lane, now)))] {
			j.Status, j.DueAt, j.Lease = core.Running, now.Add(q.Hold), core.Lease(fmt.Sprint(p.leases))
			j.Attempt++
			taken = append(taken, core.TakenJob{Job: *j})
		}
	}
	p.takes = append(p.takes, len(taken))
	return taken, nil
}

func (p *pile) due(lane core.Lane, now time.Time) []*core.Job {
	var due []*core.Job
	for _, j := range p.jobs {
		if j.Lane == lane && !j.DueAt.IsZero() && !j.DueAt.After(now) {
			due = append(due, j)
		}
	}
	slices.SortFunc(due, func(a, b *core.Job) int {
		return cmp.Or(a.DueAt.Compare(b.DueAt), cmp.Compare(a.ID, b.ID))
	})
	return due
}

func (p *pile) Settle(_ context.Context, outcomes ...core.Outcome) ([]core.ID, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.mu.Unlock(); time.Sleep(p.lag) }()
	var lost []core.ID
	for _, o := range outcomes {
		j := p.jobs[o.JobID]
		if j.Lease != o.Lease {
			lost = append(lost, o.JobID)
			continue
		}
		j.Status, j.DueAt, j.Lease, j.Attempt = o.Status, o.DueAt, "", o.Attempt.Number
		p.settled = append(p.settled, o)
	}
	return lost, nil
}

func (p *pile) Release(_ context.Context, due time.Time, jobs ...core.Job) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer p.mu.Unlock()
	for _, r := range jobs {
		if j := p.jobs[r.ID]; j.Lease == r.Lease {
			j.Status, j.DueAt, j.Lease = core.Available, due, ""
			j.Attempt--
			p.released++
		}
	}
	return nil
}

func (p *pile) Recover(context.Context, time.Time, []core.Lane) (int, error) { return 0, nil }

func (p *pile) count(s core.Status) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, j := range p.jobs {
		if j.Status == s {
			n++
		}
	}
	return n
}
