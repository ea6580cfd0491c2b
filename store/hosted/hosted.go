// Package hosted is the store's connection to Cloudflare D1, which is SQLite behind HTTP. It
// uses either D1's own REST API or the Worker of infra/d1-proxy, which takes the same requests
// and gives the same answers. It imports core, store, store/group and go-retryablehttp. It
// builds an HTTP client of its own, without the checks of package egress: the address comes
// from the configuration, and no sender or caller chooses it.
//
// The idea to know: one batch is one request. D1 runs the statements of a request one after
// the other in one transaction, and [Open] proves that it does. While a request that writes is
// under way, further writes wait and share the next request. Reads go beside it. So a busy
// gateway sends few, large requests.
//
// A batch can be sent twice, unless one of its statements is marked Once (store.Stmt). If an
// answer is lost or cannot be read, the whole batch is sent again, up to three times and only
// as long as the caller waits. After that the batch is reported as unavailable.
//
// # Limits of D1, and the answer to each
//
//   - D1 binds each number in JSON as REAL, even 1. So integers are sent as text. SQLite
//     converts the text back where it meets an integer column or arithmetic.
//   - A statement has at most 100 parameters and 100,000 bytes of SQL. With [store.D1] as
//     dialect, one statement carries as many rows as have 100 parameters together. To insert
//     and update 100 rows took 5 ms in this way, and 16 ms with a statement for each row. One
//     JSON parameter for all rows took 3 ms, but values that fit a row may not fit one
//     parameter once they are escaped. [store.SQLite] works too, with a statement for each row.
//   - A row has at most 2,000,000 bytes. A larger row is refused before it is sent: see
//     [MaxRow].
//   - The proxy gets each row as a JSON object, so the columns of a statement need different
//     names.
//   - A database runs one request at a time. Two committers keep it busy while answers travel.
//     With more committers, writes would queue at D1. In the queue here they share requests.
//   - After "overloaded" or status 429, further requests make the overload worse. So batches
//     are refused here for a while and no request is sent.
//
// # Durability
//
// A commit is as durable as D1 makes it: D1 has no setting for it, and nothing in its answer
// tells. This package takes a batch for stored once D1 answered that it succeeded. It treats
// Lazy statements (store.Stmt) like all others.
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

// Options name a database. AccountID, DatabaseID and APIToken are required if Endpoint is
// empty.
type Options struct {
	AccountID, DatabaseID string

	// APIToken is the bearer token. For Cloudflare's API it is a token with the permission D1
	// Edit. For a proxy it is the proxy's secret, or empty if the proxy asks for none.
	APIToken string

	// Endpoint is the URL of the proxy. Empty means Cloudflare's API.
	Endpoint string

	// API is the base URL of the REST API. Empty means https://api.cloudflare.com. It is
	// ignored if Endpoint is set.
	API string

	// MaxConnections is how many requests may be under way at the same time, reads and writes
	// together. 0 means 10.
	MaxConnections int
}

const (
	defaultAPI         = "https://api.cloudflare.com"
	defaultConnections = 10

	// committers is how many requests that write are under way at the same time. See the
	// package comment for why it is two.
	committers = 2

	// Bounds of a request that several batches share. A Worker may make 1,000 queries in one
	// invocation (paid plan), and a request above that is refused before it is sent. The line
	// admits no further batch at 300 statements, so a batch of up to 700 still fits behind the
	// others. The proxy takes bodies of 16 MiB. 2 MiB of text become 12 MiB of JSON at most,
	// if each byte is a control character that is escaped with six.
	maxStatements = 300
	maxQueries    = 1000
	maxBytes      = 2 << 20

	// commitTimeout bounds a request that writes, with all its tries. The callers share the
	// request, so the context of a single caller must not end it.
	commitTimeout = 10 * time.Second
)

// A Conn is a [store.Conn] to one D1 database. It is safe for concurrent use: the fields up to
// slots do not change after Open, and the other fields are atomic.
type Conn struct {
	target target
	client *retryablehttp.Client // sends a request again: see checkRetry
	retry  store.Retry           // turns failures into refusals, and pauses after an overload
	line   *group.Line           // of batches that write
	slots  chan struct{}         // has an element for each request under way
	closed atomic.Bool
	sent   atomic.Int64 // HTTP requests, for Requests
}

// Open connects to a database and proves that its batches are atomic, with two requests in the
// usual case. It does not change the schema. A refusal of kind Invalid says which setting is
// wrong. A refusal of kind Unavailable means that the database does not answer now.
func Open(ctx context.Context, o Options) (store.Conn, error) {
	t, err := newTarget(o)
	if err != nil {
		return nil, err
	}
	if o.MaxConnections <= 0 {
		o.MaxConnections = defaultConnections
	}
	c := newConn(t, o.MaxConnections)
	c.line = c.newLine()
	if err := store.ProveAtomic(ctx, c); err != nil {
		_ = c.Close()
		return nil, t.opening(err)
	}
	return c, nil
}

// newConn makes a Conn that can run reads. Open adds the line for batches that write.
func newConn(t target, connections int) *Conn {
	c := &Conn{target: t, slots: make(chan struct{}, connections)}
	c.client = c.newClient(connections)
	c.retry = store.Retry{Classify: c.classify, Tries: 1} // client sends again by itself
	return c
}

