package workflow

import (
	"strings"
	"time"

	"github.com/eventgateway/gateway/core/config"
)

// A Definition is a compiled workflow. It never changes and is safe for concurrent use.
type Definition struct {
	name    string
	timeout time.Duration
	params  []config.Param
	top     *list

	// onFailure is the step of top with which a failing run continues; nil if there is
	// none.
	onFailure *step
	shared    []string // names of the steps that a run can reach both before a failure and from onFailure on

	entries int // maximum of history entries in each epoch
	enters  int // maximum of inline steps entered in one move
	bytes   int // maximum of bytes that a run writes in each epoch; 0 means no bound

	// separateTexts says that every process that works on a run of this definition can read texts
	// that are kept apart from their steps.
	separateTexts bool
}

// Name returns the workflow's name.
func (d *Definition) Name() string { return d.name }

// First returns the name of the first step.
func (d *Definition) First() string { return d.top.steps[0].name }

// Timeout returns the time from a run's start to its deadline; zero if it has no deadline.
func (d *Definition) Timeout() time.Duration { return d.timeout }

// at returns the step whose visit has this path; nil if the definition has no such step. A path
// is a step's visit, followed by pairs of a branch or item and a visit in it. A bare branch has
// no visit in the path. The number of a visit does not matter here.
func (d *Definition) at(path string) *step {
	l := d.top
	for {
		var s *step
		if l.bare {
			s = l.steps[0]
		} else {
			var visit string
			visit, path, _ = strings.Cut(path, "/")
			name, _, _ := strings.Cut(visit, "#")
			s = l.named[name]
		}
		if s == nil || path == "" {
			return s
		}
		var label string
		label, path, _ = strings.Cut(path, "/")
		if l = s.kind.inside(label); l == nil || l.bare != (path == "") {
			return nil
		}
	}
}
