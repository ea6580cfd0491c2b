package workflow

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
)

// compiled is the only workflow of a file that has a source called shop.
func compiled(t testing.TB, workflow string) *Definition {
	t.Helper()
	d, err := loaded(workflow)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// loaded reads the fields of a workflow, indented by nothing.
func loaded(workflow string) (*Definition, error) {
	file := "database: {driver: sqlite}\nsources: {shop: {type: event}}\nworkflows:\n  w:\n    source: shop\n" +
		"    " + strings.ReplaceAll(strings.TrimSpace(workflow), "\n", "\n    ") + "\n"
	c, err := config.Load(config.Options{Path: "gateway.yaml", FS: fstest.MapFS{"gateway.yaml": {Data: []byte(file)}}})
	if err != nil {
		return nil, fmt.Errorf("%w in\n%s", err, file)
	}
	return Compile(c.SortedWorkflows()[0])
}

// A job is one in a world.
type job struct {
	id       core.ID
	due      time.Time // zero once it is over
	until    time.Time // while it is running: when its lease ends
	status   core.Status
	attempt  int
	lastErr  string
	finished time.Time
}

// A tester is a test, or a case of a property.
type tester interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// A world is a run with its store. It applies transitions like a store, and checks the
// invariants after each.
type world struct {
	t          tester
	d          *Definition
	now        time.Time
	event      core.Event
	run        core.Run
	steps      map[core.ID]core.Step
	jobs       map[core.ID]*job
	history    []core.Entry
	tokens     map[string]core.Token
	marks      map[core.ID]bool
	ids        int
	moves      int
	obituaries []string
	facts      []core.Fact
	log        func(format string, args ...any)
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newWorld(t tester, d *Definition, payload string) *world {
	w := &world{
		t: t, d: d, now: epoch, steps: map[core.ID]core.Step{}, jobs: map[core.ID]*job{},
		tokens: map[string]core.Token{}, marks: map[core.ID]bool{}, log: func(string, ...any) {},
	}
	w.event = core.Event{ID: "EVENT", Source: "shop", Type: "order.created", Payload: []byte(payload), CreatedAt: epoch}
	id := w.mint()
	w.run = core.Run{
		ID: "RUN", Workflow: "w", EventID: "EVENT", Status: core.RunPending, Epoch: 1, Step: d.First(), CreatedAt: epoch,
	}
	if d.Timeout() > 0 {
		w.run.DeadlineAt = epoch.Add(d.Timeout())
	}
	w.steps[id] = core.Step{
		ID: id, RunID: "RUN", Epoch: 1, Path: d.First(), Name: d.First(), Type: d.top.steps[0].kind.typ(),
		Status: core.StepReady, StartedAt: epoch,
	}
	w.jobs[id] = &job{id: id, due: w.now, status: core.Available}
	return w
}

func (w *world) mint() core.ID {
	w.ids++
	return core.ID(fmt.Sprintf("%06d", w.ids))
}

func (w *world) pen() Pen {
	return Pen{Mint: w.mint, Now: w.now, Obituary: func(r core.Run, s core.Step, e core.Event) *core.Arrival {
		if e.ID != w.event.ID || r.Status != core.RunFailed {
			w.t.Errorf("Obituary(%v, %v, %v)", r, s, e)
		}
		return &core.Arrival{Event: core.Event{ID: core.ID(s.Path)}}
	}}
}

func (w *world) situation(id core.ID) (core.Situation, bool) {
	s, ok := w.steps[id]
	if !ok {
		return core.Situation{}, false
	}
	out := core.Situation{Run: w.run, Step: s}
	for s.ParentID != "" {
		s = w.steps[s.ParentID]
		light := s
		light.State, light.Output = nil, nil
		out.Above = append(out.Above, light)
	}
	return out, true
}

// ordered are all steps in the order of their ids.
func (w *world) ordered() []core.Step {
	return slices.SortedFunc(maps.Values(w.steps), func(a, b core.Step) int { return cmp.Compare(a.ID, b.ID) })
}

func (w *world) survey(want core.Wanted) (found []core.Step) {
	for _, s := range w.ordered() {
		if s.Epoch == w.run.Epoch && (want.All || want.Open && s.Status.Open() || want.Failed && s.Status == core.StepFailed ||
			slices.Contains(want.IDs, s.ID) || slices.Contains(want.Paths, s.Path) ||
			s.Last && slices.Contains(want.Leaves, s.ParentID)) {
			found = append(found, s)
		}
	}
	return found
}

// complete calls ask until nothing is missing.
func (w *world) complete(v View, ask func(View) Move) Move {
	for range 10 {
		m := ask(v)
		if m.Missing.Nothing() {
			return m
		}
		v.Have = v.Have.And(m.Missing)
		v.Steps = w.survey(v.Have)
	}
	w.t.Fatal("the machine does not stop asking")
	return Move{}
}

func (w *world) view(ends []core.StepEnd) View {
	v := View{Event: w.event, Run: w.run, Situations: map[core.ID]core.Situation{}}
	for _, e := range ends {
		id := e.Job.Situation.Step.ID
		if s, ok := w.situation(id); ok {
			v.Situations[id] = s
		}
	}
	return v
}

// settle settles ends, and returns the lost ones.
func (w *world) settle(ends ...core.StepEnd) map[int]string {
	v := w.view(ends)
	m := w.complete(v, func(v View) Move { return w.d.Advance(w.pen(), v, ends...) })
	if m.Moved != (len(m.Lost) < len(ends)) {
		w.t.Fatalf("Advance(%d ends) lost %v and moved: %v", len(ends), m.Lost, m.Moved)
	}
	if m.Moved {
		w.apply(m.Transition)
	}
	return m.Lost
}

// apply applies a transition like a store.
func (w *world) apply(t core.Transition) {
	w.moves++
	if t.Seq != w.run.Seq || w.marks[t.Mark] || len(t.Entries) == 0 || t.Run.Seq != t.Entries[len(t.Entries)-1].Seq {
		w.t.Fatalf("transition %q from %d with %d entries at %d", t.Mark, t.Seq, len(t.Entries), w.run.Seq)
	}
	w.marks[t.Mark] = true
	for _, e := range t.Entries {
		if e.Seq != w.run.Seq+1 {
			w.t.Fatalf("entry %d follows %d", e.Seq, w.run.Seq)
		}
		w.run.Seq++
		if e.Type == core.EntryRetried {
			e.Data = jittered.ReplaceAllString(e.Data, "")
		}
		w.log("%s\n", strings.TrimSpace(strings.Join([]string{string(e.Type), e.Path, e.Data}, " ")))
	}
	w.history = append(w.history, t.Entries...)
	for _, s := range t.New {
		if _, twice := w.steps[s.ID]; twice {
			w.t.Fatalf("step %s is made twice", s.Path)
		}
		w.steps[s.ID] = s
	}
	for _, c := range t.Changed {
		s, ok := w.steps[c.ID]
		if late := c.Status == core.StepSucceeded || s.Fan.Total > 0 || s.Output == nil; !ok || s.Status == core.StepSucceeded || !s.Status.Open() && !late {
			w.t.Fatalf("change of step %q, which is %q", s.Path, s.Status)
		}
		s.Status, s.Attempt, s.Output, s.Error, s.Carry = c.Status, c.Attempt, c.Output, c.Error, c.Carry
		s.Fan, s.Last, s.FinishedAt = c.Fan, c.Last, c.FinishedAt
		w.steps[c.ID] = s
	}
	for _, id := range t.Held {
		if j, s := w.jobs[id], w.steps[id]; j != nil && j.status == core.Running {
			s.HeldUntil = j.until
			w.steps[id] = s
		}
	}
	w.applyJobs(t)
	for _, token := range t.Tokens {
		w.tokens[token.Hash] = token
	}
	for _, id := range t.Disarm {
		maps.DeleteFunc(w.tokens, func(_ string, t core.Token) bool { return t.StepID == id })
	}
	w.run = t.Run
	if t.GivesRise != nil {
		w.obituaries = append(w.obituaries, string(t.GivesRise.Event.ID))
	}
	w.facts = append(w.facts, t.Facts...)
	w.check()
}

// jittered matches the random part of an entry.
var jittered = regexp.MustCompile(`,"until":"[^"]*"`)

// applyJobs rounds the due times of jobs, so that the jitter of retries does not show.
func (w *world) applyJobs(t core.Transition) {
	for _, j := range t.Jobs {
		if w.jobs[j.ID] != nil || w.steps[j.ID].ID == "" {
			w.t.Fatalf("job %s is made for step %q, which has %v", j.ID, w.steps[j.ID].Path, w.jobs[j.ID])
		}
		w.checkWaiting(w.steps[j.ID], j.Status, j.DueAt.After(t.Entries[0].At))
		w.jobs[j.ID] = &job{id: j.ID, due: j.DueAt, status: j.Status}
	}
	for _, c := range t.JobsEnd {
		j := w.jobs[c.ID]
		if j == nil && t.Run.Epoch > w.run.Epoch {
			continue // a redrive closes the dead job, if there is one
		}
		if j == nil {
			w.t.Fatalf("step %q has no job, but it is changed to %s", w.steps[c.ID].Path, c.Status)
		}
		j.status, j.due, j.lastErr, j.finished = c.Status, c.DueAt.Round(time.Second), c.Error, c.FinishedAt
		if !c.Status.Finished() {
			w.checkWaiting(w.steps[c.ID], c.Status, c.DueAt.After(t.Entries[0].At))
		}
		if c.Status.Finished() != c.DueAt.IsZero() || c.Status.Finished() == c.FinishedAt.IsZero() {
			w.t.Fatalf("change of a job: %+v", c)
		}
	}
}

// checkWaiting: only the job of a step that failed is retryable, and a job that waits for its
// time is scheduled.
func (w *world) checkWaiting(s core.Step, status core.Status, later bool) {
	ok := status == core.Available
	switch {
	case later && s.Status == core.StepWaiting:
		ok = status == core.Scheduled
	case later:
		ok = status == core.Scheduled || status == core.Retryable && s.Error != ""
	case s.Status != core.StepWaiting && s.Error != "":
		ok = ok || status == core.Retryable
	}
	if !ok {
		w.t.Fatalf("the job of step %s, which is %s, is %s, and due later: %t", s.Path, s.Status, status, later)
	}
}

// check fails the test if an invariant is broken.
func (w *world) check() {
	paths, children := map[string]bool{}, map[core.ID]core.Fan{}
	for _, s := range w.ordered() {
		path := fmt.Sprint(s.Epoch, s.Path)
		if paths[path] {
			w.t.Fatalf("step %s is there twice", s.Path)
		}
		paths[path] = true
		if s.Status.Open() == !s.FinishedAt.IsZero() || s.Status == core.StepSucceeded && s.Output == nil {
			w.t.Fatalf("step %+v", s)
		}
		if s.Status.Open() && (w.run.Status.Finished() || s.Epoch != w.run.Epoch) {
			w.t.Fatalf("step %s is %s, and the run is %s", s.Path, s.Status, w.run.Status)
		}
		f := children[s.ParentID]
		if s.Last {
			f.Ended++
			f.Bytes += len(s.Output)
		}
		children[s.ParentID] = f
	}
	branches := map[core.ID]map[string]bool{}
	for _, s := range w.steps {
		if branches[s.ParentID] == nil {
			branches[s.ParentID] = map[string]bool{}
		}
		branches[s.ParentID][s.Branch] = true
	}
	for _, s := range w.steps {
		if s.Fan.Total > 0 && s.Output == nil && (len(branches[s.ID]) != s.Fan.Total || children[s.ID].Ended != s.Fan.Ended ||
			children[s.ID].Bytes != s.Fan.Bytes || s.Fan.Started > s.Fan.Total) {
			w.t.Fatalf("step %s has %+v, but %d branches of which %+v ended", s.Path, s.Fan, len(branches[s.ID]), children[s.ID])
		}
	}
	w.checkJobs()
	late := 0
	for _, e := range w.history {
		if e.Type == core.EntryLate || strings.Contains(e.Data, `"late":true`) {
			late++
		}
	}
	if w.run.Seq > w.d.entries*w.run.Epoch+late {
		w.t.Fatalf("the history has %d entries", w.run.Seq)
	}
}

// checkJobs checks that each open step has exactly one mover: its job, or its branches.
func (w *world) checkJobs() {
	dead := 0
	for _, s := range w.steps {
		j := w.jobs[s.ID]
		live := j != nil && !j.due.IsZero()
		above := w.steps[s.ParentID]
		queued := above.Type == "map" && s.Status == core.StepReady && itemIndex(&s) >= above.Fan.Started
		want := s.Status.Open() && s.Fan.Total == s.Fan.Ended && !queued // redriven parallel and map steps whose branches have all ended have one
		if live != want {
			w.t.Fatalf("step %s of epoch %d is %s; its job is %+v", s.Path, s.Epoch, s.Status, j)
		}
		if j != nil && j.status == core.Dead {
			dead++
		}
	}
	if dead > 1 || dead == 1 && w.run.Error == "" {
		w.t.Fatalf("%d jobs are dead, the run is %s", dead, w.run.Status)
	}
	for _, token := range w.tokens {
		if !w.steps[token.StepID].Status.Open() {
			w.t.Fatalf("there is a token for step %s", w.steps[token.StepID].Path)
		}
	}
}
