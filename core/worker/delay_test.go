package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// TestDelays: of 2,000 jobs that are due over an hour, none is sent before its time, and each is
// sent at the next look after it at the latest.
func TestDelays(t *testing.T) {
	const jobs, look = 2000, 1250 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		due := make(map[core.ID]time.Time, jobs)
		var mu sync.Mutex
		early, late := 0, time.Duration(0)
		b := newBench(Limits{Slots: 64, Batch: 200}, Target{Sender: sends(func(_ context.Context, j core.TakenJob) Reply {
			mu.Lock()
			defer mu.Unlock()
			after := time.Since(due[j.ID])
			if late = max(late, after); after < 0 {
				early++
			}
			return ok
		})})
		for n := range jobs {
			id := core.ID(fmt.Sprintf("%s-%06d", lane, n))
			due[id] = time.Now().Add(rand.N(time.Hour)).Truncate(time.Millisecond)
			b.pile.jobs[id] = &core.Job{ID: id, Lane: lane, Status: core.Scheduled, MaxAttempts: 1, DueAt: due[id]}
		}
		stop := b.serve(t)
		time.Sleep(time.Hour + look)
		stop()
		if n := b.count(core.Completed); n != jobs || early > 0 || late > look {
			t.Errorf("%d of %d delivered, %d early, the latest %v after its time; want all, none, at most %v", n, jobs, early, late, look)
		}
	})
}
