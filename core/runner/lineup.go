package runner

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	// moveTimeout is the longest wait for a run to be moved, of a caller that can try again
	// later.
	moveTimeout = 10 * time.Second

	// shared and sharedBytes bound how many ends, and about how many bytes of them, one
	// turn stores for callers that joined it one by one.
	shared      = 100
	sharedBytes = 1 << 20
)

// A lineup is the queue of this process's callers that want to move one run. One caller at
// a time moves the run, in the order of arrival. So a conflict can come only from another
// process.
//
// A lineup exists while callers use it: the last one that leaves removes it from the runner.
type lineup struct {
	run  core.ID
	head chan struct{} // full while a caller moves the run

	// The runner's mu protects these fields.
	users int
	next  *turn // the turn that ends may still join; nil for none
}

// A seat is a caller's part of a turn: the ends that the caller wants to store. The first
// caller at the head of the line executes the whole turn, and the others find it finished.
// If that caller gives up, the next one continues the same turn, which knows which
// transitions were sent and not answered.
type seat struct {
	line  *lineup
	turn  *turn
	ends  []core.StepEnd
	from  int // index of the seat's first end in the turn, once the turn is closed
	fresh bool

	// single has a turn for each end, in place of a refused turn.
	single []*turn
}

// join puts ends of one run in line. Fresh says that the situation of the only end may
// still be the run's present one.
func (r *Runner) join(fresh bool, ends ...core.StepEnd) *seat {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &seat{line: r.countIn(ends[0].Job.Situation.Run.ID), ends: ends, fresh: fresh}
	// A turn grows until it is full or its first caller is at the head of the line. One large turn
	// would make all its callers wait for one large batch.
	t, n := s.line.next, weigh(ends)
	if t == nil || t.count+len(ends) > shared || t.bytes+n > sharedBytes {
		t = newTurn()
		s.line.next = t
	}
	t.seats, t.count, t.bytes = append(t.seats, s), t.count+len(ends), t.bytes+n
	s.turn = t
	return s
}

// countIn counts a caller in for the line of a run, and makes the line if it is missing. The
// caller holds mu.
func (r *Runner) countIn(run core.ID) *lineup {
	l := r.lines[run]
	if l == nil {
		l = &lineup{run: run, head: make(chan struct{}, 1)}
		r.lines[run] = l
	}
	l.users++
	return l
}

// weigh returns about how many bytes ends have: those of replies, which may be large.
func weigh(ends []core.StepEnd) (n int) {
	for _, e := range ends {
		n += len(e.Body) + len(e.Attempt.Response)
	}
	return n
}

// leave takes a seat out of its line. Ends that no turn has begun to store are dropped.
func (r *Runner) leave(s *seat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := s.turn; t != nil && !t.closed {
		t.seats = slices.DeleteFunc(t.seats, func(o *seat) bool { return o == s })
		t.count, t.bytes = t.count-len(s.ends), t.bytes-weigh(s.ends)
	}
	r.countOut(s.line)
}

// countOut counts a caller out, and forgets a line without callers. The caller holds mu.
func (r *Runner) countOut(l *lineup) {
	if l.users--; l.users == 0 {
		delete(r.lines, l.run)
	}
}

// enter waits until the caller is at the head of the line. Waited says whether that took
// time.
func (l *lineup) enter(ctx context.Context) (waited bool, err error) {
	// The first try does not wait. It tells whether the run may have moved before the caller was
	// at the head.
	select {
	case l.head <- struct{}{}:
		return false, nil
	default:
	}
	select {
	case l.head <- struct{}{}:
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}

// atHead calls do while the seats of different runs are at the heads of their lines. It
// enters the lines in the order of their runs; otherwise two callers could wait for each
// other.
func (r *Runner) atHead(ctx context.Context, seats []*seat, do func() error) error {
	seats = slices.Clone(seats)
	slices.SortFunc(seats, func(a, b *seat) int { return strings.Compare(string(a.line.run), string(b.line.run)) })
	for _, s := range seats { // also after an error
		defer r.leave(s)
	}
	for _, s := range seats {
		waited, err := s.line.enter(ctx)
		if err != nil {
			return err
		}
		defer func() { <-s.line.head }()
		// A caller that waited has been overtaken: the one before it moved the run.
		s.fresh = s.fresh && !waited
		r.close(s)
	}
	return do()
}

// close stops more ends from joining the turn of a seat.
func (r *Runner) close(s *seat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := s.turn
	if t == nil || t.closed {
		return
	}
	// The ends of all seats become one list. Each seat keeps the index of its first end.
	t.closed = true
	if s.line.next == t {
		s.line.next = nil
	}
	t.ends = slices.Clip(t.seats[0].ends) // not copied: most turns have one seat
	for _, o := range t.seats[1:] {
		o.from = len(t.ends)
		t.ends = append(t.ends, o.ends...)
	}
	t.event = t.ends[0].Job.Event
	// The only end came with the run as it was read with the job, so the run is not read again.
	// If the run has moved all the same, the store refuses the transition.
	if len(t.ends) == 1 && s.fresh {
		t.useSituation()
	}
}

// split replaces a shared turn by a turn for each end, unless it is over. The store refused
// the shared turn because of one end, and the others must not fail with it.
func (r *Runner) split(s *seat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.turn == nil || s.turn.over {
		return
	}
	for _, o := range s.turn.seats {
		for _, e := range o.ends {
			o.single = append(o.single, turnOf(e))
		}
		// A seat without a turn uses single from now on.
		o.turn = nil
	}
}

// of returns the turn that stores the nth end, and the end's index in it.
func (s *seat) of(n int) (t *turn, at int) {
	if s.turn == nil {
		return s.single[n], 0
	}
	return s.turn, s.from + n
}

// settled returns the result of the nth end.
func (s *seat) settled(n int) core.StepSettled {
	t, at := s.of(n)
	return t.settled(at)
}

// made returns the transition that stored the nth end.
func (s *seat) made(n int) core.Transition {
	t, _ := s.of(n)
	return t.move.Transition
}

// storeEnd stores an end for a caller that waits at most moveTimeout. After that it returns
// [core.Unavailable].
func (r *Runner) storeEnd(ctx context.Context, fresh bool, end core.StepEnd) (*seat, error) {
	most, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	s := r.join(fresh, end)
	err := r.atHead(most, []*seat{s}, func() error {
		// Another seat's caller may have finished or split the turn while this one waited.
		var err error
		if s.turn != nil {
			err = r.finish(most, brief, s.turn)
			if err != nil && most.Err() == nil && !core.IsKind(err, core.Unavailable) {
				r.split(s)
			}
		}
		if s.turn == nil {
			err = r.finish(most, brief, s.single...)
		}
		return err
	})
	return s, busyIfLate(ctx, most, err)
}

// busyIfLate replaces an error by errBusy if the time limit most was over before the caller's
// ctx.
func busyIfLate(ctx, most context.Context, err error) error {
	if err != nil && most.Err() != nil && ctx.Err() == nil {
		return errBusy
	}
	return err
}
