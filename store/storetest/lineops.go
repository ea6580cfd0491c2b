package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of the calls of operators and consumers on lines.

func lineRetriesStopped(r *rig) {
	some := r.putLined("x", 1, 2)
	r.endLined(r.takeLined(1, some[0])[0], core.Dead, 1)
	r.equal("retry", r.retry(some[0], ""), 1)
	r.equal("lines", r.linesOf(r.lane).Items, []core.LineState{{Key: "x", Admitted: 1, Waiting: 1}})
	r.endLined(r.takeLined(1, some[0])[0], core.Completed, 1)
	r.takeLined(1, some[1])
}

// Of two jobs that stop a line, each stops it until it is retried itself.
func lineRetriesOneOfTwo(r *rig) {
	some := r.putLined("x", 2, 3)
	taken := r.takeLined(2, some[0], some[1])
	want := []core.LineState{{Key: "x", Admitted: 2, Waiting: 1, StoppedAt: r.now, StoppedBy: some[1]}}
	r.endLined(taken[1], core.Dead, 2)
	r.equal("lines", r.linesOf(r.lane).Items, want)
	r.endLined(taken[0], core.Dead, 2)
	r.equal("retry", r.retry(some[0], ""), 1)
	r.equal("lines", r.linesOf(r.lane).Items, want)
	r.takeLined(2, some[0])
}

func lineRetriesAtEnd(r *rig) {
	some := r.putLined("x", 1, 3)
	j := r.takeLined(1, some[0])[0]
	o := r.ended(j.Job, core.Dead)
	o.Lane, o.Line = j.Lane, core.Line{Key: "x", Limit: 1}
	r.settle(o)
	r.equal("retry", r.retry(some[0], ""), 1)
	r.wantStatus(core.Waiting, some[0])
	for _, id := range []core.ID{some[1], some[2], some[0]} {
		r.endLined(r.takeLined(1, id)[0], core.Completed, 1)
	}
}

// A Retry of all dead jobs revives jobs of stopped lines and jobs of no line.
func lineRetriesAll(r *rig) {
	some := r.putLined("x", 1, 2)
	r.endLined(r.takeLined(1, some[0])[0], core.Dead, 1)
	plain := r.put()
	r.settle(r.ended(r.takeLined(1, plain.ID)[0].Job, core.Dead))
	r.equal("retry", r.retry("", r.lane), 2)
	r.takeLined(1, some[0], plain.ID)
}

func lineDrains(r *rig) {
	some := r.putLined("x", 1, 4)
	r.takeLined(1, some[0])
	r.equal("drained", r.drainOf(r.lane, some[2], core.MaxPage), 2)
	r.equal("lines", r.linesOf(r.lane).Items, []core.LineState{{Key: "x", Admitted: 1, Waiting: 1}})
	r.takeLined(1, some[2])
	r.equal("drained", r.drainOf(r.lane, newestID, core.MaxPage), 2)
	r.equal("lines", len(r.linesOf(r.lane).Items), 0)
	r.takeLined(1, r.putLined("x", 1, 1)...)
}

func linePurges(r *rig) {
	some := r.putLined("x", 1, 1)
	r.endLined(r.takeLined(1, some[0])[0], core.Dead, 1)
	done := r.settled(core.Completed)
	r.now = r.now.Add(1000 * time.Hour)
	r.purge(10)
	r.wantStatus(core.Dead, some[0])
	if _, err := r.store.Job(context.Background(), done.ID); !core.IsKind(err, core.NotFound) {
		r.Errorf("Job = %v, want not found", err)
	}
	r.skip(some[0], true)
	r.purge(10)
	if _, err := r.store.Job(context.Background(), some[0]); !core.IsKind(err, core.NotFound) {
		r.Errorf("Job = %v, want not found", err)
	}
}

func linesListed(r *rig) {
	r.putLined("b", 1, 3)
	r.putLined("a", 2, 2)
	r.putLined("c#1", 1, 1)
	want := []core.LineState{{Key: "a", Admitted: 2}, {Key: "b", Admitted: 1, Waiting: 2}, {Key: "c#1", Admitted: 1}}
	r.equal("lines", r.linesOf(r.lane), core.Page[core.LineState]{Items: want})
	lane := r.lane
	r.lane += "-other"
	r.putLined("z", 1, 1)
	r.equal("lines", r.linesOf(lane).Items, want)
	page, err := r.store.Lines(context.Background(), lane, "a", 0)
	if err != nil {
		r.Fatalf("Lines failed: %v", err)
	}
	r.equal("lines after a", page.Items, want[1:])
}

func linesPaged(r *rig) {
	for _, key := range []string{"a", "b", "c"} {
		r.putLined(key, 1, 1)
	}
	var keys []string
	for after := ""; ; {
		page, err := r.store.Lines(context.Background(), r.lane, after, 2)
		if err != nil {
			r.Fatalf("Lines failed: %v", err)
		}
		for _, l := range page.Items {
			keys, after = append(keys, l.Key), l.Key
		}
		if !page.More {
			break
		}
	}
	r.equal("keys", keys, []string{"a", "b", "c"})
}

