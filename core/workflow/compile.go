package workflow

import (
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
)

// A list is a list of steps: of the workflow itself, of a branch, or of an iterator. Lists
// nest: a parallel or map step has lists of its own.
type list struct {
	name  string // of the branch
	bare  bool   // a branch that is one call; paths name the branch only
	steps []*step
	named map[string]*step
}

// A step is a compiled [config.Step].
type step struct {
	name string
	kind kind
	next *step // the step after it, if it succeeds or may continue; nil: the list ends

	// looped says that a run can reach the step again in the same list.
	looped bool

	attempts int // maximum; at least 1
	backoff  core.Retry
	retried  []string // classes that are retried; empty: all
	catches  []catch
	proceeds bool // on_failure: continue

	input  *config.Mapping // nil: the state itself
	output *config.Mapping // nil: the state with the result
	place  placement
}

// A catch is one entry of a step's catch: the first entry with a matching class decides.
type catch struct {
	classes []string
	to      *step
}

// A kind has the behaviour of one type of step. A kind is shared by all runs and never changes.
// The state of a run is in the rows of the move.
type kind interface {
	// typ returns the type's name.
	typ() string

	// task returns the task of a job while the run is running.
	task(job core.TakenJob, now time.Time) Task

	// inner reports whether the step needs no call, callback or time. Then enter may do
	// much work.
	inner() bool

	// enter begins a step that the run has reached, or leaves that to the step's job.
	enter(m *move, r *row)

	// end handles the end of an attempt, or the due time of a job. It returns false if this
	// changes nothing.
	end(m *move, r *row, e core.StepEnd) bool

	// inside returns the list of the branch or item with this label; nil if there is none.
	inside(label string) *list

	// exits returns the steps to which it may go beside the step after it.
	exits() []*step
}

// leaf has the methods of steps without branches and without choices. Kinds embed it, so that
// only steps with branches or choices have these methods.
type leaf struct{}

func (leaf) inside(string) *list { return nil }
func (leaf) exits() []*step      { return nil }

// Compile makes a definition from a workflow of [config.Load] or [config.ParseDefinition].
// These functions have parsed its expressions, and have checked it for every error that
// Compile can return. An error names the step.
func Compile(w config.Workflow) (*Definition, error) {
	// The compiled steps point to each other, so a run needs no look-up by name.
	top, err := compileList("", w.Steps)
	if err != nil {
		return nil, fmt.Errorf("workflow %q: %w", w.Name, err)
	}
	timeout := time.Duration(w.Timeout) * time.Second
	d := &Definition{name: w.Name, timeout: timeout, params: w.Params, top: top,
		entries: maxEntries, enters: maxEnters, bytes: w.MaxBytes, separateTexts: !w.Earlier}
	if w.OnFailure == "" {
		return d, nil
	}
	if d.onFailure, err = top.find(w.OnFailure); err != nil {
		return nil, fmt.Errorf("workflow %q: on_failure: %w", w.Name, err)
	}
	d.markShared()
	return d, nil
}

// compileList compiles a list of steps. It makes all steps first, since a goto may name a later
// step.
func compileList(name string, steps []config.Step) (*list, error) {
	l := &list{name: name, named: map[string]*step{}}
	for _, c := range steps {
		s := &step{name: c.Name}
		l.steps = append(l.steps, s)
		l.named[c.Name] = s
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("there are no steps")
	}
	for i, c := range steps {
		if err := l.compile(i, c); err != nil {
			return nil, fmt.Errorf("step %q: %w", c.Name, err)
		}
	}
	// Loops are known only when every step has its successors.
	for _, s := range l.steps {
		s.looped = s.returns()
	}
	return l, nil
}

// compile fills in the i-th step of the list.
func (l *list) compile(i int, c config.Step) (err error) {
	s := l.steps[i]
	// Steps that this package makes have no retry policy.
	s.attempts = max(c.Retry.Max, 1)
	s.backoff = core.Retry{Max: s.attempts, Interval: c.Retry.Interval.Duration, Fixed: c.Retry.Backoff == "fixed"}
	s.retried = c.Retry.Errors
	s.proceeds = c.OnFailure == "continue"
	// By default the steps run in the order of the list.
	if i+1 < len(l.steps) && !c.End {
		s.next = l.steps[i+1]
	}
	if c.Goto != "" && !c.End {
		if s.next, err = l.find(c.Goto); err != nil {
			return err
		}
	}
	for _, entry := range c.Catch {
		to, err := l.find(entry.Goto)
		if err != nil {
			return err
		}
		s.catches = append(s.catches, catch{entry.Errors, to})
	}
	s.input, s.output = c.Input.Value, c.Output.Value
	s.place = placementOf(c.ResultPath)
	s.kind, err = l.kind(s, c)
	return err
}

// kind returns the behaviour of the step's type. An empty type is http, for steps that are made
// in this package.
func (l *list) kind(s *step, c config.Step) (kind, error) {
	switch c.Type {
	case "http", "":
		return &httpStep{call: newCall(s, c)}, nil
	case "choice":
		return newChoice(l, s, c)
	case "parallel":
		return newParallel(s, c)
	case "map":
		return newMap(s, c)
	case "wait":
		return newWait(s, c), nil
	case "callback":
		return newCallback(s, c), nil
	case "fail":
		return newFail(s, c), nil
	}
	return nil, fmt.Errorf("there is no type %q", c.Type)
}

// find returns the step of the list with this name. A jump never leaves its list, so names of
// other lists are not found.
func (l *list) find(name string) (*step, error) {
	if s := l.named[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("there is no step %q in its list", name)
}

// single returns a list of one call, without a name of its own. It is how a branch with a url
// becomes a list, so that all branches are alike.
func single(name string, c config.Step) (*list, error) {
	c.Name = name
	l, err := compileList(name, []config.Step{c})
	if err == nil {
		l.bare = true
	}
	return l, err
}

// follows returns the steps that may come next.
func (s *step) follows() []*step {
	all := slices.Clone(s.kind.exits())
	for _, c := range s.catches {
		all = append(all, c.to)
	}
	if s.next != nil {
		all = append(all, s.next)
	}
	return all
}

// returns reports whether a run can reach the step again from the step itself. Only such steps
// have numbered visits in their paths. So the paths of most workflows have no numbers.
func (s *step) returns() bool {
	seen := map[*step]bool{}
	for ahead := s.follows(); len(ahead) > 0; {
		t := ahead[len(ahead)-1]
		ahead = ahead[:len(ahead)-1]
		if t == s {
			return true
		}
		if !seen[t] {
			seen[t] = true
			ahead = append(ahead, t.follows()...)
		}
	}
	return false
}

// matches reports whether a list of classes includes a class. Only "all" includes the
// classes data, no_choice and fail.
func matches(classes []string, class core.ErrorClass) bool {
	named := class != core.ClassData && class != core.ClassNoChoice && class != core.ClassFail
	return slices.Contains(classes, "all") || named && slices.Contains(classes, string(class))
}
