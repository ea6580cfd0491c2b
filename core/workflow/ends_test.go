package workflow

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// begun is a world whose first job was taken and whose run is running.
func begun(t testing.TB, workflow, payload string) (*world, core.TakenJob) {
	w := newWorld(t, compiled(t, workflow), payload)
	taken := w.take(w.next())
	if task := w.d.Task(taken, w.now); task != Begin {
		t.Fatalf("Task of the first job = %v, want Begin", task)
	}
	w.settle(core.StepEnd{Job: taken, Kind: core.Begun})
	return w, w.refresh(taken)
}

const oneCall = "steps: [{name: a, url: http://a.example/, retry: {max: 3, interval: 1s}}, {name: b, url: http://b.example/}]"

func TestLostEnds(t *testing.T) {
	w, taken := begun(t, oneCall, "{}")
	if got := w.steps[taken.ID].Status; got != core.StepRunning {
		t.Errorf("the first step is %s, want running", got)
	}
	replied := core.StepEnd{Job: taken, Kind: core.Replied, Body: []byte("1")}
	refused := core.StepEnd{Job: taken, Kind: core.Refused, Class: core.Class5xx}
	gone := replied
	gone.Job.Situation.Step.ID = "nobody"
	tests := []struct {
		what string
		ends []core.StepEnd
		want []int
	}{
		{"a second beginning", []core.StepEnd{{Job: taken, Kind: core.Begun}}, []int{0}},
		{"a step that is not there", []core.StepEnd{gone}, []int{0}},
		{"no time for a call", []core.StepEnd{{Job: taken, Kind: core.Elapsed}}, []int{0}},
		{"an end of another kind of step", []core.StepEnd{{Job: taken, Kind: core.Armed}}, []int{0}},
		{"the first of two", []core.StepEnd{refused, refused}, []int{1}},
		{"another of that attempt, later", []core.StepEnd{refused}, []int{0}},
		{"a reply behind a failure, and what came behind that", []core.StepEnd{replied, refused, replied}, []int{1, 2}},
	}
	for _, tt := range tests {
		if got := w.settle(tt.ends...); !slices.Equal(slices.Sorted(maps.Keys(got)), tt.want) {
			t.Errorf("%s: lost %v, want %v", tt.what, got, tt.want)
		}
	}
	w.play(calm)
	if lost := w.settle(replied); len(lost) != 1 || w.run.Status != core.RunCompleted {
		t.Errorf("after the end of the run: lost %v of a run that is %s", lost, w.run.Status)
	}
	if task := w.d.Task(w.refresh(taken), w.now); task != Stale {
		t.Errorf("Task after the end of the run = %v, want Stale", task)
	}
	if task := w.d.Task(core.TakenJob{}, w.now); task != Stale {
		t.Errorf("Task without a situation = %v, want Stale", task)
	}
}

// An attempt has its record, also if its reply was not usable.
func TestAttempts(t *testing.T) {
	w, taken := begun(t, "steps: [{name: a, url: http://a.example/, output: $.x}]", "{}")
	end := core.StepEnd{Job: taken, Kind: core.Replied, Body: []byte("{}"), Attempt: core.Attempt{Number: 1, StatusCode: 200, StartedAt: w.now}}
	m := w.d.Advance(w.pen(), w.view([]core.StepEnd{end}), end)
	got := m.Transition.Attempts
	if len(got) != 1 || got[0].JobID != taken.ID || got[0].Lease != taken.Lease || got[0].Error != "data: there is nothing at $.x" {
		t.Errorf("Attempts = %+v", got)
	}
	fact, ok := m.Transition.Facts[0].(core.StepMoved)
	if !ok || fact.Step.Status != core.StepFailed || fact.Attempt.StatusCode != 200 {
		t.Errorf("Facts = %+v", m.Transition.Facts)
	}
}

