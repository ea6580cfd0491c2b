package workflow

import (
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/expr"
)

// A choiceStep goes to the first step whose condition holds. It does not change the state. Its
// conditions see the state, or the step's input if it has one.
type choiceStep struct {
	inline
	of       *step
	ways     []way
	fallback *step // nil if there is none
}

// A way is one entry of choices: a condition, and the step to go to if it holds.
type way struct {
	when *expr.Filter
	to   *step
}

// newChoice compiles the ways in their order, and the default. The targets are steps of the
// same list.
func newChoice(l *list, s *step, c config.Step) (kind, error) {
	k := &choiceStep{of: s}
	for i, choice := range c.Choices {
		// config refuses such a workflow. A nil filter would panic in the worker.
		if choice.When.Value == nil {
			return nil, fmt.Errorf("choice %d: there is no condition", i+1)
		}
		to, err := l.find(choice.Goto)
		if err != nil {
			return nil, err
		}
		k.ways = append(k.ways, way{choice.When.Value, to})
	}
	if c.Default == "" {
		return k, nil
	}
	var err error
	k.fallback, err = l.find(c.Default)
	return k, err
}

func (k *choiceStep) typ() string { return "choice" }

func (k *choiceStep) inside(string) *list { return nil }

// exits returns the targets of all ways. Only the default may be missing.
func (k *choiceStep) exits() []*step {
	var all []*step
	for _, w := range k.ways {
		all = append(all, w.to)
	}
	if k.fallback != nil {
		all = append(all, k.fallback)
	}
	return all
}

// It needs no call, so its attempt begins and ends in the same move.
func (k *choiceStep) enter(m *move, r *row) {
	r.Attempt++
	s := m.scope(r, r.Attempt)
	to, f := k.choose(s)
	if f != nil {
		m.attemptFailed(r, f)
		return
	}
	m.pass(r, to)
}

// choose returns the target of the first way whose condition holds. If none does and there is
// no default, it returns a failure of class no_choice, which catch and on_failure can handle.
func (k *choiceStep) choose(s scope) (*step, *failure) {
	seen, err := s.inputDocument(k.of.input)
	if err != nil {
		return nil, dataFailure(err)
	}
	c := s.context()
	for i, w := range k.ways {
		// Match fails if the filter ran out of steps, or if the state is too deep to be read. Later
		// choices must not be taken instead.
		holds, err := w.when.Match(seen, c)
		if err != nil {
			return nil, dataFailure(fmt.Errorf("choices[%d].when: %w", i, err))
		}
		if holds {
			return w.to, nil
		}
	}
	if k.fallback == nil {
		return nil, &failure{class: core.ClassNoChoice, text: "no_choice: no choice holds, and there is no default"}
	}
	return k.fallback, nil
}

// pass goes on with the unchanged state.
func (m *move) pass(r *row, to *step) {
	state, err := checked(m.scope(r, r.Attempt).text())
	if err != nil {
		m.attemptFailed(r, dataFailure(err))
		return
	}
	m.succeed(r, to, state)
}

// inline has the methods of steps that need no caller from outside. The transition that reaches
// such a step enters it. A job enters it only if a run begins with it, or if that transition
// has reached a limit of one move. Most moves therefore enter several of them at once.
type inline struct{}

func (inline) task(core.TakenJob, time.Time) Task { return Elapse }

func (inline) inner() bool { return true }

// outside has the methods of steps that need a call, a callback or a time: only their jobs
// make them go on.
type outside struct{}

func (outside) inner() bool { return false }

func (outside) enter(m *move, r *row) { m.schedule(r, m.now) }

// A choice step has a job only if the run begins with it, or if a move reached a limit before
// it.
func (k *choiceStep) end(m *move, r *row, e core.StepEnd) bool { return m.enterByJob(r, e) }

// enterByJob enters a step whose job was taken. If all its branches have ended, it joins
// them.
func (m *move) enterByJob(r *row, e core.StepEnd) bool {
	switch {
	// The branches are still running: their ends decide, and not this job.
	case e.Kind != core.Elapsed || r.fanned() && !r.allEnded():
		return false
	case m.expired || m.failTakenTooOften(r, e):
		return true
	}
	m.ahead = append(m.ahead, r)
	return true
}
