package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Races. Several goroutines call the store at the same moment, and the check then looks for a
// result that no order of the calls could have: a job under two leases, two outcomes of one
// attempt, an ack that counted although another worker has the job. A race is repeated, because
// one round may go well by chance. Go's race detector finds no such error, since the rows are in
// the database.

// races checks pairs of calls on one job, in both orders and concurrently. Races about a single
// sentence are listed with that sentence.
var races = role{name: "Races", checks: []check{
	{"Settle under an expired lease and Take: exactly one counts", "settle first", settleThenTake},
	{"Settle under an expired lease and Take: exactly one counts", "take first", takeThenSettle},
	{"Settle under an expired lease and Take: exactly one counts", "concurrently", raceSettleTake},
	{"Release under an expired lease and Take: exactly one counts", "concurrently", raceReleaseTake},
	{"Concurrent Settle and Release of a job: exactly one counts", "", raceSettleRelease},
	{"Concurrent different outcomes of an attempt: exactly one is stored", "", raceOutcomes},
	{"Ack under an expired lease and Take: exactly one counts", "concurrently", raceAckTake},
	{"Extend of an expired lease and Take: exactly one counts", "concurrently", raceExtendTake},
	{"Concurrent Ack and Settle of a job: exactly one counts", "", raceAckSettle},
	{"An outcome settled by concurrent callers is recorded once", "", raceSettle},
	{"Outcomes settled by concurrent callers are all recorded", "", raceSettleMany},
	{"An arrival accepted by concurrent callers is stored once", "", raceAccept},
}}

// A takenJobs collects the jobs that several takers took. A job that appears under two leases was
// held by two workers at a time.
type takenJobs struct {
	mu     sync.Mutex
	leases map[core.ID][]core.Lease
}

// add notes the leases of taken jobs. Takers call it from many goroutines.
func (h *takenJobs) add(jobs []core.TakenJob) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leases == nil {
		h.leases = map[core.ID][]core.Lease{}
	}
	for _, j := range jobs {
		h.leases[j.ID] = append(h.leases[j.ID], j.Lease)
	}
}

// wantOnce checks that each of n jobs was taken exactly once. A job that is missing would never be
// delivered, and one with two leases would be delivered twice.
func (h *takenJobs) wantOnce(r *rig, n int) {
	r.Helper()
	r.equal("jobs taken", len(h.leases), n)
	for id, leases := range h.leases {
		if len(leases) != 1 {
			r.Errorf("job %s was taken under the leases %q at once, want one", id, leases)
		}
	}
}

// takeUntilEmpty takes until nothing is due. A Take may return no jobs because other takers have
// locked the rows, so it goes on while Due reports due jobs. It continues as well while more
// returns true, and returns an error if a Take exceeds a quota.
func (r *rig) takeUntilEmpty(h *takenJobs, more func() bool, quotas ...core.Quota) error {
	for range 100_000 {
		got, err := r.store.Take(context.Background(), r.now, quotas)
		if err != nil {
			return fmt.Errorf("Take failed: %w", err)
		}
		if err := withinQuota(got, quotas); err != nil {
			return err
		}
		h.add(got)
		if len(got) > 0 || more() {
			continue
		}
		if waits, err := r.anyDue(quotas); err != nil || !waits {
			return err
		}
	}
	return errors.New("Take: a lane was due 100,000 times without an end")
}

// anyDue reports whether a lane of the quotas has a due job.
func (r *rig) anyDue(quotas []core.Quota) (bool, error) {
	for _, q := range quotas {
		due, err := r.store.Due(context.Background(), []core.Lane{q.Lane})
		if t := due[q.Lane].DueAt; err != nil || !t.IsZero() && !t.After(r.now) {
			return true, err
		}
	}
	return false, nil
}

// withinQuota returns an error if a Take returned more jobs of a lane than its quota, or jobs of a
// lane that it did not ask for.
func withinQuota(jobs []core.TakenJob, quotas []core.Quota) error {
	got := map[core.Lane]int{}
	for _, j := range jobs {
		got[j.Lane]++
	}
	for _, q := range quotas {
		if got[q.Lane] > q.N {
			return fmt.Errorf("Take(%q) brought %d jobs, want at most %d", q.Lane, got[q.Lane], q.N)
		}
		delete(got, q.Lane)
	}
	if len(got) > 0 {
		return fmt.Errorf("Take(%v) brought jobs of other lanes: %v", quotas, got)
	}
	return nil
}

// takers is the number of workers in a race.
const takers = 8

