package boot

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
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

	// nudgeTime is how long a nudge may take: a sender waits for it.
	nudgeTime = time.Second
)

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
	url    string // "" if nobody is to be nudged
	region string
	client *http.Client
	signer *v4.Signer

	mu   sync.Mutex
	last time.Time // when the last one was sent
}

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
// way then is sent: nobody would send it again.
func (n *nudger) run(ctx context.Context) {
	for {
		select {
		case <-n.heard.C:
			n.flush(context.WithoutCancel(ctx))
		case <-ctx.Done():
			return
		}
	}
}

// flush nudges if there is something to do that the worker does not know of. What comes
// within a second of a nudge that is under way or sent finds the worker awake.
func (n *nudger) flush(ctx context.Context) {
	if n == nil || n.url == "" || !n.rung() {
		return
	}
	if !n.mine() {
		return
	}
	if err := core.Contain(func() error { return n.send(ctx) }); err != nil { // some calls come from a goroutine of ours
		n.log.Warn("the worker's function could not be nudged; its schedule delivers", "error", err)
	}
}

// mine tells whether it is time for a nudge, and takes it for sent.
func (n *nudger) mine() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.clock().Round(0) // by the wall: the other clock may stand still with the environment
	if since := now.Sub(n.last); since >= 0 && since < nudgeEvery {
		return false
	}
	n.last = now
	return true
}

// rung tells whether a lane was rung that a worker takes from.
func (n *nudger) rung() bool {
	for _, lane := range n.heard.Rung() {
		if lane.Queue() == "" {
			return true
		}
	}
	return false
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
		return fmt.Errorf("status %d: %q", reply.StatusCode, strings.ToValidUTF8(string(reason), ""))
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
