package web_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/workflow"
)

// clerk knows one run of each status, numbered 1 to 4 in the order of a run's life, and
// two tokens, "g00d" and "odd/token". It records the calls that it gets.
type clerk struct {
	store *store // both have the same state

	mu    sync.Mutex
	calls []string
}

func (c *clerk) say(format string, args ...any) error {
	c.mu.Lock()
	c.calls = append(c.calls, fmt.Sprintf(format, args...))
	c.mu.Unlock()
	return c.store.moody(context.Background())
}

func (c *clerk) Resume(ctx context.Context, token string, body []byte) error {
	if err := c.say("resume %q %q %v", token, body, ctx.Err()); err != nil {
		return err
	}
	if _, err := workflow.CallbackResult(body); err != nil {
		return err
	}
	if token != "g00d" && token != "odd/token" {
		return &core.Refusal{Kind: core.NotFound, Message: "step " + token + " not found", Cause: errors.New("no row")}
	}
	return nil
}

func runNumber(n int) core.ID { return core.ID(fmt.Sprintf("01R%023d", n)) }

// runs are one of each status.
func runs() []core.Run {
	run := func(n int, s core.RunStatus) core.Run {
		return core.Run{
			ID: runNumber(n), Workflow: "fulfil-order", EventID: someID, Definition: "h4sh", Status: s, Epoch: 1, Seq: n,
			Step: "check-stock", CreatedAt: noon,
		}
	}
	pending, running, completed, failed := run(1, core.RunPending), run(2, core.RunRunning), run(3, core.RunCompleted), run(4, core.RunFailed)
	pending.Step = ""
	running.StartedAt, completed.StartedAt, failed.StartedAt = noon.Add(time.Second), noon, noon
	completed.FinishedAt, failed.FinishedAt = noon.Add(time.Minute), noon.Add(time.Hour)
	completed.Step, completed.Output = "notify", []byte(`{"b": 1.0, "a":"<&>"}`)
	failed.Epoch, failed.Error = 2, `step check-stock: status: 503 "away"`
	return []core.Run{pending, running, completed, failed}
}

func (c *clerk) find(id core.ID) (core.Run, error) {
	for _, r := range runs() {
		if r.ID == id {
			return r, nil
		}
	}
	return core.Run{}, manage.ErrRun
}

func (c *clerk) List(_ context.Context, f core.RunFilter) (core.Page[core.Run], error) {
	page := core.Page[core.Run]{Items: runs(), More: f.After == ""}
	if f.Workflow == "idle" {
		page = core.Page[core.Run]{}
	}
	return page, c.say("list %q %q %q %q %d", f.Status, f.Workflow, f.EventID, f.After, f.Limit)
}

func (c *clerk) Inspect(_ context.Context, id core.ID, from manage.Place, limit int) (manage.Inspected, error) {
	run, err := c.find(id)
	if err != nil {
		return manage.Inspected{}, err
	}
	all := manage.Inspected{Run: run}
	if run.Status == core.RunFailed {
		all.Steps, all.History = steps(), entries()
	}
	if limit < manage.MaxLines { // a page of limit steps
		all.Steps, all.History = all.Steps[:min(limit, len(all.Steps))], nil
		all.Next = manage.Place{Epoch: run.Epoch, Step: run.EventID}
	}
	return all, c.say("inspect %s %q %d", id, from, limit)
}

func steps() []core.Step {
	payload := []byte("{\"b\": 1.0,\n \"a\":\"<&>\", \"a\":12345678901234567890}")
	return []core.Step{
		{Name: "route", Path: "route", Type: "choice", Status: core.StepSucceeded, State: payload, Output: payload, StartedAt: noon, FinishedAt: noon},
		{
			Name: "pack", Path: "prepare/parcels/pack/17/pack", Type: "http", Status: core.StepFailed, Attempt: 3, State: []byte("17"),
			Error: `status: 503 "away"`, StartedAt: noon, FinishedAt: noon.Add(time.Hour), Carry: "c4rry",
		},
		{Name: "approve", Path: "approve#2", Type: "callback", Status: core.StepWaiting, State: []byte("null")},
	}
}

