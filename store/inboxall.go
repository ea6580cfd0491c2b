package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/eventgateway/gateway/core"
)

// AcceptAll stores arrivals in one batch. See core.Inbox. Each statement of Accept is sent
// once, on the rows of all arrivals, so that the number of statements does not grow with the
// number of arrivals.
func (s *Store) AcceptAll(ctx context.Context, arrivals []core.Arrival) ([]core.Receipt, error) {
	firsts, repeats := splitRepeats(arrivals)
	var each []Stmt
	receipts := make(map[core.ID]core.Receipt, len(firsts))
	all := inquiry{afterwards: true}
	var unanswered []core.ID
	for _, a := range firsts {
		stmts, q := s.acceptStmts(a)
		each = append(each, stmts...)
		if len(q.reads) == 0 {
			receipts[a.Event.ID] = core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}
			continue
		}
		unanswered = append(unanswered, a.Event.ID)
		all.reads, all.afterwards = append(all.reads, q.reads...), all.afterwards && q.afterwards
	}
	if len(each) == 0 {
		return nil, nil
	}
	all.reads = s.sql.mergeByName(all.reads)
	stmts := s.sql.withLined(s.sql.mergeByName(each), s.linedStmts(firsts...))
	if err := s.acceptMany(ctx, stmts, all, unanswered, receipts); err != nil {
		return nil, fmt.Errorf("accept %d events: %w", len(arrivals), err)
	}
	for _, a := range firsts {
		s.floors.jobWritten(a.Event.CreatedAt)
		s.definitions.keep(a.Runs)
		receipts[a.Event.ID] = withJobs(receipts[a.Event.ID], a)
	}
	// The receipts come in the order of the arrivals. A repeat within the call gets the event
	// of the first.
	inOrder := make([]core.Receipt, len(arrivals))
	for i, a := range arrivals {
		if first, ok := repeats[a.Event.ID]; ok {
			inOrder[i] = core.Receipt{EventID: receipts[first].EventID, Duplicate: true}
		} else {
			inOrder[i] = receipts[a.Event.ID]
		}
	}
	return inOrder, nil
}

// acceptMany sends the statements and adds the receipts of the arrivals that wait for one, unanswered.
func (s *Store) acceptMany(ctx context.Context, stmts []Stmt, q inquiry, unanswered []core.ID, receipts map[core.ID]core.Receipt) error {
	results, err := s.write(ctx, slices.Concat(stmts, q.inBatch())...)
	if err != nil {
		return err
	}
	if q.settled(stmts, results) {
		for _, id := range unanswered {
			receipts[id] = core.Receipt{EventID: id}
		}
		return nil
	}
	err = s.ask(ctx, q, results[len(stmts):], func(answers []Result) bool {
		addReceipts(receipts, answers)
		return !slices.ContainsFunc(unanswered, func(id core.ID) bool { return receipts[id].EventID == "" })
	})
	if err != nil {
		return outcomeUnknown(err) // the events that are no duplicates are stored
	}
	return nil
}

// splitRepeats separates arrivals that repeat the delivery id of an earlier arrival in the same
// call, and returns the earlier one's id for each. The database cannot tell these: if the
// earlier arrival is dropped because all its keys are known, its delivery id is found nowhere,
// and the repeat would be stored. An arrival that is in the call twice is one of firsts once.
func splitRepeats(arrivals []core.Arrival) (firsts []core.Arrival, repeats map[core.ID]core.ID) {
	type delivery struct{ source, id string }
	seen, repeats := make(map[delivery]core.ID, len(arrivals)), map[core.ID]core.ID{}
	ids := make(map[core.ID]bool, len(arrivals))
	for _, a := range arrivals {
		if ids[a.Event.ID] {
			continue
		}
		ids[a.Event.ID] = true
		d := delivery{a.Event.Source, a.Event.DeliveryID}
		if first, ok := seen[d]; ok && d.id != "" {
			repeats[a.Event.ID] = first
			continue
		}
		seen[d] = a.Event.ID
		firsts = append(firsts, a)
	}
	return firsts, repeats
}

