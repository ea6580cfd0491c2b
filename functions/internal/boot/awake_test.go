package boot

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/worker"
)

// A nudged worker goes on taking due jobs while one of its attempts hangs, both at the end of
// the second for which it stays awake and later.
func TestHangingAttemptsHoldNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, 0)
		m.answer = func(j core.TakenJob) (time.Duration, worker.Reply) {
			switch {
			case j.Lane == "handler/slow":
				return 28 * time.Second, worker.Reply{OK: true, StatusCode: 200}
			case j.Attempt < 6:
				return 20 * time.Millisecond, again(4 * time.Second)
			}
			return 20 * time.Millisecond, worker.Reply{OK: true, StatusCode: 200}
		}
		intake := m.start(gateway.IntakeRoutes)
		m.accept(intake, "slow")
		m.accept(intake, "fast")
		m.accept(intake, "slow")
		m.finished()
		m.invocations.Wait()
		if d := m.latest(); len(m.late) != 8 || d > 1500*time.Millisecond {
			t.Errorf("the latest of %d attempts began %v after it was due (%s), want 8 within 1.5s", len(m.late), d, m.worst)
		}
	})
}

// A nudged worker takes an event that the same environment accepts within a second of the
// nudge, also while the attempt that caused the nudge hangs.
func TestHangingAttemptsHoldNoEventUp(t *testing.T) {
	for _, apart := range []time.Duration{300 * time.Millisecond, 600 * time.Millisecond, 900 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, 0)
			m.quick = true
			m.answer = func(j core.TakenJob) (time.Duration, worker.Reply) {
				if j.Lane == "handler/slow" {
					return 28 * time.Second, worker.Reply{OK: true, StatusCode: 200}
				}
				return 20 * time.Millisecond, worker.Reply{OK: true, StatusCode: 200}
			}
			intake := m.start(gateway.IntakeRoutes)
			m.accept(intake, "slow")
			time.Sleep(apart)
			m.accept(intake, "fast")
			m.finished()
			m.invocations.Wait()
			if d := m.latest(); len(m.late) != 2 || m.asked != 1 || d > 500*time.Millisecond {
				t.Errorf("%v apart: the latest of %d attempts began %v after it was due (%s), with %d nudges; want 2 within 500ms, with 1", apart, len(m.late), d, m.worst, m.asked)
			}
		})
	}
}

// A worker whose time is too short for each handler ends, and leaves a retry to a fresh
// worker. The fresh workers together send at most two batches a second to the database.
func TestTooLittleTimeForAnyHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, 0)
		m.quick, m.slow, m.life = true, true, 75*time.Second
		m.answer = func(j core.TakenJob) (time.Duration, worker.Reply) {
			if j.Attempt < 4 {
				return 20 * time.Second, again(30 * time.Second)
			}
			return 20 * time.Second, worker.Reply{OK: true, StatusCode: 200}
		}
		var n atomic.Int64 // of batches
		m.broken = func(string) bool { n.Add(1); return false }
		m.accept(m.start(gateway.IntakeRoutes), "slow")
		time.Sleep(4 * time.Minute)
		if batches := n.Load(); batches > 4*60*2 {
			t.Errorf("%d batches in four minutes, want two a second at most", batches)
		}
		m.finished()
		m.invocations.Wait()
		if d := m.latest(); len(m.late) != 4 || d > 1500*time.Millisecond {
			t.Errorf("the latest of %d attempts began %v after it was due, want 4 within 1.5s", len(m.late), d)
		}
	})
}

// A fresh worker begins a retry for which the first worker has too little time left, also
// while another attempt of the first worker goes on.
func TestBusyWorkersCallAFreshOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, 0)
		m.quick, m.life = true, 75*time.Second
		var early atomic.Value // the id of the job whose retry comes first
		m.answer = func(j core.TakenJob) (time.Duration, worker.Reply) {
			early.CompareAndSwap(nil, j.ID)
			switch {
			case j.Attempt == 1 && early.Load() == j.ID:
				return 12 * time.Second, again(28 * time.Second) // due after 40 s: enough time is left
			case j.Attempt == 1:
				return 22 * time.Second, again(28 * time.Second) // due after 50 s: too little time is left
			}
			return 28 * time.Second, worker.Reply{OK: true, StatusCode: 200}
		}
		intake := m.start(gateway.IntakeRoutes)
		m.accept(intake, "slow")
		m.accept(intake, "slow")
		m.finished()
		m.invocations.Wait()
		if d := m.latest(); len(m.late) != 4 || d > 1500*time.Millisecond {
			t.Errorf("the latest of %d attempts began %v after it was due (%s), want 4 within 1.5s", len(m.late), d, m.worst)
		}
		if m.asked > 4 {
			t.Errorf("%d nudges, want one for each start of a worker", m.asked)
		}
	})
}

