//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// holdConfig has two handlers, a queue and a workflow that are held, and a handler that is not.
// The gate of a lane admits claims in one way if the lane has a rate limit, and in another way
// if not. An event has a job for each, and the workflow's second step is a sixth.
const holdConfig = `
server: {host: 127.0.0.1, port: "${PORT}", allow_private_urls: true}
delivery: {timeout: 5s, default_retry: {max: 50, backoff: fixed, interval: 100ms}}
worker: {max_concurrency: 20, batch_size: 100}
sources: {app: {type: event}}
handlers:
  free: {source: app, url: "${RECEIVER}/free", headers: {x-life: "${LIFE:-0}"}}
  paced: {source: app, url: "${RECEIVER}/paced", rate_limit: 500}` + heldHandler + `
queues: {line: {source: app, visibility_timeout: 60s}}
workflows:
  flow:
    source: app
    steps:
      - {name: first, url: "${RECEIVER}/first"}
      - {name: last, url: "${RECEIVER}/last", end: true}
`

// heldHandler is the part of holdConfig that one reload removes.
const heldHandler = `
  billing: {source: app, url: "${RECEIVER}/billing"}`

const holdJobs = 6 // of each event

// holdTargets are the targets of the test, with the paths of their calls. Consumers of the queue come
// by themselves.
var holdTargets = []struct {
	target string
	paths  []string
}{
	{"billing", []string{"/billing"}},
	{"paced", []string{"/paced"}},
	{"queue/line", nil},
	{"workflow/flow", []string{"/first", "/last"}},
}

// heldLanes are the lanes of the targets, in SQL.
const heldLanes = `('handler/billing', 'handler/paced', 'queue/line', 'workflow/flow')`

const (
	// holdLook and holdLookD1 bound how old a process's view of the holds is: the longest time
	// between two of its looks at the database, a second or five, and a quarter of it.
	holdLook   = time.Second * 5 / 4
	holdLookD1 = 5 * time.Second * 5 / 4

	// holdGrace bounds a claim, a delivery and a request that were under way, on a busy machine.
	holdGrace = 750 * time.Millisecond

	// holdTold is the time after which the reply to a receive shows the hold: it depends on a look
	// that is at most a second old.
	holdTold = time.Second + holdGrace
)

// A holdPlace is a database with the number of its processes and how fast events come.
type holdPlace struct {
	place
	processes    int
	look         time.Duration
	fast, slowly time.Duration // the pause of a sender before and during the hold
}

// TestHolds: while handlers, a queue and a workflow are held, none of the processes sends
// anything of them. Events are accepted, and another handler goes on. A kill and reloads do not
// end the holds. After the release, each job is tried once: none is lost, and none has lost an
// attempt.
func TestHolds(t *testing.T) {
	t.Parallel()
	for _, p := range []holdPlace{
		{place{"SQLite", ownFile}, 1, holdLook, time.Millisecond, 100 * time.Millisecond},
		{place{"PostgreSQL", onPostgres}, 2, holdLook, time.Millisecond, 100 * time.Millisecond},
		{place{"MySQL", onMySQL}, 2, holdLook, time.Millisecond, 100 * time.Millisecond},
		{place{"D1", onProxy}, 2, holdLookD1, 50 * time.Millisecond, 500 * time.Millisecond},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			testHolds(t, p)
		})
	}
}

func testHolds(t *testing.T, p holdPlace) {
	s := newHoldStory(t, p)
	kept := s.keepMessage()
	s.load()
	s.hold()
	s.awaitSilence()
	if n := (queue{g: s.last(), name: "line"}).ack(kept); n != 1 {
		t.Errorf("acked = %d of a message that was received before the hold, want 1", n)
	}
	s.untouched()
	s.awaitFree("while others are held")
	s.endLoad()
	s.fleet[0].kill()
	s.fleet[0].start()
	s.awaitFree("after a kill")
	s.reload()
	<-time.After(holdLook + holdGrace) // nothing is to happen, so there is no condition to wait for
	s.stillHeld()
	s.untouched()
	released := s.release()
	s.finish(released)
}

// A holdStory is a fleet with its senders and consumers, and their records.
type holdStory struct {
	holdPlace
	t     *testing.T
	r     *receiver.Receiver
	fleet []*gateway
	since map[string]string    // as the reply to the hold has it, by target
	at    map[string]time.Time // of the reply to the hold, by target

	pause     atomic.Int64 // of a sender, in nanoseconds
	stop      context.CancelFunc
	senders   sync.WaitGroup
	leave     context.CancelFunc
	consumers sync.WaitGroup

	mu       sync.Mutex
	accepted map[string]time.Time // when the request began, by event
	refused  []string             // answers other than 202, and errors
	polls    []poll
	received map[string]bool // events whose message was received
	again    map[string]bool // events whose message came again, or at a later attempt
}

