package pull

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/google/go-cmp/cmp"
)

func TestReceiveWhatIsThere(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		ids := d.put("q", 5, 3)
		d.put("other", 1, 3)
		for _, tt := range []struct {
			n    int
			want []core.ID
		}{{2, ids[:2]}, {1, ids[2:3]}, {100, ids[3:]}, {1, nil}} {
			messages := d.get(t, tt.n)
			if got := (reply{messages: messages}).ids(); !slices.Equal(got, tt.want) {
				t.Errorf("Receive(%d) = %v, want %v", tt.n, got, tt.want)
			}
			for _, m := range messages {
				if m.Attempt != 1 || !m.DueAt.Equal(time.Now().Add(visibility)) || m.Lease == "" {
					t.Errorf("attempt %d until %v under %q, want the first until the visibility timeout", m.Attempt, m.DueAt, m.Lease)
				}
			}
		}
		if n := d.pulled(core.MessagesReceived); n != 5 || len(factsOf[core.Pulled](d)) != 3 {
			t.Errorf("%v, want 5 received in 3 facts", factsOf[core.Pulled](d))
		}
	})
}

func TestReceiveRefuses(t *testing.T) {
	d := newDesk()
	for _, tt := range []struct {
		queue string
		n     int
		wait  time.Duration
		kind  core.Kind
		names string
	}{
		{"nope", 1, 0, core.NotFound, "queue not found"},
		{"q", 0, 0, core.Invalid, "batch"},
		{"q", 101, 0, core.Invalid, "batch"},
		{"q", 1, -1, core.Invalid, "wait"},
		{"q", 1, MaxWait + 1, core.Invalid, "wait"},
	} {
		if _, err := d.Receive(t.Context(), tt.queue, tt.n, tt.wait); !core.IsKind(err, tt.kind) || !strings.Contains(err.Error(), tt.names) {
			t.Errorf("Receive(%q, %d, %v) = %v, want a refusal that names %s", tt.queue, tt.n, tt.wait, err, tt.names)
		}
	}
	if d.nTakes() > 0 {
		t.Errorf("%d takes", d.nTakes())
	}
}

func TestLongPollReturnsAtOnceWhenSomethingComes(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		c := d.receive(t.Context(), 10, MaxWait)
		time.Sleep(7*time.Second + 300*time.Millisecond)
		ids := d.send(3, 3)
		r, ok := got(c)
		if !ok || r.err != nil || !slices.Equal(r.ids(), ids) {
			t.Errorf("Receive = %v, %v, %v, want the three that came", r.ids(), r.err, ok)
		}
	})
}

func TestLongPollEndsEmpty(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		for _, wait := range []time.Duration{0, 10 * time.Millisecond, 1500 * time.Millisecond, MaxWait} {
			if r := <-d.receive(t.Context(), 1, wait); r.err != nil || len(r.messages) > 0 || r.after != wait {
				t.Errorf("Receive(%v) = %d messages, %v after %v", wait, len(r.messages), r.err, r.after)
			}
		}
	})
}

// Consumers are served in the order of their arrival, each with as many messages as it asked
// for while there are any.
func TestFirstComeFirstServed(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		var lines []<-chan reply
		for _, n := range []int{3, 1, 5, 2} {
			lines = append(lines, d.receive(t.Context(), n, MaxWait))
			time.Sleep(time.Millisecond)
		}
		before := d.nTakes()
		ids := d.send(6, 3)
		synctest.Wait()
		for i, want := range [][]core.ID{ids[:3], ids[3:4], ids[4:6]} {
			if r, ok := got(lines[i]); !ok || !slices.Equal(r.ids(), want) {
				t.Errorf("consumer %d got %v, want %v", i+1, r.ids(), want)
			}
		}
		if r, ok := got(lines[3]); ok {
			t.Errorf("the last got %v, want it to wait", r.ids())
		}
		if n := d.nTakes() - before; n != 1 {
			t.Errorf("%d takes, want one for all", n)
		}
		more := d.send(1, 3)
		if r, ok := got(lines[3]); !ok || !slices.Equal(r.ids(), more) {
			t.Errorf("the last got %v, want %v", r.ids(), more)
		}
	})
}

// 16 busy consumers share their Takes.
func TestConsumersShareClaims(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.set(func() { d.delay = 5 * time.Millisecond })
		d.put("q", 1600, 3)
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for range 10 {
					messages, err := d.Receive(t.Context(), "q", 10, 0)
					if len(messages) != 10 || err != nil {
						t.Errorf("Receive = %d messages, %v, want 10", len(messages), err)
					}
				}
			})
		}
		all.Wait()
		if n := d.nTakes(); n > 25 {
			t.Errorf("%d takes for 160 receives of 16 consumers, want little more than 10", n)
		}
	})
}

