//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

// unknownConfig has a handler with a single attempt, and a place for alerts about dead jobs.
const unknownConfig = deathServer + `
delivery: {timeout: 5s, default_retry: {max: 1, backoff: fixed, interval: 100ms}}
handlers: {once: {source: app, url: "${RECEIVER}/once"}}
alerts: {url: "${RECEIVER}/dead", on: [dlq]}
`

// TestKilledBeforeSettle kills the gateway after the handler answered the last attempt with
// 200, and before the gateway stored the answer. The handler did not fail: the attempt is
// repeated, and the job does not become dead.
func TestKilledBeforeSettle(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	g := newGateway(t, unknownConfig, r)
	g.start()
	db := g.ledger()
	writes, err := db.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := writes.ExecContext(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	answered := make(chan struct{})
	r.On("/once", func(n int, _ http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			exec("BEGIN IMMEDIATE") // the gateway's settle waits for this
			close(answered)
		}
	})
	g.send("/events/order.created", `{}`)
	select {
	case <-answered:
	case <-time.After(10 * time.Second):
		t.Fatal("no delivery within 10s")
	}
	g.kill()
	exec("ROLLBACK")
	if err := writes.Close(); err != nil {
		t.Fatal(err)
	}

	g.start()
	tries := r.Await(t, 10*time.Second, "/once", 2)
	g.awaitIdle(10 * time.Second)
	jobs := g.jobs()
	g.stop()
	if len(jobs) != 1 || jobs[0].Status != "completed" || jobs[0].Attempt != 1 || jobs[0].MaxAttempts != 1 {
		t.Errorf("jobs = %+v, want one, completed in attempt 1 of 1, and no alert", jobs)
	}
	for i, d := range tries {
		if d.Attempt() != 1 || d.Job() != tries[0].Job() {
			t.Errorf("delivery %d: job %s, attempt %d, want job %s, attempt 1", i+1, d.Job(), d.Attempt(), tries[0].Job())
		}
	}
	if told := r.At("/dead"); len(told) != 0 {
		t.Errorf("told of a dead job: %s", told[0].Body)
	}
}

// TestPayloadThatKills: an event whose delivery ends the process each time is given up after
// three attempts. The error says so.
func TestPayloadThatKills(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	g := newGateway(t, unknownConfig, r)
	r.On("/once", r.Hanging())
	g.start()
	g.send("/events/order.created", `{}`)
	for n := 1; n <= 3; n++ {
		r.Await(t, 10*time.Second, "/once", n)
		g.kill()
		g.start()
	}
	told := r.Await(t, 10*time.Second, "/dead", 1)[0]
	g.awaitIdle(10 * time.Second)
	dead := g.jobs("--status", "dead")
	g.stop()
	const want = "lease expired: the process ended three times before it stored the result of this attempt"
	if len(dead) != 1 || dead[0].LastError == nil || *dead[0].LastError != want || dead[0].Attempt != 1 {
		t.Errorf("dead jobs = %+v, want one with error %q in attempt 1", dead, want)
	}
	if !strings.Contains(told.Body, want) {
		t.Errorf("alert %s, want it to say %q", told.Body, want)
	}
	if n := len(r.At("/once")); n != 3 {
		t.Errorf("deliveries = %d, want 3", n)
	}
}

// TestLockedTable locks a table of PostgreSQL until the gateway gives up on waiting events.
// The database stores some of those events when the lock is gone. The sender repeats each
// event, before and after the lock ends, and the gateway stores it once.
func TestLockedTable(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"events", "jobs"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			r := receiver.New(t)
			st := onPostgres(t)
			g := newGatewayOn(t, st, deathServer+`
delivery: {timeout: 5s, default_retry: {max: 5, backoff: fixed, interval: 100ms}}
handlers: {a: {source: app, url: "${RECEIVER}/a"}, b: {source: app, url: "${RECEIVER}/b"}}
`, r)
			g.start()
			g.send("/events/order.created", `{"n":-1}`)
			g.awaitIdle(10 * time.Second)

			db := g.ledger()
			lock, err := db.db.Begin()
			if err == nil {
				_, err = lock.Exec("LOCK TABLE " + table)
			}
			if err != nil {
				t.Fatal(err)
			}
			const n = 12
			patient := &http.Client{Timeout: time.Minute}
			post := func(answers []answer, i int, headers ...string) {
				a, err := fetch(patient, request{method: "POST", url: g.url("/events/order.created"), body: fmt.Sprintf(`{"n":%d}`, i),
					headers: append(headers, "Accept", "application/json")})
				if err != nil {
					t.Errorf("event %d: %v", i, err)
				}
				answers[i] = a
			}
			first, again, last := make([]answer, n), make([]answer, n), make([]answer, n)
			var sending sync.WaitGroup
			for i := range n {
				sending.Go(func() { post(first, i) })
			}
			sending.Wait()
			unknown := 0
			for i, a := range first {
				var told struct {
					EventID string `json:"event_id"`
				}
				if err := json.Unmarshal([]byte(a.body), &told); err != nil || a.status != 503 || told.EventID != a.eventID() {
					t.Fatalf("event %d: %d %s, %v, want 503 and the event of the header, %q", i, a.status, a.body, err, a.eventID())
				}
				if known := strings.Contains(a.body, "not stored\""); known == (a.eventID() != "") {
					t.Errorf("event %d: %s, want either an id or that it is not stored", i, a.body)
				} else if !known {
					unknown++
				}
			}
			if unknown == 0 {
				t.Error("no event of unknown outcome, want some")
			}
			for i, a := range first {
				if a.eventID() != "" {
					sending.Go(func() { post(again, i, "x-gateway-repeat", a.eventID()) })
				}
			}
			<-time.After(time.Second) // some of them wait for the lock now
			if err := lock.Rollback(); err != nil {
				t.Fatal(err)
			}
			sending.Wait()
			want := map[string]bool{}
			for i, a := range first {
				if a.eventID() == "" {
					post(last, i)
				} else {
					post(last, i, "x-gateway-repeat", a.eventID())
				}
				if last[i].status != 202 || a.eventID() != "" && (again[i].eventID() != a.eventID() || last[i].eventID() != a.eventID()) {
					t.Errorf("event %d: %s, then %s, then %d %s; want the same event each time, and 202", i, a.body, again[i].body, last[i].status, last[i].body)
				}
				want[last[i].eventID()] = true
			}
			g.awaitIdle(10 * time.Second)
			g.stop()
			for _, path := range []string{"/a", "/b"} {
				got := map[string]int{}
				for _, d := range r.At(path) {
					got[d.Event()]++
				}
				for id := range want {
					if got[id] != 1 {
						t.Errorf("event %s was delivered to %s %d times, want once", id, path, got[id])
					}
				}
			}
			if events, jobs := db.count(`SELECT COUNT(*) FROM events`), db.count(`SELECT COUNT(*) FROM jobs`); events != n+1 || jobs != 2*(n+1) {
				t.Errorf("%d events, %d jobs, want %d and %d", events, jobs, n+1, 2*(n+1))
			}
			t.Logf("%d of %d events of unknown outcome", unknown, n)
		})
	}
}
