package manage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

// stepsOfGraph are the steps of a run of a workflow with a map in a branch, and a loop.
func stepsOfGraph() []core.Step {
	at := func(id core.ID, parent core.ID, branch, path, name, typ string, status core.StepStatus) core.Step {
		return core.Step{ID: id, ParentID: parent, Branch: branch, Path: path, Name: name, Type: typ, Status: status, Attempt: 2}
	}
	failed := at("s6", "s4", "1", "both/b/each/1/item", "item", "http", core.StepFailed)
	failed.Error = "status: 500"
	return []core.Step{
		at("s1", "", "", "check", "check", "http", core.StepFailed),
		at("s2", "", "", "both", "both", "parallel", core.StepRunning),
		at("s3", "s2", "a", "both/a", "a", "http", core.StepReady),
		at("s4", "s2", "b", "both/b/each", "each", "map", core.StepRunning),
		at("s5", "s4", "0", "both/b/each/0/item", "item", "wait", core.StepSucceeded),
		failed,
		at("s7", "s4", "2", "both/b/each/2/item", "item", "wait", core.StepSucceeded),
		at("s8", "", "", "check#2", "check", "http", core.StepSucceeded),
	}
}

func graphed() (*record, *Runs) {
	r := &record{run: core.Run{ID: "r1", Workflow: "fulfil", EventID: "e1", Epoch: 2, Status: core.RunRunning, Definition: "old"}, steps: stepsOfGraph(), jobs: []core.Job{{ID: "s3"}}}
	runs := NewRuns(r, nil)
	runs.Draw = func(_ context.Context, hash string) (core.Diagram, error) {
		d := core.Diagram{Width: 10, Height: 20}
		for _, key := range []string{"check", "both", "both/a", "both/b/each", "both/b/each/*/item", "never"} {
			d.Steps = append(d.Steps, core.DrawnStep{Key: key, Name: key[strings.LastIndexByte(key, '/')+1:], Note: hash})
		}
		return d, nil
	}
	return r, runs
}

// lines returns the steps of a graph, a line each.
func lines(g Graph) (all []string) {
	for _, s := range g.Steps {
		line := fmt.Sprintf("%s: %s %v of %d", s.Key, s.Status, s.Counts, s.Executions)
		if s.Path != "" {
			line += fmt.Sprintf(", %s attempt %d", s.Path, s.Attempt)
		}
		if s.Error != "" {
			line += " " + s.Error
		}
		all = append(all, line)
	}
	return all
}

func TestGraph(t *testing.T) {
	r, runs := graphed()
	g, err := runs.Graph(context.Background(), "r1")
	if err != nil || g.Undrawn != "" || g.Width != 10 || g.Changed || g.ID != "r1" {
		t.Fatalf("Graph = %+v, %v", g, err)
	}
	want := []string{
		"check: succeeded map[succeeded:1] of 2, check#2 attempt 2",
		"both: running map[running:1] of 1, both attempt 2",
		"both/a: running map[running:1] of 1, both/a attempt 3", // a worker holds its job
		"both/b/each: running map[running:1] of 1, both/b/each attempt 2",
		"both/b/each/*/item: failed map[failed:1 succeeded:2] of 3, both/b/each/1/item attempt 2 status: 500",
		"never:  map[] of 0",
	}
	if diff := cmp.Diff(want, lines(g)); diff != "" {
		t.Error("steps (-want +got):", diff)
	}
	if g.Steps[0].Note != "old" {
		t.Errorf("the definition %s is drawn, want that of the run", g.Steps[0].Note)
	}
	if slices.Contains(r.asked, "Steps") || slices.Contains(r.asked, "Event") {
		t.Errorf("Graph asked for %v, want nothing that reads texts", r.asked)
	}
	runs.Current = func(string) core.Definition { return core.Definition{Hash: "new"} }
	if g, err := runs.Graph(context.Background(), "r1"); err != nil || !g.Changed {
		t.Errorf("Graph of a run with an earlier definition: Changed = %t, %v", g.Changed, err)
	}
}

