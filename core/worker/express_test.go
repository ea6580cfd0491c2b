package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// entrance is an inbox of a bench that accepts events with one job each.
type entrance struct {
	*bench
	core.Inbox
	express  Express
	accepted int
	taking   time.Duration // from storing a job that is taken to the answer

	unanswered bool          // the next AcceptAndTake gets no answer
	late       time.Duration // from then until its arrival is stored
}

// newEntrance makes a bench with an entrance.
func newEntrance(l Limits, targets ...Target) *entrance {
	e := &entrance{bench: newBench(l, targets...)}
	e.Worker.Express = &e.express
	e.Inbox = e.express.Inbox(e)
	return e
}

// Accept implements [core.Inbox].
func (e *entrance) Accept(_ context.Context, a core.Arrival) (core.Receipt, error) {
	if err := e.enter(); err != nil {
		return core.Receipt{}, err
	}
	defer e.mu.Unlock()
	e.store(a)
	return core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}, nil
}

// AcceptAll implements [core.Inbox].
func (e *entrance) AcceptAll(context.Context, []core.Arrival) ([]core.Receipt, error) {
	panic("called")
}

// AcceptAndTake implements [core.Express].
func (e *entrance) AcceptAndTake(_ context.Context, now time.Time, a core.Arrival, holds map[core.ID]time.Duration) (core.Receipt, []core.TakenJob, error) {
	if err := e.enter(); err != nil {
		return core.Receipt{}, nil, err
	}
	if e.unanswered {
		e.unanswered = false
		return core.Receipt{}, e.storeLate(now, a, holds), errBroken
	}
	taken := e.storeTaken(now, a, holds)
	e.mu.Unlock()
	time.Sleep(e.taking)
	return core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}, taken, nil
}

// storeLate stores an arrival some time after it returns the jobs that will be taken. The caller holds mu,
// which storeLate unlocks.
func (e *entrance) storeLate(now time.Time, a core.Arrival, holds map[core.ID]time.Duration) []core.TakenJob {
	jobs := e.storeTaken(now, a, holds)
	late := map[core.ID]*core.Job{}
	for _, j := range jobs {
		late[j.ID] = e.jobs[j.ID]
		delete(e.jobs, j.ID)
	}
	e.mu.Unlock()
	time.AfterFunc(e.late, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		maps.Copy(e.jobs, late)
	})
	return jobs
}

// storeTaken stores an arrival and takes jobs of it. The caller holds mu.
func (e *entrance) storeTaken(now time.Time, a core.Arrival, holds map[core.ID]time.Duration) (taken []core.TakenJob) {
	e.store(a)
	for _, n := range a.Jobs {
		hold, wanted := holds[n.ID]
		if j := e.jobs[n.ID]; wanted && e.gate(n.Lane).admits(now, nil, "") {
			e.leases++
			j.Status, j.Attempt, j.DueAt, j.Lease = core.Running, 1, now.Add(hold), core.Lease(fmt.Sprint("express ", e.leases))
			taken = append(taken, core.TakenJob{Job: *j, Event: a.Event})
		}
	}
	return taken
}

// store stores the jobs of an arrival. The caller holds mu.
func (e *entrance) store(a core.Arrival) {
	for _, n := range a.Jobs {
		e.jobs[n.ID] = &core.Job{ID: n.ID, Lane: n.Lane, Status: core.Available, MaxAttempts: 3, DueAt: a.Due(n)}
	}
}

// arrival is a new event with a job in a lane.
func (e *entrance) arrival(l core.Lane) core.Arrival {
	e.accepted++
	id := core.ID(fmt.Sprintf("E%04d", e.accepted))
	return core.Arrival{Event: core.Event{ID: id, CreatedAt: time.Now()}, Jobs: []core.NewJob{{ID: "J" + id, Lane: l, MaxAttempts: 3}}}
}

// send accepts an arrival through the express, rings as an intake does, and returns whether its job was
// taken.
func (e *entrance) send(t *testing.T, a core.Arrival) bool {
	t.Helper()
	r, err := e.Inbox.Accept(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if r.Taken == 0 {
		e.bell.Ring(a.Jobs[0].Lane)
	}
	return r.Taken > 0
}

// claims returns how many claims there were.
func (e *entrance) claims() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.takes)
}

