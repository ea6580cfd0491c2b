package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/eventgateway/gateway/core"
)

// Accept stores an event with its jobs and runs. See core.Inbox. It does not look for
// duplicates first: two processes could look at the same moment. It inserts, and the unique
// indexes skip duplicates. Then it reads which event is stored, unless it is certain that this one
// is: see inquiry.
func (s *Store) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	r, _, err := s.accept(ctx, a, express{})
	return r, err
}

// accept stores an arrival. The jobs of x are stored by a statement of their own. It returns those of
// them that were taken.
func (s *Store) accept(ctx context.Context, a core.Arrival, x express) (receipt core.Receipt, taken []core.TakenJob, err error) {
	stmts, q := s.acceptStmts(x.others(a), slices.Concat(s.linedStmts(a), s.expressStmts(x))...)
	stmts = append(stmts, s.audited(ctx, s.sql.auditAccepted, []any{string(a.Event.ID)})...)
	stmts = append(stmts, s.takenStmts(x)...)
	results, err := s.write(ctx, append(stmts, q.inBatch()...)...)
	if err != nil {
		return core.Receipt{}, nil, fmt.Errorf("accept: %w", err)
	}
	s.floors.jobWritten(a.Event.CreatedAt)
	s.definitions.keep(a.Runs)
	receipt, err = s.receipt(ctx, a, q, stmts, results)
	if err == nil {
		taken, err = s.readTaken(ctx, x, stmts, results, receipt)
	}
	return receipt, taken, err
}

// receipt returns which event is stored for an arrival. results are those of stmts and of q.inBatch.
func (s *Store) receipt(ctx context.Context, a core.Arrival, q inquiry, stmts []Stmt, results []Result) (receipt core.Receipt, err error) {
	if q.settled(stmts, results) {
		return core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}, nil
	}
	err = s.ask(ctx, q, results[len(stmts):], func(answers []Result) (ok bool) {
		receipt, ok = receiptFor(a.Event.ID, answers)
		return ok
	})
	// If the reads never become complete, the arrival may also be a duplicate of an event that
	// was purged in this moment. The caller has to send it again either way.
	if err != nil {
		return core.Receipt{}, fmt.Errorf("accept: %w", outcomeUnknown(err))
	}
	return withJobs(receipt, a), nil
}

// An inquiry is how the event is found that is stored for one or more arrivals.
type inquiry struct {
	reads []Stmt // empty if no arrival can be a duplicate: none has a delivery id or keys

	// afterwards says that the batch without the reads tells whether all events were inserted. That is
	// so if no job has a key, and the database tells an inserted row from one that exists. Then the reads
	// are sent only if an event is a duplicate, or if its batch was sent again after a lost answer.
	afterwards bool
}

// inBatch are the reads that are sent with the INSERTs.
func (q inquiry) inBatch() []Stmt {
	if q.afterwards {
		return nil
	}
	return q.reads
}

// settled reports whether the results of a batch say that all its events were inserted.
func (q inquiry) settled(stmts []Stmt, results []Result) bool {
	if len(q.reads) == 0 {
		return true
	}
	for i, st := range stmts {
		if st.Inserts && results[i].Changed < int64(len(st.Rows)) {
			return false
		}
	}
	return q.afterwards
}

// ask waits until the answers of an inquiry are complete. answers are those of the batch, if it asked.
func (s *Store) ask(ctx context.Context, q inquiry, answers []Result, complete func([]Result) bool) (err error) {
	if q.afterwards {
		if answers, err = s.readBatch(context.WithoutCancel(ctx), q.reads...); err != nil {
			return err
		}
	}
	_, err = s.rereadUntil(ctx, answers, q.reads, complete)
	return err
}

// withJobs returns the receipt of an arrival with the number of its jobs, if all of them are
// stored with their event. Only jobs with keys may be left out, and the answers count those.
func withJobs(r core.Receipt, a core.Arrival) core.Receipt {
	if r.EventID == a.Event.ID && !slices.ContainsFunc(a.Jobs, func(j core.NewJob) bool { return j.Key != "" }) {
		r.Jobs = len(a.Jobs)
	}
	return r
}

// acceptStmts are the statements that store an arrival, and how its event is found. lined are the
// statements that put its jobs into lines.
func (s *Store) acceptStmts(a core.Arrival, lined ...Stmt) (stmts []Stmt, q inquiry) {
	keys := keysOf(a)
	certain := a.Event.DeliveryID == "" && keys == nil
	stmts = make([]Stmt, 0, 2)
	stmts = append(stmts, s.eventStmt(a.Event))
	stmts = append(stmts, s.jobStmts(a, certain)...)
	stmts = append(stmts, lined...)
	stmts = append(stmts, s.runStmts(a)...)
	if certain {
		return stmts, inquiry{}
	}
	// If all jobs have keys, all may be repeats. Then the event is deleted again.
	if len(keys) > 0 && len(keys) == len(a.Jobs) {
		stmts = append(stmts, s.sql.dropBare.on([]any{string(a.Event.ID)}))
	}
	return stmts, inquiry{reads: s.answerStmts(a.Event, keys), afterwards: keys == nil && s.sql.insertEvent.counts}
}

