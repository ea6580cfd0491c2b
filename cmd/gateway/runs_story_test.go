package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// A paged service returns a run in pages with a fixed number of lines, the steps first and then
// the entries.
type paged struct {
	runService
	run            core.Run
	steps, entries int
	lines          int
	state          func(n int) []byte
	see            func()
}

func (p paged) Inspect(_ context.Context, _ core.ID, from manage.Place, _ int) (manage.Inspected, error) {
	if p.see != nil {
		p.see()
	}
	page, step := manage.Inspected{Run: p.run}, 0
	if from.Step != "" {
		_, _ = fmt.Sscanf(string(from.Step), "S%d", &step)
	}
	left := p.lines
	for ; !from.Story && step < p.steps; step++ {
		if left--; left < 0 {
			page.Next = manage.Place{Epoch: 1, Step: core.ID(fmt.Sprintf("S%d", step))}
			return page, nil
		}
		page.Steps = append(page.Steps, core.Step{Name: "poll", Path: fmt.Sprintf("poll#%d", step), State: p.state(step), Output: p.state(step)})
	}
	for seq := from.Seq + 1; seq <= p.entries; seq++ {
		if left--; left < 0 {
			page.Next = manage.Place{Story: true, Seq: seq - 1}
			return page, nil
		}
		page.History = append(page.History, core.Entry{Seq: seq, Data: `{"n": 1}`})
	}
	return page, nil
}

// A run that comes in pages is printed like a run that comes whole.
func TestPagesOfARunAreOneDocument(t *testing.T) {
	deep := strings.Repeat("[", terminal.MaxIndent+1) + strings.Repeat("]", terminal.MaxIndent+1)
	for _, p := range []paged{
		{steps: 7, entries: 5}, {steps: 0, entries: 5}, {steps: 3, entries: 0}, {steps: 6, entries: 6},
		{steps: 3, entries: 3, run: core.Run{Output: []byte(`{"steps": [], "history": []}`)}},
		{steps: 3, entries: 3, run: core.Run{Output: []byte(deep)}},
	} {
		p.state = func(n int) []byte { return fmt.Appendf(nil, `{"n": %d, "of": ["\u202e", {}]}`, n) }
		for p.lines = 1; p.lines < 5; p.lines++ {
			all := p
			all.lines = 100
			whole, _ := all.Inspect(t.Context(), "", manage.Place{}, 0)
			var want, got bytes.Buffer
			_ = newApp(system{stdout: &want}).PrintJSON(wire.StoryOfRun(whole))
			first, _ := p.Inspect(t.Context(), "", manage.Place{}, 0)
			if err := newApp(system{stdout: &got}).printStory(t.Context(), p, first); err != nil {
				t.Fatal(err)
			}
			if p.run.Output != nil && len(p.run.Output) == len(deep) { // then the document is too deep for indentation
				var a, b bytes.Buffer
				_, _ = json.Compact(&a, want.Bytes()), json.Compact(&b, got.Bytes())
				want, got = a, b
			}
			if got.String() != want.String() {
				t.Fatalf("%d steps and %d entries, %d on a page:\n%s\nwant:\n%s", p.steps, p.entries, p.lines, got.String(), want.String())
			}
		}
	}
}

// A command holds one page of a large run in memory.
func TestInspectHoldsAPage(t *testing.T) {
	const steps, size, most = 300, 300_000, 48 << 20
	state := []byte(`"` + strings.Repeat("x", size) + `"`)
	peak := uint64(0)
	p := paged{steps: steps, entries: 10, lines: 5, state: func(int) []byte { return bytes.Clone(state) }, see: func() {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapAlloc)
	}}
	first, _ := p.Inspect(t.Context(), "", manage.Place{}, 0)
	base := peak
	if err := newApp(system{stdout: io.Discard}).printStory(t.Context(), p, first); err != nil {
		t.Fatal(err)
	}
	run, err := whole(t.Context(), p, first)
	if err != nil || len(run.Steps) != steps || len(run.History) != 10 {
		t.Fatalf("%d steps, %d entries, %v", len(run.Steps), len(run.History), err)
	}
	if shown := terminal.Clip(terminal.Visible(string(run.Steps[0].State)), shownData); shown != terminal.Clip(terminal.Visible(string(state)), shownData) {
		t.Errorf("a state is shown as %q", shown)
	}
	if peak > base+most {
		t.Errorf("the heap grows to %d MiB from %d, of a run with %d MiB", peak>>20, base>>20, 2*steps*size>>20)
	}
}