var (
	raceLanes  = []core.Lane{"handler/a", "handler/b", "queue/c"}
	raceQuotas = []core.Quota{
		{Lane: "handler/a", N: 7, Hold: leaseTime},
		{Lane: "handler/b", N: 3, Hold: leaseTime},
		{Lane: "queue/c", N: 5, Hold: leaseTime},
	}
)

// noMoreArrivals is for races in which all jobs exist from the start.
func noMoreArrivals() bool { return false }

// Eight workers empty three lanes of different lengths, with quotas that leave rests.
func raceTakers(r *rig) {
	n := 0
	for range r.scaled(20) {
		a := r.arrival(raceLanes...)
		a.Jobs = append(a.Jobs, r.arrival(lanes("handler/a", 18)...).Jobs...)
		r.accepted(a)
		n += len(a.Jobs)
	}
	var h takenJobs
	r.concurrently(takers, func(int) error { return r.takeUntilEmpty(&h, noMoreArrivals, raceQuotas...) })
	h.wantOnce(r, n)
}

// Workers take while four senders add jobs. A worker that finds a lane empty looks again.
func raceArrivals(r *rig) {
	const writers = 4
	each := r.scaled(25)
	arrivals := make([][]core.Arrival, writers)
	for w := range arrivals {
		for range each {
			arrivals[w] = append(arrivals[w], r.arrival(raceLanes...))
		}
	}
	var h takenJobs
	var open sync.WaitGroup
	open.Add(writers)
	done := make(chan struct{})
	go func() { open.Wait(); close(done) }()
	more := func() bool {
		select {
		case <-done:
			return false
		default:
			return true
		}
	}
	r.concurrently(takers+writers, func(i int) error {
		if i >= writers {
			return r.takeUntilEmpty(&h, more, raceQuotas...)
		}
		defer open.Done()
		for _, a := range arrivals[i] {
			if _, err := r.store.Accept(context.Background(), a); err != nil {
				return err
			}
		}
		return nil
	})
	// Jobs that arrived after a taker's last Due are still waiting.
	if err := r.takeUntilEmpty(&h, noMoreArrivals, raceQuotas...); err != nil {
		r.Fatalf("%v", err)
	}
	h.wantOnce(r, writers*each*len(raceLanes))
}

// raceRetry revives dead jobs from two sides while other callers take them.
func raceRetry(r *rig) {
	n := r.scaled(40)
	r.accepted(r.arrival(lanes(r.lane, n)...))
	var outcomes []core.Outcome
	for _, j := range r.take(n) {
		outcomes = append(outcomes, r.ended(j.Job, core.Dead))
	}
	r.settle(outcomes...)
	var h takenJobs
	retried := make([]int, 6)
	r.concurrently(6, func(i int) (err error) {
		if i < 2 {
			retried[i], err = r.store.Retry(context.Background(), r.now, "", r.lane)
			return err
		}
		return r.takeUntilEmpty(&h, noMoreArrivals, r.quota(3))
	})
	if err := r.takeUntilEmpty(&h, noMoreArrivals, r.quota(n)); err != nil {
		r.Fatalf("%v", err)
	}
	r.equal("jobs retried by both", retried[0]+retried[1], n)
	h.wantOnce(r, n)
}

// A worker whose lease ended settles before another takes the job: the outcome counts, and the job
// is not delivered again.
func settleThenTake(r *rig) {
	late := r.taken().Job
	r.now = late.DueAt
	o := r.ended(late, core.Completed)
	r.settle(o)
	r.nothingDue()
	r.wantJob(after(late, o))
}

// The other order: the second worker has the job, and the first outcome is lost.
func takeThenSettle(r *rig) {
	late := r.taken().Job
	r.now = late.DueAt
	holder := r.take(1)[0].Job
	r.wantLost(r.ended(late, core.Completed), holder)
	r.settle(r.ended(holder, core.Completed))
}

// raceStaleLease runs many rounds in which a worker with an expired lease acts while another
// worker takes the job. It passes the results of each round to check. After each round, the job is
// completed and the time moves past its lease, so that rounds are alike.
func (r *rig) raceStaleLease(late func(core.Job) (held bool, err error), check func(late core.Job, held bool, again []core.TakenJob)) {
	r.Helper()
	for range r.scaled(40) {
		r.put()
		j := r.take(1)[0].Job
		r.now = j.DueAt
		var held bool
		var again []core.TakenJob
		r.concurrently(2, func(i int) (err error) {
			if i == 0 {
				held, err = late(j)
				return err
			}
			again, err = r.store.Take(context.Background(), r.now, []core.Quota{r.quota(5)})
			return err
		})
		check(j, held, again)
		again = append(again, r.takeQuotas(r.quota(5))...)
		for _, a := range again {
			r.settle(r.ended(a.Job, core.Completed))
		}
		r.now = r.now.Add(leaseTime)
	}
}

