package store

// Every statement on the tables, written once. Fragments in braces are filled in
// by the dialect; r is the row source of a statement on Rows. Columns of an
// INSERT and of a SELECT that scan.go reads are in the same order everywhere.
// Columns of a result have names, all different: SQL over HTTP returns objects.

const (
	eventColumns   = `id, source, type, payload, content_type, headers, delivery_id, created_at`
	eventStored    = eventColumns + `, encoding`
	jobColumns     = `id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at, finished_at`
	jobStored      = jobColumns + `, earlier, scheduled_at`
	attemptColumns = `job_id, lease, attempt, status_code, error, response, duration_ms, created_at`

	// An event without payload and headers, for listings.
	eventSummary = `id, source, type, '' AS payload, content_type, '' AS headers, delivery_id, created_at, encoding`

	// How many jobs came with an event: a run came with one, and makes more.
	jobCount = `((SELECT COUNT(*) FROM jobs WHERE jobs.event_id = events.id AND NOT EXISTS (SELECT 1 FROM steps WHERE steps.id = jobs.id)) +
		(SELECT COUNT(*) FROM runs WHERE runs.event_id = events.id))`

	// An event that no job and no run is about.
	bare = `NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.event_id = events.id) AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.event_id = events.id)`

	// An attempt whose job is gone.
	noJob = `NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = attempts.job_id)`

	// Jobs of workflows are not brought back by themselves, and who looks on is not told of
	// alerts. The ranges are those of all lanes which begin so.
	noWorkflow = `(lane < 'workflow/' OR lane >= 'workflow0')`

	noAlert = `(lane < 'alert/' OR lane >= 'alert0')`

	// A job as the ledger shows it, with its run and step.
	jobShown = jobStored + `, (SELECT steps.run_id FROM steps WHERE steps.id = jobs.id) AS run_id, (SELECT steps.path FROM steps WHERE steps.id = jobs.id) AS step`

	// What a claim took is found by the due time it wrote, which is in the index, and
	// told apart from other jobs of that millisecond by its lease.
	mine = `FROM jobs AS mine{use jobs_waiting} WHERE mine.{due_lane} = ? AND mine.due_at = ? AND mine.lease = ?`

	// Due jobs of a lane. A claim that is sent again, or arrives late, finds what it
	// took and takes no more.
	dueJobs   = `FROM jobs{use jobs_waiting} WHERE {due_lane} = ? AND due_at >= ? AND due_at <= ?`
	claimable = dueJobs + ` AND NOT EXISTS (SELECT 1 ` + mine + `{past})`
	oldest    = ` ORDER BY due_at, id LIMIT {limit}`

	// The guard of every write to a taken job.
	held = `jobs.id = r.id AND jobs.status = 'running' AND jobs.lease = r.lease`

	// The same for a core.Ref, whose lease may be missing.
	meant = `jobs.id = r.id AND jobs.lane = r.lane AND jobs.status = 'running' AND jobs.lease = COALESCE(r.lease, jobs.lease)`

	// Jobs with their events, in an order that an index has.
	withEvents = ` JOIN events ON events.id = jobs.event_id`

	// What a claim has leased.
	leased = `jobs.{due_lane} = ? AND jobs.due_at = ? AND jobs.lease = ?`

	gateColumns = `lane, failures, open_until, closed_at, moved_by, taker, base_us, next_us, stray_since`

	// What a Gate is read from, after its lane.
	gateState = `gates.failures, gates.open_until, gates.closed_at, gates.next_us, gates.moved_by`
)

// What a gate's breaker is.
var (
	isOpen   = `gates.open_until <> 0`
	isClosed = `gates.open_until = 0`

	// Of an open one only the newest probe decides. Opening takes the taker's name
	// out, so that this is a probe.
	moves = `(` + isClosed + ` OR gates.taker = `
)

// A job with its event, as scanTaken reads it.
var takenColumns = qualified("jobs", jobStored) + `, ` + qualified("events", eventStored)

