package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

// An operationSpec is the part of an operation that never changes, as it is stored. Times are
// Unix milliseconds.
type operationSpec struct {
	Action  core.Action `json:"action"`
	Lane    core.Lane   `json:"lane,omitempty"`
	Status  string      `json:"status,omitempty"`
	Source  string      `json:"source,omitempty"`
	Type    string      `json:"type,omitempty"`
	Since   int64       `json:"since,omitempty"`
	Until   int64       `json:"until,omitempty"`
	Error   string      `json:"error,omitempty"`
	Match   string      `json:"match,omitempty"`
	Sent    string      `json:"delivery_id,omitempty"`
	First   core.ID     `json:"first,omitempty"`
	Last    core.ID     `json:"last,omitempty"`
	To      []core.Lane `json:"to,omitempty"`
	Rate    int         `json:"rate"`
	By      string      `json:"by,omitempty"`
	Created int64       `json:"created"`
}

// specOf returns the fixed part of an operation as a text.
func specOf(op core.Operation) string {
	f := op.Filter
	b, err := json.Marshal(operationSpec{
		Action: op.Action, Lane: f.Lane, Status: f.Status, Source: f.Source, Type: f.Type, Since: orZero(f.Since), Until: orZero(f.Until),
		Error: f.Error, Match: f.Match, Sent: f.DeliveryID, First: f.First, Last: f.Last, To: op.To, Rate: op.Rate, By: op.By, Created: op.CreatedAt.UnixMilli(),
	})
	if err != nil {
		panic("store: encode an operation: " + err.Error()) // texts and numbers always encode
	}
	return string(b)
}

// orZero returns a time in milliseconds, 0 for the zero time.
func orZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// operation reads operationColumns. A damaged specification is an error: an operation without its
// filter would match everything.
func (r *rowReader) operation() (core.Operation, error) {
	op := core.Operation{ID: r.id()}
	var s operationSpec
	if err := json.Unmarshal([]byte(r.text()), &s); err != nil {
		return op, fmt.Errorf("operation %s is damaged: %w", op.ID, err)
	}
	op.Action, op.To, op.Rate, op.By, op.CreatedAt = s.Action, s.To, s.Rate, s.By, time.UnixMilli(s.Created).UTC()
	op.Filter = core.OperationFilter{Lane: s.Lane, Status: s.Status, Source: s.Source, Type: s.Type, Error: s.Error, Match: s.Match,
		DeliveryID: s.Sent, First: s.First, Last: s.Last,
		Since: timeUnlessZero(s.Since, time.UnixMilli), Until: timeUnlessZero(s.Until, time.UnixMilli)}
	op.State, op.Error = core.OperationState(r.text()), r.text()
	op.Seq, op.Cursor = r.number(), r.text()
	op.Looked, op.Acted, op.Skipped = r.number(), r.number(), r.number()
	op.StartedAt, op.FinishedAt = r.time(), r.time()
	return op, nil
}

// operationColumns are an operation as it is read. walked is its cursor: CURSOR is a keyword of
// MySQL.
const operationColumns = `id, spec, state, error, seq, walked, looked, acted, skipped, started_at, finished_at`

// BeginOperation stores an operation with its event and job. See core.OperationLog.
func (s *Store) BeginOperation(ctx context.Context, op core.Operation, a core.Arrival) error {
	stmts := append(s.audited(ctx, s.sql.auditBegun, []any{string(op.ID)}),
		s.sql.insertOperation.on([]any{string(op.ID), specOf(op), string(op.State)}), s.eventStmt(a.Event))
	if _, err := s.write(ctx, append(stmts, s.jobStmts(a, true)...)...); err != nil {
		return fmt.Errorf("begin operation %s: %w", op.ID, err)
	}
	s.floors.jobWritten(a.Event.CreatedAt)
	return nil
}

// Operation returns one operation. See core.OperationLog.
func (s *Store) Operation(ctx context.Context, id core.ID) (core.Operation, error) {
	results, err := s.readBatch(ctx, s.sql.operation.with(string(id)))
	if err != nil {
		return core.Operation{}, fmt.Errorf("operation %s: %w", id, err)
	}
	return operationIn(results[0])
}

