package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of the calls of queue consumers: Ack, Extend and Held. A consumer names messages by refs,
// which it may keep too long, send twice or make up. A failure means that a message is lost, is
// delivered twice to consumers that acked it, or that one consumer can end another one's message.

const (
	saysRefs      = "For all its methods, a ref means a running job of the lane, also after the job's lease is over, until another caller takes the job"
	saysNoRef     = "A ref is ignored if its lease is stale, if its job is in another lane or not running, or if the job does not exist"
	saysSameJob   = "A job that several refs mean counts once"
	saysAck       = "Ack completes the jobs that refs mean, and returns their number"
	saysOneAck    = "Of several callers that ack a job at the same time, one counts it"
	saysExtend    = "Extend moves the ends of the leases of the jobs that refs mean, to a later or an earlier time, and returns the number of these jobs"
	saysLeaseKept = "The leases keep their values"
	saysHeld      = "Held returns the jobs that refs mean, with their events, in the order of their ids"
)

// Cases of refs are checked through all three methods, by wantRefs.
var counter = role{name: "Counter", checks: []check{
	// The meaning of a ref to each of the three methods.
	{saysRefs, "by lease", refsLease},
	{saysRefs, "by id", refsID},
	{saysRefs, "after the end of the lease", refsLate},
	{saysRefs, "not other jobs", refsOthers},
	{saysRefs, "none", refsNone},
	{saysNoRef, "taken again", refStale},
	{saysNoRef, "of another lane", refElsewhere},
	{saysNoRef, "not running", refResting},
	{saysNoRef, "unknown lease", refMadeUp},
	{saysNoRef, "odd text", refOdd},
	{saysSameJob, "the same ref", sameRef},
	{saysSameJob, "by lease and by id", sameJob},
	{saysSameJob, "beside an older lease", sameOlder},
	// The effects of each method.
	{saysAck, "", ackCompletes},
	{saysAck, "after a failure", ackAfterFailure},
	{saysAck, "many", ackMany},
	{saysAck, "no Take returns it again", ackEnds},
	{saysOneAck, "", raceAcks},
	{saysOneAck, "many each", raceAckMany},
	{saysAck, "concurrent callers", raceOwnCounts},
	{saysExtend, "later", extendLater},
	{saysExtend, "earlier", extendEarlier},
	{saysExtend, "into the past", extendPast},
	{saysExtend, "to the same time", extendSame},
	{saysExtend, "many", extendMany},
	{saysLeaseKept, "", extendLease},
	{saysLeaseKept, "by id", extendLeaseByID},
	{saysHeld, "", heldEvents},
	{saysHeld, "in order", heldOrder},
	{saysDueReads, "Held", heldReads},
}}

// wantRefs fails unless the lane's refs mean exactly the wanted jobs to Held, Extend and Ack. It
// leaves those jobs completed. Extend moves the leases to the end that they have, so it changes
// nothing for the Ack after it.
func (r *rig) wantRefs(what string, lane core.Lane, refs []core.Ref, want ...core.ID) {
	r.Helper()
	held := r.held(lane, refs...)
	r.equal("Held of "+what, ids(held), want)
	end := r.now.Add(leaseTime)
	if len(held) > 0 {
		end = held[0].DueAt
	}
	r.equal("Extend of "+what, r.extend(end, lane, refs...), len(want))
	r.equal("Ack of "+what, r.ack(lane, refs...), len(want))
	for _, id := range want {
		r.equal("status after Ack of "+what, r.job(id).Status, core.Completed)
	}
}

// wantIgnored fails unless the refs are ignored and no call changes the store. It compares
// everything that the store shows.
func (r *rig) wantIgnored(what string, lane core.Lane, refs ...core.Ref) {
	r.Helper()
	want := r.state()
	r.wantRefs(what, lane, refs)
	r.equal("state after "+what, r.state(), want)
}

// ack acks refs at the rig's time, and returns how many jobs counted.
func (r *rig) ack(lane core.Lane, refs ...core.Ref) int {
	r.Helper()
	n, err := r.store.Ack(context.Background(), r.now, lane, refs)
	if err != nil {
		r.Fatalf("Ack(%q, %v) failed: %v", lane, shortened(refs), err)
	}
	return n
}

