package flows_test

import (
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventgateway/gateway/core"
)

// TestRandom: for any definition, payload and replies, a run ends and leaves no open step, job
// or lease. After a redrive it ends again.
func TestRandom(t *testing.T) {
	w := newWorld(t, onSQLite, "")
	ended, steps := map[core.RunStatus]int{}, 0
	rapid.Check(t, func(rt *rapid.T) {
		if testing.Short() && ended[core.RunCompleted]+ended[core.RunFailed] > 20 {
			return
		}
		w.forget()
		author := &author{T: rt}
		yaml := "workflows:\n  random:\n    source: shop\n" + author.timeout() + "    steps:\n" + author.list(0, "      ")
		payload := rapid.SampledFrom([]string{
			`{"n": 1, "items": [1, {"a": 2}, [3]], "at": "2026-03-01T13:00:00Z"}`, `{"n": 7, "items": []}`, `{"n": "x"}`, `[1]`, `"text"`, `null`,
		}).Draw(rt, "payload")
		mood := rapid.IntRange(0, 1<<30).Draw(rt, "mood")
		w.configure(yaml)
		w.receiver.another = moody(mood)
		a := w.ask("POST", "/events/shop/order", payload)
		if a.status != 202 {
			rt.Fatalf("event = %s\n%s", a, yaml)
		}
		run := w.runsOf(core.ID(a.header.Get("x-gateway-event-id")))[0]
		w.ends(rt, yaml, run)
		status := w.run(run).Status
		ended[status]++
		steps += len(w.steps(w.run(run), core.Wanted{All: true}))
		if status == core.RunFailed {
			w.receiver.another = nil // all replies are successes now
			from := rapid.SampledFrom([]string{"start", "failed"}).Draw(rt, "from")
			if a := w.ask("POST", "/api/workflow-runs/"+string(run)+"/redrive", `{"from":"`+from+`"}`); a.status != 200 {
				rt.Fatalf("redrive = %s", a)
			}
			w.ends(rt, yaml, run)
			ended["then "+w.run(run).Status]++
		}
	})
	t.Logf("%v, %d steps", ended, steps)
}

// moody returns random replies. The same call always gets the same reply.
func moody(mood int) func(*request) *reply {
	return func(q *request) *reply {
		h := fnv.New32()
		fmt.Fprint(h, mood, q.step, q.Header.Get("x-gateway-attempt"))
		switch h.Sum32() % 8 {
		case 0:
			return &reply{status: 500}
		case 1:
			return &reply{status: 404}
		case 2:
			return &reply{status: 204}
		case 3:
			return &reply{status: 200, body: "text"}
		case 4:
			return &reply{status: 200, body: `{"n": 9, "items": ["x"]}`}
		}
		return nil
	}
}

// ends lets a run come to its end. Every second callback that it waits for is sent, the others
// are not.
func (w *world) ends(rt *rapid.T, yaml string, id core.ID) {
	for n := range 100 {
		if err := w.rest(); err != nil {
			rt.Fatalf("%v\n%s", err, yaml)
		}
		r := w.run(id)
		if r.Status.Finished() {
			if left := w.leftovers(); len(left) > 0 {
				rt.Fatalf("left behind %s\n%s", strings.Join(left, "\n"), yaml)
			}
			return
		}
		waiting := w.steps(r, core.Wanted{Open: true})
		token := ""
		for _, s := range waiting {
			if s.Status == core.StepWaiting && token == "" {
				token = w.receiver.token(s.Path)
			}
		}
		if token == "" || n%2 == 1 {
			w.clock.move(366 * 24 * time.Hour)
		} else if a := w.ask("POST", "/callback/"+token, `{"n": 3}`); a.status != 200 && a.status != 404 {
			rt.Fatalf("callback = %s\n%s", a, yaml)
		}
	}
	rt.Fatalf("the run does not end: %+v\n%s", w.run(id), yaml)
}

// An author writes valid random workflows: jumps go forward only, and every step can be
// reached.
type author struct {
	*rapid.T
	steps int
}

func (a *author) one(of ...string) string { return rapid.SampledFrom(of).Draw(a.T, "part") }

func (a *author) timeout() string { return a.one("", "", "    timeout: 3600\n") }

// list writes one list of steps.
func (a *author) list(depth int, indent string) string {
	n := rapid.IntRange(1, 3).Draw(a.T, "steps")
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("s", a.steps)
		a.steps++
	}
	var out strings.Builder
	for i, name := range names {
		out.WriteString(indent + "- name: " + name + "\n")
		a.step(&out, depth, indent+"  ", names[i+1:])
	}
	return out.String()
}

// step writes a step. It may jump to the steps behind it.
func (a *author) step(out *strings.Builder, depth int, indent string, behind []string) {
	kinds := []string{"http", "http", "wait", "callback"}
	if len(behind) > 0 {
		kinds = append(kinds, "choice")
	}
	if depth < 2 && a.steps < 12 {
		kinds = append(kinds, "parallel", "map", "parallel", "map")
	}
	kind := a.one(kinds...)
	line := func(format string, args ...any) { fmt.Fprintf(out, indent+format+"\n", args...) }
	line("type: %s", kind)
	switch kind {
	case "http":
		line("url: http://receiver/x")
		a.optional(line, "method: PUT", "retry: {max: 3, interval: 10ms}", "retry: {max: 2, errors: [5xx]}")
	case "wait":
		line("%s", a.one("seconds: 0", "seconds: 100", "timestamp_path: $.at"))
	case "callback":
		a.optional(line, "url: http://receiver/y", "url: http://receiver/y", "callback_timeout: 600", "retry: {max: 2}")
	case "choice":
		line("choices: [{when: '%s', goto: %s}]", a.one("$.n > 3", `$.n == "x"`, "$.items"), a.one(behind...))
		line("default: %s", behind[0])
	case "parallel":
		line("branches:")
		for i := range rapid.IntRange(1, 3).Draw(a.T, "branches") {
			line("  - name: b%d", i)
			line("    steps:")
			out.WriteString(a.list(depth+1, indent+"      "))
		}
	case "map":
		line("items_path: %s", a.one("$.items", "$.items", "$"))
		a.optional(line, "max_concurrency: 1", "max_concurrency: 2")
		line("iterator:")
		line("  name: i%d", a.steps)
		a.steps++
		a.step(out, depth+1, indent+"  ", nil)
	}
	a.remedies(line, kind, behind)
}

func (a *author) remedies(line func(string, ...any), kind string, behind []string) {
	a.optional(line, "on_failure: continue")
	if len(behind) > 0 {
		a.optional(line, "catch: [{errors: [4xx], goto: "+a.one(behind...)+"}]", "catch: [{errors: [all], goto: "+a.one(behind...)+"}]")
	}
	if kind != "choice" && kind != "wait" {
		a.optional(line, "result_path: null", "result_path: $.r", "result_path: $.items.x", "result_path: null")
		a.optional(line, "output: $", "output: $.n")
	}
}

// optional writes one of the lines, or none.
func (a *author) optional(line func(string, ...any), of ...string) {
	if text := a.one(append([]string{"", ""}, of...)...); text != "" {
		line("%s", text)
	}
}
