package workflow

import (
	"fmt"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
)

const polling = `max_bytes: 5000000
steps:
  - {name: poll, url: http://a.example/, result_path: %s}
  - {name: again, type: choice, choices: [{when: "$.pad", goto: poll}], default: poll}`

// A run that writes too much fails, and its error names the step that wrote most. It keeps
// the record of the last call. After a redrive it fails in the same way.
func TestBytesOfARunAreBounded(t *testing.T) {
	w := newWorld(t, compiled(t, fmt.Sprintf(polling, "$.pad")), `{"pad": "x"}`)
	calls := 0
	r := func(string, Request) reply {
		calls++
		return reply{status: 200, body: fmt.Sprintf(`"%d%s"`, calls, strings.Repeat("x", 600_000))}
	}
	w.play(r)
	why := fmt.Sprintf("step poll#9: data: the run writes more than max_bytes of its workflow, 5000000 bytes; step poll wrote most, %d bytes", 9*600_011)
	if w.run.Status != core.RunFailed || w.run.Error != why || calls != 9 {
		t.Errorf("after %d calls the run is %s: %s\nwant %s", calls, w.run.Status, w.run.Error, why)
	}
	if w.run.Written > 5_000_000+600_011+3*stepBytes { // the last answer is kept, so that a redrive need not ask for it
		t.Errorf("the run says that it wrote %d bytes", w.run.Written)
	}
	if err := w.redrive(true); err != nil {
		t.Fatal(err)
	}
	before := calls
	if w.play(r); w.run.Status != core.RunFailed || !strings.Contains(w.run.Error, "for each redrive") || calls < before+8 {
		t.Errorf("after a redrive and %d calls the run is %s: %s", calls-before, w.run.Status, w.run.Error)
	}
}

// A state that goes on unchanged is not written again, however large it is: the run ends at
// the bound on transitions.
func TestUnchangedStateDoesNotCount(t *testing.T) {
	w := newWorld(t, compiled(t, fmt.Sprintf(polling, "'null'")), `{"pad": "`+strings.Repeat("x", 900_000)+`"}`)
	w.d.entries = 200
	w.play(func(string, Request) reply { return reply{status: 200, body: "1"} })
	if !strings.Contains(w.run.Error, "more than 10,000 transitions") || w.run.Written > 1_200_000 {
		t.Errorf("after %d bytes the run is %s: %s", w.run.Written, w.run.Status, w.run.Error)
	}
}

// The inputs of branches and items count, each input once.
func TestInputsCount(t *testing.T) {
	pad := strings.Repeat("x", 100_000)
	for steps, want := range map[string]int{
		"type: parallel, branches: [{name: a, url: http://a.example/}, {name: b, url: http://b.example/}]":              0,
		"type: parallel, input: $.in, branches: [{name: a, url: http://a.example/}, {name: b, url: http://b.example/}]": 1,
		"type: map, items_path: $.items, url: http://a.example/":                                                        2,
	} {
		w := newWorld(t, compiled(t, "steps: [{name: p, result_path: 'null', output: $.n, "+steps+"}]"),
			`{"n": 1, "in": "`+pad+`", "items": ["`+pad+`", "`+pad+`"]}`)
		w.play(func(string, Request) reply { return reply{status: 200, body: "1"} })
		// A parallel step makes a copy of the payload. The store does not keep the payload
		// with the run.
		counted := w.run.Written
		if strings.Contains(steps, "branches") && want == 0 {
			counted -= len(w.event.Payload)
		}
		if w.run.Status != core.RunCompleted || counted/len(pad) != want {
			t.Errorf("%s: the run is %s: %s, and wrote %d bytes", steps, w.run.Status, w.run.Error, w.run.Written)
		}
	}
}

// Runs that began under a version without the bound keep the texts with their steps.
func TestEarlierDefinitionsKeepTextsTogether(t *testing.T) {
	d := compiled(t, "steps: [{name: a, type: wait, seconds: 1}]")
	for _, earlier := range []bool{false, true} {
		d.separateTexts = !earlier
		w := newWorld(t, d, "{}")
		j := w.next()
		end, _ := w.attempt(w.take(j), calm)
		if m := w.d.Advance(w.pen(), w.view([]core.StepEnd{end}), end); m.Moved && m.Transition.Apart == earlier {
			t.Errorf("Apart = %v of a definition that is earlier: %v", m.Transition.Apart, earlier)
		}
	}
}
