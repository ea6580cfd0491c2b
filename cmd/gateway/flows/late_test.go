package flows_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// TestLateEnd: a gateway is so slow that its lease ends and another gateway makes the same
// call. The end that is stored first counts. The late end of the slow gateway changes nothing,
// with one exception: if the other call failed and the slow one succeeded, the success counts
// and the call is not made again.
func TestLateEnd(t *testing.T) {
	const yaml = `
workflows:
  late:
    source: shop
    steps:
      - {name: call, url: http://receiver/call, retry: {max: 3, interval: 10m}}
      - {name: next, url: http://receiver/next}
`
	for _, p := range everywhere {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p := p.shared(t)
			for _, late := range []int{200, 503} {
				for _, second := range []int{200, 503} {
					t.Run(fmt.Sprintf("%d after %d", late, second), func(t *testing.T) {
						w := newWorld(t, p, yaml)
						run := w.accept("order", `{}`)[0]
						w.overtake(late, second)
						if err := w.rest(); err != nil {
							t.Fatal(err)
						}
						attempts := 1
						if second == http.StatusServiceUnavailable {
							attempts = 2
						}
						w.checkLate(run, attempts, late == http.StatusOK && attempts == 2)
					})
				}
			}
		})
	}
}

// overtake makes two gateways call one after the other. The reply to the first call comes
// after the reply to the second. The replies have these statuses, and all later replies have
// status 200.
func (w *world) overtake(late, second int) {
	seen, release := make(chan struct{}), make(chan struct{})
	var first sync.Once
	w.receiver.hold = func(*request) (wait <-chan struct{}) {
		first.Do(func() {
			close(seen)
			wait = release
		})
		return wait
	}
	calls := 0
	w.receiver.another = func(q *request) *reply {
		if q.step != "call" {
			return nil
		}
		calls++
		switch calls {
		case 1:
			return &reply{status: late, body: `{"by": "the late one"}`}
		case 2:
			return &reply{status: second, body: `{"by": "the second"}`}
		}
		return &reply{status: 200, body: `{"by": "the third"}`}
	}
	slow := w.begin()
	ended := make(chan error, 1)
	go func() {
		_, err := slow.Worker.Tick(context.Background(), core.Budget{})
		ended <- err
	}()
	<-seen
	w.clock.move(2 * time.Minute)
	if err := w.tick(); err != nil {
		w.t.Error(err)
	}
	close(release)
	if err := <-ended; err != nil {
		w.t.Error(err)
	}
}

// checkLate checks that the run completed and that each attempt counted once.
func (w *world) checkLate(run core.ID, attempts int, late bool) {
	w.t.Helper()
	r := w.run(run)
	if r.Status != core.RunCompleted {
		w.t.Errorf("run is %s (%s), want completed", r.Status, r.Error)
	}
	for _, s := range w.steps(r, core.Wanted{Paths: []string{"call"}}) {
		if s.Attempt != attempts || strings.Contains(string(s.Output), "late") != late {
			w.t.Errorf("call ended %d times, want %d; with %s", s.Attempt, attempts, s.Output)
		}
	}
	told := map[core.EntryType]int{}
	for _, e := range w.history(run) {
		if e.Path == "call" {
			told[e.Type]++
		}
	}
	if told[core.EntrySucceeded] != 1 || told[core.EntryRetried] != attempts-1 {
		w.t.Errorf("history tells %v of the call, want %d retries", told, attempts-1)
	}
	if left := w.leftovers(); len(left) > 0 {
		w.t.Errorf("left behind %v", left)
	}
}
