package storetest

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of the calls that queues need beside Take: messages whose last lease ended, counts,
// looking without taking, dead letters and draining. A failure means that a message disappears
// without a trace, or that operators see a wrong backlog.

const (
	saysLapsed      = "Lapsed returns up to limit running jobs of the lanes, with their events, whose lease is over and whose last attempt is used up, the longest over of each lane first"
	saysLapsedSpent = "A Take would return these jobs as [Job.Spent]; Lapsed finds them in lanes from which no process takes"
	saysLapsedReads = "It writes nothing, and other jobs in the lanes do not make it slower"
	saysTallies     = "Tallies counts the unfinished jobs of lanes, each number up to MaxDepth"
	saysNoTally     = "Lanes without such jobs have the zero Tally"
	saysEndedJobs   = "Ended counts the dead and the canceled jobs of lanes, each number up to MaxDepth"
	saysNoneEnded   = "Lanes without such jobs have the zero Ended"
	saysPeek        = "Peek returns the jobs of a lane that are due, longest due first, with their events: the jobs that Take would return, in its order, without leasing them"
	saysPeekLimit   = "Limit is 1 to MaxPage"
	saysDead        = "DeadLetters lists the dead jobs of a lane newest first, with their events; if after is set, only jobs below that id"
	saysDeadLimit   = "Limit is as in a JobFilter"
	saysPeekBytes   = "The list ends before the job whose event would make it exceed MaxRead, but has at least one job if any is due"
	saysDeadBytes   = "A page ends before the job whose event would make it exceed MaxRead, but has at least one job if there is any"
	saysDrain       = "Drain deletes jobs of a lane that are neither completed nor canceled and whose id is below the given one, with their attempts, and returns the number of deleted jobs: at most limit, and fewer only if no more are left"
	saysDrainHeld   = "A lease of a deleted job is void"
	saysDrainEvents = "The events of the jobs stay until they are purged"
)

// queues holds the checks of the Worklist, the Ledger and Upkeep for queues. counter.go has the
// checks of refs.
var queues = role{name: "Queues", checks: []check{
	// Messages whose last lease ended.
	{saysLapsed, "", lapsedOver},
	{saysLapsed, "of the lanes", lapsedLanes},
	{saysLapsed, "longest over first", lapsedOrder},
	{saysLapsed, "limit", lapsedLimit},
	{saysLapsedSpent, "", lapsedSpent},
	{saysLapsedReads, "", lapsedReads},
	// Counts for metrics and operators.
	{saysTallies, "", tallyEach},
	{saysTallies, "of the lanes", tallyLanes},
	{saysTallies, "at the given time", tallyTime},
	{saysTallies, "after a failed attempt", tallyRetryable},
	{saysTallies, "scheduled", tallyScheduled},
	{saysTallies, "oldest due time", tallyOldest},
	{saysNoTally, "", tallyNone},
	{saysEndedJobs, "", endedEach},
	{saysEndedJobs, "of the lanes", endedLanes},
	{saysNoneEnded, "", endedNone},
	// Looking without taking.
	{saysPeek, "", peekDue},
	{saysPeek, "in the order of Take", peekOrder},
	{saysPeek, "unchanged jobs", peekAsIs},
	{saysPeek, "lease over", peekOver},
	{saysPeek, "scheduled", peekScheduled},
	{saysPeek, "writes nothing", peekReads},
	{saysPeek, "behind jobs of a held source", sourcePeeked},
	{saysPeekLimit, "", peekLimit},
	{saysPeekBytes, "", peekBytes},
	// Dead messages, and their removal.
	{saysDead, "", deadLetters},
	{saysDead, "of the lane", deadLane},
	{saysDead, "one by one", deadPages},
	{saysDeadLimit, "", deadLimit},
	{saysDeadBytes, "", deadBytes},
	{saysDrain, "", drainAll},
	{saysDrain, "of the lane", drainLane},
	{saysDrain, "below the id", drainBelow},
	{saysDrain, "limit", drainLimit},
	{saysDrain, "many", drainMany},
	{saysDrain, "concurrent callers", raceDrains},
	{saysDrainHeld, "", drainHeld},
	{saysDrainEvents, "", drainEvents},
}}

// lapsed returns at most limit jobs of lanes whose last lease is over at the rig's time.
func (r *rig) lapsed(limit int, lanes ...core.Lane) []core.TakenJob {
	r.Helper()
	jobs, err := r.store.Lapsed(context.Background(), r.now, lanes, limit)
	if err != nil {
		r.Fatalf("Lapsed(%q, %d) failed: %v", lanes, limit, err)
	}
	return jobs
}

