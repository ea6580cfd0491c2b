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

	// onFailure is the step of top that a run which fails goes on with; nil if there is none.
	onFailure *step
	shared    []string // names of the steps that may come both before a failure and from onFailure on

	entries int // that the history may have in each epoch
	enters  int // of steps that need nobody, in one move
	bytes   int // that a run may write in each epoch; 0 means no bound

	// apart says that every process that works on a run of this definition reads texts that
	// are kept apart from their steps.
	apart bool
}

// Name is the workflow's.
func (d *Definition) Name() string { return d.name }

// First is the name of the first step.
func (d *Definition) First() string { return d.top.steps[0].name }

// Timeout is until the deadline of a run; zero if it has none.
func (d *Definition) Timeout() time.Duration { return d.timeout }

// at finds the step that a path names a visit of; nil if there is none.
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
