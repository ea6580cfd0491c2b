//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/lines"
	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// linesConfig has two handlers that keep the order of each key, and one that takes three events of
// a key at a time. Some jobs of mortal fail until they are dead. A kill costs each job that its
// process has taken an attempt, so fewer attempts would kill other jobs as well.
const linesConfig = `
server: {host: 127.0.0.1, port: "${PORT}", allow_private_urls: true}
delivery: {timeout: "${TIMEOUT}", default_retry: {max: 1000, backoff: fixed, interval: 50ms}}
worker: {max_concurrency: 20, batch_size: 100, stale_threshold_secs: 1}
sources: {app: {type: event}}
handlers:
  strict: {source: app, events: [order.strict], url: "${RECEIVER}/strict", circuit_breaker: off, lines: {key: $.key}}
  mortal: {source: app, events: [order.mortal], url: "${RECEIVER}/mortal", circuit_breaker: off, lines: {key: $.key, on_dead: skip},
    retry: {max: 6, backoff: fixed, interval: 50ms}}
  wide: {source: app, url: "${RECEIVER}/wide", circuit_breaker: off, lines: {key: $.key, limit: 3}}
`

// lineLimits are the limits of the handlers, by path.
var lineLimits = map[string]int{"/strict": 1, "/mortal": 1, "/wide": 3}

const (
	mortalAttempts   = 6  // the retries of mortal above
	mortalShare      = 25 // one of so many jobs of mortal fails until it is dead
	lineJobsPerEvent = 2  // one of strict or mortal, and one of wide
	lineSenders      = 50
)

// A linePlace is a database, the number of its processes, and how much it gets.
type linePlace struct {
	place
	processes int
	keys      int
	each      int // events of a key
	kills     int
}

func (p linePlace) jobs() int { return p.keys * p.each * lineJobsPerEvent }

// TestLines: senders send events of many keys, several keys at a time, while processes are killed.
// Each seventh delivery fails, and one of 25 jobs of mortal dies. The deliveries of each key keep
// their order, or their limit, and every job ends.
//
// GATEWAY_TORTURE_LINES is the number of jobs of a long run with 20 kills, ten jobs for each key.
// D1 gets a tenth of them, since it takes 100 to 200 events a second. The databases of a long run
// have their turns one after the other.
func TestLines(t *testing.T) {
	t.Parallel()
	long := longLines(t)
	for _, p := range []linePlace{
		{place{"SQLite", ownFile}, 1, 8, 40, 2},
		{place{"PostgreSQL", onPostgres}, 2, 8, 40, 2},
		{place{"MySQL", onMySQL}, 2, 8, 40, 2},
		{place{"D1", onProxy}, 2, 8, 10, 2},
	} {
		t.Run(p.name, func(t *testing.T) {
			if long == 0 {
				t.Parallel()
				testLines(t, p, "1s")
				return
			}
			p.keys, p.each, p.kills = long/10, 5, 20
			if p.name == "D1" {
				p.keys /= 10
			}
			testLines(t, p, "5s")
		})
	}
}

// longLines returns the number of jobs of a long run; 0 means a short one.
func longLines(t *testing.T) int {
	text := os.Getenv("GATEWAY_TORTURE_LINES")
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1000 {
		t.Fatalf("GATEWAY_TORTURE_LINES=%q, want a number of jobs, 1000 at least", text)
	}
	return n
}

func testLines(t *testing.T, p linePlace, timeout string) {
	s := newLineStory(t, p, timeout)
	began := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	var senders sync.WaitGroup
	defer senders.Wait()
	defer cancel()
	for i := range lineSenders {
		senders.Go(func() { s.send(ctx, i) })
	}
	most := s.killAll(ctx)
	senders.Wait()
	s.awaitEnd(ctx)
	took := time.Since(began)
	for _, g := range s.fleet {
		g.stop()
	}
	t.Logf("%d jobs of %d keys, %d kills, %.1f s: %d deliveries, %d failed, %d repeated an end; at most %d jobs were open at a kill",
		p.jobs(), p.keys, p.kills, took.Seconds(), s.deliveries.Load(), s.failures.Load(), s.ended.Load()-int64(p.jobs()), most)
	s.judge()
}

