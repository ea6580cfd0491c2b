package worker

import (
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// crowding is how many slots a lane may hold for each free slot. It keeps room for a lane
// that gets work while other handlers hang: one lane alone gets about two thirds of the
// slots, and a second one two thirds of the rest.
const crowding = 2

// A queue holds the jobs that were taken and whose attempts have not ended: jobs that must
// not start yet, jobs that wait for a slot, and the number of jobs that have a slot. It gives
// a free slot to the lane that has fewest.
type queue struct {
	mu      sync.Mutex
	more    sync.Cond // a waiting job may have become eligible
	slots   int
	lines   map[core.Lane]*line
	queued  []*line          // those with a waiting job
	busy    int              // slots in use
	delayed []*core.TakenJob // in the order of their StartAt
	ended   bool
	pace    *pace

	// Room for jobs that are being taken in the commit that stores them: see Express.
	reserved int
	arriving sync.WaitGroup // one for each of reserved, until arrived
	behind   []*line        // lines that are behind
}

// A line is a lane in a queue.
type line struct {
	waiting []*core.TakenJob
	running int
	delayed int     // jobs of queue.delayed
	send    average // of the jobs that had a slot

	reserved int  // the line's part of queue.reserved
	behind   bool // older jobs of the lane wait in the store, so newer ones are not taken at once
	nexts    int  // next jobs of runs that were to be taken while it was behind
}

func newQueue(slots int, lanes []core.Lane) *queue {
	q := &queue{slots: slots, lines: make(map[core.Lane]*line, len(lanes)), pace: &pace{}}
	q.more.L = &q.mu
	for _, l := range lanes {
		q.join(l)
	}
	return q
}

// join gives a lane its line, unless it has one.
func (q *queue) join(l core.Lane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lines[l] == nil {
		q.lines[l] = &line{}
	}
}

// put adds jobs that were taken.
func (q *queue) put(now time.Time, jobs []*core.TakenJob) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, j := range jobs {
		if j.StartAt.After(now) {
			q.delay(j)
		} else {
			q.wait(j)
		}
	}
}

// wait appends a job to its lane's line. The caller holds mu.
func (q *queue) wait(j *core.TakenJob) {
	l := q.lines[j.Lane]
	if l.waiting = append(l.waiting, j); len(l.waiting) == 1 {
		q.queued = append(q.queued, l)
	}
	q.more.Signal()
}

// delay keeps a job until its start. The caller holds mu.
func (q *queue) delay(j *core.TakenJob) {
	at, _ := slices.BinarySearchFunc(q.delayed, j, func(a, b *core.TakenJob) int {
		if a.StartAt.After(b.StartAt) {
			return 1
		}
		return -1 // behind those of the same time
	})
	q.delayed = slices.Insert(q.delayed, at, j)
	q.lines[j.Lane].delayed++
}

// startDue lets delayed jobs wait for a slot once they may start. It returns when the next
// job may start; zero if there is none.
func (q *queue) startDue(now time.Time) (next time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for ; n < len(q.delayed) && !q.delayed[n].StartAt.After(now); n++ {
		q.lines[q.delayed[n].Lane].delayed--
		q.wait(q.delayed[n])
	}
	q.delayed = slices.Delete(q.delayed, 0, n)
	if len(q.delayed) > 0 {
		next = q.delayed[0].StartAt
	}
	return next
}

// next waits for a job that may have a slot. False means that the queue has ended.
func (q *queue) next() (*core.TakenJob, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.ended {
			return nil, false
		}
		if l := q.choose(); l != nil {
			job := l.waiting[0]
			q.setWaiting(l, slices.Delete(l.waiting, 0, 1))
			l.running++
			q.busy++
			return job, true
		}
		q.more.Wait()
	}
}

// setWaiting replaces the waiting jobs of a line by fewer. The caller holds mu.
func (q *queue) setWaiting(l *line, jobs []*core.TakenJob) {
	if l.waiting = jobs; len(jobs) == 0 {
		q.queued = slices.DeleteFunc(q.queued, func(other *line) bool { return other == l })
	}
}

// choose returns the line that gets the next slot. Of the lines that may have one more, it is
// the line with the fewest slots, and among equals the line whose job has waited longest.
func (q *queue) choose() (best *line) {
	for _, l := range q.queued {
		if !q.fits(l.running, q.slots-q.busy) {
			continue
		}
		if best == nil || l.running < best.running ||
			l.running == best.running && l.waiting[0].DueAt.Before(best.waiting[0].DueAt) {
			best = l
		}
	}
	return best
}

// fits reports whether a lane with some running jobs may have one more of the free slots: its
// equal part in any case, beyond that only while room is left for lanes that have none.
func (q *queue) fits(running, free int) bool {
	return running < max(1, q.slots/len(q.lines)) || free > 1 && running < crowding*free
}

// done gives back the slot of a job, which had it for a time, or for none if the job was not sent.
func (q *queue) done(lane core.Lane, took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[lane]
	l.running--
	if took > 0 {
		l.send.add(took)
	}
	q.busy--
	q.more.Signal() // the slot takes the next job itself; its lane may have blocked two others
}

// reserve keeps room for a job of a lane that is about to be taken in the commit that stores it. False
// means that there is none, or that older jobs of the lane wait in the store. In the first case the job
// will wait there, so newer ones have to as well, until a claim has got it.
func (q *queue) reserve(lane core.Lane) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[lane]
	if q.ended || l.behind {
		return false
	}
	if !q.hasRoom(l, 2*q.pace.take.get()) {
		q.markBehind(l)
		return false
	}
	q.keep(l)
	return true
}

// turnOfOlder is how often a run gives way to older jobs while such jobs of its workflow wait in the store:
// one of so many next steps waits behind them.
const turnOfOlder = 16