// A poll is one receive of a consumer, with the whole answer.
type poll struct {
	process int
	asked   time.Time
	body    string
}

func newHoldStory(t *testing.T, p holdPlace) *holdStory {
	s := &holdStory{holdPlace: p, t: t, r: receiver.New(t), since: map[string]string{}, at: map[string]time.Time{},
		accepted: map[string]time.Time{}, received: map[string]bool{}, again: map[string]bool{}}
	st := p.on(t)
	for i := range p.processes {
		g := newGatewayOn(t, st, holdConfig, s.r)
		g.life = 10 * i
		g.launch()
		s.fleet = append(s.fleet, g)
	}
	for _, g := range s.fleet {
		g.awaitReady()
	}
	return s
}

// last is the last of the processes. It is another one than the first where there are two.
func (s *holdStory) last() *gateway { return s.fleet[len(s.fleet)-1] }

// keepMessage makes a consumer receive a message that it does not ack yet.
func (s *holdStory) keepMessage() (receipt string) {
	s.t.Helper()
	asked := time.Now()
	s.accepted[s.fleet[0].send("/events/order.created", `{}`)] = asked
	m := queue{g: s.last(), name: "line"}.await(1)[0]
	s.received[m.EventID] = true
	return m.Receipt
}

// load starts senders and consumers, and waits until all kinds of work are under way.
func (s *holdStory) load() {
	s.t.Helper()
	s.pause.Store(int64(s.fast))
	sending, stop := context.WithCancel(context.Background())
	receiving, leave := context.WithCancel(context.Background())
	s.stop, s.leave = stop, leave
	s.t.Cleanup(func() {
		stop()
		leave()
		s.senders.Wait()
		s.consumers.Wait()
	})
	for i := range 4 {
		s.senders.Go(func() {
			for sending.Err() == nil {
				s.post(s.fleet[i%len(s.fleet)])
				pause(sending, time.Duration(s.pause.Load()))
			}
		})
	}
	for i, g := range s.fleet {
		s.consumers.Go(func() {
			for receiving.Err() == nil {
				s.receive(receiving, i, queue{g: g, name: "line"})
			}
		})
	}
	for _, path := range []string{"/billing", "/paced", "/last", "/free"} {
		s.r.Await(s.t, 20*time.Second, path, 50)
	}
	wait.For(s.t, 20*time.Second, "messages are received", func() bool { return s.messages() >= 50 })
}

func (s *holdStory) post(g *gateway) {
	asked := time.Now()
	a, err := fetch(pooled, request{method: http.MethodPost, url: g.url("/events/order.created"), body: `{}`})
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.refused = append(s.refused, err.Error())
	case a.status == http.StatusAccepted:
		s.accepted[a.eventID()] = asked
	default:
		s.refused = append(s.refused, fmt.Sprint(a.status, " ", a.body))
	}
}

// receive asks one process for messages, and acks them.
func (s *holdStory) receive(ctx context.Context, process int, q queue) {
	asked := time.Now()
	a, err := q.ask(ctx, http.MethodGet, "/messages?batch=10&wait=200ms", "", nil)
	if err != nil {
		pause(ctx, 20*time.Millisecond) // the process is killed
		return
	}
	var got messages
	if json.Unmarshal([]byte(a.body), &got) != nil {
		s.t.Errorf("receive = %d %q, want messages", a.status, a.body)
	}
	s.mu.Lock()
	s.polls = append(s.polls, poll{process, asked, a.body})
	for _, m := range got.Messages {
		if s.received[m.EventID] || m.Attempt != 1 {
			s.again[m.EventID] = true
		}
		s.received[m.EventID] = true
	}
	s.mu.Unlock()
	switch {
	case len(got.Messages) > 0:
		if _, err := q.ask(ctx, http.MethodPost, "/ack", "", map[string]any{"ids": receipts(got.Messages)}); err != nil && ctx.Err() == nil {
			s.t.Errorf("ack of %d messages: %v", len(got.Messages), err)
		}
	case strings.Contains(a.body, "held"):
		pause(ctx, 20*time.Millisecond) // a consumer of a held queue may be answered at once
	}
}

func (s *holdStory) messages() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.received)
}

