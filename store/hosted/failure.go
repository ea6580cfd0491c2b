package hosted

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/once"
	"github.com/eventgateway/gateway/store"
)

// A failure is an answer without usable results, such as an error of D1 or the page of another
// server.
type failure struct {
	status  int
	code    int // of Cloudflare's API; zero if the answer has none
	message string

	class  store.Class
	tooBig bool          // it is Rejected because a value or row does not fit
	wait   time.Duration // see store.Failure
}

func (f *failure) Error() string {
	if f.code == 0 {
		return fmt.Sprintf("status %d: %s", f.status, f.message)
	}
	return fmt.Sprintf("status %d, code %d: %s", f.status, f.code, f.message)
}

// Error messages of D1, from https://developers.cloudflare.com/d1/observability/debug-d1/ and
// from the list of result codes of SQLite.
var (
	overloaded = once.Regexp(`D1 DB is overloaded|Too many requests queued`)
	transient  = once.Regexp(`because its code was updated|caused object to be reset|Network connection lost|` +
		`transient issue|exceeded timeout|exceeded its memory limit|exceeded its CPU time limit|client disconnected|` +
		`SQLITE_(BUSY|LOCKED|IOERR|NOMEM|INTERRUPT|PROTOCOL|CANTOPEN)`)
	full    = once.Regexp(`SQLITE_(FULL|READONLY)|maximum DB size|[Ee]xceeded maximum`)
	tooBig  = once.Regexp(`SQLITE_TOOBIG|string or blob too big`)
	missing = once.Regexp(`no such (table|column|index)|has no column named`)
	refused = once.Regexp(`SQLITE_[A-Z]+`)
)

// Codes of Cloudflare's API.
var (
	noAccess   = []int{10000, 10001, 7403, 9103, 9106, 9109, 6003, 6111}
	noDatabase = []int{7404, 7003, 7000}
)

const firstHold = 500 * time.Millisecond

// classify makes a failure of an answer, with its class for the batch.
func classify(status, code int, message string) *failure {
	f := &failure{status: status, code: code, message: message}
	switch {
	case overloaded().MatchString(message), status == http.StatusTooManyRequests:
		f.class, f.wait = store.Overloaded, firstHold
	case transient().MatchString(message):
		f.class = store.Lost
	case full().MatchString(message): // the batch took no effect, and can succeed once there is room
		f.class = store.Down
	case missing().MatchString(message):
		f.class = store.Mismatched
	case tooBig().MatchString(message):
		f.class, f.tooBig = store.Rejected, true
	case status == http.StatusUnauthorized || status == http.StatusForbidden || slices.Contains(noAccess, code),
		status == http.StatusNotFound || slices.Contains(noDatabase, code),
		status == http.StatusMethodNotAllowed, status >= 300 && status < 400:
		f.class = store.Misconfigured
	case status < 500 && code == 0: // the answer is from a server in front of D1
		f.class = store.Lost
	case status >= 500 && !refused().MatchString(message), status == http.StatusRequestTimeout:
		f.class = store.Lost
	default:
		f.class = store.Rejected
	}
	return f
}

// consider adds the headers of the answer to the failure. If Retry-After is longer than maxWait,
// the batch is not sent again, and all batches pause for that time.
func (f *failure) consider(h http.Header) {
	if f.status >= 300 && f.status < 400 {
		f.message = "to " + h.Get("Location")
	}
	wait := after(h)
	switch f.class {
	case store.Overloaded:
		f.wait = max(wait, f.wait)
	case store.Lost, store.Down:
		if wait > maxWait {
			f.class, f.wait = store.Overloaded, wait
		}
	}
}

// classify maps the error of a try to its class.
func (c *Conn) classify(err error) store.Failure {
	var f *failure
	if !errors.As(err, &f) {
		return c.target.unanswered(err)
	}
	f.message = c.target.hide(f.message)
	switch {
	case f.tooBig:
		return store.Failure{Class: store.Rejected, Err: errTooLarge}
	case f.class == store.Misconfigured:
		return store.Failure{Class: f.class, Err: c.target.setting(f)}
	}
	return store.Failure{Class: f.class, Err: f, Wait: f.wait}
}

// unanswered maps the error of a request that got no answer to its class.
func (t target) unanswered(err error) store.Failure {
	if !hopeless(err) {
		return store.Failure{Class: store.Lost, Err: err}
	}
	return store.Failure{Class: store.Misconfigured, Err: core.Refuse(core.Invalid,
		"no secure connection to %s: check %s, and the certificates of this machine (%v)", t.name, t.where(), cause(err))}
}

// A call is one batch on its way, with all its tries.
type call struct {
	once bool // it must not be sent again: see store.Repeatable
	sent bool // a try got past the dial, so D1 may have the batch
}

type callKey struct{}

// checkRetry decides after each try whether the client sends the request again. err is the error
// of the connection, or the failure that read made of the answer.
func (c *Conn) checkRetry(ctx context.Context, _ *http.Response, err error) (bool, error) {
	way := ctx.Value(callKey{}).(*call)
	var network *net.OpError
	way.sent = way.sent || !(errors.As(err, &network) && network.Op == "dial")
	if err == nil || ctx.Err() != nil || way.once {
		return false, nil
	}
	return c.classify(err).Class == store.Lost, nil
}

// backoff returns the wait before the next try: the Retry-After of the answer, or else a wait
// that doubles from try to try. The longest wait is most.
func backoff(first, most time.Duration, n int, resp *http.Response) time.Duration {
	if resp != nil {
		if wait := after(resp.Header); wait > 0 {
			return min(wait, most)
		}
	}
	return store.Jitter(retryablehttp.DefaultBackoff(first, most, n, nil))
}

// hopeless reports whether every other try would meet the same error.
func hopeless(err error) bool {
	var cert *tls.CertificateVerificationError
	return errors.As(err, &cert) || errors.Is(err, http.ErrSchemeMismatch)
}
