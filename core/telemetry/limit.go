package telemetry

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Repeated is the attribute with the number of similar lines that were left out.
const Repeated = "repeated"

const (
	// limitWindow is how long similar lines are left out after a written line.
	limitWindow = time.Second

	// maxReasons bounds the reasons of one message and source that have their own line in a
	// window. maxLimited bounds the kinds of lines that the limiter remembers. Further reasons
	// share one line, and so do further kinds.
	maxReasons = 8
	maxLimited = 4096
)

// limited holds the targets whose lines are caused by requests from outside. The number is how
// many lines of a kind are written in a window. A line that names a stored event, job or run is
// never left out.
var limited = map[string]int{
	"intake": 1, "web": 1, "http": 1, "workflow": 1,
	"echo": 100, // a developer waits for each of these lines
}

// A limiter leaves out similar lines, so that no sender of requests can fill the log. Lines with
// an event, a job or a run, which are stored, are all written. Of lines of one kind the first is
// written at once. Then one is written each second, with the number of lines that were left out
// ([Repeated]). A second after the end of a flood, the limiter writes the newest line that it
// left out, with the number of the others. So the written lines and their counts add up to all
// lines.
//
// Two lines are of one kind if they have the same target, message, source, route and from,
// and the same reason apart from numbers and quoted text. Sources and routes are from the
// configuration and the program; other attributes do not make another kind. A kind is
// forgotten after a second without a line.
//
// All handlers made from one handler share a limiter. It is safe for concurrent use.
type limiter struct {
	mu      sync.Mutex
	buckets map[string]*bucket // by kind
	reasons map[string]int     // how many buckets a kind without its reason has
}

// A bucket counts the lines of a kind since the last written one.
type bucket struct {
	base    string // the kind without its reason
	room    int    // lines that the limiter may still write in this window
	left    int    // lines that were left out
	newest  slog.Record
	handler slog.Handler // of the newest line
	timer   *time.Timer
}

// newLimiter returns a limiter that remembers no line.
func newLimiter() *limiter {
	return &limiter{buckets: map[string]*bucket{}, reasons: map[string]int{}}
}

// handle writes a line, or leaves it out.
func (l *limiter) handle(ctx context.Context, h slog.Handler, target string, r slog.Record) error {
	most, ok := limited[target]
	if !ok {
		return h.Handle(ctx, r)
	}
	// Other targets, such as worker, log only work that is stored, so a sender cannot flood them.
	base, reason, stored := describe(target, r)
	if stored || l.admit(base, reason, most, h, r) {
		return h.Handle(ctx, r)
	}
	return nil
}

// admit reports whether to write a line now. If it returns false, it has counted the line.
func (l *limiter) admit(base, reason string, most int, h slog.Handler, r slog.Record) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind, base := l.known(base, reason)
	b := l.buckets[kind]
	if b == nil {
		// The first line of a kind opens its window. The timer ends the window, also if no further line
		// comes.
		b = &bucket{base: base, room: most}
		b.timer = time.AfterFunc(limitWindow, func() { l.endWindow(kind, b, most) })
		l.buckets[kind] = b
		l.reasons[base]++
	}
	if b.room > 0 {
		b.room--
		return true
	}
	// Only the newest line is kept, so a flood costs the memory of one line.
	b.left++
	b.newest, b.handler = r.Clone(), h
	return false
}

// known returns the kind that counts a line, with and without its reason.
func (l *limiter) known(base, reason string) (kind, without string) {
	if kind = base + "\x00" + reason; l.buckets[kind] != nil {
		return kind, base
	}
	// A sender chooses the reason in part, for instance by a field's name. Without this bound each
	// new reason would have a line of its own.
	if l.reasons[base] >= maxReasons {
		kind = base + "\x00" + Other
	}
	if len(l.buckets) >= maxLimited && l.buckets[kind] == nil {
		return Other, Other
	}
	return kind, base
}

// endWindow runs at the end of a window. If lines were left out, it writes the newest one and
// begins the next window. Otherwise it forgets the kind.
func (l *limiter) endWindow(kind string, b *bucket, most int) {
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
	// The line is written without the lock: a slow log must not block all loggers.
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

// summary returns a function that writes the newest line that was left out, with the number
// of the others. The caller holds the lock for summary, and calls the function without it.
func (b *bucket) summary() func() {
	r, h, others := b.newest, b.handler, b.left-1
	b.newest, b.handler, b.left = slog.Record{}, nil, 0
	if others > 0 {
		r.AddAttrs(slog.Int(Repeated, others))
	}
	return func() { _ = h.Handle(context.Background(), r) } // as slog.Logger does
}

// flush writes the lines that were left out and not yet reported.
func (l *limiter) flush() {
	l.mu.Lock()
	var writes []func()
	// The timers are stopped, since flush writes their lines.
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

// describe returns the kind of a line without its reason, the reason, and whether the line
// names a stored event, job or run.
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

// maxShape bounds the compared part of a reason, in bytes.
const maxShape = 200

// shape returns a reason without the parts that differ from request to request: numbers and
// quoted text.
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

// Flush writes the lines that a logger of [NewLogger] has left out and not yet reported. A
// process calls it before it ends.
func Flush(l *slog.Logger) {
	if h, ok := l.Handler().(interface{ Flush() }); ok {
		h.Flush()
	}
}
