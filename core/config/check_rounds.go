package config

import (
	"slices"
	"strings"
)

// rounds reports cycles in a list of steps on which no step takes time: a run would go round as fast as the gateway
// can, until its history is full. next are the successors of each step. A successor outside of the list is its end.
func (k *checker) rounds(path string, steps []Step, next [][]int) {
	told := make([]bool, len(steps))
	for i := range steps {
		if told[i] {
			continue
		}
		way := roundFrom(i, steps, next)
		if way == nil {
			continue
		}
		var names []string
		for _, at := range append(way, i) {
			names = append(names, k.named(index(path, at)+".name", steps[at].Name, "..."))
		}
		for _, at := range way {
			told[at] = true
		}
		k.problem(index(path, i), "the way %s goes round without a call, a callback or a wait of some seconds, so it would not end", strings.Join(names, " > "))
	}
}

// roundFrom returns the shortest way from a step back to itself over steps that take no time, beginning with itself;
// nil if there is none.
func roundFrom(start int, steps []Step, next [][]int) []int {
	if takesTime(steps[start]) {
		return nil
	}
	from := map[int]int{} // for each step on the way, the step before it
	for ahead := []int{start}; len(ahead) > 0; ahead = ahead[1:] {
		for _, to := range next[ahead[0]] {
			if to == start {
				return wayBack(start, ahead[0], from)
			}
			if _, known := from[to]; !known && to < len(steps) && !takesTime(steps[to]) {
				from[to] = ahead[0]
				ahead = append(ahead, to)
			}
		}
	}
	return nil
}

// wayBack returns the way from one step to another, both included.
func wayBack(start, end int, from map[int]int) []int {
	way := []int{end}
	for end != start {
		end = from[end]
		way = append(way, end)
	}
	slices.Reverse(way)
	return way
}

// takesTime reports whether a run waits for something outside at a step. A step with an invalid type may.
func takesTime(s Step) bool {
	switch s.Type {
	case "wait":
		return s.Seconds > 0
	case "choice", "fail":
		return false
	case "map":
		return s.Iterator == nil || takesTime(*s.Iterator)
	case "parallel":
		return slices.ContainsFunc(s.Branches, func(b Branch) bool { return b.URL != "" || slices.ContainsFunc(b.Steps, takesTime) })
	}
	return true
}
