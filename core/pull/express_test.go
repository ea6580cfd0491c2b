package pull

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// express stores a message as an intake does, and takes it for a consumer if one waits. It reports
// whether it was reserved. The store takes it, unless it is not open.
func (d *desk) express(queue string, open bool) (reserved bool) {
	lane := core.QueueLane(queue)
	hold, reserved := d.Reserve(lane)
	id := d.put(queue, 1, 3)[0]
	var message *core.TakenJob
	if reserved && open {
		d.change(id, func(j *core.Job) {
			j.Status, j.DueAt, j.Lease, j.Attempt = core.Running, time.Now().Add(hold), "express", 1
			message = &core.TakenJob{Job: *j, Event: core.Event{Payload: d.payload}}
		})
	}
	if reserved {
		d.Arrive(lane, message)
	}
	if message == nil {
		d.bell.Ring(lane)
	}
	return reserved
}

// line changes the line of "q".
func (d *desk) line(f func(*line)) {
	d.Puller.mu.Lock()
	defer d.Puller.mu.Unlock()
	f(d.lines["q"])
}

// TestExpress: a consumer that waits at an empty queue gets a new message without a Take, also again and
// again.
func TestExpress(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		first := d.receive(t.Context(), 10, MaxWait)
		synctest.Wait()
		for n := range 5 {
			takes := d.nTakes()
			if !d.express("q", true) {
				t.Fatal("a message was not reserved for a consumer that waits")
			}
			r, ok := got(first)
			if !ok || len(r.messages) != 1 || d.nTakes() != takes {
				t.Fatalf("message %d: %+v with %d Takes, want it with none", n, r, d.nTakes()-takes)
			}
			m := r.messages[0]
			if m.Attempt != 1 || m.Lease != "express" || !m.DueAt.Equal(time.Now().Add(visibility)) {
				t.Errorf("message %+v", m.Job)
			}
			first = d.receive(t.Context(), 10, MaxWait)
			synctest.Wait()
		}
	})
}

// TestExpressServesInTurn: of several consumers the first one gets the message, and the others wait on.
func TestExpressServesInTurn(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		first, second := d.receive(t.Context(), 1, MaxWait), (<-chan reply)(nil)
		synctest.Wait()
		second = d.receive(t.Context(), 1, MaxWait)
		synctest.Wait()
		for i, c := range []<-chan reply{first, second} {
			d.express("q", true)
			if r, ok := got(c); !ok || len(r.messages) != 1 {
				t.Errorf("consumer %d: %+v, want a message", i, r)
			}
		}
	})
}

// TestExpressLeavesOthers: a message is not reserved where a Take would get another one first, or none.
func TestExpressLeavesOthers(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, d *desk){
		"nobody waits":     func(*testing.T, *desk) {},
		"an unknown queue": func(t *testing.T, d *desk) { delete(d.lines, "q") },
		"a Take is under way": func(t *testing.T, d *desk) {
			d.set(func() { d.takeSlow = time.Second })
			d.receive(t.Context(), 1, MaxWait)
		},
		"a message is known to be due": func(t *testing.T, d *desk) {
			d.receive(t.Context(), 1, MaxWait)
			synctest.Wait()
			d.line(func(l *line) { l.next = time.Now() })
		},
		"the store was away": func(t *testing.T, d *desk) {
			d.breakdown(errDown)
			d.receive(t.Context(), 1, MaxWait)
		},
		"a held queue": func(t *testing.T, d *desk) {
			d.hold("q", core.NoEnd)
			d.receive(t.Context(), 1, MaxWait)
			time.Sleep(2 * time.Second) // until a look has seen it
		},
		"messages with line keys": func(t *testing.T, d *desk) {
			d.line(func(l *line) { l.keyed = true })
			d.receive(t.Context(), 1, MaxWait)
		},
		"a queue with lines": func(t *testing.T, d *desk) {
			d.line(func(l *line) { l.Lines.Limit = 1 })
			d.receive(t.Context(), 1, MaxWait)
		},
		"no room": func(t *testing.T, d *desk) { d.into(t, &jar{tank: &tank{}}, 1, MaxWait) },
		"closed": func(t *testing.T, d *desk) {
			d.receive(t.Context(), 1, MaxWait)
			synctest.Wait()
			d.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, d *desk) {
				prepare(t, d)
				synctest.Wait()
				if _, ok := d.Reserve("queue/q"); ok {
					t.Error("a message was reserved")
				}
			})
		})
	}
}

