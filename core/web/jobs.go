package web

import (
	"context"
	"math"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/curl"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// A JobLister lists jobs, by an index or by a search.
type JobLister interface {
	List(ctx context.Context, f core.JobFilter) (manage.JobPage, error)
	Search(ctx context.Context, s manage.JobSearch) (manage.FoundJobs, error)
}

// A JobManager serves the operators of jobs; see [manage.Jobs].
type JobManager interface {
	JobLister
	AttemptManager
	Errors(ctx context.Context, f core.FailureFilter) (manage.Errors, error)
	Job(ctx context.Context, id core.ID) (core.Job, error)
	Wait(ctx context.Context, job core.Job) (manage.Wait, error)
	Retry(ctx context.Context, id core.ID) (int, error)
	RetryAll(ctx context.Context, lane core.Lane) (manage.Retried, error)
}

// An AttemptManager serves the readers of attempts, with their requests and replies; see [manage.Jobs].
type AttemptManager interface {
	Attempts(ctx context.Context, id core.ID, skip int) (core.Page[core.Attempt], error)
	SentBody(ctx context.Context, id core.ID, number int) (string, error)
	Curl(ctx context.Context, id core.ID, number int) (*curl.Command, error)
}

// JobsOptions are the dependencies of the routes of jobs.
type JobsOptions struct {
	Manager JobManager

	// Tokens are the tokens of the API; none leaves the routes open.
	Tokens []Token
}

// Jobs returns the routes of jobs.
func Jobs(o JobsOptions) Piece {
	return func(r chi.Router, d *Door) {
		j, token := &jobRoutes{d, o.Manager}, newKeyring(o.Tokens)
		r.Get("/api/jobs", d.viewing(token, j.charged(listBytes, j.list)))
		r.Get("/api/jobs/errors", d.viewing(token, j.charged(errorsBytes, j.errors)))
		r.Get("/api/jobs/{id}", d.viewing(token, j.charged(attemptsBytes, j.inspect)))
		r.Get("/api/jobs/{id}/attempts", d.viewing(token, j.charged(attemptsBytes, j.attempts)))
		r.Get("/api/jobs/{id}/attempts/{number}/body", d.viewing(token, j.charged(listBytes, bare(j.sentBody))))
		r.Get("/api/jobs/{id}/attempts/{number}/curl", d.viewing(token, j.charged(d.recordBytes(), bare(j.curl))))
		r.Post("/api/jobs/{id}/retry", d.changing(token, j.retry))
		r.Post("/api/jobs/retry", d.changing(token, j.retryAll))
	}
}

// jobRoutes serve the operators of jobs.
type jobRoutes struct {
	*Door
	manager JobManager
}

// laneOf returns the lane of a consumer's jobs, "" if none is given.
func laneOf(handler string, given bool) (core.Lane, error) {
	if !given {
		return "", nil
	}
	if lane, ok := wire.ParseConsumer(handler); ok {
		return lane, nil
	}
	return "", core.Refuse(core.Invalid, "handler must be the name of a handler, queue/ or workflow/ and the name of one, or alert/ and a number; not %s", quote(handler))
}

// list answers with a page of jobs, the newest first. Each waiting job has the reason of its wait.
func (j *jobRoutes) list(w http.ResponseWriter, r *http.Request) error {
	search, err := jobSearch(r)
	if err != nil {
		return err
	}
	if search.Scans() {
		found, err := j.manager.Search(r.Context(), search)
		if err != nil {
			return err
		}
		writeJSON(w, http.StatusOK, wire.FoundJobsOf(found))
		return nil
	}
	page, err := j.manager.List(r.Context(), search.JobFilter)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.JobsOf(page))
	return nil
}

// maxErrorText is the size in bytes of the longest text of an error that a search looks for.
const maxErrorText = 1024

// jobSearch returns the selection of a listing or a search.
func jobSearch(r *http.Request) (s manage.JobSearch, err error) {
	query, err := queryOf(r, "status", "handler", "source", "event_type", "since", "until", "error", "limit", "after")
	if err != nil {
		return s, err
	}
	if s.JobFilter, err = jobFilter(query); err != nil {
		return s, err
	}
	if s.Source, err = query.name("source", "the name of one"); err != nil {
		return s, err
	}
	if s.Type, err = query.name("event_type", "the type of an event"); err != nil {
		return s, err
	}
	text, given, err := query.text("error")
	if err == nil && given && (text == "" || len(text) > maxErrorText) {
		err = core.Refuse(core.Invalid, "error must be text that the last error of a job contains, 1 to %d bytes", maxErrorText)
	}
	s.Error = text
	return s, err
}

// jobFilter returns the part of a selection that indexes serve.
func jobFilter(query query) (f core.JobFilter, err error) {
	status, given, err := query.text("status")
	if err == nil && given {
		f.Status, err = core.ParseStatus(clip(status))
	}
	if err != nil {
		return f, err
	}
	handler, given, err := query.text("handler")
	if err != nil {
		return f, err
	}
	if f.Lane, err = laneOf(handler, given); err != nil {
		return f, err
	}
	if f.Since, f.Until, err = timesOf(query); err != nil {
		return f, err
	}
	if f.After, err = query.id("after"); err != nil {
		return f, err
	}
	f.Limit, err = query.number("limit", core.DefaultPage, 1, core.MaxPage)
	return f, err
}

