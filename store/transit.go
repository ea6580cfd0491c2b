package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/order"
)

// Transit makes transitions. See core.Runs, and "Workflows" in doc.go. The transitions of one
// call are one batch. It returns for each whether it was made: by this call, or by an earlier
// sending of it. A transition that another worker has overtaken changes nothing and is no
// error.
func (s *Store) Transit(ctx context.Context, ts ...core.Transition) ([]core.Transited, error) {
	if len(ts) == 0 {
		return nil, nil
	}
	for _, t := range ts {
		if len(t.Entries) == 0 {
			return nil, errors.New("transit: a transition without an entry")
		}
	}
	stmts := s.transitStmts(ts)
	if core.Changing(ctx) { // not for a worker, which makes most transitions
		guards := make([][]any, len(ts))
		for i, t := range ts {
			guards[i] = []any{string(t.Mark), string(t.Run.ID), int64(t.Seq + 1)}
		}
		stmts = slices.Insert(stmts, len(stmts)-1, s.audited(ctx, s.sql.auditMoved, guards...)...)
	}
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return nil, fmt.Errorf("transit: %w", err)
	}
	for _, t := range ts {
		s.lowerFloors(t)
	}
	var made []core.Transited
	last := len(stmts) - 1
	_, err = s.rereadUntil(ctx, results[last:], stmts[last:], func(said []Result) (ok bool) {
		made, ok = outcomesOf(ts, said[0].Rows)
		return ok
	})
	if err != nil {
		return nil, fmt.Errorf("transit: %w", err)
	}
	for i, t := range ts {
		if made[i].Taken {
			made[i].StateName = stateNameOf(t)
		}
	}
	return made, nil
}

// The columns of held_by: the mark of a transition, the number of the newest entry of its run, the
// mark of the entry that has the number of the transition's first entry, and the lease of the job that
// was to be taken.
const (
	heldByMark = iota
	heldBySeq
	heldByHolder
	heldByLease
)

// outcomesOf returns which transitions were made, from rows of held_by. known is false if one
// transition cannot be decided yet: the run is there, and no entry has the transition's number.
// Either this transition or another one must have inserted that entry, so the read was too
// early.
func outcomesOf(ts []core.Transition, rows [][]any) (made []core.Transited, known bool) {
	at := make(map[string][]any, len(rows))
	for _, row := range rows {
		at[textOf(row[heldByMark])] = row
	}
	made = make([]core.Transited, len(ts))
	for i, t := range ts {
		row, found := at[string(t.Mark)]
		switch {
		case !found: // no such run
		case row[heldByHolder] == nil && intOf(row[heldBySeq]) == t.Seq:
			return nil, false
		default:
			made[i].Made = textOf(row[heldByHolder]) == string(t.Mark)
			made[i].Taken = made[i].Made && textOf(row[heldByLease]) == string(t.Mark)
		}
	}
	return made, true
}

// lowerFloors lowers the floors for the jobs that a transition writes.
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

