package manage

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Graph is the definition that a run follows, drawn, with the state of each of its steps in the
// run. The states belong to the run's current epoch.
type Graph struct {
	core.Run

	// Changed says that the workflow of today's configuration has another definition than
	// the run follows.
	Changed bool

	// Undrawn is why the definition cannot be drawn; empty if it is drawn. If it is set, Steps are
	// the steps that the run has reached, in that order, without places. Width and Height are 0 then.
	Undrawn string

	Width, Height int
	Steps         []GraphStep
	Ways          []core.Way
	Branches      []core.DrawnBranch
}

// A GraphStep is a step of a definition with its state in a run. A run executes a step several
// times if the step is inside of a map step, or if a goto leads back to it. Of repeated visits only
// the last one counts in the state.
type GraphStep struct {
	core.DrawnStep

	// Status is the most urgent one of its executions: failed first, then the states of unfinished
	// executions, and succeeded last. It is empty if the run has not reached the step.
	Status core.StepStatus

	Counts     map[core.StepStatus]int // its executions by status; nil for none
	Executions int                     // also the repeated visits

	// Of the first execution with that status.
	Path                  string
	Attempt               int
	Error                 string
	StartedAt, FinishedAt time.Time
}

// urgency has the statuses of steps in the order in which they decide the status of a GraphStep.
var urgency = map[core.StepStatus]int{
	core.StepFailed: 7, core.StepRunning: 6, core.StepWaiting: 5, core.StepReady: 4, core.StepCanceled: 3, core.StepSkipped: 2, core.StepSucceeded: 1,
}

// Graph returns the graph of a run. It reads no inputs and outputs: see [Runs.Step].
func (r *Runs) Graph(ctx context.Context, id core.ID) (Graph, error) {
	run, err := r.run(ctx, id)
	if err != nil {
		return Graph{}, err
	}
	steps, err := r.store.Outline(ctx, id, run.Epoch)
	if err != nil {
		return Graph{}, err
	}
	if err := r.showCalls(ctx, run, steps); err != nil {
		return Graph{}, err
	}
	today := r.current(run.Workflow)
	g := Graph{Run: run, Changed: today.Hash != "" && today.Hash != run.Definition}
	d, err := r.draw(ctx, run.Definition)
	switch {
	case core.IsKind(err, core.NotFound):
		g.Undrawn = "the definition that the run follows is not stored"
	case core.IsKind(err, core.Invalid):
		g.Undrawn = err.Error()
	case err != nil:
		return Graph{}, err
	}
	g.Width, g.Height, g.Ways, g.Branches = d.Width, d.Height, d.Ways, d.Branches
	g.fill(d.Steps, steps)
	return g, nil
}

// draw returns the diagram of a definition.
func (r *Runs) draw(ctx context.Context, hash string) (core.Diagram, error) {
	if r.Draw == nil {
		return core.Diagram{}, core.Refuse(core.Invalid, "this process draws no definitions")
	}
	return r.Draw(ctx, hash)
}

// fill makes the steps of the graph: the steps of the diagram, and further executed steps that the
// diagram lacks.
func (g *Graph) fill(drawn []core.DrawnStep, executed []core.Step) {
	at := make(map[string]int, len(drawn))
	for _, d := range drawn {
		at[d.Key] = len(g.Steps)
		g.Steps = append(g.Steps, GraphStep{DrawnStep: d})
	}
	byID := make(map[core.ID]*core.Step, len(executed))
	last := make(map[visit]core.ID, len(executed)) // the newest execution of each visit
	for i := range executed {
		s := &executed[i]
		byID[s.ID] = s
		last[visitOf(s)] = max(last[visitOf(s)], s.ID)
	}
	keys := make(map[core.ID]string, len(executed))
	for i := range executed {
		s := &executed[i]
		key := keyOf(s, byID, keys)
		n, known := at[key]
		if !known {
			n = len(g.Steps)
			at[key] = n
			step := GraphStep{DrawnStep: core.DrawnStep{Key: key, Within: keys[s.ParentID], Name: s.Name, Type: s.Type}}
			if above := byID[s.ParentID]; above != nil && above.Type == "parallel" {
				step.Branch = s.Branch
			}
			g.Steps = append(g.Steps, step)
		}
		g.Steps[n].count(s, last[visitOf(s)] == s.ID)
	}
}

// keyOf returns the key of an executed step in its definition. It keeps the keys that it finds.
func keyOf(s *core.Step, byID map[core.ID]*core.Step, keys map[core.ID]string) string {
	if keys[s.ID] == "" {
		above, key := byID[s.ParentID], ""
		if above != nil {
			key = keyOf(above, byID, keys)
		}
		keys[s.ID] = core.KeyOf(*s, above, key)
	}
	return keys[s.ID]
}

// A visit is a step in one branch, however often the run repeats it there.
type visit struct {
	above        core.ID
	branch, name string
}

func visitOf(s *core.Step) visit { return visit{s.ParentID, s.Branch, s.Name} }

// count adds an execution. last says that the run has not repeated it.
func (s *GraphStep) count(x *core.Step, last bool) {
	s.Executions++
	if !last {
		return
	}
	if s.Counts == nil {
		s.Counts = map[core.StepStatus]int{}
	}
	s.Counts[x.Status]++
	if urgency[x.Status] > urgency[s.Status] {
		s.Status, s.Path, s.Attempt, s.Error, s.StartedAt, s.FinishedAt = x.Status, x.Path, x.Attempt, x.Error, x.StartedAt, x.FinishedAt
	}
}

// An Execution is one execution of a step, with its input and output.
type Execution struct {
	core.Step
	Job core.ID // its job; empty if it has none
}

// Step returns an execution of a step in the run's epoch, by its path. A path that the run has not come
// to is refused with [core.NotFound].
func (r *Runs) Step(ctx context.Context, id core.ID, path string) (Execution, error) {
	run, err := r.run(ctx, id)
	if err != nil {
		return Execution{}, err
	}
	steps, err := r.store.Survey(ctx, id, run.Epoch, core.Wanted{Paths: []string{path}})
	switch {
	case err != nil:
		return Execution{}, err
	case len(steps) == 0:
		return Execution{}, core.Refuse(core.NotFound, "workflow run %s has not come to a step %q", id, path)
	}
	if err := r.showCalls(ctx, run, steps); err != nil {
		return Execution{}, err
	}
	if err := r.showPayload(ctx, run, steps); err != nil {
		return Execution{}, err
	}
	x := Execution{Step: steps[0]}
	// A step that a redrive has copied has no job.
	job, err := r.store.Job(ctx, x.ID)
	if err == nil {
		x.Job = job.ID
	} else if !core.IsKind(err, core.NotFound) {
		return Execution{}, err
	}
	return x, nil
}
