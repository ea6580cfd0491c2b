package pull

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/google/go-cmp/cmp"
)

func TestRefs(t *testing.T) {
	const a, b = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01BX5ZZKBKACTAV9WEVGEMMVRZ"
	for _, tt := range []struct {
		ids  []string
		want []core.Ref
	}{
		{nil, nil},
		{[]string{a, b}, []core.Ref{{ID: a}, {ID: b}}},
		{[]string{strings.ToLower(a)}, []core.Ref{{ID: a}}},
		{[]string{a + ":L1"}, []core.Ref{{ID: a, Lease: "L1"}}},
		{[]string{strings.ToLower(a) + ":l1"}, []core.Ref{{ID: a, Lease: "l1"}}},
		{[]string{a + ":" + b, b + ":L:2"}, []core.Ref{{ID: a, Lease: b}, {ID: b, Lease: "L:2"}}},
		{[]string{"", ":", "x", a + ":", ":" + a, a + "x", a[1:], " " + a, a + " ", a + ":\x00", a + ":L 1", a + ":é", a + ":" + strings.Repeat("L", 65)}, nil},
		{[]string{a, a, b + ":L", b + ":L"}, []core.Ref{{ID: a}, {ID: b, Lease: "L"}}},
		{[]string{a + ":L", a, b, strings.ToLower(a)}, []core.Ref{{ID: a}, {ID: b}}},
		{[]string{a + ":L1", a + ":L2"}, []core.Ref{{ID: a, Lease: "L1"}, {ID: a, Lease: "L2"}}},
	} {
		if got := refs(tt.ids); !slices.Equal(got, tt.want) {
			t.Errorf("refs(%q) = %v, want %v", tt.ids, got, tt.want)
		}
	}
	m := core.TakenJob{Job: core.Job{ID: a, Lease: b}}
	if r, ok := parseRef(Receipt(m)); !ok || r != (core.Ref{ID: a, Lease: b}) {
		t.Errorf("parseRef(%q) = %v, %v, want what it was made of", Receipt(m), r, ok)
	}
}

// idsOf returns the ids of messages, as consumers send them.
func idsOf(messages []core.TakenJob) (ids []string) {
	for _, m := range messages {
		ids = append(ids, string(m.ID))
	}
	return ids
}

func TestAnswersRefuse(t *testing.T) {
	many := slices.Repeat([]string{"x"}, MaxRefs+1)
	in(t, func(t *testing.T, d *desk) {
		ack := func(q string, ids []string, _ time.Duration) error {
			_, err := d.Ack(t.Context(), q, ids)
			return err
		}
		nack := func(q string, ids []string, v time.Duration) error {
			_, _, err := d.Nack(t.Context(), q, ids, v)
			return err
		}
		extend := func(q string, ids []string, v time.Duration) error {
			_, err := d.Extend(t.Context(), q, ids, v)
			return err
		}
		for name, do := range map[string]func(string, []string, time.Duration) error{"Ack": ack, "Nack": nack, "Extend": extend} {
			if err := do("nope", nil, 0); !errors.Is(err, ErrQueue) {
				t.Errorf("%s of an unknown queue = %v, want %v", name, err, ErrQueue)
			}
			if err := do("q", many, 0); !core.IsKind(err, core.Invalid) || !strings.Contains(err.Error(), "ids must be at most 1000") {
				t.Errorf("%s of %d ids = %v, want a refusal that names them", name, len(many), err)
			}
			if err := do("q", many[1:], 0); err != nil {
				t.Errorf("%s of %d ids that are none = %v", name, len(many)-1, err)
			}
		}
		for _, tt := range []struct {
			do    func(string, []string, time.Duration) error
			v     time.Duration
			names string
		}{
			{nack, -1, "delay"}, {nack, MaxVisibility + 1, "delay"}, {nack, MaxVisibility, ""},
			{extend, -1, "visibility_timeout"}, {extend, MinVisibility - 1, "visibility_timeout"}, {extend, MaxVisibility + 1, "visibility_timeout"},
			{extend, 0, ""}, {extend, MinVisibility, ""}, {extend, MaxVisibility, ""},
		} {
			err := tt.do("q", nil, tt.v)
			if refused := core.IsKind(err, core.Invalid); refused != (tt.names != "") || refused && !strings.HasPrefix(err.Error(), tt.names) {
				t.Errorf("%v: %v, want a refusal that names %q", tt.v, err, tt.names)
			}
		}
		d.breakdown(errDown)
		for name, do := range map[string]func(string, []string, time.Duration) error{"Ack": ack, "Nack": nack, "Extend": extend} {
			if err := do("q", []string{"01ARZ3NDEKTSV4RRFFQ69G5FAV"}, 0); !core.IsKind(err, core.Unavailable) {
				t.Errorf("%s = %v, want it to be unavailable", name, err)
			}
		}
		if len(d.facts) > 0 {
			t.Errorf("facts %v, want none", d.facts)
		}
	})
}

