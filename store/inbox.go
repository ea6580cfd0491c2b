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
	s.floors.jobWritten(a.Event.CreatedAt)
	s.definitions.keep(a.Runs)
	if reads == 0 {
		return core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}, nil
	}
	var receipt core.Receipt
	from := len(results) - reads
	_, err = s.rereadUntil(ctx, results[from:], stmts[from:], func(answers []Result) (ok bool) {
		receipt, ok = receiptFor(a.Event.ID, answers)
		return ok
	})
	if err != nil { // or a first one that kept this out went away before it could be read
		return core.Receipt{}, fmt.Errorf("accept: %w", outcomeUnknown(err))
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
		stmts = append(stmts, s.sql.dropBare.on([]any{string(a.Event.ID)}))
	}
	answers := s.answerStmts(a.Event, keys)
	return append(stmts, answers...), len(answers)
}

// written is the error of a read that follows on a write. That nothing came of the read says
// nothing of the write.
func outcomeUnknown(err error) error {
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
		return s.sql.insertEncoded.on(append(eventRow(e), inBase64))
	}
	return s.sql.insertEvent.on(eventRow(e))
}

// The places in eventRow of the keys of an event.
const (
	eventRowSource     = 1
	eventRowDeliveryID = 6
)

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
		return s.sql.insertJob.on(rows...)
	}
	return s.sql.insertJobIf.on(rows...)
}

// The places of the keys of jobs in the rows of insertJobIf.
const (
	jobRowLane = 1
	jobRowKey  = 2
)

// answerStmts read which event is stored for an arrival, the best answer first.
func (s *Store) answerStmts(e core.Event, keys [][]any) []Stmt {
	id, stmts := string(e.ID), make([]Stmt, 0, 2)
	if e.DeliveryID != "" {
		stmts = append(stmts, s.sql.deliveredAs.on([]any{id, e.Source, e.DeliveryID}))
	} else {
		stmts = append(stmts, s.sql.stored.on([]any{id}))
	}
	if len(keys) > 0 {
		stmts = append(stmts, s.sql.keyedAs.on(keys...))
	}
	return stmts
}

// receiptFor reads the answers: the arrival's own event if it is stored, else the
// one with its delivery id, else the first with one of its keys.
func receiptFor(own core.ID, answers []Result) (core.Receipt, bool) {
	for _, answer := range answers {
		var first core.ID
		for _, row := range answer.Rows {
			if core.ID(textOf(row[answerArrival])) != own {
				continue // it shared a commit
			}
			id := core.ID(textOf(row[answerEvent]))
			if id == own {
				return core.Receipt{EventID: own, Jobs: intOf(row[answerJobs])}, true
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

// What the statements of inboxSQL that read return: an arrival, the event that is stored for it,
// and how many jobs came with that.
const (
	answerArrival = iota
	answerEvent
	answerJobs
)

// jobCount is how many jobs came with an event: a run came with one, and makes more.
const jobCount = `((SELECT COUNT(*) FROM jobs WHERE jobs.event_id = events.id AND NOT EXISTS (SELECT 1 FROM steps WHERE steps.id = jobs.id)) +
		(SELECT COUNT(*) FROM runs WHERE runs.event_id = events.id))`

type inboxSQL struct {
	insertEvent, insertEncoded, insertJob, insertJobIf, dropBare statement
	stored, deliveredAs, keyedAs                                 statement
}

func newInboxSQL(d Dialect) inboxSQL {
	return inboxSQL{
		insertEvent: writing("insert_event", d.insertIfAbsent("events", eventColumns,
			`r.id, r.source, r.type, r.payload, r.content_type, r.headers, r.delivery_id, r#created_at`, "", "", "id")),
		insertEncoded: writing("insert_event_encoded", d.insertIfAbsent("events", eventStored,
			`r.id, r.source, r.type, r.payload, r.content_type, r.headers, r.delivery_id, r#created_at, r.encoding`, "", "", "id")),

		insertJob: writing("insert_jobs", d.insertIfAbsent("jobs", jobColumns,
			`r.id, r.event_id, r.lane, r.job_key, 'available', 0, r#max_attempts, r#due_at, NULL, '', r#created_at, NULL`, "", "", "id")),

		// The same, only beside its event: where a duplicate's event was left out, this
		// finds none to join.
		insertJobIf: writing("insert_jobs_if", d.insertIfAbsent("jobs", jobColumns,
			`r.id, events.id, r.lane, r.job_key, 'available', 0, r#max_attempts, r#due_at, NULL, '', r#created_at, NULL`,
			"events{use PRIMARY}", `events.id = r.event_id`, "id")),

		// An arrival whose jobs all have keys that are known is not stored. Whether they
		// are is known for certain only once they have been inserted, or not.
		dropBare: writing("drop_bare_event", d.deleteRows("events", `events.id = r.id AND `+unreferenced)),

		// Which stored event answers for an arrival: its own, or the one with its
		// delivery id, or the one a job with its key belongs to.
		stored: reading("stored", d.selectRows(`events.id AS arrival, events.id AS event, `+jobCount+` AS jobs`, "events", `events.id = r.id`)),
		deliveredAs: reading("delivered_as", d.selectRows(`r.id AS arrival, events.id AS event, `+jobCount+` AS jobs`,
			"events", `events.source = r.source AND events.delivery_id = r.delivery_id`)),
		keyedAs: reading("keyed_as", d.selectRows(`r.id AS arrival, jobs.event_id AS event, 0 AS jobs`,
			"jobs", `jobs.lane = r.lane AND jobs.job_key = r.job_key`)),
	}
}
