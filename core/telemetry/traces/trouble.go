package traces

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/eventgateway/gateway/core"
)

// pause is the shortest time between two log lines about trouble.
const pause = time.Minute

// A trouble logs failures of the export, at most one a minute: while a collector is away, a
// request fails every few seconds.
type trouble struct {
	log   *slog.Logger
	clock core.Clock

	mu   sync.Mutex
	next time.Time // no line before this time
	lost int       // spans, since the last line
	over bool      // no further lines
}

// Handle implements OpenTelemetry's ErrorHandler, for trouble of any kind.
func (t *trouble) Handle(err error) { t.tell(err, 0) }

// tell logs an error, with the number of spans that were lost because of it.
func (t *trouble) tell(err error, spans int) {
	if lost, due := t.count(spans); due {
		t.log.Warn("trouble with the export of traces", "error", text(err.Error()), "spans_lost", lost)
	}
}

// count counts lost spans. If a log line is due, it returns how many were lost since the
// last line.
func (t *trouble) count(spans int) (lost int, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost += spans
	now := t.clock()
	if t.over || now.Before(t.next) {
		return 0, false
	}
	lost = t.lost
	t.next, t.lost = now.Add(pause), 0
	return lost, true
}

func (t *trouble) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
}

// remarks receives messages of OpenTelemetry's parts about their settings. It keeps their
// words but not the values, which may be credentials of the collector.
func remarks(log *slog.Logger) logr.Logger { return logr.FromSlogHandler(wordsOnly{log}) }

type wordsOnly struct{ log *slog.Logger }

// OpenTelemetry's warnings have the verbosity 1 in logr's scale.
func (wordsOnly) Enabled(_ context.Context, l slog.Level) bool { return l >= -1 }

func (w wordsOnly) Handle(_ context.Context, r slog.Record) error {
	w.log.Warn("OpenTelemetry could not use a setting: " + r.Message)
	return nil
}

func (w wordsOnly) WithAttrs([]slog.Attr) slog.Handler { return w }
func (w wordsOnly) WithGroup(string) slog.Handler      { return w }
