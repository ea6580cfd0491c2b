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

// pile is a Worklist in memory. Each call takes delay, and fails while broken is set.
type pile struct {
	mu        sync.Mutex
	jobs      map[core.ID]*core.Job
	leases    int
	looks     int   // calls of Due
	lapses    int   // calls of Lapsed
	sights    int   // calls of Strays
	takes     []int // number of jobs of each Take
	broken    bool
	delay     time.Duration
	lag       time.Duration // from storing outcomes to the return of Settle
	takeDelay time.Duration // from taking jobs to the return of Take

	lines    map[core.Lane]int // limits in the quotas of the newest claims
	settled  []core.Outcome
	released int

	gates  map[core.Lane]*pileGate
	strays map[core.Lane]time.Time
}

func newPile() *pile {
	return &pile{jobs: map[core.ID]*core.Job{}, lines: map[core.Lane]int{}, gates: map[core.Lane]*pileGate{}, strays: map[core.Lane]time.Time{}}
}

// A pileGate is a gate with the behavior that core.Worklist documents.
type pileGate struct {
	core.Gate
	prober core.Lease
}

func (p *pile) gate(l core.Lane) *pileGate {
	if p.gates[l] == nil {
		p.gates[l] = &pileGate{}
	}
	return p.gates[l]
}

func (g *pileGate) admits(now time.Time, pass *core.Pass, l core.Lease) bool {
	switch {
	case g.Held(now):
		return false
	case pass == nil:
		return !g.Open() && g.Ramp(now) == 0
	case !pass.Closed.Equal(g.ClosedAt):
		return false
	case pass.Probe > 0:
		if !g.Open() || g.ProbeAt(now, pass.Probe).After(now) {
			return false
		}
		g.OpenUntil, g.prober = now.Add(pass.Probe), l
		return true
	}
	return !g.Open() && !g.StartAt(now).After(now.Add(pass.Ahead))
}

func (g *pileGate) through(now time.Time, pass *core.Pass, j core.Job) core.TakenJob {
	taken := core.TakenJob{Job: j, Probe: pass != nil && pass.Probe > 0}
	if pass != nil && pass.Interval > 0 {
		taken.StartAt = g.StartAt(now)
		g.NextAt = taken.StartAt.Add(pass.Interval)
	}
	return taken
}

func (g *pileGate) move(o core.Outcome) {
	probe := g.Open() && g.prober == o.Lease
	switch {
	case o.Verdict == core.NoVerdict || g.Open() && !probe:
	case o.Verdict == core.Success:
		if probe {
			g.ClosedAt, g.MovedBy = o.At, o.JobID
		}
		g.Failures, g.OpenUntil = 0, time.Time{}
	default:
		b, open := o.Breaker.Numbers(), g.Open()
		if g.Failures++; !open && g.Failures < b.Failures {
			return
		}
		g.OpenUntil, g.prober, g.MovedBy = o.At.Add(b.Cooldown), "", o.JobID
		if open {
			g.MovedBy = ""
		}
	}
}

func (p *pile) CloseBreakers(_ context.Context, now time.Time, lanes ...core.Lane) (closed []core.Lane, err error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	for _, l := range lanes {
		g := p.gate(l)
		if g.Open() {
			g.ClosedAt, g.prober, closed = now, "", append(closed, l)
		}
		g.Failures, g.OpenUntil, g.MovedBy = 0, time.Time{}, ""
	}
	return closed, nil
}

// add puts n jobs into a lane. They are due now.
func (p *pile) add(lane core.Lane, n, attempts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range n {
		id := core.ID(fmt.Sprintf("%s-%04d", lane, len(p.jobs)))
		p.jobs[id] = &core.Job{ID: id, Lane: lane, Status: core.Available, MaxAttempts: attempts, DueAt: time.Now()}
	}
}

// addLater puts one job into a lane. It is due after the duration after.
func (p *pile) addLater(lane core.Lane, after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := core.ID(fmt.Sprintf("%s-%04d", lane, len(p.jobs)))
	p.jobs[id] = &core.Job{ID: id, Lane: lane, Status: core.Available, MaxAttempts: 1, DueAt: time.Now().Add(after)}
}

func (p *pile) looked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.looks
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

