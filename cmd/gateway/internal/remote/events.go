package remote

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// Events are the events of a server.
type Events struct{ c *Client }

// Events returns the events of a server.
func (c *Client) Events() Events { return Events{c} }

// parameters returns a query with the pairs whose value is not empty.
func parameters(pairs ...string) url.Values {
	query := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	return query
}

// atMost returns a limit as a parameter. It returns "" for 0, which leaves the limit to the
// server.
func atMost(limit int) string {
	if limit == 0 {
		return ""
	}
	return strconv.Itoa(limit)
}

// eventQuery returns the parameters that lists and exports of events share. Zero fields are
// left out.
func eventQuery(f core.EventFilter) url.Values {
	return parameters("source", f.Source, "event_type", f.Type, "delivery_id", f.DeliveryID, "since", core.FormatTime(f.Since), "until", core.FormatTime(f.Until),
		"after", string(f.After), "limit", atMost(f.Limit))
}

// List reads a page of events without payloads, newest first: GET /api/events.
func (e Events) List(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error) {
	var page wire.Events
	err := e.c.get(ctx, &page, eventQuery(f), "events")
	return page.Core(), err
}

// Search reads a page of the events that a filter matches: GET /api/events?match.
func (e Events) Search(ctx context.Context, f core.EventFilter, filter string) (manage.Found, error) {
	var found wire.Found
	query := eventQuery(f)
	query.Set("match", filter)
	err := e.c.get(ctx, &found, query, "events")
	return found.Core(), err
}

// Inspect reads an event with its payload, jobs and runs: GET /api/events/{id}.
func (e Events) Inspect(ctx context.Context, id core.ID) (manage.Told, error) {
	var event wire.Event
	if err := e.c.get(ctx, &event, nil, "events", string(id)); err != nil {
		return manage.Told{}, err
	}
	told, err := event.Core()
	if err != nil {
		return manage.Told{}, e.c.unread(err)
	}
	return told, nil
}

// A replayOrder is the body of a request to replay events.
type replayOrder struct {
	Source string    `json:"source,omitempty"`
	Type   string    `json:"event_type,omitempty"`
	Sent   string    `json:"delivery_id,omitempty"`
	Since  wire.Time `json:"since,omitzero"`
	Until  wire.Time `json:"until,omitzero"`
	Limit  int       `json:"limit,omitempty"`
	First  core.ID   `json:"first,omitempty"`
	Last   core.ID   `json:"last,omitempty"`
	Dry    bool      `json:"dry_run,omitempty"`
}

// Replay makes new jobs for one turn of stored events, or only counts them if dry is true. The
// field Next of the result is where the next turn begins: POST /api/events/replay.
func (e Events) Replay(ctx context.Context, f core.EventFilter, s manage.Span, dry bool) (manage.Replayed, error) {
	order := replayOrder{f.Source, f.Type, f.DeliveryID, wire.Time{Time: f.Since}, wire.Time{Time: f.Until}, f.Limit, s.First, s.Last, dry}
	var reply wire.Replayed
	err := e.c.post(ctx, &reply, order, "events", "replay")
	return reply.Core(), err
}

// Cancel ends the jobs and runs of an event that are not under way: POST /api/events/{id}/cancel.
func (e Events) Cancel(ctx context.Context, id core.ID) (manage.Canceled, error) {
	var reply wire.Canceled
	err := e.c.post(ctx, &reply, nil, "events", string(id), "cancel")
	return reply.Core(), err
}

// Export yields events, oldest first: of the selected ones the newest n, or all if n is 0. The
// server streams one line for each event, so memory does not grow with their number. An error
// is the last value: GET /api/export/events.
func (e Events) Export(ctx context.Context, f core.EventFilter, n int, bare bool) iter.Seq2[manage.Told, error] {
	f.Limit = n
	query := eventQuery(f)
	if bare { // a gateway of an earlier version refuses the parameter
		query.Set("jobs", "false")
	}
	return func(yield func(manage.Told, error) bool) {
		lines, err := e.c.stream(ctx, query, "export", "events")
		if err != nil {
			yield(manage.Told{}, err)
			return
		}
		defer lines.Close()
		e.each(lines, yield)
	}
}

// each yields the events of an export, and ends after an error.
func (e Events) each(lines io.Reader, yield func(manage.Told, error) bool) {
	// The decoder reads value after value. A line that breaks off is an error, not a shorter
	// list.
	for d := json.NewDecoder(lines); ; {
		var event wire.Event
		err := d.Decode(&event)
		if err == io.EOF {
			return
		}
		var told manage.Told
		if err == nil {
			told, err = event.Core()
		}
		if err != nil {
			yield(manage.Told{}, e.c.unread(err))
			return
		}
		if !yield(told, nil) {
			return
		}
	}
}

// Tail is the tail of a server.
type Tail struct{ c *Client }

// Tail returns the tail of a server.
func (c *Client) Tail() Tail { return Tail{c} }

// Look reads the events and jobs that are new since the cursor, and the jobs of the events in
// follow: GET /api/tail.
func (t Tail) Look(ctx context.Context, from manage.Cursor, follow []core.ID) (manage.News, error) {
	var news wire.News
	ids := make([]string, len(follow))
	for i, id := range follow {
		ids[i] = string(id)
	}
	query := parameters("event", string(from.Event), "finished", core.FormatTime(from.Finished),
		"job", string(from.Job), "follow", strings.Join(ids, ","))
	err := t.c.get(ctx, &news, query, "tail")
	return news.Core(), err
}

// Topology reads the topology of the configuration: GET /api/topology.
func (c *Client) Topology(ctx context.Context) (topology wire.Topology, err error) {
	err = c.get(ctx, &topology, nil, "topology")
	return topology, err
}

// Stats reads the stats of the server, and waits as long as for any other answer.
func (c *Client) Stats(ctx context.Context) (stats wire.Stats, err error) {
	err = c.get(ctx, &stats, nil, "stats")
	return stats, err
}

// glanceTimeout bounds requests for details that a caller can do without.
const glanceTimeout = 5 * time.Second

// Glance reads the stats of the server within 5 s, for details that the caller can do without.
func (c *Client) Glance(ctx context.Context) (wire.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, glanceTimeout)
	defer cancel()
	return c.Stats(ctx)
}

// Health asks the server for its health. It sends no token, since every caller may ask that.
// The reply may be from a program that is no gateway, with any status. The caller closes the
// body.
func (c *Client) Health(ctx context.Context) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath("health").String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", c.agent())
	response, err := c.calls.Do(request)
	if err != nil {
		return nil, c.unreached(request, err)
	}
	return response, nil
}
