package pull

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A shelf is a Worklist in memory. Each call takes delay, and returns err if it is set.
type shelf struct {
	ids *core.IDs

	mu      sync.Mutex
	jobs    map[core.ID]*core.Job
	leases  int
	looks   []time.Time // calls of Due
	lanes   int         // number of lanes of the newest look
	takes   []haul
	settles []int // sizes of calls of Settle
	settled []core.Outcome
	acks    int
	err     error // if set, the error of every call
	releases,
	failing int // calls of Release, and how many of them fail

	delay    time.Duration
	takeSlow time.Duration // in addition to delay
	dueSlow  time.Duration
	payload  []byte // of each message
	lose     bool   // another process takes the jobs between Held and Settle

	gates map[core.Lane]core.Gate
}

// A haul is a Take and its result.
type haul struct {
	lane      core.Lane
	want, got int
	whole     int // jobs that came with their event
	hold      time.Duration
	at        time.Time
}

func newShelf() *shelf { return &shelf{ids: core.NewIDs(time.Now), jobs: map[core.ID]*core.Job{}} }

// put stores n messages that are due now.
func (s *shelf) put(queue string, n, attempts int) (ids []core.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		id := s.ids.Next()
		s.jobs[id] = &core.Job{ID: id, Lane: core.QueueLane(queue), Status: core.Available, MaxAttempts: attempts, DueAt: time.Now()}
		ids = append(ids, id)
	}
	return ids
}

// change changes a job as another process would.
func (s *shelf) change(id core.ID, f func(*core.Job)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.jobs[id])
}

func (s *shelf) job(id core.ID) core.Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.jobs[id]
}

func (s *shelf) count(status core.Status) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if j.Status == status {
			n++
		}
	}
	return n
}

func (s *shelf) breakdown(err error) { s.set(func() { s.err = err }) }

// set changes fields of the shelf under its lock.
func (s *shelf) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *shelf) nTakes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.takes)
}

func (s *shelf) hauls() []haul {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.takes)
}

func (s *shelf) nLooks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.looks)
}

var (
	errDown   = core.Refuse(core.Unavailable, "the database cannot be reached")
	errDefect = errors.New("defect")
)

// enter waits for delay plus slow, and then locks the shelf, or returns its err.
func (s *shelf) enter(slow *time.Duration) error {
	s.mu.Lock()
	d := s.delay
	if slow != nil {
		d += *slow
	}
	s.mu.Unlock()
	time.Sleep(d) // virtual
	s.mu.Lock()
	if s.err != nil {
		defer s.mu.Unlock()
		return s.err
	}
	return nil
}

func (s *shelf) Due(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error) {
	s.mu.Lock()
	s.looks, s.lanes = append(s.looks, time.Now()), len(lanes)
	slow := s.dueSlow
	s.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := s.enter(nil); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	due := map[core.Lane]core.Outlook{}
	for _, j := range s.jobs {
		if o := due[j.Lane]; slices.Contains(lanes, j.Lane) && !j.DueAt.IsZero() && (o.DueAt.IsZero() || j.DueAt.Before(o.DueAt)) {
			due[j.Lane] = core.Outlook{DueAt: j.DueAt}
		}
	}
	for l, g := range s.gates {
		due[l] = core.Outlook{DueAt: due[l].DueAt, Gate: g}
	}
	return due, nil
}

func (s *shelf) Take(_ context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	q := quotas[0]
	s.mu.Lock()
	at := len(s.takes)
	s.takes = append(s.takes, haul{lane: q.Lane, want: q.N, hold: q.Hold, at: time.Now()})
	s.mu.Unlock()
	if err := s.enter(&s.takeSlow); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	s.leases++
	var due []*core.Job
	for _, j := range s.jobs {
		if j.Lane == q.Lane && !j.DueAt.IsZero() && !j.DueAt.After(now) && !s.gates[j.Lane].Held(now) {
			due = append(due, j)
		}
	}
	slices.SortFunc(due, func(a, b *core.Job) int { return cmp.Or(a.DueAt.Compare(b.DueAt), cmp.Compare(a.ID, b.ID)) })
	var taken []core.TakenJob
	bytes := 0
	for i, j := range due[:min(q.N, len(due))] {
		bytes += len(s.payload)
		j.Status, j.DueAt, j.Lease = core.Running, now.Add(q.Hold), core.Lease(fmt.Sprint("L", s.leases))
		j.Attempt++
		if i > 0 && bytes > q.Bytes {
			taken = append(taken, core.TakenJob{Job: *j, Bare: true})
			continue
		}
		s.takes[at].whole++
		taken = append(taken, core.TakenJob{Job: *j, Event: core.Event{Payload: s.payload}})
	}
	s.takes[at].got = len(taken)
	return taken, nil
}

func (s *shelf) Settle(_ context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	if err := s.enter(nil); err != nil {
		return core.Settlement{}, err
	}
	defer s.mu.Unlock()
	s.settles = append(s.settles, len(outcomes))
	var after core.Settlement
	for _, o := range outcomes {
		j := s.jobs[o.JobID]
		if j.Lease != o.Lease || s.lose {
			after.Lost = append(after.Lost, o.JobID)
			continue
		}
		j.Status, j.DueAt, j.Lease, j.LastError = o.Status, o.DueAt, "", o.Attempt.Error
		s.settled = append(s.settled, o)
	}
	return after, nil
}

