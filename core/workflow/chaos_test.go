package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventgateway/gateway/core"
)

// A maker makes workflows.
type maker struct {
	t        *rapid.T
	names    int
	remedies bool // some steps catch failures, or go on after them
	aside    bool // there is an on_failure; the names of the steps from there on begin with n10
}

type fields = map[string]any

// workflow is the text of one, in JSON, which is YAML.
func (m *maker) workflow() string {
	steps := m.list(0)
	if last := steps[len(steps)-1]; m.chance(2) && last["type"] != "choice" {
		last["end"] = true
		m.names = 1000 // so that their names tell
		m.aside = true
		told := m.list(1)
		steps = append(steps, told...)
	}
	w := fields{"steps": steps}
	if m.aside {
		w["on_failure"] = "n1001"
	}
	if m.remedies && m.chance(4) {
		w["timeout"] = rapid.IntRange(1, 100).Draw(m.t, "timeout")
	}
	text, err := json.Marshal(w)
	if err != nil {
		m.t.Fatal(err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(text), "{"), "}")
}

func (m *maker) chance(of int) bool { return rapid.IntRange(0, of-1).Draw(m.t, "chance") == 0 }

func (m *maker) name() string {
	m.names++
	return fmt.Sprintf("n%d", m.names)
}

func (m *maker) list(depth int) (steps []fields) {
	n := rapid.IntRange(1, 3).Draw(m.t, "steps")
	var names []string
	for range n {
		names = append(names, m.name())
	}
	for i := range n {
		steps = append(steps, m.step(names, i, depth))
	}
	return steps
}

func (m *maker) step(names []string, i, depth int) fields {
	types := []string{"http", "http", "wait", "callback", "choice", "parallel", "map"}
	if depth == 3 {
		types = types[:4]
	}
	s := fields{"name": names[i], "type": rapid.SampledFrom(types).Draw(m.t, "type")}
	m.fill(s, names, i, depth)
	if m.remedies && m.chance(4) {
		s["on_failure"] = "continue"
	}
	if m.remedies && m.chance(4) && len(names) > 0 && i >= 0 {
		class := rapid.SampledFrom([]string{"5xx", "4xx", "timeout", "all"}).Draw(m.t, "class")
		s["catch"] = []fields{{"errors": []string{class}, "goto": rapid.SampledFrom(names).Draw(m.t, "catch")}}
	}
	return s
}

func (m *maker) fill(s fields, names []string, i, depth int) {
	switch s["type"] {
	case "http":
		s["url"] = "http://a.example/"
		m.data(s)
		m.retried(s)
	case "wait":
		s["seconds"] = rapid.IntRange(0, 3).Draw(m.t, "seconds")
	case "callback":
		s["callback_timeout"] = rapid.IntRange(1, 20).Draw(m.t, "callback_timeout")
		if m.chance(2) {
			s["url"] = "http://a.example/"
		}
		m.data(s)
		m.retried(s)
	case "choice":
		s["choices"] = []fields{{"when": "$.r == 1", "goto": rapid.SampledFrom(names).Draw(m.t, "goto")}}
		if i+1 < len(names) {
			s["default"] = names[i+1]
		} else if m.chance(3) {
			s["default"] = names[i]
		}
	case "parallel":
		var branches []fields
		for b := range rapid.IntRange(1, 3).Draw(m.t, "branches") {
			branch := fields{"name": fmt.Sprintf("b%d", b), "url": "http://a.example/"}
			if m.chance(2) {
				branch = fields{"name": branch["name"], "steps": m.list(depth + 1)}
			}
			branches = append(branches, branch)
		}
		s["branches"] = branches
		m.data(s)
	case "map":
		s["items_path"], s["input"] = "$.l", `{"l": [{{ $.r }}, 2, {"r": 1}]}`
		s["max_concurrency"] = rapid.IntRange(1, 3).Draw(m.t, "max_concurrency")
		inner := m.step([]string{m.name()}, 0, max(depth+1, 1))
		for inner["type"] == "choice" {
			inner = fields{"name": inner["name"], "type": "http", "url": "http://a.example/"}
		}
		delete(inner, "catch") // it has nowhere to go
		s["iterator"] = inner
	}
}

func (m *maker) data(s fields) {
	if m.chance(3) {
		s["result_path"] = rapid.SampledFrom([]any{nil, "$.r", "$.x.y", "$"}).Draw(m.t, "result_path")
	}
	if m.chance(6) && m.remedies {
		s["output"] = "$.r"
	}
}

func (m *maker) retried(s fields) {
	if m.chance(2) {
		s["retry"] = fields{"max": rapid.IntRange(2, 4).Draw(m.t, "max"), "interval": "1s"}
	}
}

// made returns a compiled workflow. A workflow that Load refuses is skipped.
func made(t *rapid.T, remedies bool) *Definition {
	m := &maker{t: t, remedies: remedies}
	text := "{" + m.workflow() + "}"
	d, err := loaded(flow(text))
	if err != nil {
		if strings.Contains(err.Error(), "no step leads to this one") || strings.Contains(err.Error(), "form a loop") {
			t.SkipNow()
		}
		t.Fatal(err)
	}
	d.entries = 300 // else an endless loop takes its time
	d.enters = rapid.IntRange(1, 4).Draw(t, "enters")
	return d
}