// extend moves the ends of the leases to a time, and returns how many jobs counted.
func (r *rig) extend(end time.Time, lane core.Lane, refs ...core.Ref) int {
	r.Helper()
	n, err := r.store.Extend(context.Background(), end, lane, refs)
	if err != nil {
		r.Fatalf("Extend(%q, %v) failed: %v", lane, shortened(refs), err)
	}
	return n
}

// held returns the jobs that refs mean.
func (r *rig) held(lane core.Lane, refs ...core.Ref) []core.TakenJob {
	r.Helper()
	jobs, err := r.store.Held(context.Background(), lane, refs)
	if err != nil {
		r.Fatalf("Held(%q, %v) failed: %v", lane, shortened(refs), err)
	}
	return jobs
}

// refTo is a ref to a job under its lease. byID is a ref without a lease.
func refTo(j core.Job) core.Ref { return core.Ref{ID: j.ID, Lease: j.Lease} }
func byID(id core.ID) core.Ref  { return core.Ref{ID: id} }

// putAndTake puts n jobs in the rig's lane and takes them. It returns the jobs and their refs.
func (r *rig) putAndTake(n int) (jobs []core.TakenJob, refs []core.Ref) {
	r.Helper()
	for from := 0; from < n; from += 100 {
		r.accepted(r.arrival(lanes(r.lane, min(100, n-from))...))
	}
	jobs = r.take(n)
	for _, j := range jobs {
		refs = append(refs, refTo(j.Job))
	}
	return jobs, refs
}

// The usual case: a consumer names messages by the leases under which it received them.
func refsLease(r *rig) {
	jobs, refs := r.putAndTake(2)
	r.wantRefs("two leases", r.lane, refs, jobs[0].ID, jobs[1].ID)
}

// A ref without a lease means a running job under any lease. Operators use such refs.
func refsID(r *rig) {
	jobs, refs := r.putAndTake(3)
	r.wantRefs("an id and a lease", r.lane, []core.Ref{byID(jobs[0].ID), refs[2]}, jobs[0].ID, jobs[2].ID)
}

// A slow consumer may finish a message after its lease ended, as long as no other consumer
// received it.
func refsLate(r *rig) {
	jobs, refs := r.putAndTake(2)
	r.now = jobs[0].DueAt.Add(time.Hour)
	r.wantRefs("leases that are over", r.lane, []core.Ref{refs[0], byID(jobs[1].ID)}, jobs[0].ID, jobs[1].ID)
	r.nothingDue()
}

// Messages of the same Take that no ref names stay leased as they were.
func refsOthers(r *rig) {
	jobs, refs := r.putAndTake(3)
	r.wantRefs("the second", r.lane, refs[1:2], jobs[1].ID)
	r.wantJob(jobs[0].Job)
	r.wantJob(jobs[2].Job)
}

// An empty request must not mean all messages of the lane.
func refsNone(r *rig) {
	r.putAndTake(1)
	r.wantIgnored("no refs", r.lane)
}

// A consumer has a message that was delivered again to another consumer. The first consumer must
// not be able to ack it. After the second one acked it, no ref means it.
func refStale(r *rig) {
	j := r.taken()
	r.now = j.DueAt
	again := r.take(1)[0]
	r.wantIgnored("an older lease", r.lane, refTo(j.Job))
	r.wantRefs("its new one beside it", r.lane, []core.Ref{refTo(again.Job), refTo(j.Job)}, j.ID)
	r.wantIgnored("either", r.lane, refTo(j.Job), refTo(again.Job), byID(j.ID))
}

// A client of one queue must not end messages of another, nor of a lane whose name merely begins
// with the queue's name.
func refElsewhere(r *rig) {
	j := r.taken().Job
	r.wantIgnored("a job of another lane", "queue/other", refTo(j), byID(j.ID))
	r.wantIgnored("a job of a lane called like its beginning", r.lane[:len(r.lane)-1], refTo(j), byID(j.ID))
	r.wantJob(j)
}

// Messages that wait, were released or have ended are not acked, by lease or by id.
func refResting(r *rig) {
	back := r.taken().Job
	r.release(r.now.Add(leaseTime), back)
	var refs []core.Ref
	for _, s := range []core.Status{core.Completed, core.Retryable, core.Dead} {
		j := r.taken().Job
		r.settle(r.ended(j, s))
		refs = append(refs, refTo(j), byID(j.ID))
	}
	refs = append(refs, refTo(back), byID(back.ID), byID(r.put().ID), core.Ref{ID: r.put().ID, Lease: "unknown lease"})
	r.wantIgnored("jobs that do not run", r.lane, refs...)
}