func TestAck(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.put("q", 4, 3)
		waiting := d.put("q", 1, 3)
		other := d.put("other", 1, 3)
		m := d.get(t, 4)
		theirs, _ := d.Receive(t.Context(), "other", 1, 0)
		d.change(m[3].ID, func(j *core.Job) { j.Lease = "newer" })
		ids := append(idsOf(m[:1]), Receipt(m[1]), Receipt(m[1]), Receipt(m[3]), string(waiting[0]), string(other[0]), Receipt(theirs[0]), "nothing")
		for i, want := range []int{2, 0} {
			if n, err := d.Ack(t.Context(), "q", ids); n != want || err != nil {
				t.Errorf("Ack no. %d = %d, %v, want %d", i+1, n, err, want)
			}
		}
		if n, err := d.Ack(t.Context(), "q", idsOf(m[2:])); n != 2 || err != nil {
			t.Errorf("Ack by ids = %d, %v, want those that anybody holds", n, err)
		}
		want := []core.Pulled{{Queue: "q", Action: core.MessagesAcked, Messages: 2}, {Queue: "q", Action: core.MessagesAcked, Messages: 2}}
		facts := slices.DeleteFunc(factsOf[core.Pulled](d), func(p core.Pulled) bool { return p.Action != core.MessagesAcked })
		if diff := cmp.Diff(want, facts); diff != "" {
			t.Errorf("facts (-want +got):\n%s", diff)
		}
	})
}

func TestNack(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		rung := d.bell.Listen("alert/1")
		d.put("q", 1, core.Unlimited)
		last := d.put("q", 1, 1)
		spent := d.put("q", 1, 2)
		m := d.get(t, 3)
		d.change(spent[0], func(j *core.Job) { j.Attempt = 3 })
		stale := string(m[0].ID) + ":old"
		if retried, dead, err := d.Nack(t.Context(), "q", []string{stale}, 0); retried+dead != 0 || err != nil {
			t.Errorf("Nack = %d, %d, %v, want nothing of an old receipt", retried, dead, err)
		}
		now := time.Now()
		retried, dead, err := d.Nack(t.Context(), "q", []string{Receipt(m[0]), string(m[1].ID), string(m[2].ID)}, 90*time.Second)
		if retried != 1 || dead != 2 || err != nil {
			t.Errorf("Nack = %d, %d, %v, want 1 retried and 2 dead", retried, dead, err)
		}
		about := func(id core.ID) *core.Arrival {
			return &core.Arrival{Event: core.Event{ID: "about-" + id}, Jobs: []core.NewJob{{Lane: "alert/1"}}}
		}
		want := []core.Outcome{
			{JobID: m[0].ID, Lease: m[0].Lease, Lane: "queue/q", Status: core.Retryable, At: now, DueAt: now.Add(90 * time.Second),
				Attempt: core.Attempt{Number: 1, Error: "nacked", StartedAt: now}},
			{JobID: last[0], Lease: m[1].Lease, Lane: "queue/q", Status: core.Dead, At: now,
				Attempt: core.Attempt{Number: 1, Error: "nacked", StartedAt: now}, GivesRise: about(last[0])},
			{JobID: spent[0], Lease: m[2].Lease, Lane: "queue/q", Status: core.Dead, At: now,
				Attempt: core.Attempt{Number: 2, Error: core.LeaseExpired, StartedAt: now}, GivesRise: about(spent[0])},
		}
		if diff := cmp.Diff(want, d.settled); diff != "" {
			t.Errorf("settled (-want +got):\n%s", diff)
		}
		settled, alerts := factsOf[core.Settled](d), factsOf[core.Accepted](d)
		if len(settled) != 2 || settled[0].Job.ID != last[0] || len(alerts) != 2 || len(rung.Rung()) != 1 {
			t.Errorf("settled %v, alerts %v, want the two dead ones and the lane rung", settled, alerts)
		}
		if a, b := d.pulled(core.MessagesRetried), d.pulled(core.MessagesDead); a != 1 || b != 2 {
			t.Errorf("%d retried and %d dead stated, want 1 and 2", a, b)
		}
	})
}

