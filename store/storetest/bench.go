package storetest

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Benchmarks of a store. They report rates, so that two databases, or two versions, can be
// compared at a glance.

// Bench measures the calls that a gateway makes most: Accept, and Take and Settle on lanes of
// different lengths, and Settle on lines of different lengths. It reports events, jobs or outcomes
// per second as well as ns/op. With -short it leaves out the lane and the line of 1,000,000 jobs.
func Bench(b *testing.B, open func(b *testing.B) core.Store) {
	b.Run("accept=1", func(b *testing.B) { benchAccept(newBench(b, open)) })
	b.Run("accept=1/parallel=32", func(b *testing.B) { benchAcceptParallel(newBench(b, open)) })
	b.Run("take=10+settle=10", func(b *testing.B) { benchTakeSettle(newBench(b, open), 10) })
	b.Run("settle=100", func(b *testing.B) { benchSettle(newBench(b, open), 100) })
	for _, due := range []int{3_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("take=10/due=%d", due), func(b *testing.B) {
			if testing.Short() && due > 100_000 {
				b.Skip("a million rows take a while to write")
			}
			benchTake(newBench(b, open), due)
		})
	}
	for _, keys := range []int{0, 20_000} {
		b.Run(fmt.Sprintf("drain=60000/keys=%d", keys), func(b *testing.B) { benchDrain(newBench(b, open), 60_000, keys) })
	}
	for _, waiting := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("settle=1/waiting=%d", waiting), func(b *testing.B) {
			if testing.Short() && waiting > 100_000 {
				b.Skip("a million rows take a while to write")
			}
			benchSettleLined(newBench(b, open), waiting)
		})
	}
}

// A bench is a benchmark with a rig, whose fixtures it uses.
type bench struct {
	*testing.B
	*rig
}

// newBench opens a store for a benchmark. The rig fails the benchmark on an error.
func newBench(b *testing.B, open func(b *testing.B) core.Store) bench {
	return bench{B: b, rig: newRig(b, open(b), Options{})}
}

// typical is an event with 1 KiB of payload and one job.
func (b bench) typical() core.Arrival {
	a := b.arrival(b.lane)
	payload := make([]byte, 1024)
	for i := range payload {
		payload[i] = 'a' + byte(i%26)
	}
	a.Event.Payload = payload
	return a
}

// rate reports n as a rate per second of the measured time.
func (b bench) rate(n int, unit string) {
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), unit+"/s")
}

// benchAccept measures one caller that accepts events one after the other: the latency of a
// commit.
func benchAccept(b bench) {
	n := 0
	for b.Loop() {
		b.accept(b.typical())
		n++
	}
	b.rate(n, "events")
}

// benchAcceptParallel measures at least 32 callers. On databases that let callers share a commit,
// the rate is many times that of one caller.
func benchAcceptParallel(b bench) {
	b.SetParallelism(max(1, 32/runtime.GOMAXPROCS(0)))
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := b.store.Accept(context.Background(), b.typical()); err != nil {
				b.B.Errorf("Accept failed: %v", err)
				return
			}
			n.Add(1)
		}
	})
	b.rate(int(n.Load()), "events")
}

// seedBatch is the number of jobs of one event that seed stores.
const seedBatch = 1000

// seed puts n due jobs in the lane, seedBatch to an event.
func (b bench) seed(n int) { b.seedLine(n, core.Line{}) }

// seedLine puts n jobs of a line in the lane, seedBatch to an event. Without a key they are in no
// line, and due.
func (b bench) seedLine(n int, line core.Line) {
	b.B.Helper()
	// Four writers fill the lane about as fast as one database can write.
	const writers = 4
	var left atomic.Int64
	left.Store(int64(n))
	b.concurrently(writers, func(int) error {
		for {
			size := min(seedBatch, left.Add(-seedBatch)+seedBatch)
			if size <= 0 {
				return nil
			}
			a := b.arrival(lanes(b.lane, int(size))...)
			for i := range a.Jobs {
				a.Jobs[i].Line = line
			}
			if _, err := b.store.Accept(context.Background(), a); err != nil {
				return err
			}
		}
	})
}

// refill seeds 20 events of jobs, outside the measured time, when fewer than n jobs are left.
func (b bench) refill(left *int, n int) {
	if *left >= n {
		*left -= n
		return
	}
	b.StopTimer()
	b.seed(20 * seedBatch)
	*left += 20*seedBatch - n
	b.StartTimer()
}

