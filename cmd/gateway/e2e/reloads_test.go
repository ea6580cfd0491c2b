//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// A churn is a gateway that gets another configuration ten times a second. The valid ones
// alternate between two families with different sources, handlers and limits. Each
// configuration sends its serial in every delivery: in the path, in a header and in the body.
type churn struct {
	*gateway
	t      *testing.T
	client *http.Client
	serial int // of the newest configuration

	mu         sync.Mutex
	replies    map[string]int      // counts by request and answer
	accepted   map[string][]string // ids of events, by request
	deliveries map[string][]string // the configuration in each delivery of a job
	mixed      []string            // deliveries with parts of several configurations
	acked      map[string]bool     // events whose messages are acked
}

// A family is the settings that only its configurations have.
type family struct {
	handlers []string
	body     int // server.max_body_size
}

var families = map[string]family{
	"even": {handlers: []string{"alpha", "beta"}, body: 600},
	"odd":  {handlers: []string{"alpha", "gamma", "delta"}, body: 6000},
	"both": {handlers: []string{"alpha", "beta", "gamma", "delta"}, body: 6000},
}

func familyOf(serial int) string {
	if serial%2 == 0 {
		return "even"
	}
	return "odd"
}

// churned returns a configuration of a family. The family has its own source; "both" has the
// sources of both families.
func churned(name string, serial int) string {
	f := families[name]
	var b strings.Builder
	fmt.Fprintf(&b, "server:\n  host: 127.0.0.1\n  port: ${PORT}\n  allow_private_urls: true\n  max_body_size: %d\n", f.body)
	b.WriteString("delivery: {timeout: 100s, default_retry: {max: 50, backoff: fixed, interval: 100ms}}\n")
	b.WriteString("worker: {max_concurrency: 20, batch_size: 20, drain_timeout_secs: 100}\n")
	b.WriteString("api: {auth_token: \"${TOKEN}\"}\n")
	b.WriteString("queues: {work: {source: app}}\n")
	b.WriteString("sources:\n  app: {type: event}\n  tick: {type: cron, schedule: \"* * * * * *\"}\n")
	for _, own := range []string{"even", "odd"} {
		if name == own || name == "both" {
			fmt.Fprintf(&b, "  %s: {type: event}\n", own)
		}
	}
	b.WriteString("handlers:\n")
	for _, h := range f.handlers {
		fmt.Fprintf(&b, "  %s: {source: app, url: \"${RECEIVER}/%d/%s\", headers: {X-Config: \"%d\"}, transform: '{\"config\": \"%d\", \"n\": {{ $.n }}}'}\n", h, serial, h, serial, serial)
	}
	return b.String()
}

