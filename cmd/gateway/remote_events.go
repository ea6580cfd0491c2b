package main

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// remoteEvents are the events of a server.
type remoteEvents struct{ *client }

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

func eventQuery(f core.EventFilter) url.Values {
	return parameters("source", f.Source, "event_type", f.Type, "since", core.FormatTime(f.Since), "until", core.FormatTime(f.Until),
		"after", string(f.After), "limit", atMost(f.Limit))
}

func (e remoteEvents) List(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error) {
	var page wire.Events
	err := e.get(ctx, &page, eventQuery(f), "events")
	return page.Core(), err
}

func (e remoteEvents) Inspect(ctx context.Context, id core.ID) (manage.Told, error) {
	var event wire.Event
	if err := e.get(ctx, &event, nil, "events", string(id)); err != nil {
		return manage.Told{}, err
	}
	told, err := event.Core()
	if err != nil {
		return manage.Told{}, e.unread(err)
	}
	return told, nil
}

// A replayOrder is the body of a request to replay events.
type replayOrder struct {
	Source string    `json:"source,omitempty"`
	Type   string    `json:"event_type,omitempty"`
	Since  wire.Time `json:"since,omitzero"`
	Until  wire.Time `json:"until,omitzero"`
	Limit  int       `json:"limit,omitempty"`
	First  core.ID   `json:"first,omitempty"`
	Last   core.ID   `json:"last,omitempty"`
	Dry    bool      `json:"dry_run,omitempty"`
}

func (e remoteEvents) Replay(ctx context.Context, f core.EventFilter, s manage.Span, dry bool) (manage.Replayed, error) {
	order := replayOrder{f.Source, f.Type, wire.Time{Time: f.Since}, wire.Time{Time: f.Until}, f.Limit, s.First, s.Last, dry}
	var reply wire.Replayed
	err := e.post(ctx, &reply, order, "events", "replay")
	return reply.Core(), err
}

func (e remoteEvents) Export(ctx context.Context, f core.EventFilter, n int) iter.Seq2[manage.Told, error] {
	f.Limit = n
	return func(yield func(manage.Told, error) bool) {
		lines, err := e.stream(ctx, eventQuery(f), "export", "events")
		if err != nil {
			yield(manage.Told{}, err)
			return
		}
		defer lines.Close()
		e.each(lines, yield)
	}
}

// each yields the events of an export, and ends after an error.
func (e remoteEvents) each(lines io.Reader, yield func(manage.Told, error) bool) {
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
			yield(manage.Told{}, e.unread(err))
			return
		}
		if !yield(told, nil) {
			return
		}
	}
}

// remoteTail is the tail of a server.
type remoteTail struct{ *client }

func (t remoteTail) Look(ctx context.Context, from manage.Cursor, follow []core.ID) (manage.News, error) {
	var news wire.News
	ids := make([]string, len(follow))
	for i, id := range follow {
		ids[i] = string(id)
	}
	query := parameters("event", string(from.Event), "finished", core.FormatTime(from.Finished),
		"job", string(from.Job), "follow", strings.Join(ids, ","))
	err := t.get(ctx, &news, query, "tail")
	return news.Core(), err
}

// standing reads the stats of a server and waits as long as for any other answer.
func (c *client) standing(ctx context.Context) (stats wire.Stats, err error) {
	err = c.get(ctx, &stats, nil, "stats")
	return stats, err
}

// stats reads the stats of a server within glanceTimeout.
func (c *client) stats(ctx context.Context) (stats wire.Stats, err error) {
	ctx, cancel := context.WithTimeout(ctx, glanceTimeout)
	defer cancel()
	err = c.get(ctx, &stats, nil, "stats")
	return stats, err
}

// glanceTimeout bounds requests for details that a command can do without.
const glanceTimeout = 5 * time.Second