// TestExpress: events that find the worker idle are delivered without a claim.
func TestExpress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEntrance(Limits{Slots: 8, Batch: 10}, Target{Sender: takesTime(time.Second, ok)})
		if e.send(t, e.arrival(lane)) {
			t.Error("a job was taken before the tick began")
		}
		stop := e.serve(t)
		time.Sleep(2 * time.Second)
		before := e.claims()
		for range 5 {
			if began := time.Now(); !e.send(t, e.arrival(lane)) || !time.Now().Equal(began) {
				t.Error("a job was not taken")
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if n := e.count(core.Completed); n != 6 || e.claims() != before {
			t.Errorf("%d jobs completed with %d claims, want 6 with none", n, e.claims()-before)
		}
		if got := stop(); got != (core.Report{Completed: 6}) {
			t.Errorf("report %+v", got)
		}
		if e.send(t, e.arrival(lane)) {
			t.Error("a job was taken after the tick ended")
		}
	})
}

// TestExpressLeavesOthers: jobs that a claim alone can judge are left to it.
func TestExpressLeavesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sender := takesTime(0, ok)
		e := newEntrance(Limits{Slots: 8, Batch: 10}, Target{Sender: sender},
			Target{Lane: "handler/paced", Sender: sender, Interval: time.Second},
			Target{Lane: "handler/lined", Sender: sender, Lines: core.LineRules{Limit: 1}},
			Target{Lane: "handler/held", Sender: sender},
			Target{Lane: "handler/shut", Sender: sender})
		e.pile.holdLane("handler/held", time.Time{})
		e.gate("handler/shut").OpenUntil = time.Now().Add(20 * time.Second)
		stop := e.serve(t)
		time.Sleep(2 * time.Second) // until the worker has seen the gates
		for name, change := range map[string]func(*core.NewJob){
			"with an interval":       func(j *core.NewJob) { j.Lane = "handler/paced" },
			"of a lane with lines":   func(j *core.NewJob) { j.Lane = "handler/lined" },
			"of a held lane":         func(j *core.NewJob) { j.Lane = "handler/held" },
			"behind an open breaker": func(j *core.NewJob) { j.Lane = "handler/shut" },
			"of a queue":             func(j *core.NewJob) { j.Lane = "queue/q" },
			"with a key":             func(j *core.NewJob) { j.Key = "k" },
			"with a line":            func(j *core.NewJob) { j.Line.Key = "l" },
			"with a delay":           func(j *core.NewJob) { j.DueAt = time.Now().Add(time.Second) },
		} {
			a := e.arrival(lane)
			change(&a.Jobs[0])
			if e.send(t, a) {
				t.Errorf("a job %s was taken", name)
			}
		}
		time.Sleep(5 * time.Second)
		if n := e.count(core.Completed); n != 5 {
			t.Errorf("%d jobs completed, want all but those that are held, behind a breaker or of a queue", n)
		}
		stop()
	})
}

// TestExpressOfAHeldLane: the store knows of a hold that the worker has not seen. The room is free again.
func TestExpressOfAHeldLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEntrance(Limits{Slots: 8, Batch: 10}, Target{Sender: takesTime(0, ok)})
		stop := e.serve(t)
		synctest.Wait()
		e.pile.holdLane(lane, time.Now().Add(time.Minute))
		if e.send(t, e.arrival(lane)) {
			t.Error("a job of a held lane was taken")
		}
		time.Sleep(time.Minute + core.RampTime)
		if !e.send(t, e.arrival(lane)) {
			t.Error("a job was not taken after the hold")
		}
		synctest.Wait()
		if n := e.count(core.Completed); n != 2 {
			t.Errorf("%d jobs completed, want 2", n)
		}
		stop()
	})
}

