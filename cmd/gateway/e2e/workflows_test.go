//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// workflowConfig has every type of step. A step's only attempt must survive kills, so any
// failed run shows a defect.
const workflowConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  public_url: http://127.0.0.1:${PORT}
  allow_private_urls: true
delivery: {timeout: 5s}
worker: {max_concurrency: 10}
sources: {app: {type: event}}
workflows:
  order:
    source: app
    params: [{name: n, type: number}, {name: items, type: array}]
    steps:
      - {name: check, url: "${RECEIVER}/check", result_path: $.checked, retry: {max: 5, backoff: fixed, interval: 50ms, errors: [5xx]}}
      - {name: route, type: choice, default: ask, choices: [{when: $.n < 0, goto: reject}]}
      - {name: ask, type: callback, url: "${RECEIVER}/ask", callback_timeout: 600, result_path: $.answer}
      - name: prepare
        type: parallel
        result_path: $.prepared
        branches:
          - {name: pay, url: "${RECEIVER}/pay"}
          - {name: pack, steps: [{name: each, type: map, items_path: $.items, max_concurrency: 2, url: "${RECEIVER}/item"}]}
          - {name: pause, steps: [{name: wait, type: wait, seconds: 1, end: true}]}
      - {name: notify, url: "${RECEIVER}/notify", input: '{"paid": {{ $.prepared.pay }}, "packed": {{ $.prepared.pack }}, "by": {{ $.answer.by }}}', end: true}
      - {name: reject, url: "${RECEIVER}/reject"}
`

// A workflowRun is a run as the command line shows it.
type workflowRun struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Error  string `json:"error"`
}

func (g *gateway) runs(flags ...string) []workflowRun {
	g.t.Helper()
	var out struct {
		Runs []workflowRun `json:"workflow_runs"`
	}
	g.runJSON(&out, append([]string{"workflow-runs", "list", "--limit", "1000"}, flags...)...)
	return out.Runs
}

// shop answers the steps of workflowConfig, and sends the callbacks.
type shop struct {
	mu sync.Mutex
	// checks counts the calls of the first step by key: the first call of each key fails.
	checks  map[string]int
	waiting map[string]string // URLs of callbacks that are not accepted yet, by run
}

func newShop(r *receiver.Receiver) *shop {
	s := &shop{checks: map[string]int{}, waiting: map[string]string{}}
	r.On("/check", s.check)
	r.On("/ask", s.ask)
	r.On("/pay", func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ok": true}`) })
	r.On("/item", func(_ int, w http.ResponseWriter, req *http.Request) {
		item, _ := io.ReadAll(req.Body)
		_, _ = fmt.Fprintf(w, `{"packed": %s}`, item)
	})
	return s
}

func (s *shop) check(_ int, w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := req.Header.Get("idempotency-key")
	if s.checks[key]++; s.checks[key] == 1 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, `{"stock": 3}`)
}

func (s *shop) ask(_ int, w http.ResponseWriter, req *http.Request) {
	var notice struct {
		URL string `json:"callback_url"`
		Run string `json:"run_id"`
	}
	if json.NewDecoder(req.Body).Decode(&notice) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[notice.Run] = notice.URL
}

// answer posts the waiting callbacks; a refused callback stays in waiting.
func (s *shop) answer() {
	s.mu.Lock()
	all := map[string]string{}
	for run, url := range s.waiting {
		all[run] = url
	}
	s.mu.Unlock()
	for run, url := range all {
		res, err := http.Post(url, "application/json", strings.NewReader(`{"by": "desk"}`))
		if err != nil {
			continue
		}
		_ = res.Body.Close()
		// 404 is the answer to a second token of a step that the first token resumed.
		if res.StatusCode == http.StatusOK || res.StatusCode == http.StatusNotFound {
			s.mu.Lock()
			if s.waiting[run] == url {
				delete(s.waiting, run)
			}
			s.mu.Unlock()
		}
	}
}

