package server

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/cmd/bench/internal/event"
)

// A Backlog is a number of stored events of source bench that are not delivered yet. Each has a job
// of the handler sink.
type Backlog struct {
	Jobs int

	// Keys is the number of lines. They have the jobs evenly: the first Keys jobs have the slots of
	// their lines, and the others wait. With 0 the handler has no lines.
	Keys int

	// Bodies is how many events, the first ones, have a body of Size bytes with their sequence
	// number, from 0. The bodies of the other events have a key and nothing else, so that a million
	// of them are written soon. The key of event i is at "$.key": "k" and i modulo Keys.
	Bodies, Size int
}

// PileBacklog inserts a backlog into a database with the gateway's tables. The rows are the same as
// if the gateway had stored the events over the last FilledSpan.
func (d *Database) PileBacklog(ctx context.Context, b Backlog) error {
	tables := "events, jobs"
	if b.Keys > 0 {
		tables += ", line_slots, line_places"
	}
	return d.fill(ctx, b.Jobs, b.statements(), tables)
}

// statements returns the statements that insert the backlog. Number i of a row counts from 1.
func (b Backlog) statements() []string {
	texts := slices.Concat(backlogEvents, plainBacklog)
	if b.Keys > 0 {
		texts = slices.Concat(backlogEvents, linedBacklog)
	}
	keys := max(1, b.Keys)
	longest := len(fmt.Sprintf(`{"seq":%d,"key":"k%d","pad":""}`, event.SeqBase, keys-1))
	pairs := []string{
		"{keys}", strconv.Itoa(keys), "{bodies}", strconv.Itoa(b.Bodies),
		"{base}", strconv.Itoa(event.SeqBase - 1), "{pad}", strings.Repeat("x", max(0, b.Size-longest)),
		"{key}", "'k' || CAST((i - 1) % " + strconv.Itoa(keys) + " AS text)",
	}
	for i, text := range texts {
		texts[i] = strings.NewReplacer(pairs...).Replace(text)
	}
	return texts
}

var backlogEvents = []string{
	`INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at)
	SELECT {id 0}, 'bench', 'order.created', CASE WHEN i <= {bodies}
		THEN '{"seq":' || CAST({base} + i AS text) || ',"key":"' || {key} || '","pad":"{pad}"}'
		ELSE '{"key":"' || {key} || '"}' END, 'application/json', '', NULL, at FROM {n}`,
}

var plainBacklog = []string{
	jobColumns + `SELECT {id 1}, {id 0}, 'handler/sink', 'available', 0, 5, at, '', at, NULL FROM {n}`,
}

// linedBacklog are the statements for jobs in lines with a limit of 1. A job that waits keeps the
// time at which it wants to be due in scheduled_at. See "Lines" in store/doc.go.
var linedBacklog = []string{
	`INSERT INTO jobs (id, event_id, lane, status, attempt, max_attempts, due_at, last_error, created_at, line, scheduled_at)
	SELECT {id 1}, {id 0}, 'handler/sink', CASE WHEN i <= {keys} THEN 'available' ELSE 'waiting' END, 0, 5,
		CASE WHEN i <= {keys} THEN at END, '', at, 'handler/sink#' || {key}, CASE WHEN i > {keys} THEN at END FROM {n}`,
	`INSERT INTO line_slots (line, slot, job_id, reached, stopped_at)
	SELECT 'handler/sink#' || {key}, 1, {id 1}, 0, 0 FROM {n} WHERE i <= {keys}`,
	`INSERT INTO line_places (line, place, job_id)
	SELECT 'handler/sink#' || {key}, (i - 1) / {keys}, {id 1} FROM {n} WHERE i > {keys}`,
}
