package hosted

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// A failure is an answer that is not a result.
type failure struct {
	status  int
	code    int // Cloudflare's, zero if there was none
	message string
	kind    kind

	again bool          // the batch is worth another try at once
	hold  time.Duration // nothing is to be sent for so long
}

type kind int

const (
	unclear      kind = iota // the batch may have taken effect, or may later
	wrongSQL                 // D1 refused a statement: no effect, and none later
	tooLarge                 // a value or row does not fit
	misfit                   // a table or column is not there
	wrongSetting             // token, account, database or address
)

func (f *failure) Error() string {
	if f.code == 0 {
		return fmt.Sprintf("status %d: %s", f.status, f.message)
	}
	return fmt.Sprintf("status %d, code %d: %s", f.status, f.code, f.message)
}

// What D1 says, from https://developers.cloudflare.com/d1/observability/debug-d1/
// and SQLite's list of result codes.
var (
	overloaded = regexp.MustCompile(`D1 DB is overloaded|Too many requests queued`)
	transient  = regexp.MustCompile(`because its code was updated|caused object to be reset|Network connection lost|` +
		`transient issue|exceeded timeout|exceeded its memory limit|exceeded its CPU time limit|client disconnected|` +
		`SQLITE_(BUSY|LOCKED|IOERR|NOMEM|INTERRUPT|PROTOCOL|CANTOPEN)`)
	full    = regexp.MustCompile(`SQLITE_(FULL|READONLY)|maximum DB size|[Ee]xceeded maximum`)
	tooBig  = regexp.MustCompile(`SQLITE_TOOBIG|string or blob too big`)
	missing = regexp.MustCompile(`no such (table|column|index)|has no column named`)
	refused = regexp.MustCompile(`SQLITE_[A-Z]+`)
)

// Codes of Cloudflare's API.
var (
	noAccess   = []int{10000, 10001, 7403, 9103, 9106, 9109, 6003, 6111}
	noDatabase = []int{7404, 7003, 7000}
)

const firstHold = 500 * time.Millisecond

// classify tells what an answer means for the batch.
func classify(status, code int, message string) *failure {
	f := &failure{status: status, code: code, message: message}
	switch {
	case overloaded.MatchString(message), status == http.StatusTooManyRequests:
		f.hold = firstHold
	case transient.MatchString(message):
		f.again = true
	case full.MatchString(message): // no effect, but another answer once there is room
	case missing.MatchString(message):
		f.kind = misfit
	case tooBig.MatchString(message):
		f.kind = tooLarge
	case status == http.StatusUnauthorized || status == http.StatusForbidden || slices.Contains(noAccess, code),
		status == http.StatusNotFound || slices.Contains(noDatabase, code),
		status == http.StatusMethodNotAllowed, status >= 300 && status < 400:
		f.kind = wrongSetting
	case status < 500 && code == 0: // somebody in between
		f.again = true
	case status >= 500 && !refused.MatchString(message), status == http.StatusRequestTimeout:
		f.again = true
	default:
		f.kind = wrongSQL
	}
	return f
}

// consider takes in what the header asks for. A wait that is too long for a try
// becomes a pause for all.
func (f *failure) consider(h http.Header) {
	if f.status >= 300 && f.status < 400 {
		f.message = "to " + h.Get("Location")
	}
	wait := after(h)
	if f.kind == unclear && (wait > maxWait || f.hold > 0 && wait > f.hold) {
		f.again, f.hold = false, wait
	}
}

// checkRetry is asked after each try: with the error of the connection, or with
// what read made of the answer.
func checkRetry(ctx context.Context, _ *http.Response, err error) (bool, error) {
	var f *failure
	var network *net.OpError
	if sent, ok := ctx.Value(sentSome{}).(*bool); ok && !(errors.As(err, &network) && network.Op == "dial") {
		*sent = true
	}
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() != nil, ctx.Value(onceOnly{}) != nil:
		return false, nil
	case errors.As(err, &f):
		return f.again, nil
	}
	return !hopeless(err), nil
}

// sentSome marks the *bool that tells whether any try got as far as a connection.
type sentSome struct{}

// onceOnly marks the context of a request that would do more if it were sent again.
type onceOnly struct{}

// hopeless tells errors of the connection that another try meets too.
func hopeless(err error) bool {
	var cert *tls.CertificateVerificationError
	return errors.As(err, &cert) || errors.Is(err, http.ErrSchemeMismatch)
}

// backoff doubles from try to try, with jitter, unless the answer named a time.
func backoff(first, most time.Duration, n int, resp *http.Response) time.Duration {
	if resp != nil {
		if wait := after(resp.Header); wait > 0 {
			return min(wait, most)
		}
	}
	wait := retryablehttp.DefaultBackoff(first, most, n, nil)
	return wait/2 + rand.N(wait)
}

// A pause is a time in which nothing is sent, because D1 asked for it. It doubles
// while every request after it ends in another one.
type pause struct {
	mu    sync.Mutex
	until time.Time
	last  time.Duration
}

// The longest pause after which D1 is asked again: the rate limit's own, and the
// one of an overload that lasts.
const (
	maxHold     = 5 * time.Minute
	maxOverload = 30 * time.Second
)

// begin starts a pause and returns how long it is.
func (p *pause) begin(hold time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := time.Until(p.until); left > 0 {
		return max(left, 0) // another request has begun it
	}
	if hold <= maxOverload {
		hold = min(max(hold, 2*p.last), maxOverload)
	}
	p.last = min(hold, maxHold)
	p.until = time.Now().Add(p.last)
	return p.last
}

func (p *pause) left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Until(p.until)
}

// end is called after a request that went well.
func (p *pause) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = 0
}
