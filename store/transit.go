package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/eventgateway/gateway/core"
)

// Transit makes transitions. See core.Runs.
func (s *Store) Transit(ctx context.Context, ts ...core.Transition) ([]bool, error) {
	if len(ts) == 0 {
		return nil, nil
	}
	for _, t := range ts {
		if len(t.Entries) == 0 {
			return nil, errors.New("transit: a transition without an entry")
		}
	}
	stmts := s.transitStmts(ts)
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return nil, fmt.Errorf("transit: %w", err)
	}
	for _, t := range ts {
		s.lowerFloors(t)
	}
	var made []bool
	last := len(stmts) - 1
	_, err = s.rereadUntil(ctx, results[last:], stmts[last:], func(said []Result) (ok bool) {
		made, ok = outcomesOf(ts, said[0].Rows)
		return ok
	})
	if err != nil {
		return nil, fmt.Errorf("transit: %w", err)
	}
	return made, nil
}

// The columns of heldBy: the mark of a transition, the newest entry of its run, and the mark of
// the entry behind the one that the transition knew.
const (
	heldByMark = iota
	heldBySeq
	heldByHolder
)

// madeOf tells which transitions are made, from rows of heldBy. It does not know yet
// where nobody seems to have made the entry and the run seems to be where it was.
func outcomesOf(ts []core.Transition, rows [][]any) (made []bool, known bool) {
	at := make(map[string][]any, len(rows))
	for _, row := range rows {
		at[textOf(row[heldByMark])] = row
	}
	made = make([]bool, len(ts))
	for i, t := range ts {
		row, found := at[string(t.Mark)]
		switch {
		case !found: // no such run
		case row[heldByHolder] == nil && intOf(row[heldBySeq]) == t.Seq:
			return nil, false
		default:
			made[i] = textOf(row[heldByHolder]) == string(t.Mark)
		}
	}
	return made, true
}

// makeRoom makes room for the jobs that a transition writes.
func (s *Store) lowerFloors(t core.Transition) {
	for _, j := range t.Jobs {
		s.floors.jobWritten(j.DueAt)
	}
	for _, j := range t.JobsEnd {
		if !j.DueAt.IsZero() {
			s.floors.jobWritten(j.DueAt)
		}
	}
	if t.GivesRise != nil {
		s.floors.jobWritten(t.GivesRise.Event.CreatedAt)
	}
}

// transitStmts are the statements of a Transit. Only those that have rows are sent, but
// for the last, which tells what became of it. Runs are in the order of their ids, so
// that those who meet at several wait in line and not in a circle.
func (s *Store) transitStmts(ts []core.Transition) (stmts []Stmt) {
	ts = slices.SortedStableFunc(slices.Values(ts), func(a, b core.Transition) int { return cmp.Compare(a.Run.ID, b.Run.ID) })
	add := func(st Stmt, rows func(core.Transition) [][]any) {
		for _, t := range ts {
			st.Rows = append(st.Rows, rows(t)...)
		}
		if len(st.Rows) > 0 {
			stmts = append(stmts, st)
		}
	}
	if s.sql.lockRuns.sql != "" {
		add(s.sql.lockRuns.on().sortedBy(keyColumn), func(t core.Transition) [][]any { return [][]any{{string(t.Run.ID)}} })
	}
	add(s.sql.insertDefinition.on().sortedBy(keyColumn), s.newDefinition)
	add(s.sql.insertHistory.on().sortedBy(historyRunAt), firstEntry)
	add(s.sql.moreHistory.on(), moreEntries)
	add(s.sql.insertStepAttempts.on(), stepAttemptRows)
	add(s.sql.insertRise.on(), riseRows)
	add(s.sql.insertJobIf.on(), s.riseJobRows)
	texts := make(map[core.ID]*stepTextRows, len(ts))
	for _, t := range ts {
		texts[t.Mark] = newStepTextRows(t)
	}
	add(s.sql.insertTexts.on(), func(t core.Transition) [][]any { return texts[t.Mark].texts })
	add(s.sql.insertSteps.on(), func(t core.Transition) [][]any { return texts[t.Mark].added })
	add(s.sql.changeSteps.on(), func(t core.Transition) [][]any { return texts[t.Mark].changed })
	add(s.sql.holdSteps.on(), heldRows)
	add(s.sql.insertStepJobs.on(), stepJobRows)
	add(s.sql.changeJobs.on(), changedJobRows)
	add(s.sql.insertTokens.on(), tokenRows)
	add(s.sql.disarm.on(), disarmRows)
	add(s.sql.moveRun.on(), runRow)
	add(s.sql.heldBy.on(), func(t core.Transition) [][]any {
		return [][]any{{string(t.Mark), int64(t.Seq + 1), string(t.Run.ID)}}
	})
	return stmts
}

