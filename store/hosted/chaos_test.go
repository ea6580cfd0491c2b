package hosted

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/servers"
)

// retryAfter reports whether err is a refusal of kind Unavailable, and when to retry.
func retryAfter(err error) (time.Duration, bool) {
	var r *core.Refusal
	if errors.As(err, &r) && r.Kind == core.Unavailable {
		return r.RetryAfter, true
	}
	return 0, false
}

// insist repeats a call until the database is available.
func insist(t *testing.T, call func() error) {
	for range 10_000 {
		err := call()
		if err == nil {
			return
		}
		wait, again := retryAfter(err)
		if !again {
			t.Errorf("an error that nobody can do anything about: %v", err)
			return
		}
		<-time.After(max(wait, 20*time.Millisecond)) // the caller's own pause
	}
	t.Error("unavailable for ever")
}

// A crowd has several stores that accept events and deliver jobs at the same time.
type crowd struct {
	t      *testing.T
	stores []core.Store
	now    time.Time

	mu        sync.Mutex
	accepted  []core.Arrival
	delivered map[core.ID]int
	unknown   int // takes that failed, and may have leased jobs
}

func (c *crowd) together(n int, do func(s core.Store)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(c.stores[i%len(c.stores)]) })
	}
	all.Wait()
}

func (c *crowd) accept(s core.Store) {
	a := arrival(1)
	insist(c.t, func() error { _, err := s.Accept(context.Background(), a); return err })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accepted = append(c.accepted, a)
}

// deliver takes and settles until nothing is due.
func (c *crowd) deliver(s core.Store) {
	ctx := context.Background()
	for {
		var jobs []core.TakenJob
		insist(c.t, func() (err error) {
			if jobs, err = s.Take(ctx, c.now, []core.Quota{{Lane: lane, N: 10, Hold: time.Minute}}); err != nil {
				c.mu.Lock()
				c.unknown++
				c.mu.Unlock()
			}
			return err
		})
		if len(jobs) == 0 {
			return
		}
		var outcomes []core.Outcome
		c.mu.Lock()
		for _, j := range jobs {
			c.delivered[j.ID]++
			outcomes = append(outcomes, ended(j.Job, core.Completed, c.now))
		}
		c.mu.Unlock()
		insist(c.t, func() error {
			settled, err := s.Settle(ctx, outcomes...)
			if len(settled.Lost) > 0 {
				c.t.Errorf("Settle lost %v", settled.Lost)
			}
			return err
		})
	}
}

// check fails if an accepted job was not delivered. The parameter twice is the largest permitted
// number of repeated deliveries, of all jobs together.
func (c *crowd) check(t *testing.T, twice int) {
	t.Helper()
	more := 0
	for _, a := range c.accepted {
		id := a.Jobs[0].ID
		if c.delivered[id] == 0 {
			t.Errorf("job %s was accepted and never delivered", id)
		}
		more += max(0, c.delivered[id]-1)
	}
	if more > twice {
		t.Errorf("%d deliveries too many, want at most %d", more, twice)
	}
	insist(t, func() error {
		n, err := c.stores[0].Depth(context.Background())
		if n != 0 {
			t.Errorf("%d jobs are not finished", n)
		}
		return err
	})
}

func newCrowd(t *testing.T, stores ...core.Store) *crowd {
	return &crowd{t: t, stores: stores, now: core.SystemClock().Add(time.Hour), delivered: map[core.ID]int{}}
}

// TestClaimers: eight stores, as eight processes without any coordination, deliver each job once.
func TestClaimers(t *testing.T) {
	t.Parallel()
	h := database(t)
	var stores []core.Store
	for range 4 {
		for _, face := range faces {
			stores = append(stores, migrated(t, connect(t, face(h))))
		}
	}
	c := newCrowd(t, stores...)
	c.together(40, func(s core.Store) {
		for range 25 {
			c.accept(s)
		}
	})
	c.together(8, c.deliver)
	if len(c.delivered) != 1000 {
		t.Errorf("%d jobs delivered, want 1000", len(c.delivered))
	}
	c.check(t, 0)
}

// TestChaos: answers are lost, come late, or come from a gateway in front of the database.
func TestChaos(t *testing.T) {
	t.Parallel()
	onEachFace(t, func(t *testing.T, face func(servers.Hosted) Options) {
		h := database(t)
		var stores []core.Store
		faults := servers.NewFaults(t, h.API)
		h.API, h.Endpoint = faults.URL, faults.URL+h.Endpoint[len(h.API):]
		for range 2 {
			stores = append(stores, migrated(t, connect(t, face(h))))
		}
		faults.Chance(0.05, servers.Before(502, "<html>Bad gateway</html>"))
		faults.Chance(0.05, servers.After())
		faults.Chance(0.01, servers.Stall(500*time.Millisecond))
		c := newCrowd(t, stores...)
		const accepting = 20
		var started atomic.Int32
		c.together(accepting+8, func(s core.Store) {
			if started.Add(1) > accepting {
				c.deliver(s)
				return
			}
			for range 100 {
				c.accept(s)
			}
		})
		c.together(8, c.deliver)
		// Jobs of claims whose answer was lost for good are due again once their lease is over.
		c.now = c.now.Add(2 * time.Minute)
		c.together(2, c.deliver)
		counts := faults.Counts()
		t.Logf("%d jobs, %d calls, %d refused, %d answers lost, %d stalled, %d takes given up",
			len(c.accepted), counts.Calls, counts.Before, counts.After, counts.Stalled, c.unknown)
		if counts.Before == 0 || counts.After == 0 || counts.Stalled == 0 {
			t.Errorf("too little went wrong: %+v", counts)
		}
		if len(c.accepted) != accepting*100 {
			t.Errorf("%d events accepted, want %d", len(c.accepted), accepting*100)
		}
		c.check(t, counts.After+counts.Stalled)
	})
}

// TestRestart: the database engine is killed in the middle of work and restarted.
func TestRestart(t *testing.T) {
	t.Parallel()
	server, err := servers.StartD1(servers.D1Options{})
	servers.Check(t, err)
	defer server.Stop()
	s := migrated(t, connect(t, faces["proxy"](server.Hosted(0))))
	c := newCrowd(t, s)
	stop, refused, busy := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var firstRefusal, manyDone sync.Once
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				a := arrival(1)
				insist(t, func() error {
					_, err := s.Accept(context.Background(), a)
					if err != nil {
						firstRefusal.Do(func() { close(refused) })
					}
					return err
				})
				c.mu.Lock()
				c.accepted = append(c.accepted, a)
				c.mu.Unlock()
				if n == 20 {
					manyDone.Do(func() { close(busy) })
				}
			}
		})
	}
	<-busy
	server.Kill()
	<-refused
	must(t, server.Restart())
	insist(t, func() error { return s.Ping(context.Background()) })
	close(stop)
	all.Wait()
	c.together(2, c.deliver)
	c.check(t, 0)
	t.Logf("%d events", len(c.accepted))
}
