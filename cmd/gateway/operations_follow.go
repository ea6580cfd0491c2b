package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// stallNote is how long an operation may show no progress before the user learns that nothing does it.
const stallNote = 15 * time.Second

// A follower shows the progress of an operation to the user: a bar on a terminal, and with --json a
// line for each change.
type follower struct {
	*app
	command *cobra.Command
	total   int // the number of matches; 0 if it is not known

	last    core.Operation
	line    *terminal.Progress
	stalled time.Time // when to note that nothing does the operation; zero after that, or if it is not wanted
}

// seen shows an operation after a look at it.
func (f *follower) seen(o core.Operation) {
	changed := o.State != f.last.State || o.Acted != f.last.Acted || o.Looked != f.last.Looked || o.Skipped != f.last.Skipped
	f.last = o
	if f.json {
		if changed {
			_ = f.PrintJSONLine(wire.OperationOf(o))
		}
		return
	}
	if f.line == nil {
		f.line = f.Progress()
	}
	f.line.Show("%s", f.progress(o))
	if changed || f.stalled.IsZero() {
		if changed && !f.stalled.IsZero() {
			f.stalled = f.clock().Add(stallNote)
		}
		return
	}
	if f.clock().After(f.stalled) {
		f.line.Clear()
		f.Notef("no progress for %s; does a gateway run on this database?", stallNote)
		f.stalled = time.Time{}
	}
}

// progress returns the line with the bar and the time that is left.
func (f *follower) progress(o core.Operation) string {
	text := fmt.Sprintf("%s so far", doneText(o))
	if f.total == 0 {
		return text
	}
	done := o.Acted + o.Skipped
	left := time.Duration(max(0, f.total-done)) * time.Second / time.Duration(max(1, o.Rate))
	return fmt.Sprintf("%s %s of %d, %s left", terminal.Bar(done, f.total), text, f.total, terminal.Span(left.Round(time.Second)))
}

// doneText returns the result of an operation.
func doneText(o core.Operation) string {
	switch o.Action {
	case core.ReplayAction:
		return terminal.Count(o.Acted, "event") + " replayed"
	case core.CancelAction:
		return terminal.Count(o.Acted, "job") + " canceled"
	case core.RedriveAction:
		return terminal.Count(o.Acted, "run") + " redriven"
	}
	return terminal.Count(o.Acted, "job") + " retried"
}

// end prints how an operation ended. It returns an error if it did not finish.
func (f *follower) end(o core.Operation, err error) error {
	if f.line != nil {
		f.line.Clear()
	}
	id := string(o.ID)
	switch {
	case err != nil && id != "":
		f.noteGoesOn(f.command, o.ID, doneText(o))
		return err
	case err != nil:
		return err
	case o.State == core.OperationFailed:
		return core.Refuse(core.Invalid, "operation %s failed: %s; %s until then", id, o.Error, doneText(o))
	case o.State == core.OperationCanceled:
		return core.Refuse(core.Invalid, "operation %s was canceled; %s until then", id, doneText(o))
	case f.json:
		return nil
	}
	if o.Acted+o.Skipped == 0 {
		f.Notef("nothing matches")
		return nil
	}
	text := []string{doneText(o)}
	if o.Skipped > 0 {
		text = append(text, fmt.Sprintf("%d skipped", o.Skipped))
	}
	f.Printf("%s", strings.Join(text, ", "))
	return nil
}
