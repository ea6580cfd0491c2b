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

// A fleet is functions over one pile. Each worker is a process of its own: it hears no bell
// and runs for at most a minute.
type fleet struct {
	*bench
	t      *testing.T
	target Target
	work   sync.WaitGroup

	mu      sync.Mutex
	arrived map[core.ID]time.Time
	slowest time.Duration // from the event's arrival to the start of its delivery
	nudged  time.Time
	awake   time.Duration // of all workers
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{t: t, arrived: map[core.ID]time.Time{}}
	f.target = Target{Timeout: 5 * time.Second, Sender: sends(func(ctx context.Context, j core.TakenJob) Reply {
		f.mu.Lock()
		f.slowest = max(f.slowest, time.Since(f.arrived[j.ID]))
		f.mu.Unlock()
		return takesTime(20*time.Millisecond, ok)(ctx, j)
	})}
	f.bench = newBench(Limits{Slots: 4, Batch: 10}, f.target)
	f.delay = 5 * time.Millisecond
	return f
}

// accept stores the job of an event. It nudges at most once a second.
func (f *fleet) accept() {
	f.mu.Lock()
	id := core.ID(fmt.Sprintf("%s-%04d", lane, len(f.arrived)))
	f.arrived[id] = time.Now()
	f.add(lane, 1, 3)
	quiet := time.Since(f.nudged) >= time.Second
	if quiet {
		f.nudged = time.Now()
	}
	f.mu.Unlock()
	if quiet {
		f.work.Go(f.answer)
	}
}

// answer is the tick of a nudged worker, 50 ms after the nudge was sent.
func (f *fleet) answer() {
	time.Sleep(50 * time.Millisecond) // virtual
	began := time.Now()
	_, err := f.otherWorker(f.target).Tick(context.Background(), core.Budget{End: began.Add(time.Minute), Rest: 5 * time.Second, Brief: true})
	if err != nil {
		f.t.Errorf("Tick = %v, want none", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.awake += time.Since(began)
}

// When an event arrives, a worker is awake for it or is nudged, and no worker stays awake for
// long.
func TestNudgedWorkersSeeEverything(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			f, random := newFleet(t), rand.New(rand.NewPCG(seed, 0))
			began := time.Now()
			for range 300 {
				f.accept()
				pause := time.Duration(random.Int64N(int64(3 * time.Second)))
				if random.IntN(3) == 0 {
					pause = time.Duration(random.Int64N(int64(50 * time.Millisecond)))
				}
				time.Sleep(pause)
			}
			f.work.Wait()
			if n := f.count(core.Completed); n != 300 || len(f.settled) != 300 {
				t.Errorf("seed %d: %d of 300 delivered in %d attempts, want each in one", seed, n, len(f.settled))
			}
			if f.slowest > 750*time.Millisecond {
				t.Errorf("seed %d: one waited for %v, want no longer than a look's time", seed, f.slowest)
			}
			if took := time.Since(began); f.awake > 3*took {
				t.Errorf("seed %d: workers were awake for %v of %v, want fewer than three at a time", seed, f.awake, took)
			}
		})
	}
}
