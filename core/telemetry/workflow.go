package telemetry

import (
	"context"
	"log/slog"

	"github.com/eventgateway/gateway/core"
)

// stepMoved logs the new status of a step. A failed step is a warning only: the run may still
// continue. If the run fails too, the line of [logger.runMoved] is the error that needs a
// person.
func (o logger) stepMoved(f core.StepMoved) {
	level, message := stepWords(f)
	if !o.workflow.Enabled(context.Background(), level) {
		return
	}
	attrs := append(runAttrs(f.Run), slog.String("step", f.Step.Path))
	if a := f.Attempt; a.Number > 0 {
		attrs = append(attrs, slog.Int("attempt", a.Number), slog.Int("status", a.StatusCode), slog.Int64("duration_ms", a.Duration.Milliseconds()))
	}
	if level >= slog.LevelWarn && f.Step.Error != "" { // otherwise the error is of an earlier attempt
		attrs = append(attrs, slog.String("error", f.Step.Error))
	}
	if !f.DueAt.IsZero() {
		attrs = append(attrs, slog.String("due", core.FormatTime(f.DueAt)))
	}
	line(o.workflow, level, message, attrs...)
}

// stepWords returns the level and the message for a step's status.
func stepWords(f core.StepMoved) (slog.Level, string) {
	switch f.Step.Status {
	case core.StepReady:
		if f.Step.Error != "" && !f.DueAt.IsZero() {
			return slog.LevelWarn, "step failed, will retry"
		}
		return slog.LevelDebug, "step is ready"
	case core.StepRunning:
		return slog.LevelDebug, "step runs"
	case core.StepWaiting:
		return slog.LevelInfo, "step waits"
	case core.StepSucceeded:
		return slog.LevelInfo, "step succeeded"
	case core.StepFailed:
		return slog.LevelWarn, "step failed"
	case core.StepCanceled:
		return slog.LevelInfo, "step canceled"
	case core.StepSkipped:
		return slog.LevelWarn, "step skipped: the time of its run is over"
	}
	return slog.LevelWarn, "step is " + string(f.Step.Status)
}

// runMoved logs the new status of a run.
func (o logger) runMoved(f core.RunMoved) {
	// Only a run that failed needs a person. A canceled one was ended by a person.
	level, message := slog.LevelInfo, "workflow run "
	attrs := runAttrs(f.Run)
	switch {
	case f.Run.Status == core.RunPending && f.Run.Epoch > 1:
		message += "redriven"
		attrs = append(attrs, slog.Int("epoch", f.Run.Epoch))
	case f.Run.Status == core.RunPending:
		message += "created"
	case f.Run.Status == core.RunRunning:
		message += "started"
	case f.Run.Status == core.RunCompleted:
		message += "completed"
		attrs = append(attrs, took(f.Run))
	case f.Run.Status == core.RunCanceled: // an operator did it, so none is needed
		message += "canceled"
		attrs = append(attrs, took(f.Run))
	default:
		level = slog.LevelError
		message += "failed"
		attrs = append(attrs, took(f.Run), slog.String("error", f.Run.Error))
	}
	line(o.workflow, level, message, attrs...)
}

// took returns the duration of a run: from the storing of its event to the run's end, with
// redrives and the time before them.
func took(r core.Run) slog.Attr {
	return slog.Int64("duration_ms", r.FinishedAt.Sub(r.CreatedAt).Milliseconds())
}

// calledIn logs a callback.
func (o logger) calledIn(f core.CalledIn) {
	switch f.Result {
	case core.CallbackReceived:
		line(o.workflow, slog.LevelInfo, "callback received", append(runAttrs(f.Run), slog.String("step", f.Path))...)
	case core.CallbackRepeated:
		line(o.workflow, slog.LevelDebug, "callback repeated; it was received before", slog.String("run", string(f.Run.ID)))
	default:
		line(o.workflow, slog.LevelWarn, "callback with a token that is not, or no longer, good")
	}
}

// runAttrs returns the attributes that identify a run.
func runAttrs(r core.Run) []slog.Attr {
	return []slog.Attr{slog.String("event", string(r.EventID)), slog.String("workflow", r.Workflow), slog.String("run", string(r.ID))}
}
