package workflow

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
)

// A diagram has each step once and each way once, no two boxes overlap unless one contains the other,
// and the lines begin and end at their steps and pass no other step.
func TestDiagramsAreReadable(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("Glob(testdata/*.txtar) = %v, %v, want some", archives, err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			if f.Name == "workflow" {
				readable(t, filepath.Base(name), compiled(t, string(f.Data)))
			}
		}
	}
	for seed := range uint64(300) {
		readable(t, fmt.Sprint("seed ", seed), tangled(rand.New(rand.NewPCG(seed, 1))))
	}
}

// tangled returns a workflow of up to 20 steps whose catches lead anywhere, also back.
func tangled(r *rand.Rand) *Definition {
	n := 1 + r.IntN(20)
	var steps []config.Step
	for i := range n {
		s := config.Step{Name: fmt.Sprint("s", i), Type: "http", URL: "https://a.example"}
		for range r.IntN(3) {
			s.Catch = append(s.Catch, config.Catch{Errors: []string{"all"}, Goto: fmt.Sprint("s", r.IntN(n))})
		}
		if r.IntN(4) == 0 {
			s.Type, s.URL = "parallel", ""
			s.Branches = []config.Branch{{Name: "x", URL: "https://a.example"}, {Name: "y", Steps: []config.Step{{Name: "a", Type: "wait", Seconds: 1}, {Name: "b", Type: "http", URL: "https://a.example"}}}}
		}
		if r.IntN(5) == 0 {
			s.Goto = fmt.Sprint("s", r.IntN(n))
		}
		s.OnFailure = []string{"", "continue"}[r.IntN(2)]
		steps = append(steps, s)
	}
	d, err := Compile(config.Workflow{Name: "w", Steps: steps})
	if err != nil {
		panic(err)
	}
	return d
}

func readable(t *testing.T, what string, d *Definition) {
	t.Helper()
	drawn, err := d.Diagram()
	if err != nil {
		t.Fatalf("%s: core.Diagram = %v", what, err)
	}
	by := map[string]core.DrawnStep{}
	whole := core.Box{Width: drawn.Width, Height: drawn.Height}
	for i, s := range drawn.Steps {
		if _, twice := by[s.Key]; twice {
			t.Errorf("%s: the key %s is used twice", what, s.Key)
		}
		if _, known := by[s.Within]; s.Within != "" && !known {
			t.Errorf("%s: %s comes before %s, which contains it", what, s.Key, s.Within)
		}
		by[s.Key] = s
		if !contains(whole, s.Box) {
			t.Errorf("%s: %s is at %v, outside of %v", what, s.Key, s.Box, whole)
		}
		for _, o := range drawn.Steps[:i] {
			if inside := under(drawn, s, o); overlap(s.Box, o.Box) && !inside || inside && !contains(o.Box, s.Box) {
				t.Errorf("%s: %s at %v and %s at %v: %t that one contains the other", what, s.Key, s.Box, o.Key, o.Box, inside)
			}
		}
	}
	if want := d.top.count(); len(by) != want {
		t.Errorf("%s: %d steps are drawn, want %d", what, len(by), want)
	}
	for _, w := range drawn.Ways {
		from, to := by[w.From], by[w.To]
		first, last := w.Points[0], w.Points[len(w.Points)-1]
		if !touches(from.Box, first) || !touches(to.Box, last) {
			t.Errorf("%s: the way from %s at %v to %s at %v has the points %v", what, w.From, from.Box, w.To, to.Box, w.Points)
		}
		if w.Label != "" && w.Kind == core.WayNext || w.Label == "" && w.Kind != core.WayNext {
			t.Errorf("%s: a way %s has the label %q", what, w.Kind, w.Label)
		}
		// A lane between two layers is curved, and within a layer it is straight. There it may not cross a step.
		for i := 1; i < len(w.Points); i++ {
			for _, s := range drawn.Steps {
				a, b := w.Points[i-1], w.Points[i]
				if a.X == b.X && s.Within == from.Within && s.Key != w.From && s.Key != w.To && a.X > s.X && a.X < s.X+s.Width && min(a.Y, b.Y) < s.Y+s.Height && max(a.Y, b.Y) > s.Y {
					t.Errorf("%s: the way from %s to %s crosses %s", what, w.From, w.To, s.Key)
				}
			}
		}
	}
}

// under reports whether a step is inside of another one.
func under(d core.Diagram, s, other core.DrawnStep) bool {
	for s.Within != "" && s.Within != other.Key {
		i := slices.IndexFunc(d.Steps, func(x core.DrawnStep) bool { return x.Key == s.Within })
		s = d.Steps[i]
	}
	return s.Within != ""
}

func contains(b, inner core.Box) bool {
	return inner.X >= b.X && inner.Y >= b.Y && inner.X+inner.Width <= b.X+b.Width && inner.Y+inner.Height <= b.Y+b.Height
}

func overlap(a, b core.Box) bool {
	return a.X < b.X+b.Width && b.X < a.X+a.Width && a.Y < b.Y+b.Height && b.Y < a.Y+a.Height
}

// touches reports whether a point is on the edge of a box, give or take the pixel of rounding.
func touches(b core.Box, p core.Point) bool {
	across := p.X >= b.X-1 && p.X <= b.X+b.Width+1 && (p.Y == b.Y || p.Y == b.Y+b.Height)
	return across || p.Y >= b.Y && p.Y <= b.Y+b.Height && abs(p.X-b.X-b.Width) <= 1
}