// killAll kills the processes, each time that a further share of the jobs has ended. Each process is
// killed twice, then the next. With one kill each, most jobs wait for the end of a lease twice, for
// 16 s. killAll returns the largest number of jobs that were stored and had not ended at a kill.
func (s *lineStory) killAll(ctx context.Context) (most int64) {
	for k := range s.kills {
		after := int64(s.jobs() * (k + 1) / (s.kills + 2))
		wait.For(s.t, 5*time.Minute, fmt.Sprint(after, " jobs have ended"), func() bool { return s.ended.Load() >= after })
		pause(ctx, rand.N(20*time.Millisecond))
		most = max(most, s.stored.Load()*lineJobsPerEvent-s.ended.Load())
		victim := s.fleet[k/2%len(s.fleet)]
		victim.kill()
		victim.start()
	}
	return most
}

// awaitEnd waits until all jobs have ended. If there is no delivery for a minute, three times the
// longest lease, the others never end, and judge says which.
func (s *lineStory) awaitEnd(ctx context.Context) {
	db := s.fleet[0].ledger()
	defer db.close()
	seen, since := int64(0), time.Now()
	for ctx.Err() == nil {
		pause(ctx, 100*time.Millisecond) // the query reads all jobs
		if s.ended.Load() >= int64(s.jobs()) && db.count(`SELECT COUNT(*) FROM jobs WHERE status NOT IN ('completed', 'dead')`) == 0 {
			return
		}
		if n := s.deliveries.Load(); n != seen {
			seen, since = n, time.Now()
		} else if time.Since(since) > time.Minute {
			s.t.Errorf("no delivery for a minute, and jobs have not ended")
			return
		}
	}
}

// judge checks the deliveries and the database. No process runs any more.
func (s *lineStory) judge() {
	deaths := 0
	for path, limit := range lineLimits {
		history := s.logs[path].Entries()
		wrong := lines.Check(lines.Rules{Limit: limit, Repeats: true}, history)
		if len(wrong) > 0 {
			s.t.Errorf("%s: %d problems:\n%s", path, len(wrong), strings.Join(wrong[:min(5, len(wrong))], "\n"))
		}
		deaths += died(history)
	}
	db := s.fleet[0].ledger()
	db.check(lineJobsPerEvent)
	if n := db.count(`SELECT COUNT(*) FROM jobs`); n != s.jobs() {
		s.t.Errorf("jobs = %d, want %d", n, s.jobs())
	}
	if n := db.count(`SELECT COUNT(*) FROM jobs WHERE status = 'dead'`); n != deaths {
		s.t.Errorf("dead jobs = %d, want %d, the jobs whose last delivery failed", n, deaths)
	}
	if n := db.count(`SELECT (SELECT COUNT(*) FROM line_slots) + (SELECT COUNT(*) FROM line_places)`); n != 0 {
		s.t.Errorf("slots and places that are left = %d, want 0", n)
	}
	s.t.Logf("%d jobs are dead", deaths)
}

// died returns the number of jobs whose last attempt ended in their death.
func died(history []lines.Entry) (n int) {
	dead := map[string]bool{}
	for _, e := range history {
		if e.Kind == lines.Ended {
			dead[e.Job] = e.Outcome == lines.Dead
		}
	}
	for _, is := range dead {
		if is {
			n++
		}
	}
	return n
}

// A lineStory is a fleet with the history that its receiver recorded.
type lineStory struct {
	linePlace
	t     *testing.T
	fleet []*gateway
	logs  map[string]*lines.Log // by path

	stored     atomic.Int64 // events
	deliveries atomic.Int64
	failures   atomic.Int64 // deliveries with another attempt to come
	ended      atomic.Int64 // deliveries that ended their job
}

