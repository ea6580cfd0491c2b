//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ledgers "github.com/eventgateway/gateway/infra/test/ledger"
	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// operationsConfig has a handler whose jobs die, one whose jobs are done, one whose jobs wait for
// their time, and a workflow whose runs fail. A job has more attempts than a test has kills.
const operationsConfig = `
server: {host: 127.0.0.1, port: "${PORT}", allow_private_urls: true}
worker: {stale_threshold_secs: 17}
delivery: {timeout: 2s, default_retry: {max: 5, backoff: fixed, interval: 20ms}}
sources:
  app: {type: event}
handlers:
  billing: {source: app, events: [order.created], url: "${RECEIVER}/billing", circuit_breaker: off}
  notes: {source: app, events: [note.added], url: "${RECEIVER}/notes"}
  mail: {source: app, events: [mail.asked], url: "${RECEIVER}/mail", delay: 2h}
alerts: {url: "${RECEIVER}/ended", on: [operation_finished]}
workflows: {flow: {source: app, events: [order.shipped], steps: [{name: pack, url: "${RECEIVER}/pack"}]}}
`

// TestOperations: a retry, a replay, a cancel and a redrive run at the same time, and the processes that
// do them are killed in between. The receivers and the tables show that each match is acted on exactly
// once. Half of the retried jobs die again meanwhile and are not retried again.
func TestOperations(t *testing.T) {
	t.Parallel()
	for _, p := range []struct {
		place
		processes, matches, kills int
	}{
		{place{"SQLite", ownFile}, 1, 40, 5},
		// A killed process keeps the job of an operation for 15 s.
		{place{"PostgreSQL", onPostgres}, 2, 40, 2},
		{place{"MySQL", onMySQL}, 2, 40, 2},
		{place{"D1", onProxy}, 2, 14, 1},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			o := &operated{t: t, r: receiver.New(t), n: p.matches}
			st := p.on(t)
			for range p.processes {
				g := newGatewayOn(t, st, operationsConfig, o.r)
				g.start()
				o.fleet = append(o.fleet, g)
			}
			o.prepare()
			o.begin()
			for i := range p.kills {
				<-time.After(200*time.Millisecond + rand.N(500*time.Millisecond))
				g := o.fleet[i%len(o.fleet)]
				g.kill()
				g.start()
			}
			o.awaitEnd()
			o.check()
		})
	}
}

// operated is several gateways on one database, with their operations.
type operated struct {
	t     *testing.T
	r     *receiver.Receiver
	fleet []*gateway
	n     int // matches of each operation

	mended atomic.Bool
	mu     sync.Mutex
	kept   map[string]bool // whether the handler takes a job once it is mended

	operations map[string]string // ids by action
}

// takes decides whether the mended handler takes a job: every other one.
func (o *operated) takes(job string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.kept[job]; !known {
		o.kept[job] = len(o.kept)%2 == 0
	}
	return o.kept[job]
}

