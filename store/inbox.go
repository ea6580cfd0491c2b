package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventgateway/gateway/core"
)

// Accept stores an event, its jobs and its runs. See core.Inbox. An arrival that nothing
// could be a duplicate of needs no answer from the database; the others read
// back which event is stored for them.
func (s *Store) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	stmts, reads := s.acceptStmts(a)
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return core.Receipt{}, fmt.Errorf("accept: %w", err)
	}
	s.floors.lower(a.Event.CreatedAt)
	s.definitions.keep(a.Runs)
	if reads == 0 {
		return core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}, nil
	}
	var receipt core.Receipt
	from := len(results) - reads
	_, err = s.eventually(ctx, results[from:], stmts[from:], func(answers []Result) (ok bool) {
		receipt, ok = receiptFor(a.Event.ID, answers)
		return ok
	})
	if err != nil { // or a first one that kept this out went away before it could be read
		return core.Receipt{}, fmt.Errorf("accept: %w", written(err))
	}
	return receipt, nil
}

// acceptStmts store an arrival. The last ones read which event is stored for it; there are
// none if nothing could be a duplicate of it.
func (s *Store) acceptStmts(a core.Arrival) (stmts []Stmt, reads int) {
	keys := keysOf(a)
	certain := a.Event.DeliveryID == "" && keys == nil
	stmts = make([]Stmt, 0, 2)
	stmts = append(stmts, s.eventStmt(a.Event))
	if len(a.Jobs) > 0 {
		stmts = append(stmts, s.jobsStmt(a, certain))
	}
	stmts = append(stmts, s.runStmts(a)...)
	if certain {
		return stmts, 0
	}
	if len(keys) > 0 && len(keys) == len(a.Jobs) {
		stmts = append(stmts, Stmt{Name: "drop_bare_event", SQL: s.sql.dropBare, Rows: [][]any{{string(a.Event.ID)}}})
	}
	answers := s.answerStmts(a.Event, keys)
	return append(stmts, answers...), len(answers)
}

// written is the error of a read that follows on a write. That nothing came of the read says
// nothing of the write.
func written(err error) error {
	if !core.NoEffect(err) {
		return err
	}
	return &core.Refusal{Kind: core.Unavailable, Message: "database unavailable", Cause: errors.New(err.Error())}
}

// keysOf are the rows of keyedAs: one for each job that has a key.
func keysOf(a core.Arrival) (rows [][]any) {
	for _, j := range a.Jobs {
		if j.Key != "" {
			rows = append(rows, []any{string(a.Event.ID), string(j.Lane), j.Key})
		}
	}
	return rows
}

func (s *Store) eventStmt(e core.Event) Stmt {
	if e.Binary {
		return Stmt{Name: "insert_event_encoded", SQL: s.sql.insertEncoded, Rows: [][]any{append(eventRow(e), inBase64)}}
	}
	return Stmt{Name: "insert_event", SQL: s.sql.insertEvent, Rows: [][]any{eventRow(e)}}
}

// eventRow is eventColumns.
func eventRow(e core.Event) []any {
	return []any{string(e.ID), e.Source, e.Type, encodePayload(e), e.ContentType,
		encodeHeaders(e.Headers), orNull(e.DeliveryID), millis(receivedAt(e))}
}

// jobsStmt inserts jobs: as they are if their event is certain to be stored, else
// only beside that event.
func (s *Store) jobsStmt(a core.Arrival, certain bool) Stmt {
	now := millis(a.Event.CreatedAt)
	rows := make([][]any, len(a.Jobs))
	for i, j := range a.Jobs {
		if certain {
			rows[i] = []any{string(j.ID), string(a.Event.ID), string(j.Lane), orNull(j.Key), int64(j.MaxAttempts), now, now}
		} else {
			rows[i] = []any{string(j.ID), string(j.Lane), orNull(j.Key), int64(j.MaxAttempts), now, now, string(a.Event.ID)}
		}
	}
	if certain {
		return Stmt{Name: "insert_jobs", SQL: s.sql.insertJob, Rows: rows}
	}
	return Stmt{Name: "insert_jobs_if", SQL: s.sql.insertJobIf, Rows: rows}
}

// answerStmts read which event is stored for an arrival, the best answer first.
func (s *Store) answerStmts(e core.Event, keys [][]any) []Stmt {
	id, stmts := string(e.ID), make([]Stmt, 0, 2)
	if e.DeliveryID != "" {
		stmts = append(stmts, Stmt{Name: "delivered_as", SQL: s.sql.deliveredAs, Rows: [][]any{{id, e.Source, e.DeliveryID}}, Reads: true})
	} else {
		stmts = append(stmts, Stmt{Name: "stored", SQL: s.sql.stored, Rows: [][]any{{id}}, Reads: true})
	}
	if len(keys) > 0 {
		stmts = append(stmts, Stmt{Name: "keyed_as", SQL: s.sql.keyedAs, Rows: keys, Reads: true})
	}
	return stmts
}

// receiptFor reads the answers: the arrival's own event if it is stored, else the
// one with its delivery id, else the first with one of its keys.
func receiptFor(own core.ID, answers []Result) (core.Receipt, bool) {
	for _, answer := range answers {
		var first core.ID
		for _, row := range answer.Rows {
			if core.ID(str(row[0])) != own {
				continue // it shared a commit
			}
			id := core.ID(str(row[1]))
			if id == own {
				return core.Receipt{EventID: own, Jobs: whole(row[2])}, true
			}
			if first == "" || id < first {
				first = id
			}
		}
		if first != "" {
			return core.Receipt{EventID: first, Duplicate: true}, true
		}
	}
	return core.Receipt{}, false
}