// A worker stores a retry after its time, at the end of a long attempt. Another worker begins
// the retry. The first worker must nudge for it: the lease of the attempt ended more than a
// minute ahead, so no other worker waits for the job.
func TestRetriesOfLongAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, 0)
		m.quick, m.limit = true, 120*time.Second
		m.answer = func(j core.TakenJob) (time.Duration, worker.Reply) {
			switch j.Attempt {
			case 1:
				return 30 * time.Second, again(30 * time.Second)
			case 2:
				return 40 * time.Second, again(500 * time.Millisecond)
			}
			return time.Second, worker.Reply{OK: true, StatusCode: 200}
		}
		m.accept(m.start(gateway.IntakeRoutes), "slow")
		m.finished()
		m.invocations.Wait()
		if d := m.latest(); len(m.late) != 3 || d > 1500*time.Millisecond {
			t.Errorf("the latest of %d attempts began %v after it was due, want 3 within 1.5s", len(m.late), d)
		}
		if m.asked > 3 {
			t.Errorf("%d nudges, want one for the event and one or two after it", m.asked)
		}
	})
}

// There is no gap between the end of a worker's time and the tick of the next minute.
func TestNoGapBeforeTheMinute(t *testing.T) {
	for _, retry := range []time.Duration{26, 28, 30, 32, 34, 36, 38, 40} {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, 0)
			m.answer = func(j core.TakenJob) (time.Duration, worker.Reply) {
				if j.Attempt == 1 {
					return 25 * time.Second, again(retry * time.Second)
				}
				return 0, worker.Reply{OK: true, StatusCode: 200}
			}
			m.accept(m.start(gateway.IntakeRoutes), "slow")
			time.Sleep(time.Second)
			for range 2 {
				m.invoke([]byte(`{}`))
				time.Sleep(time.Minute)
			}
			m.finished()
			m.invocations.Wait()
			if d := m.latest(); len(m.late) != 2 || d > 1500*time.Millisecond {
				t.Errorf("a retry after %d seconds: the latest of %d attempts began %v after it was due, want 2 within 1.5s", retry, len(m.late), d)
			}
		})
	}
}

// A chain of retries outlives the worker that began it, with no tick of a minute to help.
func TestWorkersSucceedEachOther(t *testing.T) {
	for _, life := range []time.Duration{75 * time.Second, 300 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, 0)
			m.life = life
			m.answer = func(j core.TakenJob) (time.Duration, worker.Reply) {
				if j.Attempt < 12 {
					return 100 * time.Millisecond, again(55 * time.Second)
				}
				return 0, worker.Reply{OK: true, StatusCode: 200}
			}
			intake := m.start(gateway.IntakeRoutes)
			m.accept(intake, "slow")
			m.accept(intake, "fast")
			time.Sleep(11*time.Minute + 30*time.Second)
			m.finished()
			m.invocations.Wait()
			if d := m.latest(); len(m.late) != 24 || d > 1500*time.Millisecond {
				t.Errorf("the latest of %d attempts began %v after it was due (%s), want 24 within 1.5s", len(m.late), d, m.worst)
			}
			if m.asked > 26 {
				t.Errorf("%d nudges in eleven minutes, want one or two a minute", m.asked)
			}
			asked := m.asked
			if time.Sleep(10 * time.Minute); m.asked != asked {
				t.Errorf("%d nudges with nothing left to do, want none", m.asked-asked)
			}
		})
	}
}

// A nudge survives an outage of the database of two seconds, for any statement of the worker.
func TestNudgedWorkOutlivesBadMoments(t *testing.T) {
	for _, first := range []string{"", "insert_turn", "due"} {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, 0)
			intake := m.start(gateway.IntakeRoutes)
			m.answer = func(j core.TakenJob) (time.Duration, worker.Reply) {
				if j.Attempt < 3 {
					return 20 * time.Millisecond, again(9 * time.Second)
				}
				return 0, worker.Reply{OK: true, StatusCode: 200}
			}
			began := time.Now()
			var n atomic.Int64
			var bad atomic.Bool // from the accepted event on
			m.broken = func(statement string) bool {
				n.Add(1)
				return bad.Load() && time.Since(began)%(9*time.Second) < 2*time.Second && (first == "" || first == statement)
			}
			m.accept(intake, "fast")
			bad.Store(true)
			time.Sleep(40 * time.Second)
			m.invocations.Wait()
			if d := m.latest(); len(m.late) != 3 || d > 4*time.Second {
				t.Errorf("without %q for two seconds in nine: the latest of %d attempts began %v after it was due, want 3 within 4s; %d batches", first, len(m.late), d, n.Load())
			}
		})
	}
}