// TestExpressWithoutSlots: while all slots are in use, events wait for claims, and newer ones do not
// overtake them.
func TestExpressWithoutSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots = 16
		var mu sync.Mutex // guards sent
		var sent []core.ID
		e := newEntrance(Limits{Slots: slots, Batch: 4}, Target{Sender: sends(func(_ context.Context, j core.TakenJob) Reply {
			mu.Lock()
			sent = append(sent, j.ID)
			mu.Unlock()
			time.Sleep(time.Second)
			return ok
		})})
		e.delay = time.Millisecond // so that sends do not begin at the same moment
		stop := e.serve(t)
		time.Sleep(time.Second)
		taken, all := 0, make([]core.ID, 100)
		for i := range all {
			a := e.arrival(lane)
			all[i] = a.Jobs[0].ID
			if e.send(t, a) {
				taken++
			}
		}
		if taken != slots {
			t.Errorf("%d jobs of %d at once were taken, want %d", taken, len(all), slots)
		}
		time.Sleep(10 * time.Second)
		mu.Lock()
		for i, id := range all { // those that begin at the same moment do so in any order
			if at := slices.Index(sent, id); at < 0 || at >= i+slots || at <= i-slots {
				t.Errorf("job %d was sent as number %d", i, at)
			}
		}
		mu.Unlock()
		if !e.send(t, e.arrival(lane)) {
			t.Error("a job was not taken although none waits any more")
		}
		stop()
	})
}

// TestExpressOfManySenders: however many events are accepted at the same time, their jobs are taken, as long
// as the handler is fast enough for them.
func TestExpressOfManySenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEntrance(Limits{Slots: 8, Batch: 10}, Target{Sender: takesTime(10*time.Millisecond, ok)})
		e.taking = 50 * time.Millisecond
		stop := e.serve(t)
		time.Sleep(time.Second)
		e.send(t, e.arrival(lane)) // the first one, of which the worker learns how long both take
		time.Sleep(time.Second)
		before, taken := e.claims(), 0
		for range 20 {
			answers := make(chan bool, 20)
			for range cap(answers) {
				a := e.arrival(lane)
				go func() { answers <- e.send(t, a) }()
			}
			for range cap(answers) {
				if <-answers {
					taken++
				}
			}
		}
		time.Sleep(time.Second)
		if n := e.count(core.Completed); taken != 400 || n != 401 || e.claims() != before {
			t.Errorf("%d jobs of 400 were taken, %d completed, %d claims, want all, and no claim", taken, n, e.claims()-before)
		}
		stop()
	})
}

// TestExpressOfASlowHandler: no job of a slow handler waits here for a slot, however fast the handlers beside
// it are.
func TestExpressOfASlowHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = core.Lane("handler/slow")
		e := newEntrance(Limits{Slots: 16, Batch: 10}, Target{Sender: takesTime(time.Millisecond, ok)}, Target{Lane: slow, Sender: takesTime(time.Minute, ok)})
		e.taking = 50 * time.Millisecond
		stop := e.serve(t)
		time.Sleep(time.Second)
		e.send(t, e.arrival(slow))
		time.Sleep(2 * time.Minute)
		for range 40 { // so that the worker knows the fast one better
			e.send(t, e.arrival(lane))
		}
		taken := 0
		for range 30 {
			if e.send(t, e.arrival(slow)) {
				taken++
			}
		}
		synctest.Wait()
		if taken == 0 || taken > e.Sending() || e.Sending() >= 16 {
			t.Errorf("%d jobs of the slow handler were taken, and %d have a slot, want as many, and room for the other handler", taken, e.Sending())
		}
		if !e.send(t, e.arrival(lane)) {
			t.Error("a job of the fast handler was not taken")
		}
		stop()
	})
}

// TestExpressOfManyLanes: of jobs of many lanes at the same time, no more are taken than there are slots.
func TestExpressOfManyLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, lanes = 8, 40
		var targets []Target
		for i := range lanes {
			targets = append(targets, Target{Lane: core.Lane(fmt.Sprint("handler/", i)), Sender: takesTime(time.Minute, ok)})
		}
		e := newEntrance(Limits{Slots: slots, Batch: 10}, targets...)
		e.taking = 50 * time.Millisecond
		stop := e.serve(t)
		time.Sleep(time.Second)
		answers := make(chan bool, lanes)
		for _, to := range targets {
			a := e.arrival(to.Lane)
			go func() { answers <- e.send(t, a) }()
		}
		taken := 0
		for range targets {
			if <-answers {
				taken++
			}
		}
		if taken == 0 || taken > slots {
			t.Errorf("%d jobs were taken, want some, and at most %d", taken, slots)
		}
		stop()
	})
}

