package worker

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

const goneLane = core.Lane("workflow/gone")

// newAdopter makes a worker with an Adopt that gives goneLane a target. The lane is not among
// the worker's targets.
func newAdopter(length int) (*bench, *flow) {
	b, f := newFlow(length)
	delete(b.jobs, "workflow/w-0000")
	b.Adopt = func(l core.Lane) (Target, bool) {
		return Target{Steps: f, Timeout: 30 * time.Second, Hold: 45 * time.Second}, l == goneLane
	}
	return b, f
}

// A function discovers a stray lane by itself, adopts it and works for it until nothing is
// due.
func TestFunctionAdopts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newAdopter(10)
		b.delay = time.Millisecond
		b.add(goneLane, 1, core.Unlimited)
		r, err := b.Tick(context.Background(), core.Budget{})
		if want := (core.Report{Completed: 10}); err != nil || r != want || len(f.settled) != 10 {
			t.Errorf("Tick = %+v, %v with %d steps, want %+v with 10", r, err, len(f.settled), want)
		}
	})
}

// A serving process adopts a stray lane at its start, and within about 10 seconds later on,
// also while it delivers for other lanes.
func TestProcessAdopts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newAdopter(1 << 30)
		f.stepGap = 100 * time.Millisecond
		b.add(goneLane, 1, core.Unlimited)
		stop := b.serve(t)
		time.Sleep(950 * time.Millisecond)
		if n := f.tries(); n != 10 {
			t.Errorf("%d steps a second after the start, want 10", n)
		}
		stop()
	})
	synctest.Test(t, func(t *testing.T) {
		b, f := newAdopter(3)
		stop := b.serve(t)
		for range 700 { // the feeder and the slots read the roster meanwhile
			b.add(lane, 3, 1)
			b.bell.Ring(lane)
			time.Sleep(5 * time.Second)
		}
		b.add(goneLane, 1, core.Unlimited)
		time.Sleep(15 * time.Second)
		r := stop()
		if len(f.settled) != 3 || r.Completed != 2103 {
			t.Errorf("Tick = %+v with %d steps, want 2,103 completed with 3 steps", r, len(f.settled))
		}
		if n, hour := b.sought(), 3515.0; float64(n) < hour/12.5 || float64(n) > hour/7.5+2 {
			t.Errorf("looked %d times for strays in an hour, want about %v", n, hour/10)
		}
	})
}

// A ring for a lane without a target makes the worker adopt the lane at once, if Adopt has a
// target for it. Later rings of that lane act like those of any configured lane.
func TestBellOfAnUnconfiguredLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newAdopter(1)
		stop := b.serve(t)
		synctest.Wait()
		sought := b.sought()
		for i, l := range []core.Lane{"workflow/other", goneLane, "handler/gone", goneLane} {
			b.add(l, 1, core.Unlimited)
			b.bell.Ring(l)
			synctest.Wait()
			if n, want := f.steps(), (i+1)/2; n != want {
				t.Errorf("%d steps after ring %d, want %d", n, i+1, want)
			}
		}
		if n := b.sought(); n != sought {
			t.Errorf("looked for strays %d times more", n-sought)
		}
		stop()
		if n := b.count(core.Available); n != 2 {
			t.Errorf("%d jobs left, want those of lanes without a target", n)
		}
	})
}

// If the store fails at the start, the lane is adopted within strayTrouble after the store is
// back.
func TestAdoptionIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newAdopter(3)
		b.add(goneLane, 1, core.Unlimited)
		b.breakdown(true)
		stop := b.serve(t)
		time.Sleep(10 * time.Second)
		b.breakdown(false)
		time.Sleep(strayTrouble)
		stop()
		if len(f.settled) != 3 {
			t.Errorf("%d steps, want 3", len(f.settled))
		}
	})
}

// The worker calls Adopt for a stray lane until the lane is adopted, and then never again.
func TestAdoptedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := newAdopter(100)
		f.stepGap = time.Hour
		var asked atomic.Int64
		adopt := b.Adopt
		b.Adopt = func(l core.Lane) (Target, bool) { asked.Add(1); return adopt(l) }
		b.add(goneLane, 1, core.Unlimited)
		stop := b.serve(t)
		time.Sleep(26*time.Hour + time.Minute)
		stop()
		if n := asked.Load(); n != 1 || len(f.settled) != 27 {
			t.Errorf("asked %d times whether to adopt a lane, with %d steps, want once with 27", n, len(f.settled))
		}
	})
}

// The jobs of a workflow's lane are never buried, even if no process can work for the lane.
func TestWorkflowsAreNotBuried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := newAdopter(1)
		b.add("workflow/other", 1, core.Unlimited)
		b.add("handler/gone", 1, 1)
		stop := b.serve(t)
		time.Sleep(core.StrayTime + 2*time.Hour)
		stop()
		if dead, left := b.count(core.Dead), b.count(core.Available); dead != 1 || left != 1 {
			t.Errorf("%d dead and %d left, want the handler's job dead and that of the workflow left", dead, left)
		}
	})
}