// Bury makes a message dead at once, with any number of attempts left, and stores its alert.
func TestBury(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.put("q", 2, core.Unlimited)
		m := d.get(t, 2)
		if err := d.Bury(t.Context(), "q", m[:1], "too large"); err != nil {
			t.Fatal(err)
		}
		if o := d.settled; len(o) != 1 || o[0].JobID != m[0].ID || o[0].Status != core.Dead || o[0].Attempt.Error != "too large" || o[0].GivesRise == nil {
			t.Errorf("settled %+v, want the first dead, with an alert", o)
		}
		if n := d.pulled(core.MessagesDead); n != 1 {
			t.Errorf("%d dead stated, want 1", n)
		}
		if err := d.Bury(t.Context(), "nope", m[1:], ""); !errors.Is(err, ErrQueue) {
			t.Errorf("Bury of an unknown queue = %v, want %v", err, ErrQueue)
		}
		d.breakdown(errDown)
		if err := d.Bury(t.Context(), "q", m[1:], ""); !core.IsKind(err, core.Unavailable) {
			t.Errorf("Bury = %v, want it to be unavailable", err)
		}
	})
}

// A nacked message goes behind the messages that are visible. In a queue without a limit of
// attempts it never dies.
func TestNackGoesBehind(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		ids := d.put("q", 2, core.Unlimited)
		for i := range 20 {
			time.Sleep(time.Millisecond)
			m := d.get(t, 1)
			if len(m) != 1 || m[0].ID != ids[i%2] || m[0].Attempt != i/2+1 {
				t.Fatalf("receive %d brought %v", i, m)
			}
			if retried, dead, err := d.Nack(t.Context(), "q", idsOf(m), 0); retried != 1 || dead != 0 || err != nil {
				t.Fatalf("Nack = %d, %d, %v", retried, dead, err)
			}
		}
	})
}

// The same holds within one batch, in any order of the ids.
func TestReceivedBeforeGoesBehind(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		ids := d.put("q", 3, 3)
		d.Nack(t.Context(), "q", idsOf(d.get(t, 1)), 0)
		want := []core.ID{ids[1], ids[2], ids[0]}
		for i, m := range d.get(t, 3) {
			if m.ID != want[i] {
				t.Errorf("message %d is %s, want %s", i, m.ID, want[i])
			}
		}
	})
}

// A nack of many messages settles them in batches of nackBatch. If a batch fails, the result
// still counts the batches before it.
func TestNackOfMany(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.put("q", 250, 3)
		ids := append(append(idsOf(d.get(t, 100)), idsOf(d.get(t, 100))...), idsOf(d.get(t, 50))...)
		if retried, dead, err := d.Nack(t.Context(), "q", append(ids, ids...), 0); retried != 250 || dead != 0 || err != nil {
			t.Errorf("Nack = %d, %d, %v, want 250 retried", retried, dead, err)
		}
		if !slices.Equal(d.settles, []int{100, 100, 50}) {
			t.Errorf("settled %v at once, want a hundred", d.settles)
		}
		d.get(t, 100)
		d.get(t, 100)
		d.set(func() { d.delay = time.Second })
		time.AfterFunc(2500*time.Millisecond, func() { d.breakdown(errDown) })
		if retried, _, err := d.Nack(t.Context(), "q", ids, 0); retried != 100 || !core.IsKind(err, core.Unavailable) {
			t.Errorf("Nack = %d, %v, want the first hundred and the error", retried, err)
		}
	})
}