// TestExpressOfStuckAttempts: once the attempts of a handler take long, jobs of it wait in the store, apart
// from a few.
func TestExpressOfStuckAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots = 8
		var stuck atomic.Bool
		e := newEntrance(Limits{Slots: slots, Batch: 10}, Target{Sender: sends(func(context.Context, core.TakenJob) Reply {
			if stuck.Load() {
				time.Sleep(time.Minute)
			}
			time.Sleep(time.Millisecond)
			return ok
		})})
		e.taking = 10 * time.Millisecond
		stop := e.serve(t)
		time.Sleep(time.Second)
		for range 40 {
			e.send(t, e.arrival(lane))
		}
		stuck.Store(true)
		taken := 0
		for range 200 {
			if e.send(t, e.arrival(lane)) {
				taken++
			}
		}
		if most := slots + mostAhead*slots; taken < slots || taken > most {
			t.Errorf("%d jobs were taken, want %d to %d", taken, slots, most)
		}
		stop()
	})
}

// TestExpressWaitsForOlderJobs: a job of a lane in which older ones wait, such as those of another
// process, is not taken before them.
func TestExpressWaitsForOlderJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEntrance(Limits{Slots: 8, Batch: 8}, Target{Sender: takesTime(time.Second, ok)}, Target{Lane: "handler/b", Sender: takesTime(0, ok)})
		e.add(lane, 40, 1)
		stop := e.serve(t)
		time.Sleep(500 * time.Millisecond)
		if e.send(t, e.arrival(lane)) {
			t.Error("a job was taken before 40 older ones")
		}
		time.Sleep(20 * time.Second)
		if n := e.count(core.Completed); n != 41 || !e.send(t, e.arrival(lane)) {
			t.Errorf("%d jobs completed, want 41, and the next one taken", n)
		}
		stop()
	})
}

// TestExpressFails: an accept that fails leaves its room free.
func TestExpressFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEntrance(Limits{Slots: 8, Batch: 10}, Target{Sender: takesTime(0, ok)})
		stop := e.serve(t)
		time.Sleep(time.Second)
		e.breakdown(true)
		for range 20 {
			if _, err := e.Inbox.Accept(t.Context(), e.arrival(lane)); err == nil {
				t.Fatal("no error")
			}
		}
		e.breakdown(false)
		time.Sleep(time.Minute)
		if !e.send(t, e.arrival(lane)) {
			t.Error("a job was not taken after the failures")
		}
		stop()
	})
}

// TestExpressWithoutAnswer: a job that was stored although no answer came is delivered long before its
// lease ends, also if it is stored some time later.
func TestExpressWithoutAnswer(t *testing.T) {
	for _, c := range []struct{ late, within time.Duration }{{0, 2 * time.Second}, {3 * time.Second, 9 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			sender := &handler{}
			e := newEntrance(Limits{Slots: 8, Batch: 10, Drain: time.Second}, Target{Sender: sender, Timeout: 60 * time.Second, Hold: 90 * time.Second})
			stop := e.serve(t)
			time.Sleep(time.Second)
			e.unanswered, e.late = true, c.late
			if _, err := e.Inbox.Accept(t.Context(), e.arrival(lane)); err == nil {
				t.Fatal("no error")
			}
			time.Sleep(c.within)
			if n := e.count(core.Completed); n != 1 {
				t.Errorf("%d jobs completed %v after the error, want 1", n, c.within)
			}
			time.Sleep(5 * time.Minute)
			if got := stop(); got != (core.Report{Completed: 1}) {
				t.Errorf("report %+v, want one delivery", got)
			}
		})
	}
}

