package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Two gateways on one database do an operation that retries dead jobs, half of which die again. The
// ledger of the receiver has each job twice: its first attempt, and one after the retry.
func TestOperation(t *testing.T) {
	var mu sync.Mutex
	var retried atomic.Bool
	seen := map[string]int{}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		id := r.Header.Get("X-Gateway-Job-Id")
		seen[id]++
		if !retried.Load() || len(seen)%2 == 0 {
			w.WriteHeader(500)
		}
	}))
	defer receiver.Close()
	path := filepath.Join(t.TempDir(), "gateway.db")
	yaml := billing(receiver.URL, "retry: {max: 1}, circuit_breaker: off")
	w := wiredTo(t, openStore(t, path), yaml)
	const n = 45
	for range n {
		w.accept202(t, "order")
	}
	w.deliver(t)
	wait := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not within 20 s: %s", what)
			}
		}
	}
	dead := core.JobFilter{Lane: "handler/billing", Status: core.Dead, Limit: core.MaxPage}
	wait("all jobs are dead", func() bool { return len(w.jobs(t, dead)) == n })
	retried.Store(true)
	other := wiredTo(t, openStore(t, path), yaml)
	other.deliver(t)

	op := core.Operation{Action: core.RetryAction, Filter: core.OperationFilter{Lane: "handler/billing"}, Rate: core.MaxRate}
	plan, err := other.Operations.Plan(t.Context(), op)
	if err != nil || plan.Matches != n {
		t.Fatalf("Plan = %+v, %v; want %d matches", plan, err, n)
	}
	begun, err := other.Operations.Begin(t.Context(), op)
	if err != nil {
		t.Fatal(err)
	}
	wait("the operation is finished", func() bool {
		now, err := w.Operations.Operation(t.Context(), begun.ID)
		return err == nil && now.State == core.OperationFinished && now.Acted == n
	})
	wait("all jobs were tried again", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for _, times := range seen {
			if times != 2 {
				return false
			}
		}
		return len(seen) == n
	})
	wait("the operation's job is completed", func() bool {
		return len(w.jobs(t, core.JobFilter{Lane: core.OperationLane, Status: core.Completed})) == 1
	})
}