func lineAcks(r *rig) {
	r.lane = "queue/mail"
	some := r.putLined("x", 1, 3)
	j := r.takeLined(1, some[0])[0]
	r.equal("acked", r.ackLined(r.lane, 1, refTo(j.Job), core.Ref{ID: some[1]}), 1)
	r.equal("acked again", r.ackLined(r.lane, 1, refTo(j.Job)), 0)
	r.takeLined(1, some[1])
	r.wantStatus(core.Waiting, some[2])
	plain := r.put()
	r.equal("acked", r.ackLined(r.lane, 1, refTo(r.takeLined(1, plain.ID)[0].Job)), 1)
}

// skip skips a job.
func (r *rig) skip(id core.ID, want bool) {
	r.Helper()
	got, err := r.store.Skip(r.asked(), r.now, id)
	if got != want || err != nil {
		r.Errorf("Skip(%s) = %t, %v; want %t", id, got, err, want)
	}
}

func lineSkips(r *rig) {
	some := r.putLined("x", 1, 2)
	r.endLined(r.takeLined(1, some[0])[0], core.Dead, 1)
	r.skip(some[0], true)
	r.wantStatus(core.Dead, some[0])
	r.skip(some[0], false)
	r.endLined(r.takeLined(1, some[1])[0], core.Dead, 1)
	r.skip(some[1], true)
	r.equal("lines", len(r.linesOf(r.lane).Items), 0)
}

func lineSkipsOthers(r *rig) {
	some := r.putLined("x", 1, 2)
	r.skip(some[0], false)
	r.skip(some[1], false)
	r.takeLined(1, some[0])
	r.skip(some[0], false)
	r.skip(r.settled(core.Dead).ID, false)
	r.wantStatus(core.Waiting, some[1])
}

func lineFills(r *rig) {
	some := r.putLined("x", 1, 5)
	r.takeLined(1, some[0])
	r.fill(r.lane, 3)
	r.takeLined(3, some[1], some[2])
	r.fill(r.lane, 3)
	r.takeLined(3)
	r.fill(r.lane, 0)
	r.takeLined(0, some[3], some[4])
}

// A lower limit holds as jobs end: slots above it go to no other job.
func lineLimitLowered(r *rig) {
	some := r.putLined("x", 3, 6)
	taken := r.takeLined(3, some[:3]...)
	r.fill(r.lane, 1)
	r.endLined(taken[2], core.Completed, 1)
	r.endLined(taken[1], core.Completed, 1)
	r.takeLined(1)
	r.endLined(taken[0], core.Completed, 1)
	r.endLined(r.takeLined(1, some[3])[0], core.Completed, 1)
	r.takeLined(1, some[4])
}

// A process without the lines in its configuration ends a job with an outcome that does not
// name the line.
func lineFillsEnded(r *rig) {
	some := r.putLined("x", 1, 3)
	r.settle(r.ended(r.takeLined(1, some[0])[0].Job, core.Completed))
	r.takeLined(1)
	r.fill(r.lane, 1)
	r.settle(r.ended(r.takeLined(1, some[1])[0].Job, core.Dead))
	r.fill(r.lane, 1)
	r.endLined(r.takeLined(1, some[2])[0], core.Dead, 1)
	r.fill(r.lane, 1)
	r.equal("lines", len(r.linesOf(r.lane).Items), 1)
}

// More lines than one call looks at.
func lineFillsAll(r *rig) {
	n := 201
	var all []core.Arrival
	for i := range n {
		for range 2 {
			all = append(all, r.lined(fmt.Sprintf("k%03d", i), 1))
		}
	}
	for part := range slices.Chunk(all, 200) {
		if _, err := r.store.AcceptAll(context.Background(), part); err != nil {
			r.Fatalf("AcceptAll failed: %v", err)
		}
	}
	r.fill(r.lane, 2)
	q := r.quota(1000)
	q.Lines = 2
	r.equal("taken", len(r.takeQuotas(q)), 2*n)
}

// The event of the job with the slot is canceled: the next job goes on.
func cancelLined(r *rig) {
	some := r.putLined("x", 1, 3)
	r.equal("canceled", r.cancel(r.job(some[0]).EventID), core.Cancellation{Canceled: 1})
	r.takeLined(1, some[1])
	r.equal("lines", r.linesOf(r.lane).Items, []core.LineState{{Key: "x", Admitted: 1, Waiting: 1}})
	r.equal("running", r.cancel(r.job(some[1]).EventID), core.Cancellation{Running: 1})
	r.wantStatus(core.Waiting, some[2])
}

// A job that waits leaves its place, and those behind it keep their order.
func cancelLinedWaiting(r *rig) {
	some := r.putLined("x", 1, 4)
	r.equal("canceled", r.cancel(r.job(some[1]).EventID), core.Cancellation{Canceled: 1})
	r.equal("lines", r.linesOf(r.lane).Items, []core.LineState{{Key: "x", Admitted: 1, Waiting: 2}})
	for _, id := range []core.ID{some[0], some[2], some[3]} {
		r.endLined(r.takeLined(1, id)[0], core.Completed, 1)
	}
	r.equal("lines", len(r.linesOf(r.lane).Items), 0)
}

// A canceled job that is revived enters its line at the end.
func cancelLinedRevived(r *rig) {
	some := r.putLined("x", 1, 3)
	r.cancel(r.job(some[0]).EventID)
	r.equal("retry", r.retry(some[0], ""), 1)
	r.wantStatus(core.Waiting, some[0])
	for _, id := range []core.ID{some[1], some[2], some[0]} {
		r.endLined(r.takeLined(1, id)[0], core.Completed, 1)
	}
}
