package manage

import (
	"context"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// restFor is how many times as long as its query took an answer is used, unless that is too short or too
// long for its kind. A query that counts takes a processor of SQLite's process meanwhile, and then an
// event waits longer until it is accepted. So each such query has a fifth of a percent of the time, or
// somewhat more where its answer would get too old: with three of them, pages that poll do not raise the
// p99 of the intake.
const restFor = 500

// kept is a query to the database, whose answer is used for some time. Callers that come while the
// query is under way get its answer too.
type kept[T any] struct {
	clock  core.Clock
	ask    func(context.Context) (T, error)
	within time.Duration // the time limit of a query

	// lasts returns for how long an answer is used, counted from the beginning of its query: restFor times
	// as long as the query took, but at least least and at most most. Nil means statsEvery.
	lasts func(T) (least, most time.Duration)

	// slow returns whether an answer is used while the next query is under way; nil means no.
	slow func(T) bool

	// exact says that after forget, no caller gets an answer whose query began before. Otherwise
	// such an answer is used for statsEvery.
	exact bool

	mu   sync.Mutex
	last *asking[T]
}

// An asking is one query to the database. Its results may be read once done is closed.
type asking[T any] struct {
	at   time.Time
	done chan struct{}
	got  T
	took time.Duration
	err  error

	forgotten bool       // something changed since it began
	before    *asking[T] // the answer that is used meanwhile; nil for none
}

// answer returns the answer of the database, or the newest one while it is fresh.
func (k *kept[T]) answer(ctx context.Context) (T, error) { return k.latest(ctx).wait(ctx) }

// wait returns the answer to a query.
func (q *asking[T]) wait(ctx context.Context) (none T, _ error) {
	select {
	case <-q.done:
		return q.got, q.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// latest returns the newest query if its answer is fresh or still to come, else a new one.
func (k *kept[T]) latest(ctx context.Context) *asking[T] {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock()
	if k.last == nil || k.stale(k.last, now) {
		next := &asking[T]{at: now, done: make(chan struct{})}
		if k.tells(k.last, now) {
			k.last.before, next.before = nil, k.last
		}
		k.last = next
		go k.run(context.WithoutCancel(ctx), next)
	}
	if k.last.answered() || !k.tells(k.last.before, now) {
		return k.last
	}
	return k.last.before
}

// forget says that something changed which answers show.
func (k *kept[T]) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last != nil {
		k.last.forgotten = true
	}
}

// quiet returns when no query is under way.
func (k *kept[T]) quiet(ctx context.Context) {
	k.mu.Lock()
	q := k.last
	k.mu.Unlock()
	if q == nil {
		return
	}
	select {
	case <-q.done:
	case <-ctx.Done():
	}
}

// tells reports whether an earlier answer, if there is one, is used while the next query is
// under way.
func (k *kept[T]) tells(q *asking[T], now time.Time) bool {
	return k.slow != nil && q != nil && q.answered() && q.err == nil && k.slow(q.got) && now.Sub(q.at).Abs() <= toldFor
}

func (q *asking[T]) answered() bool {
	select {
	case <-q.done:
		return true
	default:
		return false
	}
}

// stale reports whether the answer of a query may not be used any more. A clock that was set back makes an
// answer stale as well.
func (k *kept[T]) stale(q *asking[T], now time.Time) bool {
	if k.exact && q.forgotten {
		return true
	}
	if !q.answered() {
		return false
	}
	lasts := statsEvery
	if k.lasts != nil && q.err == nil && !q.forgotten {
		least, most := k.lasts(q.got)
		lasts = min(max(least, restFor*q.took), most)
	}
	age := now.Sub(q.at)
	return q.err != nil || age < 0 || age >= lasts
}

// run has its own goroutine and deadline, since many callers share the answer. A panic is the error of
// all callers.
func (k *kept[T]) run(ctx context.Context, q *asking[T]) {
	defer close(q.done)
	ctx, cancel := context.WithTimeout(ctx, k.within)
	defer cancel()
	q.err = core.Contain(func() (err error) {
		q.got, err = k.ask(ctx)
		return err
	})
	q.took = k.clock().Sub(q.at)
}

// keptBy is a query for each of some keys.
type keptBy[K comparable, T any] struct {
	of   func(K) *kept[T]
	most int // how many are kept

	mu  sync.Mutex
	all map[K]*kept[T]
}

// by returns the query for a key. If there are too many, it drops any other one: its callers still get
// its answer.
func (k *keptBy[K, T]) by(key K) *kept[T] {
	k.mu.Lock()
	defer k.mu.Unlock()
	q, known := k.all[key]
	if known {
		return q
	}
	for other := range k.all {
		if len(k.all) < k.most {
			break
		}
		delete(k.all, other)
	}
	if k.all == nil {
		k.all = map[K]*kept[T]{}
	}
	q = k.of(key)
	k.all[key] = q
	return q
}

// each calls do for each query.
func (k *keptBy[K, T]) each(do func(*kept[T])) {
	k.mu.Lock()
	all := make([]*kept[T], 0, len(k.all))
	for _, q := range k.all {
		all = append(all, q)
	}
	k.mu.Unlock()
	for _, q := range all {
		do(q)
	}
}
