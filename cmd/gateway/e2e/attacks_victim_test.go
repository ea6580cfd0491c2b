//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/wait"
)

// The bounds for the victim of an attack.
const (
	worstP99    = 250 * time.Millisecond // of its posts
	worstHealth = 100 * time.Millisecond // of each /health
	worstWait   = 5 * time.Second        // from the end of its posts until its consumers have all events
)

const (
	postRate    = 200 // a second
	healthEvery = 100 * time.Millisecond
	apiEvery    = 250 * time.Millisecond

	// attempts is how often the test may measure the victim's latencies if they are above the
	// bounds. A measurement while other programs occupy the machine does not count. The test
	// repeats it for the time patience. An answer that is not 2xx, or too much memory, fails
	// the test at once.
	attempts = 3
	patience = 20 * time.Second
)

// A victim is an honest client: it posts events at an even rate, consumes them from two
// queues, reads the API and asks /health. Half of its posts, and each /health, are on new
// connections.
type victim struct {
	t           *testing.T
	g           *gateway
	from        side
	kept, fresh *http.Client
	figures
}

// figures are the measurements of a victim.
type figures struct {
	mu                 sync.Mutex
	posts, health, api []time.Duration
	misses             map[string]int       // by the request and the kind of failure
	accepted           map[string]bool      // ids of events
	received           map[string]time.Time // when, by the id of the event
	began              time.Time
}

// newVictim is for attacks on a gateway with attackConfig.
func newVictim(t *testing.T, g *gateway, from side) *victim {
	t.Helper()
	v := &victim{t: t, g: g, from: from}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return from.dial(ctx) }
	v.kept = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 256}}
	v.fresh = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	t.Cleanup(v.kept.CloseIdleConnections)
	return v
}

// live runs the victim for a time. It returns when all requests are answered and the
// consumers have the accepted events, or have waited worstWait for them.
func (v *victim) live(d time.Duration) {
	v.figures.clear()
	ctx, end := context.WithCancel(context.Background())
	defer end()
	over := time.Now().Add(d)
	var askers, consumers sync.WaitGroup
	askers.Go(func() { v.post(int(d.Seconds() * postRate)) })
	askers.Go(func() { v.every(over, healthEvery, v.askHealth) })
	askers.Go(func() { v.every(over, apiEvery, v.askAPI) })
	for _, queue := range []string{"mail", "orders"} {
		consumers.Go(func() { v.consume(ctx, queue) })
	}
	askers.Wait()
	wait.Until(worstWait, v.hasAll)
	end()
	consumers.Wait()
}

// post posts n events at postRate. Posts do not wait for each other's answers.
func (v *victim) post(n int) {
	var posts sync.WaitGroup
	for i := range n {
		if wait := time.Until(v.began.Add(time.Duration(i) * time.Second / postRate)); wait > 0 {
			<-time.After(wait)
		}
		posts.Go(func() { v.postOne(i) })
	}
	posts.Wait()
}

// postOne posts an event with the token, or a signed webhook.
func (v *victim) postOne(i int) {
	body := fmt.Sprintf(`{"n":%d,"fill":%q}`, i, filling)
	path, headers := "/events/app/order.created", bearer(attackToken)
	if i%2 == 1 {
		path, headers = "/webhooks/shop", []string{"X-Webhook-Signature", hexHMAC(attackSecret, body)}
	}
	client := v.kept
	if i/2%2 == 1 {
		client = v.fresh
	}
	began := time.Now()
	a := v.ask(client, "post", request{method: http.MethodPost, url: v.g.url(path), body: body, headers: headers})
	v.mu.Lock()
	defer v.mu.Unlock()
	v.posts = append(v.posts, time.Since(began))
	if id := a.eventID(); id != "" {
		v.accepted[id] = true
	}
}

func (v *victim) every(over time.Time, interval time.Duration, ask func()) {
	var all sync.WaitGroup
	for ; time.Now().Before(over); <-time.After(interval) {
		all.Go(ask)
	}
	all.Wait()
}

func (v *victim) askHealth() {
	began := time.Now()
	v.ask(v.fresh, "/health", request{method: http.MethodGet, url: v.g.url("/health")})
	v.mu.Lock()
	defer v.mu.Unlock()
	v.health = append(v.health, time.Since(began))
}

func (v *victim) askAPI() {
	began := time.Now()
	v.ask(v.fresh, "API", request{method: http.MethodGet, url: v.g.url("/api/events?limit=1"), headers: bearer(attackToken)})
	v.mu.Lock()
	defer v.mu.Unlock()
	v.api = append(v.api, time.Since(began))
}

