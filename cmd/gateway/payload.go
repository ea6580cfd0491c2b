package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// Bounds for the part of a payload that is shown.
const (
	shownLines = 60
	shownWidth = 200 // characters of each line
)

func (a *app) printEvent(e core.Event) {
	a.field("", "event", visible(string(e.ID)))
	a.field("", "source", visible(e.Source))
	a.field("", "type", visible(e.Type))
	a.field("", "received", core.FormatTime(e.CreatedAt))
	a.field("", "delivery id", visible(e.DeliveryID))
	a.field("", "content type", visible(e.ContentType))
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		a.field("", "header", visible(name+": "+e.Headers[name]))
	}
	size := count(len(e.Payload), "byte")
	if e.Binary {
		a.field("", "payload", size+" that are no text; --json prints them in base64")
		return
	}
	a.field("", "payload", size)
	lines, all := payloadLines(e.Payload)
	for _, line := range lines {
		a.printf("  %s", line)
	}
	if !all {
		a.printf("  … shortened; --json prints all of it")
	}
}

// payloadLines breaks a payload into lines, and indents JSON. It reports whether the lines
// hold the whole payload.
func payloadLines(payload []byte) (lines []string, all bool) {
	if json.Valid(payload) {
		payload = indented(payload)
	}
	all = true
	for line := range strings.Lines(string(payload)) {
		if len(lines) == shownLines {
			return lines, false
		}
		full := visible(strings.TrimSuffix(line, "\n"))
		short := clip(full, shownWidth)
		all = all && short == full
		lines = append(lines, short)
	}
	return lines, all
}
