package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// addLine puts n jobs of one line into a lane. Some of them are admitted.
func (p *pile) addLine(lane core.Lane, key string, n, admitted, attempts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range n {
		id := core.ID(fmt.Sprintf("%s-%s-%04d", lane, key, len(p.jobs)))
		j := &core.Job{ID: id, Lane: lane, Line: key, Status: core.Waiting, MaxAttempts: attempts}
		if i < admitted {
			j.Status, j.DueAt = core.Available, time.Now()
		}
		p.jobs[id] = j
	}
}

// pass admits the next job of a line, as the commit of an outcome does.
func (p *pile) pass(o core.Outcome) {
	if !o.PassesSlot() {
		return
	}
	var next *core.Job
	for _, j := range p.jobs {
		if j.Lane == o.Lane && j.Line == o.Line.Key && j.Status == core.Waiting && (next == nil || j.ID < next.ID) {
			next = j
		}
	}
	if next != nil {
		next.Status, next.DueAt = core.Available, o.At
	}
}

// strict is a target whose lines have a limit of 1.
func strict(s Sender, rules core.LineRules) Target {
	rules.Limit = 1
	return Target{Sender: s, Lines: rules, Retry: core.Retry{Interval: time.Second, Fixed: true}}
}

// A line of 50 jobs of 10 ms each takes half a second: the worker takes the next job when the
// outcome of the one before is stored, and does not wait for its next look.
func TestLineWithoutPauses(t *testing.T) {
	const jobs, each = 50, 10 * time.Millisecond
	ideal := jobs * each
	t.Run("in the program", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(Limits{Slots: 10, Batch: 10}, strict(takesTime(each, ok), core.LineRules{}))
			b.addLine(lane, "a", jobs, 1, 3)
			began := time.Now()
			stop := b.serve(t)
			for b.count(core.Completed) < jobs {
				time.Sleep(time.Millisecond)
			}
			if took := time.Since(began); took > ideal+each {
				t.Errorf("%d jobs took %v, want %v", jobs, took, ideal)
			}
			stop()
		})
	})
	for _, c := range []struct {
		name   string
		budget core.Budget
	}{{"in a function", core.Budget{Rest: time.Second, Brief: true}}, {"in a tick without a rest", core.Budget{}}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, last := time.Now(), time.Time{}
				sender := func(ctx context.Context, j core.TakenJob) Reply {
					defer func() { last = time.Now() }()
					return takesTime(each, ok)(ctx, j)
				}
				b := newBench(Limits{Slots: 10, Batch: 10}, strict(sends(sender), core.LineRules{}))
				b.addLine(lane, "a", jobs, 1, 3)
				c.budget.Until = began.Add(55 * time.Second)
				r, err := b.Tick(t.Context(), c.budget)
				if err != nil || r != (core.Report{Completed: jobs}) {
					t.Errorf("Tick = %+v, %v, want %d completed", r, err, jobs)
				}
				if took := last.Sub(began); took > ideal+each {
					t.Errorf("%d jobs took %v, want %v", jobs, took, ideal)
				}
			})
		})
	}
}

// A tick whose time is over rings for the next job of a line, so that another one takes it.
func TestLineAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 1, Batch: 1, Drain: time.Minute}, strict(takesTime(10*time.Second, ok), core.LineRules{}))
		b.addLine(lane, "a", 2, 1, 3)
		other := b.bell.Listen(lane)
		r, err := b.Tick(t.Context(), core.Budget{Until: time.Now().Add(5 * time.Second), Rest: time.Second})
		if err != nil || r.Completed != 1 {
			t.Errorf("Tick = %+v, %v, want one completed", r, err)
		}
		if coming := other.Coming(); coming[lane].IsZero() || coming[lane].After(time.Now()) {
			t.Errorf("the bell tells of %v, want that the lane has work now", coming)
		}
	})
}

