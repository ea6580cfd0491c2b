package pull

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

var errNoRoom = errors.New("no room")

// A tank is a budget that consumers share. Only one synctest bubble uses it at a time, and
// within a bubble the Puller's lock orders the calls.
type tank struct {
	left  int
	freed chan struct{}
}

// A jar is the room of one consumer in a tank.
type jar struct {
	*tank
	has, reserved int
}

func (j *jar) Reserve(least, most int) (int, *Full) {
	if j.left < least {
		if j.freed == nil {
			j.freed = make(chan struct{})
		}
		return 0, &Full{Freed: j.freed, Err: errNoRoom}
	}
	n := min(j.left, most)
	j.left, j.reserved = j.left-n, j.reserved+n
	return n, nil
}

func (j *jar) Hold(bytes int) {
	back := j.has + j.reserved - bytes
	j.left, j.has, j.reserved = j.left+back, bytes, 0
	if back > 0 && j.freed != nil {
		close(j.freed)
		j.freed = nil
	}
}

// into calls Receive on a goroutine of its own.
func (d *desk) into(t *testing.T, room Room, n int, wait time.Duration) <-chan reply {
	c, began := make(chan reply, 1), time.Now()
	go func() {
		messages, err := d.Puller.Receive(t.Context(), Request{Queue: "q", N: n, Wait: wait, Room: room})
		c <- reply{messages, err, time.Since(began)}
	}()
	return c
}

const mebi = 1 << 20

// put1MiB puts messages of 1 MiB each. A tank of 10 MiB has room for nine of them.
func put1MiB(d *desk, n int) {
	d.set(func() { d.payload = make([]byte, mebi) })
	d.put("q", n, 3)
}

// The messages of any number of consumers stay within the budget, and so do the messages that
// the store reads for them. With less room a consumer gets fewer messages.
func TestConsumersShareRoom(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		put1MiB(d, 100)
		tank := &tank{left: 10 * mebi}
		received, refused, batches := 0, 0, map[int]bool{}
		for range 20 {
			r := <-d.into(t, &jar{tank: tank}, MaxBatch, 0)
			received += len(r.messages)
			switch {
			case len(r.messages) > 0:
				batches[len(r.messages)] = true
			case errors.Is(r.err, errNoRoom):
				refused++
			default:
				t.Fatalf("Receive = no messages, %v, want the error of the room", r.err)
			}
		}
		if received < 7 || received > 10 || refused < 10 || len(batches) < 2 {
			t.Errorf("%d messages of 1 MiB were received in batches of %v, and %d consumers refused; want 7 to 10 within 10 MiB, in smaller and smaller ones", received, batches, refused)
		}
		synctest.Wait()
		if n := d.count(core.Running); n != received {
			t.Errorf("%d messages are invisible, want the %d that were received", n, received)
		}
	})
}

// A consumer without room waits for it. A consumer with room is served meanwhile.
func TestConsumerWithoutRoomWaits(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		put1MiB(d, 4)
		d.get(t, 1) // now the line knows their size
		full, other := &tank{left: mebi}, &tank{left: 10 * mebi}
		holder := &jar{tank: full}
		holder.Reserve(1, mebi)
		holder.Hold(mebi)
		waits := d.into(t, &jar{tank: full}, 1, MaxWait)
		if r, ok := got(waits); ok {
			t.Fatalf("Receive without room = %v, %v, want it to wait", r.ids(), r.err)
		}
		if r := <-d.into(t, &jar{tank: other}, 1, 0); len(r.messages) != 1 {
			t.Errorf("Receive with room beside one without = %v, %v, want a message", r.ids(), r.err)
		}
		time.Sleep(7 * time.Second)
		before := d.nTakes()
		d.Puller.mu.Lock()
		full.left += mebi
		holder.Hold(0)
		d.Puller.mu.Unlock()
		if r := <-waits; len(r.messages) != 1 || r.after != 7*time.Second {
			t.Errorf("Receive = %v, %v after %v, want a message once there is room", r.ids(), r.err, r.after)
		}
		if n := d.nTakes() - before; n != 1 {
			t.Errorf("%d takes, want one", n)
		}
	})
}

// A consumer without room gets the error of its room when its wait is over, not an empty
// answer. It causes no calls of the store meanwhile.
func TestNoRoomIsNoEmptyQueue(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		put1MiB(d, 4)
		before := d.nTakes()
		r := <-d.into(t, &jar{tank: &tank{}}, 1, MaxWait)
		if !errors.Is(r.err, errNoRoom) || r.after != MaxWait || d.nTakes() != before {
			t.Errorf("Receive = %v, %v after %v with %d takes; want the error of the room after %v and none", r.ids(), r.err, r.after, d.nTakes()-before, MaxWait)
		}
	})
}

// A consumer that waits at an empty queue has no bytes reserved.
func TestRoomIsGivenBack(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		tank := &tank{left: 10 * mebi}
		var waits []<-chan reply
		for range 50 {
			waits = append(waits, d.into(t, &jar{tank: tank}, MaxBatch, MaxWait))
		}
		synctest.Wait()
		if tank.left != 10*mebi {
			t.Errorf("%d bytes are left of 10 MiB while nobody has messages", tank.left)
		}
		d.breakdown(errDefect)
		d.bell.Ring("queue/q")
		for _, c := range waits {
			if r := <-c; !errors.Is(r.err, errDefect) {
				t.Errorf("Receive = %v, want the store's error", r.err)
			}
		}
		if tank.left != 10*mebi {
			t.Errorf("%d bytes are left of 10 MiB after a Take failed", tank.left)
		}
	})
}

// Messages larger than the messages before do not exceed the bounds of memory. The store
// reads no events beyond the reserved bytes, and all consumers are served in the end.
func TestMessagesThatBecomeLarge(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.put("q", 500, 3)
		for range 5 {
			d.get(t, MaxBatch)
		}
		put1MiB(d, 100)
		before := d.nTakes()
		var waits []<-chan reply
		for range 10 {
			waits = append(waits, d.into(t, nil, MaxBatch, 0))
		}
		for i, c := range waits {
			if r := <-c; len(r.messages) == 0 || len(r.messages) > 8 || r.err != nil {
				t.Errorf("consumer %d got %d messages, %v, want 1 to 8", i, len(r.messages), r.err)
			}
		}
		synctest.Wait()
		for _, h := range d.hauls()[before:] {
			if h.whole > claimBytes/mebi {
				t.Errorf("a Take read %d messages of 1 MiB, want at most 32 MiB", h.whole)
			}
		}
	})
}
