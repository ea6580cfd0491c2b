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

// Target is the attribute that names the part of the program that wrote a line. The log
// filter can name it.
const Target = "target"

// LogOptions set the destination and the format of log lines.
type LogOptions struct {
	Out      io.Writer
	Terminal bool   // Out is a terminal that may be coloured
	Format   string // "json" for one JSON object a line; else text (GATEWAY_LOG_FORMAT)

	// Filter is a level, or a list of target=level with or without a level for the
	// rest: "info", "warn,worker=debug". All targets together are called gateway. Levels
	// are off, error, warn, info, debug, trace. Empty means info. (GATEWAY_LOG, RUST_LOG)
	Filter string
}

// NewLogger makes a logger. Of lines that requests from outside cause, it writes one a
// second for each source and reason, at any level; see [Flush]. An invalid filter counts as
// info. Then NewLogger also returns an error, which the caller logs with the returned
// logger.
func NewLogger(o LogOptions) (*slog.Logger, error) {
	f, err := parseFilter(o.Filter)
	return slog.New(&filtering{Handler: newHandler(o), filter: f, limiter: newLimiter()}), err
}

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

// escapes replace the escape character, and the text that tint converts to it: tint passes
// colour sequences on, and text from outside may contain them.
var escapes = strings.NewReplacer("\x1b", `\x1B`, `\x1b`, `\x1B`)

// tame makes an attribute safe for a terminal. Other control characters are quoted in
// values, but not in messages.
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

func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return unicode.ReplacementChar
	}
	return r
}

const off = slog.Level(100)

var levels = map[string]slog.Level{
	"off": off, "error": slog.LevelError, "warn": slog.LevelWarn,
	"info": slog.LevelInfo, "debug": slog.LevelDebug, "trace": slog.LevelDebug - 4,
}

// A filter is the lowest level that is shown, in general and per target.
type filter struct {
	rest    slog.Level
	targets map[string]slog.Level
}

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

func (f filter) level(target string) slog.Level {
	if l, ok := f.targets[target]; ok {
		return l
	}
	return f.rest
}