// TestWorkflowKills: runs of workflows complete with the right output, for any number of
// kills. A call that is made twice was under way at a kill.
func TestWorkflowKills(t *testing.T) {
	r := receiver.New(t)
	s := newShop(r)
	g := newGateway(t, workflowConfig, r)
	g.env = append(g.env, "GATEWAY_LOG=error")
	const events = 30
	rounds := whole(25, 10)
	if testing.Short() {
		rounds = 5
	}
	var kills []outage
	g.start()
	for n := range events {
		g.send("/events/order.created", fmt.Sprintf(`{"n": %d, "items": [%d, "b", null, 1.50]}`, n, n))
	}
	for range rounds {
		<-time.After(rand.N(150 * time.Millisecond))
		s.answer()
		<-time.After(rand.N(50 * time.Millisecond))
		killed := time.Now()
		g.kill()
		g.start()
		kills = append(kills, outage{killed, time.Now()})
	}
	wait.For(t, time.Minute, "all runs completed", func() bool {
		s.answer()
		done := g.runs("--status", "completed")
		if failed := g.runs("--status", "failed"); len(failed) > 0 {
			t.Fatalf("failed: %+v", failed)
		}
		return len(done) == events
	})
	g.awaitIdle(10 * time.Second)
	judgeNotices(t, r.At("/notify"), events)
	for _, path := range []string{"/check", "/ask", "/pay", "/item", "/notify"} {
		calls := map[string][]receiver.Delivery{}
		for _, d := range r.At(path) {
			key := d.Header.Get("idempotency-key")
			calls[key] = append(calls[key], d)
		}
		want := map[string]int{"/item": 4 * events}[path]
		if want == 0 {
			want = events
		}
		if len(calls) != want {
			t.Errorf("%s: %d idempotency keys, want %d", path, len(calls), want)
		}
		for key, made := range calls {
			if path == "/check" {
				made = made[1:] // the first call of each key fails
			}
			if len(made) == 0 {
				t.Errorf("%s: call %s was not made again after it had failed", path, key)
			}
			for i := range made[:max(0, len(made)-1)] {
				if !slices.ContainsFunc(kills, func(k outage) bool { return k.between(made[i], made[i+1]) }) {
					t.Errorf("%s: call %s was made again %v after it, want only what was under way at a kill", path, key, made[i+1].At.Sub(made[i].At))
				}
			}
		}
	}
	g.stop()
	db := openLedger(t, g.database())
	db.sound()
	for what, query := range map[string]string{
		"jobs that are not finished": `SELECT COUNT(*) FROM jobs WHERE status <> 'completed'`,
		"tokens":                     `SELECT COUNT(*) FROM callbacks WHERE step_id <> ''`,
	} {
		if n := db.count(query); n != 0 {
			t.Errorf("%s: %d, want 0", what, n)
		}
	}
}

// between reports whether an outage explains that a call was made again: the call, or the
// settling of its outcome, was under way when the outage began.
func (o outage) between(first, second receiver.Delivery) bool {
	return first.At.After(o.from.Add(-settleReach)) && first.At.Before(o.to) && second.At.After(o.from)
}

// judgeNotices checks the last call of each run, which contains the output of all its steps.
func judgeNotices(t *testing.T, notices []receiver.Delivery, events int) {
	t.Helper()
	seen := map[string]bool{}
	for _, d := range notices {
		var got struct {
			Packed []struct{ Packed any } `json:"packed"`
		}
		if err := json.Unmarshal([]byte(d.Body), &got); err != nil || len(got.Packed) != 4 {
			t.Fatalf("notify %s: %v", d.Body, err)
		}
		n := fmt.Sprint(got.Packed[0].Packed)
		want := fmt.Sprintf(`{"paid": {"ok":true}, "packed": [{"packed":%s},{"packed":"b"},{"packed":null},{"packed":1.50}], "by": "desk"}`, n)
		if d.Body != want {
			t.Errorf("notify %s, want %s", d.Body, want)
		}
		seen[n] = true
	}
	if len(seen) != events {
		t.Errorf("notified of %d orders, want %d", len(seen), events)
	}
}
