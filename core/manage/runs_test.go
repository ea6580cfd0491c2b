package manage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

// A record is a fake store of one run, with steps s1, s2 and so on. Its method named broken
// fails with err.
type record struct {
	run     core.Run
	payload string
	steps   []core.Step
	entries int
	jobs    []core.Job
	broken  string
	err     error

	asked []string
}

func (r *record) ask(method string) error {
	r.asked = append(r.asked, method)
	if r.broken == method {
		return r.err
	}
	return nil
}

func (r *record) Run(_ context.Context, id core.ID) (core.Run, error) {
	if err := r.ask("Run"); err != nil {
		return core.Run{}, err
	}
	if id != r.run.ID {
		return core.Run{}, core.Refuse(core.NotFound, "row not found")
	}
	return r.run, nil
}

func (r *record) Runs(_ context.Context, f core.RunFilter) (core.Page[core.Run], error) {
	err := r.ask(fmt.Sprintf("Runs %+v", f))
	return core.Page[core.Run]{Items: []core.Run{r.run}, More: true}, err
}

func (r *record) Steps(_ context.Context, run core.ID, epoch int, after core.ID, limit int) (page core.Page[core.Step], _ error) {
	if run != r.run.ID || epoch != r.run.Epoch || limit < 1 || limit > core.MaxPage {
		return page, fmt.Errorf("Steps(%s, %d, %s, %d)", run, epoch, after, limit)
	}
	size := 0
	for _, s := range r.steps {
		if s.ID <= after {
			continue
		}
		if page.More = len(page.Items) == limit || size >= core.MaxRead; page.More {
			break
		}
		page.Items = append(page.Items, s)
		size += len(s.State) + len(s.Output)
	}
	return page, r.ask("Steps")
}

func (r *record) History(_ context.Context, run core.ID, after, limit int) (page []core.Entry, _ error) {
	for seq := after + 1; seq <= min(r.entries, after+limit); seq++ {
		page = append(page, core.Entry{Seq: seq})
	}
	return page, r.ask("History")
}

func (r *record) Outline(_ context.Context, run core.ID, epoch int) ([]core.Step, error) {
	if run != r.run.ID || epoch != r.run.Epoch {
		return nil, fmt.Errorf("Outline(%s, %d)", run, epoch)
	}
	return slices.Clone(r.steps), r.ask("Outline")
}

func (r *record) Survey(_ context.Context, run core.ID, epoch int, w core.Wanted) (found []core.Step, _ error) {
	if run != r.run.ID || epoch != r.run.Epoch || len(w.Paths) != 1 {
		return nil, fmt.Errorf("Survey(%s, %d, %+v)", run, epoch, w)
	}
	for _, s := range r.steps {
		if s.Path == w.Paths[0] {
			found = append(found, s)
		}
	}
	return found, r.ask("Survey")
}

func (r *record) Job(_ context.Context, id core.ID) (core.Job, error) {
	for _, j := range r.jobs {
		if j.ID == id {
			return j, r.ask("Job")
		}
	}
	if err := r.ask("Job"); err != nil {
		return core.Job{}, err
	}
	return core.Job{}, core.Refuse(core.NotFound, "job not found")
}

func (r *record) Event(_ context.Context, id core.ID) (core.Event, error) {
	return core.Event{ID: id, Payload: []byte(r.payload)}, r.ask("Event")
}

// Jobs returns pages of two jobs.
func (r *record) Jobs(_ context.Context, f core.JobFilter) (page core.Page[core.Job], _ error) {
	if f.Status != core.Running || f.Lane != "workflow/fulfil" || f.EventID != r.run.EventID {
		return page, fmt.Errorf("Jobs(%+v)", f)
	}
	for _, j := range r.jobs {
		if f.After != "" && j.ID >= f.After {
			continue
		}
		if page.More = len(page.Items) == 2; page.More {
			break
		}
		page.Items = append(page.Items, j)
	}
	return page, r.ask("Jobs")
}

// mover is a fake Mover. Before each call it sets the run's status to meanwhile, if that is
// set.
type mover struct {
	*record
	meanwhile core.RunStatus
	said      []string
	err       error
}

