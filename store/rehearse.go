package store

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Sizes in bytes of a rehearsed event. Its payload needs database pages of its own, and its
// headers need space in the page of its row. So the rehearsal fails on a full disk, even if the
// tables have pages with space for small rows.
const (
	rehearsedPayload = 16 << 10
	rehearsedHeaders = 1800
)

// rehearsedText is random text, so that no database compresses it. It is made once in a
// process.
var rehearsedText = sync.OnceValue(func() string {
	b := make([]byte, rehearsedPayload*3/4)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
})

// A rehearsal is work on rows that are deleted in the same batch: an event with one job, which
// is the first step of a run. It sends the statements of the real work.
type rehearsal struct {
	*Store
	now                   time.Time
	event, job, run, next core.ID
	lane                  core.Lane
}

// Rehearse does some work and deletes its rows. See core.Upkeep. After an outage it tells
// whether that work would succeed, without risking an event. Writes and deletes are one batch,
// so that no other process sees the rows.
func (s *Store) Rehearse(ctx context.Context, w core.Work) error {
	id := s.leases.Next
	r := rehearsal{Store: s, now: s.clock(), event: id(), job: id(), run: id(), next: id()}
	r.lane = core.Lane("rehearsal/" + string(r.event))
	_, err := s.conn.Batch(ctx, r.stmts(w)...)
	if err == nil && ctx.Err() != nil {
		// A server that waits for its standby may answer a canceled commit as if it had
		// succeeded.
		err = core.Refuse(core.Unavailable, "the database did not answer in time")
	}
	if err != nil {
		return fmt.Errorf("rehearse %s: %w", w, err)
	}
	return nil
}

// stmts are the statements of one kind of work, with the DELETEs of its rows at the end.
func (r *rehearsal) stmts(w core.Work) []Stmt {
	switch w {
	case core.Deliveries:
		return append(append(r.intake(), r.deliveries()...), r.undo("gates", "attempts", "steps", "runs", "jobs", "events")...)
	case core.Transitions:
		return append(append(r.intake(), r.transitions()...),
			r.undo("callbacks", "step_texts", "history", "attempts", "steps", "runs", "jobs", "events")...)
	case core.Turns:
		return append(r.turnStmts(r.now, string(r.lane), string(r.leases.Next()), 0), r.undo("turns")...)
	}
	return append(r.intake(), r.undo("steps", "runs", "jobs", "events")...)
}

// intake are the statements of an Accept, without the definition, since definitions are never
// deleted. The arrival has a delivery id and a key, so that all unique indexes are written.
func (r *rehearsal) intake() []Stmt {
	text := rehearsedText()
	a := core.Arrival{
		Event: core.Event{ID: r.event, Source: "rehearsal", Type: "rehearsal", Payload: []byte(text), DeliveryID: string(r.event),
			Headers: map[string]string{"rehearsal": text[:rehearsedHeaders]}, CreatedAt: r.now},
		Jobs: []core.NewJob{{ID: r.job, Lane: r.lane, Key: string(r.event), MaxAttempts: 1}},
	}
	return append([]Stmt{r.eventStmt(a.Event), r.jobStmts(a, false)[0],
		r.sql.insertRun.on([]any{string(r.run), "rehearsal", "", "first", nil, string(r.job)}),
		r.sql.insertFirst.on([]any{string(r.job), "http", string(r.run)}),
	}, r.answerStmts(a.Event, keysOf(a))...)
}

// deliveries are the statements of a Take and a Settle. The attempt fails, so that the gate is
// written too.
func (r *rehearsal) deliveries() []Stmt {
	t := takeBatch{Store: r.Store, now: r.now, lease: string(r.leases.Next()), places: make([]stmtPlaces, 1),
		quotas: []core.Quota{{Lane: r.lane, N: 1, Hold: time.Minute}}}
	t.buildStmts()
	settle, _, _ := r.settleStmts([]core.Outcome{{JobID: r.job, Lease: core.Lease(t.lease), Status: core.Dead, At: r.now, Lane: r.lane,
		Verdict: core.Failure, Attempt: core.Attempt{Number: 1, StartedAt: r.now}}})
	return append(t.stmts, settle...)
}

// transitions are the statements of a Transit: the first step ends and the next one begins. The
// attempt has an error, so that it is a row.
func (r *rehearsal) transitions() []Stmt {
	state := []byte(`"` + rehearsedText() + `"`)
	return r.transitStmts([]core.Transition{{
		Mark: r.leases.Next(),
		Run:  core.Run{ID: r.run, Workflow: "rehearsal", Status: core.RunRunning, Epoch: 1, Seq: 2, Step: "next", StartedAt: r.now},
		Entries: []core.Entry{
			{Seq: 1, At: r.now, Epoch: 1, Type: core.EntryStarted},
			{Seq: 2, At: r.now, Epoch: 1, Type: core.EntryWaiting, Path: "next"},
		},
		Apart:    true,
		New:      []core.Step{{ID: r.next, RunID: r.run, Epoch: 1, Path: "next", Name: "next", Type: "callback", Status: core.StepReady, State: state, StartedAt: r.now}},
		Changed:  []core.StepChange{{ID: r.job, Status: core.StepSucceeded, Attempt: 1, Output: state, FinishedAt: r.now}},
		Jobs:     []core.StepJob{{ID: r.next, DueAt: r.now}},
		JobsEnd:  []core.JobChange{{ID: r.job, Status: core.Completed, FinishedAt: r.now}},
		Attempts: []core.AttemptRecord{{JobID: r.job, Lease: core.Lease(r.event), Attempt: core.Attempt{Number: 1, Error: "rehearsal", StartedAt: r.now}}},
		Tokens:   []core.Token{{Hash: string(r.event), StepID: r.next, ExpiresAt: r.now}},
	}})
}

// undo deletes the rows of a rehearsal from tables, by the first column of their primary keys.
func (r *rehearsal) undo(tables ...string) (stmts []Stmt) {
	ids := map[string][]any{
		"events": {string(r.event)}, "jobs": {string(r.job), string(r.next)}, "attempts": {string(r.job)}, "gates": {string(r.lane)},
		"runs": {string(r.run)}, "steps": {string(r.job), string(r.next)}, "history": {string(r.run)}, "callbacks": {string(r.event)},
		"step_texts": {string(r.run)}, "turns": {string(r.lane)},
	}
	for _, table := range tables {
		for _, id := range ids[table] {
			stmts = append(stmts, writing("undo_"+table, "DELETE FROM "+table+" WHERE "+undoColumn[table]+" = ?").with(id))
		}
	}
	return stmts
}

// undoColumn is the first column of the primary key of each table that rehearsals write to.
var undoColumn = map[string]string{"events": "id", "jobs": "id", "attempts": "job_id", "gates": "lane", "runs": "id", "steps": "id",
	"history": "run_id", "callbacks": "token_hash", "step_texts": "run_id", "turns": "name"}