func (p *pile) Due(_ context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	p.looks++
	due := map[core.Lane]core.Outlook{}
	for l, g := range p.gates {
		due[l] = core.Outlook{Gate: g.Gate}
	}
	first := map[core.Lane]*core.Job{}
	for _, j := range p.jobs {
		if f := first[j.Lane]; !j.DueAt.IsZero() && (f == nil || j.DueAt.Before(f.DueAt)) {
			first[j.Lane] = j
		}
	}
	for lane, j := range first {
		if slices.Contains(lanes, lane) {
			o := due[lane]
			o.DueAt = j.DueAt
			due[lane] = o
		}
	}
	return due, nil
}

func (p *pile) Take(_ context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.mu.Unlock(); time.Sleep(p.takeDelay) }()
	p.leases++
	lease := core.Lease(fmt.Sprint(p.leases))
	var taken []core.TakenJob
	for _, q := range quotas {
		p.lines[q.Lane] = q.Lines
		due := p.due(q.Lane, now, q.N, func(*core.Job) bool { return true })
		if len(due) == 0 || !p.gate(q.Lane).admits(now, q.Pass, lease) {
			continue
		}
		for _, j := range due {
			j.Status, j.DueAt, j.Lease = core.Running, now.Add(q.Hold), lease
			j.Attempt++
			taken = append(taken, p.gate(q.Lane).through(now, q.Pass, *j))
		}
	}
	p.takes = append(p.takes, len(taken))
	return taken, nil
}

// due returns the first n jobs of a lane that are due and wanted. Tests with thousands of jobs ask for
// a few, so the others are not sorted.
func (p *pile) due(lane core.Lane, now time.Time, n int, wanted func(*core.Job) bool) []*core.Job {
	var due []*core.Job
	earlier := func(a, b *core.Job) int { return cmp.Or(a.DueAt.Compare(b.DueAt), cmp.Compare(a.ID, b.ID)) }
	for _, j := range p.jobs {
		if j.DueAt.IsZero() || j.Lane != lane || j.DueAt.After(now) || !wanted(j) || len(due) == n && (n == 0 || earlier(j, due[n-1]) > 0) {
			continue
		}
		at, _ := slices.BinarySearchFunc(due, j, earlier)
		due = slices.Insert(due[:min(len(due), max(n-1, 0))], at, j)
	}
	return due
}

func (p *pile) Settle(_ context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	if err := p.enter(); err != nil {
		return core.Settlement{}, err
	}
	defer func() { p.mu.Unlock(); time.Sleep(p.lag) }()
	s := core.Settlement{Gates: map[core.Lane]core.Gate{}}
	for _, o := range outcomes {
		j := p.jobs[o.JobID]
		if j.Lease != o.Lease {
			s.Lost = append(s.Lost, o.JobID)
			continue
		}
		j.Status, j.DueAt, j.Lease, j.Attempt = o.Status, o.DueAt, "", o.Attempt.Number
		p.settled = append(p.settled, o)
		p.pass(o)
		p.gate(o.Lane).move(o)
		if o.Probe || o.Verdict == core.Failure {
			s.Gates[o.Lane] = p.gate(o.Lane).Gate
		}
	}
	return s, nil
}

// Strays takes now as the time since when a lane is a stray, unless the test has set an
// earlier time in strays.
func (p *pile) Strays(_ context.Context, now time.Time, known []core.Lane) (map[core.Lane]time.Time, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	p.sights++
	for _, j := range p.jobs {
		if _, ok := p.strays[j.Lane]; !ok && !j.DueAt.IsZero() && !slices.Contains(known, j.Lane) {
			p.strays[j.Lane] = now
		}
	}
	return p.strays, nil
}

func (p *pile) Lapsed(_ context.Context, now time.Time, lanes []core.Lane, limit int) ([]core.TakenJob, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	p.lapses++
	var lapsed []core.TakenJob
	for _, l := range lanes {
		gone := func(j *core.Job) bool { return j.Status == core.Running && j.Attempt >= j.MaxAttempts }
		for _, j := range p.due(l, now, limit-len(lapsed), gone) {
			lapsed = append(lapsed, core.TakenJob{Job: *j})
		}
	}
	return lapsed, nil
}

func (p *pile) Release(_ context.Context, due time.Time, jobs ...core.Job) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer p.mu.Unlock()
	for _, r := range jobs {
		if j := p.jobs[r.ID]; j != nil && j.Lease == r.Lease {
			j.Status, j.DueAt, j.Lease = core.Available, due, ""
			j.Attempt--
			p.released++
		}
	}
	return nil
}

func (p *pile) Recover(context.Context, time.Time, []core.Lane) (int, error) { return 0, nil }

func (p *pile) sought() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sights
}

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
