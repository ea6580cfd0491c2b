package storetest

import (
	"context"

	"github.com/eventgateway/gateway/core"
)

// Checks of LinesOf. A failure means that an operator does not see why a job waits in its line.

const (
	saysLinesOf      = "LinesOf returns the lines of a lane with these keys, each with the jobs that have its slots and with up to next of the jobs that wait in it"
	saysLinesOfNone  = "A line without jobs has only its key"
	saysLinesOfCount = "LinesOf counts the jobs that wait only up to next"
)

// readLines returns lines by their keys.
func (r *rig) readLines(next int, keys ...string) []core.LineJobs {
	r.Helper()
	lines, err := r.store.LinesOf(context.Background(), r.lane, next, keys...)
	if err != nil {
		r.Fatalf("LinesOf(%q) failed: %v", keys, err)
	}
	return lines
}

func linesRead(r *rig) {
	one, two := r.putLined("x", 1, 4), r.putLined("y", 2, 2)
	r.endLined(r.takeLined(1, one[0], two[0], two[1])[0], core.Dead, 1)
	stopped := core.LineState{Key: "x", Admitted: 1, Waiting: 2, StoppedAt: r.now, StoppedBy: one[0]}
	r.equal("lines", r.readLines(2, "y", "x"), []core.LineJobs{
		{LineState: core.LineState{Key: "y", Admitted: 2}, Holders: two},
		{LineState: stopped, Holders: one[:1], Next: one[1:3]},
	})
	stopped.Waiting = 3
	without := r.readLines(0, "x")
	r.equal("x without those that wait", without[0].Holders, one[:1])
	r.equal("none that wait", without[0].Waiting, 0)
	r.equal("all of x", r.readLines(4, "x"), []core.LineJobs{{LineState: stopped, Holders: one[:1], Next: one[1:]}})
}

func linesReadEmpty(r *rig) {
	r.putLined("x", 1, 1)
	r.equal("lines", r.readLines(1, "X"), []core.LineJobs{{LineState: core.LineState{Key: "X"}}})
	r.lane += "-other"
	r.equal("of another lane", r.readLines(1, "x"), []core.LineJobs{{LineState: core.LineState{Key: "x"}}})
}

func lanesWithLines(r *rig) {
	lanes := func() []core.Lane {
		r.Helper()
		found, err := r.store.LinedLanes(context.Background())
		if err != nil {
			r.Fatalf("LinedLanes failed: %v", err)
		}
		return found
	}
	r.put()
	r.equal("lanes without lines", len(lanes()), 0)
	for _, l := range []core.Lane{"queue/b", "handler/a-b", "handler/a"} {
		r.lane = l
		r.putLined("x", 1, 2)
		r.putLined("y", 2, 1)
	}
	r.equal("lanes", lanes(), []core.Lane{"handler/a", "handler/a-b", "queue/b"})
	r.lane = "handler/c"
	only := r.putLined("only", 1, 1)
	r.equal("lanes", lanes(), []core.Lane{"handler/a", "handler/a-b", "handler/c", "queue/b"})
	r.endLined(r.takeLined(1, only...)[0], core.Completed, 1)
	r.equal("lanes once the line is empty", lanes(), []core.Lane{"handler/a", "handler/a-b", "queue/b"})
}
