//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// pullConfig has the shortest possible leases for alerts, like outageConfig.
const pullConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  max_inbound: 1000
  allow_private_urls: true
delivery: {timeout: 1s}
worker: {stale_threshold_secs: 1}
sources: {app: {type: event}}
queues: {load: {source: app, visibility_timeout: 300ms, max_attempts: 6, api_key: the-key-of-the-queue-load}}
alerts: [{url: "${RECEIVER}/alerts", on: [dlq]}]
`

const (
	pullKey        = "the-key-of-the-queue-load"
	pullVisibility = 300 * time.Millisecond
	pullAttempts   = 6
	pullSenders    = 8
	pullConsumers  = 16

	// cursed is the interval of serials whose messages are never acked, and become dead.
	cursed = 200
)

// TestPull checks the promises of queues while consumers and processes fail. No consumer gets
// a message that another consumer holds. An acked message is finished. Every message ends as
// acked or dead.
func TestPull(t *testing.T) {
	tests := []struct {
		name      string
		on        func(testing.TB) *store
		processes int
		messages  int
		few       int // messages of a short run
		kills     int
	}{
		{"SQLite", ownFile, 1, whole(20_000, 2000), 2000, 6},
		{"PostgreSQL", onPostgres, 2, whole(20_000, 2000), 2000, 6},
		{"MySQL", onMySQL, 2, whole(3000, 1000), 300, 3},
		{"D1", onProxy, 2, 300, 30, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			messages, kills := tt.messages, tt.kills
			if testing.Short() || underRace() {
				messages = tt.few
			}
			if underRace() {
				// The goroutines are the same on each database, and each start takes seconds.
				if messages < 1000 {
					t.Skip("without the race detector only")
				}
				messages, kills = 1000, 2
			}
			testPull(t, tt.on(t), tt.processes, messages, kills)
		})
	}
}

func testPull(t *testing.T, st *store, processes, messages, kills int) {
	r := receiver.New(t)
	fleet := make([]*gateway, processes)
	for i := range fleet {
		fleet[i] = newGatewayOn(t, st, pullConfig, r)
		fleet[i].env = append(fleet[i].env, "GATEWAY_LOG=error")
		fleet[i].start()
	}
	q := queue{g: fleet[0], name: "load", key: pullKey}
	l := &load{witness: newWitness(), gateways: fleet, client: pooled, last: serial(messages)}
	c := &crew{gateways: fleet, misses: map[string]int{}}

	began := time.Now()
	skew := watchClocks(fleet)
	l.start(pullSenders)
	c.start(t)
	for range kills {
		// The kill comes at any point of the work, but not before there is work.
		enough := c.acked() + messages/(2*kills)
		wait.Until(20*time.Second, func() bool { return c.acked() >= enough })
		<-time.After(rand.N(20 * time.Millisecond))
		fleet[0].kill()
		fleet[0].start()
	}
	l.senders.Wait()
	accepted, _ := l.counts()
	wait.Until(2*time.Minute, func() bool { return c.acked() >= accepted*9/10 })
	c.end()
	t.Logf("accepted %d, acked %d after %.1f s", accepted, c.acked(), time.Since(began).Seconds())
	checkSum(t, q)

	c.start(t)
	if !wait.Until(2*time.Minute, func() bool { return q.listed().Depth == 0 }) {
		t.Errorf("the queue has %+v, want that it is empty", q.listed())
	}
	c.end()
	took := time.Since(began)
	checkSum(t, q)
	dead := q.dead()
	fleet[0].awaitIdle(outageLease + 10*time.Second)
	skewed := skew()
	for _, g := range fleet {
		g.stop()
	}

	v := c.rule(pullVisibility, skewed)
	t.Logf("%d processes, %d kills, %.1f s: messages %d, acked %d, dead %d, deliveries %d, of those again %d, where an overlap would have shown %d",
		processes, kills, took.Seconds(), v.messages, c.acked(), len(dead), v.deliveries, v.again, v.telling)
	t.Logf("late acks, nacks and extends by receipt %d in %d requests, attempts without a consumer %d, unread answers %d, cut %d, without an answer %v; posts without 202 %v",
		v.late, v.fenced, v.missing, c.blind, c.cuts.Load(), c.misses, l.misses)
	if n := len(v.wrong); n > 0 {
		t.Errorf("%d objections, such as %q, want none", n, v.wrong[:min(n, 5)])
	}
	if messages >= 1000 && (v.late == 0 || v.telling == 0 || c.cuts.Load() == 0) {
		t.Error("no consumer was late, no message was delivered again or no consumer was cut off, so little was tested")
	}
	db := fleet[0].ledger()
	db.check(1)
	db.holds(l.acceptedIDs())
	checkEnds(t, db, v, dead)
	checkAlerted(t, r, dead)
}

// watchClocks asks the gateways how far their clocks are from the machine's, until skew is called, which returns
// how far they were apart at most. Each has measured the clock of the database, and is wrong by half of a
// round trip at most. A busy machine makes round trips long.
func watchClocks(fleet []*gateway) (skew func() time.Duration) {
	var mu sync.Mutex
	var least, most float64
	done := make(chan struct{})
	var asking sync.WaitGroup
	for _, g := range fleet {
		url := g.url("/metrics")
		asking.Go(func() {
			for {
				// A gateway that was killed does not answer.
				if a, err := fetch(oneShot, request{method: http.MethodGet, url: url}); err == nil {
					offset, _ := strconv.ParseFloat(sample(a.body, "gateway_clock_offset_seconds"), 64)
					mu.Lock()
					least, most = min(least, offset), max(most, offset)
					mu.Unlock()
				}
				select {
				case <-done:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	return func() time.Duration {
		close(done)
		asking.Wait()
		return time.Duration((most - least) * float64(time.Second))
	}
}

// checkSum compares the API's counts of the queue with the database, while no consumer is
// active.
func checkSum(t *testing.T, q queue) {
	t.Helper()
	db := q.g.ledger()
	defer db.close()
	stored := db.count(`SELECT COUNT(*) FROM jobs WHERE lane = 'queue/load'`)
	acked := db.count(`SELECT COUNT(*) FROM jobs WHERE lane = 'queue/load' AND status = 'completed'`)
	l := q.listed()
	if sum := acked + l.Dead + l.Pending + l.Processing; sum != stored || l.Depth != l.Pending+l.Processing {
		t.Errorf("acked %d + dead %d + pending %d + processing %d = %d, depth %d, want the %d that are stored", acked, l.Dead, l.Pending, l.Processing, sum, l.Depth, stored)
	}
}

// checkEnds compares the end of every message in the database with the notes of the consumers.
func checkEnds(t *testing.T, db *ledger, v *ruling, dead []message) {
	t.Helper()
	if n := db.count(`SELECT COUNT(*) FROM jobs WHERE lane = 'queue/load' AND status NOT IN ('completed', 'dead')`); n != 0 {
		t.Errorf("messages that are neither acked nor dead: %d, want 0", n)
	}
	completed := map[string]bool{}
	for _, id := range db.column(`SELECT id FROM jobs WHERE lane = 'queue/load' AND status = 'completed'`) {
		completed[id] = true
		if _, said := v.done[id]; !said {
			t.Errorf("message %s is completed, and no consumer acked it", id)
		}
	}
	for id, sure := range v.done {
		if sure && !completed[id] {
			t.Errorf("message %s was acked, and is not completed", id)
		}
	}
	died := db.column(`SELECT id FROM jobs WHERE lane = 'queue/load' AND status = 'dead' ORDER BY id DESC`)
	if !slices.EqualFunc(dead, died, func(m message, id string) bool { return m.ID == id }) {
		t.Errorf("the dead-letter queue has %d messages, want the %d of the database, newest first", len(dead), len(died))
	}
	for _, m := range dead {
		if m.Attempt != pullAttempts || m.LastError == "" {
			t.Errorf("dead message %s after attempt %d, error %q, want attempt %d and an error", m.ID, m.Attempt, m.LastError, pullAttempts)
		}
	}
}

// checkAlerted requires one alert about each dead message, and no other alert.
func checkAlerted(t *testing.T, r *receiver.Receiver, dead []message) {
	t.Helper()
	told := map[string]bool{}
	for _, d := range r.At("/alerts") {
		var alert struct {
			Queue string
			Job   string `json:"job_id"`
		}
		if err := json.Unmarshal([]byte(d.Body), &alert); err != nil || alert.Queue != "load" {
			t.Errorf("alert %s: %v, want one about queue load", d.Body, err)
		}
		told[alert.Job] = true
	}
	for _, m := range dead {
		if !told[m.ID] {
			t.Errorf("no alert reported the dead message %s", m.ID)
		}
	}
	if len(told) != len(dead) {
		t.Errorf("alerts about %d messages, want %d", len(told), len(dead))
	}
}

// A crew is consumers of all kinds, which take notes.
type crew struct {
	notes
	gateways  []*gateway
	stop      chan struct{}
	consumers sync.WaitGroup
	cuts      atomic.Int32 // receives whose connection was closed on purpose
	misses    map[string]int
}

func (c *crew) start(t *testing.T) {
	stop := make(chan struct{})
	c.stop = stop
	t.Cleanup(func() {
		if c.stop == stop {
			c.end()
		}
	})
	for range pullConsumers {
		c.consumers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					c.work(c.receive())
				}
			}
		})
	}
}

// end lets the consumers finish the messages that they hold.
func (c *crew) end() {
	close(c.stop)
	c.stop = nil
	c.consumers.Wait()
}

// receive asks one of the processes for some messages. Some consumers die while they wait, or
// while the answer is on its way.
func (c *crew) receive() []message {
	batch, wait := 1+rand.IntN(10), time.Duration(0)
	if rand.IntN(2) == 0 {
		wait = rand.N(2 * time.Second)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if rand.IntN(20) == 0 {
		death := rand.N(time.Millisecond) // while its messages are claimed
		if rand.IntN(4) == 0 {
			death = rand.N(pullVisibility) // while it waits for a message
		}
		defer time.AfterFunc(death, cancel).Stop()
	}
	q := c.queue()
	asked := time.Now()
	a, err := q.ask(ctx, http.MethodGet, fmt.Sprintf("/messages?batch=%d&wait=%dms", batch, wait.Milliseconds()), q.key, nil)
	got := time.Now()
	var ms messages
	switch {
	case err != nil && ctx.Err() != nil:
		c.cuts.Add(1)
		c.unread(batch)
	case err != nil || a.status != http.StatusOK:
		c.unread(batch)
		c.miss(a, err)
	case json.Unmarshal([]byte(a.body), &ms) != nil:
		c.miss(answer{body: a.body}, nil)
	}
	for _, m := range ms.Messages {
		c.hold(holding{m.ID, m.Receipt, m.Attempt, asked, got})
	}
	if len(ms.Messages) == 0 {
		<-time.After(5 * time.Millisecond)
	}
	return ms.Messages
}

func (c *crew) queue() queue {
	return queue{g: c.gateways[rand.IntN(len(c.gateways))], name: "load", key: pullKey}
}

func (c *crew) miss(a answer, err error) {
	what := fmt.Sprint(a.status)
	if err != nil {
		what = kindOf(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.misses[what]++
}

// work treats messages as consumers do. Messages at a later attempt are treated slowly. So
// their earlier consumer often comes back while this consumer holds them.
func (c *crew) work(ms []message) {
	ms = slices.DeleteFunc(ms, c.curse)
	var again []message
	ms = slices.DeleteFunc(ms, func(m message) bool {
		if m.Attempt > 1 {
			again = append(again, m)
		}
		return m.Attempt > 1
	})
	c.treat(ms)
	if len(again) > 0 {
		c.consumers.Go(func() {
			linger(0, 0.8)
			c.treat(again)
		})
	}
}

// linger waits for a random time between two multiples of the visibility timeout.
func linger(least, most float64) {
	<-time.After(time.Duration((least + (most-least)*rand.Float64()) * float64(pullVisibility)))
}

// treat treats messages like a random kind of consumer.
func (c *crew) treat(ms []message) {
	if len(ms) == 0 {
		return
	}
	switch n := rand.IntN(100); {
	case n < 68: // the normal case
		linger(0, 0.02)
		c.tell("ack", 0, byReceipt(ms))
	case n < 72: // the answer to the first ack may have been lost
		c.tell("ack", 0, byReceipt(ms))
		c.tell("ack", 0, byReceipt(ms))
	case n < 78:
		c.tell("ack", 0, byID(ms))
	case n < 81: // takes any time
		linger(0, 3)
		c.each("ack", byReceipt(ms))
	case n < 84: // a little too long
		linger(1, 1.7)
		c.each("ack", byReceipt(ms))
	case n < 86:
		linger(0, 3)
		c.each("ack", byID(ms))
	case n < 91:
		c.tell("nack", 0, byReceipt(ms))
	case n < 93:
		c.tell("nack", rand.N(pullVisibility), byReceipt(ms))
	case n < 94:
		linger(1, 2)
		c.each("nack", byReceipt(ms))
	case n < 98: // knows that it needs a long time
		c.tell("extend", 3*pullVisibility, byReceipt(ms))
		linger(1, 2)
		c.tell("extend", 2*pullVisibility, byReceipt(ms))
		linger(0.5, 1)
		c.tell("ack", 0, byReceipt(ms))
	case n < 99: // returns the messages soon
		c.tell("extend", time.Millisecond+rand.N(50*time.Millisecond), byReceipt(ms))
	default: // dies
	}
}

// curse returns or forgets a message if it is cursed. It reports whether it is.
func (c *crew) curse(m message) bool {
	var body loadBody
	if json.Unmarshal(m.Payload, &body) != nil || body.Serial%cursed != 0 {
		return false
	}
	if body.Serial%(2*cursed) == 0 {
		c.tell("nack", 0, byReceipt([]message{m}))
	}
	return true
}

func byReceipt(ms []message) (all []saying) {
	for _, m := range ms {
		all = append(all, saying{m.ID, m.Receipt})
	}
	return all
}

func byID(ms []message) (all []saying) {
	for _, m := range ms {
		all = append(all, saying{message: m.ID})
	}
	return all
}

// each sends one request for each message, so that each has its own answer.
func (c *crew) each(verb string, all []saying) {
	for _, s := range all {
		c.tell(verb, 0, []saying{s})
	}
}

// tell sends an ack, nack or extend to one of the processes, and notes the answer.
func (c *crew) tell(verb string, until time.Duration, all []saying) {
	body := map[string]any{}
	until = until.Truncate(time.Millisecond)
	switch {
	case verb == "extend":
		body["visibility_timeout"] = fmt.Sprintf("%dms", until.Milliseconds())
	case verb == "nack" && until > 0:
		body["delay"] = fmt.Sprintf("%dms", until.Milliseconds())
	}
	ids := make([]string, len(all))
	for i, s := range all {
		if ids[i] = s.receipt; s.receipt == "" {
			ids[i] = s.message
		}
	}
	body["ids"] = ids
	q := c.queue()
	w := word{verb: verb, refs: all, until: until, asked: time.Now()}
	a, err := q.ask(context.Background(), http.MethodPost, "/"+verb, q.key, body)
	w.answered = time.Now()
	var said struct{ Acked, Retried, Dead, Extended int }
	if err == nil && a.status == http.StatusOK {
		err = json.Unmarshal([]byte(a.body), &said)
	}
	w.count = said.Acked + said.Retried + said.Dead + said.Extended
	if w.unanswered = err != nil || a.status != http.StatusOK; w.unanswered {
		c.miss(a, err)
	}
	c.say(w)
}
