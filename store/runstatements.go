package store

import (
	"fmt"
	"strings"
)

// The statements on runs. See statements.go.

const (
	runColumns  = `id, ` + runRest
	runRest     = `workflow, event_id, definition, status, epoch, seq, step, output, error, deadline_at, created_at, started_at, finished_at, written, writers`
	stepColumns = `id, run_id, epoch, parent_id, branch, path, name, type, status, attempt, state, output, error, carry, fan, leaf_of, started_at, finished_at, state_in, output_in`

	// A run without its output, for listings.
	runSummary = `id, workflow, event_id, definition, status, epoch, seq, step, NULL AS output, error, deadline_at, created_at, started_at, finished_at, written, writers`

	// What a Situation tells of a step above: the ids are known from those below.
	aboveColumns = `parent_id, branch, path, name, type, status, attempt, error, carry, fan, leaf_of, started_at, finished_at`

	historyColumns = `run_id, seq, mark, at, epoch, type, path, data`

	// A transition holds its run while the entry behind the run's newest carries its mark:
	// from the statement that inserts that entry to the one that moves the run on. What is
	// between them has this condition, and so does nothing for who lost, and nothing when
	// it is sent again. It is written so that every plan looks for the one entry by its
	// number, and then for the run.
	entry   = `history AS mine{use PRIMARY}`
	holding = `mine.run_id = r.run AND mine.seq = r#first AND mine.mark = r.mark
		AND mine.seq = (SELECT runs.seq + 1 FROM runs WHERE runs.id = mine.run_id)`
	ifHeld = `EXISTS (SELECT 1 FROM ` + entry + ` WHERE ` + holding + `)`

	openStep = `status IN ('ready', 'running', 'waiting')`
)

// nesting is how many steps a step may be in.
const nesting = 5

// stepInFull are the columns of a step with its texts, including texts that are kept apart.
// The database reads step_texts only for a step that has a name for a text, and few steps
// have one. Joins were the alternative: PostgreSQL chooses the order of at most eight tables,
// and began with all steps.
var stepInFull = strings.NewReplacer(
	"steps.state AS", "COALESCE(steps.state, "+textIn("state_in")+") AS",
	"steps.output AS", "COALESCE(steps.output, "+textIn("output_in")+") AS").Replace(qualified("steps", stepColumns))

func textIn(name string) string {
	return "CASE WHEN steps." + name + " IS NOT NULL THEN (SELECT step_texts.body FROM step_texts{use PRIMARY} WHERE step_texts.run_id = steps.run_id AND step_texts.name = steps." + name + ") END"
}

// stepAndRun are a step and its run. Together with above they are 100 columns, and D1 has at
// most 100 columns in a result.
var stepAndRun = stepInFull + `, ` + qualified("runs", runRest)

// above are the columns of what a step is in, the next one first.
func above() (columns string) {
	for n := range nesting {
		columns += `, ` + qualified(fmt.Sprintf("above%d", n), aboveColumns)
	}
	return columns
}

// withRun and withAbove join steps with their runs and with what is above them.
const withRun = ` JOIN runs{use PRIMARY} ON runs.id = steps.run_id`

func withAbove() (joins string) {
	below := "steps"
	for n := range nesting {
		above := fmt.Sprintf("above%d", n)
		joins += fmt.Sprintf(` LEFT JOIN steps AS %[1]s{use PRIMARY} ON %[1]s.id = %[2]s.parent_id`, above, below)
		below = above
	}
	return joins
}

