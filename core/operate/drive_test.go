package operate_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/operate"
)

// driven drives an operation that retries 40 dead jobs in slices of five, while beside runs in steps of
// 10 ms. It returns the operation at its end, how long that took, and the numbers of slices that the
// driver saw.
func driven(t *testing.T, beside func(w *world)) (done core.Operation, took time.Duration, seen []int) {
	w := newWorld(t)
	for range 40 {
		w.put("shop", "{}", "handler/a")
	}
	w.fail("handler/a", "timeout")
	time.Sleep(time.Second)
	op := w.begin(core.Operation{Action: core.RetryAction, Filter: core.OperationFilter{Lane: "handler/a"}, Rate: 50})
	began, end := w.now(), make(chan struct{})
	go func() {
		defer close(end)
		var err error
		done, err = operate.New(w.deps).Drive(context.Background(), op.ID, func(o core.Operation) { seen = append(seen, o.Seq) })
		if err != nil {
			t.Error(err)
		}
		took = w.now().Sub(began)
	}()
	for {
		select {
		case <-end:
			return done, took, seen
		case <-time.After(10 * time.Millisecond):
			beside(w)
		}
	}
}

// Without a worker, Drive does the whole operation, at its rate.
func TestDriveAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done, took, _ := driven(t, func(*world) {})
		if done.State != core.OperationFinished || done.Acted != 40 || took < 700*time.Millisecond || took > time.Second {
			t.Errorf("%+v after %s; want 40 jobs, in 0.8 s at 50 a second", done, took)
		}
	})
}

// Beside a worker that does slices, Drive does the first one and looks on. So the operation takes as long
// as it does alone.
func TestDriveBesideWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var doer *operate.Doer
		done, took, seen := driven(t, func(w *world) {
			if doer == nil {
				doer = operate.New(w.deps)
			}
			w.attempt(doer)
		})
		if done.State != core.OperationFinished || done.Acted != 40 || took < 600*time.Millisecond || took > 1200*time.Millisecond {
			t.Errorf("%+v after %s; want 40 jobs in about 0.8 s at 50 a second", done, took)
		}
		if len(seen) > 8 {
			t.Errorf("the driver looked %d times (%v); want a look each 200 ms", len(seen), seen)
		}
	})
}

// If a worker has done slices and vanishes, Drive goes on with the operation after its patience.
func TestDriveAfterWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := false
		done, took, _ := driven(t, func(w *world) {
			if began {
				return
			}
			began = true
			ctx, vanish := context.WithTimeout(context.Background(), 250*time.Millisecond)
			defer vanish()
			for _, j := range w.take() {
				if _, _, err := operate.New(w.deps).Attempt(ctx, j); err != nil {
					t.Error(err)
				}
			}
		})
		if done.State != core.OperationFinished || done.Acted != 40 || took < 3*time.Second || took > 5*time.Second {
			t.Errorf("%+v after %s; want 40 jobs after a pause of 3 s", done, took)
		}
	})
}
