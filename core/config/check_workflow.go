package config

import (
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core/endpoint"
	"github.com/eventgateway/gateway/core/expr"
)

// maxNesting bounds parallel and map steps inside each other. Each level makes the paths of steps longer.
const maxNesting = 5

// workflows checks each workflow: where its events come from, its params, and its steps.
func (k *checker) workflows() {
	for _, w := range k.SortedWorkflows() {
		k.subscription(join("workflows", w.Name), w.Source, w.Events)
		k.workflow(w)
		k.cronParams(w)
	}
}

// workflow checks a workflow without its source.
func (k *checker) workflow(w Workflow) {
	path := join("workflows", w.Name)
	k.params(path+".params", w.Params)
	// All lists of the workflow share the names.
	taken := map[string]position{}
	k.steps(path+".steps", w.Steps, 0, taken, jumpsOf(path, w)...)
}

// jumpsOf lists the steps that a workflow names besides the first.
func jumpsOf(path string, w Workflow) []jump {
	if w.OnFailure == "" {
		return nil
	}
	return []jump{{path + ".on_failure", w.OnFailure}}
}

// cronParams checks that the events of a schedule have the params. The gateway makes the
// payload of these events itself.
func (k *checker) cronParams(w Workflow) {
	// Payloads of other sources are not known before they come.
	if k.Sources[w.Source].Type != "cron" {
		return
	}
	for i, p := range w.Params {
		here := index(join("workflows", w.Name)+".params", i)
		switch known := slices.Contains(tickFields, p.Name); {
		// Every run would be refused.
		case !known && p.Required && p.Name != "":
			k.problem(here+".name", "the events of source %s, which is of type cron, have no %s; they have %s", quote(w.Source), quote(p.Name), strings.Join(tickFields, ", "))
		case known && p.Type != "" && p.Type != "string":
			k.problem(here+".type", "%s is a string in the events of source %s, which is of type cron", quote(p.Name), quote(w.Source))
		}
	}
}

// tickFields are the members of the payload of a cron source's events, all of them strings.
var tickFields = []string{"scheduled_at", "schedule", "source"}

// params reports names that are given twice. Missing names were reported by the decoder.
func (k *checker) params(path string, params []Param) {
	seen := map[string]bool{}
	for i, p := range params {
		if seen[p.Name] && p.Name != "" {
			here := index(path, i) + ".name"
			k.problem(here, "the parameter %s is given twice", k.named(here, p.Name, "of this name"))
		}
		seen[p.Name] = true
	}
}

// steps checks one list of steps: of a workflow, of a branch, or an iterator, which is a list
// of one. taken are the names of all steps of the workflow. others are the jumps into the list,
// beside its first step.
func (k *checker) steps(path string, steps []Step, depth int, taken map[string]position, others ...jump) {
	for i := range steps {
		here := index(path, i)
		k.stepName(here, steps[i].Name, taken)
		k.step(here, &steps[i], depth, taken)
	}
	// The jumps are checked last, when all names are known.
	k.flow(path, steps, taken, others)
}

// stepName checks that a step has a name that no other step of the workflow has. Names are
// unique in the whole workflow, since errors of a run name a step without its branch.
func (k *checker) stepName(path, name string, taken map[string]position) {
	path += ".name"
	switch first, twice := taken[name]; {
	case name == "":
		if !k.reported(path) {
			k.problem(path, "is required")
		}
	case !isName(name):
		k.problem(path, nameRule)
	case twice:
		k.problem(path, "another step is called %s, on line %d of %s; names are unique in a workflow", k.named(path, name, "this"), first.line, first.file)
	default:
		taken[name] = k.origin.at(path)
	}
}

// stepFields lists which fields belong to which types of step.
var stepFields = []struct {
	field string
	types []string
}{
	{"url", []string{"http", "callback", "map"}},
	{"method", []string{"http", "callback", "map"}},
	{"headers", []string{"http", "callback", "map"}},
	{"retry", []string{"http", "callback"}},
	{"result_path", []string{"http", "callback", "parallel", "map"}},
	{"output", []string{"http", "callback", "parallel", "map"}},
	{"catch", []string{"http", "choice", "parallel", "map", "wait", "callback"}},
	{"on_failure", []string{"http", "choice", "parallel", "map", "wait", "callback"}},
	{"goto", []string{"http", "choice", "parallel", "map", "wait", "callback"}},
	{"error", []string{"fail"}},
	{"message", []string{"fail"}},
	{"seconds", []string{"wait"}},
	{"timestamp_path", []string{"wait"}},
	{"callback_timeout", []string{"callback"}},
	{"choices", []string{"choice"}},
	{"default", []string{"choice"}},
	{"branches", []string{"parallel"}},
	{"items_path", []string{"map"}},
	{"iterator", []string{"map"}},
	{"max_concurrency", []string{"map"}},
}

