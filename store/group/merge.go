package group

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/store"
)

// Mergeable reports whether a batch may be run as one with others: it writes, all its
// statements act on rows, and none has [store.Stmt.NoMerge] set.
func Mergeable(stmts []store.Stmt) bool {
	writes := false
	for _, s := range stmts {
		if s.Rows == nil || s.NoMerge {
			return false
		}
		writes = writes || !s.Reads
	}
	return writes
}

// MergedCommit writes a group as one batch. It runs the batch with a deadline of its own,
// since the callers of a group have different ones: each of them gives up by its own time.
func MergedCommit(timeout time.Duration, run func(context.Context, []store.Stmt) ([]store.Result, error)) Commit {
	return func(batches []*Batch) error {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		m := Merge(batches)
		results, err := run(ctx, m.Stmts)
		if err == nil {
			m.Share(results)
		}
		return err
	}
}

// A Merged is one batch made of several. Statements with the same text become one
// statement with the rows of all, so that many accepts are one INSERT of events and one
// of jobs. The statements of each batch stay in their order; statements of other batches
// may stand between them. Sorted rows are sorted again.
type Merged struct {
	Stmts []store.Stmt

	batches []*Batch
	of      [][]int // for each batch, where its statements are
}

// Merge merges batches that are [Mergeable].
func Merge(batches []*Batch) Merged {
	var all []*place
	places := make([][]*place, len(batches))
	for i, b := range batches {
		at := 0
		for _, s := range b.Stmts {
			p := slices.IndexFunc(all[at:], func(p *place) bool { return p.stmt.SQL == s.SQL })
			if p < 0 {
				p = 0
				all = slices.Insert(all, at, &place{stmt: store.Stmt{Name: s.Name, SQL: s.SQL, Reads: s.Reads, Returns: s.Returns, SortedBy: s.SortedBy, Uncounted: s.Uncounted}})
			}
			at += p + 1
			in := all[at-1]
			in.stmt.Rows = append(in.stmt.Rows, s.Rows...)
			in.stmt.Uncounted = in.stmt.Uncounted && s.Uncounted
			places[i] = append(places[i], in)
		}
	}
	m := Merged{batches: batches}
	for i, p := range all {
		p.index = i
		p.sort()
		m.Stmts = append(m.Stmts, p.stmt)
	}
	for _, ps := range places {
		at := make([]int, len(ps))
		for i, p := range ps {
			at[i] = p.index
		}
		m.of = append(m.of, at)
	}
	return m
}

// A place is the position of a statement in a merged batch. It moves until all batches
// are in.
type place struct {
	stmt  store.Stmt
	index int
}

// sort brings rows of several batches into the order that each of them had.
func (p *place) sort() {
	if by := p.stmt.SortedBy - 1; by >= 0 {
		slices.SortStableFunc(p.stmt.Rows, func(a, b []any) int { return strings.Compare(a[by].(string), b[by].(string)) })
	}
}

// Share hands the results of the merged statements out to the batches.
func (m Merged) Share(results []store.Result) {
	for i, b := range m.batches {
		for j, at := range m.of[i] {
			b.Results[j] = share(results[at], len(m.Stmts[at].Rows), len(b.Stmts[j].Rows))
		}
	}
}

// share returns the part of a result for a batch that brought own rows, of all rows together.
// Rows that were read go to every batch, which knows its own by their ids. The number of
// changed rows can be split between batches only if every row changed something.
func share(r store.Result, all, own int) store.Result {
	switch {
	case r.Changed >= int64(all):
		r.Changed = int64(own)
	case all != own:
		r.Changed = 0
	}
	return r
}