// hold holds all targets over the API of the first process.
func (s *holdStory) hold() {
	s.t.Helper()
	for _, h := range holdTargets {
		g := s.fleet[0]
		a := g.post("/api/holds", fmt.Sprintf(`{"target": %q, "reason": "maintenance"}`, h.target))
		s.at[h.target] = time.Now()
		var got holdEntry
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusOK || got.Target != h.target {
			s.t.Fatalf("hold %s = %d %q, want 200 with the hold", h.target, a.status, a.body)
		}
		s.since[h.target] = got.Since
	}
	s.pause.Store(int64(s.slowly))
}

// awaitSilence waits for the time in which attempts may still begin. A claim that had begun
// before the hold may commit after it. Jobs of such and earlier claims wait in a process for a
// slot, and are sent until that process looks at the database again.
func (s *holdStory) awaitSilence() {
	<-time.After(time.Until(s.silent(holdTargets[len(holdTargets)-1].target)))
}

// silent returns from when on nothing of a target is sent.
func (s *holdStory) silent(target string) time.Time { return s.at[target].Add(s.look + holdGrace) }

// untouched requires that no job of the targets is under way or has lost an attempt.
func (s *holdStory) untouched() {
	s.t.Helper()
	db := s.last().ledger()
	defer db.close()
	if n := db.count(`SELECT COUNT(*) FROM jobs WHERE lane IN ` + heldLanes + ` AND status <> 'completed' AND (attempt > 0 OR status = 'running')`); n != 0 {
		s.t.Errorf("jobs of what is held that are under way, or have an attempt: %d, want 0", n)
	}
}

// awaitFree sends an event to each process. It waits until the process has delivered something
// after that to the handler that is not held: so it has looked for work.
func (s *holdStory) awaitFree(when string) {
	s.t.Helper()
	for _, g := range s.fleet {
		began := time.Now()
		wait.For(s.t, 20*time.Second, "deliveries to the handler that is not held, "+when, func() bool {
			s.post(g)
			pause(context.Background(), 20*time.Millisecond)
			return slices.ContainsFunc(s.r.At("/free"), func(d receiver.Delivery) bool { return d.At.After(began) && d.Number("X-Life") == g.life })
		})
	}
}

// endLoad stops the senders, and waits until no job is under way: jobs that are under way at a
// kill are repeated at the end of their leases, and that is later than the end of this test.
func (s *holdStory) endLoad() {
	s.t.Helper()
	s.stop()
	s.senders.Wait()
	db := s.last().ledger()
	defer db.close()
	wait.For(s.t, 20*time.Second, "no job is under way", func() bool {
		return db.count(`SELECT COUNT(*) FROM jobs WHERE status = 'running' OR status = 'available' AND lane = 'handler/free'`) == 0
	})
}

// reload removes the held handler from the configuration of each process, and adds it again.
func (s *holdStory) reload() {
	s.t.Helper()
	for n, config := range []string{strings.Replace(holdConfig, heldHandler, "", 1), holdConfig} {
		reloadAll(s.t, s.fleet, config, n+1)
		s.listed()
	}
	s.awaitFree("after a reload")
}

// reloadAll gives each process another configuration, as its nth since it started.
func reloadAll(t *testing.T, fleet []*gateway, config string, nth int) {
	t.Helper()
	for _, g := range fleet {
		text := config
		if g.store != nil {
			text += g.store.yaml
		}
		g.replace(text)
		g.signal(syscall.SIGHUP)
	}
	for _, g := range fleet {
		wait.For(t, 20*time.Second, "the configuration is applied", func() bool {
			return g.series(`gateway_config_reloads_total{result="applied"}`) == fmt.Sprint(nth)
		})
	}
}

// A holdEntry is a hold as the API shows it.
type holdEntry struct {
	Target, Since string
	Until, Reason *string
}

// listed requires that each process lists all holds, unchanged.
func (s *holdStory) listed() {
	s.t.Helper()
	for _, g := range s.fleet {
		a, err := fetch(pooled, request{method: http.MethodGet, url: g.url("/api/holds")})
		var got struct{ Holds []holdEntry }
		if err == nil {
			err = json.Unmarshal([]byte(a.body), &got)
		}
		if err != nil || len(got.Holds) != len(holdTargets) {
			s.t.Fatalf("GET /api/holds = %d %q, %v, want %d holds", a.status, a.body, err, len(holdTargets))
		}
		for _, h := range got.Holds {
			if h.Since != s.since[h.Target] || h.Until != nil || h.Reason == nil || *h.Reason != "maintenance" {
				s.t.Errorf("GET /api/holds = %q, want each since %v, without an end, with its reason", a.body, s.since)
			}
		}
	}
}