// A worker settles a job after its lease while another worker takes the job. Either the outcome
// is stored, or the job is taken again. If both happened, completed work would be delivered
// again. If neither did, no worker would have the job.
func raceSettleTake(r *rig) {
	round := 0
	r.raceStaleLease(func(j core.Job) (bool, error) {
		o := r.ended(j, core.Completed)
		setKind(&o, round, j)
		round++
		settled, err := r.store.Settle(context.Background(), o)
		return len(settled.Lost) == 0, err
	}, func(j core.Job, held bool, again []core.TakenJob) {
		if held != (len(again) == 0) {
			r.Errorf("settling held: %t, taken again: %d; want exactly one of both", held, len(again))
		}
		want := core.Completed
		if !held {
			want = core.Running
		}
		r.equal("status", r.job(j.ID).Status, want)
	})
}

// A consumer acks a message after its lease while another consumer takes the message. Either the
// ack counts, or the message is taken again.
func raceAckTake(r *rig) {
	r.raceStaleLease(func(j core.Job) (bool, error) {
		n, err := r.store.Ack(context.Background(), r.now, r.lane, []core.Ref{refTo(j)})
		return n == 1, err
	}, func(j core.Job, held bool, again []core.TakenJob) {
		if held != (len(again) == 0) {
			r.Errorf("the ack counted: %t, taken again: %d; want exactly one of both", held, len(again))
		}
		want := core.Completed
		if !held {
			want = core.Running
		}
		r.equal("status", r.job(j.ID).Status, want)
	})
}

// A consumer extends an expired lease while another consumer takes the message. Exactly one of
// the two calls counts. The stored lease and its end must come from that call.
func raceExtendTake(r *rig) {
	r.raceStaleLease(func(j core.Job) (bool, error) {
		n, err := r.store.Extend(context.Background(), r.now.Add(time.Second), r.lane, []core.Ref{refTo(j)})
		return n == 1, err
	}, func(j core.Job, held bool, again []core.TakenJob) {
		if held != (len(again) == 0) {
			r.Errorf("extended: %t, taken again: %d; want exactly one of both", held, len(again))
		}
		want := core.Job{Attempt: 1, DueAt: r.now.Add(time.Second), Lease: j.Lease}
		if len(again) == 1 {
			want = core.Job{Attempt: 2, DueAt: again[0].DueAt, Lease: again[0].Lease}
		}
		got := r.job(j.ID)
		r.equal("Job", core.Job{Attempt: got.Attempt, DueAt: got.DueAt, Lease: got.Lease}, want)
		r.now = r.now.Add(time.Second)
	})
}

// A consumer acks and rejects a message at once, as two of its threads may. One of the two calls
// counts, and the other leaves no attempt.
func raceAckSettle(r *rig) {
	for range r.scaled(30) {
		j := r.taken().Job
		var acked int
		var settled core.Settlement
		r.concurrently(2, func(i int) (err error) {
			if i == 0 {
				acked, err = r.store.Ack(context.Background(), r.now, r.lane, []core.Ref{refTo(j)})
				return err
			}
			settled, err = r.store.Settle(context.Background(), r.ended(j, core.Retryable))
			return err
		})
		want := core.Retryable
		if acked == 1 {
			want = core.Completed
		}
		r.equal("outcomes that were lost", len(settled.Lost), acked)
		r.equal("status", r.job(j.ID).Status, want)
		r.equal("attempts recorded", len(r.attempts(j.ID)), 1-acked)
	}
}

// A release under a lease that has ended must not take the job from its next holder, nor reduce
// the count of attempts twice.
func raceReleaseTake(r *rig) {
	r.raceStaleLease(func(j core.Job) (bool, error) {
		return false, r.store.Release(context.Background(), r.now.Add(time.Second), j)
	}, func(j core.Job, _ bool, again []core.TakenJob) {
		want := core.Job{Status: core.Available, Attempt: 0, DueAt: r.now.Add(time.Second)}
		if len(again) == 1 {
			want = core.Job{Status: core.Running, Attempt: 2, DueAt: again[0].DueAt, Lease: again[0].Lease}
		}
		got := r.job(j.ID)
		r.equal("Job", core.Job{Status: got.Status, Attempt: got.Attempt, DueAt: got.DueAt, Lease: got.Lease}, want)
		r.now = r.now.Add(time.Second)
	})
}

