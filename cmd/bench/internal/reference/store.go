package reference

import (
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// A store is the database of a pipeline. A job is due when due_at has passed;
// taking it moves due_at to the end of the lease and finishing it clears it, so
// one index serves every claim.
type store interface {
	// The lock is held while a batch is collected and written, so that events that arrive
	// during another write join the batch. It does nothing for databases that permit
	// several writes at once.
	sync.Locker

	// accept stores events with a job each, in one commit.
	accept(batch []*post) error

	// turn settles outcomes, with their attempt rows, and claims up to free due jobs
	// in the same commit. One turn runs at a time.
	turn(done []outcome, free int) ([]job, error)

	close() error
}

// unlocked is the lock of databases that permit several writes at once.
type unlocked struct{}

func (unlocked) Lock()   {}
func (unlocked) Unlock() {}

// openStore connects to the database of a configuration and creates its tables, unless they are
// there.
func openStore(cfg Config) (store, error) {
	switch cfg.Driver {
	case "sqlite":
		return openSQLite(cfg.URL)
	case "postgres":
		return openPostgres(cfg.URL, cfg.connections())
	case "mysql":
		return openMySQL(cfg.URL, cfg.connections())
	case "hosted_sql":
		return openHosted(cfg.URL, cfg.Token, cfg.connections())
	}
	return nil, fmt.Errorf("no reference for %q", cfg.Driver)
}

// lease and retry are in milliseconds.
const (
	lease = 300_000
	retry = 1_000
)

// job is one claimed delivery. The payload is read with the claim, in the same statement or
// round trip.
type job struct {
	id      string
	attempt int
	payload []byte
}

// outcome is the result of a job.
type outcome struct {
	job
	status   int
	err      error
	duration time.Duration
}

// delivered reports whether the sink took the event. Any other outcome is retried for ever,
// since the reference counts no attempts.
func (o outcome) delivered() bool { return o.err == nil && o.status >= 200 && o.status < 300 }

// due is when a job is to be tried again, nil for never.
func (o outcome) due(now int64) *int64 {
	if o.delivered() {
		return nil
	}
	at := now + retry
	return &at
}

// problem is the error's text, nil for none.
func (o outcome) problem() *string {
	if o.err == nil {
		return nil
	}
	text := o.err.Error()
	return &text
}

// A floor is where a claim begins to search. Entries of finished jobs stay at the head of the
// index until they are vacuumed or purged, and each claim would step over them. So a claim
// begins just before the last one's jobs. Once a second it searches from the very beginning,
// for jobs that were committed late or are retried. Only the dispatcher uses it, so it has no
// lock.
type floor struct {
	last int64 // due_at of the last job claimed, in milliseconds
	full time.Time
}

// margin, in milliseconds, is more than an accept takes from reading the clock
// to its commit.
const margin = 100

// from returns the due time, in milliseconds, from which a claim searches.
func (f *floor) from(now time.Time) int64 {
	if now.Sub(f.full) >= time.Second {
		f.full = now
		return 0
	}
	return f.last - margin
}

// claimed notes the due time of a claimed job.
func (f *floor) claimed(due int64) { f.last = max(f.last, due) }

// ids makes identifiers in rising order, for several goroutines. Rising ids append to the end
// of an index, where random ones would write pages all over it. The gateway's ids rise as well.
type ids struct {
	mu      sync.Mutex
	entropy *ulid.MonotonicEntropy
}

func newIDs() *ids { return &ids{entropy: ulid.Monotonic(rand.Reader, 0)} }

// pair is the identifier of an event and that of its job.
func (i *ids) pair(now int64) (event, job string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	ms := uint64(now)
	return ulid.MustNew(ms, i.entropy).String(), ulid.MustNew(ms, i.entropy).String()
}