// flow writes the fields of a JSON object as a YAML mapping with one field a line.
func flow(text string) string {
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return text
	}
	var b strings.Builder
	for name, value := range object {
		fmt.Fprintf(&b, "%s: %s\n", name, value)
	}
	return b.String()
}

// calm always succeeds. Its answer depends only on the path and the request, so the time of
// the call does not matter.
func calm(path string, r Request) reply {
	h := fnv.New32a()
	body := r.Body
	if i := bytes.Index(body, []byte(`"payload":`)); i >= 0 {
		body = body[i:] // the text before it has the token
	}
	_, _ = fmt.Fprintf(h, "%s %s", path, body)
	return reply{status: 200, body: fmt.Sprintf(`{"r": %d, "p": %q}`, h.Sum32()%3, path)}
}

// A storm has several jobs under way at once, and settles them in any order.
type storm struct {
	*world
	t        *rapid.T
	receiver receiver
	flying   []core.StepEnd
	told     []core.StepEnd
	ledger   *ledger // nil: none is kept
}

// A ledger records the calls of a run that is redriven from its failed steps only.
type ledger struct {
	keys     map[string]string    // of calls, by path
	answered map[string]bool      // paths whose call was answered 2xx, and whose end was settled
	until    map[string]time.Time // by path: when the lease ends of the worker that calls
}

func newLedger() *ledger {
	return &ledger{keys: map[string]string{}, answered: map[string]bool{}, until: map[string]time.Time{}}
}

// called records a call. The path must not have been answered, nor have a call under way.
func (l *ledger) called(s *storm, path string, r Request) {
	if key := l.keys[path]; key != "" && key != r.Key {
		s.t.Fatalf("%s is called as %s and as %s", path, key, r.Key)
	}
	if l.keys[path] = r.Key; l.answered[path] {
		s.t.Fatalf("%s is called again after it was answered 2xx", path)
	}
	if l.until[path].After(s.now) {
		s.t.Fatalf("%s is called again while it is being called", path)
	}
	l.until[path] = s.now.Add(time.Minute)
}

// told records a settled end.
func (l *ledger) told(e core.StepEnd) {
	path := e.Job.Situation.Step.Path
	if e.Job.Situation.Step.Type == "http" && (e.Kind == core.Replied || e.Kind == core.Refused) {
		l.answered[path] = l.answered[path] || e.Kind == core.Replied
		l.until[path] = time.Time{}
	}
}

// kept returns a receiver whose calls are recorded in the ledger.
func (s *storm) kept(r receiver) receiver {
	return func(path string, q Request) reply {
		if s.ledger != nil && !strings.Contains(string(q.Body), `"callback_url"`) && !strings.HasPrefix(path, "n10") { // each epoch tells anew
			s.ledger.called(s, path, q)
		}
		return r(path, q)
	}
}

// tell settles ends.
func (s *storm) tell(ends ...core.StepEnd) map[int]string {
	lost := s.settle(ends...)
	for _, e := range ends {
		if s.ledger != nil {
			s.ledger.told(e)
		}
	}
	return lost
}

// wild answers anything.
func (s *storm) wild(path string, r Request) reply {
	switch rapid.IntRange(0, 5).Draw(s.t, "reply") {
	case 0:
		return reply{status: 503}
	case 1:
		return reply{status: 404}
	case 2:
		return reply{class: rapid.SampledFrom([]core.ErrorClass{core.ClassTimeout, core.ClassNetwork}).Draw(s.t, "class")}
	}
	return calm(path, r)
}

func (s *storm) blow() {
	pick := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(s.t, what) }
	switch what := pick(12, "what"); {
	case what < 5:
		s.launch()
	case what < 9 && len(s.flying) > 0:
		i := pick(len(s.flying), "end")
		ends := []core.StepEnd{s.flying[i]}
		s.flying = append(s.flying[:i:i], s.flying[i+1:]...)
		if len(s.flying) > 0 && pick(2, "two") == 0 {
			ends = append(ends, s.flying[0])
			s.flying = s.flying[1:]
		}
		s.tell(ends...)
		s.told = append(s.told, ends...)
	case what == 9 && len(s.told) > 0:
		e := s.told[pick(len(s.told), "again")]
		if lost := s.settle(e); len(lost) == 0 {
			s.t.Fatalf("the end %v of %s counts twice", e.Kind, e.Job.Situation.Step.Path)
		}
	case what == 10:
		s.lapse()
	case what == 11:
		s.comeBack(pick)
	}
}

// launch begins an attempt of a job that is due next.
func (s *storm) launch() {
	j := s.next()
	if j == nil {
		return
	}
	if j.due.After(s.now) {
		s.now = j.due
	}
	if end, ok := s.attempt(s.take(j), s.kept(s.receiver)); ok {
		s.flying = append(s.flying, end)
	} else if !s.run.Status.Finished() {
		s.t.Fatalf("the job of %s is stale", s.steps[j.id].Path)
	}
}

