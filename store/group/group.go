// Package group lets batches share a commit. It imports core and store; drivers
// use it.
//
// The idea to know: batches that arrive while one commit is being written go into
// the next commit. There is no timer, so a lone batch pays nothing and a busy store
// writes few, large commits: one sync serves many callers. Where a commit mostly waits, for a
// sync or for the network, several are written at a time (pace.go).
package group

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// Bounds of one commit. They are high enough to make the sync negligible, and low
// enough that a commit never takes long or much memory.
const (
	maxBatches = 256
	maxBytes   = 4 << 20 // of text in their arguments
)

// A Batch is the statements of one caller. All of them take effect, or none.
type Batch struct {
	Stmts   []store.Stmt
	Results []store.Result // one for each statement, filled in by the commit

	ctx  context.Context // of the caller, which may stop waiting
	err  error
	done chan struct{}
	fate atomic.Int32
}

// The fates of a batch. It leaves waiting once.
const (
	waiting   = iota
	taken     // by a committer, which writes it
	abandoned // by its caller, so that no committer writes it
)

// A Commit writes batches in one transaction and fills in their results. If it
// fails, none of the batches took effect. The exception is a refusal of kind
// Unavailable that is not a [core.Untouched]: then the batches may have taken effect.
type Commit func(batches []*Batch) error

// Bounds limit one commit further than this package does, for databases with limits of
// their own. A single batch is written however large it is. Zero means no bound.
type Bounds struct {
	Statements int // a statement on rows counts once for each row
	Bytes      int // of text in the arguments
}

// A Line is where batches wait for a commit. It is safe for concurrent use.
type Line struct {
	commit Commit
	bounds Bounds
	wait   chan *Batch
	pace   *pace // nil with a single committer
	quit   chan struct{}
	done   chan struct{}
	once   sync.Once
}

// NewLine makes a line with a number of committers. Committers are goroutines that write
// at the same time, each a group of its own. The first always writes. The others write only if
// commits take long enough to overlap, or while a commit stalls: see pace. They run until Close. Of
// several bounds the last counts.
func NewLine(committers int, commit Commit, bounds ...Bounds) *Line {
	l := &Line{commit: commit, wait: make(chan *Batch, maxBatches), quit: make(chan struct{}), done: make(chan struct{})}
	for _, b := range bounds {
		l.bounds = b
	}
	if committers > 1 {
		l.pace = newPace()
	}
	var running sync.WaitGroup
	for i := range committers {
		running.Go(func() { l.run(i > 0) })
	}
	go func() {
		running.Wait()
		close(l.done)
	}()
	return l
}

// unsent is the refusal for a batch that was not written and will not be.
func unsent(cause error) error {
	return core.Untouched(store.Unavailable(cause))
}

// Do writes statements in a commit that other batches may share, and waits for the
// commit. A caller whose context ends while the commit is being written does not learn
// whether the statements took effect: it gets a refusal of kind Unavailable. If the
// context or the line ends before that, the refusal is a [core.Untouched] as well.
func (l *Line) Do(ctx context.Context, stmts []store.Stmt) ([]store.Result, error) {
	b := &Batch{Stmts: stmts, Results: make([]store.Result, len(stmts)), ctx: ctx, done: make(chan struct{})}
	if err := l.enter(ctx, b); err != nil {
		return nil, err
	}
	select {
	case <-b.done:
		return b.Results, b.err
	case <-ctx.Done():
		return nil, b.leave(ctx.Err())
	case <-l.done:
		return nil, b.leave(store.ErrClosed)
	}
}

// leave gives up waiting for a batch. If no committer has taken the batch, it is never
// written.
func (b *Batch) leave(why error) error {
	if b.fate.CompareAndSwap(waiting, abandoned) {
		return unsent(why)
	}
	return store.Unavailable(why)
}

// enter waits for room in the line. As a rule there is room. So the first select tries the
// line alone: it costs a fraction of a select on several channels that all callers share.
func (l *Line) enter(ctx context.Context, b *Batch) error {
	select {
	case l.wait <- b:
		return nil
	default:
	}
	select {
	case l.wait <- b:
		return nil
	case <-ctx.Done():
		return unsent(ctx.Err())
	case <-l.done:
		return unsent(store.ErrClosed)
	}
}

// Close waits for commits under way. Batches that wait for the next commit fail, and are
// not written. Close may be called more than once.
func (l *Line) Close() {
	l.once.Do(func() { close(l.quit) })
	<-l.done
}

// run writes groups until Close. A committer that is not the first waits until commits may
// overlap.
func (l *Line) run(further bool) {
	for {
		if further {
			select {
			case <-l.quit:
				return
			case <-l.pace.mayOverlap():
			}
		}
		select {
		case <-l.quit:
			return
		case b := <-l.wait:
			// Callers that are ready to run get in line first: with that, twice as many
			// share a commit under load. The committer does not wait for them.
			runtime.Gosched()
			if group := awaited(l.join(b)); len(group) > 0 {
				l.write(group)
			}
		}
	}
}

// join collects the batches that are in line already, up to the bounds. It never waits.
func (l *Line) join(first *Batch) []*Batch {
	group, bytes, statements := []*Batch{first}, first.size(), first.statements()
	for len(group) < maxBatches && bytes < maxBytes && l.bounds.admit(statements, bytes) {
		select {
		case b := <-l.wait:
			group = append(group, b)
			bytes += b.size()
			statements += b.statements()
		default:
			return group
		}
	}
	return group
}

// admit reports whether one more batch may join a group with so many statements and bytes.
func (b Bounds) admit(statements, bytes int) bool {
	return (b.Statements == 0 || statements < b.Statements) && (b.Bytes == 0 || bytes < b.Bytes)
}

// statements is how many statements a database runs that takes one row at a time.
func (b *Batch) statements() (n int) {
	for _, s := range b.Stmts {
		n += max(1, len(s.Rows))
	}
	return n
}

// size is how many bytes of text the arguments hold.
func (b *Batch) size() int {
	n := 0
	for _, s := range b.Stmts {
		n += textIn(s.Args)
		for _, row := range s.Rows {
			n += textIn(row)
		}
	}
	return n
}

func textIn(args []any) (n int) {
	for _, a := range args {
		if text, ok := a.(string); ok {
			n += len(text)
		}
	}
	return n
}

// awaited leaves out batches whose callers gave up. A claim written after its caller
// gave up would lease jobs that no worker runs.
func awaited(group []*Batch) []*Batch {
	return slices.DeleteFunc(group, func(b *Batch) bool {
		return b.ctx.Err() != nil || !b.fate.CompareAndSwap(waiting, taken)
	})
}

// timed commits a group and notes its time.
func (l *Line) timed(group []*Batch) error {
	if l.pace == nil {
		return l.commit(group)
	}
	end := l.pace.begin()
	err := l.commit(group)
	end(err == nil)
	return err
}

// write commits a group. If the database refuses the group, each batch is written in a
// commit of its own, so that only the bad batch fails. If the database is unavailable,
// all batches fail.
func (l *Line) write(group []*Batch) {
	err := l.timed(group)
	if err != nil && len(group) > 1 && store.Definite(err) {
		for i := range group {
			l.write(group[i : i+1])
		}
		return
	}
	for _, b := range group {
		if err != nil {
			b.Results, b.err = nil, err
		}
		close(b.done)
	}
}
