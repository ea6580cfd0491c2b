package boot

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/once"
)

const (
	// nudgeEvery is the shortest time between two nudges of an environment. The nudged worker
	// stays awake for longer, so it finds work whose nudge was left out.
	nudgeEvery = time.Second

	// nudgeTime bounds one call of Lambda's API, and nudgeTimes all calls for one nudge: a
	// sender waits for them.
	nudgeTime  = time.Second
	nudgeTimes = 2 * time.Second

	// nudgeTries is the number of calls for a nudge that fails for a reason that may pass.
	nudgeTries = 4
	nudgePause = 100 * time.Millisecond // before the second call; each later pause is three times as long
)

// minuteAhead is how far ahead a worker must know the due times: until the schedule has
// invoked the next worker, which reads the store itself. A schedule may be some seconds late.
const minuteAhead = time.Minute + 5*time.Second

// nudge is the event that a nudge invokes the worker's function with.
var nudge = []byte(`{"nudge":true}`)

var functionName = once.Regexp(`^[A-Za-z0-9_:$-]{1,170}$`)

// A nudger invokes the worker's function when there is work for it, so that the work need not
// wait for the next minute. A failed nudge does no harm: the schedule invokes the worker too.
// A nil nudger does nothing.
type nudger struct {
	system
	log    *slog.Logger
	heard  *core.Listener
	ahead  func() time.Duration // how far the clock of due times is ahead of the machine's; nil if there is one clock
	url    string               // "" if there is no function to nudge
	region string
	client *http.Client
	signer *v4.Signer

	mu   sync.Mutex
	last time.Time // time of the last nudge
	owed bool      // the last nudge failed for a reason that may pass
}

// nudgeSelf stands for the function itself: a template cannot name the worker in the worker's
// own definition.
const nudgeSelf = "self"

// newNudger makes a nudger that nudges for the lanes in heard. GATEWAY_NUDGE has the name or
// ARN of the worker's function; without it the nudger calls no function.
func (f *function) newNudger(heard *core.Listener) (*nudger, error) {
	n := &nudger{
		system: f.system,
		log:    f.log,
		heard:  heard,
		region: f.env("AWS_REGION"),
		signer: v4.NewSigner(),
		// A kept connection would be dead when the environment is woken again.
		client: &http.Client{Timeout: nudgeTime, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	name := f.env("GATEWAY_NUDGE")
	if name == nudgeSelf {
		name = f.env("AWS_LAMBDA_FUNCTION_NAME")
	}
	if name != "" && !functionName().MatchString(name) {
		return nil, core.Refuse(core.Invalid, "GATEWAY_NUDGE: %q is neither the name nor the ARN of a function", name)
	}
	if name != "" {
		base := cmp.Or(f.env("AWS_ENDPOINT_URL_LAMBDA"), serviceAddress(n.region))
		n.url = strings.TrimSuffix(base, "/") + "/2015-03-31/functions/" + url.PathEscape(name) + "/invocations"
	}
	return n, nil
}

// serviceAddress returns the URL of Lambda's API in a region.
func serviceAddress(region string) string {
	domain := "amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		domain += ".cn"
	}
	return "https://lambda." + region + "." + domain
}

// run nudges whenever there is work for the worker, until ctx is done. A nudge that is under
// way then is completed: no other process would send it.
func (n *nudger) run(ctx context.Context) {
	if n == nil {
		return
	}
	for {
		select {
		case <-n.heard.C:
		case <-n.again():
		case <-ctx.Done():
			return
		}
		n.flush(context.WithoutCancel(ctx))
	}
}

// again returns a channel that receives when a failed nudge may be sent again. It is nil if no
// nudge is owed.
func (n *nudger) again() <-chan time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.owed {
		return nil
	}
	return time.After(nudgeEvery)
}

// flush sends a nudge if there is work that the worker does not know of. Work stored within a
// second of an earlier nudge needs none: the worker is still awake.
func (n *nudger) flush(ctx context.Context) {
	if n == nil || n.url == "" {
		return
	}
	rung := n.rung()
	if !n.reserve(rung) {
		return
	}
	n.owe(n.call(ctx))
}