func newLineStory(t *testing.T, p linePlace, timeout string) *lineStory {
	s := &lineStory{linePlace: p, t: t, logs: map[string]*lines.Log{}}
	r := receiver.New(t)
	r.Tap(func(receiver.Delivery) { s.deliveries.Add(1) })
	for path := range lineLimits {
		s.logs[path] = &lines.Log{}
		r.On(path, s.answer(path))
	}
	st := p.on(t)
	for range p.processes {
		g := newGatewayOn(t, st, linesConfig, r)
		g.env = append(g.env, "TIMEOUT="+timeout)
		g.launch()
		s.fleet = append(s.fleet, g)
	}
	for _, g := range s.fleet {
		g.awaitReady()
	}
	return s
}

// answer records a delivery and answers it, each seventh with 500, and so a job that is to die. The
// end is recorded before the answer: after that the gateway may begin the next delivery.
func (s *lineStory) answer(path string) receiver.Script {
	log := s.logs[path]
	return func(n int, w http.ResponseWriter, r *http.Request) {
		var body struct {
			Key string
			N   int
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			s.t.Errorf("a delivery has no key: %v", err)
		}
		attempt := receiver.Delivery{Header: r.Header}.Attempt()
		e := lines.Entry{Kind: lines.Begun, Key: body.Key, Job: jobName(body.Key, body.N), Attempt: attempt}
		log.Add(e)
		pause(r.Context(), 2*time.Millisecond)
		e.Kind, e.Outcome = lines.Ended, lines.Completed
		mortal := path == "/mortal"
		if n%7 == 0 || mortal && crc32.ChecksumIEEE([]byte(e.Job))%mortalShare == 0 {
			e.Outcome = lines.Failed
			if mortal && attempt >= mortalAttempts {
				e.Outcome = lines.Dead
			}
			w.WriteHeader(http.StatusInternalServerError) // it is sent when this function returns
		}
		log.Add(e)
		if e.Outcome == lines.Failed {
			s.failures.Add(1)
		} else {
			s.ended.Add(1)
		}
	}
}

// jobName names the jobs of event n of a key.
func jobName(key string, n int) string { return fmt.Sprintf("%s-%d", key, n) }

// A lineTail is the events of a key that are not sent yet: those from the number next on.
type lineTail struct {
	key  string
	next int
}

// send sends the events of a sender's share of the keys. The events of a key are sent one after the
// other, one to three of them before those of another key, so that many lines are open at the same
// time.
func (s *lineStory) send(ctx context.Context, sender int) {
	var tails []lineTail
	for k := sender; k < s.keys; k += lineSenders {
		tails = append(tails, lineTail{key: fmt.Sprint("key-", k)})
	}
	for len(tails) > 0 {
		at := rand.IntN(len(tails))
		tail := &tails[at]
		for range 1 + rand.IntN(3) {
			if !s.post(ctx, tail.key, tail.next) {
				return
			}
			if tail.next++; tail.next == s.each {
				tails = slices.Delete(tails, at, at+1)
				break
			}
		}
	}
}

// post sends an event of a key to any of the processes, and reports whether it was accepted. It
// repeats a request without an answer under the same delivery id, so that the event is stored once.
func (s *lineStory) post(ctx context.Context, key string, i int) bool {
	handler := orderedBy(key)
	req := request{method: http.MethodPost, body: fmt.Sprintf(`{"key": %q, "n": %d}`, key, i),
		headers: []string{"Idempotency-Key", jobName(key, i)}}
	for try := 0; ; try++ {
		req.url = s.fleet[(i+try)%len(s.fleet)].url("/events/order." + handler)
		a, err := fetch(pooled, req)
		if err == nil && (a.status == http.StatusAccepted || a.status == http.StatusOK) { // 200 is for a duplicate
			for _, path := range []string{"/" + handler, "/wide"} {
				s.logs[path].Add(lines.Entry{Kind: lines.Stored, Key: key, Job: jobName(key, i)})
			}
			s.stored.Add(1)
			return true
		}
		if ctx.Err() != nil {
			s.t.Errorf("%s %d was not accepted: %+v, %v", key, i, a, err)
			return false
		}
		pause(ctx, 10*time.Millisecond)
	}
}

// orderedBy returns the handler that keeps the order of a key, the same for all its events.
func orderedBy(key string) string {
	if key[len(key)-1]%2 == 0 {
		return "strict"
	}
	return "mortal"
}
