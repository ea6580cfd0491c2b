package telemetry

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Repeated is the attribute that says how many more lines like this one were left out.
const Repeated = "repeated"

const (
	// limitWindow is how long after a line others like it are left out.
	limitWindow = time.Second

	// maxReasons bounds how many reasons of one message and source are told apart, and
	// maxLimited how many lines at all, in one window. More share a line.
	maxReasons = 8
	maxLimited = 4096
)

// limited are the targets whose lines requests from outside cause, with how many lines
// of a kind are written in a window. A line that names what is stored is never left out.
var limited = map[string]int{
	"intake": 1, "web": 1, "http": 1, "workflow": 1,
	"echo": 100, // each line is what a developer waits for
}

// A limiter leaves out lines that are like others, so that no sender of requests
// can fill the log; those with an event, a job or a run, which are stored, are all
// written. Of lines of one kind the first is written at once, and then one a
// second, which says how many were left out ([Repeated]). When no more come, the newest
// of those that were left out is written, a second after the last line, so that the
// lines and their counts together are all there were.
//
// Two lines are of one kind if they have the same target, message, source, route and
// field, and the same reason but for numbers and quoted text. Sources and routes are
// those of the configuration and of the program; what else is in a line does not make it
// another kind. Kinds are forgotten after a second without a line.
//
// It is one for all handlers that are made of one, and safe for concurrent use.
type limiter struct {
	mu      sync.Mutex
	buckets map[string]*bucket // by kind
	reasons map[string]int     // how many of a kind without its reason have buckets
}

// bucket counts the lines of a kind since the last one that was written.
type bucket struct {
	base    string // the kind without its reason
	room    int    // lines that may still be written in this window
	left    int    // lines that were left out
	newest  slog.Record
	handler slog.Handler // which the newest was for
	timer   *time.Timer
}

func newLimiter() *limiter {
	return &limiter{buckets: map[string]*bucket{}, reasons: map[string]int{}}
}

// handle writes a line, or leaves it out.
func (l *limiter) handle(ctx context.Context, h slog.Handler, target string, r slog.Record) error {
	most, ok := limited[target]
	if !ok {
		return h.Handle(ctx, r)
	}
	base, reason, stored := describe(target, r)
	if stored || l.admit(base, reason, most, h, r) {
		return h.Handle(ctx, r)
	}
	return nil
}

// admit reports whether a line is to be written now. If not, it is counted.
func (l *limiter) admit(base, reason string, most int, h slog.Handler, r slog.Record) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind, base := l.known(base, reason)
	b := l.buckets[kind]
	if b == nil {
		b = &bucket{base: base, room: most}
		b.timer = time.AfterFunc(limitWindow, func() { l.tell(kind, b, most) })
		l.buckets[kind] = b
		l.reasons[base]++
	}
	if b.room > 0 {
		b.room--
		return true
	}
	b.left++
	b.newest, b.handler = r.Clone(), h
	return false
}

// known is the kind that a line is counted as, and the same without its reason.
func (l *limiter) known(base, reason string) (kind, without string) {
	if kind = base + "\x00" + reason; l.buckets[kind] != nil {
		return kind, base
	}
	if l.reasons[base] >= maxReasons {
		kind = base + "\x00" + Other
	}
	if len(l.buckets) >= maxLimited && l.buckets[kind] == nil {
		return Other, Other
	}
	return kind, base
}

// tell writes the newest line that was left out in a window, if there is one, and begins
// the next window with it. Otherwise the kind is forgotten.
func (l *limiter) tell(kind string, b *bucket, most int) {
	l.mu.Lock()
	if l.buckets[kind] != b { // it was flushed
		l.mu.Unlock()
		return
	}
	if b.left == 0 {
		l.forget(kind, b)
		l.mu.Unlock()
		return
	}
	write := b.summary()
	b.room = most - 1
	b.timer.Reset(limitWindow)
	l.mu.Unlock()
	write()
}

// forget ends a kind. The caller holds the lock.
func (l *limiter) forget(kind string, b *bucket) {
	delete(l.buckets, kind)
	if l.reasons[b.base]--; l.reasons[b.base] == 0 {
		delete(l.reasons, b.base)
	}
}

// summary returns what writes the newest line that was left out, with the number of the
// others. The caller holds the lock, and writes without it.
func (b *bucket) summary() func() {
	r, h, others := b.newest, b.handler, b.left-1
	b.newest, b.handler, b.left = slog.Record{}, nil, 0
	if others > 0 {
		r.AddAttrs(slog.Int(Repeated, others))
	}
	return func() { _ = h.Handle(context.Background(), r) } // as slog.Logger does
}

// flush writes what was left out and not told yet.
func (l *limiter) flush() {
	l.mu.Lock()
	var writes []func()
	for kind, b := range l.buckets {
		b.timer.Stop()
		if b.left > 0 {
			writes = append(writes, b.summary())
		}
		l.forget(kind, b)
	}
	l.mu.Unlock()
	for _, write := range writes {
		write()
	}
}

// describe is the kind of a line without its reason, the reason, and whether the line is
// about what is stored.
func describe(target string, r slog.Record) (base, reason string, stored bool) {
	base = target
	if target != "http" { // net/http writes addresses into its messages
		base += "\x00" + r.Message
	}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "source", "route", "from":
			base += "\x00" + a.Value.String()
		case "reason":
			reason = shape(a.Value.String())
		case "event", "job", "run":
			stored = true
		}
		return !stored
	})
	return base, reason, stored
}

// maxShape bounds what is compared of a reason, in bytes.
const maxShape = 200

// shape is a reason without what differs from request to request: numbers, and what was
// quoted of the request.
func shape(reason string) string {
	var b strings.Builder
	quoted := false
	for _, r := range reason {
		switch {
		case r == '"':
			quoted = !quoted
		case quoted || unicode.IsDigit(r):
		case b.Len() >= maxShape:
			return b.String()
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Flush writes what a logger of [NewLogger] has left out and not told yet. A process does
// so before it ends.
func Flush(l *slog.Logger) {
	if h, ok := l.Handler().(interface{ Flush() }); ok {
		h.Flush()
	}
}
