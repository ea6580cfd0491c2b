package traces

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/eventgateway/gateway/core"
)

// pause is how long after one line about trouble there is no other.
const pause = time.Minute

// A trouble tells the log what goes wrong with traces, now and then: a collector that is
// away fails every few seconds.
type trouble struct {
	log   *slog.Logger
	clock core.Clock

	mu   sync.Mutex
	next time.Time // not told before
	lost int       // spans, since it was told last
	over bool      // it is not told any more
}

// Handle implements OpenTelemetry's ErrorHandler, for trouble of any kind.
func (t *trouble) Handle(err error) { t.tell(err, 0) }

// tell tells of spans that were lost because of an error.
func (t *trouble) tell(err error, spans int) {
	if lost, due := t.count(spans); due {
		t.log.Warn("trouble with the export of traces", "error", text(err.Error()), "spans_lost", lost)
	}
}

// count counts spans that were lost. If it is time to tell of them, it returns how many
// were lost since the last time.
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

// remarks is where OpenTelemetry's parts say what they think of their settings. Their
// words are kept and not the values, which may be credentials of the collector.
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
