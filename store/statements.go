package store

// Every statement on the tables, written once. Fragments in braces are filled in
// by the dialect. Columns of an INSERT and of a SELECT that scan.go reads are
// in the same order everywhere.

const (
	eventColumns = `id, source, type, payload, content_type, headers, delivery_id, created_at`
	jobColumns   = `id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at, finished_at`

	// An event without payload and headers, for listings.
	eventSummary = `id, source, type, '', content_type, '', delivery_id, created_at`
)

type statements struct {
	insertEvent, insertKeyedEvent, insertJob, insertJobIf, acceptedBy string
	due, claim, claimed                                               string
	insertAttempt, settle, settled                                    string
	release, recover                                                  string
	retryOne, retryLane, retryAll                                     string
	countDead, countDeadLane                                          string
	event, events, job, jobs, attempts, depth, answerPing             string
}

func newStatements(d Dialect) statements {
	t := d.text
	return statements{
		insertEvent: t(`INSERT INTO events (` + eventColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?) {fresh}`),

		// An arrival whose jobs all have keys is stored only if one of them is new.
		insertKeyedEvent: t(`INSERT INTO events (` + eventColumns + `)
			SELECT ?, ?, ?, ?, ?, ?, ?, ? FROM (SELECT 1) AS one WHERE EXISTS (
				SELECT 1 FROM {list} WHERE NOT EXISTS (
					SELECT 1 FROM jobs WHERE lane = {item0} AND job_key = {item1}))
			{fresh}`),

		insertJob: t(`INSERT INTO jobs (` + jobColumns + `) VALUES (?, ?, ?, ?, 'available', 0, ?, ?, NULL, '', ?, NULL) {fresh}`),

		// The same, only beside its event: where a duplicate's event was left out, this
		// finds none to join.
		insertJobIf: t(`INSERT INTO jobs (` + jobColumns + `)
			SELECT ?, id, ?, ?, 'available', 0, ?, ?, NULL, '', ?, NULL FROM events WHERE id = ?
			{fresh}`),

		// Which stored event answers for an arrival: its own (0), or the one with its
		// delivery id (1), or the one a job with its key belongs to (2).
		acceptedBy: t(`SELECT 0, id, (SELECT COUNT(*) FROM jobs WHERE event_id = events.id) FROM events WHERE id = ?
			UNION ALL SELECT 1, id, 0 FROM events WHERE source = ? AND delivery_id = ?
			UNION ALL SELECT 2, event_id, 0 FROM {list} JOIN jobs ON lane = {item0} AND job_key = {item1}`),

		due: t(`SELECT {item}, (SELECT MIN(due_at) FROM jobs WHERE lane = {item} AND due_at IS NOT NULL) FROM {list}`),

		claim: t(`UPDATE jobs SET status = 'running', attempt = attempt + 1, due_at = ?, lease = ?
			WHERE id IN (SELECT id FROM jobs WHERE lane = ? AND due_at <= ? ORDER BY due_at, id LIMIT {limit})`),

		// What a claim took is found by the due time it wrote, which is in the index,
		// and told apart from others of that millisecond by its lease.
		claimed: t(`SELECT ` + qualified("jobs", jobColumns) + `, ` + qualified("events", eventColumns) + `
			FROM jobs JOIN events ON events.id = jobs.event_id
			WHERE jobs.lane = ? AND jobs.due_at = ? AND jobs.lease = ? ORDER BY jobs.id`),

		insertAttempt: t(`INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at)
			SELECT id, lease, ?, ?, ?, ?, ?, ? FROM jobs WHERE id = ? AND status = 'running' AND lease = ?
			{fresh}`),

		settle: t(`UPDATE jobs SET status = ?, attempt = ?, due_at = ?, lease = NULL, last_error = ?, finished_at = ?
			WHERE id = ? AND status = 'running' AND lease = ?`),

		settled: t(`SELECT job_id, lease FROM {list} JOIN attempts ON job_id = {item0} AND lease = {item1}`),

		// status first: MySQL evaluates SET from left to right with the new values.
		release: t(`UPDATE jobs SET status = CASE WHEN attempt > 1 THEN 'retryable' ELSE 'available' END,
			attempt = attempt - 1, due_at = ?, lease = NULL
			WHERE id = ? AND status = 'running' AND lease = ?`),

		recover: t(`UPDATE jobs SET due_at = ? WHERE lane = ? AND due_at > ? AND status = 'running'`),

		retryOne:  t(retry + `status = 'dead' AND id = ?`),
		retryLane: t(retry + `id IN (SELECT id FROM jobs WHERE status = 'dead' AND lane = ? LIMIT {limit})`),
		retryAll:  t(retry + `id IN (SELECT id FROM jobs WHERE status = 'dead' LIMIT {limit})`),

		countDead:     t(`SELECT COUNT(*) FROM jobs WHERE status = 'dead'`),
		countDeadLane: t(`SELECT COUNT(*) FROM jobs WHERE status = 'dead' AND lane = ?`),

		event:    t(`SELECT ` + eventColumns + ` FROM events WHERE id = ?`),
		events:   t(`SELECT ` + eventSummary + ` FROM events WHERE id < ?`),
		job:      t(`SELECT ` + jobColumns + ` FROM jobs WHERE id = ?`),
		jobs:     t(`SELECT ` + jobColumns + ` FROM jobs WHERE id < ?`),
		attempts: t(`SELECT attempt, status_code, error, response, duration_ms, created_at FROM attempts WHERE job_id = ? ORDER BY created_at, attempt`),
		depth:    t(`SELECT COUNT(*) FROM jobs WHERE due_at IS NOT NULL`),

		answerPing: t(`SELECT 1`),
	}
}

const retry = `UPDATE jobs SET status = 'available', attempt = 0, due_at = ?, finished_at = NULL WHERE `
