package config

import (
	"slices"
	"strings"
)

// loops reports cycles in a list of steps on which no step takes time. A run would repeat such
// a cycle as fast as the gateway can, until its history is full and it fails. next are the
// successors of each step. A successor outside of the list is its end.
func (k *checker) loops(path string, steps []Step, next [][]int) {
	reported := make([]bool, len(steps))
	for i := range steps {
		// Each loop is reported once, at its first step.
		if reported[i] {
			continue
		}
		loop := loopFrom(i, steps, next)
		if loop == nil {
			continue
		}
		var names []string
		for _, at := range append(loop, i) {
			names = append(names, k.named(index(path, at)+".name", steps[at].Name, "..."))
		}
		for _, at := range loop {
			reported[at] = true
		}
		k.problem(index(path, i), "the steps %s form a loop without a call, a callback or a wait of at least 1 s, so a run would never end", strings.Join(names, " > "))
	}
}

// loopFrom returns the shortest loop through a step and others that take no time, beginning
// with the step itself; nil if there is none. It searches breadth first.
func loopFrom(start int, steps []Step, next [][]int) []int {
	if takesTime(steps[start]) {
		return nil
	}
	from := map[int]int{} // for each step on the way, the step before it
	// from doubles as the set of the steps that were seen.
	for ahead := []int{start}; len(ahead) > 0; ahead = ahead[1:] {
		for _, to := range next[ahead[0]] {
			if to == start {
				return pathBack(start, ahead[0], from)
			}
			if _, known := from[to]; !known && to < len(steps) && !takesTime(steps[to]) {
				from[to] = ahead[0]
				ahead = append(ahead, to)
			}
		}
	}
	return nil
}

// pathBack returns the path from one step to another, both included.
func pathBack(start, end int, from map[int]int) []int {
	path := []int{end}
	for end != start {
		end = from[end]
		path = append(path, end)
	}
	slices.Reverse(path)
	return path
}

// takesTime reports whether a run waits for something outside at a step. A step with an invalid
// type may.
func takesTime(s Step) bool {
	switch s.Type {
	case "wait":
		return s.Seconds > 0
	// These are executed at once.
	case "choice", "fail":
		return false
	case "map":
		return s.Iterator == nil || takesTime(*s.Iterator)
	// One branch that takes time is enough, since all branches must end.
	case "parallel":
		return slices.ContainsFunc(s.Branches, func(b Branch) bool { return b.URL != "" || slices.ContainsFunc(b.Steps, takesTime) })
	}
	return true
}
