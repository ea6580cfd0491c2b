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

// Two gateways on one database do an operation that retries dead jobs, slice by slice. Half of the
// jobs die again meanwhile. The ledger of the receiver has each job twice: its first attempt, and one
// after the retry.
func TestOperation(t *testing.T) {
	var mu sync.Mutex
	var retried atomic.Bool
	seen, order := map[string]int{}, map[string]int{} // the deliveries of each job, and its place among the jobs
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		id := r.Header.Get("X-Gateway-Job-Id")
		if seen[id]++; seen[id] == 1 {
			order[id] = len(order)
		}
		if !retried.Load() || order[id]%2 == 0 {
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

	op := core.Operation{Action: core.RetryAction, Filter: core.OperationFilter{Lane: "handler/billing"}, Rate: 30} // 3 a slice
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
		return err == nil && now.State == core.OperationFinished
	})
	if now, err := w.Operations.Operation(t.Context(), begun.ID); err != nil || now.Acted != n || now.Seq < n/3 {
		t.Errorf("operation = %+v, %v; want %d jobs in %d slices at least", now, err, n, n/3)
	}
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
	wait("half of the jobs are dead again", func() bool { return len(w.jobs(t, dead)) == (n+1)/2 })
	wait("the operation's job is completed", func() bool {
		return len(w.jobs(t, core.JobFilter{Lane: core.OperationLane, Status: core.Completed})) == 1
	})
}
