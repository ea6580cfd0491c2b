//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/lambda"
	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// operationsConfig has a handler whose jobs die until it is mended, and one whose jobs are done.
const operationsConfig = `
server: {allow_private_urls: true}
delivery: {timeout: 1s, default_retry: {max: 4, backoff: fixed, interval: 20ms}}
worker: {stale_threshold_secs: 16}
sources: {app: {type: event}}
handlers:
  billing: {source: app, events: [order.created], url: "${RECEIVER}/billing", circuit_breaker: off}
  notes: {source: app, events: [note.added], url: "${RECEIVER}/notes"}
`

// TestOperations: the function pull begins a retry and a replay, and copies of the worker do their
// slices; one copy is killed meanwhile. Each match is acted on exactly once.
func TestOperations(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		const n = 24
		r := receiver.New(t)
		var mended atomic.Bool
		r.On("/billing", func(_ int, w http.ResponseWriter, _ *http.Request) {
			if !mended.Load() {
				w.WriteHeader(http.StatusBadGateway)
			}
		})
		d := deploy{config: operationsConfig, receiver: r, change: func(o *lambda.Options) { o.MaxCopies = 3 }}.new(t, db)
		d.worker.SetTimeout(20 * time.Second)
		unschedule := d.service.Schedule(d.worker, 2*time.Second)
		for range n {
			d.send("/events/order.created", `{}`)
			d.send("/events/note.added", `{}`)
		}
		wait.For(t, 60*time.Second, "half of the jobs are dead, half are done", func() bool {
			return db.count(`SELECT COUNT(*) FROM jobs WHERE status = 'dead'`) == n && db.count(`SELECT COUNT(*) FROM jobs WHERE status = 'completed'`) == n
		})
		mended.Store(true)
		ids := map[string]string{}
		for action, filter := range map[string]string{"retry": `{"consumer": "billing"}`, "replay": `{"event_type": "note.added"}`} {
			a := d.must(200, "POST", "/api/operations", fmt.Sprintf(`{"action": %q, "filter": %s, "rate": 6}`, action, filter))
			_, id, _ := strings.Cut(a.body, `"id":"`)
			ids[action], _, _ = strings.Cut(id, `"`)
		}
		begun := func() bool {
			return db.count(`SELECT COUNT(*) FROM operations WHERE acted > 0`) == 2
		}
		wait.For(t, 30*time.Second, "the worker does slices", begun)
		goesBy(t, rand.N(300*time.Millisecond))
		w := newWitness(receiver.New(t)) // records the kill only
		wait.For(t, 30*time.Second, "a copy of the worker is killed", func() bool { return killOne(d, w) })
		for action, id := range ids {
			var last string
			wait.For(t, 60*time.Second, action+" is finished", func() bool {
				last = d.must(200, "GET", "/api/operations/"+id, "").body
				return strings.Contains(last, `"state":"finished"`)
			})
			if !strings.Contains(last, fmt.Sprintf(`"acted":%d,"skipped":0`, n)) {
				t.Errorf("%s: %s, want that it acted on %d", action, last, n)
			}
		}
		d.awaitIdle(60 * time.Second)
		unschedule()
		d.stop()
		for what, want := range map[string]struct {
			query string
			n     int
		}{
			"jobs retried once":      {`SELECT COUNT(*) FROM jobs WHERE lane = 'handler/billing' AND status = 'completed' AND max_attempts = 8`, n},
			"jobs of notes":          {`SELECT COUNT(*) FROM jobs WHERE lane = 'handler/notes' AND status = 'completed'`, 2 * n},
			"events replayed once":   {`SELECT COUNT(*) FROM (SELECT event_id FROM jobs WHERE lane = 'handler/notes' GROUP BY event_id HAVING COUNT(*) = 2) AS twice`, n},
			"operations not at work": {`SELECT COUNT(*) FROM operations WHERE state = 'finished'`, 2},
		} {
			if got := db.count(want.query); got != want.n {
				t.Errorf("%d %s, want %d", got, what, want.n)
			}
		}
		jobs := map[string]bool{}
		for _, got := range r.At("/notes") {
			jobs[got.Job()] = true
		}
		if len(jobs) != 2*n {
			t.Errorf("the receiver saw %d jobs of notes, want %d", len(jobs), 2*n)
		}
	})
}