// step checks one step by its type.
func (k *checker) step(path string, s *Step, depth int, taken map[string]position) {
	// An unknown type was reported. The fields cannot be judged without it.
	if s.Type == "" {
		return
	}
	for _, f := range stepFields {
		if k.origin.given(path+"."+f.field) && !slices.Contains(f.types, s.Type) {
			k.problem(path+"."+f.field, "is only for steps of type %s, not %s", strings.Join(f.types, ", "), s.Type)
		}
	}
	k.url(path+".url", s.URL)
	k.headers(path+".headers", s.Headers, endpoint.CheckHeader)
	// These checks do not depend on the type. Fields that the type does not have were reported
	// above.
	k.data(path, s)
	k.successor(path, s)
	switch s.Type {
	case "http":
		k.needs(path+".url", "an http step")
	case "callback":
		if s.Method == "GET" {
			k.problem(path+".method", "a GET request has no body, so it could not carry the token")
		}
	case "wait":
		k.exactlyOne(path, "a wait step", "seconds", "timestamp_path")
	case "choice":
		if len(s.Choices) == 0 && !k.reported(path+".choices") {
			k.problem(path+".choices", "a choice step needs at least one entry with when and goto")
		}
		for i := range s.Choices {
			k.filter(index(path+".choices", i)+".when", &s.Choices[i].When)
		}
	case "fail":
		k.fail(path, s)
	// Each parallel and map step is one level deeper than its list.
	case "parallel":
		k.branches(path, s.Branches, depth+1, taken)
	case "map":
		k.mapStep(path, s, depth+1, taken)
	}
}

// fail checks the error of a fail step.
func (k *checker) fail(path string, s *Step) {
	// The code has the form of a name, so that it can be searched for in the errors of runs.
	if s.Error != "" && !isName(s.Error) {
		k.problem(path+".error", nameRule)
	}
	k.expression(path+".message", keep(&s.Message, expr.ParseText))
}

// exactlyOne reports a mapping with both or neither of two fields.
func (k *checker) exactlyOne(path, what, a, b string) {
	if k.present(path+"."+a) == k.present(path+"."+b) {
		k.problem(path, "%s needs exactly one of %s and %s", what, a, b)
	}
}

// tooDeep reports a step whose nesting exceeds maxNesting.
func (k *checker) tooDeep(path string, depth int) bool {
	if depth > maxNesting {
		k.problem(path, "parallel and map steps nest at most %d deep", maxNesting)
	}
	return depth > maxNesting
}

// branches checks the branches of a parallel step and the steps in them.
func (k *checker) branches(path string, branches []Branch, depth int, taken map[string]position) {
	if len(branches) == 0 && !k.reported(path+".branches") {
		k.problem(path+".branches", "a parallel step needs at least one branch")
	}
	// Deeper steps are not checked: a hostile file may nest very deep.
	if k.tooDeep(path, depth) {
		return
	}
	seen := map[string]bool{}
	for i, b := range branches {
		here := index(path+".branches", i)
		switch {
		case b.Name == "":
		case !isName(b.Name):
			k.problem(here+".name", nameRule)
		case seen[b.Name]:
			k.problem(here+".name", "another branch of this step is called %s", k.named(here+".name", b.Name, "this"))
		}
		seen[b.Name] = true
		k.exactlyOne(here, "a branch", "url", "steps")
		k.url(here+".url", b.URL)
		k.headers(here+".headers", b.Headers, endpoint.CheckHeader)
		k.steps(here+".steps", b.Steps, depth, taken)
	}
}

// mapStep checks the iterator of a map step, which is a single step without successors.
func (k *checker) mapStep(path string, s *Step, depth int, taken map[string]position) {
	k.needs(path+".items_path", "a map step")
	k.exactlyOne(path, "a map step", "url", "iterator")
	if k.tooDeep(path, depth) || s.Iterator == nil {
		return
	}
	here := path + ".iterator"
	// Several map steps may leave their iterator's name out.
	if s.Iterator.Name != iteratorName {
		k.stepName(here, s.Iterator.Name, taken)
	}
	k.step(here, s.Iterator, depth, taken)
	// Even a jump to the iterator itself is refused.
	for _, jump := range jumps(here, *s.Iterator) {
		k.problem(jump.path, "an iterator is a single step, so it cannot go to another one")
	}
}