// Advance must not change its arguments, since other goroutines read them too.
func TestAdvanceTouchesNothing(t *testing.T) {
	w, taken := begun(t, oneCall, `{"a": [1]}`)
	end := core.StepEnd{Job: taken, Kind: core.Refused, Class: core.Class5xx, Final: true}
	given, same := w.view([]core.StepEnd{end}), w.view([]core.StepEnd{end})
	minted := w.ids
	first := w.d.Advance(w.pen(), given, end)
	if !reflect.DeepEqual(given, same) {
		t.Errorf("Advance made %+v of %+v", given, same)
	}
	w.ids = minted // the same ids again
	again := w.d.Advance(w.pen(), given, end)
	first.Transition.Mark, again.Transition.Mark = "", ""
	if !reflect.DeepEqual(first, again) {
		t.Errorf("Advance answers the same question with %+v and %+v", first, again)
	}
}

// Steps of other types make no calls.
func TestRequestsOfOthers(t *testing.T) {
	_, taken := begun(t, "steps: [{name: a, type: wait, seconds: 1}]", "{}")
	if _, err := compiled(t, oneCall).Request(core.TakenJob{}); err == nil {
		t.Error("Request without a step: want an error")
	}
	d := compiled(t, "steps: [{name: a, type: wait, seconds: 1}]")
	if _, err := d.Request(taken); err == nil {
		t.Error("Request of a wait step: want an error")
	}
	if _, err := d.Notice(taken, "t", "a"); err == nil {
		t.Error("Notice of a wait step: want an error")
	}
	if got := d.Expiry(taken, epoch); !got.Equal(epoch) {
		t.Errorf("Expiry of a wait step = %v", got)
	}
	if _, err := d.Notice(core.TakenJob{}, "t", "a"); err == nil {
		t.Error("Notice without a step: want an error")
	}
}

// A job that is taken before its time, as after a restart, goes back to wait.
func TestTakenEarly(t *testing.T) {
	for _, workflow := range []string{
		"steps: [{name: a, type: wait, seconds: 60}]",
		"steps: [{name: a, type: callback, callback_timeout: 60}]",
	} {
		w := newWorld(t, compiled(t, workflow), "{}")
		w.step(w.next(), calm)
		j := w.next()
		due := j.due
		if end, ok := w.attempt(w.take(j), calm); !ok || len(w.settle(end)) > 0 {
			t.Error("its end is lost")
		}
		if !j.due.Equal(due) || j.status != core.Scheduled {
			t.Errorf("the job is %s and due at %v, want %v", j.status, j.due, due)
		}
	}
}

// Data that is too large is neither kept nor sent. A step that fails because of it, and
// goes on, passes null on.
func TestSizes(t *testing.T) {
	large := `{"a": "` + strings.Repeat("x", maxState) + `"}`
	tests := []struct{ workflow, want string }{
		{oneCall, "step a: data: the JSON has"},
		{"steps: [{name: a, type: choice, choices: [{when: '$.a', goto: b}]}, {name: b, url: http://a.example/}]", "step a: data: the JSON has"},
		{"steps: [{name: a, type: wait, seconds: 0}]", "step a: data: the JSON has"},
		{"steps: [{name: a, type: parallel, branches: [{name: b, url: http://a.example/}]}]", "step a: data: the JSON has"},
		{"steps: [{name: a, type: map, items_path: '$.b', input: '{\"b\": [1, {{ $.a }}]}', url: http://a.example/}]", "step a: data: the JSON has"},
		{"steps: [{name: a, type: callback}]", "step a: data: the JSON has"},
		{"steps: [{name: a, type: callback, url: http://a.example/, input: '{\"small\": {{ $.none }}}', on_failure: continue, output: $.no}]", ""},
	}
	for _, tt := range tests {
		w := newWorld(t, compiled(t, tt.workflow), large)
		w.play(calm)
		w.callback("a", "{}")
		if !strings.HasPrefix(w.run.Error, tt.want) {
			t.Errorf("%s ends with %q, want %q", tt.workflow, w.run.Error, tt.want)
		}
		if tt.want == "" && string(w.run.Output) != "null" {
			t.Errorf("%s passes on %.40s", tt.workflow, w.run.Output)
		}
	}
}

