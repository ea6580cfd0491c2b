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
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/eventgateway/gateway/core"
)

const (
	// nudgeEvery is how far apart an environment's nudges are. The worker stays awake for
	// longer, so nothing waits for the one that was not sent.
	nudgeEvery = time.Second

	// nudgeTime is how long one call of Lambda's API may take, nudgeTimes how long all the
	// calls for one nudge may take: a sender waits for them.
	nudgeTime  = time.Second
	nudgeTimes = 2 * time.Second

	// nudgeTries is how often a nudge is sent that fails for a reason that may pass.
	nudgeTries = 4
	nudgePause = 100 * time.Millisecond // before the second call; three times as long before each after that
)

// minuteAhead is how far ahead a worker is to know what comes due: until the schedule has
// invoked the next one, which looks at the store by itself. A schedule may be some
// seconds late.
const minuteAhead = time.Minute + 5*time.Second

// nudge is the event of an invocation that is a nudge.
var nudge = []byte(`{"nudge":true}`)

var functionName = regexp.MustCompile(`^[A-Za-z0-9_:$-]{1,170}$`)

// A nudger invokes the function of the worker when there is something for it to do, so
// that this need not wait for the next minute. Failing to is no harm: the schedule
// invokes it too. A nil one nudges nobody.
type nudger struct {
	system
	log    *slog.Logger
	heard  *core.Listener
	ahead  func() time.Duration // how far the clock of due times is ahead of the machine; nil if they are the same
	url    string               // "" if no function is to be nudged
	region string
	client *http.Client
	signer *v4.Signer

	mu   sync.Mutex
	last time.Time // when the last one was sent
	owed bool      // the last one failed for a reason that may pass
}

// nudgeSelf stands for the function itself: in a template the worker cannot name itself.
const nudgeSelf = "self"

// newNudger makes one that listens. Whom to nudge is in GATEWAY_NUDGE, the name or ARN of
// a function; unset means nobody.
func (f *function) newNudger(heard *core.Listener) (*nudger, error) {
	n := &nudger{
		system: f.system,
		log:    f.log,
		heard:  heard,
		region: f.env("AWS_REGION"),
		signer: v4.NewSigner(),
		// A connection would be dead when the environment is woken again.
		client: &http.Client{Timeout: nudgeTime, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	name := f.env("GATEWAY_NUDGE")
	if name == nudgeSelf {
		name = f.env("AWS_LAMBDA_FUNCTION_NAME")
	}
	if name != "" && !functionName.MatchString(name) {
		return nil, core.Refuse(core.Invalid, "GATEWAY_NUDGE: %q is neither the name nor the ARN of a function", name)
	}
	if name != "" {
		base := cmp.Or(f.env("AWS_ENDPOINT_URL_LAMBDA"), serviceAddress(n.region))
		n.url = strings.TrimSuffix(base, "/") + "/2015-03-31/functions/" + url.PathEscape(name) + "/invocations"
	}
	return n, nil
}

// serviceAddress is where a region's Lambda service is.
func serviceAddress(region string) string {
	domain := "amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		domain += ".cn"
	}
	return "https://lambda." + region + "." + domain
}

// run nudges whenever there is something to do, until ctx is done. A nudge that is under
// way then is sent: no other process would send it.
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

// again receives when a nudge that failed may be sent again; never if none is owed.
func (n *nudger) again() <-chan time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.owed {
		return nil
	}
	return time.After(nudgeEvery)
}

// flush nudges if there is something to do that the worker does not know of. The worker is
// awake for work that is stored within a second of a nudge that is under way or sent.
func (n *nudger) flush(ctx context.Context) {
	if n == nil || n.url == "" {
		return
	}
	rung := n.rung()
	if !n.mine(rung) {
		return
	}
	n.owe(n.call(ctx))
}

// call sends a nudge, and says so if it cannot.
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

// mine tells whether it is time for a nudge, and takes it for sent. An owed nudge is sent
// although no lane was rung.
func (n *nudger) mine(rung bool) bool {
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

// owe notes whether a nudge is to be sent once more by a later flush.
func (n *nudger) owe(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.owed = passes(err)
}

// now is the wall's time: the other clock may stand still with the environment.
func (n *nudger) now() time.Time { return n.clock().Round(0) }

// rung tells whether a lane was rung that a worker takes from, for work that is due before
// the schedule is sure to have invoked a worker that sees it.
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

// bell receives after a lane was rung; never for a nil nudger.
func (n *nudger) bell() <-chan struct{} {
	if n == nil {
		return nil
	}
	return n.heard.C
}

// insist sends a nudge, again if it fails for a reason that may pass.
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

// A nudgeRefused is an answer of Lambda's API that is no success.
type nudgeRefused struct {
	status int
	reason string
}

func (r nudgeRefused) Error() string { return fmt.Sprintf("status %d: %q", r.status, r.reason) }

// passes tells whether sending again may help: the network or the API has a bad moment, or
// there were too many calls. A call that is not allowed, or a function that is not there, stays so.
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

// credentials are those of the function's role.
func (n *nudger) credentials() aws.Credentials {
	return aws.Credentials{
		AccessKeyID:     n.env("AWS_ACCESS_KEY_ID"),
		SecretAccessKey: n.env("AWS_SECRET_ACCESS_KEY"),
		SessionToken:    n.env("AWS_SESSION_TOKEN"),
	}
}