func newChurn(t *testing.T, st *store) *churn {
	c := &churn{
		t: t, client: &http.Client{Timeout: 40 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
		replies: map[string]int{}, accepted: map[string][]string{}, deliveries: map[string][]string{}, acked: map[string]bool{},
	}
	c.gateway = newGatewayOn(t, st, "", nil)
	c.env = append(c.env, "RECEIVER="+receiver.Serve(t, c.answer), "TOKEN=a-token-of-twenty-four-b", "GATEWAY_LOG=error")
	c.follow("both", 0)
	return c
}

// follow writes a configuration, with the database of the store.
func (c *churn) follow(name string, serial int) {
	config := churned(name, serial)
	if c.store != nil {
		config += c.store.yaml
	}
	c.replace(config)
}

// answer accepts deliveries, some of them slowly.
func (c *churn) answer(d receiver.Delivery, _ http.ResponseWriter, r *http.Request) {
	if n := c.delivered(d.Path, d.Header.Get("X-Config"), d.Job(), d.Body); n%20 == 0 {
		pause(r.Context(), 300*time.Millisecond)
	}
}

// delivered notes a delivery, and returns the number of deliveries.
func (c *churn) delivered(path, header, job, body string) int {
	parts := strings.Split(path, "/") // "", serial, handler
	c.mu.Lock()
	defer c.mu.Unlock()
	serial, err := strconv.Atoi(parts[1])
	of := familyOf(serial)
	if serial == 0 || parts[1] == last {
		of = "both"
	}
	if err != nil || header != parts[1] || !strings.HasPrefix(body, `{"config": "`+parts[1]+`", "n": `) || !slices.Contains(families[of].handlers, parts[2]) {
		c.mixed = append(c.mixed, fmt.Sprintf("%s %s %s", path, header, body))
	}
	c.deliveries[job] = append(c.deliveries[job], parts[2])
	return len(c.deliveries)
}

// last is the serial of the last configuration.
const last = "1000000"

// change replaces the configuration until ctx ends. One of three is invalid, and one of ten
// needs a restart.
func (c *churn) change(ctx context.Context) {
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for i := 1; ctx.Err() == nil; i++ {
		switch {
		case i%3 == 0:
			c.replace("sources: {app: {type: evnt}}")
		case i%10 == 1:
			c.replace(strings.Replace(churned("even", c.serial), "api: {auth_token: \"${TOKEN}\"}\n", "", 1))
		default:
			c.serial++
			c.follow(familyOf(c.serial), c.serial)
		}
		c.signal(syscall.SIGHUP)
		select {
		case <-every.C:
		case <-ctx.Done():
		}
	}
}

// do makes a request that must be answered, and notes the answer.
func (c *churn) do(what string, r request) answer {
	r.headers = append(r.headers, bearer("a-token-of-twenty-four-b")...)
	a, err := fetch(c.client, r)
	got := strconv.Itoa(a.status)
	if err != nil {
		got = err.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replies[what+": "+got]++
	if a.status == http.StatusAccepted {
		c.accepted[what] = append(c.accepted[what], a.eventID())
	}
	return a
}

// send sends events of all kinds until ctx ends.
func (c *churn) send(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		body := fmt.Sprintf(`{"n": %d}`, n)
		switch n % 4 {
		case 0, 1:
			c.do("small", request{method: http.MethodPost, url: c.url("/events/app/x"), body: body})
		case 2:
			large := fmt.Sprintf(`{"n": %d, "fill": "%s"}`, n, strings.Repeat("x", 1000))
			c.do("large", request{method: http.MethodPost, url: c.url("/events/app/x"), body: large})
		case 3:
			own := familyOf(n / 4)
			c.do("own", request{method: http.MethodPost, url: c.url("/events/" + own + "/x"), body: body})
		}
		pause(ctx, 10*time.Millisecond)
	}
}

// consume receives messages, acks them, and waits for more, until ctx ends.
func (c *churn) consume(ctx context.Context) {
	for ctx.Err() == nil {
		c.take("2s")
	}
}

func (c *churn) take(wait string) {
	const batch = 8 // an ack of so many receipts fits into the smallest max_body_size, 600 bytes
	a := c.do("poll", request{method: http.MethodGet, url: c.url(fmt.Sprintf("/api/queues/work/messages?batch=%d&wait=%s", batch, wait))})
	var got struct{ Messages []message }
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		c.t.Errorf("messages %q: %v", a.body, err)
	}
	if len(got.Messages) == 0 {
		return
	}
	var ids []string
	for _, m := range got.Messages {
		ids = append(ids, strconv.Quote(m.Receipt))
	}
	c.do("ack", request{method: http.MethodPost, url: c.url("/api/queues/work/ack"), body: `{"ids": [` + strings.Join(ids, ", ") + `]}`})
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range got.Messages {
		c.acked[m.EventID] = true
	}
}

// look makes the requests of operators, until ctx ends.
func (c *churn) look(ctx context.Context) {
	for ctx.Err() == nil {
		for _, path := range []string{"/health", "/metrics", "/api/jobs", "/api/stats"} {
			c.do("look", request{method: http.MethodGet, url: c.url(path)})
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// load runs send, consume and look for a time, with or without changes of the configuration.
func (c *churn) load(d time.Duration, changing bool) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var work sync.WaitGroup
	for range 3 {
		work.Go(func() { c.send(ctx) })
	}
	work.Go(func() { c.consume(ctx) })
	work.Go(func() { c.consume(ctx) })
	work.Go(func() { c.look(ctx) })
	if changing {
		work.Go(func() { c.change(ctx) })
	}
	work.Wait()
}

// rest lets the gateway finish all work. Then it returns the numbers of goroutines and open
// files.
func (c *churn) rest() (goroutines, files int) {
	wait.Until(30*time.Second, func() bool {
		c.take("0s")
		_, body, err := c.health()
		return err == nil && strings.Contains(body, `"queue_depth":0`)
	})
	c.client.CloseIdleConnections()
	for name, n := range map[string]*int{"go_goroutines": &goroutines, "process_open_fds": &files} {
		value, err := strconv.ParseFloat(c.series(name), 64)
		if err != nil {
			c.t.Errorf("%s: %v", name, err)
		}
		*n = int(value)
	}
	return goroutines, files
}

// TestReloadsUnderLoad: while the configuration changes all the time, each request gets the
// answer of one configuration, each event is handled by one configuration, and no work is
// repeated or lost.
func TestReloadsUnderLoad(t *testing.T) {
	t.Parallel()
	took := time.Duration(whole(60, 8)) * time.Second
	if testing.Short() {
		took = 3 * time.Second
	}
	for _, tt := range []struct {
		place
		took time.Duration
	}{{place{"SQLite", ownFile}, took}, {place{"PostgreSQL", onPostgres}, took / 3}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newChurn(t, tt.on(t))
			c.start()
			c.load(time.Second, false)
			goroutines, files := c.rest()
			c.load(tt.took, true)
			c.follow("both", 1_000_000)
			c.signal(syscall.SIGHUP)
			c.ignores("")
			var nowGoroutines, nowFiles int
			flat := wait.Until(60*time.Second, func() bool {
				nowGoroutines, nowFiles = c.rest()
				return nowGoroutines <= goroutines+3 && nowFiles <= files+3
			})
			if !flat {
				t.Errorf("goroutines %d and files %d, want no more than the %d and %d at first", nowGoroutines, nowFiles, goroutines, files)
			}
			results := map[string]string{}
			for _, r := range []string{"applied", "invalid", "forbidden"} {
				results[r] = c.series(`gateway_config_reloads_total{result="` + r + `"}`)
				if results[r] == "0" && !testing.Short() {
					t.Errorf("configurations %s: none", r)
				}
			}
			c.stop()
			t.Logf("configurations %v; replies %v; goroutines %d, then %d; files %d, then %d", results, c.replies, goroutines, nowGoroutines, files, nowFiles)
			c.judge()
		})
	}
}