// Unknown ids, empty refs, and ids and leases that belong to different jobs mean nothing.
func refMadeUp(r *rig) {
	j := r.taken().Job
	r.wantIgnored("made up ones", r.lane, byID(r.ids.Next()), byID(""), core.Ref{},
		core.Ref{ID: r.ids.Next(), Lease: j.Lease}, core.Ref{ID: j.ID, Lease: core.Lease(r.ids.Next())},
		core.Ref{Lease: j.Lease}, core.Ref{ID: core.ID(j.Lease), Lease: core.Lease(j.ID)})
	r.wantJob(j)
}

// refOdd sends odd texts as ids and leases, as any client may. Only a job's own id and lease mean
// the job. Some of them end a text in C, or are no valid UTF-8, which databases treat in different
// ways.
func refOdd(r *rig) {
	j := r.taken().Job
	var refs []core.Ref
	for _, s := range slices.Concat(nonEmpty(oddTexts, longTexts), []string{"\x00", "a\x00b", "\xff", "\xc3("}) {
		refs = append(refs, byID(core.ID(s)), core.Ref{ID: j.ID, Lease: core.Lease(s)},
			byID(j.ID+core.ID(s)), core.Ref{ID: j.ID, Lease: j.Lease + core.Lease(s)})
	}
	r.wantIgnored("odd text", r.lane, refs...)
	r.wantRefs("a job beside odd text", r.lane, append(refs, refTo(j)), j.ID)
}

// If a client names a message twice in one request, the message must count once.
func sameRef(r *rig) {
	jobs, refs := r.putAndTake(2)
	r.wantRefs("each ref twice", r.lane, []core.Ref{refs[1], refs[0], refs[1], refs[0]}, jobs[0].ID, jobs[1].ID)
}

// One message may be named by its lease and by its id in the same request.
func sameJob(r *rig) {
	jobs, refs := r.putAndTake(2)
	r.wantRefs("a job by lease and id", r.lane, []core.Ref{refs[0], byID(jobs[0].ID), refs[0], byID(jobs[0].ID)}, jobs[0].ID)
}

// A stale ref must not count, and must not hide a valid ref before or after it.
func sameOlder(r *rig) {
	old := r.taken()
	r.now = old.DueAt
	j := r.take(1)[0]
	all := []core.Ref{refTo(old.Job), refTo(j.Job), byID(j.ID), {ID: j.ID, Lease: "a"}, {ID: j.ID, Lease: "z"}}
	r.equal("Extend", r.extend(j.DueAt, r.lane, all...), 1)
	r.wantRefs("all of them", r.lane, all, j.ID)
}

// acked is a taken job as Ack leaves it.
func (r *rig) acked(j core.Job) core.Job {
	j.Status, j.Lease, j.LastError, j.DueAt, j.FinishedAt = core.Completed, "", "", time.Time{}, r.now
	return j
}

// An acked job is completed, without an attempt, and its lease counts for nothing any more. The
// second job of the Take is untouched.
func ackCompletes(r *rig) {
	jobs, refs := r.putAndTake(2)
	r.now = r.now.Add(time.Second)
	r.equal("Ack", r.ack(r.lane, refs[0]), 1)
	r.wantJob(r.acked(jobs[0].Job))
	r.wantJob(jobs[1].Job)
	r.equal("Attempts", r.attempts(jobs[0].ID), []core.Attempt{})
	r.equal("Depth", r.depth(), 1)
	r.equal("Settle under its lease: lost", r.lost(r.ended(jobs[0].Job, core.Dead)), []core.ID{jobs[0].ID})
}

// The error of an earlier attempt must disappear from a job that succeeded.
func ackAfterFailure(r *rig) {
	failed := r.settled(core.Retryable)
	r.now = failed.DueAt
	j := r.take(1)[0].Job
	r.equal("Ack", r.ack(r.lane, refTo(j)), 1)
	r.wantJob(r.acked(j))
	r.equal("Attempts: number", len(r.attempts(j.ID)), 1)
}

