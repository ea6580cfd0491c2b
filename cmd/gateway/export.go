package main

import (
	"bufio"
	"context"
	"runtime/debug"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// newExport makes "gateway export", which only holds the command events.
func newExport(a *app) *cobra.Command {
	return newParent(&cobra.Command{
		Use:     "export",
		Short:   "Write out stored events",
		Long:    "Write what the gateway has stored to standard output, for other programs to read.",
		Example: "  gateway export events > events.jsonl",
		GroupID: groupInspect,
	}, newExportEvents(a))
}

const exportLong = `Write events to standard output, one JSON object a line: the event as it was received, its
jobs with their attempts, and its workflow runs. "gateway replay-local" reads such lines.
The kept parts of the replies of handlers are left out: only "gateway inspect" shows them.

All events that are selected are written, the oldest first, or of them the newest --limit.
Events that come in meanwhile are not among them. A payload stands there as the JSON it
is, without the space between its parts and with escapes for control characters; one that
is no JSON as a string, beside "payload_encoding": "text". A server waits 5 minutes for a
slow reader.`

// newExportEvents makes "gateway export events": events with jobs, attempts and runs as lines
// of JSON. It reads GET /api/export/events with --url, and manage.Events.Export otherwise. Both
// give the events one by one, so memory does not grow with their number. It exits with 1 if it
// breaks off; the lines before that are complete.
//
// Lines, and not one document, since a program can read them while they come, and "gateway
// replay-local" can continue at a line.
func newExportEvents(a *app) *cobra.Command {
	var (
		which selection
		limit int
	)
	c := &cobra.Command{
		Use:   "events",
		Short: "Write events as lines of JSON",
		Long:  exportLong,
		Example: `  gateway export events > events.jsonl
  gateway export events --source shop -t order.created --since 1d | gzip > orders.jsonl.gz
  gateway export events | jq -r 'select(.jobs | any(.status == "dead")) | .id'`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			// The default 0 means all. An explicit 0 means none, or is a mistake.
			if limit < 1 && c.Flags().Changed("limit") {
				return usagef("--limit must be 1 or more, not %d; without it all events are written", limit)
			}
			filter, err := which.parse(a.clock())
			if err != nil {
				return err
			}
			return a.exportEvents(c.Context(), filter, limit)
		},
	}
	which.register(a, c, exactType)
	which.registerDelivery(c)
	c.Flags().IntVarP(&limit, "limit", "l", 0, "only the newest `n` events")
	return remotely(c)
}

const (
	// exportBuffer is the number of bytes that are written at once.
	exportBuffer = 64 << 10

	// exportGC makes the garbage collector run early. The live heap has a few MB, and nearly
	// all memory for a million events is soon garbage. Go's default of 100 takes 4 MiB more,
	// of about 64, for the same work.
	exportGC = 50
)

// exportEvents writes the export with a garbage collector that suits it. The percentage is set
// back at the end for tests, which run several commands in one process.
func (a *app) exportEvents(ctx context.Context, filter core.EventFilter, limit int) error {
	if a.env("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(exportGC))
	}
	return a.ask(ctx, func(op *operator) error { return a.exportFrom(ctx, op.events, filter, limit) })
}

// exportFrom writes the export of a service, and says on standard error if it is empty or was
// cut by --limit: an empty or short file looks like success.
func (a *app) exportFrom(ctx context.Context, events eventService, filter core.EventFilter, limit int) error {
	out := bufio.NewWriterSize(a.stdout, exportBuffer)
	n, err := a.writeEvents(ctx, out, events, filter, limit)
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	switch {
	case err != nil:
		return err
	case n == 0:
		a.Notef("no events")
	case n == limit:
		a.Notef("these are the newest %d at most; without --limit all are written", n)
	}
	return nil
}

// writeEvents writes a line for each event and returns the number of lines. It writes complete
// lines only, also after an error.
func (a *app) writeEvents(ctx context.Context, out *bufio.Writer, events eventService, filter core.EventFilter, limit int) (n int, err error) {
	p := a.Progress()
	defer p.Clear()
	for told, err := range events.Export(ctx, filter, limit, false) {
		if err != nil {
			return n, err
		}
		line, err := wire.EventOf(told).Line()
		if err != nil {
			return n, err
		}
		if _, err := out.Write(terminal.VisibleJSON(line)); err != nil {
			return n, err
		}
		n++
		p.Show("exported %s", terminal.Count(n, "event"))
	}
	return n, nil
}