// transitStmts are the statements of a Transit. Each statement has the rows of all transitions;
// those without rows are left out, except the last, which reads the outcome. The transitions
// are sorted by run, so that batches which share several runs lock them in one order and cannot
// deadlock.
//
// The first INSERT decides which transition wins. All further statements have the condition
// ifHoldsRun. move_runs ends that condition, so it comes last.
func (s *Store) transitStmts(ts []core.Transition) (stmts []Stmt) {
	motions := motionsOf(ts)
	add := func(st Stmt, rows func(*motion)) {
		for _, m := range motions {
			m.rows = m.rows[:0]
			rows(m)
			st.Rows = append(st.Rows, m.rows...)
		}
		if len(st.Rows) > 0 {
			stmts = append(stmts, st)
		}
	}
	if s.sql.lockRuns.sql != "" {
		add(s.sql.lockRuns.on().sortedBy(keyColumn), func(m *motion) { m.add(string(m.Run.ID)) })
	}
	add(s.sql.insertDefinition.on().sortedBy(keyColumn), s.newDefinition)
	add(s.sql.insertHistory.on().sortedBy(historyRunAt), (*motion).firstEntry)
	add(s.sql.moreHistory.on(), (*motion).moreEntries)
	add(s.sql.insertStepAttempts.on(), func(m *motion) { m.stepAttempts(false) })
	add(s.sql.insertStepRecorded.on(), func(m *motion) { m.stepAttempts(true) })
	add(s.sql.insertRise.on(), (*motion).rise)
	add(s.sql.insertJobIf.on(), (*motion).riseJobs)
	// Texts come before the steps that refer to them, so that a reader finds them.
	for _, m := range motions {
		m.steps = newStepTextRows(m)
	}
	add(s.sql.insertTexts.on(), func(m *motion) { m.rows = append(m.rows, m.steps.texts...) })
	add(s.sql.insertSteps.on(), func(m *motion) { m.rows = append(m.rows, m.steps.added...) })
	add(s.sql.changeSteps.on(), func(m *motion) { m.rows = append(m.rows, m.steps.changed...) })
	add(s.sql.holdSteps.on(), (*motion).heldSteps)
	add(s.sql.insertStepJobs.on(), (*motion).stepJobs)
	add(s.sql.insertTakenStep.on(), (*motion).takenStep)
	add(s.sql.changeJobs.on(), (*motion).changedJobs)
	add(s.sql.insertTokens.on(), (*motion).tokens)
	add(s.sql.disarm.on(), (*motion).disarms)
	add(s.sql.moveRun.on(), (*motion).run)
	add(s.sql.heldBy.on(), func(m *motion) {
		m.add(string(m.Mark), int64(m.Seq+1), string(m.Take.Job), string(m.Run.ID))
	})
	return stmts
}

// A motion makes the rows of a transition.
type motion struct {
	*core.Transition
	holder []any         // the values of ifHoldsRun, with which most rows end
	steps  *stepTextRows // nil until needed
	rows   [][]any       // of the statement that is being made; used again for the next one
}

// The values of ifHoldsRun.
const (
	holderRun = iota
	holderSeq
	holderMark
)

// motionsOf returns the motions of transitions, sorted by run.
func motionsOf(ts []core.Transition) []*motion {
	motions := make([]*motion, len(ts))
	for i := range ts {
		t := &ts[i]
		motions[i] = &motion{Transition: t, holder: []any{string(t.Run.ID), int64(t.Seq + 1), string(t.Mark)}}
	}
	order.Stable(motions, func(a, b *motion) int { return cmp.Compare(a.Run.ID, b.Run.ID) })
	return motions
}

// add adds a row.
func (m *motion) add(values ...any) {
	m.rows = append(m.rows, slices.Clone(values))
}

// addHeld adds a row that ends with the values of ifHoldsRun.
func (m *motion) addHeld(values ...any) {
	m.rows = append(m.rows, m.heldRow(values...))
}

// heldRow returns a row that ends with the values of ifHoldsRun.
func (m *motion) heldRow(values ...any) []any {
	return append(append(make([]any, 0, len(values)+len(m.holder)), values...), m.holder...)
}

// historyRunAt is the position of the run in a row of insertHistory.
const historyRunAt = 6

// firstEntry is the row of insertHistory: the entry that claims the next number of the run.
func (m *motion) firstEntry() {
	e := &m.Entries[0]
	m.add(m.holder[holderMark], millis(e.At), int64(e.Epoch), string(e.Type), e.Path, e.Data, m.holder[holderRun], int64(m.Seq))
}

// moreEntries are rows of moreHistory. Their numbers follow the first one's.
func (m *motion) moreEntries() {
	for _, e := range m.Entries[1:] {
		m.addHeld(int64(e.Seq), millis(e.At), int64(e.Epoch), string(e.Type), e.Path, e.Data)
	}
}

// stepAttempts are rows of insertStepAttempts, for the attempts without an exchange, or of
// insertStepRecorded, for those with one. Attempts that are kept in their jobs have no row.
func (m *motion) stepAttempts(recorded bool) {
	for i := range m.Attempts {
		a := &m.Attempts[i]
		if recorded != (a.Exchange != nil) || keptIn(m.Transition, a.JobID) == a {
			continue
		}
		row := []any{string(a.JobID), string(a.Lease), int64(a.Number), int64(a.StatusCode), a.Error, a.Response,
			a.Duration.Milliseconds(), millis(a.StartedAt)}
		if recorded {
			exchange, body := exchangeColumnsOf(a.Exchange)
			row = append(row, exchange, body)
		}
		m.addHeld(row...)
	}
}