// A Take asks for no more messages than the consumers want, and for at most maxClaim.
func TestClaimsAreBounded(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		var lines []<-chan reply
		for range 25 {
			lines = append(lines, d.receive(t.Context(), MaxBatch, MaxWait))
		}
		synctest.Wait()
		d.send(2500, 3)
		for i, c := range lines {
			if r, ok := got(c); !ok || len(r.messages) != MaxBatch {
				t.Errorf("consumer %d got %d messages, want %d", i, len(r.messages), MaxBatch)
			}
		}
		d.set(func() {
			for _, h := range d.takes {
				if h.want > maxClaim || h.hold != visibility {
					t.Errorf("took %d for %v, want at most %d for %v", h.want, h.hold, maxClaim, visibility)
				}
			}
		})
	})
}

// Large messages are taken and given in small numbers, as far as the line can guess their
// size. One message is given however large it is.
func TestReceivesAreBoundedInBytes(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.set(func() { d.payload = make([]byte, 3<<20) })
		d.put("q", 50, 3)
		var all []<-chan reply
		for range 20 {
			all = append(all, d.receive(t.Context(), MaxBatch, 0))
		}
		for _, c := range all {
			if r := <-c; len(r.messages) > 2 {
				t.Errorf("one consumer got %d of 3 MiB each, want at most 2", len(r.messages))
			}
		}
		for i, h := range d.hauls() {
			if i > 0 && h.want > claimBytes/(3<<20) {
				t.Errorf("Take %d asked for %d, want at most 32 MiB after the first", i, h.want)
			}
		}
		synctest.Wait() // until the surplus is given back
		d.set(func() { d.payload = make([]byte, 100<<20) })
		if m := d.get(t, 10); len(m) != 1 {
			t.Errorf("received %d of 100 MiB each, want 1", len(m))
		}
	})
}

// A consumer gets an empty answer only from a Take that began after its arrival.
func TestTakeBeginsAfterItsConsumerCame(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.set(func() { d.takeSlow = time.Second })
		first := d.receive(t.Context(), 1, 0)
		time.Sleep(500 * time.Millisecond)
		second := d.receive(t.Context(), 1, 0)
		synctest.Wait()
		if a, b := <-first, <-second; a.after != time.Second || b.after != 1500*time.Millisecond || d.nTakes() != 2 {
			t.Errorf("answered after %v and %v with %d takes, want each after its own", a.after, b.after, d.nTakes())
		}
	})
}

// A consumer whose wait ends during a Take gets the result of that Take.
func TestWaitEndsDuringTake(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.set(func() { d.takeSlow = time.Second })
		empty := d.receive(t.Context(), 1, 10*time.Second)
		time.Sleep(9500 * time.Millisecond)
		d.bell.Ring("queue/q")
		if r := <-empty; r.err != nil || len(r.messages) > 0 || r.after != 10500*time.Millisecond {
			t.Errorf("Receive = %d messages, %v after %v, want none after the Take", len(r.messages), r.err, r.after)
		}
		full := d.receive(t.Context(), 1, 10*time.Second)
		time.Sleep(9500 * time.Millisecond)
		d.send(1, 3)
		if r := <-full; len(r.messages) != 1 || r.after != 10500*time.Millisecond {
			t.Errorf("Receive = %d messages, %v after %v, want one after the Take", len(r.messages), r.err, r.after)
		}
	})
}

// A message that is stored during a Take, and that this Take does not see, is found by the
// next Take.
func TestBellDuringTake(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.Rest = time.Hour
		d.set(func() { d.takeSlow = time.Second })
		c := d.receive(t.Context(), 1, MaxWait)
		time.Sleep(1200 * time.Millisecond) // parked
		d.bell.Ring("queue/q")
		time.Sleep(time.Millisecond)
		id := d.put("q", 1, 3)[0]
		d.change(id, func(j *core.Job) { j.DueAt = time.Now().Add(time.Nanosecond) }) // after the time of that Take
		time.Sleep(time.Millisecond)
		d.bell.Ring("queue/q")
		if r := <-c; len(r.messages) != 1 || r.after > 4*time.Second {
			t.Errorf("%d messages after %v, want 1 after the next Take", len(r.messages), r.after)
		}
	})
}

