package pull

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Without consumers no goroutine is left: otherwise synctest would report a deadlock.
func TestNobodyLeftNothingGoesOn(t *testing.T) {
	for name, end := range map[string]func(d *desk, gone func()){
		"wait over": func(*desk, func()) {},
		"gone":      func(_ *desk, gone func()) { gone() },
		"served":    func(d *desk, _ func()) { d.send(1, 3) },
		"served as another comes": func(d *desk, _ func()) {
			d.put("q", 2, 3)
			d.Receive(context.Background(), "q", 1, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				d := newDesk()
				c := d.receive(ctx, 1, 20*time.Second)
				time.Sleep(5100 * time.Millisecond)
				end(d, cancel)
				<-c
			})
		})
	}
}

// 1,000 waiting consumers cause one look each Rest and no Takes. One message causes one Take
// and goes to the first of them.
func TestThousandParked(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.set(func() { d.delay = time.Millisecond })
		var lines []<-chan reply
		for range 1000 {
			lines = append(lines, d.receive(t.Context(), 1, MaxWait))
		}
		time.Sleep(20 * time.Second)
		takes := d.nTakes()
		if takes > 2 {
			t.Errorf("%d takes for a thousand who came together, want one for the first and one for the others", takes)
		}
		if looks := d.nLooks(); looks < 15 || looks > 28 || d.nTakes() > takes {
			t.Errorf("%d looks and %d takes in 20 idle seconds, want about 20 and none", looks, d.nTakes()-takes)
		}
		d.send(1, 3)
		time.Sleep(time.Millisecond)
		served := 0
		for _, c := range lines {
			if r, ok := got(c); ok {
				served += len(r.messages)
			}
		}
		if served != 1 || d.nTakes() != takes+1 {
			t.Errorf("%d served with %d takes, want 1 with 1", served, d.nTakes()-takes)
		}
	})
}

// One look asks for all queues.
func TestOneLookForAllQueues(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.receive(t.Context(), 1, MaxWait)
		go d.Receive(t.Context(), "other", 1, MaxWait)
		time.Sleep(10 * time.Second)
		n := d.nLooks()
		d.set(func() {
			if n < 7 || n > 16 || d.lanes != 2 {
				t.Errorf("%d looks in 10 s, the last at %d lanes, want about 10 at both", n, d.lanes)
			}
		})
	})
}

// Messages that another process stores, without a ring here, are found within Rest plus 25 %.
func TestMessagesOfAnotherProcess(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		for range 20 {
			c := d.receive(t.Context(), 1, MaxWait)
			time.Sleep(3333 * time.Millisecond)
			ids, sent := d.put("q", 1, 3), time.Now()
			r := <-c
			if late := time.Since(sent); !slices.Equal(r.ids(), ids) || late > 1250*time.Millisecond {
				t.Errorf("got %v %v later, want %v within 1.25 s", r.ids(), late, ids)
			}
			d.Ack(t.Context(), "q", []string{string(ids[0])})
		}
	})
}

// A parked consumer is served on time when a message becomes due after a nack's delay or at a
// lease's end, in this process or another.
func TestWakesOnTime(t *testing.T) {
	nack := func(t *testing.T, d *desk, ids []string) {
		if retried, dead, err := d.Nack(t.Context(), "q", ids, 5*time.Second); retried != 1 || dead != 0 || err != nil {
			t.Errorf("Nack = %d, %d, %v, want 1 retried", retried, dead, err)
		}
	}
	for name, tt := range map[string]struct {
		do   func(*testing.T, *desk, []string)
		want time.Duration
	}{
		"visibility": {func(*testing.T, *desk, []string) {}, visibility - 3*time.Second},
		"nack here":  {nack, 5 * time.Second},
		"nack there": {func(t *testing.T, d *desk, ids []string) { nack(t, besides(d.shelf), ids) }, 5 * time.Second},
		"extend here, to earlier": {func(t *testing.T, d *desk, ids []string) {
			if n, err := d.Extend(t.Context(), "q", ids, 20*time.Millisecond); n != 1 || err != nil {
				t.Errorf("Extend = %d, %v", n, err)
			}
		}, 20 * time.Millisecond},
		"short nack": {func(t *testing.T, d *desk, ids []string) { d.Nack(t.Context(), "q", ids, 7*time.Millisecond) }, 7 * time.Millisecond},
		"nack":       {func(t *testing.T, d *desk, ids []string) { d.Nack(t.Context(), "q", ids, 0) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, d *desk) {
				d.put("q", 1, 3)
				m := d.get(t, 1)[0]
				time.Sleep(time.Second)
				c := d.receive(t.Context(), 1, MaxWait)
				time.Sleep(2 * time.Second)
				told := time.Now()
				tt.do(t, d, []string{string(m.ID)})
				r := <-c
				if late := time.Since(told); late != tt.want || len(r.messages) != 1 || r.messages[0].Attempt != 2 {
					t.Errorf("%d messages after %v, want the second attempt after %v", len(r.messages), late, tt.want)
				}
			})
		})
	}
}

// Several messages that become due one after the other are each received on time.
func TestWakesOnTimeAgain(t *testing.T) {
	for _, apart := range []time.Duration{260 * time.Millisecond, 1700 * time.Millisecond} {
		in(t, func(t *testing.T, d *desk) {
			var lines []<-chan reply
			for i, id := range d.put("q", 5, 3) {
				d.change(id, func(j *core.Job) { j.DueAt = time.Now().Add(time.Duration(i+1) * apart) })
			}
			for range 5 {
				lines = append(lines, d.receive(t.Context(), 1, MaxWait))
				synctest.Wait()
			}
			for i, c := range lines {
				if r := <-c; r.after != time.Duration(i+1)*apart {
					t.Errorf("message %d of those %v apart came after %v", i+1, apart, r.after)
				}
			}
		})
	}
}