// prepare stores n matches for each operation.
func (o *operated) prepare() {
	o.kept = map[string]bool{}
	o.r.On("/billing", func(_ int, w http.ResponseWriter, q *http.Request) {
		if !o.takes(q.Header.Get("X-Gateway-Job-Id")) || !o.mended.Load() {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	o.r.On("/pack", func(_ int, w http.ResponseWriter, _ *http.Request) {
		if !o.mended.Load() {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	g := o.fleet[0]
	for range o.n {
		for _, kind := range []string{"order.created", "note.added", "mail.asked", "order.shipped"} {
			g.send("/events/app/"+kind, `{}`)
		}
	}
	db := g.ledger()
	defer db.close()
	for what, query := range map[string]string{
		"dead jobs":      `SELECT COUNT(*) FROM jobs WHERE lane = 'handler/billing' AND status = 'dead'`,
		"completed jobs": `SELECT COUNT(*) FROM jobs WHERE lane = 'handler/notes' AND status = 'completed'`,
		"jobs that wait": `SELECT COUNT(*) FROM jobs WHERE lane = 'handler/mail' AND status = 'scheduled'`,
		"failed runs":    `SELECT COUNT(*) FROM runs WHERE status = 'failed'`,
	} {
		wait.For(o.t, 90*time.Second, fmt.Sprintf("%d %s", o.n, what), func() bool { return db.count(query) == o.n })
	}
	o.mended.Store(true)
}

// begin begins all operations. Each takes about four seconds without a kill.
func (o *operated) begin() {
	o.t.Helper()
	o.operations = map[string]string{}
	for action, filter := range map[string]string{
		"retry":   `{"consumer": "billing", "error": "502"}`,
		"replay":  `{"event_type": "note.added"}`,
		"cancel":  `{"consumer": "mail"}`,
		"redrive": `{"consumer": "workflow/flow"}`,
	} {
		a := o.fleet[0].post("/api/operations", fmt.Sprintf(`{"action": %q, "filter": %s, "rate": %d}`, action, filter, max(1, o.n/4)))
		var op struct{ ID string }
		if err := json.Unmarshal([]byte(a.body), &op); err != nil || a.status != http.StatusOK {
			o.t.Fatalf("begin %s = %d %s", action, a.status, a.body)
		}
		o.operations[action] = op.ID
	}
}

// awaitEnd waits until the operations are finished and no job is due.
func (o *operated) awaitEnd() {
	o.t.Helper()
	for action, id := range o.operations {
		var last string
		ended := wait.Until(120*time.Second, func() bool {
			a, err := fetch(pooled, request{method: http.MethodGet, url: o.fleet[0].url("/api/operations/" + id)})
			last = fmt.Sprint(a.body, err)
			return err == nil && strings.Contains(a.body, `"state":"finished"`)
		})
		if !ended {
			o.t.Fatalf("the %s is not finished within two minutes: %s", action, last)
		}
		counted := fmt.Sprintf(`"acted":%d,"skipped":0`, o.n)
		// A redrive is not in the commit that counts it, so a kill between the two leaves it uncounted.
		if action != "redrive" && !strings.Contains(last, counted) {
			o.t.Errorf("the %s is %s, want %s", action, last, counted)
		}
	}
	db := o.fleet[0].ledger()
	defer db.close()
	wait.For(o.t, 90*time.Second, "no job is left", func() bool {
		return db.count(`SELECT COUNT(*) FROM jobs WHERE status NOT IN ('completed', 'dead', 'canceled')`) == 0
	})
}

// check requires exactly one act on each match, in the tables and at the receiver.
func (o *operated) check() {
	o.t.Helper()
	db := o.fleet[0].ledger()
	defer db.close()
	half := o.n / 2
	for what, want := range map[string]struct {
		query string
		n     int
	}{
		// Each retry adds the handler's five attempts.
		"jobs retried once":           {`SELECT COUNT(*) FROM jobs WHERE lane = 'handler/billing' AND max_attempts = 10`, o.n},
		"retried jobs that are done":  {`SELECT COUNT(*) FROM jobs WHERE lane = 'handler/billing' AND status = 'completed'`, half},
		"retried jobs that are dead":  {`SELECT COUNT(*) FROM jobs WHERE lane = 'handler/billing' AND status = 'dead'`, half},
		"jobs of the replayed events": {`SELECT COUNT(*) FROM jobs WHERE lane = 'handler/notes' AND status = 'completed'`, 2 * o.n},
		"events with two jobs":        {`SELECT COUNT(*) FROM (SELECT event_id FROM jobs WHERE lane = 'handler/notes' GROUP BY event_id HAVING COUNT(*) = 2) AS twice`, o.n},
		"canceled jobs":               {`SELECT COUNT(*) FROM jobs WHERE lane = 'handler/mail' AND status = 'canceled'`, o.n},
		"runs redriven once":          {`SELECT COUNT(*) FROM runs WHERE status = 'completed' AND epoch = 2`, o.n},
	} {
		if got := db.count(want.query); got != want.n {
			o.t.Errorf("%d %s, want %d", got, what, want.n)
		}
	}
	// Five deliveries before the retry, and after it one at least. More only if a process was killed while
	// one was under way.
	later := map[string]bool{}
	for _, d := range o.r.At("/billing") {
		if d.Attempt() > 5 {
			later[d.Job()] = true
		}
		if d.Attempt() > 10 {
			o.t.Errorf("attempt %d of job %s, which was retried once", d.Attempt(), d.Job())
		}
	}
	alerts := map[string]bool{}
	for _, d := range o.r.At("/ended") {
		var alert struct{ Alert, Operation string }
		if err := json.Unmarshal([]byte(d.Body), &alert); err != nil || alert.Alert != "operation_finished" {
			o.t.Errorf("alert %s, %v", d.Body, err)
		}
		alerts[alert.Operation] = true
	}
	if len(alerts) != len(o.operations) {
		o.t.Errorf("%d alerts about the ends of %d operations", len(alerts), len(o.operations))
	}
	notes := map[string]bool{}
	for _, d := range o.r.At("/notes") {
		notes[d.Job()] = true
	}
	if len(later) != o.n || len(notes) != 2*o.n || len(o.r.At("/mail")) != 0 {
		o.t.Errorf("the receiver saw %d retried jobs, %d jobs of replays and first deliveries, %d canceled ones; want %d, %d, 0",
			len(later), len(notes), len(o.r.At("/mail")), o.n, 2*o.n)
	}
	for _, i := range ledgers.Invariants() {
		if n := db.count(i.SQL); n != 0 && i.Name != "jobs of the same event and consumer" { // a replay makes some
			o.t.Errorf("%s: %d, want 0", i.Name, n)
		}
	}
}