// lapse ends all leases: the jobs are taken again while the attempts go on.
func (s *storm) lapse() {
	for _, j := range s.jobs {
		if j.status == core.Running {
			j.status, j.due = core.Retryable, s.now
		}
	}
	if s.ledger != nil {
		clear(s.ledger.until)
	}
}

// comeBack sends a callback to a waiting step.
func (s *storm) comeBack(pick func(int, string) int) {
	var waiting []core.Step
	for _, x := range s.ordered() {
		if x.Type == "callback" && x.Status.Open() && readCarry(x.Carry).Expires > s.now.UnixMilli() {
			waiting = append(waiting, x)
		}
	}
	if len(waiting) > 0 {
		x := waiting[pick(len(waiting), "callback")]
		if !s.callback(x.Path, calm(x.Path, Request{Body: x.State}).body) {
			s.t.Fatalf("%s waits, and its token is no good", x.Path)
		}
	}
}

// calmDown continues a run in any order until it is finished. Each waiting callback step
// gets a callback.
func (s *storm) calmDown() {
	s.receiver = calm
	for range 200_000 {
		if s.run.Status.Finished() {
			return
		}
		s.lapse()
		if j := s.next(); j != nil && (s.steps[j.id].Type != "callback" || s.steps[j.id].Status != core.StepWaiting) {
			s.walk(j)
			continue
		}
		s.comeBack(func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(s.t, what) })
		if j := s.next(); j != nil && s.steps[j.id].Type == "callback" {
			s.tick(j)
		}
	}
	s.t.Fatal("the run does not end")
}

// walk lets the next job come to its end.
func (s *storm) walk(j *job) {
	path := s.steps[j.id].Path
	s.step(j, s.kept(calm))
	if s.ledger != nil && s.steps[j.id].Type == "http" && s.steps[j.id].Status == core.StepSucceeded {
		s.ledger.answered[path] = true
	}
}

// tick lets the time of a callback come, if it is over.
func (s *storm) tick(j *job) {
	if readCarry(s.steps[j.id].Carry).Expires <= s.now.UnixMilli() {
		s.step(j, calm)
	}
}

// TestStorms: for all events in all orders, the invariants hold (see world.check), and
// every run ends.
func TestStorms(t *testing.T) { rapid.Check(t, stormy) }

// FuzzStorms looks for storms that rapid does not draw.
func FuzzStorms(f *testing.F) { f.Fuzz(rapid.MakeFuzz(stormy)) }

func stormy(rt *rapid.T) {
	payload := rapid.SampledFrom([]string{`{"r": 1}`, `{"r": {"a": [1, 2]}}`, `[1]`, `"text"`, `null`, `no JSON`, ``}).Draw(rt, "payload")
	s := &storm{world: newWorld(rt, made(rt, true), payload), t: rt}
	s.receiver = s.wild
	for range rapid.IntRange(0, 60).Draw(rt, "blows") {
		s.blow()
		if s.run.Status.Redrivable() && rapid.IntRange(0, 2).Draw(rt, "redrive") == 0 {
			if err := s.redrive(rapid.Bool().Draw(rt, "from failed")); err != nil {
				rt.Fatal(err)
			}
		}
		if !s.run.Status.Finished() && rapid.IntRange(0, 30).Draw(rt, "cancel") == 0 {
			if err := s.cancel(); err != nil {
				rt.Fatal(err)
			}
		}
	}
	s.calmDown()
}

// TestStormsChangeNothing: a run fails again and again, its branches end in any order, and
// it is redriven from the failed steps. It ends like a run without failures. A call that
// was answered 2xx is never made again, no call is made while it is under way, and each has
// one idempotency key.
func TestStormsChangeNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := made(rt, false)
		still := &storm{world: newWorld(rt, d, `{"r": 1}`), t: rt}
		d.enters = maxEnters
		still.calmDown()
		if still.run.Status != core.RunCompleted {
			rt.SkipNow() // an endless loop, or nothing at a path
		}
		d.enters = rapid.IntRange(1, 3).Draw(rt, "enters") // how a run is parted into moves changes nothing
		s := &storm{world: newWorld(rt, d, `{"r": 1}`), t: rt, ledger: newLedger()}
		s.receiver = s.wild
		for i := range 1000 {
			if i < 100 {
				s.blow()
			} else {
				s.calmDown()
			}
			switch s.run.Status {
			case core.RunFailed:
				for len(s.flying) > 0 && rapid.Bool().Draw(rt, "late") { // before the redrive
					s.tell(s.flying[0])
					s.told, s.flying = append(s.told, s.flying[0]), s.flying[1:]
				}
				if err := s.redrive(true); err != nil {
					rt.Fatal(err)
				}
			case core.RunCompleted:
				if !bytes.Equal(s.run.Output, still.run.Output) {
					rt.Fatalf("after a storm the output is\n%s, not\n%s", s.run.Output, still.run.Output)
				}
				return
			}
		}
		rt.Fatalf("the run does not complete: %s", s.run.Error)
	})
}