// rise is the row of the event that a transition causes, such as the alert of a failed run.
func (m *motion) rise() {
	if m.GivesRise != nil {
		m.addHeld(eventRow(m.GivesRise.Event)...)
	}
}

// riseJobs are the jobs of that event, as rows of insertJobIf: they are stored only if the
// event was.
func (m *motion) riseJobs() {
	if m.GivesRise != nil {
		ready, _ := jobRows(*m.GivesRise, false) // alerts are never delayed
		m.rows = append(m.rows, ready...)
	}
}

// leafOf returns the parent whose branch a step ended, or nil. On the workflow's own list of
// steps, the run stands for the parent.
func leafOf(n *core.Step, run core.ID) any {
	if !n.Last {
		return nil
	}
	return string(cmp.Or(n.ParentID, run))
}

// stepJobs are rows of insertStepJobs. A step's job has the id of the step.
func (m *motion) stepJobs() {
	for _, j := range m.Jobs {
		if j.ID != m.Take.Job {
			m.addHeld(string(j.ID), string(core.WorkflowLane(m.Run.Workflow)), string(cmp.Or(j.Status, core.Available)),
				int64(core.Unlimited), millis(j.DueAt), millis(m.Entries[0].At))
		}
	}
}

// takenStep is the row of insertTakenStep: the job that is to be leased at once.
func (m *motion) takenStep() {
	lane, now := core.WorkflowLane(m.Run.Workflow), m.Entries[0].At
	for _, j := range m.Jobs {
		if j.ID == m.Take.Job {
			m.addHeld(string(j.ID), string(lane), int64(core.Unlimited), millis(m.Take.Until), millis(j.DueAt), m.holder[holderMark],
				millis(now), freeFrom(lane, now), string(core.SourceLane(m.Take.Source)), now.UnixMilli())
		}
	}
}

// changedJobs are rows of changeJobs: the jobs of steps that ended or wait again.
func (m *motion) changedJobs() {
	for _, j := range m.JobsEnd {
		m.addHeld(string(j.Status), millis(j.DueAt), j.Error, millis(j.FinishedAt), successIn(m.Transition, j), string(j.ID))
	}
}

// heldSteps are rows of holdSteps: steps that end although a worker may hold their jobs.
func (m *motion) heldSteps() {
	for _, step := range m.Held {
		m.addHeld(string(step))
	}
}

// tokens are rows of insertTokens: the callback tokens of a transition, and its receipts. A
// receipt has no step, so a Disarm leaves it; it is deleted with its run.
func (m *motion) tokens() {
	for _, token := range m.Tokens {
		m.addHeld(token.Hash, string(token.StepID), millis(token.ExpiresAt))
	}
	for _, receipt := range m.Receipts {
		m.addHeld(receipt, "", nil)
	}
}

// disarms are rows of disarm: steps whose callback tokens are no longer valid.
func (m *motion) disarms() {
	for _, step := range m.Disarm {
		m.addHeld(m.holder[holderRun], string(step))
	}
}

// newDefinition is the row of the definition that a run follows from now on, unless it is known
// to be stored. It is stored even if the transition loses: definitions are never deleted, and
// an unused one does no harm.
func (s *Store) newDefinition(m *motion) {
	if d := &m.Definition; d.Hash != "" && !s.definitions.have(d.Hash) {
		m.add(d.Hash, d.Body)
	}
}

// run is the row of moveRun.
func (m *motion) run() {
	r := &m.Run
	m.add(r.Definition, string(r.Status), int64(r.Epoch), int64(r.Seq), r.Step, textOrNull(r.Output), r.Error,
		millis(r.DeadlineAt), millis(r.StartedAt), millis(r.FinishedAt), int64(r.Written), orNull(r.Writers), m.holder[holderRun], int64(m.Seq),
		m.holder[holderRun], m.holder[holderSeq], m.holder[holderMark])
}