// errorsBytes is about how many bytes the gateway needs for the failed jobs that one answer groups,
// if their errors are as long as errors of deliveries can be.
const errorsBytes = 4 * listBytes

// errors answers with the errors of the newest failed jobs, in groups.
func (j *jobRoutes) errors(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r, "handler", "since", "until")
	if err != nil {
		return err
	}
	handler, given, err := query.text("handler")
	if err != nil {
		return err
	}
	var filter core.FailureFilter
	if filter.Lane, err = laneOf(handler, given); err != nil {
		return err
	}
	if filter.Since, filter.Until, err = timesOf(query); err != nil {
		return err
	}
	errs, err := j.manager.Errors(r.Context(), filter)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.ErrorsOf(errs))
	return nil
}

// inspect shows a job, with its attempts if the query requests them.
func (j *jobRoutes) inspect(w http.ResponseWriter, r *http.Request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}
	query, err := queryOf(r, "include_attempts")
	if err != nil {
		return err
	}
	withAttempts, err := query.flag("include_attempts")
	if err != nil {
		return err
	}
	// The job is read before its wait and its attempts. If it changes in between, the reply shows
	// two moments, which is no harm: a later request shows the newer one.
	job, err := j.manager.Job(r.Context(), id)
	if err != nil {
		return err
	}
	wait, err := j.manager.Wait(r.Context(), job)
	if err != nil {
		return err
	}
	if !withAttempts {
		writeJSON(w, http.StatusOK, wire.WaitingOf(job, wait))
		return nil
	}
	attempts, err := j.manager.Attempts(r.Context(), id, 0)
	if err != nil {
		return err
	}
	record := wire.StoryOf(job, wait, attempts.Items)
	record.MoreAttempts = attempts.More
	writeJSON(w, http.StatusOK, record)
	return nil
}

// attemptsBytes is about how many bytes the gateway needs for a page of attempts that keep their
// exchanges and replies, and for its text. Replies of control characters need more.
const attemptsBytes = 2 * listBytes

// attempts answers with a page of the attempts at a job.
func (j *jobRoutes) attempts(w http.ResponseWriter, r *http.Request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}
	query, err := queryOf(r, "after")
	if err != nil {
		return err
	}
	skip, err := query.number("after", 0, 0, math.MaxInt32)
	if err != nil {
		return err
	}
	page, err := j.manager.Attempts(r.Context(), id, skip)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.AttemptsOf(page))
	return nil
}

// sentBody answers with the kept part of the body that an attempt sent.
func (j *jobRoutes) sentBody(w http.ResponseWriter, r *http.Request) error {
	id, number, err := attemptOf(r)
	if err != nil {
		return err
	}
	body, err := j.manager.SentBody(r.Context(), id, number)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.SentBody{Body: body})
	return nil
}

// curl answers with the command that sends the request of an attempt again.
func (j *jobRoutes) curl(w http.ResponseWriter, r *http.Request) error {
	id, number, err := attemptOf(r)
	if err != nil {
		return err
	}
	command, err := j.manager.Curl(r.Context(), id, number)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.CurlOf(command))
	return nil
}

// attemptOf returns the job and the number of the attempt in a path.
func attemptOf(r *http.Request) (core.ID, int, error) {
	id, err := jobID(r)
	if err != nil {
		return "", 0, err
	}
	number, err := strconv.Atoi(segment(r, "number"))
	if err != nil || number < 1 {
		return "", 0, core.Refuse(core.Invalid, "the number of an attempt must be a whole number from 1; not %s", quote(segment(r, "number")))
	}
	return id, number, nil
}

// retry makes one job due now.
func (j *jobRoutes) retry(w http.ResponseWriter, r *http.Request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}
	if _, err := j.optional(w, r); err != nil {
		return err
	}
	n, err := j.manager.Retry(r.Context(), id)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.Retried{Retried: n})
	return nil
}

// retryAll makes the dead jobs of a consumer due, or of all consumers if the body names none.
func (j *jobRoutes) retryAll(w http.ResponseWriter, r *http.Request) error {
	body, err := j.optional(w, r, "handler")
	if err != nil {
		return err
	}
	handler, given, err := body.text("handler")
	if err != nil {
		return err
	}
	lane, err := laneOf(handler, given)
	if err != nil {
		return err
	}
	unhurried(w)
	retried, err := j.manager.RetryAll(r.Context(), lane)
	if err != nil {
		return err
	}
	writeRetried(w, retried)
	return nil
}

// writeRetried answers with the result of a retry. If it goes on, the status is 202.
func writeRetried(w http.ResponseWriter, r manage.Retried) {
	status := http.StatusOK
	if r.Going != "" {
		status = http.StatusAccepted
	}
	writeJSON(w, status, wire.Retried{Retried: r.Jobs, Operation: string(r.Going)})
}

// jobID returns the job id in a path. For a text that is not an id, no job exists.
func jobID(r *http.Request) (core.ID, error) {
	id, err := core.ParseID(segment(r, "id"))
	if err != nil {
		return "", manage.ErrJob
	}
	return id, nil
}