type statements struct {
	insertEvent, insertJob, insertJobIf, dropBare string
	insertEncoded                                 string
	stored, deliveredAs, keyedAs                  string
	due, claim, claimPassed, claimed              string
	insertAttempt, settle, settled, insertEventIf string
	release, recover                              string
	retryOne, retryLane, retryAll, retryEarly     string
	countDead, countDeadLane                      string
	overJobs, overEvents                          string
	deleteJob, deleteAttempts, deleteEvent        string
	event, job, jobs, attempts, depth             string
	marks, insertMark, moveMark                   string
	insertGate, gates, admit, admitProbe, bases   string
	charge, refund, succeed, fail, endProbe       string
	waiting, markStray, clearStray, forgetStrays  string
	setBack, closeGate                            string
	ack, extend, held, lapsed, peek, deadLetters  string
	tally, tallyDead                              string
	drainWaiting, drainDead, drainJobs            string
	answerPing                                    string
	readEvents, jobsOf, attemptsOf                string
	events, eventIDs, eventSizes                  eventListing
	pickAttempts, deleteAttempt, sliceAttempts    string
	idleGates, forgetGates                        string
	jobsNear, readJobs                            string
	waitingIDs, deadIDs, doneIDs                  string
	lanesWaiting, lanesDead, lanesDone, sourcesOf string
	finished, over, buried                        string
	holdEvents, replayed, insertTurn, turn, whose string

	runStatements
}

