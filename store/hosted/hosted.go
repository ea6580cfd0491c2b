// Package hosted is the store's connection to Cloudflare D1, which is SQLite
// behind HTTP: either D1's own REST API, or the Worker of infra/d1-proxy, which
// takes and answers the same. It imports core, store, store/group and
// go-retryablehttp, and builds an HTTP client of its own: what it talks to is the
// database, named in the configuration, not an address that a caller chose.
//
// The idea to know: one batch is one request. D1 runs the statements of a request
// one after the other in one transaction, and [Open] proves that it does. Writes
// that wait while one is under way join the next one, reads go beside it, so a
// busy gateway sends few, large requests.
//
// A batch can be sent twice, unless a statement says otherwise (store.Stmt), and so
// one whose answer was lost, or made no sense, is sent again as a whole, a few times
// and as long as the caller waits. Only then is it reported as unavailable.
//
// # What D1 forced
//
//   - A number in JSON is bound as REAL, also 1. Integers are sent as text: an
//     integer column, a comparison with one, and arithmetic make integers of it.
//   - At most 100 parameters and 100,000 bytes of SQL a statement. With [store.D1]
//     as dialect, rows travel as many to a statement as may have parameters: 100
//     inserted and updated took 5 ms so, against 16 ms with a statement for each.
//     One JSON parameter for all took 3 ms, but what fits a row may not fit a
//     parameter once it is escaped. [store.SQLite] works too.
//   - 2,000,000 bytes a row: what is larger is refused before it is sent, see
//     [MaxRow].
//   - The proxy sees rows as objects, so the columns of a statement need names that
//     differ.
//   - A database runs one request at a time. Two committers keep it busy while
//     answers travel; more would only wait there instead of here, where waiting
//     batches join.
//   - "Overloaded" and 429 mean that asking again makes it worse. Requests are then
//     refused here for a while, without a try.
package hosted

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/group"
)

// Options name a database. AccountID, DatabaseID and APIToken are needed without
// Endpoint.
type Options struct {
	AccountID, DatabaseID string

	// APIToken is the bearer token: Cloudflare's, with the permission D1 Edit, or the
	// proxy's secret. A proxy may do without one.
	APIToken string

	// Endpoint is the URL of the proxy, if there is one.
	Endpoint string

	// API is where the REST API is; empty means https://api.cloudflare.com.
	API string

	// MaxConnections is how many requests may be under way at the same time; zero
	// means 10.
	MaxConnections int
}

const (
	defaultAPI         = "https://api.cloudflare.com"
	defaultConnections = 10

	// committers is how many requests that write are under way at the same time.
	committers = 2

	// What shares a request stays below the 1,000 queries that an invocation of the
	// proxy may make, and below the body it takes, also escaped.
	maxStatements = 300
	maxQueries    = 1000
	maxBytes      = 2 << 20

	// commitTimeout bounds a request that writes, with all its tries.
	commitTimeout = 10 * time.Second
)

// A Conn is a connection to a database. It is safe for concurrent use.
type Conn struct {
	target target
	client *retryablehttp.Client
	line   *group.Line
	slots  chan struct{} // one for each request under way
	pause  pause
	closed atomic.Bool
	sent   atomic.Int64
}

// Open connects to a database and proves that its batches are atomic, in two
// requests. It does not change the schema. A refusal of kind Invalid says which
// setting is wrong, one of kind Unavailable that the database does not answer.
func Open(ctx context.Context, o Options) (store.Conn, error) {
	t, err := newTarget(o)
	if err != nil {
		return nil, err
	}
	if o.MaxConnections <= 0 {
		o.MaxConnections = defaultConnections
	}
	c := &Conn{target: t, slots: make(chan struct{}, o.MaxConnections)}
	c.client = newClient(o.MaxConnections, &c.sent)
	c.line = group.NewLine(min(committers, o.MaxConnections), c.commit, group.Bounds{Statements: maxStatements, Bytes: maxBytes})
	if err := store.ProveAtomic(ctx, c); err != nil {
		_ = c.Close()
		return nil, t.opening(err)
	}
	return c, nil
}

// Requests is how many HTTP requests have been sent, tries included.
func (c *Conn) Requests() int64 { return c.sent.Load() }

// Batch runs statements in one request. See store.Conn.
func (c *Conn) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	if len(stmts) == 0 {
		return nil, nil
	}
	if c.closed.Load() {
		return nil, unavailable(errors.New("it is closed"))
	}
	reads := true
	for _, s := range stmts {
		if err := fits(s); err != nil {
			return nil, err
		}
		reads = reads && s.Reads
	}
	if !reads {
		return c.line.Do(ctx, stmts)
	}
	var results []store.Result
	err := contain(func() (err error) { results, err = c.run(ctx, stmts); return err })
	return results, err
}

// commit writes a group in one request. See group.Commit. Rows for the same text
// go together, since a statement costs as much as twenty rows.
func (c *Conn) commit(batches []*group.Batch) error {
	return contain(func() error { return c.write(batches) })
}

// contain has a panic be an error: calls come from goroutines without another guard, and the
// client's code is not ours. The statements sent may have taken effect.
func contain(do func() error) error {
	err := core.Contain(do)
	if p := (*core.Panic)(nil); errors.As(err, &p) {
		return unavailable(p)
	}
	return err
}

