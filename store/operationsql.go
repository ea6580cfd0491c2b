package store

import "github.com/eventgateway/gateway/core"

// operationsSQL are the statements on operations. See "Operations" in doc.go.
type operationsSQL struct {
	insertOperation, operation, operations, endOperation, purgeOperations statement
	beginSlice, countPicks, moveOperation, stepOperation, dropPicks       statement
	pickFinished, revivePicked, enterPicked, enteredAgain                 statement
	pickWaiting, cancelPicked                                             statement
	pickEvents, insertPicked, insertPickedLater, insertPickedLined        statement
	walkDead, walkCanceled, eventKinds                                    statement
}

const (
	// The operation is in this slice: no other slice with its number took effect.
	inSlice = `EXISTS (SELECT 1 FROM operations AS o{use PRIMARY} WHERE o.id = r.of AND o.seq = r#seq AND o.mark = r.mark)`

	// A match that this slice picked.
	picked = `EXISTS (SELECT 1 FROM operation_picks AS p{use PRIMARY} WHERE p.operation = r.operation AND p.item = r.same)`

	// A job that an operation may change.
	changeable = noWorkflow + ` AND lane <> '` + string(core.OperationLane) + `'`

	theSlice = `id = ? AND seq = ? AND mark = ?`
	picks    = `(SELECT COUNT(*) FROM operation_picks{use PRIMARY} WHERE operation = ?)`
)

func newOperationsSQL(d Dialect) operationsSQL {
	t := d.sql
	pick := func(name, table, column, where string) statement {
		return writing(name, d.insert("operation_picks", "operation, item", `r.operation, `+table+`.id`, table+"{use PRIMARY}",
			table+`.id = r.`+column+` AND `+where+inSlice))
	}
	walk := func(name, index string) statement {
		return reading(name, t(`SELECT `+jobStored+` FROM jobs{use jobs_`+index+`} WHERE {in_`+index+`} AND {from lane} AND {below lane}
			ORDER BY lane, id LIMIT {limit}`))
	}
	// A slice that is sent again has no picks.
	onPicks := func(name, columns, values string) statement {
		return writing(name, d.insert("jobs", columns, values, "operation_picks{use PRIMARY}",
			`operation_picks.operation = r.operation AND operation_picks.item = r.event_id`))
	}
	return operationsSQL{
		insertOperation: writing("insert_operation", d.insertIfAbsent("operations", operationColumns+", mark",
			`r.id, r.spec, r.state, '', 0, '', 0, 0, 0, NULL, NULL, ''`, "", "", "id")),
		operation:  reading("operation", t(`SELECT `+operationColumns+` FROM operations WHERE id = ?`)),
		operations: reading("operations", t(`SELECT `+operationColumns+` FROM operations{use PRIMARY} WHERE id < ? ORDER BY id DESC LIMIT {limit}`)),
		endOperation: writing("end_operation", t(`UPDATE operations SET state = ?, error = ?, finished_at = ?
			WHERE id = ? AND state = 'running'`)),
		purgeOperations: writing("purge_operations", t(`DELETE FROM operations WHERE id < ? AND finished_at < ?`)),

		// It locks the operation, so of two slices with one number the second finds the number moved.
		beginSlice: writing("begin_slice", t(`UPDATE operations SET mark = ?, started_at = COALESCE(started_at, ?)
			WHERE id = ? AND seq = ? AND state = 'running'`)),
		countPicks: writing("count_picks", t(`UPDATE operations SET acted = acted + `+picks+` + {limit} WHERE `+theSlice)),
		moveOperation: writing("move_operation", t(`UPDATE operations SET walked = ?, looked = looked + {limit}, skipped = skipped + {limit},
			state = ?, error = ?, finished_at = ? WHERE `+theSlice+` AND `+picks+` >= {limit}`)),
		// It ends the condition inSlice, so it comes after all statements with that condition.
		stepOperation: writing("step_operation", t(`UPDATE operations SET seq = seq + 1 WHERE `+theSlice)),
		dropPicks:     writing("drop_picks", t(`DELETE FROM operation_picks WHERE operation = ?`)),

		pickFinished: pick("pick_finished", "jobs", "job", `jobs.status IN ('dead', 'canceled') AND `+changeable+` AND `).thatSkips(d),
		revivePicked: writing("revive_picked", d.updateRows("jobs", "status = 'available', due_at = r#now, "+revivedBudget, `jobs.id = r.id AND `+picked)),
		enterPicked:  writing("enter_picked", d.updateRows("jobs", `status = '`+entering+`', scheduled_at = CASE WHEN `+hasSlot+` THEN scheduled_at END, `+revivedBudget, `jobs.id = r.id AND `+picked)),
		enteredAgain: writing("entered_again", d.updateRows("jobs", `status = CASE WHEN `+hasSlot+` THEN 'available' ELSE 'waiting' END,
			due_at = CASE WHEN `+hasSlot+` THEN r#now END`, `jobs.id = r.id AND jobs.status = '`+entering+`'`)),

		// The lease of a running job is over once its due time has come.
		pickWaiting: pick("pick_waiting", "jobs", "job", `(jobs.status IN ('available', 'scheduled', 'waiting', 'retryable')
			OR jobs.status = 'running' AND jobs.due_at <= r#now) AND `+changeable+` AND `).thatSkips(d),
		// scheduled_at comes before due_at: MySQL evaluates SET from left to right and reads the new values.
		cancelPicked: writing("cancel_picked", d.updateRows("jobs",
			`scheduled_at = COALESCE(scheduled_at, due_at), status = 'canceled', due_at = NULL, lease = NULL, finished_at = r#now`, `jobs.id = r.id AND `+picked)),

		pickEvents:        pick("pick_events", "events", "event", ""),
		insertPicked:      onPicks("insert_picked_jobs", jobColumns, newJobs("operation_picks.item", core.Available)),
		insertPickedLater: onPicks("insert_picked_scheduled_jobs", jobColumns, newJobs("operation_picks.item", core.Scheduled)),
		insertPickedLined: onPicks("insert_picked_lined_jobs", jobColumns+", line, scheduled_at",
			`r.id, operation_picks.item, r.lane, r.job_key, '`+entering+`', 0, r#max_attempts, NULL, NULL, '', r#created_at, NULL, r.line, r#wanted_at`),

		walkDead:     walk("walk_dead", "dead"),
		walkCanceled: walk("walk_canceled", "canceled"),
		eventKinds:   reading("event_kinds", d.selectRows(`events.id AS event, events.source AS source, events.type AS type`, "events{use PRIMARY}", `events.id = r.id`)),
	}
}

// thatSkips ends a statement that picks jobs: it locks them, and skips jobs that another
// transaction has locked. So a slice never waits for a Take or a Settle, and cannot deadlock with
// them.
func (st statement) thatSkips(d Dialect) statement {
	if d.lockRows != "" {
		st.sql += " " + d.sql("{lock_rows jobs}") + " SKIP LOCKED"
	}
	return st
}
