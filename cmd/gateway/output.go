package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// printf writes a line to stdout. Arguments with text from outside must have passed visible.
func (a *app) printf(format string, args ...any) {
	fmt.Fprintf(a.stdout, format+"\n", args...)
}

// printJSON writes v as one document.
func (a *app) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write as JSON: %w", err)
	}
	_, err := fmt.Fprintf(a.stdout, "%s\n", visibleJSON(indented(b.Bytes())))
	return err
}

// maxIndent is the nesting up to which JSON is broken into lines. Indentation adds bytes in
// proportion to depth times size: 10 KiB of brackets would become 100 MB.
const maxIndent = 64

// indented breaks a valid document into indented lines, unless it nests deeper than maxIndent.
func indented(doc []byte) []byte {
	doc = bytes.TrimSpace(doc)
	var b bytes.Buffer
	if depth(doc) > maxIndent || json.Indent(&b, doc, "", "  ") != nil {
		return doc
	}
	return b.Bytes()
}

// depth returns the nesting depth of a valid document.
func depth(doc []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// colours reports whether output is coloured: only on a terminal that supports it, and not if
// the user refuses it (https://no-color.org).
func (a *app) colours() bool {
	return a.terminal && !a.noColor && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"
}

// paint colours a piece of output, if output is coloured. It writes the escapes itself, since
// the library's switch is a global variable.
func (a *app) paint(s string, colour text.Color) string {
	if !a.colours() || s == "" {
		return s
	}
	return colour.EscapeSeq() + s + text.Reset.EscapeSeq()
}

// colourOf is the colour of each status of a job, a run or a step.
var colourOf = map[string]text.Color{
	string(core.Available):     text.FgCyan,
	string(core.Scheduled):     text.FgCyan,
	string(core.Running):       text.FgBlue,
	string(core.Completed):     text.FgGreen,
	string(core.Retryable):     text.FgYellow,
	string(core.Dead):          text.FgRed,
	string(core.RunPending):    text.FgCyan,
	string(core.RunFailed):     text.FgRed,
	string(core.StepReady):     text.FgCyan,
	string(core.StepWaiting):   text.FgYellow,
	string(core.StepSucceeded): text.FgGreen,
	string(core.StepCanceled):  text.FgMagenta,
	string(core.StepSkipped):   text.FgMagenta,
}

func (a *app) paintStatus(s string) string { return a.paint(visible(s), colourOf[s]) }

// A grid is a table for people: a heading and rows of cells. The cells have passed visible.
type grid struct {
	heading []string
	rows    [][]string
	indent  string
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

// printGrid writes a table in plain aligned columns. On a terminal, a line separates the
// heading.
func (a *app) printGrid(g grid) {
	w := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options = table.Options{SeparateHeader: a.terminal}
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	w.SetStyle(style)
	w.SuppressTrailingSpaces()
	w.AppendHeader(row(g.heading, func(s string) string { return a.paint(s, text.Bold) }))
	for _, cells := range g.rows {
		w.AppendRow(row(cells, func(s string) string { return s }))
	}
	for line := range strings.SplitSeq(w.Render(), "\n") {
		fmt.Fprintln(a.stdout, g.indent+line)
	}
}

func row(cells []string, dress func(string) string) table.Row {
	r := make(table.Row, len(cells))
	for i, cell := range cells {
		r[i] = dress(cell)
	}
	return r
}

// moment writes a time like the API, and the zero time as a dash.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return core.FormatTime(t)
}

// span writes a duration for people, with about three digits.
func span(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// orDash returns s, or a dash if s is empty.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