// If the store is unavailable, a consumer without a wait gets the error at once. A consumer
// with a wait waits for the store.
func TestStoreDown(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.breakdown(errDown)
		if r := <-d.receive(t.Context(), 1, 0); !core.IsKind(r.err, core.Unavailable) || r.after != 0 {
			t.Errorf("Receive = %v after %v, want the error at once", r.err, r.after)
		}
		if n := len(factsOf[core.Troubled](d)); n != 0 {
			t.Errorf("%d troubles stated of an error that was told", n)
		}
		if r := <-d.receive(t.Context(), 1, 10*time.Second); !core.IsKind(r.err, core.Unavailable) || r.after != 10*time.Second {
			t.Errorf("Receive = %v after %v, want the error when the wait is over", r.err, r.after)
		}
		if n := d.nTakes(); n < 5 || n > 15 {
			t.Errorf("%d takes in 10 s, want some", n)
		}
		if n := len(factsOf[core.Troubled](d)); n != d.nTakes()-1 || d.nLooks() != 0 {
			t.Errorf("%d troubles of %d takes and %d looks, want one for each take that nobody was told of", n, d.nTakes(), d.nLooks())
		}
		c := d.receive(t.Context(), 1, MaxWait)
		time.Sleep(10 * time.Second)
		d.breakdown(nil)
		back := time.Now()
		d.put("q", 1, 3) // without a ring
		if r := <-c; len(r.messages) != 1 || time.Since(back) > 2*time.Second {
			t.Errorf("Receive = %d messages, %v, %v after the store came back", len(r.messages), r.err, time.Since(back))
		}
		if r := <-d.receive(t.Context(), 1, 5*time.Second); r.err != nil {
			t.Errorf("Receive = %v, want the trouble to be forgotten", r.err)
		}
	})
}

// A consumer gets no error of a Take that began before its arrival.
func TestStoreBackForWhoCameLater(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.set(func() { d.takeSlow = time.Second })
		d.breakdown(errDown)
		d.put("q", 1, 3)
		first := d.receive(t.Context(), 1, 0)
		time.Sleep(500 * time.Millisecond)
		second := d.receive(t.Context(), 1, 0)
		if r := <-first; !core.IsKind(r.err, core.Unavailable) {
			t.Errorf("Receive = %v, want the error", r.err)
		}
		d.breakdown(nil)
		if r := <-second; r.err != nil || len(r.messages) != 1 {
			t.Errorf("Receive = %d messages, %v, want one", len(r.messages), r.err)
		}
	})
}

// An error that does not pass is returned at once.
func TestStoreDefect(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.breakdown(errDefect)
		for _, wait := range []time.Duration{0, MaxWait} {
			if r := <-d.receive(t.Context(), 1, wait); !errors.Is(r.err, errDefect) || r.after != 0 {
				t.Errorf("Receive = %v after %v, want the error at once", r.err, r.after)
			}
		}
	})
}

// A message without attempts left becomes dead with an alert, and no consumer receives it.
func TestSpentMessagesAreNotDelivered(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		rung := d.bell.Listen("alert/1")
		spent, fine := d.put("q", 3, 2), d.put("q", 2, 2)
		for _, id := range spent {
			d.change(id, func(j *core.Job) { j.Attempt, j.Status, j.Lease = 2, core.Running, "old" })
		}
		if r := <-d.receive(t.Context(), 4, 0); !slices.Equal(r.ids(), fine[:1]) {
			t.Errorf("got %v, want the first that has attempts, %v", r.ids(), fine[:1])
		}
		if r := <-d.receive(t.Context(), 4, 0); !slices.Equal(r.ids(), fine[1:]) {
			t.Errorf("got %v, want the other, %v", r.ids(), fine[1:])
		}
		synctest.Wait()
		if n := d.count(core.Dead); n != 3 || d.pulled(core.MessagesDead) != 3 {
			t.Errorf("%d dead, %d stated, want 3", n, d.pulled(core.MessagesDead))
		}
		for i, s := range factsOf[core.Settled](d) {
			want := core.Outcome{JobID: spent[i], Lease: s.Job.Lease, Lane: "queue/q", Status: core.Dead, At: s.Outcome.At,
				Attempt:   core.Attempt{Number: 2, Error: core.LeaseExpired, StartedAt: s.Outcome.At},
				GivesRise: &core.Arrival{Event: core.Event{ID: "about-" + spent[i]}, Jobs: []core.NewJob{{Lane: "alert/1"}}}}
			if diff := cmp.Diff(want, s.Outcome); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		}
		if n := len(factsOf[core.Accepted](d)); n != 3 || len(rung.Rung()) != 1 {
			t.Errorf("%d alerts stated, want 3, and their lane rung", n)
		}
	})
}

// A Take that returns only spent messages, and might have returned more, is followed by
// another Take before a consumer gets an empty answer.
func TestSpentMessagesBeforeOthers(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		for _, id := range d.put("q", 5, 1) {
			d.change(id, func(j *core.Job) { j.Attempt, j.Status = 1, core.Running })
		}
		fine := d.put("q", 1, 1)
		if r := <-d.receive(t.Context(), 1, 0); !slices.Equal(r.ids(), fine) {
			t.Errorf("got %v, want what is behind the spent ones, %v", r.ids(), fine)
		}
	})
}