func entries() []core.Entry {
	return []core.Entry{
		{Seq: 1, At: noon, Epoch: 1, Type: core.EntryStarted},
		{Seq: 2, At: noon.Add(time.Hour), Epoch: 2, Type: core.EntryStepFailed, Path: "approve#2", Data: `{"error": "<away>"}`},
	}
}

// Graph draws the run that failed. The definitions of the others are not stored.
func (c *clerk) Graph(_ context.Context, id core.ID) (manage.Graph, error) {
	run, err := c.find(id)
	if err != nil {
		return manage.Graph{}, err
	}
	g := manage.Graph{Run: run, Undrawn: "the definition that the run follows is not stored"}
	if run.Status == core.RunFailed {
		g = manage.Graph{
			Run: run, Changed: true, Width: 214, Height: 152,
			Steps: []manage.GraphStep{
				{DrawnStep: core.DrawnStep{Key: "route", Name: "route", Type: "choice", Box: core.Box{X: 1, Y: 1, Width: 212, Height: 58}}, Status: core.StepSucceeded,
					Counts: map[core.StepStatus]int{core.StepSucceeded: 1}, Executions: 1, Path: "route", StartedAt: noon, FinishedAt: noon},
				{DrawnStep: core.DrawnStep{Key: "pack", Name: "pack", Type: "map", Note: "each of $.items", OnFailure: true, Layer: 1, Box: core.Box{X: 1, Y: 93, Width: 240, Height: 130}}},
				{DrawnStep: core.DrawnStep{Key: "pack/*/box", Within: "pack", Branch: "b", Name: "box", Type: "http", Box: core.Box{X: 15, Y: 150, Width: 212, Height: 58}}, Status: core.StepFailed,
					Counts: map[core.StepStatus]int{core.StepFailed: 1, core.StepReady: 2}, Executions: 4, Path: "pack/17/box", Attempt: 3, Error: `status: 503 "away"`, StartedAt: noon},
			},
			Ways: []core.Way{
				{From: "route", To: "pack", Kind: core.WayChoice, Label: "$.a < 1", Points: []core.Point{{X: 107, Y: 59}, {X: 107, Y: 93}}, LabelAt: core.Point{X: 107, Y: 79}},
				{From: "route", To: "pack", Kind: core.WayNext, Points: []core.Point{{X: 107, Y: 59}, {X: 107, Y: 93}}},
			},
			Branches: []core.DrawnBranch{{Name: "b", Box: core.Box{X: 8, Y: 140, Width: 226, Height: 80}}},
		}
	}
	return g, c.say("graph %s", id)
}

func (c *clerk) Step(_ context.Context, id core.ID, path string) (manage.Execution, error) {
	if _, err := c.find(id); err != nil {
		return manage.Execution{}, err
	}
	for i, s := range steps() {
		if s.Path == path {
			x := manage.Execution{Step: s}
			if i > 0 {
				x.Job = someID
			}
			return x, c.say("step %s %q", id, path)
		}
	}
	return manage.Execution{}, core.Refuse(core.NotFound, "workflow run %s has not come to a step %q", id, path)
}

func (c *clerk) Redrive(_ context.Context, id core.ID, how manage.Redrive) (manage.Redriven, error) {
	run, err := c.find(id)
	if err != nil {
		return manage.Redriven{}, err
	}
	if !run.Status.Redrivable() {
		return manage.Redriven{}, core.Refuse(core.Invalid, "workflow run %s is %s; only failed and canceled runs can be redriven", id, run.Status)
	}
	run.Status, run.Epoch, run.Error, run.FinishedAt = core.RunPending, run.Epoch+1, "", time.Time{}
	return manage.Redriven{Run: run, Changed: how.From == manage.FromFailed}, c.say("redrive %s %s %s", id, how.From, how.Definition)
}

func (c *clerk) Cancel(_ context.Context, id core.ID) (core.Run, error) {
	run, err := c.find(id)
	if err != nil {
		return run, err
	}
	run.Status, run.Error, run.FinishedAt = core.RunCanceled, "canceled", noon.Add(time.Hour)
	return run, c.say("cancel %s", strings.TrimLeft(string(id), "01R"))
}
