package pull

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// atWork returns the number of goroutines of the Puller.
func (d *desk) atWork() int {
	d.Puller.work.mu.Lock()
	defer d.Puller.work.mu.Unlock()
	return d.Puller.work.n
}

// hush calls Quiet and returns how long that took.
func (d *desk) hush(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	if err := d.Quiet(t.Context()); err != nil {
		t.Errorf("Quiet = %v, want none", err)
	}
	return time.Since(began)
}

// hangUp is a consumer that hangs up during its Take, which lasts takes.
func (d *desk) hangUp(t *testing.T, takes time.Duration) {
	t.Helper()
	d.set(func() { d.takeSlow = takes })
	ctx, cancel := context.WithCancel(t.Context())
	c := d.receive(ctx, 1, MaxWait)
	synctest.Wait()
	cancel()
	<-c
	d.set(func() { d.takeSlow = 0 })
}

func TestQuiet(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, d *desk){
		"nobody came":    func(*testing.T, *desk) {},
		"served":         func(t *testing.T, d *desk) { d.put("q", 5, 3); d.get(t, 2) },
		"nothing there":  func(t *testing.T, d *desk) { d.get(t, 1) },
		"waited in vain": func(t *testing.T, d *desk) { <-d.receive(t.Context(), 1, 3*time.Second) },
		"waited and got": func(t *testing.T, d *desk) {
			c := d.receive(t.Context(), 1, MaxWait)
			synctest.Wait()
			d.send(1, 3)
			<-c
		},
		"served for long": func(t *testing.T, d *desk) { d.put("q", 9, 3); d.get(t, 1); time.Sleep(2 * keepEvery); d.get(t, 1) },
		"hung up":         func(t *testing.T, d *desk) { d.put("q", 1, 3); d.hangUp(t, time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, d *desk) {
				d.set(func() { d.delay = 100 * time.Millisecond })
				before(t, d)
				if took := d.hush(t); d.atWork() != 0 || took > 2*time.Second {
					t.Errorf("%d at work after Quiet, which took %v", d.atWork(), took)
				}
				looks, takes := d.nLooks(), d.nTakes()
				time.Sleep(time.Hour)
				if d.nLooks() != looks || d.nTakes() != takes {
					t.Errorf("after Quiet %d looks and %d takes, want none", d.nLooks()-looks, d.nTakes()-takes)
				}
			})
		})
	}
}

// Quiet returns after the messages of a consumer that hung up are given back.
func TestQuietGivesBack(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		id := d.put("q", 1, 3)[0]
		d.hangUp(t, time.Second)
		d.hush(t)
		if j := d.job(id); j.Status != core.Available || j.Attempt != 0 || d.pulled(core.MessagesReturned) != 1 {
			t.Errorf("message is %+v, want it back untried", j)
		}
	})
}

// Quiet returns at once while a consumer waits, and when a consumer arrives.
func TestQuietBesideOthers(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		other := d.receive(t.Context(), 1, MaxWait)
		synctest.Wait()
		if took := d.hush(t); took != 0 {
			t.Errorf("Quiet took %v beside one who waits, want nothing", took)
		}
		<-other
		d.hush(t)

		d.hangUp(t, 10*time.Second)
		time.AfterFunc(2*time.Second, func() { d.receive(t.Context(), 1, MaxWait) })
		if took := d.hush(t); took != 2*time.Second {
			t.Errorf("Quiet took %v, want 2s until somebody came", took)
		}
		time.Sleep(10 * time.Second) // for the Take
	})
}

func TestQuietHasItsTime(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.hangUp(t, 10*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := d.Quiet(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Quiet = %v, want that its time is over", err)
		}
		d.hush(t)
	})
}

// After a pause of an hour, a process serves queues like a new process.
func TestReceiveAfterAPause(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.put("q", 2, 3)
		first := d.get(t, 1)
		<-d.receive(t.Context(), 1, MaxWait)
		<-d.receive(t.Context(), 1, 2*time.Second)
		d.hush(t)
		time.Sleep(time.Hour)
		if r, ok := got(d.receive(t.Context(), 5, MaxWait)); !ok || len(r.messages) != 2 {
			t.Errorf("Receive = %+v, %v, want both messages again, whose leases are over", r, ok)
		}
		if n, err := d.Ack(t.Context(), "q", []string{Receipt(first[0])}); n != 0 || err != nil {
			t.Errorf("Ack of an hour ago = %d, %v, want nothing acked", n, err)
		}
		c := d.receive(t.Context(), 1, MaxWait)
		synctest.Wait()
		d.put("q", 1, 3) // another process stores a message
		if r := <-c; len(r.messages) != 1 || r.after > 1250*time.Millisecond {
			t.Errorf("Receive = %d messages after %v, want the one that the next look finds", len(r.messages), r.after)
		}
	})
}
