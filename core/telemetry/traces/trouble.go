package traces

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/eventgateway/gateway/core"
)

// pause is the least time between two log lines about failures.
const pause = time.Minute

// A trouble logs failures to export traces, at most once every [pause]: a collector that is
// down fails every few seconds.
type trouble struct {
	log   *slog.Logger
	clock core.Clock

	mu   sync.Mutex
	next time.Time // no line before this time
	lost int       // spans, since the last line
	over bool      // no further lines
}

// Handle implements OpenTelemetry's ErrorHandler, for failures of any kind.
func (t *trouble) Handle(err error) { t.report(err, 0) }

// report logs an error and the lost spans, or only counts the spans if the last line is too new.
func (t *trouble) report(err error, spans int) {
	if lost, due := t.count(spans); due {
		t.log.Warn("trouble with the export of traces", "error", text(err.Error()), "spans_lost", lost)
	}
}

// count adds lost spans. If a line is due, it returns true and the number of spans lost since
// the last line.
func (t *trouble) count(spans int) (lost int, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Spans are counted also between two lines, so that the next line has all of them.
	t.lost += spans
	now := t.clock()
	if t.over || now.Before(t.next) {
		return 0, false
	}
	lost = t.lost
	t.next, t.lost = now.Add(pause), 0
	return lost, true
}

// end stops all further lines, and returns the number of spans lost since the last one. The
// caller reports them: there is no later line that could.
func (t *trouble) end() (lost int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	lost = t.lost
	t.over, t.lost = true, 0
	return lost
}

// remarks returns the logger for OpenTelemetry's warnings about settings. It keeps the message
// and drops the attributes, since a value may be a credential for the collector.
func remarks(log *slog.Logger) logr.Logger { return logr.FromSlogHandler(wordsOnly{log}) }

// wordsOnly is a slog.Handler that logs messages without attributes.
type wordsOnly struct{ log *slog.Logger }

// Enabled passes warnings, which have the verbosity 1 in logr's scale: the level -1 here.
func (wordsOnly) Enabled(_ context.Context, l slog.Level) bool { return l >= -1 }

func (w wordsOnly) Handle(_ context.Context, r slog.Record) error {
	w.log.Warn("OpenTelemetry could not use a setting: " + r.Message)
	return nil
}

func (w wordsOnly) WithAttrs([]slog.Attr) slog.Handler { return w }
func (w wordsOnly) WithGroup(string) slog.Handler      { return w }
