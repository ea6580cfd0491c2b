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
	retry  store.Retry
	line   *group.Line
	slots  chan struct{} // one for each request under way
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
	c := newConn(t, o.MaxConnections)
	c.line = group.NewLine(min(committers, o.MaxConnections), c.commit, group.Bounds{Statements: maxStatements, Bytes: maxBytes})
	if err := store.ProveAtomic(ctx, c); err != nil {
		_ = c.Close()
		return nil, t.opening(err)
	}
	return c, nil
}

func newConn(t target, connections int) *Conn {
	c := &Conn{target: t, slots: make(chan struct{}, connections)}
	c.client = c.newClient(connections)
	c.retry = store.Retry{Classify: c.classify, Tries: 1} // the client has tries of its own
	return c
}

// Requests is how many HTTP requests have been sent, tries included.
func (c *Conn) Requests() int64 { return c.sent.Load() }

// Batch runs statements in one request. See store.Conn.
func (c *Conn) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	if len(stmts) == 0 {
		return nil, nil
	}
	if c.closed.Load() {
		return nil, store.Unavailable(store.ErrClosed)
	}
	for _, s := range stmts {
		if err := fits(s); err != nil {
			return nil, err
		}
	}
	if !store.ReadsOnly(stmts) {
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
		return store.Unavailable(p)
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
	answers, err := c.send(ctx, stmts, body, total)
	if err != nil {
		return nil, named(stmts, err)
	}
	results := gather(stmts, counts, answers)
	if err := suits(stmts, results); err != nil {
		return nil, named(stmts, store.Unavailable(err))
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
	resends   = 3
	firstWait = 100 * time.Millisecond
	maxWait   = 2 * time.Second

	// tryTimeout is how long a try waits for an answer to begin, so that a connection
	// that died unnoticed does not use up the caller's patience. What takes longer to
	// arrive, the caller's own time bounds.
	tryTimeout = 4 * time.Second
)

// newClient makes a client that speaks HTTP/1.1, so that a try which is given up
// takes its connection with it, and no other try waits on that.
func (c *Conn) newClient(connections int) *retryablehttp.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	client := retryablehttp.NewClient()
	client.HTTPClient = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Protocols: protocols, MaxIdleConnsPerHost: connections, IdleConnTimeout: 90 * time.Second,
			DialContext: (&net.Dialer{Timeout: tryTimeout}).DialContext, ResponseHeaderTimeout: tryTimeout,
		},
	}
	client.Logger = nil // it would print addresses
	client.RequestLogHook = func(retryablehttp.Logger, *http.Request, int) { c.sent.Add(1) }
	client.RetryMax, client.RetryWaitMin, client.RetryWaitMax = resends, firstWait, maxWait
	client.CheckRetry, client.Backoff = c.checkRetry, backoff
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return client
}

// send posts a body of n queries until it is answered.
func (c *Conn) send(ctx context.Context, stmts []store.Stmt, body []byte, n int) (answers []answer, err error) {
	_, err = c.retry.Do(ctx, stmts, func(ctx context.Context, _ []store.Stmt) ([]store.Result, error) {
		select {
		case c.slots <- struct{}{}:
			defer func() { <-c.slots }()
		case <-ctx.Done():
			return nil, store.Unsent(store.Unavailable(ctx.Err()))
		}
		way := &call{once: !store.Repeatable(stmts)}
		answers, err = c.post(context.WithValue(ctx, callKey{}, way), body, n)
		if err != nil && !way.sent {
			err = store.Unsent(err)
		}
		return nil, err
	})
	return answers, err
}

// post sends a body of n queries and reads the answer. The client sends it again: see checkRetry.
func (c *Conn) post(ctx context.Context, body []byte, n int) (answers []answer, err error) {
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, c.target.url, body)
	if err != nil {
		return nil, &failure{message: err.Error(), class: store.Rejected}
	}
	if c.target.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.target.token)
	}
	req.Header.Set("Content-Type", "application/json")
	var failed *failure
	req.SetResponseHandler(func(resp *http.Response) error {
		answers, failed = read(resp, n)
		if failed != nil && failed.class == store.Lost {
			return failed
		}
		return nil // no other try would change it
	})
	switch _, err := c.client.Do(req); {
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, failed
	}
	return answers, nil
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