// consume receives and acks messages of a queue until ctx ends.
func (v *victim) consume(ctx context.Context, queue string) {
	path := v.g.url("/api/queues/" + queue)
	for ctx.Err() == nil {
		a := v.ask(v.kept, "receive", request{method: http.MethodGet, url: path + "/messages?batch=100&wait=200ms", headers: bearer(victimKey)})
		var got messages
		if a.status != http.StatusOK {
			pause(ctx, 20*time.Millisecond)
			continue
		}
		if err := json.Unmarshal([]byte(a.body), &got); err != nil {
			v.miss(fmt.Sprintf("receive: %v", err))
		}
		if len(got.Messages) == 0 {
			continue
		}
		ids, _ := json.Marshal(map[string]any{"ids": receipts(got.Messages)}) // cannot fail
		v.ask(v.kept, "ack", request{method: http.MethodPost, url: path + "/ack", body: string(ids), headers: bearer(victimKey)})
		v.note(got.Messages)
	}
}

// ask makes a request and notes an answer that is not 2xx.
func (v *victim) ask(client *http.Client, what string, r request) answer {
	r.headers = append(slices.Clone(v.from.headers), r.headers...)
	a, err := fetch(client, r)
	switch {
	case err != nil:
		v.miss(what + ": " + kindOf(err))
	case a.status/100 != 2:
		v.miss(fmt.Sprintf("%s: %d %.40q", what, a.status, a.body))
	}
	return a
}

func (f *figures) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.posts, f.health, f.api = nil, nil, nil
	f.misses, f.accepted, f.received = map[string]int{}, map[string]bool{}, map[string]time.Time{}
	f.began = time.Now()
}

func (f *figures) miss(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.misses[why]++
}

func (f *figures) note(ms []message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range ms {
		if _, known := f.received[m.EventID]; !known {
			f.received[m.EventID] = time.Now()
		}
	}
}

// missing is how many of the accepted events the consumers do not have.
func (f *figures) missing() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.accepted {
		if _, ok := f.received[id]; !ok {
			n++
		}
	}
	return n
}

func (f *figures) hasAll() bool { return f.missing() == 0 }

func (f *figures) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%d posts p50 %v, p99 %v, max %v", len(f.posts), percentile(f.posts, 50), percentile(f.posts, 99), percentile(f.posts, 100))
	fmt.Fprintf(&b, "; %d /health max %v; %d API max %v", len(f.health), percentile(f.health, 100), len(f.api), percentile(f.api, 100))
	fmt.Fprintf(&b, "; accepted %d, received %d", len(f.accepted), len(f.received))
	return b.String()
}

// served requires that the gateway served the victim within the bounds. It returns an error
// if a latency is above its bound, since the machine may be the reason. Any other failure
// fails the test.
func (v *victim) served() error {
	v.t.Helper()
	for _, why := range slices.Sorted(maps.Keys(v.misses)) {
		v.t.Errorf("the victim's requests failed %d times: %s", v.misses[why], why)
	}
	if n := v.missing(); n > 0 {
		v.t.Errorf("the victim's consumers lack %d of %d accepted events %v after the last post", n, len(v.accepted), worstWait)
	}
	return errors.Join(
		bounded("p99 of the victim's posts", percentile(v.posts, 99), worstP99),
		bounded("the slowest /health of the victim", percentile(v.health, 100), worstHealth),
	)
}

func bounded(what string, took, bound time.Duration) error {
	if took < bound {
		return nil
	}
	return fmt.Errorf("%s = %v, want less than %v", what, took, bound)
}

// endure requires that the gateway serves the victim for a time, within its memory.
func (v *victim) endure(c *memoryCage, d time.Duration) {
	v.t.Helper()
	for counted, deadline := 0, time.Now().Add(patience+attempts*d); ; {
		before, err := v.g.cpuTime()
		if err != nil {
			v.t.Fatal(err)
		}
		v.live(d)
		late := v.served()
		v.checkMemory(c)
		if v.t.Failed() {
			v.t.Log(&v.figures)
			return
		}
		after, err := v.g.cpuTime()
		if err != nil {
			v.t.Fatal(err)
		}
		others := after.since(before)
		v.t.Logf("%s; other programs used %.0f %% of the CPU", &v.figures, 100*others)
		if late == nil {
			return
		}
		if others < occupied {
			counted++
		}
		switch v.t.Logf("attempt %d: %v", counted, late); {
		case counted == attempts:
			v.t.Fatalf("%d times, the last time: %v", attempts, late)
		case time.Now().After(deadline):
			need(v.t, "a machine without much other work, to judge latencies", late)
		}
	}
}

// checkMemory requires that the gateway is running, and that its resident memory stayed below
// residentLimit since forgetPeak.
func (v *victim) checkMemory(c *memoryCage) {
	v.t.Helper()
	resident, err := statusFigure(v.g.pid(), "VmHWM")
	if err != nil {
		ended := wait.Until(time.Second, v.g.ended)
		v.t.Errorf("the gateway has no memory figures (%v); its process has ended: %v; most memory of its cgroup: %s; want that it lives with less than %d MiB", err, ended, c.highest(), memoryLimit>>20)
		return
	}
	v.t.Logf("resident memory at most %d MiB, most memory of the cgroup %s", resident>>10, c.highest())
	if resident<<10 >= residentLimit {
		v.t.Errorf("resident memory at most %d MiB, want less than %d MiB", resident>>10, residentLimit>>20)
	}
}
