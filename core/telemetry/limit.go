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

// named are the attributes of lines about what is stored: an event that was accepted,
// and what became of it.
var named = map[string]bool{"event": true, "job": true, "run": true}

// A limiter leaves out lines that are like others, so that whoever sends requests
// cannot fill the log. Of lines of one kind the first is written at once, and then one a
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
	buckets map[kindOfLine]*bucket
	reasons map[kindOfLine]int // live ones, by their kind without its reason
}

// A kindOfLine is what lines have in common that are told once a second.
type kindOfLine struct{ target, message, source, route, from, reason string }

// bucket counts the lines of a kind since the last one that was written.
type bucket struct {
	base    kindOfLine // without the reason
	room    int        // lines that may still be written in this window
	left    int        // lines that were left out
	newest  slog.Record
	handler slog.Handler // which the newest was for
	timer   *time.Timer
}

func newLimiter() *limiter {
	return &limiter{buckets: map[kindOfLine]*bucket{}, reasons: map[kindOfLine]int{}}
}

// handle writes a line, or leaves it out.
func (l *limiter) handle(ctx context.Context, h slog.Handler, target string, r slog.Record) error {
	most, ok := limited[target]
	if !ok {
		return h.Handle(ctx, r)
	}
	kind, stored := describe(target, r)
	if stored || l.admit(kind, most, h, r) {
		return h.Handle(ctx, r)
	}
	return nil
}

// admit reports whether a line is to be written now. If not, it is counted.
func (l *limiter) admit(kind kindOfLine, most int, h slog.Handler, r slog.Record) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind, base := l.known(kind)
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
func (l *limiter) known(kind kindOfLine) (counted, base kindOfLine) {
	base = kind
	base.reason = ""
	if l.buckets[kind] != nil {
		return kind, base
	}
	if l.reasons[base] >= maxReasons {
		kind.reason = Other
	}
	if len(l.buckets) >= maxLimited && l.buckets[kind] == nil {
		kind = kindOfLine{target: kind.target, message: Other}
		base = kind
	}
	return kind, base
}

// tell writes the newest line that was left out in a window, if there is one, and begins
// the next window with it. Otherwise the kind is forgotten.
func (l *limiter) tell(kind kindOfLine, b *bucket, most int) {
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
func (l *limiter) forget(kind kindOfLine, b *bucket) {
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

// describe is the kind of a line, and whether it is about what is stored.
func describe(target string, r slog.Record) (kind kindOfLine, stored bool) {
	kind = kindOfLine{target: target, message: r.Message}
	if target == "http" { // net/http writes addresses into its messages
		kind.message = ""
	}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "source":
			kind.source = a.Value.String()
		case "route":
			kind.route = a.Value.String()
		case "from":
			kind.from = a.Value.String()
		case "reason":
			kind.reason = shape(a.Value.String())
		}
		stored = stored || named[a.Key]
		return !stored
	})
	return kind, stored
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
