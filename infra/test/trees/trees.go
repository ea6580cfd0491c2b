// Package trees writes random workflows: trees of parallel and map steps whose leaves are
// calls, waits and callbacks. It knows the language of the configuration and nothing else of
// this module.
package trees

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Steps writes the list of a workflow's steps in YAML, each line behind an indent. call are
// the fields of each call, one in a string, such as its url. The called service must answer
// with a JSON object that has a list of items.
func Steps(r *rand.Rand, indent string, call ...string) string {
	a := &author{Rand: r, call: call}
	a.list(0, indent)
	return a.out.String()
}

// An author writes trees of steps. A list begins with a call, so that every state after it
// is an object with items.
type author struct {
	*rand.Rand
	call  []string
	out   strings.Builder
	steps int
}

func (a *author) list(depth int, indent string) {
	kinds := []string{"http"}
	for range 1 + a.IntN(3) {
		kind := []string{"http", "wait", "callback", "callback", "parallel", "parallel", "map", "map"}[a.IntN(8)]
		if depth >= 2 || a.steps > 10 {
			kind = "http"
		}
		kinds = append(kinds, kind)
	}
	for i, kind := range kinds {
		fmt.Fprintf(&a.out, "%s- name: %s\n", indent, a.name(kind[:1]))
		a.step(kind, depth, indent+"  ")
		if i > 0 && kind != "wait" && a.IntN(8) == 0 { // the first call returns the items
			fmt.Fprintf(&a.out, "%s  on_failure: continue\n", indent)
		}
	}
}

func (a *author) name(kind string) string {
	a.steps++
	return fmt.Sprint(kind, a.steps)
}

func (a *author) step(kind string, depth int, indent string) {
	line := func(format string, args ...any) { fmt.Fprintf(&a.out, indent+format+"\n", args...) }
	calls := func() {
		for _, field := range a.call {
			line("%s", field)
		}
	}
	inline := strings.Join(a.call, ", ")
	line("type: %s", kind)
	switch kind {
	case "http":
		calls()
		if a.IntN(3) == 0 {
			line("retry: {max: 2, interval: 10ms}")
		}
	case "callback":
		calls()
	case "wait":
		line("seconds: %d", a.IntN(3))
	case "parallel":
		line("result_path: $.p")
		line("branches:")
		for i := range 2 + a.IntN(2) {
			if a.IntN(2) == 0 {
				line("  - {name: b%d, %s}", i, inline)
				continue
			}
			line("  - name: b%d", i)
			line("    steps:")
			a.list(depth+1, indent+"      ")
		}
	case "map":
		line("result_path: $.m")
		line("items_path: $.items")
		line("max_concurrency: %d", 1+a.IntN(3))
		line("iterator:")
		line("  name: %s", a.name("i"))
		if a.IntN(2) == 0 {
			line("  type: http")
			for _, field := range a.call {
				line("  %s", field)
			}
			break
		}
		line("  type: parallel")
		line("  branches:")
		line("    - {name: b0, %s}", inline)
		line("    - {name: b1, steps: [{name: %s, %s}, {name: %s, %s}]}", a.name("h"), inline, a.name("h"), inline)
	}
}
