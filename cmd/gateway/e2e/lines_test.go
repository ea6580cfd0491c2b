//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/lines"
	"github.com/eventgateway/gateway/infra/test/receiver"
)

// linesConfig has a handler that keeps the order of each key and one that takes three events of a
// key at a time.
const linesConfig = `
server: {host: 127.0.0.1, port: "${PORT}", allow_private_urls: true}
delivery: {timeout: 1s, default_retry: {max: 1000, backoff: fixed, interval: 50ms}}
worker: {max_concurrency: 20, batch_size: 100, stale_threshold_secs: 1}
sources: {app: {type: event}}
handlers:
  strict: {source: app, url: "${RECEIVER}/strict", circuit_breaker: off, lines: {key: $.key}}
  wide: {source: app, url: "${RECEIVER}/wide", circuit_breaker: off, lines: {key: $.key, limit: 3}}
`

// lineLimits are the limits of the handlers, by path.
var lineLimits = map[string]int{"/strict": 1, "/wide": 3}

const lineKeys = 8

// A linePlace is a database, the number of its processes, and how many events each key gets.
type linePlace struct {
	place
	processes, each int
}

// TestLines: senders send events of a few keys, several keys at a time, while processes are killed.
// Each seventh delivery fails. The deliveries of each key keep their order, or their limit, and
// every event arrives.
func TestLines(t *testing.T) {
	t.Parallel()
	for _, p := range []linePlace{
		{place{"SQLite", ownFile}, 1, 40},
		{place{"PostgreSQL", onPostgres}, 2, 40},
		{place{"MySQL", onMySQL}, 2, 40},
		{place{"D1", onProxy}, 2, 10},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			testLines(t, p)
		})
	}
}

func testLines(t *testing.T, p linePlace) {
	s := newLineStory(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	var senders sync.WaitGroup
	defer senders.Wait()
	defer cancel()
	for k := range lineKeys {
		senders.Go(func() { s.send(ctx, fmt.Sprint("key-", k)) })
	}
	total := int64(len(lineLimits) * lineKeys * p.each)
	for _, after := range []int64{total / 4, total / 2} {
		eventually(t, 60*time.Second, fmt.Sprint(after, " jobs are completed"), func() bool { return s.completed.Load() >= after })
		s.fleet[0].kill()
		s.fleet[0].start()
	}
	senders.Wait()
	db := s.fleet[0].ledger()
	defer db.close()
	eventually(t, 90*time.Second, "all jobs are completed", func() bool {
		return db.count(`SELECT COUNT(*) FROM jobs WHERE status <> 'completed'`) == 0
	})
	if n := db.count(`SELECT COUNT(*) FROM jobs`); n != int(total) {
		t.Errorf("jobs = %d, want %d", n, total)
	}
	if n := db.count(`SELECT (SELECT COUNT(*) FROM line_slots) + (SELECT COUNT(*) FROM line_places)`); n != 0 {
		t.Errorf("slots and places that are left = %d, want 0", n)
	}
	for path, limit := range lineLimits {
		wrong := lines.Check(lines.Rules{Limit: limit, Repeats: true}, s.logs[path].Entries())
		if len(wrong) > 0 {
			t.Errorf("%s: %d problems:\n%s", path, len(wrong), strings.Join(wrong[:min(5, len(wrong))], "\n"))
		}
	}
}

// A lineStory is a fleet with what its receiver saw.
type lineStory struct {
	linePlace
	t         *testing.T
	fleet     []*gateway
	logs      map[string]*lines.Log // by path
	completed atomic.Int64
}

func newLineStory(t *testing.T, p linePlace) *lineStory {
	s := &lineStory{linePlace: p, t: t, logs: map[string]*lines.Log{}}
	r := receiver.New(t)
	for path := range lineLimits {
		s.logs[path] = &lines.Log{}
		r.On(path, s.answer(s.logs[path]))
	}
	st := p.on(t)
	for range p.processes {
		g := newGatewayOn(t, st, linesConfig, r)
		g.launch()
		s.fleet = append(s.fleet, g)
	}
	for _, g := range s.fleet {
		g.awaitReady()
	}
	return s
}

// answer records a delivery and answers it, each seventh with 500. The end is recorded before the
// answer: after that the gateway may begin the next delivery.
func (s *lineStory) answer(log *lines.Log) receiver.Script {
	return func(n int, w http.ResponseWriter, r *http.Request) {
		var body struct {
			Key string
			N   int
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			s.t.Errorf("a delivery has no key: %v", err)
		}
		e := lines.Entry{Kind: lines.Begun, Key: body.Key, Job: jobName(body.Key, body.N)}
		log.Add(e)
		pause(r.Context(), 2*time.Millisecond)
		e.Kind, e.Outcome = lines.Ended, lines.Completed
		if n%7 == 0 {
			e.Outcome = lines.Failed
		}
		log.Add(e)
		if e.Outcome == lines.Failed {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		s.completed.Add(1)
	}
}

// jobName names the jobs of event n of a key.
func jobName(key string, n int) string { return fmt.Sprintf("%s-%d", key, n) }

// send sends the events of a key one after the other, to any of the processes. It repeats a
// request without an answer under the same key, so that the event is stored once.
func (s *lineStory) send(ctx context.Context, key string) {
	for i := range s.each {
		req := request{method: http.MethodPost, body: fmt.Sprintf(`{"key": %q, "n": %d}`, key, i),
			headers: []string{"Idempotency-Key", jobName(key, i)}}
		for try := 0; ; try++ {
			req.url = s.fleet[(i+try)%len(s.fleet)].url("/events/order.created")
			a, err := fetch(pooled, req)
			if err == nil && (a.status == http.StatusAccepted || a.status == http.StatusOK) { // 200 is for a duplicate
				for _, log := range s.logs {
					log.Add(lines.Entry{Kind: lines.Stored, Key: key, Job: jobName(key, i)})
				}
				break
			}
			if ctx.Err() != nil {
				s.t.Errorf("%s %d was not accepted: %+v, %v", key, i, a, err)
				return
			}
			pause(ctx, 10*time.Millisecond)
		}
	}
}
