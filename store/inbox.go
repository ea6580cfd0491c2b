package store

import (
	"context"
	"fmt"

	"github.com/eventgateway/gateway/core"
)

// Accept stores an event and its jobs. See core.Inbox. An arrival that nothing
// could be a duplicate of needs no answer from the database; the others read
// back which event is stored for them.
func (s *Store) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	keys := keysOf(a.Jobs)
	certain := a.Event.DeliveryID == "" && keys == nil
	stmts := make([]Stmt, 0, len(a.Jobs)+2)
	stmts = append(stmts, s.eventStmt(a, keys))
	for _, j := range a.Jobs {
		stmts = append(stmts, s.jobStmt(a.Event, j, certain))
	}
	if !certain {
		stmts = append(stmts, Stmt{Name: "accepted_by", SQL: s.sql.acceptedBy, Reads: true,
			Args: []any{string(a.Event.ID), a.Event.Source, a.Event.DeliveryID, list(keys)}})
	}
	results, err := s.write(ctx, stmts...)
	switch {
	case err != nil:
		return core.Receipt{}, fmt.Errorf("accept: %w", err)
	case certain:
		return core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}, nil
	}
	return receiptFor(a.Event.ID, results[len(results)-1].Rows), nil
}

// keysOf lists lane and key of the jobs that have one; nil if none has.
func keysOf(jobs []core.NewJob) [][2]string {
	var keys [][2]string
	for _, j := range jobs {
		if j.Key != "" {
			keys = append(keys, [2]string{string(j.Lane), j.Key})
		}
	}
	return keys
}

func (s *Store) eventStmt(a core.Arrival, keys [][2]string) Stmt {
	e := a.Event
	st := Stmt{Name: "insert_event", SQL: s.sql.insertEvent, Args: []any{
		string(e.ID), e.Source, e.Type, string(e.Payload), e.ContentType,
		encodeHeaders(e.Headers), orNull(e.DeliveryID), millis(e.CreatedAt)}}
	if len(keys) > 0 && len(keys) == len(a.Jobs) {
		st.Name, st.SQL = "insert_keyed_event", s.sql.insertKeyedEvent
		st.Args = append(st.Args, list(keys))
	}
	return st
}

// jobStmt inserts a job: as it is if its event is certain to be stored, else only
// beside that event.
func (s *Store) jobStmt(e core.Event, j core.NewJob, certain bool) Stmt {
	now := millis(e.CreatedAt)
	if certain {
		return Stmt{Name: "insert_job", SQL: s.sql.insertJob, Args: []any{
			string(j.ID), string(e.ID), string(j.Lane), orNull(j.Key), int64(j.MaxAttempts), now, now}}
	}
	return Stmt{Name: "insert_job_if", SQL: s.sql.insertJobIf, Args: []any{
		string(j.ID), string(j.Lane), orNull(j.Key), int64(j.MaxAttempts), now, now, string(e.ID)}}
}

// receiptFor reads the answer of acceptedBy: the arrival's own event if it is
// stored, else the one with its delivery id, else the first with one of its keys.
func receiptFor(own core.ID, rows [][]any) core.Receipt {
	var first core.ID
	rank := 3
	for _, row := range rows {
		how, id := whole(row[0]), core.ID(str(row[1]))
		if how == 0 {
			return core.Receipt{EventID: own, Jobs: whole(row[2])}
		}
		if how < rank || how == rank && id < first {
			rank, first = how, id
		}
	}
	return core.Receipt{EventID: first, Duplicate: true}
}