// outcomeUnknown is the error of a read that follows a write, or of a second sending. The error may
// say that this part had no effect; for the whole call the effect is unknown, so the kind is
// Unavailable.
func outcomeUnknown(err error) error {
	if !core.NoEffect(err) {
		return err
	}
	return &core.Refusal{Kind: core.Unavailable, Message: "database unavailable", Cause: errors.New(err.Error())}
}

// keysOf are rows of keyedAs: one for each job that has a key.
func keysOf(a core.Arrival) (rows [][]any) {
	for _, j := range a.Jobs {
		if j.Key != "" {
			rows = append(rows, []any{string(a.Event.ID), string(j.Lane), j.Key})
		}
	}
	return rows
}

// eventStmt inserts an event. Most payloads are text and need no encoding column.
func (s *Store) eventStmt(e core.Event) Stmt {
	if e.Binary {
		return s.sql.insertEncoded.on(append(eventRow(e), inBase64))
	}
	return s.sql.insertEvent.on(eventRow(e))
}

// The positions in eventRow of the columns of the unique index events_delivery.
const (
	eventRowSource     = 1
	eventRowDeliveryID = 6
)

// eventRow returns the values of eventColumns.
func eventRow(e core.Event) []any {
	return []any{string(e.ID), e.Source, e.Type, encodePayload(e), e.ContentType,
		encodeHeaders(e.Headers), orNull(e.DeliveryID), millis(receivedAt(e))}
}

// jobStmts insert the jobs of an arrival, delayed ones by a statement of their own. If the event
// is certain to be stored the rows are plain values, and no job has a key. Otherwise each row is
// joined with its event, so that the jobs of a duplicate are not stored.
func (s *Store) jobStmts(a core.Arrival, certain bool) (stmts []Stmt) {
	add := func(st statement, rows [][]any) {
		if len(rows) > 0 {
			stmts = append(stmts, st.on(rows...))
		}
	}
	ready, later := jobRows(a, certain)
	if certain {
		add(s.sql.insertJob, ready)
		add(s.sql.insertLater, later)
		return stmts
	}
	ready, keyed := withoutKeys(ready)
	later, keyedLater := withoutKeys(later)
	add(s.sql.insertKeylessIf, ready)
	add(s.sql.insertKeylessLaterIf, later)
	add(s.sql.insertJobIf, keyed)
	add(s.sql.insertLaterIf, keyedLater)
	return stmts
}

// withoutKeys separates the rows of jobs without a key from the others.
func withoutKeys(rows [][]any) (keyless, keyed [][]any) {
	hasKey := func(row []any) bool { return row[jobRowKey] != nil }
	if !slices.ContainsFunc(rows, hasKey) {
		return rows, nil
	}
	for _, row := range rows {
		if hasKey(row) {
			keyed = append(keyed, row)
		} else {
			keyless = append(keyless, row)
		}
	}
	return keyless, keyed
}

// jobRows returns the rows of the jobs that are due at once, and of the delayed ones. It leaves out
// the jobs of lines.
func jobRows(a core.Arrival, certain bool) (ready, later [][]any) {
	now := millis(a.Event.CreatedAt)
	ready = make([][]any, 0, len(a.Jobs))
	for _, j := range a.Jobs {
		if j.Line.Key != "" {
			continue
		}
		delayed := a.Due(j).After(a.Event.CreatedAt)
		due := now
		if delayed {
			due = millis(j.DueAt)
		}
		var row []any
		if certain {
			row = []any{string(j.ID), string(a.Event.ID), string(j.Lane), orNull(j.Key), int64(j.MaxAttempts), due, now}
		} else {
			row = []any{string(j.ID), string(j.Lane), orNull(j.Key), int64(j.MaxAttempts), due, now, string(a.Event.ID)}
		}
		if delayed {
			later = append(later, row)
		} else {
			ready = append(ready, row)
		}
	}
	return ready, later
}

// The positions in a row of insertJobIf, and of the three statements like it, of the columns of the
// unique index jobs_key.
const (
	jobRowLane = 1
	jobRowKey  = 2
)

