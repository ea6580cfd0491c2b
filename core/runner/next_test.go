package runner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/workflow"
)

// settleOne takes the only due job of a workflow, makes its attempt, and settles the end with room for the
// next job.
func settleOne(t *testing.T, w *world, r *Runner, name string) core.StepSettled {
	t.Helper()
	jobs := w.take(name)
	if len(jobs) != 1 {
		t.Fatalf("%d jobs are due, want 1", len(jobs))
	}
	return settleJob(t, r, jobs[0])
}

func settleJob(t *testing.T, r *Runner, job core.TakenJob) core.StepSettled {
	t.Helper()
	end, current, err := r.Attempt(context.Background(), job)
	if err != nil || !current {
		t.Fatalf("Attempt = %v, %v", current, err)
	}
	end.Hold = time.Minute
	settled, err := r.Settle(context.Background(), end)
	if err != nil {
		t.Fatal(err)
	}
	return settled[0]
}

// The next job comes as a claim would bring it once its lease is over, and the run goes on with it to its
// end.
func TestNextJobIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, line(3))
		run := w.start("line", `{"a": 1}`)
		r := w.runner()
		settled := settleOne(t, w, r, "line")
		if settled.Taken == nil || !settled.Next.IsZero() {
			t.Fatalf("settled = %+v, want the next job taken, and nothing else due", settled)
		}
		if due := w.take("line"); len(due) != 0 {
			t.Errorf("due beside the job that is taken: %v", due)
		}
		want, _ := w.situation(settled.Taken.ID)
		if diff := cmp.Diff(want, settled.Taken.Situation); diff != "" {
			t.Errorf("situation of the job (-want +got):\n%s", diff)
		}
		stored := w.jobs[settled.Taken.ID]
		stored.ScheduledAt, stored.CreatedAt = settled.Taken.ScheduledAt, settled.Taken.CreatedAt // which the book leaves out
		if diff := cmp.Diff(core.TakenJob{Job: stored, Event: w.events[stored.EventID], Situation: want}, *settled.Taken); diff != "" {
			t.Errorf("job (-want +got):\n%s", diff)
		}
		settled = settleJob(t, r, *settled.Taken)
		if settled.Taken == nil {
			t.Fatalf("settled = %+v, want the third job taken", settled)
		}
		settled = settleJob(t, r, *settled.Taken)
		if now := w.read(run); settled.Taken != nil || now.Status != core.RunCompleted || w.ops["situations"] > 0 {
			t.Errorf("settled = %+v, the run is %s after %d reads, want it completed without one", settled, now.Status, w.ops["situations"])
		}
	})
}

// A job that the store has not leased is due for any worker.
func TestNextJobIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, line(2))
		w.start("line", `{}`)
		w.held = true
		settled := settleOne(t, w, w.runner(), "line")
		if settled.Taken != nil || settled.Next.IsZero() {
			t.Errorf("settled = %+v, want the next job due", settled)
		}
	})
}

// A job that is not due yet, a job in a branch, and one of several jobs are not taken, nor is the job of a
// step that is tried again.
func TestNextJobIsLeft(t *testing.T) {
	for name, steps := range map[string]string{
		"wait": `      - {name: a, url: 'https://a.example/a'}
      - {name: b, type: wait, seconds: 3600}
`,
		"parallel": `      - {name: a, url: 'https://a.example/a'}
      - name: b
        type: parallel
        branches:
          - {name: c, url: 'https://a.example/c'}
          - {name: d, url: 'https://a.example/d'}
`,
		"branch": `      - {name: a, url: 'https://a.example/a'}
      - name: b
        type: parallel
        branches:
          - {name: c, url: 'https://a.example/c'}
`,
		"retry": `      - {name: a, url: 'https://a.example/a', retry: {max: 3}}
`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "  flow:\n    source: shop\n    events: [order]\n    steps:\n"+steps)
				if name == "retry" {
					w.answer = func(context.Context, workflow.Request, core.TakenJob) Answer {
						return Answer{StatusCode: 500, Error: "status: 500"}
					}
				}
				w.start("flow", `{}`)
				settled := settleOne(t, w, w.runner(), "flow")
				if settled.Taken != nil || settled.Next.IsZero() {
					t.Errorf("settled = %+v, want no job taken, and one due", settled)
				}
			})
		})
	}
}