const (
	// historyColumns are all columns of an entry.
	historyColumns = `run_id, seq, mark, at, epoch, type, path, data`

	// A transition holds its run between two of its statements: the INSERT of its first entry
	// and the UPDATE that moves the run on. In between, the entry behind the run's newest one
	// has the transition's mark. The statements in between have this condition. So they do
	// nothing for a transition that lost, and nothing when the batch is sent again: then the
	// run has moved.
	//
	// The condition is written so that every plan finds the entry by its number, and then the
	// run.
	ownEntry = `history AS mine{use PRIMARY}`
	holdsRun = `mine.run_id = r.run AND mine.seq = r#first AND mine.mark = r.mark
		AND mine.seq = (SELECT runs.seq + 1 FROM runs WHERE runs.id = mine.run_id)`
	ifHoldsRun = `EXISTS (SELECT 1 FROM ` + ownEntry + ` WHERE ` + holdsRun + `)`
)

// transitSQL are the statements of a Transit, in the order in which they are sent. The second
// of two transitions of a run waits at the first statement that locks the run. Then it finds
// the entry or the run's number changed.
type transitSQL struct {
	lockRuns, insertHistory, moreHistory, insertStepAttempts, insertStepRecorded, insertRise statement
	insertTexts, insertSteps, changeSteps, holdSteps                                         statement
	insertStepJobs, insertTakenStep, changeJobs, insertTokens, disarm, moveRun, heldBy       statement
}