// wanted are the replies that are possible under some configuration.
var wanted = []string{"small: 202", "large: 202", "large: 413", "own: 202", "own: 404", "poll: 200", "ack: 200", "look: 200"}

func (c *churn) judge() {
	c.t.Helper()
	for reply, n := range c.replies {
		if !slices.Contains(wanted, reply) {
			c.t.Errorf("%d replies %q", n, reply)
		}
	}
	for _, reply := range wanted {
		if c.replies[reply] == 0 && !testing.Short() {
			c.t.Errorf("no reply %q, so it was not tested", reply)
		}
	}
	if len(c.mixed) > 0 {
		c.t.Errorf("%d deliveries of several configurations, such as %s", len(c.mixed), c.mixed[0])
	}
	db := c.ledger()
	db.sound()
	c.judgeEvents(db)
	c.judgeDeliveries(db)
	c.judgeSlots(db)
	db.close()
}

// judgeEvents: the jobs of each event belong to one configuration. The configuration of a
// large event accepts that size.
func (c *churn) judgeEvents(db *ledger) {
	lanes := map[string][]string{} // by event
	for _, row := range db.column(`SELECT event_id || ' ' || lane FROM jobs ORDER BY lane`) {
		event, lane, _ := strings.Cut(row, " ")
		lanes[event] = append(lanes[event], strings.TrimPrefix(lane, "handler/"))
	}
	seen := map[string]int{}
	for what, events := range c.accepted {
		if what == "own" {
			continue // no handler takes them
		}
		for _, e := range events {
			of := ""
			for name, f := range families {
				if slices.Equal(lanes[e], append(slices.Sorted(slices.Values(f.handlers)), "queue/work")) {
					of = name
				}
			}
			if seen[what+" "+of]++; of == "" {
				c.t.Errorf("an event has jobs for %q, which is no configuration", lanes[e])
			}
			if !c.acked[e] {
				c.t.Errorf("the message of event %s was not received", e)
			}
		}
	}
	tested := testing.Short() || seen["large odd"] > 0 && seen["small odd"] > 0 && seen["small even"] > 0
	if seen["large even"] > 0 || !tested {
		c.t.Errorf("events by size and configuration: %v, want small ones of both and large ones of the odd alone", seen)
	}
}

// judgeDeliveries: each job was delivered once, to its handler.
func (c *churn) judgeDeliveries(db *ledger) {
	jobs := map[string]string{}
	for _, row := range db.column(`SELECT id || ' ' || lane || ' ' || status || ' ' || attempt FROM jobs WHERE lane LIKE 'handler/%'`) {
		id, rest, _ := strings.Cut(row, " ")
		jobs[id] = rest
	}
	faults := map[string]int{}
	for id, job := range jobs {
		got := strings.Join(c.deliveries[id], " ")
		if want := fmt.Sprintf("handler/%s completed 1", got); job != want {
			faults[fmt.Sprintf("%s was delivered to %q", job, got)]++
		}
	}
	if len(faults) > 0 || len(jobs) != len(c.deliveries) {
		c.t.Errorf("jobs %d, delivered %d; not once and to their handler: %v", len(jobs), len(c.deliveries), faults)
	}
}

// judgeSlots: the schedule that all configurations have was fired each second, once.
func (c *churn) judgeSlots(db *ledger) {
	slots := map[int]int{}
	for _, s := range db.column(`SELECT delivery_id FROM events WHERE source = 'tick'`) {
		n, _ := strconv.Atoi(s)
		slots[n]++
	}
	all := slices.Sorted(maps.Keys(slots))
	if n := len(all); n < 3 || all[n-1]-all[0] != n-1 || slices.Max(slices.Collect(maps.Values(slots))) > 1 {
		c.t.Errorf("slots %v, want each second once", all)
	}
}
