package store

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Events lists events. See core.Ledger.
func (s *Store) Events(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error) {
	page, err := pageOf(ctx, s, "events", s.sql.events.selection(f, "", f.After), f.Limit, scanEvent)
	for i := range page.Items {
		page.Items[i].Payload = nil
	}
	return page, err
}

// An eventListing is a statement that goes through events in the order of their ids: all,
// those of a source or those of a type. Among a million, one source that has been quiet
// for long took a second and a half to be found by the primary key.
type eventListing struct{ all, bySource, byType string }

func (d Dialect) eventListing(columns string) eventListing {
	from := func(index, condition string) string {
		return d.sql(`SELECT ` + columns + ` FROM events{use ` + index + `} WHERE ` + condition)
	}
	return eventListing{
		all:      from("PRIMARY", `id >= ? AND id < ?`),
		bySource: from("events_by_source", `{from source} AND {below source}`),
		byType:   from("events_by_type", `{from type} AND {below type}`),
	}
}

// aside is how far the time in an event's id may be from when the event was received: it
// is made once the request has been read, which takes half a minute at most, and clocks
// are set.
const aside = time.Minute

// selection lists what a filter selects, from an id on and below another one. Since the
// times in ids are close to when the events were received, what is long before or after
// is not looked at.
func (l eventListing) selection(f core.EventFilter, from, below core.ID) *query {
	low, high := string(from), pageTop(below)
	if !f.Since.IsZero() {
		low = max(low, string(core.FirstID(f.Since.Add(-aside))))
	}
	if !f.Until.IsZero() {
		high = min(high, string(core.FirstID(f.Until.Add(aside))))
	}
	q := l.between(f, low, high)
	if f.Source == "" {
		q.and("source <> ?", core.AlertSource)
	}
	if !f.Since.IsZero() {
		q.and("created_at >= ?", f.Since.UnixMilli())
	}
	if !f.Until.IsZero() {
		q.and("created_at < ?", f.Until.UnixMilli())
	}
	return q
}

// between is the listing by the index that finds the fewest: types are rarer than sources.
func (l eventListing) between(f core.EventFilter, low, high string) *query {
	q := &query{}
	switch {
	case f.Type != "":
		q.lead, q.args = "type", []any{f.Type, low, f.Type, high}
		q.sql.WriteString(l.byType)
		q.and("COALESCE(source, '') = ?", f.Source) // which no index has
	case f.Source != "":
		q.lead, q.args = "source", []any{f.Source, low, f.Source, high}
		q.sql.WriteString(l.bySource)
	default:
		q.args = []any{low, high}
		q.sql.WriteString(l.all)
	}
	return q
}