// A worker that stops may release a job whose outcome is on its way. The attempt must be either
// recorded and counted, or neither.
func raceSettleRelease(r *rig) {
	for round := range r.scaled(60) {
		j := r.taken().Job
		o := r.ended(j, core.Completed)
		setKind(&o, round, j)
		var settled core.Settlement
		r.concurrently(2, func(i int) (err error) {
			if i == 0 {
				settled, err = r.store.Settle(context.Background(), o)
				return err
			}
			return r.store.Release(context.Background(), r.now.Add(leaseTime), j)
		})
		want, attempts := core.Completed, 1
		if len(settled.Lost) > 0 {
			want, attempts = core.Available, 0
		}
		got := r.job(j.ID)
		r.equal("status", got.Status, want)
		r.equal("attempts begun", got.Attempt, attempts)
		r.equal("attempts recorded", len(r.attempts(j.ID)), attempts)
	}
}

// Three different outcomes of one attempt arrive at once. The recorded attempt and the status of
// the job must come from the same one.
func raceOutcomes(r *rig) {
	all := []core.Status{core.Completed, core.Retryable, core.Dead}
	for round := range r.scaled(30) {
		j := r.taken().Job
		outcomes := make([]core.Outcome, len(all))
		for i, s := range all {
			outcomes[i] = r.ended(j, s)
			setKind(&outcomes[i], round, j)
			outcomes[i].Attempt.Response = string(s)
		}
		r.concurrently(len(all), func(i int) error {
			_, err := r.store.Settle(context.Background(), outcomes[i])
			return err
		})
		got := r.attempts(j.ID)
		if len(got) != 1 {
			r.Fatalf("Attempts = %v, want one", got)
		}
		r.equal("status, by the attempt recorded", r.job(j.ID).Status, core.Status(got[0].Response))
	}
}

// setKind makes every third outcome one with a recorded exchange, and another third failures. A store may
// settle each kind in a way of its own.
func setKind(o *core.Outcome, round int, j core.Job) {
	switch round % 3 {
	case 1:
		o.Attempt.Exchange = exchange("")
	case 2:
		o.Lane, o.Verdict, o.Breaker.Failures = j.Lane, core.Failure, 1000
	}
}

// 16 callers send one outcome at once, as after lost answers. The store must not report it as
// lost to any of them.
func raceSettle(r *rig) {
	for round := range r.scaled(20) {
		j := r.taken().Job
		o := r.ended(j, core.Retryable)
		all := []core.Outcome{o, o}
		if round%2 == 1 { // the store may settle these two in different ways
			all[1].Attempt.Exchange = exchange("")
		}
		r.concurrently(callers, func(i int) error {
			settled, err := r.store.Settle(context.Background(), all[i%2])
			if len(settled.Lost) > 0 {
				err = fmt.Errorf("Settle(%s): lost = %v, want none", o, settled.Lost)
			}
			return err
		})
		r.wantJob(after(j, o))
		got := r.attempts(j.ID)
		for i := range got {
			got[i].Exchange = nil // of either caller
		}
		r.equal("Attempts", got, []core.Attempt{o.Attempt})
	}
}

// Callers settle hundreds of jobs one by one. On databases with a shared commit, many are in one
// commit, and each must get its own answer.
func raceSettleMany(r *rig) {
	n := r.scaled(320)
	r.accepted(r.arrival(lanes(r.lane, n)...))
	outcomes := make([][]core.Outcome, callers)
	want := map[core.ID]core.Job{}
	for i, j := range r.take(n) {
		o := r.ended(j.Job, core.Completed)
		outcomes[i%callers] = append(outcomes[i%callers], o)
		want[j.ID] = after(j.Job, o)
	}
	r.concurrently(callers, func(i int) error {
		for _, o := range outcomes[i] {
			if settled, err := r.store.Settle(context.Background(), o); err != nil || len(settled.Lost) > 0 {
				return fmt.Errorf("Settle(%s) = %v, %v, want none", o, settled, err)
			}
		}
		return nil
	})
	for _, got := range r.jobs(core.JobFilter{Limit: n}).Items {
		r.equal("Job", got, want[got.ID])
		r.equal("attempts recorded", len(r.attempts(got.ID)), 1)
	}
}

// 16 callers send one arrival at once. All of them get the answer of the first.
func raceAccept(r *rig) {
	for range r.scaled(20) {
		a := r.arrival(r.lane, "queue/b")
		a.Event.DeliveryID, a.Jobs[0].Key = string(a.Event.ID), string(a.Event.ID)
		want := core.Receipt{EventID: a.Event.ID, Jobs: 2}
		r.concurrently(callers, func(int) error {
			got, err := r.store.Accept(context.Background(), a)
			if err == nil && got != want {
				err = fmt.Errorf("Accept = %+v, want %+v", got, want)
			}
			return err
		})
		r.equal("Jobs of the event", len(r.jobs(core.JobFilter{EventID: a.Event.ID}).Items), 2)
	}
}