func (c *Conn) write(batches []*group.Batch) error {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	var rows, others []*group.Batch
	for _, b := range batches {
		if group.Mergeable(b.Stmts) && !slices.ContainsFunc(b.Stmts, updates) {
			rows = append(rows, b)
		} else {
			others = append(others, b)
		}
	}
	m := group.Merge(rows)
	stmts := m.Stmts
	for _, b := range others {
		stmts = append(stmts, b.Stmts...)
	}
	results, err := c.run(ctx, stmts)
	if err != nil {
		return err
	}
	m.Share(results[:len(m.Stmts)])
	results = results[len(m.Stmts):]
	for _, b := range others {
		results = results[copy(b.Results, results):]
	}
	return nil
}

// updates tells an UPDATE. Of several rows for one and the same job SQLite takes
// any, so two callers' outcomes of one attempt have to stay apart.
func updates(s store.Stmt) bool { return strings.HasPrefix(s.SQL, "UPDATE") }

// run sends statements and reads their results.
func (c *Conn) run(ctx context.Context, stmts []store.Stmt) ([]store.Result, error) {
	body, counts, err := encode(stmts)
	if err != nil {
		return nil, err
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	if total > maxQueries {
		return nil, fmt.Errorf("%d queries in one commit; D1 takes %d: %w", total, maxQueries, errTooLarge)
	}
	if total == 0 { // rows of nothing
		return make([]store.Result, len(stmts)), nil
	}
	if slices.ContainsFunc(stmts, func(s store.Stmt) bool { return s.Once }) {
		ctx = context.WithValue(ctx, onceOnly{}, true)
	}
	answers, err := c.send(ctx, body, total)
	if err != nil {
		return nil, named(stmts, err)
	}
	results := gather(stmts, counts, answers)
	if err := suits(stmts, results); err != nil {
		return nil, named(stmts, unavailable(err))
	}
	return results, nil
}

// Close waits for writes under way. Later batches fail.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.line.Close()
	c.client.HTTPClient.CloseIdleConnections()
	return nil
}

// Bounds of one call.
const (
	retries   = 3
	firstWait = 100 * time.Millisecond
	maxWait   = 2 * time.Second

	// tryTimeout is how long a try waits for an answer to begin, so that a connection
	// that died unnoticed does not use up the caller's patience. What takes longer to
	// arrive, the caller's own time bounds.
	tryTimeout = 4 * time.Second
)

// newClient makes a client that speaks HTTP/1.1, so that a try which is given up
// takes its connection with it, and no other try waits on that.
func newClient(connections int, sent *atomic.Int64) *retryablehttp.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	c := retryablehttp.NewClient()
	c.HTTPClient = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Protocols: protocols, MaxIdleConnsPerHost: connections, IdleConnTimeout: 90 * time.Second,
			DialContext: (&net.Dialer{Timeout: tryTimeout}).DialContext, ResponseHeaderTimeout: tryTimeout,
		},
	}
	c.Logger = nil // it would print addresses
	c.RequestLogHook = func(retryablehttp.Logger, *http.Request, int) { sent.Add(1) }
	c.RetryMax, c.RetryWaitMin, c.RetryWaitMax = retries, firstWait, maxWait
	c.CheckRetry, c.Backoff = checkRetry, backoff
	c.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return c
}

// send posts a body of n statements until it is answered.
func (c *Conn) send(ctx context.Context, body []byte, n int) ([]answer, error) {
	if wait := c.pause.left(); wait > 0 {
		return nil, core.Untouched(later(errors.New("D1 asked for a pause"), wait))
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, core.Untouched(unavailable(ctx.Err()))
	}
	var sent bool
	ctx = context.WithValue(ctx, sentSome{}, &sent)
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, c.target.url, body)
	if err != nil {
		return nil, err
	}
	if c.target.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.target.token)
	}
	req.Header.Set("Content-Type", "application/json")
	var answers []answer
	var failed *failure
	req.SetResponseHandler(func(resp *http.Response) error {
		answers, failed = read(resp, n)
		if failed != nil && failed.again {
			return failed
		}
		return nil // known for certain
	})
	_, err = c.client.Do(req)
	switch {
	case errors.As(err, &failed) || err == nil && failed != nil:
		return nil, c.refuse(failed)
	case err != nil && sent:
		return nil, c.target.unreachable(err)
	case err != nil:
		return nil, core.Untouched(c.target.unreachable(err))
	}
	c.pause.end()
	return answers, nil
}

// refuse turns what D1 said into an error of the kinds that store.Conn promises.
func (c *Conn) refuse(f *failure) error {
	f.message = c.target.hide(f.message)
	if f.hold != 0 {
		return later(f, c.pause.begin(f.hold))
	}
	switch f.kind {
	case tooLarge:
		return errTooLarge
	case wrongSQL:
		return f
	case misfit:
		return store.SchemaMismatch(f)
	case wrongSetting:
		return unavailable(c.target.setting(f))
	}
	return unavailable(f)
}

func unavailable(cause error) error {
	return &core.Refusal{Kind: core.Unavailable, Message: "database unavailable", Cause: cause}
}

func later(cause error, wait time.Duration) error {
	return &core.Refusal{Kind: core.Unavailable, Message: "database unavailable", Cause: cause, RetryAfter: wait}
}

// named adds the names of the statements that an error is about: D1 does not say
// which one of a batch it was.
func named(stmts []store.Stmt, err error) error {
	const most = 8
	var names string
	seen := map[string]bool{}
	for _, s := range stmts {
		if seen[s.Name] || len(seen) == most {
			continue
		}
		if len(seen) > 0 {
			names += ", "
		}
		seen[s.Name] = true
		names += s.Name
	}
	return fmt.Errorf("%s: %w", names, err)
}
