package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/workflow"
)

// line is a workflow of n http steps.
func line(n int) string {
	var b strings.Builder
	b.WriteString("  line:\n    source: shop\n    events: [order]\n    steps:\n")
	for i := range n {
		fmt.Fprintf(&b, "      - {name: s%02d, url: 'https://a.example/%d'}\n", i, i)
	}
	return b.String()
}

// A function runs a run to its end in one tick. Each step costs a take and a transition,
// and the first step of a run one more transition.
func TestTenStepsInOneTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, line(10))
		run := w.start("line", `{"a": 1}`)
		began := time.Now()
		if got, want := w.tick(), (core.Report{Completed: 10}); got != want {
			t.Errorf("Tick = %+v, want %+v", got, want)
		}
		if r := w.read(run); r.Status != core.RunCompleted || time.Since(began) > time.Second {
			t.Errorf("run is %s after %v, want it completed at once", r.Status, time.Since(began))
		}
		if left := w.left(run); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		got := maps.Clone(w.ops)
		// The feeder may look once more without a result, if an end is stored just as it
		// looks.
		if got["take"] > 19 || got["due"] > 12 {
			t.Errorf("%d takes and %d looks, want few: with the transitions at most three batches a step", got["take"], got["due"])
		}
		delete(got, "take")
		delete(got, "due")
		if diff := cmp.Diff(map[string]int{"transit": 11, "definition": 1}, got); diff != "" {
			t.Errorf("what else was asked of the store (-want +got):\n%s", diff)
		}
		if n := len(factsOf[core.StepMoved](w)); n != 10 {
			t.Errorf("reported %d steps, want 10", n)
		}
		var moves []core.RunStatus
		for _, f := range factsOf[core.RunMoved](w) {
			moves = append(moves, f.Run.Status)
		}
		if diff := cmp.Diff([]core.RunStatus{core.RunRunning, core.RunCompleted}, moves); diff != "" {
			t.Errorf("reported the run (-want +got):\n%s", diff)
		}
	})
}

// Runs whose steps end together are stored together.
func TestRunsMoveTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, line(1))
		for range 5 {
			w.start("line", `{}`)
		}
		r := w.runner()
		var ends []core.StepEnd
		for _, job := range w.take("line") {
			end, ok, err := r.Attempt(context.Background(), job)
			if !ok || err != nil {
				t.Fatalf("Attempt = %v, %v", ok, err)
			}
			ends = append(ends, end)
		}
		before := w.ops["transit"]
		settled, err := r.Settle(context.Background(), ends...)
		if n := w.ops["transit"] - before; err != nil || n != 1 || len(settled) != 5 {
			t.Errorf("Settle: %v, %d answers with %d transits, want 5 with one", err, len(settled), n)
		}
		for _, s := range settled {
			if s != (core.StepSettled{Status: core.Completed}) {
				t.Errorf("settled = %+v, want completed", s)
			}
		}
	})
}

// Runs whose steps end together are read together: many runs take as long as one, however long
// the database takes for an answer. A worker that may go on for a few seconds only would lose
// ends otherwise, and their calls would be made again.
func TestRunsAreReadTogether(t *testing.T) {
	took := func(runs int) (d time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, `
  fan:
    source: shop
    events: [order]
    steps:
      - name: p
        type: parallel
        branches: [{name: a, url: 'https://a.example'}, {name: b, url: 'https://b.example'}]
`)
			for range runs {
				w.start("fan", `{}`)
			}
			r := w.runner()
			w.settle(r, w.take("fan")) // the branches begin
			w.before = func(string) error { time.Sleep(100 * time.Millisecond); return nil }
			began := time.Now()
			w.settle(r, w.take("fan"))
			d = time.Since(began)
			for id := range w.runs {
				if now := w.read(id); now.Status != core.RunCompleted {
					t.Errorf("run is %s, want it completed", now.Status)
				}
			}
		})
		return d
	}
	if one, many := took(1), took(readers); many != one {
		t.Errorf("storing the ends of %d runs takes %v, want %v like one run", readers, many, one)
	}
}

// settle makes the attempts of some jobs, and stores their ends at once.
func (w *world) settle(r *Runner, jobs []core.TakenJob) []core.StepSettled {
	w.t.Helper()
	var ends []core.StepEnd
	for _, job := range jobs {
		end, ok, err := r.Attempt(context.Background(), job)
		if !ok || err != nil {
			w.t.Fatalf("Attempt = %v, %v", ok, err)
		}
		ends = append(ends, end)
	}
	settled, err := r.Settle(context.Background(), ends...)
	if err != nil || len(settled) != len(jobs) {
		w.t.Fatalf("Settle: %d answers, %v, want %d", len(settled), err, len(jobs))
	}
	return settled
}

func TestSettledTellsWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
  w:
    source: shop
    events: [order]
    steps:
      - {name: a, url: 'https://a.example', retry: {max: 2, interval: 10s, backoff: fixed}}
      - {name: b, type: wait, seconds: 60}
`)
		heard := w.bell.Listen("workflow/w")
		w.start("w", `{}`)
		w.answer = func(context.Context, workflow.Request, core.TakenJob) Answer {
			if len(w.requests) == 1 {
				return Answer{StatusCode: 503, Error: "status: 503 Service Unavailable", RetryAfter: 30 * time.Second}
			}
			return Answer{StatusCode: 200}
		}
		r := w.runner()
		for _, want := range []core.StepSettled{
			{Status: core.Retryable, DueAt: time.Now().Add(30 * time.Second), Next: time.Now().Add(30 * time.Second)},
			{Status: core.Completed, Next: time.Now().Add(90 * time.Second)},
		} {
			end, _, err := r.Attempt(context.Background(), w.take("w")[0])
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Settle(context.Background(), end)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]core.StepSettled{want}, got); diff != "" {
				t.Errorf("Settle (-want +got):\n%s", diff)
			}
			time.Sleep(30 * time.Second)
		}
		if rung := heard.Rung(); len(rung) != 0 {
			t.Errorf("rung: %v, want nothing: nothing is due yet", rung)
		}
	})
}

func TestStaleJobs(t *testing.T) {
	tests := []struct {
		name   string
		become func(*core.Situation)
	}{
		{"gone", func(s *core.Situation) { *s = core.Situation{} }},
		{"run finished", func(s *core.Situation) { s.Run.Status = core.RunFailed }},
		{"another epoch", func(s *core.Situation) { s.Run.Epoch = 2 }},
		{"step over", func(s *core.Situation) { s.Step.Status = core.StepCanceled }},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, line(1))
			w.start("line", `{}`)
			job := w.take("line")[0]
			tt.become(&job.Situation)
			if _, ok, err := w.runner().Attempt(context.Background(), job); ok || err != nil || len(w.requests) != 0 {
				t.Errorf("%s: Attempt = %v, %v with %d calls, want a stale job", tt.name, ok, err, len(w.requests))
			}
		})
	}
}

// A job may be taken twice before its run has begun. One worker begins the run, and the
// other continues with the begun run.
func TestRunIsBegunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, line(1))
		run := w.start("line", `{}`)
		r, job := w.runner(), w.take("line")[0]
		first, ok, err := r.Attempt(context.Background(), job)
		if !ok || err != nil {
			t.Fatalf("Attempt = %v, %v", ok, err)
		}
		second, ok, err := r.Attempt(context.Background(), job)
		if !ok || err != nil {
			t.Fatalf("Attempt = %v, %v", ok, err)
		}
		settled, err := r.Settle(context.Background(), second, first)
		if err != nil || settled[0].Lost || !settled[1].Lost {
			t.Errorf("Settle = %+v, %v, want the second end stored and the first lost", settled, err)
		}
		if n := len(w.entriesOf(run, core.EntryStarted)); n != 1 {
			t.Errorf("begun %d times", n)
		}
		if _, ok, err := r.Attempt(context.Background(), job); ok || err != nil {
			t.Errorf("Attempt of a finished run = %v, %v, want a stale job", ok, err)
		}
	})
}

func TestClassOf(t *testing.T) {
	tests := []struct {
		answer Answer
		want   core.ErrorClass
	}{
		{Answer{StatusCode: 500, Error: "status: 500 Internal Server Error"}, core.Class5xx},
		{Answer{StatusCode: 599, Error: "status: 599"}, core.Class5xx},
		{Answer{StatusCode: 600, Error: "status: 600"}, core.Class4xx},
		{Answer{StatusCode: 404, Error: "status: 404 Not Found"}, core.Class4xx},
		{Answer{StatusCode: 302, Error: "status: 302 Found"}, core.Class4xx},
		{Answer{Error: "timeout: no answer within 30s"}, core.ClassTimeout},
		{Answer{StatusCode: 200, Error: "timeout: the body took too long"}, core.ClassTimeout},
		{Answer{StatusCode: 500, Error: "protocol: reset"}, core.ClassNetwork},
		{Answer{Error: "dns: no such host (a.example)"}, core.ClassNetwork},
		{Answer{Error: "connect: refused"}, core.ClassNetwork},
		{Answer{Error: "tls: expired"}, core.ClassNetwork},
		{Answer{Error: "blocked: 10.0.0.1 is private"}, core.ClassNetwork},
		{Answer{StatusCode: 200, Error: "data: the reply is not UTF-8 text"}, core.ClassData},
	}
	for _, tt := range tests {
		if got := classOf(tt.answer); got != tt.want {
			t.Errorf("classOf(%q, %d) = %s, want %s", tt.answer.Error, tt.answer.StatusCode, got, tt.want)
		}
	}
}

func TestEndsOfCalls(t *testing.T) {
	tests := []struct {
		name   string
		answer Answer
		want   core.StepEnd
	}{
		{"reply", Answer{StatusCode: 201, Body: []byte(`[1]`), Response: "[1]"},
			core.StepEnd{Kind: core.Replied, Body: []byte(`[1]`), Attempt: core.Attempt{StatusCode: 201, Response: "[1]"}}},
		{"refusal", Answer{StatusCode: 429, Error: "status: 429", Response: "no", RetryAfter: time.Minute},
			core.StepEnd{Kind: core.Refused, Class: core.Class4xx, RetryAfter: time.Minute,
				Attempt: core.Attempt{StatusCode: 429, Error: "status: 429", Response: "no"}}},
		{"too large", Answer{StatusCode: 200, Body: []byte(`xxx`), Response: "xx", TooLarge: true},
			core.StepEnd{Kind: core.Refused, Class: core.ClassData,
				Attempt: core.Attempt{StatusCode: 200, Error: "data: the reply has more than 1 MiB", Response: "xx"}}},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, line(1))
			w.start("line", `{}`)
			w.answer = func(context.Context, workflow.Request, core.TakenJob) Answer {
				time.Sleep(time.Second)
				return tt.answer
			}
			started := time.Now()
			got, ok, err := w.runner().Attempt(context.Background(), w.take("line")[0])
			if !ok || err != nil {
				t.Fatalf("Attempt = %v, %v", ok, err)
			}
			want := tt.want
			want.At, want.Attempt.Number = started.Add(time.Second), 1
			want.Attempt.StartedAt, want.Attempt.Duration = started, time.Second
			got.Job = core.TakenJob{}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: end (-want +got):\n%s", tt.name, diff)
			}
		})
	}
}

// A step without a valid request fails at once, regardless of its retry.
func TestStepThatCannotBeCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
  w:
    source: shop
    events: [order]
    steps:
      - {name: a, url: 'https://a.example', input: $.nowhere, retry: {max: 9}}
`)
		run := w.start("w", `{}`)
		w.tick()
		r := w.read(run)
		if r.Status != core.RunFailed || !strings.HasPrefix(r.Error, "step a: data: ") || len(w.requests) != 0 {
			t.Errorf("run is %s (%s) with %d calls, want it failed for its data without", r.Status, r.Error, len(w.requests))
		}
		for _, a := range w.attempts {
			if a.Number != 1 || a.StartedAt.IsZero() || !strings.HasPrefix(a.Error, "data: ") {
				t.Errorf("recorded %+v, want attempt 1 with its error", a)
			}
		}
		if len(w.attempts) != 1 {
			t.Errorf("%d attempts recorded, want 1", len(w.attempts))
		}
	})
}