// nextAhead is for how long at most such a job may have to wait for a slot.
const nextAhead = 200 * time.Millisecond

// reserveNext keeps room for the job of a run's next step, which is about to be taken in the commit that
// ends the step before it. Runs that have begun go on first, so that they end sooner, but not always:
// see turnOfOlder. The job takes the place of the one whose attempt has ended, so there is more room than
// for new jobs, which would have the places of others.
func (q *queue) reserveNext(lane core.Lane) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[lane]
	if q.ended || !q.hasRoom(l, nextAhead) {
		return false
	}
	if l.behind {
		if l.nexts++; l.nexts%turnOfOlder == 0 {
			return false
		}
	}
	q.keep(l)
	return true
}

// keep keeps room for a job of a line. The caller holds mu.
func (q *queue) keep(l *line) {
	l.reserved++
	q.reserved++
	q.arriving.Add(1)
}

// mostAhead bounds the jobs that hasRoom lets wait, for each slot, and so the memory for their events.
const mostAhead = 4

// hasRoom reports whether one more job of a line may be taken: for a slot that the line may have, or to wait
// here for one. While a commit is under way attempts end, and their slots need the next jobs at once. So
// beyond the free slots there is room for as many jobs as attempts end during a time: in all slots, and in
// those that the line may have. For new jobs it is the time of two commits. Jobs of a slow handler do not wait
// here, where no other process can deliver them. The caller holds mu.
func (q *queue) hasRoom(l *line, during time.Duration) bool {
	spare, most := q.spare(l.running), mostAhead*q.slots
	return len(l.waiting)+q.reserved < spare+ending(q.slots, during, q.pace.send.get(), most) &&
		len(l.waiting)+l.reserved < spare+ending(l.running+spare, during, l.send.get(), most)
}

// arrive gives room back that was reserved, and has the job that was taken wait for a slot, unless it
// is nil. False means that the queue has ended. The caller calls arrived when it has dealt with that.
func (q *queue) arrive(lane core.Lane, job *core.TakenJob) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lines[lane].reserved--
	q.reserved--
	if job != nil && !q.ended {
		q.wait(job)
	}
	return !q.ended
}

// arrived ends an arrival, for awaitArrivals.
func (q *queue) arrived() { q.arriving.Done() }

// awaitArrivals waits until all arrivals have ended, or until done is closed. The queue has ended.
func (q *queue) awaitArrivals(done <-chan struct{}) {
	none := make(chan struct{})
	go func() {
		q.arriving.Wait()
		close(none)
	}()
	select {
	case <-none:
	case <-done:
	}
}

// setBehind says in which lanes older jobs wait in the store, and that in the others none are known
// to.
func (q *queue) setBehind(lanes []core.Lane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.behind {
		l.behind = false
	}
	q.behind = q.behind[:0]
	for _, name := range lanes {
		q.markBehind(q.lines[name])
	}
}

// markBehind marks a line as behind. The caller holds mu.
func (q *queue) markBehind(l *line) {
	l.behind = true
	q.behind = append(q.behind, l)
}

// withdraw removes and returns the jobs of a lane that have no slot. A probe stays.
func (q *queue) withdraw(l core.Lane) (jobs []*core.TakenJob) {
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.lines[l]
	var probes []*core.TakenJob
	for _, j := range own.waiting {
		if j.Probe {
			// The probe is the delivery that may close the breaker again.
			probes = append(probes, j)
		} else {
			jobs = append(jobs, j)
		}
	}
	q.setWaiting(own, probes)
	return jobs
}

// end gives out no more slots, and returns the jobs that have none.
func (q *queue) end() (jobs []*core.TakenJob) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	for _, l := range q.queued {
		jobs = append(jobs, l.waiting...)
		l.waiting = nil
	}
	for _, j := range q.delayed {
		q.lines[j.Lane].delayed--
	}
	jobs = append(jobs, q.delayed...)
	q.queued, q.delayed = nil, nil
	q.more.Broadcast()
	return jobs
}

// load returns how many slots are free, how many waiting jobs may have one, those that are being
// taken included, and whether the queue holds no job at all.
func (q *queue) load() (free, waiting int, idle bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.queued {
		waiting += min(len(l.waiting), q.spare(l.running))
	}
	waiting += q.reserved
	idle = q.busy+len(q.delayed)+len(q.queued) == 0
	return q.slots - q.busy, waiting, idle
}

// A claim is the number of jobs that a lane may take now.
type claim struct {
	lane  core.Lane
	held  int // jobs it has in the queue or in slots
	spare int // how many more slots it may have
	most  int // how many more jobs it may get
}

// claims returns the claims of lanes that may hold ahead jobs beyond their slots. While
// several lanes have work, no lane gets more than an equal part, since a slow lane may occupy
// its slots for a long time.
func (q *queue) claims(lanes []core.Lane, ahead int) []claim {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]claim, len(lanes))
	for i, name := range lanes {
		l := q.lines[name]
		all[i] = claim{lane: name, held: l.running + len(l.waiting) + l.delayed}
		spare := q.spare(l.running)
		if len(lanes) > 1 {
			// Rounded up, so that few slots and many lanes leave each lane one.
			part := (q.slots + len(lanes) - 1) / len(lanes)
			spare = min(spare, part-l.running)
		}
		all[i].spare = max(0, spare)
		if here := len(l.waiting) + l.delayed + l.reserved; spare > 0 {
			all[i].most = max(0, spare+ahead-here)
		}
	}
	return all
}

// spare returns how many more slots a lane with some running jobs may have, if no other lane
// takes any.
func (q *queue) spare(running int) int {
	free := q.slots - q.busy
	n := 0
	for n < free && q.fits(running+n, free-n) {
		n++
	}
	return n
}