// A run whose definition cannot be drawn has a list of the steps that it has come to, and the reason.
func TestGraphWithoutADrawing(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{core.Refuse(core.NotFound, "definition not found"), "the definition that the run follows is not stored"},
		{core.Refuse(core.Invalid, "the environment variable HOST is not set"), "the environment variable HOST is not set"},
	} {
		_, runs := graphed()
		runs.Draw = func(context.Context, string) (core.Diagram, error) { return core.Diagram{}, tt.err }
		g, err := runs.Graph(context.Background(), "r1")
		if err != nil || g.Undrawn != tt.want || g.Width != 0 {
			t.Fatalf("Graph = %+v, %v, want %s", g, err, tt.want)
		}
		var got []string
		for _, s := range g.Steps {
			got = append(got, fmt.Sprintf("%s in %q %q %s %s", s.Key, s.Within, s.Branch, s.Type, s.Status))
		}
		want := []string{`check in "" "" http succeeded`, `both in "" "" parallel running`, `both/a in "both" "a" http running`,
			`both/b/each in "both" "b" map running`, `both/b/each/*/item in "both/b/each" "" wait failed`}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error("steps (-want +got):", diff)
		}
	}
	_, runs := graphed()
	runs.Draw = nil
	if g, err := runs.Graph(context.Background(), "r1"); err != nil || g.Undrawn == "" {
		t.Errorf("Graph without Draw = %q, %v", g.Undrawn, err)
	}
}

func TestGraphFails(t *testing.T) {
	broken := errors.New("the disk is gone")
	for _, method := range []string{"Run", "Outline", "Jobs"} {
		r, runs := graphed()
		r.broken, r.err = method, broken
		if _, err := runs.Graph(context.Background(), "r1"); !errors.Is(err, broken) {
			t.Errorf("Graph without %s = %v", method, err)
		}
	}
	_, runs := graphed()
	runs.Draw = func(context.Context, string) (core.Diagram, error) { return core.Diagram{}, broken }
	if _, err := runs.Graph(context.Background(), "r1"); !errors.Is(err, broken) {
		t.Errorf("Graph without a definition = %v", err)
	}
	if _, err := runs.Graph(context.Background(), "r2"); !errors.Is(err, ErrRun) {
		t.Errorf("Graph of no run = %v", err)
	}
}

func TestStep(t *testing.T) {
	r, runs := graphed()
	r.payload, r.steps[2].State = `{"a":1}`, []byte("7")
	for path, want := range map[string]string{
		"both/a": "7 running 3 s3", "check#2": `{"a":1} succeeded 2 `,
	} {
		x, err := runs.Step(context.Background(), "r1", path)
		if got := fmt.Sprintf("%s %s %d %s", x.State, x.Status, x.Attempt, x.Job); err != nil || got != want {
			t.Errorf("Step(%s) = %s, %v, want %s", path, got, err, want)
		}
	}
	if _, err := runs.Step(context.Background(), "r1", "both/c"); !core.IsKind(err, core.NotFound) || !strings.Contains(err.Error(), `"both/c"`) {
		t.Errorf("Step of no step = %v", err)
	}
	if _, err := runs.Step(context.Background(), "r2", "check"); !errors.Is(err, ErrRun) {
		t.Errorf("Step of no run = %v", err)
	}
	broken := errors.New("the disk is gone")
	for method, path := range map[string]string{"Run": "check", "Survey": "check", "Jobs": "both/a", "Event": "both/a", "Job": "both/a"} {
		r, runs := graphed()
		r.broken, r.err = method, broken
		if _, err := runs.Step(context.Background(), "r1", path); !errors.Is(err, broken) {
			t.Errorf("Step without %s = %v", method, err)
		}
	}
}