// A message whose outcome is lost counts neither as retried nor as dead.
func TestNackTooLate(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		d.put("q", 1, 1)
		d.put("q", 1, 2)
		m := d.get(t, 2)
		d.set(func() { d.lose = true })
		if retried, dead, err := d.Nack(t.Context(), "q", idsOf(m), 0); retried+dead != 0 || err != nil {
			t.Errorf("Nack = %d, %d, %v, want nothing", retried, dead, err)
		}
		if n := len(factsOf[core.Settled](d)) + len(factsOf[core.Accepted](d)) + d.pulled(core.MessagesDead); n != 0 {
			t.Errorf("facts %v, want none of what was not stored", d.facts)
		}
	})
}

func TestExtend(t *testing.T) {
	in(t, func(t *testing.T, d *desk) {
		id := d.put("q", 1, 3)[0]
		m := d.get(t, 1)
		for _, tt := range []struct{ v, want time.Duration }{{0, visibility}, {time.Hour, time.Hour}, {time.Second, time.Second}} {
			time.Sleep(100 * time.Millisecond)
			n, err := d.Extend(t.Context(), "q", []string{Receipt(m[0])}, tt.v)
			if end := time.Until(d.job(id).DueAt); n != 1 || err != nil || end != tt.want {
				t.Errorf("Extend(%v) = %d, %v, ends in %v, want 1 in %v", tt.v, n, err, end, tt.want)
			}
		}
		if n, err := d.Extend(t.Context(), "q", []string{string(id) + ":old"}, 0); n != 0 || err != nil {
			t.Errorf("Extend = %d, %v, want nothing of an old receipt", n, err)
		}
		if n := d.pulled(core.MessagesExtended); n != 3 {
			t.Errorf("%d extended stated, want 3", n)
		}
	})
}

// Consumers of two processes receive, hang up, ack, nack and forget at random. Every message
// is acked once, and no two consumers hold a message at the same time.
func TestEveryMessageOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newDesk()
		a.set(func() { a.delay = 3 * time.Millisecond })
		desks := []*desk{a, besides(a.shelf)}
		const messages = 600
		var mu sync.Mutex
		held, acked := map[core.ID]time.Time{}, 0
		var all sync.WaitGroup
		consume := func(d *desk) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.N(3000))*time.Millisecond)
			defer cancel()
			got, err := d.Receive(ctx, "q", 1+rand.N(20), time.Duration(rand.N(3000))*time.Millisecond)
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Receive: %v", err)
			}
			mu.Lock()
			for _, m := range got {
				if until := held[m.ID]; time.Now().Before(until) {
					t.Errorf("%s is held by two", m.ID)
				}
				held[m.ID] = m.DueAt
			}
			mu.Unlock()
			time.Sleep(rand.N(50 * time.Millisecond))
			for _, m := range got {
				ids, what := []string{Receipt(m)}, rand.N(10)
				mu.Lock()
				if what < 9 {
					delete(held, m.ID)
				}
				mu.Unlock()
				switch {
				case what < 6:
					n, err := d.Ack(t.Context(), "q", ids)
					mu.Lock()
					acked += n
					mu.Unlock()
					if n != 1 || err != nil {
						t.Errorf("Ack = %d, %v, want 1", n, err)
					}
				case what < 8:
					d.Nack(t.Context(), "q", ids, rand.N(2*time.Second))
				case what < 9:
					d.Return(t.Context(), "q", []core.TakenJob{m})
				}
			}
		}
		for i := range 40 {
			all.Go(func() {
				for a.count(core.Completed) < messages {
					consume(desks[i%2])
				}
			})
		}
		for range messages / 10 {
			desks[rand.N(2)].send(10, core.Unlimited)
			time.Sleep(rand.N(100 * time.Millisecond))
		}
		all.Wait()
		if acked != messages || a.count(core.Completed) != messages {
			t.Errorf("%d acked, %d completed, want %d", acked, a.count(core.Completed), messages)
		}
	})
}