// benchTakeSettle measures a worker that takes n jobs and settles them in one call.
func benchTakeSettle(b bench, n int) {
	left, done := 0, 0
	for b.Loop() {
		b.refill(&left, n)
		b.settle(b.completed(b.take(n))...)
		done += n
	}
	b.rate(done, "jobs")
}

// completed returns outcomes that complete the jobs, each with a success for the gate.
func (b bench) completed(jobs []core.TakenJob) []core.Outcome {
	outcomes := make([]core.Outcome, len(jobs))
	for i, j := range jobs {
		outcomes[i] = b.verdict(j, core.Success)
	}
	return outcomes
}

// benchSettle measures Settle alone. The takes before it are not measured.
func benchSettle(b bench, n int) {
	left, done := 0, 0
	for b.Loop() {
		b.refill(&left, n)
		b.StopTimer()
		outcomes := b.completed(b.take(n))
		b.StartTimer()
		b.settle(outcomes...)
		done += n
	}
	b.rate(done, "outcomes")
}

// benchSettleLined measures the Settle that ends a job of a line and admits the next. The take of
// the job is not measured, nor the Accept of another job, so that as many jobs wait each time.
func benchSettleLined(b bench, waiting int) {
	line := core.Line{Key: "x", Limit: 1}
	b.seedLine(1+waiting, line)
	done := 0
	for b.Loop() {
		b.StopTimer()
		b.accept(b.lined(line.Key, line.Limit))
		o := b.verdict(b.take(1)[0], core.Success)
		o.Line = line
		b.StartTimer()
		b.settle(o)
		done++
	}
	b.rate(done, "outcomes")
}

// benchDrain measures takes and settles of stored events with a job each, whose lines have them
// evenly; with 0 keys the jobs are in no line.
func benchDrain(b bench, jobs, keys int) {
	const together = 500
	for i := 0; i < jobs; i += together {
		arrivals := make([]core.Arrival, together)
		for k := range arrivals {
			arrivals[k] = b.typical()
			if keys > 0 {
				arrivals[k].Jobs[0].Line = core.Line{Key: fmt.Sprintf("k%d", (i+k)%keys), Limit: 1}
			}
		}
		if _, err := b.store.AcceptAll(context.Background(), arrivals); err != nil {
			b.Fatal(err)
		}
	}
	lines := min(keys, 1)
	done, left := 0, jobs
	for b.Loop() {
		if left < 32 {
			b.Fatal("too few jobs")
		}
		q := b.quota(32)
		q.Lines = lines
		outcomes := b.completed(b.takeQuotas(q))
		for i := range outcomes {
			if keys > 0 {
				outcomes[i].Line = core.Line{Key: fmt.Sprintf("k%d", (done+i)%keys), Limit: 1}
			}
		}
		b.settle(outcomes[:16]...)
		b.settle(outcomes[16:]...)
		done, left = done+32, left-32
	}
	b.rate(done, "outcomes")
}

// benchTake releases the jobs that it took, outside the measured time. So the length of the lane
// does not change.
func benchTake(b bench, due int) {
	// Writing the rows is logged, since it takes longer than the measurement itself.
	start := time.Now()
	b.now = core.SystemClock().UTC().Truncate(time.Millisecond) // jobs that are due when takeAndRelease looks
	b.seed(due)
	b.Logf("%d rows written in %v", due, time.Since(start).Round(time.Millisecond))
	b.takeAndRelease()
}

// takeAndRelease measures takes of 10 jobs. As a worker does, it also calls Due: at most every 5
// ms, and for at most a tenth of the time.
func (b bench) takeAndRelease() {
	done := 0
	var since, look time.Duration // the time of takes since the last Due, and how long it must be for the next
	for b.Loop() {
		began := time.Now()
		if since >= look {
			b.due(b.lane)
			look, since = max(5*time.Millisecond, 9*time.Since(began)), 0
			began = time.Now()
		}
		b.now = began.UTC().Truncate(time.Millisecond)
		taken := b.take(10)
		since += time.Since(began)
		b.StopTimer()
		var jobs []core.Job
		for _, j := range taken {
			jobs = append(jobs, j.Job)
		}
		b.release(b.now, jobs...)
		done += len(jobs)
		b.StartTimer()
	}
	b.rate(done, "jobs")
}