// holder are the values of the condition that a transition holds its run.
func holdArgs(t core.Transition) []any {
	return []any{string(t.Run.ID), int64(t.Seq + 1), string(t.Mark)}
}

// historyRun is the place of the run in a row of insertHistory.
const historyRunAt = 6

func firstEntry(t core.Transition) [][]any {
	e := t.Entries[0]
	return [][]any{{string(t.Mark), millis(e.At), int64(e.Epoch), string(e.Type), e.Path, e.Data, string(t.Run.ID), int64(t.Seq)}}
}

func moreEntries(t core.Transition) (rows [][]any) {
	for _, e := range t.Entries[1:] {
		rows = append(rows, append([]any{int64(e.Seq), millis(e.At), int64(e.Epoch), string(e.Type), e.Path, e.Data}, holdArgs(t)...))
	}
	return rows
}

func stepAttemptRows(t core.Transition) (rows [][]any) {
	for _, a := range t.Attempts {
		rows = append(rows, append([]any{string(a.JobID), string(a.Lease), int64(a.Number), int64(a.StatusCode), a.Error, a.Response,
			a.Duration.Milliseconds(), millis(a.StartedAt)}, holdArgs(t)...))
	}
	return rows
}

func riseRows(t core.Transition) [][]any {
	if t.GivesRise == nil {
		return nil
	}
	return [][]any{append(eventRow(t.GivesRise.Event), holdArgs(t)...)}
}

// riseJobRows are rows of insertJobIf: they go where their event went.
func (s *Store) riseJobRows(t core.Transition) [][]any {
	if t.GivesRise == nil {
		return nil
	}
	return s.jobsStmt(*t.GivesRise, false).Rows
}

// leafOf is the parent whose branch a step ended, or null. On the workflow's own list
// it is the run.
func leafOf(n core.Step, run core.ID) any {
	if !n.Last {
		return nil
	}
	return string(cmp.Or(n.ParentID, run))
}

func stepJobRows(t core.Transition) (rows [][]any) {
	for _, j := range t.Jobs {
		rows = append(rows, append([]any{string(j.ID), string(core.WorkflowLane(t.Run.Workflow)), string(cmp.Or(j.Status, core.Available)), int64(core.Unlimited), millis(j.DueAt),
			millis(t.Entries[0].At)}, holdArgs(t)...))
	}
	return rows
}

func changedJobRows(t core.Transition) (rows [][]any) {
	for _, j := range t.JobsEnd {
		rows = append(rows, append([]any{string(j.Status), millis(j.DueAt), j.Error, millis(j.FinishedAt), string(j.ID)}, holdArgs(t)...))
	}
	return rows
}

func heldRows(t core.Transition) (rows [][]any) {
	for _, step := range t.Held {
		rows = append(rows, append([]any{string(step)}, holdArgs(t)...))
	}
	return rows
}