// ackMany acks more jobs than one statement takes on any database.
func ackMany(r *rig) {
	n := r.scaled(600)
	_, refs := r.putAndTake(n)
	slices.Reverse(refs)
	r.equal("Ack", r.ack(r.lane, refs...), n)
	r.equal("Ack again", r.ack(r.lane, refs...), 0)
	r.equal("Depth", r.depth(), 0)
}

// Neither time nor a late release may bring an acked message back.
func ackEnds(r *rig) {
	jobs, refs := r.putAndTake(1)
	r.ack(r.lane, refs...)
	r.now = r.now.Add(1000 * time.Hour)
	r.nothingDue()
	r.release(r.now, jobs[0].Job)
	r.nothingDue()
	r.equal("Due", r.due(r.lane), map[core.Lane]time.Time{})
}

// Callers ack one message by lease and by id at once. Exactly one of them may count it, since
// consumers count their work by the answer.
func raceAcks(r *rig) {
	for range r.scaled(20) {
		j := r.taken().Job
		var counted atomic.Int64
		r.concurrently(takers, func(i int) error {
			ref := refTo(j)
			if i%2 == 0 {
				ref = byID(j.ID)
			}
			n, err := r.store.Ack(context.Background(), r.now, r.lane, []core.Ref{ref})
			counted.Add(int64(n))
			return err
		})
		r.equal("acks that counted", counted.Load(), int64(1))
	}
}

// raceAckMany has several callers ack the same jobs, half of them in reverse order. Each job must
// be counted by one of them. Row locks in opposite orders can deadlock.
func raceAckMany(r *rig) {
	n := r.scaled(120)
	_, refs := r.putAndTake(n)
	var counted atomic.Int64
	r.concurrently(takers, func(i int) error {
		own := slices.Clone(refs)
		if i%2 == 0 {
			slices.Reverse(own)
		}
		for some := range slices.Chunk(own, 20) {
			acked, err := r.store.Ack(context.Background(), r.now, r.lane, some)
			if err != nil || acked > len(some) {
				return fmt.Errorf("Ack of %d = %d, %v", len(some), acked, err)
			}
			counted.Add(int64(acked))
		}
		return nil
	})
	r.equal("jobs that were counted", counted.Load(), int64(n))
	r.equal("Tallies", r.tallies(r.lane)[r.lane], core.Tally{})
	r.equal("Ended", r.countEnded(r.lane)[r.lane], core.Ended{})
}

// raceOwnCounts has several callers extend and ack jobs of their own, each beside a ref that means no
// job. A store may write the calls together, and each caller must get its own number.
func raceOwnCounts(r *rig) {
	const own = 3
	jobs, refs := r.putAndTake(own * takers)
	r.concurrently(takers, func(i int) error {
		mine := append(slices.Clone(refs[own*i:own*(i+1)]), core.Ref{ID: jobs[own*i].ID, Lease: "made-up"})
		for range r.scaled(8) {
			if n, err := r.store.Extend(context.Background(), r.now.Add(leaseTime), r.lane, mine); n != own || err != nil {
				return fmt.Errorf("Extend of %d jobs = %d, %v", own, n, err)
			}
		}
		for k := range own {
			n, err := r.store.Ack(context.Background(), r.now, r.lane, append(mine[k:k+1:k+1], mine[own]))
			if n != 1 || err != nil {
				return fmt.Errorf("Ack of a job = %d, %v", n, err)
			}
		}
		n, err := r.store.Ack(context.Background(), r.now, r.lane, mine)
		if n != 0 || err != nil {
			return fmt.Errorf("Ack of completed jobs = %d, %v", n, err)
		}
		return nil
	})
	r.equal("Ended", r.countEnded(r.lane)[r.lane], core.Ended{})
	r.equal("Depth", r.depth(), 0)
}

// The message is redelivered at the new end and not a millisecond before. The message beside it
// keeps its lease.
func extendLater(r *rig) {
	jobs, refs := r.putAndTake(2)
	end := r.now.Add(3 * leaseTime)
	r.equal("Extend", r.extend(end, r.lane, refs[0]), 1)
	want := jobs[0].Job
	want.DueAt = end
	r.wantJob(want)
	r.wantJob(jobs[1].Job)
	r.now = end.Add(-time.Millisecond)
	r.equal("Take before the end", ids(r.takeQuotas(r.quota(5))), []core.ID{jobs[1].ID})
	r.now = end
	r.takeOnly(jobs[0].ID, r.quota(1))
}

