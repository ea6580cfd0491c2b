package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Events lists events. See core.Ledger.
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

// An eventListing is a statement that goes through events in the order of their ids: all,
// those of a source or those of a source and a type. Among a million, one source that has
// been quiet for long took a second and a half to be found by the primary key.
type eventListing struct{ name, all, bySource, byTypeAndSource string }

func (d Dialect) eventListing(name, columns string) eventListing {
	from := func(index, condition string) string {
		return d.sql(`SELECT ` + columns + ` FROM events{use ` + index + `} WHERE ` + condition)
	}
	return eventListing{
		name:            name,
		all:             from("PRIMARY", `id >= ? AND id < ?`),
		bySource:        from("events_by_source", `{from source} AND {below source}`),
		byTypeAndSource: from("events_by_kind", `{from type, source} AND {below type, source}`),
	}
}

// selected reads what a filter selects, from an id on and below another one, up or DESC.
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

// ofOneSource is a filter as those by which an index can go: that of a type without a
// source is one for each source which has sent such events.
func (s *Store) splitBySource(ctx context.Context, f core.EventFilter) (filters []core.EventFilter, err error) {
	if f.Type == "" || f.Source != "" {
		return []core.EventFilter{f}, nil
	}
	sources, err := s.distinct(ctx, s.sql.sourcesOf, f.Type)
	for _, source := range sources {
		if f.Source = source; source != core.AlertSource {
			filters = append(filters, f)
		}
	}
	return filters, err
}

// aside is how far the time in an event's id may be from when the event was received, as
// [receivedAt] sees to: it is made once the request has been read, which takes half a
// minute at most.
const idTimeSkew = time.Minute

// receivedAt is when an event was received. If its id is of a much later time, the clock was
// set back while this process lived, whose ids grow on as if it had not been; then it is
// the time in the id, so that events are in one order and those of a time are found.
func receivedAt(e core.Event) time.Time {
	if made := e.ID.Time(); made.Sub(e.CreatedAt) > idTimeSkew {
		return made
	}
	return e.CreatedAt
}

// selection lists what a filter selects, from an id on and below another one. Since the
// times in ids are close to when the events were received, what is long before or after
// is not looked at.
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

// between is the listing by an index that has nothing else.
func (l eventListing) indexQuery(f core.EventFilter, low, high string) *query {
	q := &query{name: l.name}
	switch {
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

// nthChunk is how many ids nthOfType reads at a time.
const nthChunk = 20_000

// nthOfType finds an event by its place from the newest among those of several sources. It
// goes through their ids: of each it reads the same number, and goes on below the first of
// the last ones where there are more.
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

// newestIDs are the ids of some lists, the newest first, down to where the first of those
// ends that have as many as were asked for.
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