// successor checks that a step names its successor at most once.
func (k *checker) successor(path string, s *Step) {
	switch {
	// Without a goto, the order of the list decides.
	case s.Goto == "":
	case s.End:
		k.problem(path+".goto", "the step has end: true, and nothing comes after it; remove one of them")
	case s.Type == "choice" && s.OnFailure != "continue":
		k.problem(path+".goto", "choices and default decide where a choice step goes; goto has an effect only with on_failure: continue, if none of them applies")
	}
}

// A jump is a field that names a step, and the name.
type jump struct{ path, target string }

// jumps lists where a step may go besides the step after it.
func jumps(path string, s Step) (all []jump) {
	add := func(field, target string) {
		if target != "" {
			all = append(all, jump{path + "." + field, target})
		}
	}
	add("goto", s.Goto)
	add("default", s.Default)
	for i, c := range s.Catch {
		add(index("catch", i)+".goto", c.Goto)
	}
	for i, c := range s.Choices {
		add(index("choices", i)+".goto", c.Goto)
	}
	return all
}

// flow checks that every jump lands in the same list and that every step of it can be reached.
func (k *checker) flow(path string, steps []Step, taken map[string]position, others []jump) {
	// Steps are numbered by their order. The number after the last one is the end of the list.
	places := map[string]int{}
	for i, s := range steps {
		places[s.Name] = i
	}
	next := make([][]int, len(steps))
	var dangling []jump
	// Runs begin at the first step, or at a step that the workflow names.
	from := []int{0}
	for _, j := range others {
		to, ok := places[j.target]
		if !ok {
			dangling = append(dangling, j)
		}
		from = append(from, to)
	}
	for i, s := range steps {
		for _, j := range jumps(index(path, i), s) {
			to, ok := places[j.target]
			if !ok {
				dangling = append(dangling, j)
			}
			next[i] = append(next[i], to)
		}
		if fallsThrough(s) {
			next[i] = append(next[i], i+1)
		}
	}
	if len(dangling) > 0 {
		k.dangling(dangling, k.shown(path, steps), taken)
		return // the targets of the jumps would be reported as unreachable as well
	}
	k.loops(path, steps, next)
	for i, ok := range reach(next, from) {
		if !ok {
			k.problem(index(path, i), "no step leads to this one; remove it, or add a goto")
		}
	}
}

// dangling reports jumps to steps that are not in the same list.
func (k *checker) dangling(jumps []jump, here []string, taken map[string]position) {
	for _, j := range jumps {
		// The name exists, but a jump cannot enter or leave a branch.
		if _, elsewhere := taken[j.target]; elsewhere {
			k.problem(j.path, "the step %s is in another list of steps; a jump stays in its own", k.named(j.path, j.target, "of this name"))
		} else if k.origin.marks[j.path].expanded {
			k.problem(j.path, "there is no such step, with its variables filled in")
		} else {
			k.problem(j.path, "there is no step %s%s", quote(j.target), k.report.suggest(j.target, "the steps here are", here))
		}
	}
}

// named returns a name for a message, or other words if the name contains the value of a
// variable.
func (k *checker) named(path, name, otherwise string) string {
	if k.origin.marks[path].expanded {
		return otherwise
	}
	return quote(name)
}

// shown lists the names of steps that contain no value of a variable, in their order.
func (k *checker) shown(path string, steps []Step) (all []string) {
	for i, s := range steps {
		if s.Name != "" && !k.origin.marks[index(path, i)+".name"].expanded {
			all = append(all, s.Name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// fallsThrough reports whether the step after s may come next. For a choice it may only if the
// choice fails and may continue.
func fallsThrough(s Step) bool {
	return !s.End && s.Type != "fail" && s.Goto == "" && (s.Type != "choice" || s.OnFailure == "continue")
}

// reach reports which steps can be reached from the given ones.
func reach(next [][]int, from []int) []bool {
	seen := make([]bool, len(next))
	left := from
	for len(left) > 0 {
		i := left[len(left)-1]
		left = left[:len(left)-1]
		if i < len(seen) && !seen[i] {
			seen[i] = true
			left = append(left, next[i]...)
		}
	}
	return seen
}