type runStatements struct {
	insertDefinition, insertRun, insertFirst string
	definition, situations                   string
	claimedSteps, aboveTaken                 string
	surveyOpen, surveyFailed                 string
	surveyIDs, surveyPaths, surveyLeaves     string
	textsOf, stepIDs, stepSizes, readSteps   string
	insertTexts, deleteTexts, pickTexts      string
	deleteText, sliceTexts                   string
	lockRuns, insertHistory, moreHistory     string
	insertStepAttempts, insertRise           string
	insertSteps, changeSteps, holdSteps      string
	insertStepJobs, changeJobs               string
	insertTokens, disarm                     string
	moveRun, heldBy                          string
	awaited, run, runs, history              string
	overRuns, deleteRun, deleteSteps         string
	deleteHistory, deleteCallbacks           string
	pickSteps, deleteStep, sliceSteps        string
	pickHistory, deleteEntry, sliceHistory   string
	pickCallbacks, deleteCallback            string
	sliceCallbacks                           string
}

func newRunStatements(d Dialect) runStatements {
	t := d.sql
	return runStatements{
		insertDefinition: d.insert("definitions", `hash, body`, `r.hash, r.body`, "", "", "hash"),

		// Beside its job, which an arrival that is a duplicate has not, nor one whose key is
		// taken.
		insertRun: d.insert("runs", runColumns,
			`r.id, r.workflow, jobs.event_id, r.definition, 'pending', 1, 0, r.step, NULL, '', r#deadline_at, jobs.created_at, NULL, NULL, 0, NULL`,
			"jobs{use PRIMARY}", `jobs.id = r.job`, "id"),
		insertFirst: d.insert("steps", stepColumns,
			`r.id, runs.id, 1, NULL, '', runs.step, runs.step, r.type, 'ready', 0, NULL, NULL, '', '', '', NULL, runs.created_at, NULL, NULL, NULL`,
			"runs{use PRIMARY}", `runs.id = r.run`, "id"),

		definition: t(`SELECT body FROM definitions WHERE hash = ?`),
		// One statement reads the whole situation at one moment.
		situations: d.selection(stepAndRun+above(), "steps{use PRIMARY}"+withRun+withAbove(), `steps.id = r.id`),

		// What a Take of a workflow's jobs brings, in two statements: few steps are in another,
		// and the columns of what those are in are most of a situation's. So few that a plan
		// could begin with them, if it knew: it is to begin with the jobs that were claimed.
		claimedSteps: t(`SELECT ` + takenColumns + `, ` + stepAndRun + ` FROM jobs{use jobs_waiting}` + withEvents + `
			LEFT JOIN steps{use PRIMARY} ON steps.id = jobs.id LEFT` + withRun + ` WHERE ` + leased),
		aboveTaken: t(`SELECT steps.id` + above() + ` FROM jobs{use jobs_waiting} JOIN steps{use PRIMARY} ON steps.id = jobs.id` + withAbove() + `
			WHERE ` + leased + ` AND COALESCE(steps.parent_id, '') <> ''`),

		surveyOpen:   t(`SELECT ` + stepColumns + ` FROM steps{use steps_path} WHERE run_id = ? AND epoch = ? AND ` + openStep),
		surveyFailed: t(`SELECT ` + stepColumns + ` FROM steps{use steps_path} WHERE run_id = ? AND epoch = ? AND status = 'failed'`),
		// With the run and epoch as a condition, a plan might read all steps of that.
		surveyIDs:    d.selection(qualified("steps", stepColumns), "steps{use PRIMARY}", `steps.id = r.id`),
		surveyLeaves: d.selection(qualified("steps", stepColumns), "steps{use steps_leaf}", `steps.leaf_of = r.parent`),
		surveyPaths: d.selection(qualified("steps", stepColumns), "steps{use steps_path}",
			`steps.run_id = r.run AND steps.epoch = r#epoch AND steps.path = r.path`),
		textsOf: d.selection(`step_texts.name, step_texts.body`, "step_texts{use PRIMARY}", `step_texts.run_id = r.run AND step_texts.name = r.name`),

		stepIDs: t(`SELECT id FROM steps{use steps_path} WHERE run_id = ? AND epoch = ? AND id > ?`),
		stepSizes: d.selection(`steps.id AS id, COALESCE(LENGTH(steps.state), 0) AS state_size, COALESCE(LENGTH(steps.output), 0) AS output_size,
			steps.state_in AS state_in, steps.output_in AS output_in,
			CASE WHEN steps.output = '' THEN 'yes' ELSE 'no' END AS passes`, "steps{use PRIMARY}", `steps.id = r.id`),
		readSteps: d.selection(stepInFull+`, steps.held_until AS held_until`, "steps{use PRIMARY}", `steps.id = r.id`),

		// A Transit, in the order of its statements. Whoever comes second waits at the first
		// of them, and finds the entry or the run's number changed.
		lockRuns: lockRuns(d),
		insertHistory: d.insert("history", historyColumns, `runs.id, runs.seq + 1, r.mark, r#at, r#epoch, r.type, r.path, r.data`,
			"runs{use PRIMARY}", `runs.id = r.run AND runs.seq = r#seq {hold runs}`, "run_id"),
		moreHistory: d.insertNew("history", historyColumns, `mine.run_id, r#seq, mine.mark, r#at, r#epoch, r.type, r.path, r.data`, entry, holding),
		insertStepAttempts: d.insertNew("attempts", attemptColumns,
			`r.job, r.lease, r#attempt, r#status_code, r.error, r.response, r#duration_ms, r#created_at`, entry, holding),
		insertRise: d.insertNew("events", eventColumns,
			`r.event, r.source, r.type, r.payload, r.content_type, r.headers, r.delivery_id, r#created_at`, entry, holding),
		// A name always has the same text, so the row may be there already.
		insertTexts: d.insert("step_texts", `run_id, name, body`, `mine.run_id, r.name, r.body`, entry,
			`mine.run_id = r.run AND mine.seq = r#first AND mine.mark = r.mark`, "run_id"),
		insertSteps: d.insertNew("steps", stepColumns, `r.id, mine.run_id, r#epoch, r.parent, r.branch, r.path, r.name, r.type, r.status,
			r#attempt, r.state, r.output, r.error, r.carry, r.fan, r.leaf_of, r#started_at, r#finished_at, r.state_in, r.output_in`, entry, holding),
		changeSteps: d.updateRows("steps", `status = r.status, attempt = r#attempt, output = r.output, error = r.error, carry = r.carry, fan = r.fan,
			leaf_of = CASE WHEN r.last = 'yes' THEN COALESCE(parent_id, run_id) END, finished_at = r#finished_at,
			output_in = r.output_in`,
			`steps.id = r.id AND `+ifHeld),
		// Before the jobs are changed: then their leases are gone.
		holdSteps: d.updateRows("steps", `held_until = (SELECT jobs.due_at FROM jobs{use PRIMARY} WHERE jobs.id = steps.id AND jobs.status = 'running')`,
			`steps.id = r.id AND `+ifHeld),
		insertStepJobs: d.insertNew("jobs", jobColumns,
			`r.id, (SELECT runs.event_id FROM runs WHERE runs.id = mine.run_id), r.lane, NULL, r.status, 0, r#max_attempts, r#due_at, NULL, '', r#created_at, NULL`, entry, holding),
		// A job that ends before its first attempt was due at the time for which it waited.
		// scheduled_at comes first, as in claimed.
		changeJobs: d.updateRows("jobs", `scheduled_at = COALESCE(scheduled_at, due_at), status = r.status, due_at = r#due_at, lease = NULL, last_error = r.error, finished_at = r#finished_at`,
			`jobs.id = r.id AND `+ifHeld),
		insertTokens: d.insertNew("callbacks", `token_hash, run_id, step_id, expires_at`, `r.hash, mine.run_id, r.step, r#expires_at`, entry, holding),
		disarm:       d.deleteBy("callbacks_step", "callbacks", `callbacks.run_id = r.of AND callbacks.step_id = r.step AND `+ifHeld),
		// What it is guarded by is what it changes, which MySQL does not let an UPDATE read.
		moveRun: d.updateRows("runs", `definition = r.definition, status = r.status, epoch = r#epoch, seq = r#next, step = r.step, output = r.output, error = r.error,
			deadline_at = r#deadline_at, started_at = r#started_at, finished_at = r#finished_at,
			written = r#written, writers = r.writers`,
			`runs.id = r.run AND runs.seq = r#seq AND EXISTS (SELECT 1 FROM history AS mine{use PRIMARY}
			WHERE mine.run_id = r.same_run AND mine.seq = r#first AND mine.mark = r.mark)`),
		// Who made the entry behind the one that a transition knew, and where the run stands.
		heldBy: d.selection(`r.mark AS mark, runs.seq AS stands,
			(SELECT mine.mark FROM history AS mine{use PRIMARY} WHERE mine.run_id = runs.id AND mine.seq = r#first) AS holder`,
			"runs{use PRIMARY}", `runs.id = r.run`),

		// A receipt is a row without a step, which never expires.
		awaited: t(`SELECT step_id, run_id FROM callbacks WHERE token_hash IN (?, ?) AND (step_id = '' OR expires_at > ?)`),

		run:     t(`SELECT ` + runColumns + ` FROM runs WHERE id = ?`),
		runs:    t(`SELECT ` + runSummary + ` FROM runs{use runs_event, runs_status, PRIMARY} WHERE id < ?`),
		history: t(`SELECT seq, at, epoch, type, path, data FROM history WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT {limit}`),

		overRuns: t(`SELECT id, event_id, seq FROM runs{use runs_finished} WHERE finished_at < ? ORDER BY finished_at, id LIMIT {limit}`),

		// Whatever happened since they were picked: a run that was redriven stays.
		deleteRun:       d.deleteRows("runs", `runs.id = r.id AND runs.finished_at < r#before`),
		deleteSteps:     d.deleteBy("steps_path", "steps", `steps.run_id = r.run AND `+noRun("steps")),
		deleteTexts:     d.deleteRows("step_texts", `step_texts.run_id = r.run AND `+noRun("step_texts")),
		deleteHistory:   d.deleteRows("history", `history.run_id = r.run AND `+noRun("history")),
		deleteCallbacks: d.deleteBy("callbacks_step", "callbacks", `callbacks.run_id = r.run AND `+noRun("callbacks")),

		pickSteps:      t(`SELECT id FROM steps{use steps_path} WHERE run_id = ? LIMIT {limit}`),
		deleteStep:     d.deleteRows("steps", `steps.id = r.id AND `+noRun("steps")),
		sliceSteps:     t(slice("run_id", "steps{use steps_path}", "runs")),
		pickTexts:      t(`SELECT run_id, name FROM step_texts{use PRIMARY} WHERE run_id = ? LIMIT {limit}`),
		deleteText:     d.deleteRows("step_texts", `step_texts.run_id = r.run AND step_texts.name = r.name AND `+noRun("step_texts")),
		sliceTexts:     t(slice("run_id", "step_texts{use PRIMARY}", "runs")),
		pickHistory:    t(`SELECT run_id, seq FROM history WHERE run_id = ? LIMIT {limit}`),
		deleteEntry:    d.deleteRows("history", `history.run_id = r.run AND history.seq = r#seq AND `+noRun("history")),
		sliceHistory:   t(slice("run_id", "history{use PRIMARY}", "runs")),
		pickCallbacks:  t(`SELECT token_hash FROM callbacks{use callbacks_step} WHERE run_id = ? LIMIT {limit}`),
		deleteCallback: d.deleteRows("callbacks", `callbacks.token_hash = r.hash AND `+noRun("callbacks")),
		sliceCallbacks: t(slice("run_id", "callbacks{use callbacks_step}", "runs")),
	}
}

// lockRuns keeps runs as they are, where the guards need that.
func lockRuns(d Dialect) string {
	if d.alone == "" {
		return ""
	}
	return d.selection(`runs.id AS run`, "runs{use PRIMARY}", `runs.id = r.run`) + d.alone
}

// noRun is the condition that a row's run is gone.
func noRun(table string) string {
	return `NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = ` + table + `.run_id)`
}
