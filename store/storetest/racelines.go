package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// lineLog records the attempts of a race, and violations of the promises of lines.
type lineLog struct {
	mu      sync.Mutex
	limit   int
	running map[string]int       // by key
	done    map[string][]core.ID // by key, in the order of completion
	wrong   []string
}

// begin records the start of an attempt.
func (l *lineLog) begin(j core.TakenJob) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running[j.Line]++; l.running[j.Line] > l.limit {
		l.wrong = append(l.wrong, fmt.Sprintf("%d jobs of line %s are under way, want at most %d", l.running[j.Line], j.Line, l.limit))
	}
}

// end records the end of an attempt, before it is settled: after that the next job may begin.
func (l *lineLog) end(j core.TakenJob, s core.Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[j.Line]--
	if s == core.Completed {
		l.done[j.Line] = append(l.done[j.Line], j.ID)
	}
}

// Senders accept jobs of a few lines while workers take and settle them. The jobs of one sender are
// in the order in which it sent them; those of two senders may be in any order.
func raceLines(r *rig) {
	for _, limit := range []int{1, 3} {
		r.lane = core.HandlerLane(fmt.Sprint("race-", limit))
		raceLinesOf(r, limit)
	}
}

func raceLinesOf(r *rig, limit int) {
	const senders, keys = 3, 4
	each := r.scaled(40)
	log := &lineLog{limit: limit, running: map[string]int{}, done: map[string][]core.ID{}}
	sent := make([][]core.Arrival, senders)
	for s := range sent {
		for i := range each {
			sent[s] = append(sent[s], r.lined(fmt.Sprint("k", i%keys), limit))
		}
	}
	var left sync.WaitGroup
	left.Add(senders * each)
	finished := make(chan struct{})
	go func() { left.Wait(); close(finished) }()
	r.concurrently(senders+4, func(i int) error {
		if i < senders {
			for _, a := range sent[i] {
				if _, err := r.store.Accept(context.Background(), a); err != nil {
					return err
				}
			}
			return nil
		}
		return r.workLines(log, i, limit, finished, left.Done)
	})
	for _, w := range log.wrong {
		r.Errorf("%s", w)
	}
	for s := range sent {
		at := map[string]int{}
		for _, a := range sent[s] {
			key := a.Jobs[0].Line.Key
			n := slices.Index(log.done[key], a.Jobs[0].ID)
			if n < 0 {
				r.Errorf("job %s of line %s was never completed", a.Jobs[0].ID, key)
			} else if limit == 1 && n < at[key] {
				r.Errorf("job %s of line %s was completed at place %d, behind a later job", a.Jobs[0].ID, key, n)
			}
			at[key] = n
		}
	}
	r.equal("lines", len(r.linesOf(r.lane).Items), 0)
}

// workLines takes and settles jobs of lines until all are completed. Each third attempt fails.
func (r *rig) workLines(log *lineLog, seed, limit int, finished chan struct{}, done func()) error {
	const patience = time.Minute
	deadline := time.Now().Add(patience)
	for n := seed; time.Now().Before(deadline); {
		select {
		case <-finished:
			return nil
		default:
		}
		q := r.quota(3)
		q.Lines = limit
		jobs, err := r.store.Take(context.Background(), r.now, []core.Quota{q})
		if err != nil {
			return err
		}
		for _, j := range jobs {
			log.begin(j)
		}
		for _, j := range jobs {
			status := core.Completed
			if n++; n%3 == 0 && j.Attempt < j.MaxAttempts {
				status = core.Retryable
			}
			o := r.ended(j.Job, status)
			o.Lane, o.Line = j.Lane, core.Line{Key: j.Line, Limit: limit}
			if status == core.Retryable {
				o.DueAt = r.now
			}
			log.end(j, status)
			if _, err := r.store.Settle(context.Background(), o); err != nil {
				return err
			}
			if status == core.Completed {
				done()
			}
		}
	}
	return fmt.Errorf("jobs of %s are left after %v; lines %+v", r.lane, patience, r.linesOf(r.lane).Items)
}

// Several processes fill a line after a reload. Each of them reads the same free slots.
func raceFills(r *rig) {
	const callers, limit = 4, 4
	some := r.putLined("x", 1, callers*limit)
	r.concurrently(callers, func(int) error {
		_, err := r.store.Fill(context.Background(), r.now, r.lane, limit, "")
		return err
	})
	r.takeLined(limit, some[:limit]...)
	r.equal("lines", r.linesOf(r.lane).Items, []core.LineState{{Key: "x", Admitted: limit, Waiting: len(some) - limit}})
}