func newTransitSQL(d Dialect) transitSQL {
	joined := d
	joined.rowJoin = orElse(d.rowJoin, " CROSS JOIN ") // after a comma, ON does not see the row source
	return transitSQL{
		// Only on MySQL. See Dialect.lockRuns.
		lockRuns: reading("lock_runs", lockRunsSQL(d)),
		// The entry's number is part of the primary key, so of two transitions only one inserts
		// it. The run's number is checked under a lock: a transition that knew an older state
		// finds no run.
		insertHistory: uncounted("insert_history", d.insertIfAbsent("history", historyColumns, `runs.id, runs.seq + 1, r.mark, r#at, r#epoch, r.type, r.path, r.data`,
			"runs{use PRIMARY}", `runs.id = r.run AND runs.seq = r#seq {lock_rows runs}`, "run_id")),
		// From here on no INSERT skips existing rows: under ifHoldsRun there can be none. An
		// error shows a defect; a step left out silently would stop its run.
		moreHistory: uncounted("more_history", d.insert("history", historyColumns,
			`mine.run_id, r#seq, mine.mark, r#at, r#epoch, r.type, r.path, r.data`, ownEntry, holdsRun)),
		insertStepAttempts: writing("insert_step_attempts", d.insert("attempts", attemptColumns,
			`r.job, r.lease, r#attempt, r#status_code, r.error, r.response, r#duration_ms, r#created_at`, ownEntry, holdsRun)),
		insertStepRecorded: writing("insert_step_attempts_recorded", d.insert("attempts", exchangeColumns,
			`r.job, r.lease, r#attempt, r#status_code, r.error, r.response, r#duration_ms, r#created_at, r.exchange, r.sent_body`, ownEntry, holdsRun)),
		insertRise: writing("insert_rises", d.insert("events", eventColumns,
			`r.event, r.source, r.type, r.payload, r.content_type, r.headers, r.delivery_id, r#created_at`, ownEntry, holdsRun)),
		// The exception: a text is named by its hash, so an existing row has the same content.
		// The condition is only that the transition's entry exists, since writing a text again
		// changes nothing.
		insertTexts: uncounted("insert_texts", d.insertIfAbsent("step_texts", `run_id, name, body`, `mine.run_id, r.name, r.body`, ownEntry,
			`mine.run_id = r.run AND mine.seq = r#first AND mine.mark = r.mark`, "run_id")),
		insertSteps: uncounted("insert_steps", d.insert("steps", stepColumns, `r.id, mine.run_id, r#epoch, r.parent, r.branch, r.path, r.name, r.type, r.status,
			r#attempt, r.state, r.output, r.error, r.carry, r.fan, r.leaf_of, r#started_at, r#finished_at, r.state_in, r.output_in`, ownEntry, holdsRun)),
		// leaf_of is set here, since only the end of a step tells whether it ended its branch.
		changeSteps: uncounted("change_steps", d.updateRows("steps", `status = r.status, attempt = r#attempt, output = r.output, error = r.error, carry = r.carry, fan = r.fan,
			leaf_of = CASE WHEN r.last = 'yes' THEN COALESCE(parent_id, run_id) END, finished_at = r#finished_at,
			output_in = r.output_in`,
			`steps.id = r.id AND `+ifHoldsRun)),
		// Before change_jobs, which removes the leases: held_until is the end of the lease.
		holdSteps: writing("hold_steps", d.updateRows("steps",
			`held_until = (SELECT jobs.due_at FROM jobs{use PRIMARY} WHERE jobs.id = steps.id AND jobs.status = 'running')`,
			`steps.id = r.id AND `+ifHoldsRun)),
		// The event is the run's, read from the run so that it need not be sent.
		insertStepJobs: uncounted("insert_step_jobs", d.insert("jobs", jobColumns,
			`r.id, (SELECT runs.event_id FROM runs WHERE runs.id = mine.run_id), r.lane, NULL, r.status, 0, r#max_attempts, r#due_at, NULL, '', r#created_at, NULL`, ownEntry, holdsRun)),
		// A workflow has no breaker, so its gate is shut by a hold only.
		insertTakenStep: uncounted("insert_taken_step_jobs", joined.insert("jobs", jobColumns+", scheduled_at",
			`r.id, (SELECT runs.event_id FROM runs WHERE runs.id = mine.run_id), r.lane, NULL, `+ifTakenColumns()+`, r#created_at, NULL, `+ifTaken("r#due_at", "NULL"),
			ownEntry+` LEFT JOIN gates ON gates.lane = r.lane AND gates.held_until > r#free
			LEFT JOIN gates held ON held.lane = r.source AND held.held_until > r#now`, holdsRun)),
		// A job that ends before its first attempt was due at the time for which it waited.
		// scheduled_at comes first, as in setClaimed.
		changeJobs: uncounted("change_jobs", d.updateRows("jobs",
			`scheduled_at = COALESCE(scheduled_at, due_at), status = r.status, due_at = r#due_at, lease = NULL, last_error = r.error, finished_at = r#finished_at, success = COALESCE(r.kept, success)`,
			`jobs.id = r.id AND `+ifHoldsRun)),
		insertTokens: writing("insert_tokens", d.insert("callbacks", `token_hash, run_id, step_id, expires_at`, `r.hash, mine.run_id, r.step, r#expires_at`, ownEntry, holdsRun)),
		disarm:       writing("disarm", d.deleteByIndex("callbacks_step", "callbacks", `callbacks.run_id = r.of AND callbacks.step_id = r.step AND `+ifHoldsRun)),
		// The guard reads history alone: ifHoldsRun reads runs, and MySQL does not let an
		// UPDATE read the table that it changes. The run's id is bound twice, since each column
		// of r stands once in a statement.
		moveRun: uncounted("move_runs", d.updateRows("runs", `definition = r.definition, status = r.status, epoch = r#epoch, seq = r#next, step = r.step, output = r.output, error = r.error,
			deadline_at = r#deadline_at, started_at = r#started_at, finished_at = r#finished_at,
			written = r#written, writers = r.writers`,
			`runs.id = r.run AND runs.seq = r#seq AND EXISTS (SELECT 1 FROM history AS mine{use PRIMARY}
			WHERE mine.run_id = r.same_run AND mine.seq = r#first AND mine.mark = r.mark)`)),
		heldBy: reading("held_by", heldBySQL(d)),
	}
}

// heldBySQL is the statement that reads the mark of the entry with the transition's number, the run's
// newest number, and the lease of the job that was to be taken.
func heldBySQL(d Dialect) string {
	return d.selectRows(`r.mark AS mark, runs.seq AS stands,
		(SELECT mine.mark FROM history AS mine{use PRIMARY} WHERE mine.run_id = runs.id AND mine.seq = r#first) AS holder,
		(SELECT jobs.lease FROM jobs{use PRIMARY} WHERE jobs.id = r.job) AS lease`,
		"runs{use PRIMARY}", `runs.id = r.run`)
}

// lockRunsSQL is the statement that locks runs at the beginning of a Transit; "" where the
// database needs none.
func lockRunsSQL(d Dialect) string {
	if d.lockRuns == "" {
		return ""
	}
	return d.selectRows(`runs.id AS run`, "runs{use PRIMARY}", `runs.id = r.run`) + d.lockRuns
}
