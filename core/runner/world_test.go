package runner

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/worker"
	"github.com/eventgateway/gateway/core/workflow"
)

// A world is a book with workflows, and the receivers that their steps call.
type world struct {
	*book
	t       *testing.T
	config  *config.Config
	ids     *core.IDs
	bell    core.Bell
	compile func(core.Definition) (*workflow.Definition, error)

	watch    sync.Mutex
	requests []workflow.Request
	facts    []core.Fact
	answer   func(ctx context.Context, r workflow.Request, job core.TakenJob) Answer // nil: 200 {}
}

// newWorld reads workflows, written as under "workflows:".
func newWorld(t *testing.T, workflows string) *world {
	t.Helper()
	text := "sources: {shop: {type: event}}\nworkflows:\n" + workflows
	c, err := config.Load(config.Options{
		FS:     fstest.MapFS{"gateway.yaml": &fstest.MapFile{Data: []byte(text)}},
		Path:   "gateway.yaml",
		Lookup: os.LookupEnv,
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{book: newBook(), t: t, config: c, ids: core.NewIDs(core.SystemClock)}
	w.compile = func(d core.Definition) (*workflow.Definition, error) {
		parsed, err := config.ParseDefinition(d, os.LookupEnv)
		if err != nil {
			return nil, err
		}
		return workflow.Compile(parsed)
	}
	return w
}

// runner makes a process's runner.
func (w *world) runner() *Runner {
	return New(Deps{
		Store: w.book, Clock: core.SystemClock, IDs: w.ids, Bell: &w.bell, Caller: w,
		Observe: func(f core.Fact) { w.watch.Lock(); defer w.watch.Unlock(); w.facts = append(w.facts, f) },
		Compile: func(d core.Definition) (*workflow.Definition, error) { return w.compile(d) },
		Address: "https://gateway.example",
	})
}

func (w *world) Call(ctx context.Context, r workflow.Request, job core.TakenJob) Answer {
	w.watch.Lock()
	w.requests = append(w.requests, r)
	answer := w.answer
	w.watch.Unlock()
	if answer == nil {
		return Answer{StatusCode: 200, Body: []byte("{}")}
	}
	return answer(ctx, r, job)
}

// worker makes a process's worker.
func (w *world) worker(r *Runner, slots int) *worker.Worker {
	var targets []worker.Target
	for name := range w.config.Workflows {
		targets = append(targets, worker.Target{
			Lane: core.WorkflowLane(name), Steps: r, Timeout: 30 * time.Second, Hold: 45 * time.Second,
		})
	}
	return worker.New(worker.Deps{Worklist: w.book, Bell: &w.bell, Clock: core.SystemClock, Observe: r.Observe},
		worker.Limits{Slots: slots, Batch: 10, Drain: time.Minute}, targets)
}

// start begins a run, like intake.
func (w *world) start(name, payload string) core.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now().Truncate(time.Millisecond)
	d := w.config.Definition(name)
	w.defs[d.Hash] = d
	compiled, err := w.compile(d)
	if err != nil {
		w.t.Fatal(err)
	}
	event := core.Event{ID: w.ids.Next(), Source: "shop", Type: "order", Payload: []byte(payload), CreatedAt: now}
	run := core.Run{
		ID: w.ids.Next(), Workflow: name, EventID: event.ID, Definition: d.Hash, Status: core.RunPending, Epoch: 1,
		Step: compiled.First(), CreatedAt: now,
	}
	if t := compiled.Timeout(); t > 0 {
		run.DeadlineAt = now.Add(t)
	}
	step := core.Step{
		ID: w.ids.Next(), RunID: run.ID, Epoch: 1, Path: run.Step, Name: run.Step, Status: core.StepReady,
		Type: w.config.Workflows[name].Steps[0].Type, StartedAt: now,
	}
	w.events[event.ID], w.runs[run.ID], w.steps[step.ID] = event, run, step
	w.addJob(step.ID, run, now)
	return run.ID
}

// tick makes a new process do the due work.
func (w *world) tick() core.Report {
	w.t.Helper()
	r, err := w.worker(w.runner(), 4).Tick(context.Background(), core.Budget{})
	if err != nil {
		w.t.Errorf("Tick: %v", err)
	}
	return r
}

// finish runs ticks until a run is finished, with a bound.
func (w *world) finish(run core.ID) core.Run {
	w.t.Helper()
	for range 500 {
		w.tick()
		if now := w.read(run); now.Status.Finished() {
			return now
		}
		time.Sleep(15 * time.Second)
	}
	w.t.Fatalf("run %s does not end: %s", run, strings.Join(w.entriesOf(run), ", "))
	return core.Run{}
}

func (w *world) read(run core.ID) core.Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runs[run]
}

// keys returns the keys of the requests, each with its count.
func (w *world) keys() map[string]int {
	w.watch.Lock()
	defer w.watch.Unlock()
	keys := map[string]int{}
	for _, r := range w.requests {
		_, path, _ := strings.Cut(r.Key, ".")
		keys[path]++
	}
	return keys
}

func factsOf[F core.Fact](w *world) (found []F) {
	w.watch.Lock()
	defer w.watch.Unlock()
	for _, f := range w.facts {
		if f, ok := f.(F); ok {
			found = append(found, f)
		}
	}
	return found
}

// take takes the due jobs, like a worker.
func (w *world) take(name string) []core.TakenJob {
	w.t.Helper()
	jobs, err := w.Take(context.Background(), time.Now(), []core.Quota{{Lane: core.WorkflowLane(name), N: 100, Hold: time.Minute}})
	if err != nil {
		w.t.Fatal(err)
	}
	return jobs
}
