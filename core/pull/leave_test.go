package pull

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A consumer that hangs up leaves the line. Messages that were being taken for it are given
// back at once.
func TestConsumerGone(t *testing.T) {
	for name, tt := range map[string]struct {
		slow time.Duration
		wait time.Duration // until it hangs up
		at   string
	}{
		"parked":          {0, time.Second, "queue/other"},
		"during its Take": {time.Second, 500 * time.Millisecond, "queue/q"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, d *desk) {
				ctx, cancel := context.WithCancel(t.Context())
				d.set(func() { d.takeSlow = tt.slow })
				d.put(core.Lane(tt.at).Queue(), 1, 3)
				c := d.receive(ctx, 1, MaxWait)
				time.Sleep(tt.wait)
				cancel()
				r, ok := got(c)
				if !ok || !errors.Is(r.err, context.Canceled) || len(r.messages) > 0 {
					t.Errorf("Receive = %d messages, %v, want to hear that it is gone", len(r.messages), r.err)
				}
				time.Sleep(2 * time.Second)
				if n := d.count(core.Running); n != 0 {
					t.Errorf("%d messages held by nobody", n)
				}
				d.set(func() {
					for _, j := range d.jobs {
						if j.Attempt != 0 {
							t.Errorf("attempt %d, want none counted", j.Attempt)
						}
					}
				})
				if n := d.pulled(core.MessagesReceived); n != 0 {
					t.Errorf("%d received", n)
				}
				if tt.at == "queue/q" && d.pulled(core.MessagesReturned) != 1 {
					t.Error("not one is stated as returned")
				}
			})
		})
	}
}

// A message that was taken for a consumer that has hung up goes to a consumer that arrived
// meanwhile.
func TestConsumerGoneWithOthersInLine(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		ctx, cancel := context.WithCancel(t.Context())
		d.set(func() { d.takeSlow = time.Second })
		d.put("q", 1, 3)
		d.receive(ctx, 1, MaxWait)
		time.Sleep(500 * time.Millisecond)
		c := d.receive(t.Context(), 1, MaxWait)
		synctest.Wait()
		cancel()
		if r := <-c; len(r.messages) != 1 || r.after != 500*time.Millisecond {
			t.Errorf("%d messages after %v, want the one that was being taken", len(r.messages), r.after)
		}
	})
}

// TestInheritedVisibility: a consumer that arrived during a slow Take does not get messages whose
// visibility timeout has run for long. They go back untried, and it gets them with all of their
// time.
func TestInheritedVisibility(t *testing.T) {
	for _, c := range []struct {
		name string
		slow time.Duration // of a Take
		want time.Duration // from the request of the second consumer to its messages
	}{
		{"quick", 100 * time.Millisecond, 50 * time.Millisecond},
		{"slow", 101 * time.Millisecond, 51*time.Millisecond + 101*time.Millisecond},
	} {
		in(t, func(t *testing.T, d *desk) {
			d.lines["q"].Visibility = 2 * time.Second
			ctx, cancel := context.WithCancel(t.Context())
			d.set(func() { d.takeSlow = c.slow })
			d.put("q", 1, 3)
			d.receive(ctx, 1, MaxWait)
			time.Sleep(50 * time.Millisecond)
			asked := time.Now()
			second := d.receive(t.Context(), 1, MaxWait)
			synctest.Wait()
			cancel()
			r := <-second
			if len(r.messages) != 1 || r.after != c.want || r.messages[0].Attempt != 1 {
				t.Fatalf("%s: %d messages after %v, want one after %v, in its first attempt", c.name, len(r.messages), r.after, c.want)
			}
			if early := asked.Add(2 * time.Second).Sub(r.messages[0].DueAt); early > 100*time.Millisecond {
				t.Errorf("%s: the visibility timeout ends %v before it has passed since the request", c.name, early)
			}
		})
	}
}

// A goneContext has an Err, but its Done channel is not closed.
type goneContext struct{ context.Context }

func (goneContext) Err() error { return context.Canceled }

// A consumer that hangs up after its answer was sent gives the messages back.
func TestConsumerGoneWithItsAnswer(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.put("q", 1, 3)
		messages, err := d.Receive(goneContext{t.Context()}, "q", 1, 0)
		if len(messages) > 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("Receive = %d messages, %v, want none", len(messages), err)
		}
		if n := d.count(core.Available); n != 1 || d.pulled(core.MessagesReturned) != 1 || d.pulled(core.MessagesReceived) != 0 {
			t.Errorf("%d available, want the message given back, and stated so", n)
		}
	})
}

