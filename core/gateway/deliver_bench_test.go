package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/egress"
	"github.com/eventgateway/gateway/core/worker"
)

// An endless store always has jobs and accepts all outcomes, both at once. A benchmark on it
// measures only the worker and the sender.
type endless struct {
	core.Worklist
	event      core.Event
	left, done atomic.Int64
	ended      chan struct{}
}

func (e *endless) Due(context.Context, []core.Lane) (map[core.Lane]core.Outlook, error) {
	return map[core.Lane]core.Outlook{core.HandlerLane("a"): {DueAt: e.event.CreatedAt}}, nil
}

func (e *endless) Take(_ context.Context, now time.Time, quotas []core.Quota) (jobs []core.TakenJob, err error) {
	for range quotas[0].N {
		n := e.left.Add(-1)
		if n < 0 {
			break
		}
		id := core.ID(fmt.Sprint("J", n))
		job := core.Job{ID: id, Lane: quotas[0].Lane, Lease: "L", Attempt: 1, MaxAttempts: 5, DueAt: now.Add(quotas[0].Hold)}
		jobs = append(jobs, core.TakenJob{Job: job, Event: e.event})
	}
	return jobs, nil
}

func (e *endless) Settle(_ context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	for _, o := range outcomes {
		if o.Status != core.Completed {
			panic(o.Attempt.Error)
		}
	}
	if e.done.Add(-int64(len(outcomes))) == 0 {
		close(e.ended)
	}
	return core.Settlement{}, nil
}

func (e *endless) Strays(context.Context, time.Time, []core.Lane) (map[core.Lane]time.Time, error) {
	return nil, nil
}

// slots is how many deliveries run at a time.
const slots = 32

// BenchmarkDeliver compares the worker with its sender, at 32 deliveries at a time, with as
// many loops over http.Client that post the same 2 KB, and with the worker alone.
func BenchmarkDeliver(b *testing.B) {
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	defer sink.Close()
	payload := bytes.Repeat([]byte(`{"order":"12345","total":"99.90"}`), 62)
	b.Run("bare", func(b *testing.B) {
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: slots}}
		defer client.CloseIdleConnections()
		var left atomic.Int64
		left.Store(int64(b.N))
		ended := make(chan struct{})
		for range slots {
			go func() {
				defer func() { ended <- struct{}{} }()
				for left.Add(-1) >= 0 {
					resp, err := client.Post(sink.URL, "application/json", bytes.NewReader(payload))
					if err != nil {
						b.Error(err)
						return
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}()
		}
		for range slots {
			<-ended
		}
	})
	b.Run("gateway", func(b *testing.B) {
		client := egress.New(egress.Options{AllowPrivate: true, Concurrency: slots, Version: "1"})
		defer client.Close()
		sender, err := client.HTTP(egress.Target{Name: "a", URL: sink.URL, Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}})
		if err != nil {
			b.Fatal(err)
		}
		deliver(b, payload, sender)
	})
	b.Run("worker", func(b *testing.B) { deliver(b, payload, delivered{}) })
}

// delivered is a sender that succeeds at once. A benchmark with it measures only the worker.
type delivered struct{}

func (delivered) Send(context.Context, core.TakenJob) worker.Reply {
	return worker.Reply{OK: true, StatusCode: 200}
}

// deliver sends b.N jobs.
func deliver(b *testing.B, payload []byte, to worker.Sender) {
	b.Helper()
	b.ReportAllocs()
	store := &endless{ended: make(chan struct{}), event: core.Event{
		ID: "E", Source: "shop", Type: "order.created", ContentType: "application/json", Payload: payload, CreatedAt: time.Now(),
	}}
	store.left.Store(int64(b.N))
	store.done.Store(int64(b.N))
	w := worker.New(worker.Deps{Worklist: store, Clock: core.SystemClock, Observe: func(core.Fact) {}},
		worker.Limits{Slots: slots, Batch: 100, Drain: time.Second},
		[]worker.Target{{Lane: core.HandlerLane("a"), Sender: to, Breaker: &worker.Breaker{}, Timeout: 30 * time.Second, Hold: time.Minute}})
	ctx, cancel := context.WithCancel(context.Background())
	ticked := make(chan error)
	go func() {
		_, err := w.Tick(ctx, core.Budget{Rest: time.Second})
		ticked <- err
	}()
	<-store.ended
	cancel()
	if err := <-ticked; err != nil {
		b.Fatal(err)
	}
}
