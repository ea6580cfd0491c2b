package main

import (
	"fmt"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// print writes a line for each new event and each changed job of a look.
func (t *tailing) print(news manage.News) error {
	for _, e := range news.Events {
		if t.seen.put(e.ID, shown{}) && t.status == "" && t.shows(e.Source) {
			t.printArrived(e)
		}
	}
	for _, j := range news.Jobs {
		source, _ := t.sources.get(j.EventID)
		if t.seen.put(j.ID, shown{j.Status, j.Attempt}) && (t.status == "" || j.Status == t.status) && t.shows(source) {
			t.printMoved(j)
		}
	}
	return t.out.Err()
}

// shows reports whether events of a source are wanted.
func (t *tailing) shows(source string) bool { return t.source == "" || t.source == source }

// printArrived prints the line of a new event.
func (t *tailing) printArrived(e core.Event) {
	if t.json {
		t.printRecord(tailRecord{Time: wire.Time{Time: e.CreatedAt}, Kind: "event", Event: new(wire.SummaryOf(e))})
		return
	}
	t.Printf("%s  event  %s  %s  %s", moment(e.CreatedAt), terminal.Visible(string(e.ID)), terminal.Visible(e.Source), terminal.Visible(e.Type))
}

// printMoved prints the line of a job that has another status or attempt. The error of a
// completed job is from an earlier attempt, so it is left out.
func (t *tailing) printMoved(j core.Job) {
	at := t.movedAt(j)
	if t.json {
		t.printRecord(tailRecord{Time: wire.Time{Time: at}, Kind: "job", Job: new(wire.JobOf(j))})
		return
	}
	line := fmt.Sprintf("%s  job    %s  %s  %s  %s", moment(at), terminal.Visible(string(j.ID)),
		terminal.Visible(consumerText(j)), t.paintStatus(string(j.Status)), attemptText(j, "/"))
	if j.LastError != "" && j.Status != core.Completed {
		line += "  " + terminal.Clip(terminal.Visible(j.LastError), shownError)
	}
	t.Printf("%s", line)
}

// movedAt returns when a job got its state. It is known for a finished or new job. For other
// jobs it is the time of the look.
func (t *tailing) movedAt(j core.Job) time.Time {
	switch {
	case j.Status.Finished():
		return j.FinishedAt
	case j.Status == core.Available && j.Attempt == 0:
		return j.CreatedAt
	}
	return t.clock()
}

// A tailRecord is a line of a tail in JSON. Either Event or Job is null.
type tailRecord struct {
	Time  wire.Time          `json:"time"`
	Kind  string             `json:"kind"` // "event" or "job"
	Event *wire.EventSummary `json:"event"`
	Job   *wire.Job          `json:"job"`
}

// printRecord prints a line of JSON.
func (t *tailing) printRecord(r tailRecord) {
	if err := t.PrintJSONLine(r); err != nil {
		panic(err) // texts, times and numbers always have a JSON form
	}
}