func TestReturn(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.put("q", 2, 3)
		messages := d.get(t, 2)
		d.set(func() { d.failing = 3 })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c := d.receive(t.Context(), 2, MaxWait)
		d.Return(ctx, "q", messages)
		r, ok := got(c)
		if !ok || len(r.messages) != 2 || r.messages[0].Attempt != 1 {
			t.Errorf("%v, want both at once with their first attempt", r.messages)
		}
		if n := d.pulled(core.MessagesReturned); n != 2 || len(factsOf[core.Troubled](d)) != 3 {
			t.Errorf("%d returned and %d troubles, want 2 and 3", n, len(factsOf[core.Troubled](d)))
		}
		d.Return(ctx, "q", nil)
		d.Return(ctx, "nope", messages)
		if d.releases != 4 {
			t.Errorf("%d releases, want 4", d.releases)
		}
	})
}

// Return gives up after returnTime, or at once after an error that does not pass. The message
// becomes visible again when its lease ends.
func TestReturnGivesUp(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.put("q", 1, 3)
		messages := d.get(t, 1)
		d.breakdown(errDown)
		began := time.Now()
		d.Return(t.Context(), "q", messages)
		if took := time.Since(began); took != returnTime {
			t.Errorf("gave up after %v, want %v", took, returnTime)
		}
		d.breakdown(errDefect)
		began = time.Now()
		d.Return(t.Context(), "q", messages)
		if took := time.Since(began); took != 0 {
			t.Errorf("tried for %v what can never succeed", took)
		}
		if n := d.pulled(core.MessagesReturned); n != 0 {
			t.Errorf("%d returned", n)
		}
	})
}

func TestClose(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		parked := d.receive(t.Context(), 1, MaxWait)
		time.Sleep(5 * time.Second)
		d.set(func() { d.takeSlow = time.Second })
		id := d.send(1, 3)[0]
		synctest.Wait() // a Take is under way
		began := time.Now()
		d.Close()
		if took := time.Since(began); took != time.Second {
			t.Errorf("Close took %v, want as long as the Take that is under way", took)
		}
		if r, ok := got(parked); !ok || r.err != nil || len(r.messages) > 0 || r.after != 5*time.Second {
			t.Errorf("Receive = %v, %v after %v, want none at once", r.messages, r.err, r.after)
		}
		if j := d.job(id); j.Status != core.Available || j.Attempt != 0 {
			t.Errorf("message %s with attempt %d, want it given back", j.Status, j.Attempt)
		}
		takes := d.nTakes()
		for _, wait := range []time.Duration{0, MaxWait} {
			if r := <-d.receive(t.Context(), 1, wait); r.err != nil || len(r.messages) > 0 || r.after != 0 || d.nTakes() > takes {
				t.Errorf("Receive = %v, %v after %v, want none at once", r.messages, r.err, r.after)
			}
		}
		d.Close()
	})
}

// Close cancels a look that is under way.
func TestCloseDuringLook(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.set(func() { d.dueSlow = time.Minute })
		c := d.receive(t.Context(), 1, MaxWait)
		synctest.Wait()
		began := time.Now()
		d.Close()
		if took := time.Since(began); took != 0 || len(factsOf[core.Troubled](d)) != 0 {
			t.Errorf("Close took %v and stated %v, want it to be quick and quiet", took, factsOf[core.Troubled](d))
		}
		<-c
	})
}

// Close returns after closeTime even if a Take hangs.
func TestCloseWithAStoreThatHangs(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.set(func() { d.takeSlow = time.Hour })
		c := d.receive(t.Context(), 1, MaxWait)
		synctest.Wait()
		began := time.Now()
		d.Close()
		if took := time.Since(began); took != closeTime {
			t.Errorf("Close took %v, want %v", took, closeTime)
		}
		if r := <-c; r.after != 0 {
			t.Errorf("answered after %v, want at once", r.after)
		}
		time.Sleep(2 * time.Hour)
	})
}

// Messages that a closed Puller gives back go to the consumers of the Puller that replaces
// it.
func TestCloseForAnother(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		deps := d.Deps
		deps.Rest = time.Hour // looks are rare, so only the bell wakes it
		next := New(deps, []Queue{{Name: "q", Visibility: visibility}})
		defer next.Close()
		d.send(1, 3)
		taken := (<-d.receive(t.Context(), 1, 0)).messages
		began, received := time.Now(), make(chan time.Duration)
		go func() {
			messages, err := next.Receive(t.Context(), Request{Queue: "q", N: 1, Wait: MaxWait})
			if err != nil || len(messages) != len(taken) {
				t.Errorf("Receive = %v, %v, want what was given back", messages, err)
			}
			received <- time.Since(began)
		}()
		d.Close()
		time.Sleep(5 * time.Second)
		d.Return(t.Context(), "q", taken) // the consumer has hung up
		if after := <-received; after != 5*time.Second {
			t.Errorf("the other gave it after %v, want it at once", after)
		}
		d.send(1, 3)
		if rung := d.heard.Rung(); len(rung) > 0 {
			t.Errorf("a closed puller hears of %v", rung)
		}
	})
}