// acceptOrder returns the statements of Accept in their order, with the columns by which the
// rows of many arrivals are sorted. These are the columns of unique indexes. So two batches
// with the same keys lock them in one order and cannot deadlock. The sort is stable: of rows
// with equal keys, that of the earliest arrival is stored.
func (q *statements) acceptOrder() []sortedStatement {
	return []sortedStatement{
		{q.insertEvent, []int{eventRowSource, eventRowDeliveryID}},
		{q.insertEncoded, []int{eventRowSource, eventRowDeliveryID}},
		{q.insertJob, nil},
		{q.insertLater, nil},
		{q.insertJobIf, []int{jobRowLane, jobRowKey}},
		{q.insertLaterIf, []int{jobRowLane, jobRowKey}},
		{q.insertKeylessIf, nil},
		{q.insertKeylessLaterIf, nil},
		{q.insertDefinition, []int{keyColumn}},
		{q.insertRun, nil},
		{q.insertFirst, nil},
		{q.dropBare, []int{keyColumn}},
		{q.delivered, nil},
		{q.deliveredAs, nil},
		{q.stored, nil},
		{q.keyedAs, nil},
	}
}

// withLined adds the statements that store jobs of lines to merged ones, behind the INSERTs of
// events and of other jobs.
func (q *statements) withLined(stmts, lined []Stmt) []Stmt {
	inserts := []string{q.insertEvent.name, q.insertEncoded.name, q.insertJob.name, q.insertLater.name, q.insertJobIf.name, q.insertLaterIf.name,
		q.insertKeylessIf.name, q.insertKeylessLaterIf.name}
	at := slices.IndexFunc(stmts, func(s Stmt) bool { return !slices.Contains(inserts, s.Name) })
	if at < 0 {
		at = len(stmts)
	}
	return slices.Insert(stmts, at, lined...)
}

// A sortedStatement is a statement and the columns by which its rows are sorted.
type sortedStatement struct {
	statement
	key []int
}

// mergeByName merges statements with the same name into one, and sorts its rows.
func (q *statements) mergeByName(all []Stmt) (stmts []Stmt) {
	byName := map[string]*Stmt{}
	for _, s := range all {
		if one := byName[s.Name]; one != nil {
			one.Rows = append(one.Rows, s.Rows...)
		} else {
			s.Rows = slices.Clone(s.Rows)
			byName[s.Name] = &s
		}
	}
	for _, a := range q.acceptOrder() {
		s := byName[a.name]
		if s == nil {
			continue
		}
		slices.SortStableFunc(s.Rows, func(x, y []any) int {
			for _, i := range a.key {
				if c := cmp.Compare(textOf(x[i]), textOf(y[i])); c != 0 {
					return c
				}
			}
			return 0
		})
		if s.SortedBy > 0 { // definitions: many runs have the same one
			s.Rows = slices.CompactFunc(s.Rows, func(x, y []any) bool { return rowKey(x) == rowKey(y) })
		}
		stmts = append(stmts, *s)
	}
	return stmts
}

// addReceipts adds a receipt for each arrival that has none yet, by the rules of receiptFor.
// Earlier answers take precedence over later ones.
func addReceipts(receipts map[core.ID]core.Receipt, answers []Result) {
	for _, answer := range answers {
		said := map[core.ID]core.Receipt{}
		for _, row := range answer.Rows {
			own, id := core.ID(textOf(row[answerArrival])), core.ID(textOf(row[answerEvent]))
			switch r, ok := said[own]; {
			case id == own:
				said[own] = core.Receipt{EventID: own, Jobs: intOf(row[answerJobs])}
			case !ok || r.Duplicate && id < r.EventID:
				said[own] = core.Receipt{EventID: id, Duplicate: true}
			}
		}
		for own, r := range said {
			if receipts[own].EventID == "" {
				receipts[own] = r
			}
		}
	}
}