// A consumer that gives up moves the end closer, and the message is redelivered then.
func extendEarlier(r *rig) {
	j := r.taken().Job
	end := r.now.Add(time.Second)
	r.equal("Extend", r.extend(end, r.lane, refTo(j)), 1)
	r.equal("Due", r.due(r.lane)[r.lane], end)
	r.now = end.Add(-time.Millisecond)
	r.nothingDue()
	r.now = end
	r.equal("Take: attempt", r.takeOnly(j.ID, r.quota(1)).Attempt, 2)
}

// extendPast moves the end of a lease back by an hour from now. It runs at the machine's time,
// because a store may remember that nothing is due until then. An end in the past makes the
// message due immediately.
func extendPast(r *rig) {
	r.now = core.SystemClock().UTC().Truncate(time.Millisecond)
	j := r.taken().Job
	r.equal("Due", r.due(r.lane)[r.lane], j.DueAt)
	end := r.now.Add(-time.Hour)
	r.equal("Extend", r.extend(end, r.lane, refTo(j)), 1)
	r.equal("Take: attempt", r.takeOnly(j.ID, r.quota(1)).Attempt, 2)
}

// Some databases count only rows that change. With such a count, a consumer would believe that it
// lost the message.
func extendSame(r *rig) {
	jobs, refs := r.putAndTake(2)
	for range 3 {
		r.equal("Extend to the same time", r.extend(jobs[0].DueAt, r.lane, refs...), 2)
	}
	r.wantJob(jobs[0].Job)
}

// A batch consumer extends hundreds of messages in one call, and none may become due at the old
// end.
func extendMany(r *rig) {
	n := r.scaled(600)
	_, refs := r.putAndTake(n)
	r.equal("Extend", r.extend(r.now.Add(2*leaseTime), r.lane, refs...), n)
	r.now = r.now.Add(2*leaseTime - time.Millisecond)
	r.nothingDue()
}

// If an Extend made a new lease, the consumer could not ack the message any more. The lease has
// ended before the first Extend.
func extendLease(r *rig) {
	j := r.taken().Job
	r.now = j.DueAt.Add(time.Second)
	r.extend(r.now.Add(leaseTime), r.lane, refTo(j))
	r.equal("lease", r.job(j.ID).Lease, j.Lease)
	r.equal("Extend once more", r.extend(r.now.Add(2*leaseTime), r.lane, refTo(j)), 1)
	j.DueAt = r.now.Add(2 * leaseTime)
	r.wantJob(j)
	o := r.ended(j, core.Completed)
	r.settle(o)
	r.wantJob(after(j, o))
}

// An extension by id keeps the holder's lease, and an earlier holder stays locked out.
func extendLeaseByID(r *rig) {
	late := r.taken().Job
	r.now = late.DueAt
	holder := r.take(1)[0].Job
	r.equal("Extend by id", r.extend(r.now.Add(2*leaseTime), r.lane, byID(late.ID)), 1)
	holder.DueAt = r.now.Add(2 * leaseTime)
	r.wantJob(holder)
	r.wantLost(r.ended(late, core.Completed), holder)
	r.equal("Ack by the holder", r.ack(r.lane, refTo(holder)), 1)
}

// Held brings messages with their events, also after the leases ended.
func heldEvents(r *rig) {
	jobs := []core.TakenJob{r.taken(), r.taken()}
	r.equal("Held", r.held(r.lane, refTo(jobs[0].Job), byID(jobs[1].ID)), jobs)
	r.now = r.now.Add(2 * leaseTime)
	r.equal("Held after the end of the leases", r.held(r.lane, refTo(jobs[0].Job), byID(jobs[1].ID)), jobs)
}

// The refs are in reverse order, and the answer must not follow them.
func heldOrder(r *rig) {
	n := r.scaled(300)
	jobs, refs := r.putAndTake(n)
	slices.Reverse(refs)
	want := ids(jobs)
	slices.Sort(want)
	r.equal("Held", ids(r.held(r.lane, refs...)), want)
}

// Consumers call Held to look at their messages. It must not extend a lease.
func heldReads(r *rig) {
	_, refs := r.putAndTake(2)
	want := r.state()
	r.held(r.lane, refs...)
	r.equal("state after Held", r.state(), want)
}