// A panic fails the attempt, and nothing else.
func TestStepThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
  w:
    source: shop
    events: [order]
    steps:
      - {name: a, url: 'https://a.example', retry: {max: 2, interval: 1s}}
`)
		w.answer = func(context.Context, workflow.Request, core.TakenJob) Answer { panic("no such host") }
		run := w.start("w", `{}`)
		w.tick()
		time.Sleep(time.Minute)
		w.tick()
		if r := w.read(run); r.Status != core.RunFailed || r.Error != "step a: panic: no such host" || len(w.attempts) != 2 {
			t.Errorf("run is %s (%s) after %d attempts, want it failed after 2", r.Status, r.Error, len(w.attempts))
		}
		for _, f := range factsOf[core.Troubled](w) {
			if p := (*core.Panic)(nil); !errors.As(f.Err, &p) {
				t.Errorf("reported %v, want nothing but panics", f.Err)
			}
		}
		if n := len(factsOf[core.Troubled](w)); n != 2 {
			t.Errorf("reported %d panics, want 2", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, line(1))
		w.start("line", `{}`)
		r := w.runner()
		asked := 0
		r.Clock = func() time.Time {
			if asked++; asked == 1 {
				panic("no time") // stands for any defect
			}
			return time.Now()
		}
		_, end, current, err := r.doContained(context.Background(), nil, workflow.Elapse, w.take("line")[0])
		if err != nil || !current || end.Kind != core.Refused || !end.Final || end.Attempt.Error != "data: panic: no time" {
			t.Errorf("doing what panics = %+v, %v, %v, want it refused for good", end, current, err)
		}
	})
}

// A panic while an end is stored loses this end, and no end of another run.
func TestEndThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, line(1))
		for range 3 {
			w.start("line", `{}`)
		}
		w.answer = func(_ context.Context, _ workflow.Request, job core.TakenJob) Answer {
			if job.Situation.Run.ID == slices.Sorted(maps.Keys(w.runs))[1] {
				return Answer{StatusCode: 404, Error: "status: 404 Not Found"}
			}
			return Answer{StatusCode: 200}
		}
		r := w.runner()
		r.Obituary = func(core.Run, core.Step, core.Event) *core.Arrival { panic("no words") }
		lost := 0
		for _, s := range w.settle(r, w.take("line")) {
			if s.Lost {
				lost++
			}
		}
		reported := factsOf[core.Troubled](w)
		if lost != 1 || len(reported) != 1 || reported[0].Err.Error() != "panic: no words" {
			t.Errorf("%d ends are lost, reported %v, want one each", lost, reported)
		}
	})
}

// A definition is read and compiled once, for any number of simultaneous callers. A
// definition that cannot be compiled fails no step and is tried again.
func TestDefinitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, line(1))
		for range 8 {
			w.start("line", `{}`)
		}
		real, compiled, lacking := w.compile, atomic.Int64{}, errors.New("GREETING is not set")
		w.compile = func(core.Definition) (*workflow.Definition, error) { return nil, lacking }
		r, jobs := w.runner(), w.take("line")
		if _, ok, err := r.Attempt(context.Background(), jobs[0]); ok || !errors.Is(err, lacking) {
			t.Errorf("Attempt = %v, %v, want %v", ok, err, lacking)
		}
		w.compile = func(d core.Definition) (*workflow.Definition, error) { compiled.Add(1); return real(d) }
		var all sync.WaitGroup
		for _, job := range jobs {
			all.Go(func() {
				if _, ok, err := r.Attempt(context.Background(), job); !ok || err != nil {
					t.Errorf("Attempt = %v, %v", ok, err)
				}
			})
		}
		all.Wait()
		if n := compiled.Load(); n != 1 {
			t.Errorf("compiled %d times, want once", n)
		}
	})
}

// The rings of the bell and the facts when a run fails and causes an alert.
func TestObituaryOfRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, line(2))
		heard := w.bell.Listen("alert/x", "workflow/line")
		w.start("line", `{}`)
		r := w.runner()
		r.Obituary = func(run core.Run, step core.Step, e core.Event) *core.Arrival {
			return &core.Arrival{Event: core.Event{ID: core.ID("about " + step.Path), Type: e.Type}, Jobs: []core.NewJob{{Lane: "alert/x"}}}
		}
		attempt := func() {
			end, _, err := r.Attempt(context.Background(), w.take("line")[0])
			if err == nil {
				_, err = r.Settle(context.Background(), end)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		attempt()
		if diff := cmp.Diff([]core.Lane{"workflow/line"}, heard.Rung()); diff != "" {
			t.Errorf("rung after the first step (-want +got):\n%s", diff)
		}
		w.answer = func(context.Context, workflow.Request, core.TakenJob) Answer {
			return Answer{StatusCode: 400, Error: "status: 400"}
		}
		attempt()
		if diff := cmp.Diff([]core.Lane{"alert/x"}, heard.Rung()); diff != "" {
			t.Errorf("rung after the second (-want +got):\n%s", diff)
		}
		if facts := factsOf[core.Accepted](w); len(facts) != 1 || facts[0].Event.ID != "about s01" || facts[0].Event.Type != "order" || facts[0].Jobs != 1 {
			t.Errorf("reported %+v, want the alert about s01", facts)
		}
	})
}