// A callback may bring more than is kept.
func TestLargeCallback(t *testing.T) {
	w := newWorld(t, compiled(t, "steps: [{name: a, type: callback}]"), "{}")
	w.play(calm)
	w.callback("a", `"`+strings.Repeat("x", maxState)+`"`)
	if !strings.HasPrefix(w.run.Error, "step a: data: the JSON has") {
		t.Errorf("the run is %s: %s", w.run.Status, w.run.Error)
	}
}

// A call that fails after the deadline is not tried again, and a second token expires
// with the first.
func TestLateFailure(t *testing.T) {
	w, taken := begun(t, "timeout: 5\nsteps: [{name: a, url: http://a.example/, retry: {max: 3, interval: 1s}}]", "{}")
	w.now = w.run.DeadlineAt
	w.settle(core.StepEnd{Job: taken, Kind: core.Refused, Class: core.Class5xx})
	if last := w.history[len(w.history)-2]; last.Type != core.EntryStepFailed || w.run.Error != "step a: 5xx" {
		t.Errorf("the entry before the last is %+v, the run failed with %q", last, w.run.Error)
	}
	w, taken = begun(t, "steps: [{name: a, type: callback, url: http://a.example/}]", "{}")
	arm := func(token string) {
		w.settle(core.StepEnd{Job: taken, Kind: core.Armed, Token: token, Expires: w.d.Expiry(taken, w.now)})
	}
	arm("one")
	w.now = w.now.Add(maxWait / 2)
	arm("two")
	if one, two := w.tokens["one"], w.tokens["two"]; !one.ExpiresAt.Equal(two.ExpiresAt) {
		t.Errorf("the tokens expire at %v and %v", one.ExpiresAt, two.ExpiresAt)
	}
}

// A failure without words has at least its class.
func TestWordless(t *testing.T) {
	w, taken := begun(t, "steps: [{name: a, url: http://a.example/}]", "{}")
	w.settle(core.StepEnd{Job: taken, Kind: core.Refused, Class: core.ClassNetwork})
	if w.run.Error != "step a: network" {
		t.Errorf("Error = %q", w.run.Error)
	}
}

func BenchmarkAdvance(b *testing.B) {
	w, taken := begun(b, "steps: [{name: a, url: http://a.example/, result_path: $.a}, {name: b, url: http://b.example/}]",
		`{"filler": "`+strings.Repeat("x", 2000)+`", "id": 1, "tags": ["a", "b"]}`)
	end := core.StepEnd{Job: taken, Kind: core.Replied, Body: []byte(`{"ok": true}`), Attempt: core.Attempt{Number: 1, StatusCode: 200}}
	v, p := w.view([]core.StepEnd{end}), w.pen()
	b.ReportAllocs()
	for b.Loop() {
		if m := w.d.Advance(p, v, end); !m.Moved {
			b.Fatal("lost")
		}
	}
}

// A run whose steps make calls meets the limit as one does that never leaves a transition.
func TestLoopOfCallsEnds(t *testing.T) {
	w := newWorld(t, compiled(t, "steps:\n  - {name: a, url: http://a.example/, goto: b}\n  - {name: b, url: http://b.example/, goto: a}"), `{}`)
	w.d.entries = 1000 // the world looks at all steps after each move
	calls := 0
	w.play(func(string, Request) reply {
		calls++
		return reply{status: 200}
	})
	if w.run.Status != core.RunFailed || w.run.Error != "step a#500: data: more than 10,000 transitions" || calls != 999 {
		t.Errorf("run %s: %s after %d calls, want failed at a#500 after 999", w.run.Status, w.run.Error, calls)
	}
	if n := len(w.history); n > 1001 { // the last call is answered, and nothing can come of that
		t.Errorf("%d entries, want at most 1001", n)
	}
}

const twoBranches = `steps:
  - name: both
    type: parallel
    branches:
      - {name: a, steps: [{name: a1, url: http://a.example/}, {name: a2, url: http://a.example/}]}
      - {name: b, url: http://b.example/}
  - {name: last, url: http://last.example/}`

