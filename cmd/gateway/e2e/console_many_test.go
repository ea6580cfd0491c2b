//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

// manyConfig has a handler with many delivered jobs, and one whose deliveries fail.
const manyConfig = `
console: true
server: {host: 127.0.0.1, port: "${PORT}", allow_private_urls: true}
api: {auth_token: admin-admin-admin-admin-admin}
delivery: {timeout: 5s, default_retry: {max: 2, backoff: fixed, interval: 1s}}
sources:
  shop: {type: event}
  bank: {type: event}
handlers:
  bulk: {source: shop, url: "${RECEIVER}/bulk"}
  needle: {source: bank, url: "${RECEIVER}/needle", circuit_breaker: off}
queues:
  mail: {source: shop, events: [mail.wanted]}
workflows:
  fulfil: {source: bank, events: [order.paid], steps: [{name: reserve, url: "${RECEIVER}/reserve"}]}
`

// failures are the statuses of the deliveries that fail; the one to be found is among them.
var failures = []int{400, 401, 402, 403, 404, 405, 406, 409, 410, 411, 412, 422}

// TestConsoleOfManyJobs finds one failed delivery among many others, and opens each page beside them. It
// has 20,000 jobs, and 1,000,000 if GATEWAY_TEST_WHOLE is set. Then it also measures the calls of the
// pages.
func TestConsoleOfManyJobs(t *testing.T) {
	t.Parallel()
	chromium, modules := browserOf(t)
	g := newManyJobs(t, whole(1_000_000, 20_000))
	base := fmt.Sprintf("http://127.0.0.1:%d", g.port)
	given := map[string]any{
		"browser": chromium, "console": base + "/console", "api": base, "pictures": os.Getenv("GATEWAY_TEST_PICTURES"),
		"tokens":  map[string]string{"admin": "admin-admin-admin-admin-admin"},
		"stories": []string{"find one failed delivery among many", "the first page is fast", "at most two calls a page"},
	}
	var calls []string
	for _, told := range tellStories(t, modules, given, 3) {
		calls = append(calls, told.Calls...)
	}
	if len(calls) < 10 {
		t.Fatalf("the pages made the calls %v, want those of all pages", calls)
	}
	for _, call := range slices.Concat(tabs...) {
		if !slices.Contains(calls, call.path) {
			t.Errorf("the pages made the calls %v, want %s among them, as TestTabsBesideIntake makes it", calls, call.path)
		}
	}
	if whole(1, 0) == 1 {
		for _, call := range calls {
			n, pause := 200, time.Duration(0)
			if call == "api/stats" { // they are shared for a second
				n, pause = 20, 1100*time.Millisecond
			}
			p50, p99 := g.timed("/"+call, n, pause)
			t.Logf("%-80s p50 %7.1f ms, p99 %7.1f ms", call, ms(p50), ms(p99))
		}
	}
	g.stop()
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// timed asks for a path n times, with a pause before each, and returns how long a reply takes.
func (g *gateway) timed(path string, n int, pause time.Duration) (p50, p99 time.Duration) {
	g.t.Helper()
	var all []time.Duration
	for range n {
		r, err := http.NewRequestWithContext(g.t.Context(), "GET", fmt.Sprintf("http://127.0.0.1:%d%s", g.port, path), nil)
		if err != nil {
			g.t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer admin-admin-admin-admin-admin")
		<-time.After(pause)
		began := time.Now()
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			g.t.Fatal(err)
		}
		reply.Body.Close()
		if reply.StatusCode != http.StatusOK {
			g.t.Errorf("GET %s: %s", path, reply.Status)
		}
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all[n/2], all[n*99/100]
}

// newManyJobs starts a gateway whose database has many delivered jobs, written without it, and a dozen
// dead ones, each with an error of its own.
func newManyJobs(t *testing.T, jobs int) *gateway {
	r := receiver.New(t)
	r.On("/needle", func(_ int, w http.ResponseWriter, r *http.Request) {
		var order struct{ N int }
		if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
			t.Error(err)
		}
		status := failures[order.N]
		w.WriteHeader(status)
		fmt.Fprintf(w, "answer %d: the currency is not known", status)
	})
	g := newGateway(t, manyConfig, r)
	g.run("migrate", "up")
	began := time.Now()
	seedDelivered(g, jobs)
	t.Logf("%d delivered jobs written in %d ms", jobs, time.Since(began).Milliseconds())
	g.start()
	token := []string{"Authorization", "Bearer admin-admin-admin-admin-admin", "Content-Type", "application/json"}
	for i := range failures {
		g.send("/events/bank/order.paid", `{"n":`+strconv.Itoa(i)+`,"currency":"XTS"}`, token...)
	}
	db := g.ledger()
	defer db.close()
	eventually(t, 30*time.Second, "the deliveries have ended", func() bool {
		return db.count(`SELECT COUNT(*) FROM jobs WHERE status = 'dead'`) == len(failures) && db.count(`SELECT COUNT(*) FROM runs WHERE status = 'completed'`) == len(failures)
	})
	return g
}

// seedDelivered writes events of the source shop, each with a job that was delivered at once.
func seedDelivered(g *gateway, jobs int) {
	db := g.ledger()
	defer db.close()
	first := time.Now().Add(-6 * time.Hour).UnixMilli()
	const numbers = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) `
	for _, statement := range []string{
		numbers + `INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at)
			SELECT printf('01M7000000%016d', i), 'shop', 'order.created', printf('{"n":%d,"customer":{"id":"c-%d"}}', i, i % 1000), 'application/json', '', NULL, ?2 + i * 10 FROM n`,
		numbers + `INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at, finished_at)
			SELECT printf('01M7000001%016d', i), printf('01M7000000%016d', i), 'handler/bulk', NULL, 'completed', 1, 3, NULL, NULL, '', ?2 + i * 10, ?2 + i * 10 + 5 FROM n`,
		numbers + `INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at)
			SELECT printf('01M7000001%016d', i), 'L', 1, 200, '', '', 5, ?2 + i * 10 FROM n`,
	} {
		if _, err := db.db.Exec(statement, jobs, first); err != nil {
			g.t.Fatalf("%s: %v", strings.Fields(statement), err)
		}
	}
}