// Each outcome names the line of its job, with the limit that the lane has now.
func TestOutcomesNameTheirLines(t *testing.T) {
	failing := takesTime(0, Reply{Error: "status: 500"})
	hold := core.LineRules{StopOnDead: true}
	line := core.Line{Key: "a", Limit: 1}
	for _, c := range []struct {
		name     string
		target   Target
		attempts int // of the job; 0: it is spent
		want     []core.Outcome
	}{
		{"completed", strict(takesTime(0, ok), hold), 1, []core.Outcome{{Status: core.Completed, Line: line}}},
		{"retried, then dead", strict(failing, hold), 2, []core.Outcome{
			{Status: core.Retryable, Line: line}, {Status: core.Dead, Line: line, StopsLine: true}}},
		{"dead in a line that goes on", strict(failing, core.LineRules{}), 1, []core.Outcome{{Status: core.Dead, Line: line}}},
		{"a panic", strict(sends(func(context.Context, core.TakenJob) Reply { panic("defect") }), hold), 1,
			[]core.Outcome{{Status: core.Dead, Line: line, StopsLine: true}}},
		{"spent", strict(failing, hold), 0, []core.Outcome{{Status: core.Dead, Line: line, StopsLine: true}}},
		{"a lane that has no lines any more", Target{Sender: failing, Lines: core.LineRules{StopOnDead: true}}, 1,
			[]core.Outcome{{Status: core.Dead, Line: core.Line{Key: "a"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(Limits{Slots: 1, Batch: 1}, c.target)
				b.addLine(lane, "a", 1, 1, max(c.attempts, 1))
				if c.attempts == 0 {
					for _, j := range b.jobs {
						j.Attempt = 1 + core.MaxRepeats
					}
				}
				stop := b.serve(t)
				time.Sleep(time.Minute)
				stop()
				var got []core.Outcome
				for _, o := range b.settled {
					got = append(got, core.Outcome{Status: o.Status, Line: o.Line, StopsLine: o.StopsLine})
				}
				if !slices.EqualFunc(got, c.want, func(a, b core.Outcome) bool {
					return a.Status == b.Status && a.Line == b.Line && a.StopsLine == b.StopsLine
				}) {
					t.Errorf("outcomes %+v, want %+v", got, c.want)
				}
			})
		})
	}
}

// The jobs of a stray end one after the other, and all of them in one round.
func TestLinesOfStrays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 2, Batch: 2}, Target{Sender: takesTime(0, ok)})
		b.strays["handler/gone"] = time.Now().Add(-core.StrayTime)
		b.addLine("handler/gone", "a", 150, 1, 1)
		b.addLine("handler/gone", "b", 250, 3, 1)
		b.add("handler/gone", 50, 1)
		r, took := b.linger(t, 55*time.Second, time.Second)
		if r.Dead != 450 || took > 3*time.Second {
			t.Errorf("Tick = %+v in %v, want 450 dead, and soon", r, took)
		}
		for _, o := range b.settled {
			if o.StopsLine || o.Line.Limit != 0 {
				t.Fatalf("an outcome names the line %+v and stops it: %v, want neither a limit nor a stop", o.Line, o.StopsLine)
			}
		}
	})
}

// A stray's lines do not keep a worker from its end while the database is away.
func TestLinesOfStraysAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 2, Batch: 2}, Target{Sender: takesTime(0, ok)})
		b.strays["handler/gone"] = time.Now().Add(-core.StrayTime)
		b.addLine("handler/gone", "a", 10, 1, 1)
		b.takeDelay = time.Second
		stop := b.serve(t)
		time.Sleep(500 * time.Millisecond)
		b.breakdown(true) // before the first outcome is stored
		time.Sleep(time.Minute)
		began := time.Now()
		stop()
		if took := time.Since(began); took > settleGrace+time.Second {
			t.Errorf("the end took %v", took)
		}
	})
}

// A message that the worker ends gives its slot to the next one, and the bell tells its consumers.
func TestLapsedMessageOfALine(t *testing.T) {
	for _, stops := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newSweeping()
			b.Worker.QueueLines = map[core.Lane]core.LineRules{queueLane: {Limit: 1, StopOnDead: stops}}
			b.addLine(queueLane, "a", 2, 0, 3)
			ids := make([]core.ID, 0, 2)
			for id := range b.jobs {
				ids = append(ids, id)
			}
			slices.Sort(ids)
			first := b.jobs[ids[0]]
			first.Status, first.Attempt, first.DueAt, first.Lease = core.Running, 3, time.Now(), "theirs"
			rung := b.bell.Listen(queueLane)
			stop := b.serve(t)
			time.Sleep(10 * time.Second)
			stop()
			next := b.jobs[ids[1]].Status
			if stops && (next != core.Waiting || len(rung.Rung()) > 0) {
				t.Errorf("the next message is %s, want it to wait, and no ring", next)
			} else if !stops && (next != core.Available || !slices.Equal(rung.Rung(), []core.Lane{queueLane})) {
				t.Errorf("the next message is %s, want it available, and a ring", next)
			}
		})
	}
}

// A claim from a lane with lines says their limit.
func TestClaimsNameTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(Limits{Slots: 1, Batch: 1}, Target{Sender: takesTime(0, ok), Lines: core.LineRules{Limit: 3}},
			Target{Lane: "handler/b", Sender: takesTime(0, ok)})
		b.add(lane, 1, 1)
		b.add("handler/b", 1, 1)
		stop := b.serve(t)
		time.Sleep(time.Minute)
		stop()
		if want := map[core.Lane]int{lane: 3, "handler/b": 0}; !maps.Equal(b.lines, want) {
			t.Errorf("claims with the limits %v, want %v", b.lines, want)
		}
	})
}
