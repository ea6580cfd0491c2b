package main

import (
	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// newEvents makes "gateway events", which only holds other commands.
func newEvents(a *app) *cobra.Command {
	return newParent(&cobra.Command{
		Use:     "events",
		Short:   "List events, replay and cancel them",
		Long:    "The events the gateway has stored.",
		Example: "  gateway events list --limit 10\n  gateway events replay --since 2h --dry-run",
		GroupID: groupInspect,
	}, newEventsList(a), newEventsReplay(a), newEventsCancel(a))
}

// newEventsList makes "gateway events list": the newest events without payloads, a page at a
// time. It asks GET /api/events with --url, and manage.Events.List on the database otherwise.
// No event is not an error: the exit code is 0, and standard output stays empty for scripts.
//
// The default order and page size equal the defaults of the API, so --url shows the
// same page.
func newEventsList(a *app) *cobra.Command {
	var (
		page  pageFlags
		which selection
		match string
	)
	c := remotely(&cobra.Command{
		Use:   "list",
		Short: "List events, newest first",
		Long: `List events, newest first, without their payloads. "gateway inspect" shows one in full.

With --match, it scans at most 10,000 events or for 2 seconds, prints the events whose
payload the filter matches, and says where to go on. The filter has the language of a
handler's filter: "gateway help expressions".

Reads the configured database, beside the running gateway, or asks the one at --url.`,
		Example: `  gateway events list
  gateway events list --source shop -t order.created --limit 10
  gateway events list --since 2h --until 30m
  gateway events list --delivery-id evt_1Q2w3e
  gateway events list --since 2d --match '$.customer.id == "c-7"'
  gateway events list --json | jq -r '.events[].id'`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			filter, err := which.parse(a.clock())
			if err != nil {
				return err
			}
			if filter.After, filter.Limit, err = page.parse(); err != nil {
				return err
			}
			if match != "" {
				return a.eventsSearch(c, filter, match)
			}
			return a.eventsList(c, filter)
		},
	})
	page.register(c)
	which.register(a, c, exactType)
	c.Flags().StringVar(&match, "match", "", "only events that this `filter` matches, such as '$.total > 100'")
	which.registerDelivery(c)
	return c
}

// eventsList prints one page, and on standard error the command for the next page. With --json
// the field has_more says whether there is one.
func (a *app) eventsList(c *cobra.Command, filter core.EventFilter) error {
	return a.ask(c.Context(), func(op *operator) error {
		page, err := op.events.List(c.Context(), filter)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.EventsOf(page))
		case len(page.Items) == 0:
			a.Notef("no events")
			return nil
		}
		a.PrintGrid(eventGrid(page.Items))
		if page.More {
			a.noteMore(c, page.Items[len(page.Items)-1].ID)
		}
		return nil
	})
}

// eventsSearch prints one page of a search, and on standard error how many events were scanned and
// the command that goes on. With --json the fields scanned and next say so.
func (a *app) eventsSearch(c *cobra.Command, filter core.EventFilter, match string) error {
	return a.ask(c.Context(), func(op *operator) error {
		found, err := op.events.Search(c.Context(), filter, match)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.FoundOf(found))
		case len(found.Items) > 0:
			a.PrintGrid(eventGrid(found.Items))
		default:
			a.Notef("no event matches")
		}
		a.noteScanned(c, terminal.Count(found.Scanned, "event"), found.Next)
		return nil
	})
}

// eventGrid returns the table of a page of events. Event types and sources are from outside, so
// each cell is escaped.
func eventGrid(events []core.Event) terminal.Grid {
	g := terminal.Grid{Heading: []string{"ID", "RECEIVED", "SOURCE", "TYPE"}}
	for _, e := range events {
		g.Add(terminal.Visible(string(e.ID)), moment(e.CreatedAt), terminal.Visible(e.Source), terminal.Visible(e.Type))
	}
	return g
}
