package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"github.com/lmittmann/tint"
)

// Target is the attribute that names the part of the program that wrote a line. Log filters use
// it.
const Target = "target"

// LogOptions are the destination, format and filter of a logger.
type LogOptions struct {
	Out      io.Writer
	Terminal bool   // Out is a terminal that may be coloured
	Format   string // "json" for one JSON object a line; else text (GATEWAY_LOG_FORMAT)

	// Filter is a level, or a list of target=level with or without a level for the other
	// targets: "info", "warn,worker=debug". The target gateway stands for all targets. Levels
	// are off, error, warn, info, debug, trace. Empty means info. (GATEWAY_LOG, RUST_LOG)
	Filter string
}

// NewLogger makes a logger. It limits lines caused by requests from outside to one a second for
// each source and reason, at every level; see [Flush].
//
// If the filter cannot be parsed, NewLogger returns an error and a working logger with the
// level info. The caller logs the error with this logger.
func NewLogger(o LogOptions) (*slog.Logger, error) {
	f, err := parseFilter(o.Filter)
	return slog.New(&filtering{Handler: newHandler(o), filter: f, limiter: newLimiter()}), err
}

// newHandler returns the slog.Handler for a format. It passes lines of every level.
func newHandler(o LogOptions) slog.Handler {
	const everything = slog.Level(-100) // the filter decides
	switch {
	case o.Format == "json":
		return slog.NewJSONHandler(o.Out, &slog.HandlerOptions{Level: everything})
	case o.Terminal:
		return tint.NewTextHandler(o.Out, &tint.Options{Level: everything, TimeFormat: time.TimeOnly + ".000", ReplaceAttr: tame})
	}
	return slog.NewTextHandler(o.Out, &slog.HandlerOptions{Level: everything})
}

// escapes replaces the escape character of terminals, and the text \x1b. tint turns that text
// into an escape character, so that coloured values work. Without the replacement, text from
// outside could send commands to a terminal.
var escapes = strings.NewReplacer("\x1b", `\x1B`, `\x1b`, `\x1B`)

// tame makes an attribute safe for a terminal. tint quotes other control characters in values,
// but not in messages, so tame replaces them there.
func tame(_ []string, a slog.Attr) slog.Attr {
	if k := a.Value.Kind(); k != slog.KindString && k != slog.KindAny {
		return a
	}
	text := a.Value.String()
	tamed := escapes.Replace(text)
	if a.Key == slog.MessageKey {
		tamed = strings.Map(printable, tamed)
	}
	if tamed != text {
		a.Value = slog.StringValue(tamed)
	}
	return a
}

// printable replaces a character that is not printable.
func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return unicode.ReplacementChar
	}
	return r
}

// off is above every level that lines have.
// So a target with the level off shows not even errors.
const off = slog.Level(100)

// levels are the levels that a filter may name.
var levels = map[string]slog.Level{
	"off": off, "error": slog.LevelError, "warn": slog.LevelWarn,
	"info": slog.LevelInfo, "debug": slog.LevelDebug, "trace": slog.LevelDebug - 4,
}

// A filter holds the lowest level that is shown, for each target and for the rest.
type filter struct {
	rest    slog.Level
	targets map[string]slog.Level
}

// parseFilter reads [LogOptions].Filter. With an error it returns a filter of the level info.
func parseFilter(s string) (filter, error) {
	f := filter{rest: slog.LevelInfo, targets: map[string]slog.Level{}}
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		target, name, named := strings.Cut(part, "=")
		if !named {
			name = part
		}
		level, ok := levels[strings.ToLower(strings.TrimSpace(name))]
		if !ok {
			return filter{rest: slog.LevelInfo}, fmt.Errorf("log filter %q: %q is not one of off, error, warn, info, debug, trace", s, name)
		}
		if named {
			// RUST_LOG names targets as modules: gateway::worker.
			f.targets[strings.TrimPrefix(strings.TrimSpace(target), "gateway::")] = level
		} else {
			f.rest = level
		}
	}
	if all, ok := f.targets["gateway"]; ok {
		f.rest = all // also if the general level is higher
	}
	return f, nil
}

// level returns the lowest level that is shown for a target.
func (f filter) level(target string) slog.Level {
	if l, ok := f.targets[target]; ok {
		return l
	}
	return f.rest
}