// stillHeld checks all that reached the receiver and the consumers during the hold.
func (s *holdStory) stillHeld() {
	s.t.Helper()
	s.listed()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range holdTargets {
		var events []string
		for _, path := range h.paths {
			ds, silent := s.r.At(path), s.silent(h.target)
			late := counted(ds, silent, 0, time.Hour)
			s.t.Logf("%s: %d calls before the hold, %d within %v after its reply, %d later", path,
				counted(ds, s.at[h.target], -time.Hour, 0), counted(ds, s.at[h.target], 0, s.look+holdGrace), s.look+holdGrace, late)
			if late > 0 {
				s.t.Errorf("%s: %d calls later than %v after the hold, want none", path, late, s.look+holdGrace)
			}
			for _, d := range ds {
				events = append(events, d.Event())
			}
		}
		s.claimedBefore(h.target, events)
	}
	s.claimedBefore("queue/line", slices.Collect(maps.Keys(s.received)))
	s.told()
	if len(s.refused) > 0 {
		s.t.Errorf("%d events were not accepted, such as %s", len(s.refused), s.refused[0])
	}
}

// claimedBefore requires that no event is younger than the hold of a target that took its job:
// claims read the holds in the database, so none took a job that was stored later.
func (s *holdStory) claimedBefore(target string, events []string) {
	s.t.Helper()
	late := slices.DeleteFunc(events, func(id string) bool { return !s.accepted[id].After(s.at[target]) })
	if len(late) > 0 {
		s.t.Errorf("%s took jobs of %d events that were sent after the hold, such as one %v after it, want none",
			target, len(late), s.accepted[late[0]].Sub(s.at[target]))
	}
}

// told requires that each process answered receives with no message and "held": true.
func (s *holdStory) told() {
	s.t.Helper()
	told, wrong := make([]int, len(s.fleet)), []string(nil)
	for _, p := range s.polls {
		switch after := p.asked.Sub(s.at["queue/line"]); {
		case after < holdTold:
		case p.body != `{"messages":[],"held":true}`:
			wrong = append(wrong, fmt.Sprintf("%.200s, %v after the hold", p.body, after))
		default:
			told[p.process]++
		}
	}
	if len(wrong) > 0 {
		s.t.Errorf("%d receives got an answer such as %s, want no message, and that the queue is held", len(wrong), wrong[0])
	}
	if slices.Contains(told, 0) {
		s.t.Errorf("receives that were told of the hold: %v, want some of each process", told)
	}
}

// release releases all targets over the API of the last process, and returns when the handler was.
func (s *holdStory) release() (handler time.Time) {
	s.t.Helper()
	for _, h := range holdTargets {
		asked := time.Now()
		if h.target == "billing" {
			handler = asked
		}
		for _, want := range []string{`{"released":true}`, `{"released":false}`} {
			a, err := fetch(pooled, request{method: http.MethodDelete, url: s.last().url("/api/holds?target=" + url.QueryEscape(h.target))})
			if err != nil || a.status != http.StatusOK || a.body != want {
				s.t.Fatalf("release %s = %d %q, %v, want %s", h.target, a.status, a.body, err, want)
			}
			<-time.After(2 * time.Millisecond) // in one millisecond, a second release is the first one sent again
		}
	}
	return handler
}

// finish waits for the backlog, and requires that each job of the held consumers was tried once.
func (s *holdStory) finish(released time.Time) {
	s.t.Helper()
	db := s.last().ledger()
	stored := db.column(`SELECT id FROM events`)
	backlog := len(stored) - counted(s.r.At("/billing"), released, -time.Hour, 0)
	wait.Until(30*time.Second, func() bool {
		return len(s.r.At("/billing")) >= len(stored) && len(s.r.At("/paced")) >= len(stored) && len(s.r.At("/last")) >= len(stored) && s.messages() >= len(stored)
	})
	ds := s.r.At("/billing")
	s.t.Logf("%d events, %d of them for a held handler; completed after %v; second by second %v", len(stored), backlog, time.Since(released).Round(time.Millisecond), bySecond(ds, released, 6))
	if n := counted(ds, released, 0, time.Second); n > 7 || backlog < 40 {
		s.t.Errorf("deliveries in the first second after the release = %d of %d, want about 5 of at least 40", n, backlog)
	}
	for _, g := range s.fleet {
		g.awaitIdle(10 * time.Second)
	}
	s.leave()
	s.consumers.Wait()
	for _, g := range s.fleet {
		g.stop()
	}
	for _, path := range []string{"/billing", "/paced", "/first", "/last"} {
		s.once(path, stored)
	}
	if len(s.received) != len(stored) || len(s.again) > 0 {
		s.t.Errorf("messages of %d events were received, and %d again, want each of %d once", len(s.received), len(s.again), len(stored))
	}
	db.check(holdJobs)
	db.holds(slices.Collect(maps.Keys(s.accepted)))
	if n := db.count(`SELECT COUNT(*) FROM jobs WHERE status <> 'completed' OR attempt <> 1 AND lane IN ` + heldLanes); n != 0 {
		s.t.Errorf("jobs that are not completed, or were held and not at the first attempt: %d, want 0", n)
	}
}

