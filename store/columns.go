package store

import (
	"time"

	"github.com/eventgateway/gateway/core"
)

// The columns of events, jobs and attempts. The columns of an INSERT, those of a SELECT and the
// method of rowReader that reads them have one order; TestColumnPlaces checks it.
const (
	// An event as it is inserted, and as it is read. encoding has a default and is inserted for
	// a binary payload only.
	eventColumns = `id, source, type, payload, content_type, headers, delivery_id, created_at`
	eventStored  = eventColumns + `, encoding`

	// An event without its payload and headers, for listings: a page of the largest events
	// would fill the memory.
	eventSummary = `id, source, type, '' AS payload, content_type, '' AS headers, delivery_id, created_at, encoding`
)

// event reads eventStored or eventSummary.
func (r *rowReader) event() core.Event {
	e := core.Event{ID: r.id(), Source: r.text(), Type: r.text()}
	payload := r.text()
	e.ContentType = r.text()
	e.Headers = decodeHeaders(r.text())
	e.DeliveryID = r.text()
	e.CreatedAt = r.time()
	decodePayload(&e, payload, r.text())
	return e
}

const (
	// A job as it is inserted, and as it is read.
	jobColumns = `id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at, finished_at`
	jobStored  = jobColumns + `, earlier, scheduled_at, line`

	// A job as the ledger shows it. The job of a step has the id of the step, so both
	// subqueries go by the primary key.
	jobDetail = jobStored + `, (SELECT steps.run_id FROM steps WHERE steps.id = jobs.id) AS run_id, (SELECT steps.path FROM steps WHERE steps.id = jobs.id) AS step`

	// Joins jobs with their events, by the primary key of events.
	withEvents = ` JOIN events ON events.id = jobs.event_id`
)

// job reads jobStored.
func (r *rowReader) job() core.Job {
	return core.Job{
		ID:          r.id(),
		EventID:     r.id(),
		Lane:        core.Lane(r.text()),
		Key:         r.text(),
		Status:      core.Status(r.text()),
		Attempt:     r.number(),
		MaxAttempts: r.number(),
		DueAt:       r.due(),
		Lease:       core.Lease(r.text()),
		LastError:   r.text(),
		CreatedAt:   r.time(),
		FinishedAt:  r.time(),
		Earlier:     r.number(),
		ScheduledAt: r.due(),
		Line:        lineKey(r.text()),
	}
}

// jobDetail reads jobDetail.
func (r *rowReader) jobDetail() core.Job {
	j := r.job()
	j.RunID, j.Step = r.id(), r.text()
	return j
}

// takenColumns are a job and its event.
var takenColumns = qualified("jobs", jobStored) + `, ` + qualified("events", eventStored)

// The positions in a row of claimed_steps at which the columns of the step and of its run
// begin.
const (
	takenStep = 15 + 9
	takenRun  = takenStep + stepWidth
)

// taken reads takenColumns.
func (r *rowReader) taken() core.TakenJob {
	return core.TakenJob{Job: r.job(), Event: r.event()}
}

const (
	// An attempt as it is inserted, without and with its exchange, and as it is read for one job.
	attemptColumns  = `job_id, lease, attempt, status_code, error, response, duration_ms, created_at`
	exchangeColumns = attemptColumns + `, exchange, sent_body`
	attemptShown    = `attempt, status_code, error, response, duration_ms, created_at, exchange`

	// An attempt without its response and exchange, for listings of many jobs.
	attemptSummary = `attempt, status_code, error, '' AS response, duration_ms, created_at, '' AS exchange`
)

// attempt reads attemptShown or attemptSummary.
func (r *rowReader) attempt() core.Attempt {
	return core.Attempt{
		Number:     r.number(),
		StatusCode: r.number(),
		Error:      r.text(),
		Response:   r.text(),
		Duration:   time.Duration(r.number()) * time.Millisecond,
		StartedAt:  r.time(),
		Exchange:   decodeExchange(r.text()),
	}
}