// answerStmts read which event is stored for an arrival, the best answer first: by delivery id
// or by its own id, and then by the keys of its jobs. Jobs are counted only if some have keys:
// see withJobs.
func (s *Store) answerStmts(e core.Event, keys [][]any) []Stmt {
	id := string(e.ID)
	delivered := []any{id, e.Source, e.DeliveryID}
	switch {
	case len(keys) == 0:
		return []Stmt{s.sql.delivered.on(delivered)}
	case e.DeliveryID != "":
		return []Stmt{s.sql.deliveredAs.on(delivered), s.sql.keyedAs.on(keys...)}
	}
	return []Stmt{s.sql.stored.on([]any{id}), s.sql.keyedAs.on(keys...)}
}

// receiptFor reads the answers: the arrival's own event if it is stored, else the one with its
// delivery id, else the oldest with one of its keys. found is false if there is none of these.
func receiptFor(own core.ID, answers []Result) (core.Receipt, bool) {
	for _, answer := range answers {
		var first core.ID
		for _, row := range answer.Rows {
			if core.ID(textOf(row[answerArrival])) != own {
				continue // a row for another caller, whose batch was merged
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

// The columns of stored, delivered, delivered_as and keyed_as: an arrival, the event that is stored for
// it, and how many jobs came with that event.
const (
	answerArrival = iota
	answerEvent
	answerJobs
)

// inboxSQL are the statements of an Accept.
type inboxSQL struct {
	insertEvent, insertEncoded, dropBare               statement
	insertJob, insertJobIf, insertLater, insertLaterIf statement
	insertKeylessIf, insertKeylessLaterIf              statement
	stored, delivered, deliveredAs, keyedAs            statement
}

func newInboxSQL(d Dialect) inboxSQL {
	return inboxSQL{
		insertEvent: d.counting(writing("insert_event", d.insertIfAbsent("events", eventColumns,
			`r.id, r.source, r.type, r.payload, r.content_type, r.headers, r.delivery_id, r#created_at`, "", "", "id"))),
		insertEncoded: d.counting(writing("insert_event_encoded", d.insertIfAbsent("events", eventStored,
			`r.id, r.source, r.type, r.payload, r.content_type, r.headers, r.delivery_id, r#created_at, r.encoding`, "", "", "id"))),

		insertJob:   uncounted("insert_jobs", d.insertOnce("jobs", jobColumns, newJobs("r.event_id", core.Available), "", "")),
		insertLater: uncounted("insert_scheduled_jobs", d.insertOnce("jobs", jobColumns, newJobs("r.event_id", core.Scheduled), "", "")),

		// A row without its event is left out, since the join finds none.
		insertJobIf: writing("insert_jobs_if", d.insertIfAbsent("jobs", jobColumns, newJobs("events.id", core.Available),
			"events{use PRIMARY}", `events.id = r.event_id`, "id")),
		insertLaterIf: writing("insert_scheduled_jobs_if", d.insertIfAbsent("jobs", jobColumns, newJobs("events.id", core.Scheduled),
			"events{use PRIMARY}", `events.id = r.event_id`, "id")),
		insertKeylessIf: writing("insert_keyless_jobs_if", d.insertOnce("jobs", jobColumns, newJobs("events.id", core.Available),
			"events{use PRIMARY}", `events.id = r.event_id`)),
		insertKeylessLaterIf: writing("insert_keyless_scheduled_jobs_if", d.insertOnce("jobs", jobColumns, newJobs("events.id", core.Scheduled),
			"events{use PRIMARY}", `events.id = r.event_id`)),

		// An event whose jobs all repeat known keys is deleted again. Only the INSERTs tell for
		// certain which keys are known.
		dropBare: writing("drop_bare_event", d.deleteRows("events", `events.id = r.id AND `+d.unreferenced())),

		// The event that answers for an arrival: its own one, the one with its delivery id, or
		// the one of the job with its key. jobs is 0 in the last case, a duplicate, and where
		// the number needs no count.
		stored: reading("stored", d.selectRows(`events.id AS arrival, events.id AS event, `+d.jobCount()+` AS jobs`, "events", `events.id = r.id`)),
		delivered: reading("delivered", d.selectRows(`r.id AS arrival, events.id AS event, 0 AS jobs`,
			"events", `events.source = r.source AND events.delivery_id = r.delivery_id`)),
		deliveredAs: reading("delivered_as", d.selectRows(`r.id AS arrival, events.id AS event, `+d.jobCount()+` AS jobs`,
			"events", `events.source = r.source AND events.delivery_id = r.delivery_id`)),
		keyedAs: reading("keyed_as", d.selectRows(`r.id AS arrival, jobs.event_id AS event, 0 AS jobs`,
			"jobs", `jobs.lane = r.lane AND jobs.job_key = r.job_key`)),
	}
}

// newJobs are the values of new jobs for jobColumns.
func newJobs(event string, status core.Status) string {
	return `r.id, ` + event + `, r.lane, r.job_key, '` + string(status) + `', 0, r#max_attempts, r#due_at, NULL, '', r#created_at, NULL`
}