// TestExpressWithoutAnswerAtTheEnd: a worker that ends gives such a job back once more.
func TestExpressWithoutAnswerAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEntrance(Limits{Slots: 8, Batch: 10, Drain: time.Second}, Target{Sender: &handler{}})
		stop := e.serve(t)
		time.Sleep(time.Second)
		e.unanswered, e.late = true, 10*time.Millisecond
		if _, err := e.Inbox.Accept(t.Context(), e.arrival(lane)); err == nil {
			t.Fatal("no error")
		}
		time.Sleep(e.late) // not longer: a look in between would have the job delivered
		synctest.Wait()
		stop()
		if n := e.count(core.Available); n != 1 {
			t.Errorf("%d jobs available, want 1", n)
		}
	})
}

// TestExpressAtTheEnd: a job that was being taken when the tick ended is given back.
func TestExpressAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEntrance(Limits{Slots: 8, Batch: 10, Drain: 10 * time.Second}, Target{Sender: takesTime(0, ok)})
		e.taking = 2 * time.Second
		stop := e.serve(t)
		time.Sleep(time.Second)
		accepted := make(chan bool)
		go func() { accepted <- e.send(t, e.arrival(lane)) }()
		time.Sleep(time.Second)
		began := time.Now()
		report := stop()
		if want := (core.Report{Released: 1}); report != want || time.Since(began) != time.Second {
			t.Errorf("after %v: report %+v, want %+v", time.Since(began), report, want)
		}
		if !<-accepted || e.count(core.Available) != 1 {
			t.Error("the job is not available")
		}
	})
}

// TestExpressOfManyJobsAtTheEnd: a tick ends while the jobs of one event arrive. Each is attempted or given
// back. The race detector sees whether the two share memory.
func TestExpressOfManyJobsAtTheEnd(t *testing.T) {
	const jobs = 50
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			e := newEntrance(Limits{Slots: jobs, Batch: 10, Drain: 10 * time.Second}, Target{Sender: takesTime(0, ok)})
			e.taking = time.Second
			stop := e.serve(t)
			time.Sleep(time.Second)
			a := e.arrival(lane)
			for n := range jobs - 1 {
				a.Jobs = append(a.Jobs, core.NewJob{ID: core.ID(fmt.Sprintf("%s-%d", a.Jobs[0].ID, n)), Lane: lane, MaxAttempts: 3})
			}
			accepted := make(chan bool)
			go func() { accepted <- e.send(t, a) }()
			time.Sleep(time.Second) // the jobs arrive at this very time
			report := stop()
			if !<-accepted || report.Released+report.Completed != jobs {
				t.Fatalf("report %+v, want all %d jobs in it", report, jobs)
			}
			if available, completed := e.count(core.Available), e.count(core.Completed); available+completed != jobs {
				t.Fatalf("%d jobs are available and %d completed, want all %d", available, completed, jobs)
			}
		})
	}
}

// visitors are Consumers of which one waits, until a message came.
type visitors struct {
	mu      sync.Mutex // guards the others while many events are accepted
	gone    bool
	arrived []*core.TakenJob
}

func (v *visitors) Reserve(core.Lane) (time.Duration, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return time.Minute, !v.gone
}

func (v *visitors) Arrive(_ core.Lane, m *core.TakenJob) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.gone, v.arrived = true, append(v.arrived, m)
}