// TestExpressOfOneAtATime: while a message is reserved, further ones are not. They come by a Take.
func TestExpressOfOneAtATime(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		first := d.receive(t.Context(), 1, MaxWait)
		synctest.Wait()
		second := d.receive(t.Context(), 1, MaxWait)
		synctest.Wait()
		if _, ok := d.Reserve("queue/q"); !ok {
			t.Fatal("not reserved")
		}
		if d.express("q", true) {
			t.Error("reserved twice")
		}
		if _, ok := got(first); ok {
			t.Error("a consumer was answered before the reserved message came")
		}
		d.Arrive("queue/q", nil)
		if r, ok := got(first); !ok || len(r.messages) != 1 {
			t.Errorf("%+v, want the other message", r)
		}
		d.express("q", true)
		if r, ok := got(second); !ok || len(r.messages) != 1 {
			t.Errorf("%+v, want a message", r)
		}
	})
}

// TestExpressThatIsNotTaken: the room of the consumer is free again, and it gets the message by a Take.
func TestExpressThatIsNotTaken(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		tank := &tank{left: mebi}
		c := d.into(t, &jar{tank: tank}, 1, MaxWait)
		synctest.Wait()
		d.hold("q", time.Now().Add(3*time.Second))
		if !d.express("q", false) {
			t.Error("not reserved, although the line has not seen the hold")
		}
		synctest.Wait()
		d.line(func(*line) {
			if tank.left != mebi {
				t.Errorf("%d bytes are left, want all", tank.left)
			}
		})
		time.Sleep(5 * time.Second)
		if r, ok := got(c); !ok || len(r.messages) != 1 || r.after != 3*time.Second {
			t.Errorf("%+v, want the message at the end of the hold", r)
		}
	})
}

// TestExpressForConsumersThatLeft: a message whose consumer has left is given back, and the next consumer
// gets it.
func TestExpressForConsumersThatLeft(t *testing.T) {
	for name, wait := range map[string]time.Duration{"hung up": MaxWait, "wait is over": time.Second} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, d *desk) {
				ctx, cancel := context.WithCancel(t.Context())
				d.receive(ctx, 1, wait)
				synctest.Wait()
				if _, ok := d.Reserve("queue/q"); !ok {
					t.Fatal("not reserved")
				}
				id := d.put("q", 1, 3)[0]
				d.change(id, func(j *core.Job) {
					j.Status, j.DueAt, j.Lease, j.Attempt = core.Running, time.Now().Add(visibility), "express", 1
				})
				message := core.TakenJob{Job: d.job(id)}
				cancel()
				time.Sleep(2 * time.Second)
				d.Arrive("queue/q", &message)
				synctest.Wait()
				if m := d.get(t, 1); len(m) != 1 || m[0].ID != id || m[0].Attempt != 1 {
					t.Errorf("%+v, want the message in its first attempt", m)
				}
			})
		})
	}
}

// TestExpressWhileAConsumerComes: a consumer without a wait that comes meanwhile gets an answer by a Take.
func TestExpressWhileAConsumerComes(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		first := d.receive(t.Context(), 1, MaxWait)
		synctest.Wait()
		if _, ok := d.Reserve("queue/q"); !ok {
			t.Fatal("not reserved")
		}
		takes := d.nTakes()
		brief := d.receive(t.Context(), 1, 0)
		if r, ok := got(brief); ok {
			t.Errorf("%+v before the claim ended", r)
		}
		d.Arrive("queue/q", nil)
		if r, ok := got(brief); !ok || len(r.messages) > 0 || d.nTakes() != takes+1 {
			t.Errorf("%+v with %d Takes, want no message by one", r, d.nTakes()-takes)
		}
		if _, ok := got(first); ok {
			t.Error("the consumer before was answered")
		}
	})
}
