package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/wire"
)

// Bounds of the health check.
const (
	checkEvery   = time.Second     // for how long an answer of the database is used, unless Every is set
	checkAgain   = time.Second / 4 // the same while Doubtful
	checkTimeout = 2 * time.Second // the time limit of the database's answer
)

// OpsOptions are the dependencies of the routes for operators.
type OpsOptions struct {
	// Depth returns the number of jobs that are not finished. The gateway is healthy if
	// Depth and Writes return no error.
	Depth func(context.Context) (int, error)

	// Writes returns why the database takes no writes; nil skips that check.
	Writes func(context.Context) error

	// Doubtful reports whether the result of Writes may have changed; nil means no. Each
	// request calls it, so it must be fast.
	Doubtful func() bool

	// Every is for how long an answer of the database is used; zero means a second.
	Every time.Duration

	// Ignored returns the newest configuration if the process does not follow it. Ignored
	// and its result may be nil.
	Ignored func() *IgnoredConfig

	// Database describes the gateway's database, for a request with a [wire.Proof] of a token
	// that may read. Tokens are the tokens of the API. Now returns the time of this machine; nil leaves the
	// database out.
	Database wire.Database
	Tokens   []Token
	Now      core.Clock

	// Metrics serves the measurements; nil leaves the route out.
	Metrics http.Handler

	// MetricsTokens are the bearer tokens of /metrics, each of which opens it; none leaves it open.
	MetricsTokens []string
}

// database returns the description of the database for a request; nil if the request may
// not have it.
func (o *OpsOptions) database(r *http.Request) *wire.Database {
	proof := r.Header.Get(wire.Proof)
	if o.Now == nil || o.Database.ID == "" || proof == "" {
		return nil
	}
	var readers []string
	for _, t := range o.Tokens {
		if t.Role.Includes(core.RoleRead) {
			readers = append(readers, t.Text)
		}
	}
	// An API without tokens is open. One whose tokens all lack the role has no reader.
	if len(o.Tokens) > 0 && len(readers) == 0 || !wire.Proves(proof, readers, o.Now()) {
		return nil
	}
	return &o.Database
}

// An IgnoredConfig is a configuration that the process does not follow. It keeps the one
// before.
type IgnoredConfig struct {
	Why   core.ReloadResult
	Since time.Time
}

// Ops returns the routes for operators. They take no slot of MaxInbound: a probe must not
// report a busy process as dead, and the metrics of a busy process are needed most. The
// limit per client address applies.
func Ops(o OpsOptions) Piece {
	return func(r chi.Router, d *Door) {
		h := &health{depth: o.Depth, writes: o.Writes, doubtful: o.Doubtful, every: cmp.Or(o.Every, checkEvery), ignored: o.Ignored, door: d, database: o.database}
		r.Get("/health", h.serve)
		r.Head("/health", h.serve)
		if o.Metrics != nil {
			r.Get("/metrics", d.metrics(o.Metrics, newBearer(o.MetricsTokens)))
		}
	}
}

// metrics serves the measurements, to callers with a token if there are tokens.
func (d *Door) metrics(exposition http.Handler, token *bearer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := token.check(w, r); err != nil {
			d.fail(w, r, err)
			return
		}
		exposition.ServeHTTP(w, r)
	}
}

// health checks the database. It makes at most one check at a time and at most one in the
// configured interval, for any number of requests. After a failure it checks again after a
// second.
//
// So a thousand probes a second cost the database as much as one. A probe that comes while a
// check runs waits for that check.
type health struct {
	depth   func(context.Context) (int, error)
	writes  func(context.Context) error
	every   time.Duration
	ignored func() *IgnoredConfig
	door    *Door

	doubtful func() bool
	database func(*http.Request) *wire.Database

	mu   sync.Mutex
	last *checkup
}

// A checkup is one check of the database. Its results may be read once done is closed.
type checkup struct {
	begun time.Time
	done  chan struct{}
	depth int
	err   error

	answered atomic.Bool // the database answered the read; the check of writes follows
}

// A healthBody answers /health. Depth is missing if the database did not answer.
type healthBody struct {
	Status string      `json:"status"`
	Depth  *int        `json:"queue_depth,omitempty"`
	Detail string      `json:"detail,omitempty"`
	Config *configBody `json:"config,omitempty"`

	Database *wire.Database `json:"database,omitempty"`
}

// configBody says that a configuration is ignored, without its content: the route is
// public.
type configBody struct {
	State core.ReloadResult `json:"state"`
	Since string            `json:"since"`
}

// serve answers with the result of the newest checkup, and waits for it if it is still running.
func (h *health) serve(w http.ResponseWriter, r *http.Request) {
	c := h.latest()
	if c.wait(r.Context()) && c.err == nil {
		writeJSON(w, http.StatusOK, healthBody{Status: "ok", Depth: &c.depth, Config: h.config(), Database: h.database(r)})
		return
	}
	w.Header()["Retry-After"] = []string{"1"}
	writeJSON(w, http.StatusServiceUnavailable, healthBody{Status: "error", Detail: c.ill(), Config: h.config(), Database: h.database(r)})
}

// config returns the body about an ignored configuration; nil if none is ignored.
func (h *health) config() *configBody {
	if h.ignored == nil {
		return nil
	}
	i := h.ignored()
	if i == nil {
		return nil
	}
	return &configBody{i.Why, core.FormatTime(i.Since)}
}

// latest returns the newest checkup if it is fresh or still running, else a new one.
func (h *health) latest() *checkup {
	h.mu.Lock()
	defer h.mu.Unlock()
	// A successful answer is used for a shorter time while there are doubts. Doubts do not change when
	// a failure is checked again.
	if h.last == nil || h.last.stale(h.every) || h.doubtful != nil && h.last.stale(checkAgain) && h.last.err == nil && h.doubtful() {
		h.last = &checkup{begun: time.Now(), done: make(chan struct{})}
		go h.run(h.last)
	}
	return h.last
}

// wait waits for the end of a running checkup, within the database's time limit, and
// reports whether the checkup has ended.
func (c *checkup) wait(ctx context.Context) bool {
	if wait := time.Until(c.begun.Add(checkTimeout)); wait > 0 {
		// The check may take longer than its time limit, if the driver ignores the deadline. Then the
		// reply says so without waiting for the driver.
		select {
		case <-c.done:
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// stale reports whether a checkup has ended and is older than after. A failed one is stale after
// a second at the latest, so that a database that is back is noticed.
func (c *checkup) stale(after time.Duration) bool {
	select {
	case <-c.done:
		if c.err != nil {
			after = min(after, checkEvery)
		}
		return time.Since(c.begun) >= after
	default:
		return false
	}
}

// The reasons for status 503. The reply has no more details; the log has all of them.
const (
	unreachable = "database unreachable"
	unwritable  = "database takes no writes"
)

// ill returns the reason of a checkup that failed, or that has not ended in time.
func (c *checkup) ill() string {
	if c.answered.Load() {
		return unwritable
	}
	return unreachable
}

// run has its own goroutine and deadline: many requests share the checkup, and a driver
// that ignores its deadline must not block a probe.
func (h *health) run(c *checkup) {
	defer close(c.done)
	defer func() {
		if v := recover(); v != nil {
			c.err = fmt.Errorf("panic: %v", v)
		}
		if c.err != nil {
			h.door.Log.Error("health check failed", "error", c.err)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	if c.depth, c.err = h.depth(ctx); c.err == nil && h.writes != nil {
		// The order matters for the reply: a database that answers reads and takes no writes needs
		// another remedy than one that is away.
		c.answered.Store(true)
		c.err = h.writes(ctx)
	}
}