func abs(n int) int { return max(n, -n) }

// TestDiagram draws a workflow of which each way can be foretold.
func TestDiagram(t *testing.T) {
	d := compiled(t, `
on_failure: tell
steps:
  - {name: check, url: https://a.example, catch: [{errors: [5xx], goto: reject}, {errors: [timeout], goto: reject}]}
  - {name: route, type: choice, default: pack, choices: [{when: $.a == 1, goto: reject}, {when: $.a == 2, goto: reject}]}
  - {name: pack, type: map, items_path: $.items, iterator: {name: box, url: https://a.example}, on_failure: continue}
  - {name: rest, type: wait, seconds: 5, end: true}
  - {name: reject, type: fail, error: no}
  - {name: tell, url: https://a.example, catch: [{errors: [all], goto: tell}]}
`)
	drawn, err := d.Diagram()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range drawn.Steps {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s layer %d %s", s.Key, s.Type, s.Layer, s.Note)))
		if s.OnFailure != (s.Key == "tell") {
			t.Errorf("OnFailure of %s = %t", s.Key, s.OnFailure)
		}
	}
	for _, w := range drawn.Ways {
		got = append(got, fmt.Sprintf("%s -> %s %s %s", w.From, w.To, w.Kind, w.Label))
	}
	want := []string{
		"check http layer 0", "route choice layer 1", "pack map layer 2 each of $.items", "pack/*/box http layer 0", "rest wait layer 3 for 5s", "reject fail layer 2", "tell http layer 0",
		"check -> route next ", "check -> reject catch 5xx; timeout", "route -> reject choice $.a == 1; $.a == 2", "route -> pack choice else",
		"pack -> rest next ", "pack -> rest continue failed", "tell -> tell catch all",
	}
	if !slices.Equal(got, want) {
		t.Errorf("Diagram =\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestNoteOfAWait(t *testing.T) {
	for fields, want := range map[string]string{
		"seconds: 3600": "for 1h", "seconds: 5400": "for 1h30m", "seconds: 600": "for 10m", "seconds: 20": "for 20s", "seconds: 3605": "for 1h0m5s", "timestamp_path: $.at": "until $.at",
	} {
		drawn, err := compiled(t, "steps: [{name: rest, type: wait, "+fields+"}]").Diagram()
		if err != nil || drawn.Steps[0].Note != want {
			t.Errorf("the note of a wait with %s is %q, %v, want %q", fields, drawn.Steps[0].Note, err, want)
		}
	}
}

func TestDiagramOfTooManySteps(t *testing.T) {
	var steps []config.Step
	for i := range maxDrawn + 1 {
		steps = append(steps, config.Step{Name: fmt.Sprint("s", i), Type: "http", URL: "https://a.example"})
	}
	for n, want := range map[int]string{maxDrawn: "", maxDrawn + 1: "the definition has 301 steps; at most 300 are drawn"} {
		d, err := Compile(config.Workflow{Name: "w", Steps: steps[:n]})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Diagram(); fmt.Sprint(err) != want && (want != "" || err != nil) {
			t.Errorf("Diagram of %d steps = %v, want %q", n, err, want)
		}
	}
}

// Each step of a run has the key of the step in its definition that it executes.
func TestKeyOf(t *testing.T) {
	d := compiled(t, `
steps:
  - name: both
    type: parallel
    result_path: 'null'
    branches:
      - {name: a, url: https://a.example}
      - {name: b, steps: [{name: b, url: https://a.example}, {name: c, type: map, items_path: '$.items', iterator: {name: d, url: https://a.example}}]}
  - {name: last, url: https://a.example, catch: [{errors: [all], goto: both}]}
`)
	w := newWorld(t, d, `{"items": [1, 2]}`)
	n := 0
	w.play(func(path string, _ Request) reply {
		if path == "last" {
			if n++; n == 1 {
				return reply{status: 500}
			}
		}
		return reply{status: 200}
	})
	drawn, err := d.Diagram()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	var inside []string
	for _, s := range drawn.Steps {
		known[s.Key] = true
		inside = append(inside, fmt.Sprintf("%s in %q, branch %q", s.Key, s.Within, s.Branch))
	}
	if want := []string{`both in "", branch ""`, `both/a in "both", branch "a"`, `both/b/b in "both", branch "b"`, `both/b/c in "both", branch "b"`, `both/b/c/*/d in "both/b/c", branch ""`, `last in "", branch ""`}; !slices.Equal(inside, want) {
		t.Errorf("steps = %q, want %q", inside, want)
	}
	keys := map[string]int{}
	var key func(s core.Step) string
	key = func(s core.Step) string {
		above, is := w.steps[s.ParentID]
		if !is {
			return core.KeyOf(s, nil, "")
		}
		return core.KeyOf(s, &above, key(above))
	}
	for _, s := range w.steps {
		k := key(s)
		if !known[k] {
			t.Errorf("KeyOf(%s) = %q, which is not in the diagram", s.Path, k)
		}
		keys[k]++
	}
	want := map[string]int{"both": 2, "both/a": 2, "both/b/b": 2, "both/b/c": 2, "both/b/c/*/d": 4, "last": 2}
	if fmt.Sprint(keys) != fmt.Sprint(want) {
		t.Errorf("executions = %v, want %v", keys, want)
	}
}