// tokenRows are the tokens of a transition and its receipts, which have no step: a Disarm leaves
// them, and they go with their run.
func tokenRows(t core.Transition) (rows [][]any) {
	for _, token := range t.Tokens {
		rows = append(rows, append([]any{token.Hash, string(token.StepID), millis(token.ExpiresAt)}, holdArgs(t)...))
	}
	for _, receipt := range t.Receipts {
		rows = append(rows, append([]any{receipt, "", nil}, holdArgs(t)...))
	}
	return rows
}

func disarmRows(t core.Transition) (rows [][]any) {
	for _, step := range t.Disarm {
		rows = append(rows, append([]any{string(t.Run.ID), string(step)}, holdArgs(t)...))
	}
	return rows
}

// newDefinition is the definition that a run follows from now on, unless it is stored. It is
// stored also if the transition is not made, since definitions are never deleted.
func (s *Store) newDefinition(t core.Transition) [][]any {
	d := t.Definition
	if d.Hash == "" || s.definitions.have(d.Hash) {
		return nil
	}
	return [][]any{{d.Hash, d.Body}}
}

func runRow(t core.Transition) [][]any {
	r, id := t.Run, string(t.Run.ID)
	return [][]any{{r.Definition, string(r.Status), int64(r.Epoch), int64(r.Seq), r.Step, textOrNull(r.Output), r.Error,
		millis(r.DeadlineAt), millis(r.StartedAt), millis(r.FinishedAt), int64(r.Written), orNull(r.Writers), id, int64(t.Seq), id, int64(t.Seq + 1), string(t.Mark)}}
}

const (
	historyColumns = `run_id, seq, mark, at, epoch, type, path, data`

	// A transition holds its run while the entry behind the run's newest carries its mark:
	// from the statement that inserts that entry to the one that moves the run on. What is
	// between them has this condition, and so does nothing for who lost, and nothing when
	// it is sent again. It is written so that every plan looks for the one entry by its
	// number, and then for the run.
	ownEntry = `history AS mine{use PRIMARY}`
	holdsRun = `mine.run_id = r.run AND mine.seq = r#first AND mine.mark = r.mark
		AND mine.seq = (SELECT runs.seq + 1 FROM runs WHERE runs.id = mine.run_id)`
	ifHoldsRun = `EXISTS (SELECT 1 FROM ` + ownEntry + ` WHERE ` + holdsRun + `)`
)

// transitSQL is the statements of a Transit, in the order in which they are sent. The transition
// that comes second waits at the first of them, and finds the entry or the run's number changed.
type transitSQL struct {
	lockRuns, insertHistory, moreHistory, insertStepAttempts, insertRise statement
	insertTexts, insertSteps, changeSteps, holdSteps                     statement
	insertStepJobs, changeJobs, insertTokens, disarm, moveRun, heldBy    statement
}