// peek returns at most limit due jobs of a lane.
func (r *rig) peek(lane core.Lane, limit int) []core.TakenJob {
	r.Helper()
	jobs, err := r.store.Peek(context.Background(), r.now, lane, limit)
	if err != nil {
		r.Fatalf("Peek(%q, %d) failed: %v", lane, limit, err)
	}
	return jobs
}

// deadLetters returns a page of dead jobs of a lane.
func (r *rig) deadLetters(lane core.Lane, after core.ID, limit int) core.Page[core.TakenJob] {
	r.Helper()
	p, err := r.store.DeadLetters(context.Background(), lane, after, limit)
	if err != nil {
		r.Fatalf("DeadLetters(%q, %q, %d) failed: %v", lane, after, limit, err)
	}
	return p
}

// drainOf deletes at most limit unfinished or dead jobs below an id, and returns their number.
func (r *rig) drainOf(lane core.Lane, below core.ID, limit int) int {
	r.Helper()
	n, err := r.store.Drain(r.asked(), lane, below, limit)
	if err != nil {
		r.Fatalf("Drain(%q, %q, %d) failed: %v", lane, below, limit, err)
	}
	return n
}

// last takes a new job with a single attempt.
func (r *rig) last() core.TakenJob {
	r.Helper()
	a := r.arrival(r.lane)
	a.Jobs[0].MaxAttempts = 1
	r.accepted(a)
	return r.takeOnly(a.Jobs[0].ID, r.quota(1))
}

// Lapsed returns the job from the end of its last lease on, until the job is extended or settled.
// It does not return jobs with attempts left, jobs without a limit of attempts, or jobs that were
// never taken.
func lapsedOver(r *rig) {
	j := r.last()
	left := r.taken() // has attempts left
	endless := r.arrival(r.lane)
	endless.Jobs[0].MaxAttempts = core.Unlimited
	r.accepted(endless)
	r.take(1)
	a := r.arrival(r.lane)
	a.Jobs[0].MaxAttempts = 1
	r.now = j.DueAt.Add(-time.Millisecond)
	r.equal("Lapsed before the end of the lease", r.lapsed(9, r.lane), []core.TakenJob{})
	r.now = j.DueAt
	r.accepted(a) // not yet taken
	r.equal("Lapsed", r.lapsed(9, r.lane), []core.TakenJob{j})
	r.equal("Extend", r.extend(r.now.Add(leaseTime), r.lane, refTo(j.Job)), 1)
	r.equal("Lapsed once it is extended", r.lapsed(9, r.lane), []core.TakenJob{})
	r.now = r.now.Add(leaseTime)
	r.settle(r.ended(j.Job, core.Dead))
	r.equal("Lapsed once it is settled", r.lapsed(9, r.lane), []core.TakenJob{})
	r.equal("status of a job with attempts left", r.job(left.ID).Status, core.Running)
}

// The jobs come in the order of the lanes in the call. Other lanes are left out.
func lapsedLanes(r *rig) {
	want := map[core.Lane]core.TakenJob{}
	all := []core.Lane{"queue/a", "queue/b", "queue/c"}
	for _, l := range all {
		r.lane = l
		want[l] = r.last()
	}
	r.now = r.now.Add(leaseTime)
	r.equal("Lapsed(c, a)", r.lapsed(9, "queue/c", "queue/a", "queue/nobody"), []core.TakenJob{want["queue/c"], want["queue/a"]})
	r.equal("Lapsed of no lane", r.lapsed(9), []core.TakenJob{})
	r.equal("Lapsed of an unknown lane", r.lapsed(9, "queue/nobody"), []core.TakenJob{})
}

// The leases end in another order than that of the ids. The jobs come in the order of those ends.
func lapsedOrder(r *rig) {
	a, b, c := r.last(), r.last(), r.last()
	r.extend(a.DueAt.Add(time.Second), r.lane, refTo(b.Job))
	r.extend(a.DueAt.Add(-time.Second), r.lane, refTo(c.Job))
	r.now = r.now.Add(2 * leaseTime)
	r.equal("Lapsed", ids(r.lapsed(9, r.lane)), []core.ID{c.ID, a.ID, b.ID})
	r.equal("Lapsed of two", ids(r.lapsed(2, r.lane)), []core.ID{c.ID, a.ID})
}

