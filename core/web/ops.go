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
	checkEvery   = time.Second     // how long an answer of the database is good for, unless told
	checkAgain   = time.Second / 4 // the same while Doubtful
	checkTimeout = 2 * time.Second // how long the database has to answer
)

// OpsOptions is what the routes for operators work with.
type OpsOptions struct {
	// Depth is the number of jobs that are not finished. That it answers is what
	// makes the gateway healthy, and that Writes has nothing to say.
	Depth func(context.Context) (int, error)

	// Writes reports why nothing can be written; nil leaves that open.
	Writes func(context.Context) error

	// Doubtful tells whether Writes may have another answer by now than it had; nil means no.
	// It is asked with each request, and costs nothing.
	Doubtful func() bool

	// Every is how long an answer of the database is good for; zero means a second.
	Every time.Duration

	// Ignored tells of the newest configuration if it is not the one that is followed;
	// it and what it tells may be nil.
	Ignored func() *IgnoredConfig

	// Database is what a request with a [wire.Proof] is told that the gateway works on. Tokens are
	// those of the API, Now is the time of this machine; nil leaves the database out.
	Database wire.Database
	Tokens   []string
	Now      core.Clock

	// Metrics answers who collects measurements; nil leaves the route out.
	Metrics http.Handler

	// MetricsTokens are the bearer tokens of /metrics, each of which opens it; none leaves it open.
	MetricsTokens []string
}

// database is what a request is told of the database; nil if nothing is.
func (o *OpsOptions) database(r *http.Request) *wire.Database {
	if o.Now == nil || o.Database.ID == "" || !wire.Proves(r.Header.Get(wire.Proof), o.Tokens, o.Now()) {
		return nil
	}
	return &o.Database
}

// An IgnoredConfig is a configuration that is not followed: the one before it is.
type IgnoredConfig struct {
	Why   core.ReloadResult
	Since time.Time
}

// Ops is the routes for operators. They take no slot of MaxInbound: a probe must
// not take a busy process for a dead one, and what a busy one measures is wanted most.
// The limit per client address holds.
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

func (d *Door) metrics(exposition http.Handler, token *bearer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := token.check(w, r); err != nil {
			d.fail(w, r, err)
			return
		}
		exposition.ServeHTTP(w, r)
	}
}

// health asks the database how it is, at most once in a while and never twice at
// once, however many ask. Trouble is asked about again after a second.
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

// A checkup is one question to the database. Its results may be read once done
// is closed.
type checkup struct {
	begun time.Time
	done  chan struct{}
	depth int
	err   error

	answered atomic.Bool // a question; whether anything can be written comes after that
}

type healthBody struct {
	Status string      `json:"status"`
	Depth  *int        `json:"queue_depth,omitempty"`
	Detail string      `json:"detail,omitempty"`
	Config *configBody `json:"config,omitempty"`

	Database *wire.Database `json:"database,omitempty"`
}

// configBody says that a configuration is ignored and not what is in it: everyone may ask.
type configBody struct {
	State core.ReloadResult `json:"state"`
	Since string            `json:"since"`
}

func (h *health) serve(w http.ResponseWriter, r *http.Request) {
	c := h.latest()
	if c.wait(r.Context()) && c.err == nil {
		writeJSON(w, http.StatusOK, healthBody{Status: "ok", Depth: &c.depth, Config: h.config(), Database: h.database(r)})
		return
	}
	w.Header()["Retry-After"] = []string{"1"}
	writeJSON(w, http.StatusServiceUnavailable, healthBody{Status: "error", Detail: c.ill(), Config: h.config(), Database: h.database(r)})
}

// config is what there is to tell of the configuration; nil if nothing is.
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

// latest is the newest checkup if it is fresh or still going on, else a new one.
func (h *health) latest() *checkup {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil || h.last.stale(h.every) || h.doubtful != nil && h.last.stale(checkAgain) && h.last.err == nil && h.doubtful() {
		h.last = &checkup{begun: time.Now(), done: make(chan struct{})}
		go h.run(h.last)
	}
	return h.last
}

// wait waits for the end of a checkup that is going on, as long as the database has
// to answer, and reports whether it has ended.
func (c *checkup) wait(ctx context.Context) bool {
	if wait := time.Until(c.begun.Add(checkTimeout)); wait > 0 {
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

// What can be the matter. Whoever asks learns no more, and the log all of it.
const (
	unreachable = "database unreachable"
	unwritable  = "database takes no writes"
)

// ill is what there is to say of a checkup that failed, or that has not ended in time.
func (c *checkup) ill() string {
	if c.answered.Load() {
		return unwritable
	}
	return unreachable
}

// run has its own goroutine and deadline: the checkup belongs to everyone who
// asks, and a driver that ignores its deadline must not take a probe with it.
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
		c.answered.Store(true)
		c.err = h.writes(ctx)
	}
}