// call sends a nudge. It logs and returns the error if that fails.
func (n *nudger) call(ctx context.Context) error {
	if n == nil || n.url == "" {
		return nil
	}
	err := core.Contain(func() error { return n.insist(ctx) }) // some calls run on a goroutine without another guard against panics
	if err != nil {
		n.log.Warn("the worker's function could not be nudged; its schedule delivers", "error", err)
	}
	return err
}

// reserve reports whether a nudge is to be sent now. If so, it notes the nudge as sent. An owed
// nudge is sent even if no lane has new work.
func (n *nudger) reserve(rung bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	if !rung && !n.owed {
		return false
	}
	if since := now.Sub(n.last); since >= 0 && since < nudgeEvery {
		return false
	}
	n.last = now
	return true
}

// owe notes whether a later flush sends the nudge again.
func (n *nudger) owe(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.owed = passes(err)
}

// now returns the wall-clock time. The monotonic clock may stand still while the environment
// is frozen.
func (n *nudger) now() time.Time { return n.clock().Round(0) }

// rung reports whether there is new work in a lane of the worker. It counts only work that is
// due before the schedule is sure to have invoked a worker that sees it.
func (n *nudger) rung() (due bool) {
	if n == nil {
		return false
	}
	for _, lane := range n.heard.Rung() {
		due = due || lane.Queue() == ""
	}
	horizon := n.now().Add(minuteAhead)
	if n.ahead != nil {
		horizon = horizon.Add(n.ahead())
	}
	for lane, at := range n.heard.Coming() {
		due = due || lane.Queue() == "" && at.Before(horizon)
	}
	return due
}

// bell returns a channel that receives after a lane has new work. It is nil for a nil nudger.
func (n *nudger) bell() <-chan struct{} {
	if n == nil {
		return nil
	}
	return n.heard.C
}

// insist sends a nudge. It sends it again if it fails for a reason that may pass.
func (n *nudger) insist(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, nudgeTimes)
	defer cancel()
	pause := nudgePause
	for try := 1; ; try++ {
		if err = n.send(ctx); !passes(err) || try == nudgeTries {
			return err
		}
		select {
		case <-time.After(pause):
			pause *= 3
		case <-ctx.Done():
			return err
		}
	}
}

// A nudgeRefused is an answer of Lambda's API with a status other than 2xx.
type nudgeRefused struct {
	status int
	reason string
}

func (r nudgeRefused) Error() string { return fmt.Sprintf("status %d: %q", r.status, r.reason) }

// passes reports whether sending again may help. It may after a network error, a status 5xx or
// 429. It does not if the call is not allowed or the function does not exist.
func passes(err error) bool {
	if p := (*core.Panic)(nil); err == nil || errors.As(err, &p) {
		return false
	}
	refused := nudgeRefused{}
	return !errors.As(err, &refused) || refused.status == http.StatusTooManyRequests || refused.status >= 500
}

// send invokes the function without waiting for its end:
// https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
func (n *nudger) send(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url, bytes.NewReader(nudge))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Amz-Invocation-Type", "Event")
	sum := sha256.Sum256(nudge)
	if err := n.signer.SignHTTP(ctx, n.credentials(), r, hex.EncodeToString(sum[:]), "lambda", n.region, n.clock()); err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	reply, err := n.client.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode/100 != 2 {
		reason, _ := io.ReadAll(io.LimitReader(reply.Body, maxReason))
		return nudgeRefused{reply.StatusCode, strings.ToValidUTF8(string(reason), "")}
	}
	return nil
}

// credentials returns the credentials of the function's role.
func (n *nudger) credentials() aws.Credentials {
	return aws.Credentials{
		AccessKeyID:     n.env("AWS_ACCESS_KEY_ID"),
		SecretAccessKey: n.env("AWS_SECRET_ACCESS_KEY"),
		SessionToken:    n.env("AWS_SESSION_TOKEN"),
	}
}