// A look that hangs does not keep the watcher from hearing the bell, and its result still
// counts.
func TestSlowLook(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.set(func() { d.dueSlow = 8 * time.Second })
		c := d.receive(t.Context(), 1, MaxWait)
		time.Sleep(time.Second)
		d.send(1, 3)
		if r, ok := got(c); !ok || len(r.messages) != 1 {
			t.Error("nothing came while a look was under way")
		}
		c = d.receive(t.Context(), 1, MaxWait)
		time.Sleep(6 * time.Second)
		d.put("q", 1, 3)
		if r := <-c; len(r.messages) != 1 || r.after != 7*time.Second {
			t.Errorf("%d messages after %v, want 1 at the end of the look", len(r.messages), r.after)
		}
	})
}

// While a busy queue gets messages of this process only, there is about one look each Rest.
// If messages become due later, there are up to four more each Rest, and one for keepUp.
func TestLooksAtABusyQueue(t *testing.T) {
	for name, tt := range map[string]struct {
		send func(*desk)
		most int
	}{
		"of this process": {func(d *desk) { d.send(1, 3) }, 14},
		"by itself": {func(d *desk) {
			for _, id := range d.put("q", 1, 3) {
				d.change(id, func(j *core.Job) { j.DueAt = j.DueAt.Add(time.Second) })
			}
		}, 52},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, d *desk) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				for range 3 {
					go func() {
						for ctx.Err() == nil {
							messages, _ := d.Receive(ctx, "q", 1, MaxWait)
							d.Ack(ctx, "q", idsOf(messages))
						}
					}()
				}
				for range 1000 {
					tt.send(d)
					time.Sleep(10 * time.Millisecond)
				}
				if n := d.pulled(core.MessagesAcked); n < 850 || d.nLooks() > tt.most {
					t.Errorf("%d acked with %d looks in 10 s, want most of 1000 with at most %d", n, d.nLooks(), tt.most)
				}
			})
		})
	}
}

// A line that is not parked is looked at about once a second: a line that never empties, and
// a line whose consumers do not wait. That holds also after it was parked.
func TestLooksWithoutParking(t *testing.T) {
	for name, waiting := range map[string]int{"never empty": 1000, "nobody waits": 0} {
		for _, parked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/parked before: %v", name, parked), func(t *testing.T) {
				in(t, func(t *testing.T, d *desk) {
					if parked {
						<-d.receive(t.Context(), 1, 3*time.Second)
						time.Sleep(2 * time.Second)
					}
					d.set(func() { d.takeSlow = 10 * time.Millisecond })
					d.put("q", waiting, 3)
					before := d.nLooks()
					for began := time.Now(); time.Since(began) < 3500*time.Millisecond; {
						if r := <-d.receive(t.Context(), 1, 0); len(r.messages) != min(1, waiting) {
							t.Fatalf("received %d messages", len(r.messages))
						}
					}
					if n := d.nLooks() - before; n != 4 {
						t.Errorf("looks in 3.5 s = %d, want 4", n)
					}
				})
			})
		}
	}
}

// The end of the lease of an acked message causes no Take. A message that an earlier Take
// received causes no second Take when its delay ends.
func TestNoNeedlessTakes(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.put("q", 1, 3)
		d.Ack(t.Context(), "q", idsOf(d.get(t, 1)))
		time.Sleep(10 * time.Second)
		c := d.receive(t.Context(), 1, 29*time.Second)
		synctest.Wait()
		takes := d.nTakes()
		<-c
		if n := d.nTakes() - takes; n > 0 {
			t.Errorf("%d takes while nothing was due", n)
		}

		d.put("q", 1, 3)
		m := d.get(t, 1)
		<-d.receive(t.Context(), 1, 100*time.Millisecond) // a look was just made
		d.Nack(t.Context(), "q", idsOf(m), 200*time.Millisecond)
		time.Sleep(300 * time.Millisecond)
		takes = d.nTakes()
		d.get(t, 1)
		d.receive(t.Context(), 1, MaxWait)
		synctest.Wait()
		if n := d.nTakes() - takes; n != 2 {
			t.Errorf("%d takes for two consumers, want 2", n)
		}
	})
}

// A lease that is shorter than Rest ends on time, too.
func TestShortVisibility(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.lines["q"].Visibility = 300 * time.Millisecond
		first := d.receive(t.Context(), 1, MaxWait)
		synctest.Wait()
		second := d.receive(t.Context(), 1, MaxWait)
		time.Sleep(100 * time.Millisecond) // a look was just made
		d.send(1, 3)
		if a, b := <-first, <-second; a.after != 100*time.Millisecond || b.after != 400*time.Millisecond {
			t.Errorf("received after %v and %v, want 300 ms apart", a.after, b.after)
		}
	})
}

// Looks that fail are reported, and made again.
func TestLooksThatFail(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		c := d.receive(t.Context(), 1, MaxWait)
		synctest.Wait()
		d.breakdown(errDown)
		time.Sleep(5 * time.Second)
		troubles := factsOf[core.Troubled](d)
		if n := len(troubles); n < 3 || n > 8 {
			t.Errorf("%d troubles in 5 s, want one for each look", n)
		}
		d.breakdown(nil)
		d.put("q", 1, 3)
		if r := <-c; r.err != nil || len(r.messages) != 1 || r.after > 6500*time.Millisecond {
			t.Errorf("Receive = %d messages, %v after %v, want one soon after 5 s", len(r.messages), r.err, r.after)
		}
	})
}
