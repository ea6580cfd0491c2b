package wire

import (
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// A RunGraph is the graph of the definition that a run follows, with the state of each step in the run.
// Lengths are in pixels, from the upper left corner.
type RunGraph struct {
	Run
	Seq     int           `json:"seq"`                // grows with each change of the run
	Changed bool          `json:"definition_changed"` // new runs follow another definition
	Undrawn Text          `json:"undrawn"`            // why there is no drawing; null if there is one
	Width   int           `json:"width"`              // 0 without a drawing
	Height  int           `json:"height"`
	Steps   []GraphStep   `json:"steps"`
	Ways    []GraphWay    `json:"ways"`
	Frames  []GraphBranch `json:"branches"`
}

// A GraphStep is a step of the definition. Its path and the fields after it are about the first
// execution that has the status; they are null if the run has not come to the step.
type GraphStep struct {
	Key       string `json:"key"`
	Within    Text   `json:"within"`
	Branch    Text   `json:"branch"`
	Name      string `json:"name"`
	Type      string `json:"type"`
	Note      Text   `json:"note"`
	OnFailure bool   `json:"on_failure"`
	Layer     int    `json:"layer"`
	Box

	Status     Text                    `json:"status"`
	Counts     map[core.StepStatus]int `json:"counts"`
	Executions int                     `json:"executions"`

	Path        Text `json:"path"`
	Attempt     int  `json:"attempt"`
	Error       Text `json:"error"`
	StartedAt   Time `json:"started_at"`
	CompletedAt Time `json:"completed_at"`
}

// A Box is a rectangle.
type Box struct {
	X      int `json:"x"`
	Y      int `json:"y"`
	Width  int `json:"width"`
	Height int `json:"height"`
}

// A GraphWay leads from one step to another. Its line has the points.
type GraphWay struct {
	From   string       `json:"from"` // the key of a step
	To     string       `json:"to"`
	Kind   core.WayKind `json:"kind"`
	Label  Text         `json:"label"`
	Points []Point      `json:"points"`
	LabelX int          `json:"label_x"`
	LabelY int          `json:"label_y"`
}

// A Point is an x and a y.
type Point [2]int

// A GraphBranch is the frame of a branch of a parallel step.
type GraphBranch struct {
	Name string `json:"name"`
	Box
}

// GraphOf returns the record of a graph.
func GraphOf(g manage.Graph) RunGraph {
	return RunGraph{
		Run: RunOf(g.Run), Seq: g.Seq, Changed: g.Changed, Undrawn: Text(g.Undrawn), Width: g.Width, Height: g.Height,
		Steps: List(g.Steps, graphStepOf),
		Ways: List(g.Ways, func(w core.Way) GraphWay {
			points := List(w.Points, func(p core.Point) Point { return Point{p.X, p.Y} })
			return GraphWay{w.From, w.To, w.Kind, Text(w.Label), points, w.LabelAt.X, w.LabelAt.Y}
		}),
		Frames: List(g.Branches, func(b core.DrawnBranch) GraphBranch { return GraphBranch{b.Name, Box(b.Box)} }),
	}
}

func graphStepOf(s manage.GraphStep) GraphStep {
	counts := s.Counts
	if counts == nil {
		counts = map[core.StepStatus]int{}
	}
	return GraphStep{
		Key: s.Key, Within: Text(s.Within), Branch: Text(s.Branch), Name: s.Name, Type: s.Type, Note: Text(s.Note), OnFailure: s.OnFailure, Layer: s.Layer, Box: Box(s.Box),
		Status: Text(s.Status), Counts: counts, Executions: s.Executions,
		Path: Text(s.Path), Attempt: s.Attempt, Error: Text(s.Error), StartedAt: Time{s.StartedAt}, CompletedAt: Time{s.FinishedAt},
	}
}

// Core returns the graph.
func (g RunGraph) Core() manage.Graph {
	all := manage.Graph{Run: g.Run.Core(), Changed: g.Changed, Undrawn: string(g.Undrawn), Width: g.Width, Height: g.Height}
	all.Seq = g.Seq
	for _, s := range g.Steps {
		all.Steps = append(all.Steps, manage.GraphStep{
			DrawnStep: core.DrawnStep{Key: s.Key, Within: string(s.Within), Branch: string(s.Branch), Name: s.Name, Type: s.Type, Note: string(s.Note), OnFailure: s.OnFailure, Layer: s.Layer, Box: core.Box(s.Box)},
			Status:    core.StepStatus(s.Status), Counts: s.Counts, Executions: s.Executions,
			Path: string(s.Path), Attempt: s.Attempt, Error: string(s.Error), StartedAt: s.StartedAt.Time, FinishedAt: s.CompletedAt.Time,
		})
	}
	for _, w := range g.Ways {
		way := core.Way{From: w.From, To: w.To, Kind: w.Kind, Label: string(w.Label), LabelAt: core.Point{X: w.LabelX, Y: w.LabelY}}
		for _, p := range w.Points {
			way.Points = append(way.Points, core.Point{X: p[0], Y: p[1]})
		}
		all.Ways = append(all.Ways, way)
	}
	for _, b := range g.Frames {
		all.Branches = append(all.Branches, core.DrawnBranch{Name: b.Name, Box: core.Box(b.Box)})
	}
	return all
}

// An Execution is one execution of a step, with its job.
type Execution struct {
	Step
	JobID Text `json:"job_id"` // null if it has no job
}
