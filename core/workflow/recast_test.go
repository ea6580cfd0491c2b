package workflow

import (
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
)

// TestRecast: a run that is redriven with another definition follows that one, if it fits the
// steps that the run has come to.
func TestRecast(t *testing.T) {
	const begun = `steps:
  - {name: a, url: http://a.example/, result_path: null}
  - {name: both, type: parallel, branches: [{name: x, url: http://x.example/}, {name: y, steps: [{name: y1, url: http://y.example/}]}]}
  - {name: last, url: http://last.example/}`
	for _, tt := range []struct {
		what, next string
		fromStart  bool
		calls      string // of the redrive, by method and path
		err        string
	}{
		{"another request", strings.Replace(begun, "{name: y1, url", "{name: y1, method: PUT, url", 1), false, "PUT both/y/y1, POST last", ""},
		{"a step before, one after", strings.Replace(strings.Replace(begun, "steps:\n", "steps:\n  - {name: before, url: http://b.example/}\n", 1),
			"{name: y1, url: http://y.example/}", "{name: y1, url: http://y.example/}, {name: y2, url: http://y.example/}", 1), false, "POST both/y/y1, POST both/y/y2, POST last", ""},
		{"a step that succeeded is gone", strings.Replace(begun, "name: a,", "name: aa,", 1), false, "", "it has no step a, to which the run has come"},
		{"the step that failed is gone", strings.Replace(begun, "name: y1", "name: y0", 1), false, "", "it has no step both/y/y1, to which the run has come"},
		{"the step that failed is gone, from the start", strings.Replace(begun, "name: y1", "name: y0", 1), true, "POST a, POST both/x, POST both/y/y0, POST last", ""},
		{"another type", strings.Replace(begun, "{name: a, url: http://a.example/, result_path: null}", "{name: a, type: wait, seconds: 1}", 1), false, "", "step a is of type wait there, and the run came to one of type http"},
		{"another branch", strings.Replace(begun, "branches: [", "branches: [{name: z, url: http://z.example/}, ", 1), false, "", "step both has 3 branches there, and the run began 2"},
		{"a branch less", strings.Replace(begun, "{name: x, url: http://x.example/}, ", "", 1), false, "", "step both has 1 branches there, and the run began 2"},
		{"a later step is gone", strings.Replace(begun, "\n  - {name: last, url: http://last.example/}", "", 1), false, "POST both/y/y1", ""},
		{"a way back", strings.Replace(begun, "{name: last, url", "{name: last, catch: [{errors: [all], goto: a}], url", 1), false, "POST both/y/y1, POST last, POST a#2, POST both#2/x, POST both#2/y/y1, POST last#2", ""},
	} {
		w := newWorld(t, compiled(t, begun), "{}")
		down := true
		w.play(func(path string, r Request) reply {
			if down && path == "both/y/y1" {
				return reply{status: 500}
			}
			return calm(path, r)
		})
		old := w.run
		err := w.recast(compiled(t, tt.next), !tt.fromStart)
		if tt.err != "" {
			want := "the current definition does not fit: " + tt.err + "; redrive the run with the definition that it has, or from the start"
			if !core.IsKind(err, core.Invalid) || err.Error() != want {
				t.Errorf("%s: %v, want %s", tt.what, err, want)
			}
			continue
		}
		if err != nil || w.run.Definition != "another" || old.Status != core.RunFailed {
			t.Fatalf("%s: Recast of a %s run: %v, its definition is %q", tt.what, old.Status, err, w.run.Definition)
		}
		var calls []string
		w.play(func(path string, r Request) reply {
			calls = append(calls, r.Method+" "+path)
			if strings.Contains(tt.what, "way back") && path == "last" {
				return reply{status: 500}
			}
			return calm(path, r)
		})
		if got := strings.Join(calls, ", "); got != tt.calls || w.run.Status != core.RunCompleted {
			t.Errorf("%s: the redrive calls %s, and the run is %s: %s; want %s", tt.what, got, w.run.Status, w.run.Error, tt.calls)
		}
		if data := w.history[old.Seq].Data; !strings.Contains(data, `"definition":"current"`) {
			t.Errorf("%s: the history tells %s", tt.what, data)
		}
	}
}