// The limit holds for all lanes together.
func lapsedLimit(r *rig) {
	var want []core.ID
	all := []core.Lane{"queue/a", "queue/b"}
	for _, l := range all {
		r.lane = l
		for range 3 {
			want = append(want, r.last().ID)
		}
	}
	r.now = r.now.Add(leaseTime)
	for _, n := range []int{0, 1, 3, 4, 6} {
		r.equal("Lapsed", ids(r.lapsed(n, all...)), want[:n])
	}
	r.equal("Lapsed", ids(r.lapsed(7, all...)), want)
}

// The same job is found by Lapsed and by Take, so that it dies in lanes with and without takers.
func lapsedSpent(r *rig) {
	r.lane = "queue/q"
	j := r.last()
	r.now = j.DueAt
	r.equal("Lapsed", ids(r.lapsed(9, r.lane)), []core.ID{j.ID})
	taken := r.take(1)[0]
	r.equal("Spent of the same job, taken", taken.Spent(), true)
	r.equal("Lapsed while it is held", ids(r.lapsed(9, r.lane)), []core.ID{})
	r.now = taken.DueAt
	r.equal("Lapsed when that lease is over as well", ids(r.lapsed(9, r.lane)), []core.ID{j.ID})
	o := r.ended(taken.Job, core.Dead)
	r.settle(o)
	r.equal("Lapsed once it is dead", ids(r.lapsed(9, r.lane)), []core.ID{})
}

// Lapsed is called often, for lanes with many jobs, so it must not write.
func lapsedReads(r *rig) {
	r.last()
	r.now = r.now.Add(leaseTime)
	want := r.state()
	r.lapsed(9, r.lane)
	r.equal("state after Lapsed", r.state(), want)
}

// Peek shows jobs with their events from their due time on, the longest due first.
func peekDue(r *rig) {
	a, b := r.arrival(r.lane, "queue/other"), r.arrival(r.lane)
	late := r.arrival(r.lane)
	late.Event.CreatedAt = r.now.Add(time.Millisecond)
	b.Event.Payload = []byte("another")
	var want []core.TakenJob
	for _, x := range []core.Arrival{late, a, b} {
		want = append(want, core.TakenJob{Job: r.accepted(x)[0], Event: x.Event})
	}
	r.equal("Peek", r.peek(r.lane, 9), want[1:])
	r.now = r.now.Add(time.Millisecond)
	r.equal("Peek a millisecond later", r.peek(r.lane, 9), append(want[1:], want[0]))
	r.equal("Peek of an unknown lane", r.peek("queue/nobody", 9), []core.TakenJob{})
	r.take(3)
	r.equal("Peek once they are taken", r.peek(r.lane, 9), []core.TakenJob{})
}

// Peek returns eight jobs in the order in which single takes return them.
func peekOrder(r *rig) {
	r.putReversed(lanes(r.lane, 5)...)
	r.accepted(r.arrival(lanes(r.lane, 3)...))
	want := ids(r.peek(r.lane, 9))
	r.equal("Peek of three", ids(r.peek(r.lane, 3)), want[:3])
	for i, id := range want {
		r.equal("Take of one, the "+nth(i), r.take(1)[0].ID, id)
	}
	r.equal("jobs", len(want), 8)
}

// The shown jobs are the stored ones, without a lease and with the count of attempts as it is.
func peekAsIs(r *rig) {
	failed := r.settled(core.Retryable)
	r.now = failed.DueAt
	fresh := r.put()
	var got []core.Job
	for _, j := range r.peek(r.lane, 9) {
		got = append(got, j.Job)
	}
	r.equal("Peek", got, []core.Job{failed, fresh})
}

// A job whose lease is over is shown as retryable, from that moment on.
func peekOver(r *rig) {
	j := r.last()
	r.now = j.DueAt.Add(-time.Millisecond)
	r.equal("Peek before the end of the lease", r.peek(r.lane, 9), []core.TakenJob{})
	r.now = j.DueAt
	j.Status = core.Retryable
	r.equal("Peek", r.peek(r.lane, 9), []core.TakenJob{j})
}

// Peek must not lease, since an operator's look would then delay the message.
func peekReads(r *rig) {
	r.taken()
	r.now = r.now.Add(leaseTime)
	r.put()
	want := r.state()
	r.peek(r.lane, 9)
	r.equal("state after Peek", r.state(), want)
	r.take(2)
}

