package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
)

// Bounds for the part of a payload that is shown.
const (
	shownLines = 60
	shownWidth = 200 // characters of each line
)

// printEvent prints an event with its headers and the beginning of its payload. Payloads of
// binary sources are not printed: bytes that are no text say nothing to a reader.
// Headers are sorted, so that two events can be compared line by line.
func (a *app) printEvent(e core.Event) {
	a.PrintField("", "event", terminal.Visible(string(e.ID)))
	a.PrintField("", "source", terminal.Visible(e.Source))
	a.PrintField("", "type", terminal.Visible(e.Type))
	a.PrintField("", "received", core.FormatTime(e.CreatedAt))
	a.PrintField("", "delivery id", terminal.Visible(e.DeliveryID))
	a.PrintField("", "content type", terminal.Visible(e.ContentType))
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		a.PrintField("", "header", terminal.Visible(name+": "+e.Headers[name]))
	}
	// The size counts the stored bytes, not the indented form below it.
	size := terminal.Count(len(e.Payload), "byte")
	if e.Binary {
		a.PrintField("", "payload", size+" that are no text; --json prints them in base64")
		return
	}
	a.PrintField("", "payload", size)
	lines, all := payloadLines(e.Payload)
	for _, line := range lines {
		a.Printf("  %s", line)
	}
	if !all {
		a.Printf("  … shortened; --json prints all of it")
	}
}

// payloadLines breaks a payload into lines, and indents JSON. It reports whether the lines
// hold the whole payload.
func payloadLines(payload []byte) (lines []string, all bool) {
	if json.Valid(payload) {
		payload = terminal.Indented(payload)
	}
	// Indentation does not count as a change: the lines still hold the whole document.
	all = true
	for line := range strings.Lines(string(payload)) {
		if len(lines) == shownLines {
			return lines, false
		}
		full := terminal.Visible(strings.TrimSuffix(line, "\n"))
		short := terminal.Clip(full, shownWidth)
		all = all && short == full
		lines = append(lines, short)
	}
	return lines, all
}