func (s *shelf) Release(_ context.Context, due time.Time, jobs ...core.Job) error {
	if err := s.enter(nil); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if s.releases++; s.releases <= s.failing {
		return errDown
	}
	for _, r := range jobs {
		if j := s.jobs[r.ID]; j.Lease == r.Lease {
			j.Status, j.DueAt, j.Lease = core.Available, due, ""
			j.Attempt--
		}
	}
	return nil
}

// meant returns the held jobs that match the refs.
func (s *shelf) meant(lane core.Lane, refs []core.Ref) (meant []*core.Job) {
	for _, r := range refs {
		j := s.jobs[r.ID]
		if j != nil && j.Lane == lane && j.Status == core.Running && (r.Lease == "" || r.Lease == j.Lease) && !slices.Contains(meant, j) {
			meant = append(meant, j)
		}
	}
	slices.SortFunc(meant, func(a, b *core.Job) int { return cmp.Compare(a.ID, b.ID) })
	return meant
}

func (s *shelf) Ack(_ context.Context, now time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	if err := s.enter(nil); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	s.acks++
	meant := s.meant(lane, refs)
	for _, j := range meant {
		j.Status, j.DueAt, j.Lease, j.FinishedAt = core.Completed, time.Time{}, "", now
	}
	return len(meant), nil
}

func (s *shelf) AckLined(ctx context.Context, now time.Time, lane core.Lane, _ int, refs []core.Ref) (int, error) {
	return s.Ack(ctx, now, lane, refs)
}

func (s *shelf) Extend(_ context.Context, end time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	if err := s.enter(nil); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	meant := s.meant(lane, refs)
	for _, j := range meant {
		j.DueAt = end
	}
	return len(meant), nil
}

func (s *shelf) Held(_ context.Context, lane core.Lane, refs []core.Ref) (held []core.TakenJob, err error) {
	if err := s.enter(nil); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, j := range s.meant(lane, refs) {
		held = append(held, core.TakenJob{Job: *j})
	}
	return held, nil
}

// A desk is a Puller over a shelf.
type desk struct {
	*shelf
	*Puller
	bell *core.Bell

	heardMu sync.Mutex
	facts   []core.Fact
}

const visibility = 30 * time.Second

// newDesk makes a desk with the queues "q" and "other".
func newDesk() *desk { return besides(newShelf()) }

// besides makes another desk over the same shelf, like another process over the same
// database.
func besides(s *shelf) *desk {
	d := &desk{shelf: s, bell: &core.Bell{}}
	d.Puller = New(Deps{
		Worklist: s,
		Bell:     d.bell,
		Clock:    core.SystemClock,
		Observe:  func(f core.Fact) { d.heardMu.Lock(); defer d.heardMu.Unlock(); d.facts = append(d.facts, f) },
		Obituary: func(m core.TakenJob, o core.Outcome) *core.Arrival {
			return &core.Arrival{Event: core.Event{ID: "about-" + m.ID}, Jobs: []core.NewJob{{Lane: "alert/1"}}}
		},
		Rest: time.Second,
	}, []Queue{{Name: "q", Visibility: visibility}, {Name: "other", Visibility: visibility}})
	return d
}

// Ack and Extend call the Puller's methods, not the shelf's.
func (d *desk) Ack(ctx context.Context, queue string, ids []string) (int, error) {
	return d.Puller.Ack(ctx, queue, ids)
}

func (d *desk) Extend(ctx context.Context, queue string, ids []string, v time.Duration) (int, error) {
	return d.Puller.Extend(ctx, queue, ids, v)
}

func (d *desk) Receive(ctx context.Context, queue string, n int, wait time.Duration) ([]core.TakenJob, error) {
	return d.Puller.Receive(ctx, Request{Queue: queue, N: n, Wait: wait})
}

// send stores n messages and rings the bell, as intake in this process does.
func (d *desk) send(n, attempts int) []core.ID {
	ids := d.put("q", n, attempts)
	d.bell.Ring("queue/q")
	return ids
}

func factsOf[F core.Fact](d *desk) (found []F) {
	d.heardMu.Lock()
	defer d.heardMu.Unlock()
	for _, f := range d.facts {
		if f, ok := f.(F); ok {
			found = append(found, f)
		}
	}
	return found
}

// pulled returns the number of messages reported for an action.
func (d *desk) pulled(a core.PullAction) (n int) {
	for _, f := range factsOf[core.Pulled](d) {
		if f.Action == a {
			n += f.Messages
		}
	}
	return n
}

// A reply is the result of a Receive, and how long the call took.
type reply struct {
	messages []core.TakenJob
	err      error
	after    time.Duration
}

func (r reply) ids() (ids []core.ID) {
	for _, m := range r.messages {
		ids = append(ids, m.ID)
	}
	return ids
}

// receive calls Receive on a goroutine of its own.
func (d *desk) receive(ctx context.Context, n int, wait time.Duration) <-chan reply {
	c, began := make(chan reply, 1), time.Now()
	go func() {
		messages, err := d.Receive(ctx, "q", n, wait)
		c <- reply{messages, err, time.Since(began)}
	}()
	return c
}

// get receives up to n messages without a wait.
func (d *desk) get(t *testing.T, n int) []core.TakenJob {
	t.Helper()
	messages, err := d.Receive(t.Context(), "q", n, 0)
	if err != nil {
		t.Fatalf("Receive: %v", err)
	}
	return messages
}

// got returns the reply if there is one by now.
func got(c <-chan reply) (reply, bool) {
	synctest.Wait()
	select {
	case r := <-c:
		return r, true
	default:
		return reply{}, false
	}
}

// in runs a test in virtual time, and closes the desk at the end.
func in(t *testing.T, f func(*testing.T, *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		f(t, d)
		d.Close()
	})
}