// once requires one call at the first attempt for each event.
func (s *holdStory) once(path string, events []string) {
	s.t.Helper()
	seen := map[string]bool{}
	for _, d := range s.r.At(path) {
		if seen[d.Event()] || d.Attempt() != 1 {
			s.t.Errorf("%s: attempt %d of event %s, want each once, at attempt 1", path, d.Attempt(), d.Event())
		}
		seen[d.Event()] = true
	}
	lost := slices.DeleteFunc(slices.Clone(events), func(id string) bool { return seen[id] })
	if len(lost) > 0 || len(seen) != len(events) {
		s.t.Errorf("%s: calls for %d events, want for all %d that are stored; without: %v", path, len(seen), len(events), lost[:min(len(lost), 5)])
	}
}

// bySecond counts deliveries in each of the seconds after a time.
func bySecond(ds []receiver.Delivery, from time.Time, seconds int) (all []int) {
	for i := range seconds {
		all = append(all, counted(ds, from, time.Duration(i)*time.Second, time.Duration(i+1)*time.Second))
	}
	return all
}

// TestHoldEnds: a hold with an end ends by itself, for every process. A consumer that waited
// since before the hold, and one that came during it, get their messages soon after the end.
func TestHoldEnds(t *testing.T) {
	t.Parallel()
	for _, p := range []holdPlace{{place: place{"SQLite", ownFile}, processes: 1}, {place: place{"PostgreSQL", onPostgres}, processes: 2}} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			testHoldEnds(t, newHoldStory(t, p))
		})
	}
}

func testHoldEnds(t *testing.T, s *holdStory) {
	first, q := s.fleet[0], queue{g: s.last(), name: "line"}
	receive := func() <-chan time.Time {
		got := make(chan time.Time, 1)
		go func() {
			a, err := q.ask(context.Background(), http.MethodGet, "/messages?wait=20s", "", nil)
			if err != nil || !strings.Contains(a.body, `"receipt"`) {
				t.Errorf("receive = %d %q, %v, want a message", a.status, a.body, err)
			}
			got <- time.Now()
		}()
		return got
	}
	polls := []<-chan time.Time{receive()}
	<-time.After(holdGrace) // the API does not tell how many consumers wait
	end := time.Now().UTC().Add(3 * time.Second).Truncate(time.Millisecond)
	for _, target := range []string{"billing", "queue/line"} {
		a := first.post("/api/holds", fmt.Sprintf(`{"target": %q, "until": %q}`, target, end.Format("2006-01-02T15:04:05.000")))
		if a.status != http.StatusOK {
			t.Fatalf("hold %s = %d %q, want 200", target, a.status, a.body)
		}
	}
	polls = append(polls, receive())
	for range polls {
		first.send("/events/order.created", `{}`)
	}
	<-time.After(holdTold)
	if a, err := q.ask(context.Background(), http.MethodGet, "/messages", "", nil); err != nil || a.body != `{"messages":[],"held":true}` {
		t.Errorf("receive during the hold = %d %q, %v, want that the queue is held", a.status, a.body, err)
	}
	times := map[string]time.Time{"the handler got a job": s.r.Await(t, 20*time.Second, "/billing", 1)[0].At,
		"the first poll was answered": <-polls[0], "the second poll was answered": <-polls[1]}
	for what, at := range times {
		after := at.Sub(end)
		t.Logf("%s %v after the end", what, after.Round(time.Millisecond))
		if after < 0 || after > holdLook+holdGrace {
			t.Errorf("%s %v after the end of the hold, want at most %v", what, after, holdLook+holdGrace)
		}
	}
	s.r.Await(t, 20*time.Second, "/billing", 2)
	if a, err := fetch(pooled, request{method: http.MethodGet, url: first.url("/api/holds")}); err != nil || a.body != `{"holds":[]}` {
		t.Errorf("GET /api/holds = %q, %v after the end, want no hold", a.body, err)
	}
}
