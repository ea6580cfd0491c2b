package runner

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	// inTime is how long somebody waits for a run to be moved who can come again.
	inTime = 10 * time.Second

	// shared is how many ends, or about how many bytes of them, are told in one turn by
	// those who came one by one.
	shared      = 100
	sharedBytes = 1 << 20
)

// A lineup is where those stand in this process who want to move one run. One of them does
// at a time, in the order in which they came: so only other processes are ever first.
type lineup struct {
	run  core.ID
	head chan struct{} // full while somebody moves the run

	// The runner's mu is for these.
	users int
	next  *turn // which ends may still join; nil for none
}

// A seat is the part of a turn that tells somebody's ends. Who comes first to the head of
// the line takes the whole turn, and the others find it over. If that one gives up, the
// next goes on with the same turn: what is sent of it and not answered stays known.
type seat struct {
	line  *lineup
	turn  *turn
	ends  []core.StepEnd
	from  int // where they begin among those of the turn, once that is closed
	fresh bool

	// apart are turns of one end each, in place of the one that was refused.
	apart []*turn
}

// join stands in line with ends of one run. Fresh says that the situation which the only
// one of them came with may still be that of the run.
func (r *Runner) join(fresh bool, ends ...core.StepEnd) *seat {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &seat{line: r.stand(ends[0].Job.Situation.Run.ID), ends: ends, fresh: fresh}
	t, n := s.line.next, weigh(ends)
	if t == nil || t.count+len(ends) > shared || t.bytes+n > sharedBytes {
		t = newTurn()
		s.line.next = t
	}
	t.seats, t.count, t.bytes = append(t.seats, s), t.count+len(ends), t.bytes+n
	s.turn = t
	return s
}

// stand counts somebody in for the line of a run.
func (r *Runner) stand(run core.ID) *lineup {
	l := r.lines[run]
	if l == nil {
		l = &lineup{run: run, head: make(chan struct{}, 1)}
		r.lines[run] = l
	}
	l.users++
	return l
}

func weigh(ends []core.StepEnd) (n int) {
	for _, e := range ends {
		n += len(e.Body) + len(e.Attempt.Response)
	}
	return n
}

// leave takes a seat out of its line. Ends that nobody has begun to tell are not told.
func (r *Runner) leave(s *seat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := s.turn; t != nil && !t.closed {
		t.seats = slices.DeleteFunc(t.seats, func(o *seat) bool { return o == s })
		t.count, t.bytes = t.count-len(s.ends), t.bytes-weigh(s.ends)
	}
	r.walkOff(s.line)
}

func (r *Runner) walkOff(l *lineup) {
	if l.users--; l.users == 0 {
		delete(r.lines, l.run)
	}
}

// enter waits until somebody is at the head of a line, and tells whether that took time.
func (l *lineup) enter(ctx context.Context) (waited bool, err error) {
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

// atHead does something while seats of different runs are at the heads of their lines.
// They come to be there in the order of their runs, or two could wait for each other.
func (r *Runner) atHead(ctx context.Context, seats []*seat, do func() error) error {
	seats = slices.Clone(seats)
	slices.SortFunc(seats, func(a, b *seat) int { return strings.Compare(string(a.line.run), string(b.line.run)) })
	for _, s := range seats {
		defer r.leave(s)
	}
	for _, s := range seats {
		waited, err := s.line.enter(ctx)
		if err != nil {
			return err
		}
		defer func() { <-s.line.head }()
		s.fresh = s.fresh && !waited
		r.close(s)
	}
	return do()
}

// close lets no more ends join the turn of a seat.
func (r *Runner) close(s *seat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := s.turn
	if t == nil || t.closed {
		return
	}
	t.closed = true
	if s.line.next == t {
		s.line.next = nil
	}
	for _, o := range t.seats {
		o.from = len(t.ends)
		t.ends = append(t.ends, o.ends...)
	}
	t.event = t.ends[0].Job.Event
	if len(t.ends) == 1 && s.fresh {
		t.seen()
	}
}

// split makes a turn of each end of all who share the turn of a seat, unless it is over:
// what is refused because of one of them is none of the others' business.
func (r *Runner) split(s *seat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.turn == nil || s.turn.over {
		return
	}
	for _, o := range s.turn.seats {
		for _, e := range o.ends {
			o.apart = append(o.apart, turnOf(e))
		}
		o.turn = nil
	}
}

// of is the turn that tells the nth end, and where that is in it.
func (s *seat) of(n int) (t *turn, at int) {
	if s.turn == nil {
		return s.apart[n], 0
	}
	return s.turn, s.from + n
}

// settled is what became of the nth end.
func (s *seat) settled(n int) core.StepSettled {
	t, at := s.of(n)
	return t.settled(at)
}

// made is the transition that told the nth end.
func (s *seat) made(n int) core.Transition {
	t, _ := s.of(n)
	return t.move.Transition
}

// tell stores an end for somebody who waits for that, though not for long: not in time
// is [core.Unavailable].
func (r *Runner) tell(ctx context.Context, fresh bool, end core.StepEnd) (*seat, error) {
	most, cancel := context.WithTimeout(ctx, inTime)
	defer cancel()
	s := r.join(fresh, end)
	err := r.atHead(most, []*seat{s}, func() error {
		var err error
		if s.turn != nil {
			err = r.finish(most, brief, s.turn)
			if err != nil && most.Err() == nil && !core.IsKind(err, core.Unavailable) {
				r.split(s)
			}
		}
		if s.turn == nil {
			err = r.finish(most, brief, s.apart...)
		}
		return err
	})
	return s, late(ctx, most, err)
}

// late is an error as one tells it whose time was over before that of who asked.
func late(ctx, most context.Context, err error) error {
	if err != nil && most.Err() != nil && ctx.Err() == nil {
		return errBusy
	}
	return err
}
