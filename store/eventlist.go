package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Events lists events, the newest first, without payloads and headers. See core.Ledger.
func (s *Store) Events(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error) {
	limit := pageLimit(f.Limit)
	rows, err := s.selectEvents(ctx, s.sql.events, f, "", f.After, " DESC", limit+1)
	if err != nil {
		return core.Page[core.Event]{}, fmt.Errorf("list events: %w", err)
	}
	page := paged(rows, limit, (*rowReader).event)
	for i := range page.Items {
		page.Items[i].Payload = nil
	}
	return page, nil
}

// An eventListing is a SELECT on events in the order of ids, in four forms: by the primary
// key, by events_by_source, by events_by_kind (type and source), and by events_delivery, which
// has one row at most. By the primary key alone, one event of a quiet source took 1.5 s to be
// found among a million.
type eventListing struct{ name, all, bySource, byTypeAndSource, byDelivery string }

// eventListing composes the four forms. All end with a range of ids; a query adds further
// conditions, the order and the limit.
func (d Dialect) eventListing(name, columns string) eventListing {
	from := func(index, condition string) string {
		return d.sql(`SELECT ` + columns + ` FROM events{use ` + index + `} WHERE ` + condition)
	}
	return eventListing{
		name:            name,
		all:             from("PRIMARY", `id >= ? AND id < ?`),
		bySource:        from("events_by_source", `{from source} AND {below source}`),
		byTypeAndSource: from("events_by_kind", `{from type, source} AND {below type, source}`),
		byDelivery:      from("events_delivery", `source = ? AND delivery_id = ? AND id >= ? AND id < ?`),
	}
}

// selectEvents reads events that a filter selects, with ids from from on and below below.
// direction is "" for the oldest first, or " DESC".
func (s *Store) selectEvents(ctx context.Context, l eventListing, f core.EventFilter, from, below core.ID, way string, limit int) ([][]any, error) {
	filters, err := s.splitBySource(ctx, f)
	if err != nil {
		return nil, err
	}
	queries := make([]*query, len(filters))
	for i, f := range filters {
		queries[i] = l.query(f, from, below)
	}
	return s.merged(ctx, queries, way, limit)
}

// splitBySource returns filters that one index can serve. A filter of a type or of a delivery id
// without a source becomes one filter for each source that has sent such events, or any events.
// Sources are configured, so they are few. Events of alerts are not listed unless the source is
// named.
func (s *Store) splitBySource(ctx context.Context, f core.EventFilter) (filters []core.EventFilter, err error) {
	var sources []string
	switch {
	case f.Source != "" || f.Type == "" && f.DeliveryID == "":
		return []core.EventFilter{f}, nil
	case f.Type != "":
		sources, err = s.distinct(ctx, s.sql.sourcesOf, f.Type)
	default:
		sources, err = s.distinct(ctx, s.sql.sources)
	}
	for _, source := range sources {
		if f.Source = source; source != core.AlertSource {
			filters = append(filters, f)
		}
	}
	return filters, err
}

// idTimeSkew bounds how far the time in an event's id is from the time at which it was
// received. The id is made once the request has been read, which takes at most half a minute.
// [receivedAt] keeps the bound if the clock was set back.
const idTimeSkew = time.Minute

// receivedAt returns the time that is stored as received. If the id is much later, the clock
// was set back while this process ran: its ids go on from the old time. Then the time in the id
// is stored, so that events are in one order, and searches by time find them.
func receivedAt(e core.Event) time.Time {
	if made := e.ID.Time(); made.Sub(e.CreatedAt) > idTimeSkew {
		return made
	}
	return e.CreatedAt
}

// query lists the events of a filter, with ids from from on and below below. A span of time
// becomes a range of ids, wider by idTimeSkew at both ends, and a condition on created_at.
func (l eventListing) query(f core.EventFilter, from, below core.ID) *query {
	low, high := string(from), pageTop(below)
	if !f.Since.IsZero() {
		low = max(low, string(core.FirstID(f.Since.Add(-idTimeSkew))))
	}
	if !f.Until.IsZero() {
		high = min(high, string(core.FirstID(f.Until.Add(idTimeSkew))))
	}
	q := l.indexQuery(f, low, high)
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

// indexQuery begins a query with the index that fits the filter.
func (l eventListing) indexQuery(f core.EventFilter, low, high string) *query {
	q := &query{name: l.name}
	switch {
	case f.DeliveryID != "":
		q.index, q.unordered, q.args = "delivery", true, []any{f.Source, f.DeliveryID, low, high}
		q.sql.WriteString(l.byDelivery)
		q.and("type = ?", f.Type)
	case f.Type != "":
		q.index, q.indexColumns, q.args = "kind", []string{"type", "source"}, []any{f.Type, f.Source, low, f.Type, f.Source, high}
		q.sql.WriteString(l.byTypeAndSource)
	case f.Source != "":
		q.index, q.indexColumns, q.args = "source", []string{"source"}, []any{f.Source, low, f.Source, high}
		q.sql.WriteString(l.bySource)
	default:
		q.args = []any{low, high}
		q.sql.WriteString(l.all)
	}
	return q
}

// nthChunk is how many ids nthOfType reads in a round.
const nthChunk = 20_000

// nthOfType is nth for the events of several sources. It merges the ids of the sources in
// rounds. Each round reads the same number of each source, and counts down to the id at which a
// list that may go on ends. The next round begins below the last counted id.
func (s *Store) nthOfType(ctx context.Context, filters []core.EventFilter, n int) (id core.ID, err error) {
	each := max(1, min(n, nthChunk)/max(1, len(filters)))
	for n > 0 {
		stmts := make([]Stmt, len(filters))
		for i, f := range filters {
			q := s.sql.eventIDs.query(f, "", id)
			stmts[i] = q.stmt(" DESC", s.dialect.limitParam, each)
		}
		results, err := s.readBatch(ctx, stmts...)
		if err != nil {
			return "", err
		}
		ids := newestIDs(results, each)
		if len(ids) == 0 {
			return id, nil
		}
		ids = ids[:min(n, len(ids))]
		id, n = ids[len(ids)-1], n-len(ids)
	}
	return id, nil
}

// newestIDs merges lists of ids, the newest first. A list with as many rows as were asked for
// may go on, so ids below its last one are left out: others might come between.
func newestIDs(lists []Result, asked int) (ids []core.ID) {
	var end core.ID
	for _, l := range lists {
		for _, row := range l.Rows {
			ids = append(ids, core.ID(rowKey(row)))
		}
		if len(l.Rows) == asked {
			end = max(end, ids[len(ids)-1])
		}
	}
	ids = slices.DeleteFunc(ids, func(id core.ID) bool { return id < end })
	slices.SortFunc(ids, func(a, b core.ID) int { return cmp.Compare(b, a) })
	return ids
}