func newStatements(d Dialect) statements {
	t := d.sql
	return statements{
		insertEvent: d.insert("events", eventColumns,
			`r.id, r.source, r.type, r.payload, r.content_type, r.headers, r.delivery_id, r#created_at`, "", "", "id"),
		insertEncoded: d.insert("events", eventStored,
			`r.id, r.source, r.type, r.payload, r.content_type, r.headers, r.delivery_id, r#created_at, r.encoding`, "", "", "id"),

		insertJob: d.insert("jobs", jobColumns,
			`r.id, r.event_id, r.lane, r.job_key, 'available', 0, r#max_attempts, r#due_at, NULL, '', r#created_at, NULL`, "", "", "id"),

		// The same, only beside its event: where a duplicate's event was left out, this
		// finds none to join.
		insertJobIf: d.insert("jobs", jobColumns,
			`r.id, events.id, r.lane, r.job_key, 'available', 0, r#max_attempts, r#due_at, NULL, '', r#created_at, NULL`,
			"events{use PRIMARY}", `events.id = r.event_id`, "id"),

		// An arrival whose jobs all have keys that are known is not stored. Whether they
		// are is known for certain only once they have been inserted, or not.
		dropBare: d.deleteRows("events", `events.id = r.id AND `+bare),

		// Which stored event answers for an arrival: its own, or the one with its
		// delivery id, or the one a job with its key belongs to. The arrival's own id
		// comes first, then the event's, then how many jobs that has.
		stored:      d.selection(`events.id AS arrival, events.id AS event, `+jobCount+` AS jobs`, "events", `events.id = r.id`),
		deliveredAs: d.selection(`r.id AS arrival, events.id AS event, `+jobCount+` AS jobs`, "events", `events.source = r.source AND events.delivery_id = r.delivery_id`),
		keyedAs:     d.selection(`r.id AS arrival, jobs.event_id AS event, 0 AS jobs`, "jobs", `jobs.lane = r.lane AND jobs.job_key = r.job_key`),

		due: d.outer(`r.lane AS lane, (SELECT due_at FROM jobs{use jobs_waiting}
			WHERE {due_lane} = r.same_lane AND due_at >= r#floor ORDER BY due_at LIMIT 1) AS due, `+gateState,
			"gates{use PRIMARY}", `gates.lane = r.gate`),

		// Without a Pass: only while the gate is wide open. One with a Pass was admitted.
		claim: d.updatePicked("jobs", claimed, claimable+` AND NOT EXISTS (SELECT 1 FROM gates
			WHERE gates.lane = ? AND (`+isOpen+` OR gates.closed_at > ? AND gates.closed_at <= ?))`+oldest),
		claimPassed: d.updatePicked("jobs", claimed, claimable+` AND EXISTS (SELECT 1 FROM gates
			WHERE gates.lane = ? AND gates.taker = ?)`+oldest),

		claimed: t(`SELECT ` + takenColumns + ` FROM jobs{use jobs_waiting}` + withEvents + ` WHERE ` + leased),

		insertAttempt: d.insert("attempts", attemptColumns,
			`jobs.id, jobs.lease, r#attempt, r#status_code, r.error, r.response, r#duration_ms, r#created_at`, "jobs{use PRIMARY}", held+` {hold jobs}`, "job_id"),

		// What an outcome gives rise to is stored beside the job it ends.
		insertEventIf: d.insert("events", eventColumns,
			`r.event, r.source, r.type, r.payload, r.content_type, r.headers, r.delivery_id, r#created_at`, "jobs{use PRIMARY}", held, "id"),

		settle: d.updateRows("jobs",
			`status = r.status, attempt = r#attempt, due_at = r#due_at, lease = NULL, last_error = r.last_error, finished_at = r#finished_at`, held),

		settled: d.selection(`attempts.job_id, attempts.lease`, "attempts", `attempts.job_id = r.id AND attempts.lease = r.lease`),

		// status first: MySQL evaluates SET from left to right with the new values. The job of a
		// step is also taken when its time has come: only one with an error has failed.
		release: t(`UPDATE jobs SET status = CASE WHEN attempt > earlier + 1 AND (last_error <> '' OR ` + noWorkflow + `) THEN 'retryable' ELSE 'available' END,
			attempt = attempt - 1, due_at = ?, lease = NULL
			WHERE id = ? AND status = 'running' AND lease = ?`),

		recover: t(`UPDATE jobs{use jobs_waiting} SET due_at = ? WHERE {due_lane} = ? AND due_at > ? AND status = 'running'`),

		retryOne:   t(`UPDATE jobs SET ` + revived + ` WHERE status = 'dead' AND id = ? AND ` + noWorkflow),
		retryEarly: t(`UPDATE jobs SET due_at = ? WHERE status IN ('available', 'scheduled', 'retryable') AND due_at > ? AND id = ? AND ` + noWorkflow),
		retryLane:  d.updatePicked("jobs", revived, `FROM jobs{use jobs_dead} WHERE {dead} AND {dead_lane} = ? LIMIT {limit}`),
		retryAll:   d.updatePicked("jobs", revived, `FROM jobs{use jobs_dead} WHERE {dead} AND `+noWorkflow+` LIMIT {limit}`),

		countDead:     t(`SELECT COUNT(*) FROM jobs{use jobs_dead} WHERE {dead} AND ` + noWorkflow),
		countDeadLane: t(`SELECT COUNT(*) FROM jobs WHERE {dead} AND {dead_lane} = ?`),

		overJobs: t(`SELECT id, event_id, attempt FROM jobs{use jobs_finished} WHERE finished_at < ? ORDER BY finished_at, id LIMIT {limit}`),

		// Ids grow with time, so old events are at the head of the primary key. Those that
		// still have jobs come without their second column: however many there are, a look is
		// at no more than its limit.
		overEvents: t(`SELECT events.id AS looked, CASE WHEN events.created_at < ? AND ` + bare + ` THEN events.id END AS over_id
			FROM (SELECT id, created_at FROM events{use PRIMARY} WHERE id > ? AND id < ? ORDER BY id LIMIT {limit}) AS events ORDER BY events.id`),

		// Whatever happened since they were picked: a job that was brought back stays.
		deleteJob:      d.deleteRows("jobs", `jobs.id = r.id AND jobs.finished_at < r#before`),
		deleteAttempts: d.deleteRows("attempts", `attempts.job_id = r.id AND `+noJob),
		deleteEvent:    d.deleteRows("events", `events.id = r.id AND events.created_at < r#before AND `+bare),

		pickAttempts:  t(`SELECT job_id, lease FROM attempts WHERE job_id = ? LIMIT {limit}`),
		deleteAttempt: d.deleteRows("attempts", `attempts.job_id = r.id AND attempts.lease = r.lease AND `+noJob),
		sliceAttempts: t(slice("job_id", "attempts{use PRIMARY}", "jobs")),

		idleGates:   t(`SELECT lane FROM gates{use PRIMARY} WHERE lane > '' AND ` + idle("?", "?", "?") + ` LIMIT {limit}`),
		forgetGates: d.deleteRows("gates", `gates.lane = r.lane AND `+idle("r#closed", "r#until", "r#next")),

		event:    t(`SELECT ` + eventStored + ` FROM events WHERE id = ?`),
		events:   d.eventListing(eventSummary),
		job:      t(`SELECT ` + jobShown + ` FROM jobs WHERE id = ?`),
		jobs:     t(`SELECT ` + jobShown + ` FROM jobs{use jobs_event, PRIMARY} WHERE id < ?`),
		attempts: t(`SELECT attempt, status_code, error, response, duration_ms, created_at FROM attempts WHERE job_id = ? ORDER BY created_at, attempt`),
		depth:    t(`SELECT COUNT(*) FROM (SELECT 1 AS one FROM jobs WHERE {waiting} LIMIT {limit}) AS counted`),

		marks:      d.selection(`cron_marks.source, cron_marks.schedule, cron_marks.until_at`, "cron_marks{use PRIMARY}", `cron_marks.source = r.source`),
		insertMark: d.insert("cron_marks", `source, schedule, until_at`, `r.source, r.schedule, r#until_at`, "", "", "source"),
		moveMark: d.updateRows("cron_marks", `schedule = r.schedule, until_at = r#until_at`,
			`cron_marks.source = r.source AND (cron_marks.until_at < r#later OR cron_marks.schedule <> r.other)`),

		insertGate: d.insert("gates", gateColumns, `r.lane, 0, 0, 0, '', '', 0, 0, NULL`, "", "", "lane"),
		gates:      d.selection(`gates.lane, `+gateState+`, gates.stray_since`, "gates{use PRIMARY}", `gates.lane = r.lane`),

		// A Take with a Pass writes its lease into the gate, and where its starts begin.
		// A time of next_us that is too far away was written before the clock was set back.
		admit: t(`UPDATE gates SET taker = ?, base_us = CASE WHEN next_us < ? OR next_us > ? THEN ? ELSE next_us END
			WHERE lane = ? AND taker <> ? AND closed_at = ? AND ` + isClosed + ` AND (next_us <= ? OR next_us > ?)`),

		// For a probe, what is to be put back if there was none to take.
		admitProbe: t(`UPDATE gates SET taker = ?, base_us = open_until, open_until = ?
			WHERE lane = ? AND closed_at = ? AND ` + isOpen + ` AND (open_until <= ? OR open_until > ?)
			AND EXISTS (SELECT 1 ` + dueJobs + `)`),

		charge: t(`UPDATE gates SET next_us = base_us + ? * (SELECT COUNT(*) ` + mine + `)
			WHERE lane = ? AND taker = ? AND EXISTS (SELECT 1 ` + mine + `)`),
		refund: t(`UPDATE gates SET open_until = base_us
			WHERE lane = ? AND taker = ? AND NOT EXISTS (SELECT 1 ` + mine + `)`),
		bases: d.selection(`gates.lane, gates.base_us`, "gates{use PRIMARY}", `gates.lane = r.lane AND gates.taker = r.taker`),

		// Verdicts count once: while the job is held. open_until and failures come last, since
		// MySQL evaluates SET from left to right with the new values. Where nothing failed, a
		// success changes no row.
		succeed: d.updateRows("gates", `closed_at = CASE WHEN `+isOpen+` THEN r#closed_at ELSE closed_at END,
			moved_by = CASE WHEN `+isOpen+` THEN r.moved_by ELSE moved_by END, taker = CASE WHEN `+isOpen+` THEN '' ELSE taker END,
			open_until = 0, failures = 0`,
			`gates.lane = r.lane AND gates.failures > 0 AND `+moves+`r.taker) AND EXISTS (SELECT 1 FROM jobs WHERE `+held+`)`),
		fail: t(`UPDATE gates SET moved_by = CASE WHEN ` + isOpen + ` THEN '' WHEN failures >= ? THEN ? ELSE moved_by END,
			taker = CASE WHEN ` + isOpen + ` OR failures >= ? THEN '' ELSE taker END,
			open_until = CASE WHEN ` + isOpen + ` OR failures >= ? THEN ? ELSE open_until END, failures = failures + 1
			WHERE lane = ? AND ` + moves + `?) AND EXISTS (SELECT 1 FROM jobs
			WHERE jobs.id = ? AND jobs.status = 'running' AND jobs.lease = ?)`),
		// The newest probe has its name in the gate for as long as it is held.
		endProbe: d.updateRows("gates", `open_until = r#open_until, taker = ''`,
			`gates.lane = r.lane AND `+isOpen+` AND gates.taker = r.taker`),
		closeGate: d.updateRows("gates", `closed_at = CASE WHEN `+isOpen+` THEN r#closed_at ELSE closed_at END,
			moved_by = '', taker = CASE WHEN `+isOpen+` THEN '' ELSE taker END, open_until = 0, failures = 0`,
			`gates.lane = r.lane AND gates.failures > 0`),

		// The first lane between two others in which jobs wait.
		waiting: d.ranges(`(SELECT {due_lane} FROM jobs{use jobs_waiting} WHERE {waiting}
			AND {due_lane} > r.above AND {due_lane} < r.below ORDER BY {due_lane} LIMIT 1) AS lane, r.end AS below`),
		markStray: d.updateRows("gates", `stray_since = r#since`, `gates.lane = r.lane AND gates.stray_since IS NULL`),
		setBack: d.updateRows("gates", `failures = 0, open_until = 0, closed_at = 0, moved_by = '', taker = '', base_us = 0, next_us = 0`,
			`gates.lane = r.lane AND gates.stray_since <= r#before`),
		clearStray: d.updateRows("gates", `stray_since = NULL`, `gates.lane = r.lane`),

		// All lanes' gates are few. Named so, they are found by the primary key.
		forgetStrays: t(`UPDATE gates{use PRIMARY} SET stray_since = NULL WHERE lane > '' AND stray_since IS NOT NULL`),

		ack: d.updateRows("jobs",
			`status = 'completed', due_at = NULL, lease = NULL, last_error = '', finished_at = r#finished_at`, meant),
		// A job counts that is found, also if its time was the same: see ClientFoundRows in
		// store/mysql.
		extend: d.updateRows("jobs", `due_at = r#due_at`, meant),
		held:   d.selection(takenColumns, "jobs{use PRIMARY}"+withEvents, meant),

		lapsed: t(`SELECT ` + takenColumns + ` FROM jobs{use jobs_lapsing}` + withEvents + `
			WHERE {last} AND {last_lane} = ? AND due_at <= ? ORDER BY due_at, jobs.id LIMIT {limit}`),

		peek: t(`SELECT ` + takenColumns + ` FROM jobs{use jobs_waiting}` + withEvents + `
			WHERE {due_lane} = ? AND due_at <= ? ORDER BY due_at, jobs.id LIMIT {limit}`),
		deadLetters: t(`SELECT ` + takenColumns + ` FROM jobs{use jobs_dead}` + withEvents + `
			WHERE {dead} AND {dead_lane} = ? AND jobs.id < ? ORDER BY jobs.id DESC LIMIT {limit}`),

		// All of it is in the index.
		tally: t(`SELECT COUNT(CASE WHEN status <> 'running' OR due_at <= ? THEN 1 END) AS pending,
			COUNT(CASE WHEN status = 'retryable' OR status = 'running' AND due_at <= ? THEN 1 END) AS retryable,
			COUNT(CASE WHEN status = 'running' AND due_at > ? THEN 1 END) AS processing, MIN(due_at) AS oldest,
			COUNT(CASE WHEN status = 'scheduled' AND due_at > ? THEN 1 END) AS scheduled
			FROM (SELECT status, due_at FROM jobs{use jobs_waiting} WHERE {waiting} AND {due_lane} = ? ORDER BY due_at, id LIMIT {limit}) AS counted`),
		tallyDead: t(`SELECT COUNT(*) AS dead FROM (SELECT 1 AS one FROM jobs{use jobs_dead} WHERE {dead} AND {dead_lane} = ? LIMIT {limit}) AS counted`),

		drainWaiting: t(`SELECT id FROM jobs{use jobs_waiting} WHERE {waiting} AND {due_lane} = ? AND id < ?` + oldest),
		drainDead:    t(`SELECT id FROM jobs{use jobs_dead} WHERE {dead} AND {dead_lane} = ? AND id < ? ORDER BY id LIMIT {limit}`),
		// Whatever happened since they were picked: a job that was completed stays.
		drainJobs: d.deleteRows("jobs", `jobs.id = r.id AND jobs.status <> 'completed'`),

		answerPing: t(`SELECT 1`),

		eventIDs:   d.eventListing(`id`),
		eventSizes: d.eventListing(`id, LENGTH(payload) + LENGTH(headers) AS size`),
		sourcesOf:  d.distinct(`source`, `events{use events_by_kind}`, `type = ?`),
		readEvents: d.selection(eventStored, "events{use PRIMARY}", `events.id = r.id`),
		jobsOf:     d.selection(jobShown, "jobs{use jobs_event}", `jobs.event_id = r.event`),
		attemptsOf: d.selection(`attempt, status_code, error, '' AS response, duration_ms, created_at, job_id`, "attempts{use PRIMARY}", `attempts.job_id = r.id`),

		jobsNear: t(`SELECT ` + jobShown + ` FROM (SELECT ` + jobStored + ` FROM jobs{use PRIMARY} WHERE id < ?
			ORDER BY id DESC LIMIT {limit}) AS jobs WHERE 1 = 1`),
		// Those that wait are in another order. Not by the primary key, which would have this one.
		waitingIDs: t(`SELECT COALESCE(id, '') AS job FROM jobs{use jobs_waiting} WHERE {waiting} AND {due_lane} = ?`),
		deadIDs: t(`SELECT id AS job FROM jobs{use jobs_dead} WHERE {dead} AND {from {dead_lane}} AND {below {dead_lane}}
			ORDER BY {dead_lane} DESC, id DESC LIMIT {limit}`),
		doneIDs: t(`SELECT id AS job FROM jobs{use jobs_done} WHERE {done} AND {from {done_lane}} AND {below {done_lane}}
			ORDER BY {done_lane} DESC, id DESC LIMIT {limit}`),
		readJobs: d.selection(jobShown, "jobs{use PRIMARY}", `jobs.id = r.id`),

		lanesWaiting: d.distinct(`{due_lane}`, `jobs{use jobs_waiting}`, `{waiting}`),
		lanesDead:    d.distinct(`{dead_lane}`, `jobs{use jobs_dead}`, `{dead}`),
		lanesDone:    d.distinct(`{done_lane}`, `jobs{use jobs_done}`, `{done}`),

		finished: t(`SELECT ` + jobShown + ` FROM jobs{use jobs_finished}
			WHERE finished_at >= ? AND (finished_at > ? OR id > ?) AND ` + noAlert + ` ORDER BY finished_at, id LIMIT {limit}`),
		over: t(`SELECT COUNT(*) FROM (SELECT 1 AS one FROM jobs{use jobs_finished}
			WHERE finished_at IS NOT NULL LIMIT {limit}) AS counted`),
		buried: t(`SELECT COUNT(*) FROM (SELECT 1 AS one FROM jobs{use jobs_dead} WHERE {dead} LIMIT {limit}) AS counted`),

		// Who gives an old event new jobs and who purges it wait for each other here.
		holdEvents: holdEvents(d),
		replayed:   d.selection(`jobs.id AS job`, "jobs{use PRIMARY}", `jobs.id = r.id`),

		insertTurn: d.insert("turns", `name, until_at, holder`, `r.name, 0, ''`, "", "", "name"),
		turn:       t(`UPDATE turns SET until_at = ?, holder = ? WHERE name = ? AND (until_at <= ? OR until_at > ?)`),
		whose:      t(`SELECT holder FROM turns WHERE name = ?`),

		runStatements: newRunStatements(d),
	}
}

