package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/wire"
)

// introduce prints the addresses of the session, and that it settles nothing. It is printed once
// the gateway has answered, so a script may wait for it.
func (l *listening) introduce() {
	l.Notef("listening to %s, posting to %s; this is no tunnel, and nothing is settled: the gateway's own deliveries and their retries go on as usual",
		l.urlFlag, shownURL(l.to))
	if !l.signed {
		l.Notef("the deliveries are not signed: no secret is given")
	}
}

// A listenRecord is a line of JSON about an event.
type listenRecord struct {
	Time  wire.Time         `json:"time"`
	Event wire.EventSummary `json:"event"`
	JobID wire.Text         `json:"job_id"`

	// Delivery is null if the event could not be read. Then Error says why; else Error is null.
	Delivery *wire.Attempt `json:"delivery"`
	Error    wire.Text     `json:"error"`
}

// printDelivery prints the line of an event that was posted.
func (l *listening) printDelivery(job core.TakenJob, a core.Attempt) error {
	if l.json {
		return l.PrintJSONLine(listenRecord{wire.Time{Time: a.StartedAt}, wire.SummaryOf(job.Event), wire.Text(job.ID), new(wire.AttemptOf(a)), ""})
	}
	// A status says enough about an answer. Without an answer, the error says why there is none.
	result, colour := statusCode(a.StatusCode), terminal.Green
	switch {
	case a.Error == "" && a.StatusCode == 0:
		result = "ok" // of gRPC
	case a.Error == "":
	case strings.HasPrefix(a.Error, fmt.Sprintf("status: %d", a.StatusCode)):
		result, colour = strings.TrimPrefix(a.Error, "status: "), terminal.Red
	default:
		result, colour = a.Error, terminal.Red
	}
	line := l.lineOf(job.Event, a.StartedAt) + "  " + l.Paint(terminal.Clip(terminal.Visible(result), shownError), colour) + "  " + terminal.Span(a.Duration)
	if answer := firstLine(a.Response); answer != "" {
		line += "  " + terminal.Clip(terminal.Visible(answer), shownResponse)
	}
	l.Printf("%s", line)
	return l.out.Err()
}

// printUnread prints the line of an event that the gateway did not give.
func (l *listening) printUnread(e core.Event, why error) error {
	now := l.clock()
	if l.json {
		return l.PrintJSONLine(listenRecord{Time: wire.Time{Time: now}, Event: wire.SummaryOf(e), Error: wire.Text(why.Error())})
	}
	l.Printf("%s  %s", l.lineOf(e, now), l.Paint(terminal.Clip(terminal.Visible("not posted: "+why.Error()), shownError), terminal.Red))
	return l.out.Err()
}

// lineOf returns the beginning of the line of an event.
func (l *listening) lineOf(e core.Event, at time.Time) string {
	return fmt.Sprintf("%s  %s  %s  ->", moment(at), terminal.Visible(string(e.ID)), terminal.Visible(e.Type))
}

// firstLine returns the first line of a text that is not blank.
func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(first)
}

// noteBehind says how far listen is behind, if it has been behind for a while.
func (l *listening) noteBehind() {
	now := l.clock()
	if len(l.waiting) < 2 || now.Sub(l.told) < behindEvery {
		return
	}
	l.told = now
	l.Notef("behind: %d or more events wait; the next one came in %s ago", len(l.waiting), terminal.Span(max(0, now.Sub(l.waiting[0].CreatedAt))))
}

// summarise prints the counts, and the command that goes on after it.
func (l *listening) summarise() {
	done := l.counts.delivered + l.counts.failed
	text := fmt.Sprintf("posted %s: %d delivered, %d failed", terminal.Count(done, "event"), l.counts.delivered, l.counts.failed)
	if n := l.counts.passed; n > 0 {
		text += fmt.Sprintf("; %d not wanted", n)
	}
	if n := l.counts.unread; n > 0 {
		text += fmt.Sprintf("; %d could not be read", n)
	}
	if n := len(l.waiting); n > 0 {
		text += fmt.Sprintf("; %d or more wait", n)
	}
	l.Notef("%s; nothing was settled", text)
	if l.last != "" {
		l.Notef("go on with: %s", l.again(l.last))
	}
}
