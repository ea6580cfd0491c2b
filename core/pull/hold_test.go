package pull

import (
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// hold holds a queue as another process would. The zero time ends the hold.
func (s *shelf) hold(queue string, until time.Time) {
	s.set(func() {
		s.gates = map[core.Lane]core.Gate{core.QueueLane(queue): {HeldSince: time.Now(), HeldUntil: until}}
	})
}

// TestHeldQueue: a consumer that waits gets nothing while a person holds the queue, and gets its
// message as soon as a look finds that the hold is over.
func TestHeldQueue(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.hold("q", core.NoEnd)
		d.put("q", 2, 3)
		waits := d.receive(t.Context(), 1, 20*time.Second)
		time.Sleep(10 * time.Second)
		if _, ok := got(waits); ok {
			t.Fatal("a consumer of a held queue was answered early")
		}
		takes := d.nTakes()
		time.Sleep(5 * time.Second)
		if n := d.nTakes(); n != takes {
			t.Errorf("%d Takes in five seconds of a hold, want none", n-takes)
		}
		if !d.OnHold(t.Context(), "q") {
			t.Error("OnHold = false of a held queue")
		}
		d.hold("q", time.Time{})
		time.Sleep(1300 * time.Millisecond)
		if r, ok := got(waits); !ok || len(r.messages) != 1 {
			t.Errorf("after the hold: %v, %v, want a message", r, ok)
		}
	})
}

// TestHeldQueueUntil: a hold that ends by itself wakes the consumers at its end.
func TestHeldQueueUntil(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		end := time.Now().Add(7700 * time.Millisecond)
		d.hold("q", end)
		d.put("q", 1, 3)
		waits := d.receive(t.Context(), 1, 20*time.Second)
		time.Sleep(time.Until(end) + time.Millisecond)
		if r, ok := got(waits); !ok || len(r.messages) != 1 {
			t.Errorf("at the end of the hold: %v, %v, want a message", r, ok)
		}
	})
}

// TestOnHold: OnHold asks the store at most once a second, and says false where it cannot know.
func TestOnHold(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		if d.OnHold(t.Context(), "q") || d.OnHold(t.Context(), "nope") {
			t.Error("OnHold = true of a queue that is not held")
		}
		d.hold("q", core.NoEnd)
		time.Sleep(time.Second)
		looks := d.nLooks()
		for range 10 {
			if !d.OnHold(t.Context(), "q") {
				t.Error("OnHold = false of a held queue")
			}
			time.Sleep(50 * time.Millisecond)
		}
		if n := d.nLooks() - looks; n != 1 {
			t.Errorf("ten requests in half a second asked the store %d times, want once", n)
		}
		time.Sleep(time.Second)
		d.breakdown(errDown)
		if d.OnHold(t.Context(), "q") {
			t.Error("OnHold = true though the store does not answer")
		}
	})
}