// operationIn reads the row of an operation.
func operationIn(r Result) (core.Operation, error) {
	if len(r.Rows) == 0 {
		return core.Operation{}, core.Refuse(core.NotFound, "operation not found")
	}
	row := rowReader{r.Rows[0]}
	return row.operation()
}

// OperationList lists operations. See core.OperationLog.
func (s *Store) OperationList(ctx context.Context, after core.ID, limit int) (core.Page[core.Operation], error) {
	limit = pageLimit(limit)
	results, err := s.readBatch(ctx, s.sql.operations.with(pageTop(after), int64(limit+1)))
	if err != nil {
		return core.Page[core.Operation]{}, fmt.Errorf("list operations: %w", err)
	}
	rows := results[0].Rows
	page := core.Page[core.Operation]{More: len(rows) > limit}
	for _, row := range rows[:min(limit, len(rows))] {
		r := rowReader{row}
		op, err := r.operation()
		if err != nil {
			return core.Page[core.Operation]{}, fmt.Errorf("list operations: %w", err)
		}
		page.Items = append(page.Items, op)
	}
	return page, nil
}

// EndOperation cancels a running operation, or says why it failed. See core.OperationLog.
func (s *Store) EndOperation(ctx context.Context, now time.Time, id core.ID, why string) (core.Operation, error) {
	state := core.OperationCanceled
	if why != "" {
		state = core.OperationFailed
	}
	results, err := s.write(ctx, append([]Stmt{
		s.sql.endOperation.with(string(state), why, millis(now), string(id)),
		s.sql.operation.with(string(id))}, s.audited(ctx, s.sql.auditEnded, []any{now.UnixMilli(), string(id)})...)...)
	if err != nil {
		return core.Operation{}, fmt.Errorf("end operation %s: %w", id, err)
	}
	return operationIn(results[1])
}

// DoSlice acts on the matches of a slice. See core.OperationLog, and "Operations" in doc.go.
func (s *Store) DoSlice(ctx context.Context, now time.Time, sl core.Slice) (core.Operation, error) {
	sl.Arrivals = preparedForReplay(now, sl.Arrivals)
	stmts := s.sliceStmts(now, sl)
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return core.Operation{}, fmt.Errorf("operation %s: %w", sl.Operation.ID, err)
	}
	if len(sl.Jobs)+len(sl.Arrivals) > 0 {
		s.floors.jobWritten(now)
	}
	for _, a := range sl.Arrivals {
		s.definitions.keep(a.Runs)
	}
	return operationIn(results[len(stmts)-1])
}

// sliceStmts are the statements of a DoSlice. The lines of jobs are locked first, then the
// operation, then its matches.
func (s *Store) sliceStmts(now time.Time, sl core.Slice) []Stmt {
	id, seq, mark := string(sl.Operation.ID), int64(sl.Operation.Seq), string(sl.Mark)
	want := int64(len(sl.Jobs)) // an event that is gone is no match any more
	lined, plain := linedIn(sl.Jobs)
	var stmts []Stmt
	if len(lined) > 0 {
		stmts = s.lockLines(lined)
	}
	stmts = append(stmts, s.sql.beginSlice.with(mark, millis(now), id, seq))
	switch sl.Operation.Action {
	case core.RetryAction:
		stmts = append(stmts, s.retrySlice(now, sl, lined, plain)...)
	case core.CancelAction:
		stmts = append(stmts, s.cancelSlice(now, sl, lined)...)
	case core.ReplayAction:
		stmts = append(stmts, s.replaySlice(sl)...)
	}
	finished := any(nil)
	if sl.State != core.OperationRunning {
		finished = millis(now)
	}
	return append(stmts,
		s.sql.countPicks.with(id, int64(sl.Acted), id, seq, mark),
		s.sql.moveOperation.with(sl.Cursor, int64(sl.Looked), int64(sl.Skipped), string(sl.State), sl.Error, finished, id, seq, mark, id, want),
		s.sql.stepOperation.with(id, seq, mark),
		s.sql.dropPicks.with(id),
		s.sql.operation.with(id))
}