// Limits from 1 to MaxPage are permitted.
func peekLimit(r *rig) {
	r.putMany(3)
	for _, n := range []int{1, 2, 3, core.MaxPage} {
		r.equal("Peek: number", len(r.peek(r.lane, n)), min(n, 3))
	}
}

// deadJobs returns n new dead jobs.
func (r *rig) deadJobs(n int) (dead []core.TakenJob) {
	r.Helper()
	for range n {
		j := r.settled(core.Dead)
		dead = append(dead, core.TakenJob{Job: j, Event: r.storedEvent(j.EventID)})
	}
	return dead
}

// Only dead jobs are listed, newest first, and a retried one is no longer among them.
func deadLetters(r *rig) {
	want := newest(r.deadJobs(3))
	r.settled(core.Completed)
	r.settled(core.Retryable)
	r.put()
	r.equal("DeadLetters", r.deadLetters(r.lane, "", 9), core.Page[core.TakenJob]{Items: want})
	r.retry(want[1].ID, "")
	r.equal("DeadLetters after a retry", ids(r.deadLetters(r.lane, "", 9).Items), []core.ID{want[0].ID, want[2].ID})
}

// Another lane's dead jobs do not appear.
func deadLane(r *rig) {
	other := r.deadJobs(1)
	r.lane = "queue/b"
	want := newest(r.deadJobs(2))
	r.equal("DeadLetters", r.deadLetters(r.lane, "", 9).Items, want)
	r.equal("DeadLetters of the other", r.deadLetters("handler/billing", "", 9).Items, other)
	r.equal("DeadLetters of an unknown lane", r.deadLetters("queue/nobody", "", 9), core.Page[core.TakenJob]{})
}

// Pages lead through all dead jobs.
func deadPages(r *rig) {
	want := ids(newest(r.deadJobs(5)))
	for _, limit := range []int{1, 2, 5, 6} {
		var got []core.ID
		var after core.ID
		for more := true; more; {
			p := r.deadLetters(r.lane, after, limit)
			if len(p.Items) == 0 || len(p.Items) > limit {
				r.Fatalf("DeadLetters(after %q, %d) has %d items", after, limit, len(p.Items))
			}
			got, more = append(got, ids(p.Items)...), p.More
			after = got[len(got)-1]
		}
		r.equal("DeadLetters, page by page", got, want)
	}
}

// A limit of 0 means the default, and MaxPage is permitted, as in other listings.
func deadLimit(r *rig) {
	r.accepted(r.arrival(lanes(r.lane, core.DefaultPage+1)...))
	var outcomes []core.Outcome
	for _, j := range r.take(core.DefaultPage + 1) {
		outcomes = append(outcomes, r.ended(j.Job, core.Dead))
	}
	r.settle(outcomes...)
	p := r.deadLetters(r.lane, "", 0)
	r.equal("DeadLetters with a limit of 0: number", len(p.Items), core.DefaultPage)
	r.equal("DeadLetters with a limit of 0: More", p.More, true)
	p = r.deadLetters(r.lane, "", core.MaxPage)
	r.equal("DeadLetters with the largest limit: number", len(p.Items), core.DefaultPage+1)
	r.equal("DeadLetters with the largest limit: More", p.More, false)
}

// putLarge stores four messages. Two of them fit into MaxRead, and three do not.
func putLarge(r *rig) []core.Job { return r.putSized(4, core.MaxRead*2/5) }

// Large messages must not fill the memory. A single one is shown in any case.
func peekBytes(r *rig) {
	want := putLarge(r)
	r.equal("Peek", ids(r.peek(r.lane, 9)), ids(want[:2]))
	r.equal("Peek of one", ids(r.peek(r.lane, 1)), ids(want[:1]))
}

// A page that ends by its bytes has a next page, with the rest. The messages are taken one by one,
// since D1's engine needs seconds for all four on a busy machine.
func deadBytes(r *rig) {
	for range putLarge(r) {
		r.settle(r.ended(r.take(1)[0].Job, core.Dead))
	}
	var after core.ID
	for _, want := range []struct {
		items int
		more  bool
	}{{2, true}, {2, false}} {
		p := r.deadLetters(r.lane, after, 9)
		r.equal("DeadLetters: number", len(p.Items), want.items)
		r.equal("DeadLetters: More", p.More, want.more)
		for _, j := range p.Items {
			r.equal("DeadLetters: payload", len(j.Event.Payload), core.MaxRead*2/5)
			after = j.ID
		}
	}
}
