package workflow

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// fits checks that the definition has a step of the past. The first step that it lacks becomes
// the misfit. A run that keeps its definition always fits. The path alone decides, so a step
// that was moved to another list does not fit.
func (p *formerEpoch) fits(s core.Step) bool {
	of := p.m.d.at(s.Path)
	switch {
	case of == nil:
		p.misfits("it has no step %s, to which the run has come", s.Path)
	case of.kind.typ() != s.Type:
		p.misfits("step %s is of type %s there, and the run came to one of type %s", s.Path, of.kind.typ(), s.Type)
	default:
		return true
	}
	return false
}

// fitBranches checks that a parallel step still has the branches with which it began. A step
// with more or fewer branches could never join them.
func (p *formerEpoch) fitBranches(s core.Step) {
	of := p.m.d.at(s.Path)
	if of == nil {
		return
	}
	if k, ok := of.kind.(*parallelStep); ok && len(k.branches) != s.Fan.Total {
		p.misfits("step %s has %d branches there, and the run began %d", s.Path, len(k.branches), s.Fan.Total)
	}
}

// Later misfits are dropped: one is enough for the refusal.
func (p *formerEpoch) misfits(format string, args ...any) {
	if p.misfit == "" && p.m.recast.Hash != "" {
		p.misfit = fmt.Sprintf(format, args...)
	}
}

// counted returns the carry of a step. Only visits of looped steps are counted, and another
// definition may have more looped steps. So under another definition the visits are counted
// anew; otherwise two visits would have one path.
func (p *formerEpoch) counted(s core.Step) carry {
	c := readCarry(s.Carry)
	if p.m.recast.Hash == "" {
		return c
	}
	c.Visits = maps.Clone(c.Visits)
	// The visits are counted from the paths that the steps have, within the same branch.
	for _, x := range p.within[s.ParentID] {
		of := p.m.d.at(x.Path)
		// Only steps of the same branch count, and only looped steps have numbers.
		if x.Branch != s.Branch || of == nil || !of.looped {
			continue
		}
		if c.Visits == nil {
			c.Visits = map[string]int{}
		}
		c.Visits[of.name] = max(c.Visits[of.name], visitIn(x.Path))
	}
	return c
}

// visitIn returns the number of the visit in a path. It is 1 for a path without a number.
func visitIn(path string) int {
	_, n, again := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], "#")
	if !again {
		return 1
	}
	visit, err := strconv.Atoi(n)
	if err != nil {
		return 1
	}
	return visit
}