// linedIn divides jobs into those of lines and the others.
func linedIn(jobs []core.Job) (lined []lineRef, plain []core.ID) {
	for _, j := range jobs {
		if j.Line == "" {
			plain = append(plain, j.ID)
		} else {
			lined = append(lined, lineRef{line: lineOf(j.Lane, j.Line).(string), job: j.ID, limit: 1})
		}
	}
	return lined, plain
}

// pickRows are rows of a statement that picks matches.
func pickRows(sl core.Slice, ids []core.ID, more ...any) (rows [][]any) {
	for _, row := range idRows(ids) {
		row = append([]any{string(sl.Operation.ID), row[0]}, more...)
		rows = append(rows, append(row, string(sl.Operation.ID), int64(sl.Operation.Seq), string(sl.Mark)))
	}
	return rows
}

// idsOfJobs returns the ids of jobs.
func idsOfJobs(jobs []core.Job) []core.ID {
	ids := make([]core.ID, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	return ids
}

// pickedRows are rows of a statement that changes picked jobs.
func pickedRows(sl core.Slice, ids []core.ID, value any) (rows [][]any) {
	for _, id := range ids {
		rows = append(rows, []any{value, string(id), string(sl.Operation.ID), string(id)})
	}
	return rows
}

// retrySlice are the statements that revive jobs. A job of a line has the status entering between
// two statements of the batch, so the statements on lines change nothing if the batch is sent
// again.
func (s *Store) retrySlice(now time.Time, sl core.Slice, lined []lineRef, plain []core.ID) []Stmt {
	if len(sl.Jobs) == 0 {
		return nil
	}
	at := millis(now)
	stmts := []Stmt{s.sql.pickFinished.on(pickRows(sl, idsOfJobs(sl.Jobs))...)}
	if len(plain) > 0 {
		stmts = append(stmts, s.sql.revivePicked.on(pickedRows(sl, plain, at)...))
	}
	if len(lined) > 0 {
		var enters, starts, ends [][]any
		for i := range lined {
			r := &lined[i]
			r.status = entering
			id := string(r.job)
			enters = append(enters, []any{id, string(sl.Operation.ID), id})
			starts = append(starts, []any{r.line, id, id})
			ends = append(ends, []any{at, id})
		}
		stmts = append(stmts, s.sql.enterPicked.on(enters...), s.sql.startLines.on(starts...))
		stmts = append(stmts, s.enterStmts(s.sql.joinLine, lined)...)
		stmts = append(stmts, s.sql.enteredAgain.on(ends...))
	}
	return append(stmts, s.sql.forgetStrays.with())
}

// cancelSlice are the statements that cancel jobs. As in a Cancel, the places of canceled jobs are
// deleted and their slots go to the next jobs of their lines.
func (s *Store) cancelSlice(now time.Time, sl core.Slice, lined []lineRef) []Stmt {
	if len(sl.Jobs) == 0 {
		return nil
	}
	at, ids := millis(now), idsOfJobs(sl.Jobs)
	stmts := []Stmt{s.sql.pickWaiting.on(pickRows(sl, ids, at)...), s.sql.cancelPicked.on(pickedRows(sl, ids, at)...)}
	if len(lined) == 0 {
		return stmts
	}
	var places [][]any
	for i := range lined {
		lined[i].status, lined[i].limit = core.Canceled, 0
		places = append(places, []any{string(lined[i].job), string(lined[i].job)})
	}
	stmts = append(stmts, s.sql.canceledPlaces.on(places...))
	return append(stmts, s.passStmts(now, lined)...)
}

// replaySlice are the statements that store new jobs of events, as those of a Replay do.
func (s *Store) replaySlice(sl core.Slice) (stmts []Stmt) {
	if len(sl.Arrivals) == 0 {
		return nil
	}
	op := string(sl.Operation.ID)
	var all core.Arrival // the runs of all arrivals; its event is not stored
	var ids []core.ID
	var ready, later [][]any
	for _, a := range sl.Arrivals {
		ids = append(ids, a.Event.ID)
		now, then := jobRows(a, false)
		ready, later = append(ready, now...), append(later, then...)
		all.Event.CreatedAt, all.Jobs, all.Runs = a.Event.CreatedAt, append(all.Jobs, a.Jobs...), append(all.Runs, a.Runs...)
	}
	if s.sql.lockEvents.sql != "" {
		stmts = append(stmts, s.sql.lockEvents.on(idRows(ids)...).sortedBy(keyColumn))
	}
	stmts = append(stmts, s.sql.pickEvents.on(pickRows(sl, ids)...))
	if len(ready) > 0 {
		stmts = append(stmts, s.sql.insertPicked.on(ofOperation(op, ready)...))
	}
	if len(later) > 0 {
		stmts = append(stmts, s.sql.insertPickedLater.on(ofOperation(op, later)...))
	}
	stmts = append(stmts, s.linedBy(func(rows [][]any) Stmt { return s.sql.insertPickedLined.on(ofOperation(op, rows)...) }, sl.Arrivals...)...)
	return append(stmts, s.runStmts(all)...)
}

// ofOperation puts the operation before the last value of each row, the event.
func ofOperation(op string, rows [][]any) [][]any {
	out := make([][]any, len(rows))
	for i, row := range rows {
		last := len(row) - 1
		out[i] = append(append([]any{}, row[:last]...), op, row[last])
	}
	return out
}

// FinishedJobs returns the jobs of a walk. See core.OperationLog.
func (s *Store) FinishedJobs(ctx context.Context, w core.FinishedWalk) (jobs []core.Job, err error) {
	walk, known := s.sql.walkDead, s.sql.lanesDead
	if w.Status == core.Canceled {
		walk, known = s.sql.walkCanceled, s.sql.lanesCanceled
	}
	lanes := []string{string(w.Lane)}
	if !w.Only {
		if lanes, err = s.distinct(ctx, known); err != nil {
			return nil, fmt.Errorf("walk through finished jobs: %w", err)
		}
	}
	limit := pageLimit(w.Limit)
	for _, lane := range lanes {
		l := core.Lane(lane)
		if l < w.Lane || l.Workflow() != "" || len(jobs) == limit {
			continue
		}
		from := w.From
		if l == w.Lane && w.After != "" {
			from = max(from, w.After.Next())
		}
		results, err := s.readBatch(ctx, walk.with(lane, string(from), lane, string(w.Below), int64(limit-len(jobs))))
		if err != nil {
			return nil, fmt.Errorf("walk through finished jobs: %w", err)
		}
		for _, row := range results[0].Rows {
			r := rowReader{row}
			jobs = append(jobs, r.job())
		}
	}
	return jobs, nil
}

// KindsOf returns the sources and types of events. See core.OperationLog.
func (s *Store) KindsOf(ctx context.Context, events []core.ID) (map[core.ID]core.EventKind, error) {
	if len(events) == 0 {
		return nil, nil
	}
	results, err := s.readBatch(ctx, s.sql.eventKinds.on(idRows(events)...))
	if err != nil {
		return nil, fmt.Errorf("read the sources and types of events: %w", err)
	}
	of := make(map[core.ID]core.EventKind, len(results[0].Rows))
	for _, row := range results[0].Rows {
		r := rowReader{row}
		id := r.id()
		of[id] = core.EventKind{Source: r.text(), Type: r.text()}
	}
	return of, nil
}

// PurgeOperations deletes old operations. See core.OperationLog. An operation is older than its
// end, so the range of ids has all of them.
func (s *Store) PurgeOperations(ctx context.Context, before time.Time) error {
	if _, err := s.write(ctx, s.sql.purgeOperations.with(string(core.FirstID(before)), millis(before))); err != nil {
		return fmt.Errorf("purge operations: %w", err)
	}
	return nil
}
