//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
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

// TestConsoleOfManyJobs finds one failed delivery among many others, and opens each page beside them, on
// SQLite with 20,000 jobs. With GATEWAY_TEST_WHOLE there are a million jobs, on each database, and the calls of
// the pages are measured: see measureCalls. GATEWAY_TORTURE_CONSOLE is another number of jobs.
func TestConsoleOfManyJobs(t *testing.T) {
	t.Parallel()
	jobs := whole(1_000_000, 20_000)
	if text := os.Getenv("GATEWAY_TORTURE_CONSOLE"); text != "" {
		var err error
		if jobs, err = strconv.Atoi(text); err != nil || jobs < 1 {
			t.Fatalf("GATEWAY_TORTURE_CONSOLE=%q, want a number of jobs", text)
		}
	}
	places := []place{{"SQLite", ownFile}}
	if whole(1, 0) == 1 {
		places = append(places, place{"PostgreSQL", onPostgres}, place{"MySQL", onMySQL}, place{"D1", onCountedD1})
	}
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) { testConsoleOfMany(t, p, jobs) })
	}
}

func testConsoleOfMany(t *testing.T, p place, jobs int) {
	chromium, modules := browserOf(t)
	g := newManyJobs(t, p, jobs)
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
		measureCalls(g, p.name, jobs, calls)
	}
	g.stop()
}

// measureCalls logs how long the calls take, and on D1 how many requests to the database each one makes. The
// aim is a p99 of 50 ms, and on D1 of 300 ms. A machine that does other work may miss it; a median above it is a
// failure.
func measureCalls(g *gateway, place string, jobs int, calls []string) {
	g.t.Helper()
	aim := 50 * time.Millisecond
	if place == "D1" {
		aim = 300 * time.Millisecond
	}
	load, _ := os.ReadFile("/proc/loadavg")
	table := fmt.Sprintf("%s, %d jobs, load of the machine %s\n%-80s | %7s | %7s | %7s", place, jobs, strings.TrimSpace(string(load)), "call", "p50", "p99", "max")
	for _, call := range calls {
		n, pause := 200, time.Duration(0)
		if call == "api/stats" { // they are shared for a second
			n, pause = 20, 1100*time.Millisecond
		}
		before := g.requests()
		all := g.timed("/"+call, n, pause)
		requests := (g.requests() - before) / n // beside few others of the gateway's looks
		p50, p99 := exactly(all, 50), exactly(all, 99)
		table += fmt.Sprintf("\n%-80s | %7.1f | %7.1f | %7.1f", call, ms(p50), ms(p99), ms(all[n-1]))
		if place == "D1" {
			table += fmt.Sprintf(" | %d requests", requests)
		}
		if p99 > aim {
			table += " above " + aim.String()
		}
		if p50 > aim {
			g.t.Errorf("GET %s takes %v in the median of %d calls, want at most %v at p99", call, p50, n, aim)
		}
	}
	g.t.Log(table)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// requests returns how many requests the gateway has sent to D1, or 0 on another database.
func (g *gateway) requests() int {
	if g.store == nil || g.store.requests == nil {
		return 0
	}
	return g.store.requests()
}

// timed asks for a path n times, with a pause before each, and returns how long each reply took, the shortest
// time first.
func (g *gateway) timed(path string, n int, pause time.Duration) (all []time.Duration) {
	g.t.Helper()
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
		_, err = io.Copy(io.Discard, reply.Body)
		reply.Body.Close()
		if reply.StatusCode != http.StatusOK || err != nil {
			g.t.Errorf("GET %s: %s, %v", path, reply.Status, err)
		}
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all
}

// newManyJobs starts a gateway whose database has many delivered jobs, written without it, and a dozen
// dead ones, each with an error of its own.
func newManyJobs(t *testing.T, p place, jobs int) *gateway {
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
	g := newGatewayOn(t, p.on(t), manyConfig, r)
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
	wait.For(t, 30*time.Second, "the deliveries have ended", func() bool {
		return db.count(`SELECT COUNT(*) FROM jobs WHERE status = 'dead'`) == len(failures) && db.count(`SELECT COUNT(*) FROM runs WHERE status = 'completed'`) == len(failures)
	})
	return g
}
