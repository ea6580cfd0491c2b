package manage

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

// A lineBook is a store with a line of billing, which the dead job D stops, and the job W behind it.
type lineBook struct {
	jobs    map[core.ID]core.Job
	stopped bool
}

func (b *lineBook) Lines(_ context.Context, lane core.Lane, after string, _ int) (page core.Page[core.LineState], _ error) {
	if lane == "handler/billing" && after < "7" {
		page.Items = []core.LineState{b.state()}
	}
	return page, nil
}

func (b *lineBook) state() core.LineState {
	if !b.stopped {
		return core.LineState{Key: "7", Admitted: 1}
	}
	return core.LineState{Key: "7", Admitted: 1, Waiting: 1, StoppedAt: noon, StoppedBy: "D"}
}

func (b *lineBook) LinesOf(_ context.Context, lane core.Lane, _ int, keys ...string) ([]core.LineJobs, error) {
	if lane != "handler/billing" || keys[0] != "7" {
		return []core.LineJobs{{LineState: core.LineState{Key: keys[0]}}}, nil
	}
	return []core.LineJobs{{LineState: b.state(), Holders: []core.ID{"D", "purged"}, Next: []core.ID{"W"}}}, nil
}

func (b *lineBook) Skip(_ context.Context, _ time.Time, id core.ID) (bool, error) {
	if _, ok := b.jobs[id]; !ok {
		return false, core.Refuse(core.NotFound, "gone")
	}
	was := b.stopped && id == "D"
	b.stopped = b.stopped && !was
	return was, nil
}

func (b *lineBook) Job(_ context.Context, id core.ID) (core.Job, error) {
	if j, ok := b.jobs[id]; ok {
		return j, nil
	}
	return core.Job{}, core.Refuse(core.NotFound, "gone")
}

// newLinesRig returns the service on a book, and the facts that it states.
func newLinesRig() (*Lines, *[]core.Fact) {
	var told []core.Fact
	b := &lineBook{stopped: true, jobs: map[core.ID]core.Job{
		"D": {ID: "D", Lane: "handler/billing", Line: "7", Status: core.Dead},
		"W": {ID: "W", Lane: "handler/billing", Line: "7", Status: core.Waiting},
		"P": {ID: "P", Lane: "handler/plain", Status: core.Dead},
	}}
	l := NewLines(b, func() time.Time { return noon }, &Names{
		Handlers: []string{"billing", "idle", "plain"}, Queues: []string{"mail"},
		Unknown: func(kind, name string, _ []string) error { return core.Refuse(core.NotFound, "no %s %s", kind, name) },
	}, []core.Lane{"handler/billing", "handler/idle"})
	l.Observe = func(f core.Fact) { told = append(told, f) }
	return l, &told
}

func TestLinesList(t *testing.T) {
	l, _ := newLinesRig()
	page, err := l.List(t.Context(), "handler/billing", "", 0)
	if err != nil || len(page.Items) != 1 {
		t.Errorf("List = %v, %v", page, err)
	}
	for lane, want := range map[core.Lane]string{
		"handler/idle": "", "handler/gone": "no handler gone", "queue/gone": "no queue gone",
		"queue/mail":    `queue/mail has no lines; "lines" in its configuration gives it some`,
		"workflow/ship": "only handlers and queues have lines",
	} {
		if _, err := l.List(t.Context(), lane, "", 0); said(err) != want {
			t.Errorf("List of %s: %v, want %q", lane, err, want)
		}
	}
	if _, err := l.List(t.Context(), "handler/gone", "7", 0); err != nil {
		t.Errorf("List behind the last line: %v", err)
	}
}

func TestLinesInspect(t *testing.T) {
	l, _ := newLinesRig()
	story, err := l.Inspect(t.Context(), "handler/billing", "7")
	if err != nil || len(story.Holders) != 1 || story.Holders[0].ID != "D" || len(story.Next) != 1 || story.StoppedBy != "D" {
		t.Errorf("Inspect = %+v, %v", story, err)
	}
	for _, c := range []struct {
		lane core.Lane
		key  string
		want string
	}{
		{"handler/billing", "8", "no job of billing is in the line with this key"},
		{"handler/plain", "7", `plain has no lines; "lines" in its configuration gives it some`},
		{"handler/gone", "7", "no handler gone"},
		{"handler/billing", "", "the key of a line has 1 to 255 bytes"},
	} {
		if _, err := l.Inspect(t.Context(), c.lane, c.key); said(err) != c.want {
			t.Errorf("Inspect of %s %q: %v, want %q", c.lane, c.key, err, c.want)
		}
	}
}

func TestLinesSkip(t *testing.T) {
	l, told := newLinesRig()
	for _, c := range []struct {
		id   core.ID
		want string
	}{
		{"none", "job not found"},
		{"W", "job W is waiting; only a dead job that stops its line can be skipped"},
		{"P", "job P is dead and in no line, so it stops none"},
		{"D", ""},
		{"D", "job D is dead, and its line goes on already"},
	} {
		if err := l.Skip(t.Context(), c.id); said(err) != c.want {
			t.Errorf("Skip %s: %v, want %q", c.id, err, c.want)
		}
	}
	skips := slices.DeleteFunc(*told, func(f core.Fact) bool { _, ok := f.(core.LineSkipped); return !ok })
	if diff := cmp.Diff(1, len(skips)); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

// said returns the text of an error, "" for none.
func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
