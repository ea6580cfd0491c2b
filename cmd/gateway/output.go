package main

import (
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
)

// statusColours is the colour of each status of a job, a run or a step. Statuses of a newer
// server that are not listed have none.
// A colour means the same everywhere: green is done, red needs the user, yellow may, blue and
// cyan are on their way, magenta was ended by a decision.
var statusColours = map[string]terminal.Colour{
	string(core.Available):     terminal.Cyan,
	string(core.Scheduled):     terminal.Cyan,
	string(core.Running):       terminal.Blue,
	string(core.Completed):     terminal.Green,
	string(core.Retryable):     terminal.Yellow,
	string(core.Dead):          terminal.Red,
	string(core.RunPending):    terminal.Cyan,
	string(core.RunFailed):     terminal.Red,
	string(core.StepReady):     terminal.Cyan,
	string(core.StepWaiting):   terminal.Yellow,
	string(core.StepSucceeded): terminal.Green,
	string(core.StepCanceled):  terminal.Magenta,
	string(core.StepSkipped):   terminal.Magenta,
}

// paintStatus returns a status of a job, a run or a step for output, in its colour.
func (a *app) paintStatus(s string) string {
	return a.Paint(terminal.Visible(s), statusColours[s])
}

// moment writes a time like the API, and the zero time as a dash.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return core.FormatTime(t)
}