func (m *mover) move(what string) (core.Run, error) {
	m.said = append(m.said, what)
	if m.meanwhile != "" {
		m.run.Status = m.meanwhile
	}
	if m.err != nil {
		return core.Run{}, m.err
	}
	moved := m.run
	moved.Epoch = 7
	return moved, nil
}

func (m *mover) Redrive(_ context.Context, run core.ID, fromFailed bool, as core.Definition) (core.Run, error) {
	moved, err := m.move(strings.TrimSpace(fmt.Sprintf("redrive %s %v %s", run, fromFailed, as.Hash)))
	if as.Hash != "" {
		moved.Definition = as.Hash
	}
	return moved, err
}

func (m *mover) Cancel(_ context.Context, run core.ID) (core.Run, error) {
	return m.move(fmt.Sprintf("cancel %s", run))
}

func recorded(status core.RunStatus) (*Runs, *record, *mover) {
	r := &record{run: core.Run{ID: "R1", Workflow: "fulfil", EventID: "E1", Status: status, Epoch: 2}, payload: "{}", err: errors.New("disk full")}
	m := &mover{record: r}
	return NewRuns(r, m), r, m
}

func TestRunsAreListedAsTheStoreDoes(t *testing.T) {
	runs, r, _ := recorded(core.RunFailed)
	f := core.RunFilter{Status: core.RunFailed, Workflow: "w", EventID: "E1", After: "R9", Limit: 3}
	page, err := runs.List(t.Context(), f)
	if err != nil || !page.More || len(page.Items) != 1 || page.Items[0].ID != "R1" {
		t.Errorf("List = %+v, %v", page, err)
	}
	all, err := runs.OfEvent(t.Context(), "E1")
	if err != nil || len(all) != 1 || all[0].ID != "R1" {
		t.Errorf("OfEvent = %+v, %v", all, err)
	}
	want := []string{fmt.Sprintf("Runs %+v", f), fmt.Sprintf("Runs %+v", core.RunFilter{EventID: "E1", Limit: core.MaxPage})}
	if diff := cmp.Diff(want, r.asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
}

// A step with a call under way is shown as running, and a step that waits for its call as
// ready. The stored status does not matter.
func TestStepsAsTheyAreShown(t *testing.T) {
	step := func(kind string, s core.StepStatus, attempt int) core.Step {
		return core.Step{Type: kind, Status: s, Attempt: attempt, State: []byte("1")}
	}
	tests := []struct {
		step    core.Step
		held    bool
		status  core.StepStatus
		attempt int
	}{
		{step("http", core.StepReady, 0), false, core.StepReady, 0},
		{step("http", core.StepReady, 2), true, core.StepRunning, 3},
		{step("http", core.StepRunning, 1), false, core.StepReady, 1},
		{step("http", core.StepRunning, 0), true, core.StepRunning, 1},
		{step("http", core.StepSucceeded, 1), true, core.StepSucceeded, 1}, // its job is being closed
		{step("callback", core.StepReady, 0), true, core.StepRunning, 1},
		{step("callback", core.StepWaiting, 1), true, core.StepWaiting, 1},
		{step("wait", core.StepWaiting, 0), true, core.StepWaiting, 0},
		{step("wait", core.StepRunning, 0), false, core.StepRunning, 0},
		{step("map", core.StepRunning, 0), false, core.StepRunning, 0},
		{step("http", core.StepCanceled, 0), false, core.StepCanceled, 0},
	}
	runs, r, _ := recorded(core.RunRunning)
	for i, tt := range tests {
		tt.step.ID = id(i)
		r.steps = append(r.steps, tt.step)
		if tt.held {
			r.jobs = append([]core.Job{{ID: tt.step.ID}}, r.jobs...) // newest first
		}
	}
	got, err := runs.Inspect(t.Context(), "R1", Place{}, 0)
	if err != nil || len(got.Steps) != len(tests) {
		t.Fatalf("Inspect = %d steps, %v, want %d", len(got.Steps), err, len(tests))
	}
	for i, tt := range tests {
		if s := got.Steps[i]; s.Status != tt.status || s.Attempt != tt.attempt {
			t.Errorf("%s step that is %s, attempt %d, its job held %v, is shown as %s, attempt %d, want %s, %d",
				tt.step.Type, tt.step.Status, tt.step.Attempt, tt.held, s.Status, s.Attempt, tt.status, tt.attempt)
		}
	}
}

func TestInspectShowsThePayload(t *testing.T) {
	for payload, want := range map[string]string{
		`{"a": 1.0}`: `{"a": 1.0}`, "": `""`, "a=1": `"a=1"`, `["unclosed"`: `"[\"unclosed\""`, "\"\xff\"": `"\"\ufffd\""`,
	} {
		runs, r, _ := recorded(core.RunCompleted)
		r.payload = payload
		done := func(n int, state []byte) core.Step {
			return core.Step{ID: id(n), Type: "http", Status: core.StepSucceeded, State: state}
		}
		r.steps = []core.Step{done(1, nil), done(2, []byte("17")), done(3, nil)}
		got, err := runs.Inspect(t.Context(), "R1", Place{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var states []string
		for _, s := range got.Steps {
			states = append(states, string(s.State))
		}
		if diff := cmp.Diff([]string{want, "17", want}, states); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
	}
}

// Inspect reads the jobs only if a call may be under way, and the event only if a step
// received its payload.
func TestInspectAsksForLittle(t *testing.T) {
	runs, r, _ := recorded(core.RunCompleted)
	r.steps = []core.Step{{ID: id(1), Type: "http", Status: core.StepSucceeded, State: []byte("1")}, {ID: id(2), Type: "wait", Status: core.StepWaiting, State: []byte("1")}}
	if _, err := runs.Inspect(t.Context(), "R1", Place{}, 0); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Run", "Steps", "History"}, r.asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	r.steps = []core.Step{{ID: id(1), Type: "http", Status: core.StepReady}, {ID: id(2), Type: "http", Status: core.StepReady}}
	r.asked = nil
	if _, err := runs.Inspect(t.Context(), "R1", Place{}, 0); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Run", "Steps", "Jobs", "Event", "History"}, r.asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
}

func TestHistoryIsWhole(t *testing.T) {
	for _, n := range []int{0, 1, core.MaxPage, core.MaxPage + 1, MaxLines, 2*MaxLines + 7} {
		runs, r, _ := recorded(core.RunCompleted)
		r.entries, r.run.Seq = n, n
		var all []core.Entry
		pages := 0
		for from := (Place{}); pages == 0 || !from.Zero(); pages++ {
			got, err := runs.Inspect(t.Context(), "R1", from, 0)
			if err != nil {
				t.Fatal(err)
			}
			all, from = append(all, got.History...), got.Next
		}
		if len(all) != n || n > 0 && all[n-1].Seq != n || pages != max(1, (n+MaxLines-1)/MaxLines) {
			t.Errorf("Inspect = %d entries on %d pages, want %d", len(all), pages, n)
		}
	}
}

func TestInspectOfAStoreThatFails(t *testing.T) {
	for _, method := range []string{"Run", "Steps", "Jobs", "Event", "History"} {
		runs, r, _ := recorded(core.RunRunning)
		r.steps = []core.Step{{ID: id(1), Type: "http", Status: core.StepReady}}
		r.broken = method
		if _, err := runs.Inspect(t.Context(), "R1", Place{}, 0); !errors.Is(err, r.err) {
			t.Errorf("Inspect where %s fails = %v, want its error", method, err)
		}
	}
}

func TestUnknownRun(t *testing.T) {
	runs, _, m := recorded(core.RunFailed)
	var errs [3]error
	_, errs[0] = runs.Inspect(t.Context(), "R2", Place{}, 0)
	_, errs[1] = runs.Redrive(t.Context(), "R2", Redrive{})
	_, errs[2] = runs.Cancel(t.Context(), "R2")
	if want := [3]error{ErrRun, ErrRun, ErrRun}; errs != want || len(m.said) > 0 {
		t.Errorf("calls about a run that is not there = %v, the mover was told %q; want ErrRun each, and nothing", errs, m.said)
	}
	m.err = core.Refuse(core.NotFound, "row not found") // it was purged meanwhile
	if _, err := runs.Redrive(t.Context(), "R1", Redrive{From: FromStart}); err != error(ErrRun) {
		t.Errorf("Redrive of a run that goes meanwhile = %v, want ErrRun", err)
	}
}

// Redrive and Cancel refuse runs in a wrong status, with the same error from Runs and from
// the mover.
func TestWhatMayBeMoved(t *testing.T) {
	redriven, ended := "; only failed and canceled runs can be redriven", "; only pending and running runs can be canceled"
	for _, tt := range []struct {
		do        string
		status    core.RunStatus
		meanwhile core.RunStatus
		err       string
	}{
		{"redrive R1 false", core.RunFailed, "", ""},
		{"redrive R1 true", core.RunFailed, "", ""},
		{"redrive R1 true", core.RunCanceled, "", ""},
		{"redrive R1 true", core.RunPending, "", "workflow run R1 is pending" + redriven},
		{"redrive R1 true", core.RunRunning, "", "workflow run R1 is running" + redriven},
		{"redrive R1 false", core.RunCompleted, "", "workflow run R1 is completed" + redriven},
		{"redrive R1 false", core.RunFailed, core.RunPending, "workflow run R1 is pending" + redriven},
		{"cancel R1", core.RunPending, "", ""},
		{"cancel R1", core.RunRunning, "", ""},
		{"cancel R1", core.RunCompleted, "", "workflow run R1 is completed" + ended},
		{"cancel R1", core.RunFailed, "", "workflow run R1 is failed" + ended},
		{"cancel R1", core.RunCanceled, "", "workflow run R1 is canceled" + ended},
		{"cancel R1", core.RunRunning, core.RunCompleted, "workflow run R1 is completed" + ended},
	} {
		t.Run(tt.do+" "+string(tt.status)+" "+string(tt.meanwhile), func(t *testing.T) {
			runs, _, m := recorded(tt.status)
			if m.meanwhile = tt.meanwhile; m.meanwhile != "" {
				m.err = core.Refuse(core.Invalid, "not now")
			}
			got, err := do(t, runs, tt.do)
			if tt.err != "" {
				if !core.IsKind(err, core.Invalid) || err.Error() != tt.err {
					t.Errorf("error %v, want %s", err, tt.err)
				}
				if tt.meanwhile == "" && len(m.said) > 0 {
					t.Errorf("the mover was told %q of what is not allowed", m.said)
				}
				return
			}
			if err != nil || got.Epoch != 7 || strings.Join(m.said, "; ") != tt.do {
				t.Errorf("run of epoch %d, %v, the mover was told %q; want what it returns", got.Epoch, err, m.said)
			}
		})
	}
}

func do(t *testing.T, runs *Runs, what string) (core.Run, error) {
	switch what {
	case "redrive R1 false":
		run, err := runs.Redrive(t.Context(), "R1", Redrive{From: FromStart})
		return run.Run, err
	case "redrive R1 true":
		run, err := runs.Redrive(t.Context(), "R1", Redrive{From: FromFailed})
		return run.Run, err
	}
	return runs.Cancel(t.Context(), "R1")
}

// Other errors of the mover are returned unchanged. That includes refusals for another reason
// than the status.
func TestMoverThatFails(t *testing.T) {
	for _, failure := range []error{errors.New("disk full"), core.Refuse(core.Unavailable, "away"), core.Refuse(core.Invalid, "no definition")} {
		runs, _, m := recorded(core.RunFailed)
		m.err = failure
		if _, err := runs.Redrive(t.Context(), "R1", Redrive{}); err != failure {
			t.Errorf("Redrive = %v, want %v", err, failure)
		}
	}
	runs, r, m := recorded(core.RunRunning)
	m.err, m.meanwhile = r.err, core.RunFailed
	if _, err := runs.Cancel(t.Context(), "R1"); err != r.err {
		t.Errorf("Cancel whose answer was lost = %v, want %v", err, r.err)
	}
}

func TestParseFrom(t *testing.T) {
	for s, want := range map[string]From{"start": FromStart, "failed": FromFailed, "": "", "Start": "", "end": ""} {
		got, err := ParseFrom(s)
		if got != want || (err == nil) != (want != "") || err != nil && !core.IsKind(err, core.Invalid) {
			t.Errorf("ParseFrom(%q) = %q, %v, want %q", s, got, err, want)
		}
	}
}

// All pages of Inspect together have the whole run, with the steps first. Each page keeps to
// its bounds.
func TestInspectInPages(t *testing.T) {
	runs, r, _ := recorded(core.RunCompleted)
	state := []byte(`"` + strings.Repeat("x", 700_000) + `"`)
	for n := range 40 {
		r.steps = append(r.steps, core.Step{ID: id(n), Type: "http", Status: core.StepSucceeded, State: state, Output: state})
	}
	r.entries, r.run.Seq = 90, 90
	for _, limit := range []int{0, 1, 7, MaxLines + 1} {
		steps, entries, from := 0, 0, Place{}
		for pages := 0; pages == 0 || !from.Zero(); pages++ {
			page, err := runs.Inspect(t.Context(), "R1", from, limit)
			if err != nil {
				t.Fatal(err)
			}
			size := 0
			for _, s := range page.Steps {
				if s.ID != id(steps) || entries > 0 {
					t.Fatalf("step %s comes as the %dth, behind %d entries", s.ID, steps, entries)
				}
				steps++
				size += len(s.State) + len(s.Output)
			}
			for _, e := range page.History {
				if entries++; e.Seq != entries {
					t.Fatalf("entry %d comes as the %dth", e.Seq, entries)
				}
			}
			lines := len(page.Steps) + len(page.History)
			if lines == 0 || limit > 0 && lines > limit || size > 2*core.MaxRead {
				t.Fatalf("a page of at most %d lines has %d, and %d bytes", limit, lines, size)
			}
			if from = page.Next; pages > 200 {
				t.Fatal("there is no end of pages")
			}
			if from, err = ParsePlace(from.String()); err != nil || from != page.Next {
				t.Fatalf("ParsePlace(%q) = %+v, %v, want %+v", page.Next, from, err, page.Next)
			}
		}
		if steps != len(r.steps) || entries != r.entries {
			t.Errorf("pages of %d lines have %d steps and %d entries, want %d and %d", limit, steps, entries, len(r.steps), r.entries)
		}
	}
}

func TestParsePlace(t *testing.T) {
	for _, wrong := range []string{"s", "h", "x", "s1", "s1-", "s-" + string(id(1)), "s0-" + string(id(1)), "1-" + string(id(1)), "h-1", "h1x", "s1-nonsense"} {
		if p, err := ParsePlace(wrong); !core.IsKind(err, core.Invalid) || !p.Zero() || !strings.Contains(err.Error(), wrong) {
			t.Errorf("ParsePlace(%q) = %+v, %v, want a refusal that names it", wrong, p, err)
		}
	}
}

// Redrive returns whether the current definition differs from the definition that the run
// follows. It makes the run follow the current definition if the caller asks for that.
func TestRedriveOfAnotherDefinition(t *testing.T) {
	for _, tt := range []struct {
		today   string
		how     Redrive
		said    string
		changed bool
		err     string
	}{
		{"old", Redrive{}, "redrive R1 false", false, ""},
		{"new", Redrive{}, "redrive R1 false", true, ""},
		{"", Redrive{}, "redrive R1 false", false, ""},
		{"new", Redrive{From: FromFailed, Definition: FollowStored}, "redrive R1 true", true, ""},
		{"new", Redrive{From: FromFailed, Definition: FollowCurrent}, "redrive R1 true new", false, ""},
		{"old", Redrive{Definition: FollowCurrent}, "redrive R1 false old", false, ""},
		{"", Redrive{Definition: FollowCurrent}, "", false, "the workflow fulfil is not configured, so it has no current definition"},
	} {
		runs, r, m := recorded(core.RunFailed)
		r.run.Definition = "old"
		runs.Current = func(string) core.Definition { return core.Definition{Hash: tt.today} }
		got, err := runs.Redrive(t.Context(), "R1", tt.how)
		if tt.err != "" {
			if !core.IsKind(err, core.Invalid) || err.Error() != tt.err || len(m.said) > 0 {
				t.Errorf("Redrive(%+v) = %v, the mover was told %q; want %s, and nothing", tt.how, err, m.said, tt.err)
			}
			continue
		}
		if err != nil || got.Changed != tt.changed || strings.Join(m.said, "; ") != tt.said {
			t.Errorf("today %q: Redrive(%+v) = %+v, %v, the mover was told %q; want changed %v, %q", tt.today, tt.how, got, err, m.said, tt.changed, tt.said)
		}
	}
}