// TestExpressOfQueues: a consumer who waits gets a new message, and the worker nothing of it. With
// another job of the same event each has its taker.
func TestExpressOfQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEntrance(Limits{Slots: 8, Batch: 10}, Target{Sender: takesTime(0, ok)})
		stop := e.serve(t)
		time.Sleep(time.Second)
		both := func() core.Arrival {
			a := e.arrival(lane)
			a.Jobs = append(a.Jobs, core.NewJob{ID: "Q" + a.Event.ID, Lane: "queue/q", MaxAttempts: 3})
			return a
		}
		if r, err := e.Inbox.Accept(t.Context(), both()); err != nil || r.Taken != 1 {
			t.Errorf("%+v, %v, want no message taken before there are consumers", r, err)
		}
		v := &visitors{}
		e.express.Serve(v)
		a := both()
		if r, err := e.Inbox.Accept(t.Context(), a); err != nil || r.Taken != 2 {
			t.Errorf("%+v, %v, want both jobs taken", r, err)
		}
		if len(v.arrived) != 1 || v.arrived[0].ID != a.Jobs[1].ID || !v.arrived[0].DueAt.Equal(time.Now().Add(time.Minute)) {
			t.Errorf("%v, want the message under the lease of its queue", v.arrived)
		}
		if r, err := e.Inbox.Accept(t.Context(), both()); err != nil || r.Taken != 1 || len(v.arrived) != 1 {
			t.Errorf("%+v, %v, want no message taken while no consumer waits", r, err)
		}
		*v, e.unanswered = visitors{}, true
		heard := e.bell.Listen("queue/q")
		if _, err := e.Inbox.Accept(t.Context(), both()); err == nil || len(v.arrived) != 1 || v.arrived[0] != nil {
			t.Errorf("%v, %v, want an error, and no message for the consumer", v.arrived, err)
		}
		time.Sleep(2 * time.Second)
		if rung := heard.Rung(); !slices.Contains(rung, "queue/q") || e.count(core.Completed) != 4 {
			t.Errorf("rung %v, %d jobs completed, want the queue, and 4", rung, e.count(core.Completed))
		}
		stop()
	})
}

// TestExpressOfManyMessages: of messages that are accepted at the same time, only the first are given to
// consumers as they are stored, and no newer ones are for a moment. Jobs of handlers are.
func TestExpressOfManyMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEntrance(Limits{Slots: 8, Batch: 10}, Target{Sender: takesTime(0, ok)})
		e.taking = 100 * time.Millisecond
		e.express.Serve(&visitors{})
		stop := e.serve(t)
		time.Sleep(time.Second)
		taken := make(chan bool, 10)
		for i := range cap(taken) {
			a := e.arrival("queue/q")
			time.AfterFunc(time.Duration(i)*time.Millisecond, func() { taken <- e.send(t, a) })
		}
		time.Sleep(102 * time.Millisecond)
		if n := len(taken); n != cap(taken) {
			t.Fatalf("%d answers, want %d", n, cap(taken))
		}
		n := 0
		for range cap(taken) {
			if <-taken {
				n++
			}
		}
		if n != mostExpress {
			t.Errorf("%d messages of 10 at the same time were taken, want %d", n, mostExpress)
		}
		if e.send(t, e.arrival("queue/q")) || !e.send(t, e.arrival(lane)) {
			t.Error("a message was taken just after many others were accepted, or a job was not")
		}
		time.Sleep(crowdedFor)
		e.express.Serve(&visitors{})
		if !e.send(t, e.arrival("queue/q")) {
			t.Error("a message was not taken later")
		}
		stop()
	})
}

// TestExpressOfFunctions: a tick that ends takes no new events, since its process may end first.
func TestExpressOfFunctions(t *testing.T) {
	for _, b := range []core.Budget{{}, {Rest: time.Second, End: time.Now().Add(time.Hour)}, {Rest: time.Second, Until: time.Now().Add(time.Hour)}, {Rest: time.Second, Brief: true}} {
		e := newEntrance(Limits{Slots: 8, Batch: 10}, Target{Sender: takesTime(0, ok)})
		ctx, cancel := context.WithCancel(t.Context())
		tick := e.newTick(ctx, b)
		e.express.join(tick)()
		if leave := e.express.join(tick); e.express.tick.Load() != nil {
			t.Errorf("a tick with the budget %+v takes new events", b)
			leave()
		}
		cancel()
	}
}

// TestExpressAfterAReload: the newest worker takes new events, and the one before leaves it in place.
func TestExpressAfterAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEntrance(Limits{Slots: 8, Batch: 10, Drain: 10 * time.Second}, Target{Sender: takesTime(time.Hour, ok)})
		r := relayOn(t, e.bench, Target{Lane: lane, Sender: takesTime(0, ok), Timeout: 30 * time.Second, Hold: 45 * time.Second})
		r.pass(t)
		if !e.send(t, e.arrival(lane)) {
			t.Error("a job was not taken")
		}
		synctest.Wait()
		if n := e.count(core.Completed); n != 1 {
			t.Errorf("%d jobs completed, want 1, by the second worker", n)
		}
		r.end()
	})
}