func (c *Conn) newLine() *group.Line {
	return group.NewLine(min(committers, cap(c.slots)), c.commit, group.Bounds{Statements: maxStatements, Bytes: maxBytes})
}

// Requests is how many HTTP requests have been sent. Each try counts.
func (c *Conn) Requests() int64 { return c.sent.Load() }

// Batch runs statements in one request. See store.Conn.
func (c *Conn) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	if len(stmts) == 0 {
		return nil, nil
	}
	if c.closed.Load() {
		return nil, store.Unavailable(store.ErrClosed)
	}
	// A batch beyond D1's limits is refused before it enters the line. Otherwise the request that
	// it shares would fail, and the line would send each of the other batches alone.
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

// commit writes a group in one request. It is the [group.Commit] of the line. Rows for the same
// text go into one statement, since a statement costs as much as twenty rows.
func (c *Conn) commit(batches []*group.Batch) error {
	return contain(func() error { return c.write(batches) })
}

// contain turns a panic into a refusal of kind Unavailable, since the statements may have taken
// effect. A panic in the committer's goroutine, such as one in the HTTP client, would otherwise
// end the process.
func contain(do func() error) error {
	err := core.Contain(do)
	if p := (*core.Panic)(nil); errors.As(err, &p) {
		return store.Unavailable(p)
	}
	return err
}

// write sends the statements of all batches and gives each batch its own results.
func (c *Conn) write(batches []*group.Batch) error {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	// Batches of rows are merged. All others keep their statements as they are.
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
	// Results come in the order of the statements: first the merged ones, which several batches
	// share, then those of each other batch.
	m.Share(results[:len(m.Stmts)])
	results = results[len(m.Stmts):]
	for _, b := range others {
		results = results[copy(b.Results, results):]
	}
	return nil
}

// updates reports whether a statement is an UPDATE. If an UPDATE has several rows for one job,
// SQLite applies an arbitrary one. So the outcomes that two callers have for one attempt must
// stay in separate statements.
func updates(s store.Stmt) bool { return strings.HasPrefix(s.SQL, "UPDATE") }

// run sends statements in one request and returns one result for each. Batch calls it for
// reads, write for a group.
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
	if total == 0 { // each statement has an empty list of rows
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

// Close waits for writes under way, and not for reads. Later batches fail.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.line.Close()
	c.client.HTTPClient.CloseIdleConnections()
	return nil
}

// Bounds of the tries of one batch.
const (
	resends   = 3                      // after the first try
	firstWait = 100 * time.Millisecond // before the first resend; it doubles from try to try
	maxWait   = 2 * time.Second

	// tryTimeout bounds the time to connect, and then the time until an answer begins. Callers
	// wait 10 s as a rule, so a connection that ended unnoticed leaves time for another try.
	// The context of the caller bounds the time in which the body arrives.
	tryTimeout = 4 * time.Second
)

// newClient makes the client. It speaks HTTP/1.1: a try that times out then closes its own
// connection. With HTTP/2 all requests would share that one dead connection.
//
// It follows no redirect, since a redirect of a POST may drop the body. The operator gets the
// new address in an error instead: see target.setting.
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
	client.Logger = nil // its lines contain the address with the account and the database
	client.RequestLogHook = func(retryablehttp.Logger, *http.Request, int) { c.sent.Add(1) }
	client.RetryMax, client.RetryWaitMin, client.RetryWaitMax = resends, firstWait, maxWait
	client.CheckRetry, client.Backoff = c.checkRetry, backoff
	// Without this handler the client would put the address and the number of tries into the
	// last error.
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return client
}

// send posts a body of n queries until D1 answers it or the tries are used up. It takes a slot
// for all tries together, so that the waits between them do not let more requests in.
func (c *Conn) send(ctx context.Context, stmts []store.Stmt, body []byte, n int) (answers []answer, err error) {
	_, err = c.retry.Do(ctx, stmts, func(ctx context.Context, _ []store.Stmt) ([]store.Result, error) {
		select {
		case c.slots <- struct{}{}:
			defer func() { <-c.slots }()
		case <-ctx.Done():
			return nil, store.Unsent(store.Unavailable(ctx.Err()))
		}
		// retry reports core.Untouched to the caller if no try reached a connection.
		way := &call{once: !store.Repeatable(stmts)}
		answers, err = c.post(context.WithValue(ctx, callKey{}, way), body, n)
		if err != nil && !way.sent {
			err = store.Unsent(err)
		}
		return nil, err
	})
	return answers, err
}

// post sends a body of n queries and reads the answer. The client sends the body again where
// checkRetry allows it.
func (c *Conn) post(ctx context.Context, body []byte, n int) (answers []answer, err error) {
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, c.target.url, body)
	if err != nil {
		return nil, &failure{message: err.Error(), class: store.Rejected}
	}
	if c.target.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.target.token)
	}
	req.Header.Set("Content-Type", "application/json")
	// The handler runs within a try, so an answer that is cut off in the body counts as a lost
	// one. It returns only failures that another try may mend. All others end the tries, and
	// post returns them below.
	var failed *failure
	req.SetResponseHandler(func(resp *http.Response) error {
		answers, failed = read(resp, n)
		if failed != nil && failed.class == store.Lost {
			return failed
		}
		return nil
	})
	switch _, err := c.client.Do(req); {
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, failed
	}
	return answers, nil
}

// named adds the names of a batch's statements to an error, at most eight different ones: D1
// does not say which statement of a batch failed.
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