func newTransitSQL(d Dialect) transitSQL {
	return transitSQL{
		lockRuns: reading("lock_runs", lockRunsSQL(d)),
		insertHistory: writing("insert_history", d.insertIfAbsent("history", historyColumns, `runs.id, runs.seq + 1, r.mark, r#at, r#epoch, r.type, r.path, r.data`,
			"runs{use PRIMARY}", `runs.id = r.run AND runs.seq = r#seq {lock_rows runs}`, "run_id")),
		moreHistory: writing("more_history", d.insert("history", historyColumns,
			`mine.run_id, r#seq, mine.mark, r#at, r#epoch, r.type, r.path, r.data`, ownEntry, holdsRun)),
		insertStepAttempts: writing("insert_step_attempts", d.insert("attempts", attemptColumns,
			`r.job, r.lease, r#attempt, r#status_code, r.error, r.response, r#duration_ms, r#created_at`, ownEntry, holdsRun)),
		insertRise: writing("insert_rises", d.insert("events", eventColumns,
			`r.event, r.source, r.type, r.payload, r.content_type, r.headers, r.delivery_id, r#created_at`, ownEntry, holdsRun)),
		// A name always has the same text, so the row may be there already.
		insertTexts: writing("insert_texts", d.insertIfAbsent("step_texts", `run_id, name, body`, `mine.run_id, r.name, r.body`, ownEntry,
			`mine.run_id = r.run AND mine.seq = r#first AND mine.mark = r.mark`, "run_id")),
		insertSteps: writing("insert_steps", d.insert("steps", stepColumns, `r.id, mine.run_id, r#epoch, r.parent, r.branch, r.path, r.name, r.type, r.status,
			r#attempt, r.state, r.output, r.error, r.carry, r.fan, r.leaf_of, r#started_at, r#finished_at, r.state_in, r.output_in`, ownEntry, holdsRun)),
		changeSteps: writing("change_steps", d.updateRows("steps", `status = r.status, attempt = r#attempt, output = r.output, error = r.error, carry = r.carry, fan = r.fan,
			leaf_of = CASE WHEN r.last = 'yes' THEN COALESCE(parent_id, run_id) END, finished_at = r#finished_at,
			output_in = r.output_in`,
			`steps.id = r.id AND `+ifHoldsRun)),
		// Before the jobs are changed: then their leases are gone.
		holdSteps: writing("hold_steps", d.updateRows("steps",
			`held_until = (SELECT jobs.due_at FROM jobs{use PRIMARY} WHERE jobs.id = steps.id AND jobs.status = 'running')`,
			`steps.id = r.id AND `+ifHoldsRun)),
		insertStepJobs: writing("insert_step_jobs", d.insert("jobs", jobColumns,
			`r.id, (SELECT runs.event_id FROM runs WHERE runs.id = mine.run_id), r.lane, NULL, r.status, 0, r#max_attempts, r#due_at, NULL, '', r#created_at, NULL`, ownEntry, holdsRun)),
		// A job that ends before its first attempt was due at the time for which it waited.
		// scheduled_at comes first, as in claimed.
		changeJobs: writing("change_jobs", d.updateRows("jobs",
			`scheduled_at = COALESCE(scheduled_at, due_at), status = r.status, due_at = r#due_at, lease = NULL, last_error = r.error, finished_at = r#finished_at`,
			`jobs.id = r.id AND `+ifHoldsRun)),
		insertTokens: writing("insert_tokens", d.insert("callbacks", `token_hash, run_id, step_id, expires_at`, `r.hash, mine.run_id, r.step, r#expires_at`, ownEntry, holdsRun)),
		disarm:       writing("disarm", d.deleteByIndex("callbacks_step", "callbacks", `callbacks.run_id = r.of AND callbacks.step_id = r.step AND `+ifHoldsRun)),
		// What it is guarded by is what it changes, which MySQL does not let an UPDATE read.
		moveRun: writing("move_runs", d.updateRows("runs", `definition = r.definition, status = r.status, epoch = r#epoch, seq = r#next, step = r.step, output = r.output, error = r.error,
			deadline_at = r#deadline_at, started_at = r#started_at, finished_at = r#finished_at,
			written = r#written, writers = r.writers`,
			`runs.id = r.run AND runs.seq = r#seq AND EXISTS (SELECT 1 FROM history AS mine{use PRIMARY}
			WHERE mine.run_id = r.same_run AND mine.seq = r#first AND mine.mark = r.mark)`)),
		// Who made the entry behind the one that a transition knew, and where the run stands.
		heldBy: reading("held_by", d.selectRows(`r.mark AS mark, runs.seq AS stands,
			(SELECT mine.mark FROM history AS mine{use PRIMARY} WHERE mine.run_id = runs.id AND mine.seq = r#first) AS holder`,
			"runs{use PRIMARY}", `runs.id = r.run`)),
	}
}

// lockRuns keeps runs as they are, where the guards need that.
func lockRunsSQL(d Dialect) string {
	if d.lockRuns == "" {
		return ""
	}
	return d.selectRows(`runs.id AS run`, "runs{use PRIMARY}", `runs.id = r.run`) + d.lockRuns
}
