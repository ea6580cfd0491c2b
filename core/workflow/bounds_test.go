package workflow

import (
	"fmt"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
)

// round returns a workflow that config refuses: two choices that send the run to each
// other.
func round(t *testing.T) *Definition {
	t.Helper()
	to := func(name string) []config.Choice { return []config.Choice{{When: when("not $.stop"), Goto: name}} }
	d, err := Compile(config.Workflow{Name: "w", Steps: []config.Step{
		{Name: "a", Type: "choice", Choices: to("b")}, {Name: "b", Type: "choice", Choices: to("a")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// size is how many bytes of JSON a transition writes.
func size(entries []core.Entry, steps map[core.ID]core.Step) (n int) {
	in := map[string]bool{}
	for _, e := range entries {
		in[e.Path] = true
	}
	for _, s := range steps {
		if in[s.Path] {
			n += len(s.State) + len(s.Output)
		}
	}
	return n
}

// The work of a move is bounded; further moves do the rest.
func TestMovesAreBounded(t *testing.T) {
	for _, filler := range []int{10, 1_000_000} {
		w := newWorld(t, round(t), `{"filler": "`+strings.Repeat("x", filler)+`"}`)
		w.d.entries = 500
		before, most, bytes := 0, 0, 0
		for w.run.Status != core.RunFailed && w.moves < 1000 {
			w.step(w.next(), calm)
			most = max(most, len(w.history)-before)
			if filler > 1000 {
				bytes = max(bytes, size(w.history[before:], w.steps))
			}
			before = len(w.history)
		}
		if !strings.HasSuffix(w.run.Error, "data: more than 10,000 transitions") {
			t.Errorf("with %d bytes: the run is %s: %s", filler, w.run.Status, w.run.Error)
		}
		if most > maxEnters+1 || bytes > maxWork+3*filler {
			t.Errorf("with %d bytes: a move has %d entries and %d bytes", filler, most, bytes)
		}
		if few := 4; filler == 10 && most < maxEnters || filler > 10 && most > few {
			t.Errorf("with %d bytes: a move has %d entries at most", filler, most)
		}
	}
}

// A step that a move leaves to its job can be canceled and has its deadline, in branches
// too.
func TestPostponed(t *testing.T) {
	const items = `timeout: 60
steps: [{name: m, type: map, items_path: $, iterator: {name: c, type: wait, seconds: 0}, on_failure: continue}]`
	postponed := func() *world {
		w := newWorld(t, compiled(t, items), "[1,2,3,4,5]")
		w.d.enters = 3
		w.step(w.next(), calm)
		if live := w.next(); live == nil || w.steps[live.id].Path != "m/2/c" {
			t.Fatalf("the next job is %+v, want that of the third item", live)
		}
		return w
	}
	w := postponed()
	if err := w.cancel(); err != nil || w.run.Error != "canceled" {
		t.Errorf("cancel: %v, the run is %s: %s", err, w.run.Status, w.run.Error)
	}
	if err := w.redrive(true); err != nil {
		t.Error(err)
	}
	if w.play(calm); w.run.Status != core.RunCompleted {
		t.Errorf("after a redrive the run is %s: %s", w.run.Status, w.run.Error)
	}
	w = postponed()
	w.now = w.run.DeadlineAt
	w.step(w.next(), calm)
	if !strings.HasPrefix(w.run.Error, "timeout:") {
		t.Errorf("at the deadline the run is %s: %s", w.run.Status, w.run.Error)
	}
	w = postponed()
	var ends []core.StepEnd
	for j := w.next(); j != nil; j = w.next() {
		end, _ := w.attempt(w.take(j), calm)
		ends = append(ends, end)
	}
	w.d.enters = 1
	w.settle(ends...) // one of them is entered, the others go back
	back := 0
	for _, s := range w.steps {
		back += readCarry(s.Carry).Back
	}
	if back != len(ends)-1 {
		t.Errorf("%d of %d jobs are put back, want all but one", back, len(ends))
	}
	if v := w.view(ends); w.d.Advance(w.pen(), v, ends...).Moved {
		t.Error("the ends of jobs that were put back count twice")
	}
}

// A step of any type that crashes its workers is not tried for ever.
func TestWornOut(t *testing.T) {
	for _, step := range []string{
		"url: http://a.example/, retry: {max: 9}",
		"type: callback, url: http://a.example/",
		"type: choice, choices: [{when: $, goto: b}]",
		"type: wait, seconds: 0",
		"type: parallel, branches: [{name: c, url: http://a.example/}]",
		"type: map, items_path: $.no, url: http://a.example/",
	} {
		catch := ", catch: [{errors: [timeout], goto: b}]"
		w, taken := begun(t, "steps: [{name: a, "+step+catch+"}, {name: b, url: http://b.example/}]", "{}")
		for range maxTaken {
			if takenTooOften(taken) {
				t.Fatalf("%s: worn when it is taken the %dth time", step, taken.Attempt)
			}
			taken.Attempt++
		}
		if task := w.d.Task(taken, w.now); task != Elapse {
			t.Fatalf("%s: Task of attempt %d = %v, want Elapse", step, taken.Attempt, task)
		}
		if lost := w.settle(core.StepEnd{Job: taken, Kind: core.Elapsed}); len(lost) > 0 {
			t.Errorf("%s: its end is lost", step)
		}
		if s := w.steps[taken.ID]; s.Error != "timeout: lease expired 20 times" || w.run.Step != "b" {
			t.Errorf("%s: the step failed with %q, the run is at %s", step, s.Error, w.run.Step)
		}
	}
}

// A wait step whose job is taken early again and again is not at fault, and ends when its
// time has come. It is not tried for ever then.
func TestTakenEarlyOften(t *testing.T) {
	w := newWorld(t, compiled(t, "timeout: 90\nsteps: [{name: a, type: wait, seconds: 60}]"), "{}")
	for range 2 * maxTaken {
		end, _ := w.attempt(w.take(w.next()), calm)
		w.settle(end)
	}
	if w.run.Status != core.RunRunning {
		t.Fatalf("the run is %s: %s", w.run.Status, w.run.Error)
	}
	j := w.next()
	w.now = j.due
	for range maxTaken {
		w.take(j)
	}
	end, _ := w.attempt(w.take(j), calm)
	w.now = w.run.DeadlineAt // an end that is stored later has the same effect
	if w.settle(end); w.run.Error != "step a: timeout: lease expired 20 times" {
		t.Errorf("the run is %s: %s", w.run.Status, w.run.Error)
	}
}

// A callback step is not at fault either, and keeps its other attempts.
func TestCallbackTakenEarlyOften(t *testing.T) {
	w := newWorld(t, compiled(t, "steps: [{name: a, type: callback, callback_timeout: 60, retry: {max: 2, interval: 1s}, url: http://a.example/}]"), "{}")
	for range 2 * maxTaken {
		end, _ := w.attempt(w.take(w.next()), calm)
		w.settle(end)
	}
	w.step(w.next(), calm) // it has expired
	if taken := w.take(w.next()); w.d.Task(taken, w.now) != Notify {
		t.Errorf("Task of its second attempt = %v, want Notify", w.d.Task(taken, w.now))
	}
}

// Outputs that are too large for one result are never read: the step fails as soon as they
// are too large.
func TestJoinSize(t *testing.T) {
	for _, step := range []string{
		"type: map, items_path: $, max_concurrency: 2, url: http://a.example/",
		"type: parallel, branches: [{name: a, url: http://a.example/}, {name: b, url: http://a.example/}, {name: c, url: http://a.example/}, {name: d, type: http, url: http://a.example/}]",
	} {
		step = strings.Replace(step, "type: http, ", "", 1)
		for _, remedy := range []string{"", ", on_failure: continue"} {
			w := newWorld(t, compiled(t, "steps: [{name: m, "+step+remedy+"}, {name: z, url: http://z.example/}]"), "[1,2,3,4]")
			calls := 0
			w.play(func(path string, _ Request) reply {
				if path == "z" {
					return reply{status: 200}
				}
				calls++
				return reply{status: 200, body: `"` + strings.Repeat("x", 600_000) + `"`}
			})
			const want = "data: the results of 2 branches have 1200004 bytes; at most 1048576 are kept"
			if calls != 2 || w.history[len(w.history)-1].Type == core.EntryCompleted != (remedy != "") {
				t.Errorf("%s%s: %d calls, the run is %s: %s", step, remedy, calls, w.run.Status, w.run.Error)
			}
			for _, s := range w.steps {
				if s.Path == "m" && s.Error != want {
					t.Errorf("%s%s: it failed with %q", step, remedy, s.Error)
				}
			}
		}
	}
}

// Joins that are redriven may be in any branch, and wait only for their siblings.
func TestRejoinInside(t *testing.T) {
	w := newWorld(t, compiled(t, `
steps:
  - name: p
    type: parallel
    branches:
      - {name: x, steps: [{name: m, type: map, items_path: $.l, result_path: $.l.no, url: http://x.example/}]}
      - {name: y, steps: [{name: v, type: wait, seconds: 60}]}`), `{"l": [1, 2]}`)
	calls := 0
	r := func(string, Request) reply {
		calls++
		return reply{status: 200, body: "1"}
	}
	const want = "step p/x/m: data: $.l is no object, so the result cannot be put into it"
	w.play(r)
	for range 3 {
		if w.run.Error != want || calls != 2 {
			t.Fatalf("the run is %s: %s, after %d calls", w.run.Status, w.run.Error, calls)
		}
		if err := w.redrive(true); err != nil {
			t.Fatal(err)
		}
		w.play(r)
	}
	// A worn step is not joined. A step that was canceled meanwhile is joined again.
	for range 2 {
		if err := w.redrive(true); err != nil {
			t.Fatal(err)
		}
		if err := w.cancel(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.redrive(true); err != nil {
		t.Fatal(err)
	}
	for j := w.next(); ; j = w.next() {
		if w.steps[j.id].Path == "p/x/m" {
			j.attempt += maxTaken + 1
			w.step(j, r)
			break
		}
		w.step(j, r)
	}
	if w.run.Error != "step p/x/m: timeout: lease expired 20 times" || calls != 2 {
		t.Errorf("the run is %s: %s, after %d calls", w.run.Status, w.run.Error, calls)
	}
}

// A document that a move reads again is parsed once.
func TestReadOnce(t *testing.T) {
	d := docs{}
	e := &core.Event{Payload: []byte("{}")}
	text := []byte(`{"a": 1}`)
	payload, first := d.ofPayload(e), d.ofState(text)
	if d.ofPayload(e) != payload || d.ofState(text) != first || d.read != len(text)+2 {
		t.Errorf("%d bytes were read, want %d", d.read, len(text)+2)
	}
	if other := d.ofState([]byte(string(text))); other == first {
		t.Error("other bytes have the same document")
	}
	w, taken := begun(t, "steps: [{name: a, type: choice, choices: [{when: $.a, goto: b}], default: b}, {name: b, type: wait, timestamp_path: $.t}]", `{"t": 1}`)
	m := w.d.move(w.pen(), w.view(nil))
	m.load(w.view([]core.StepEnd{{Job: taken}}), []core.StepEnd{{Job: taken}})
	m.applyEnd(m.rows[taken.ID], core.StepEnd{Job: taken, Kind: core.Elapsed})
	m.enterAll()
	if want := 2 * len(`{"t": 1}`); m.docs.read != want || m.run.Status != core.RunCompleted {
		t.Errorf("%d bytes were read in a run that is %s, want %d", m.docs.read, fmt.Sprint(m.run.Status), want)
	}
}

// An expression that runs out of steps fails its step with class data, and the error names
// the step.
func TestExpressionsRunOutOfSteps(t *testing.T) {
	payload := "[" + strings.Repeat("0,", 500_000) + "0]"
	const far = "$..[*,*,*,*,*,*,*,*]"
	for text, want := range map[string]string{
		`steps: [{name: pick, type: choice, choices: [{when: "$[0] == 1", goto: pass}, {when: "` + far + ` == 2", goto: pass}], default: pass}, {name: pass, type: wait, seconds: 0}]`: "step pick: data: choices[1].when: the expression takes too many steps",
		`steps: [{name: call, url: "http://a.example/", input: "` + far + `"}]`:                                                                                                        "step call: data: " + far + ": the expression takes too many steps",
		`steps: [{name: call, url: "http://a.example/", input: '{"all": {{ ` + far + ` }} }'}]`:                                                                                        "step call: data: the expression takes too many steps",
	} {
		w := newWorld(t, compiled(t, text), payload)
		for n := w.next(); n != nil && w.moves < 10; n = w.next() {
			w.step(n, calm)
		}
		if w.run.Status != core.RunFailed || !strings.HasPrefix(w.run.Error, want) {
			t.Errorf("the run is %s: %s, want %s", w.run.Status, w.run.Error, want)
		}
	}
}
