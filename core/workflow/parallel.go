package workflow

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
)

// A parallelStep runs branches side by side, all with the same input. Its result is an object
// with the branches' results. A failed branch fails the step and cancels the other branches.
type parallelStep struct {
	inline
	of       *step
	branches []*list
}

// newParallel compiles the branches in their order.
func newParallel(s *step, c config.Step) (kind, error) {
	k := &parallelStep{of: s}
	for _, b := range c.Branches {
		l, err := compileBranch(b)
		if err != nil {
			return nil, fmt.Errorf("branch %q: %w", b.Name, err)
		}
		k.branches = append(k.branches, l)
	}
	if len(k.branches) == 0 {
		return nil, fmt.Errorf("there are no branches")
	}
	return k, nil
}

// A branch with a url is compiled as a list of one http step.
func compileBranch(b config.Branch) (*list, error) {
	if len(b.Steps) > 0 {
		return compileList(b.Name, b.Steps)
	}
	return single(b.Name, config.Step{Type: "http", URL: b.URL, Method: b.Method, Headers: b.Headers})
}

func (k *parallelStep) typ() string    { return "parallel" }
func (k *parallelStep) exits() []*step { return nil }

// inside returns the branch with this name. Names are unique within a step.
func (k *parallelStep) inside(label string) *list {
	for _, l := range k.branches {
		if l.name == label {
			return l
		}
	}
	return nil
}

func (k *parallelStep) end(m *move, r *row, e core.StepEnd) bool { return m.enterByJob(r, e) }

// The first time it begins the branches. It is entered again when all of them have ended, and
// joins them.
func (k *parallelStep) enter(m *move, r *row) {
	if r.fanned() {
		m.join(r)
		return
	}
	r.Attempt++
	// All branches get the same text, so the store keeps it once.
	input, err := m.scope(r, r.Attempt).input(k.of.input)
	if err != nil {
		m.attemptFailed(r, dataFailure(err))
		return
	}
	if !m.fan(r, core.Fan{Total: len(k.branches), Started: len(k.branches)}) {
		return
	}
	if !bytes.Equal(input, r.State) {
		m.wrote(r.Name, r.Path, len(input))
	}
	c := readCarry(r.Carry).within()
	for _, l := range k.branches {
		m.ahead = append(m.ahead, m.fork(r, l, l.name, input, c))
	}
}

// fan begins the branches of a step. A run fails now if its history has no room for the
// ends of all branches.
func (m *move) fan(r *row, f core.Fan) bool {
	// Each branch writes at least one entry when it ends.
	m.begun += f.Total
	if m.run.Seq+m.begun >= m.d.entries*m.run.Epoch {
		m.setFull(r.Path, errHistoryFull)
		return false
	}
	r.Fan, r.Status, r.changed = f, core.StepRunning, true
	m.endJob(r, core.Completed, r.Error)
	m.record(core.EntryFanned, r.Path, details{Branches: f.Total})
	return true
}

// join ends a step after all its branches have ended. It also ends a step whose ended branches
// have too many bytes for a result. Then it reads no outputs, and cancels the other branches.
// The outputs were not read with the situation, because a map step may have a thousand of them.
func (m *move) join(r *row) {
	// The sizes are known from the step's own row.
	if r.Fan.Bytes > maxState {
		err := fmt.Errorf("the results of %d branches have %d bytes; at most %d are kept", r.Fan.Ended, r.Fan.Bytes, maxState)
		m.attemptFailed(r, dataFailure(err))
		return
	}
	var wanted core.Wanted
	if r.partial {
		wanted.IDs = []core.ID{r.ID}
	}
	leaves := m.leaves(r)
	if len(leaves) < r.Fan.Total {
		wanted.Leaves = []core.ID{r.ID}
	}
	m.need(wanted)
	// Both are asked for in one reading.
	if r.partial || len(leaves) < r.Fan.Total {
		return
	}
	result, err := checked(r.step.kind.(joiner).joined(leaves), nil)
	if err != nil {
		m.attemptFailed(r, dataFailure(err))
		return
	}
	m.written += len(result)
	m.passResult(r, result)
}

// A joiner makes one result from the results of branches.
type joiner interface{ joined(leaves []*row) []byte }

// leaves returns the known steps that ended a branch of a step. Their outputs are the results
// of the branches.
func (m *move) leaves(r *row) (all []*row) {
	for _, x := range m.order {
		if x.ParentID == r.ID && x.Last && !x.partial {
			all = append(all, x)
		}
	}
	return all
}

// joined returns the object of the branches' outputs, in the order of their names.
func (k *parallelStep) joined(leaves []*row) []byte {
	slices.SortFunc(leaves, func(a, b *row) int { return cmp.Compare(a.Branch, b.Branch) })
	b := []byte{'{'}
	for i, r := range leaves {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(strconv.AppendQuote(b, r.Branch), ':'), r.Output...)
	}
	return append(b, '}')
}