// TestLateAnswersOfACanceledRun: a call that is answered after an operator canceled its run is
// not made again by a redrive from the failed step, also if a process of an earlier version
// stored the answer. To that process the status canceled is unknown: the run is not finished
// for it, and cannot be redriven.
func TestLateAnswersOfACanceledRun(t *testing.T) {
	for _, tt := range []struct {
		workflow string
		late     []string // paths whose calls are answered after the run was canceled
		earlier  bool
		again    string // paths called after the redrive
	}{
		{oneCall, []string{"a"}, false, "b"},
		{oneCall, []string{"a"}, true, "b"},
		{"steps: [{name: a, url: http://a.example/}]", []string{"a"}, false, ""},
		{"steps: [{name: a, url: http://a.example/}]", []string{"a"}, true, ""},
		{twoBranches, []string{"both/a/a1"}, false, "both/a/a2 both/b last"},
		{twoBranches, []string{"both/a/a1"}, true, "both/a/a2 both/b last"},
		{twoBranches, []string{"both/b"}, true, "both/a/a1 both/a/a2 last"},
		{twoBranches, []string{"both/a/a1", "both/b"}, true, "both/a/a2 last"},
		{strings.Replace(twoBranches, ", {name: a2, url: http://a.example/}", "", 1), []string{"both/a/a1", "both/b"}, true, "last"},
	} {
		w := newWorld(t, compiled(t, tt.workflow), "{}")
		var flying []core.StepEnd
		for j := w.next(); j != nil; j = w.next() {
			if w.steps[j.id].Type == "parallel" {
				w.step(j, calm)
				continue
			}
			if end, ok := w.attempt(w.take(j), calm); ok && slices.Contains(tt.late, w.steps[j.id].Path) {
				flying = append(flying, end)
			}
		}
		if err := w.cancel(); err != nil || w.run.Status != core.RunCanceled {
			t.Fatalf("Cancel: %v, the run is %s, want canceled", err, w.run.Status)
		}
		for _, end := range flying {
			if tt.earlier {
				w.run.Status = "unknown to it"
			}
			if lost := w.settle(end); len(lost) > 0 {
				t.Errorf("the answer of %s is lost", end.Job.Situation.Step.Path)
			}
			w.run.Status = core.RunCanceled
		}
		if err := w.redrive(true); err != nil {
			t.Fatal(err)
		}
		var again []string
		w.now = w.now.Add(time.Hour) // the leases of the calls that were not answered are over
		w.play(func(path string, r Request) reply {
			again = append(again, path)
			return calm(path, r)
		})
		slices.Sort(again)
		if got := strings.Join(again, " "); got != tt.again || w.run.Status != core.RunCompleted {
			t.Errorf("late %v, of an earlier version %v: the redrive calls %q, and the run is %s; want %q, completed", tt.late, tt.earlier, got, w.run.Status, tt.again)
		}
	}
}

// TestRefusedAfterTwoFailures: a call that is under way while its run fails, is redriven and
// fails again, and that is then refused, keeps the next redrive from nothing. The redrive waited
// until the lease of the call's worker had ended.
func TestRefusedAfterTwoFailures(t *testing.T) {
	w := newWorld(t, compiled(t, strings.Replace(twoBranches, ", {name: a2, url: http://a.example/}", "", 1)), "{}")
	w.step(w.next(), calm)
	var flying []core.StepEnd
	for j := w.next(); j != nil; j = w.next() {
		if end, ok := w.attempt(w.take(j), func(string, Request) reply { return reply{status: 503} }); ok {
			flying = append(flying, end)
		}
	}
	w.settle(flying[0])
	if err := w.redrive(true); err != nil {
		t.Fatal(err)
	}
	w.step(w.next(), func(string, Request) reply { return reply{status: 503} })
	if lost := w.settle(flying[1]); w.run.Status != core.RunFailed || len(lost) > 0 {
		t.Errorf("the run is %s, and the refusal of %s lost: %v", w.run.Status, flying[1].Job.Situation.Step.Path, lost)
	}
	if err := w.redrive(true); err != nil {
		t.Fatal(err)
	}
	for _, j := range w.jobs {
		if j.due.After(w.now) {
			t.Errorf("the job of %s is due %s later, want at once", w.steps[j.id].Path, j.due.Sub(w.now))
		}
	}
}