// slice is a statement that looks at some rows of a table by the column that names their
// owner, and at how many owners each has.
func slice(column, table, owners string) string {
	return `SELECT slice.owner, (SELECT COUNT(*) FROM ` + owners + ` WHERE ` + owners + `.id = slice.owner) AS owners
		FROM (SELECT ` + column + ` AS owner FROM ` + table + ` WHERE ` + column + ` > ? ORDER BY ` + column + ` LIMIT {limit}) AS slice ORDER BY slice.owner`
}

// idle is the condition of a gate that has nothing to say.
func idle(closed, until, next string) string {
	return `gates.failures = 0 AND gates.stray_since IS NULL AND gates.closed_at < ` + closed + ` AND gates.open_until < ` + until + ` AND gates.next_us < ` + next
}

// holdEvents keeps events as they are, where two transactions could change what is
// around them at the same time.
func holdEvents(d Dialect) string {
	if d.hold == "" {
		return ""
	}
	return d.selection(`events.id AS event`, "events{use PRIMARY}", `events.id = r.id`) + " " + d.sql("{hold events}")
}

// scheduled_at comes before due_at, since MySQL evaluates SET from left to right with the new
// values.
const claimed = `status = 'running', attempt = attempt + 1, scheduled_at = due_at, due_at = ?, lease = ?`

// A job that is brought back has its whole budget again, max_attempts - earlier, and counts
// its attempts on. max_attempts comes before earlier, since MySQL evaluates SET from left to
// right with the new values. It stays if it is core.Unlimited.
const revived = `status = 'available', due_at = ?, finished_at = NULL,
	max_attempts = CASE WHEN max_attempts < 2147483647 THEN attempt + max_attempts - earlier ELSE max_attempts END, earlier = attempt`
