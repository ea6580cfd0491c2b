package web

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// A RunManager serves the operators of workflow runs; see [manage.Runs].
type RunManager interface {
	List(ctx context.Context, f core.RunFilter) (core.Page[core.Run], error)
	Inspect(ctx context.Context, id core.ID) (manage.Inspected, error)
	Redrive(ctx context.Context, id core.ID, from manage.From) (core.Run, error)
	Cancel(ctx context.Context, id core.ID) (core.Run, error)
}

// RunsOptions is what the routes of workflow runs work with.
type RunsOptions struct {
	Manager RunManager

	// Token is the bearer token of operators; empty leaves the routes open.
	Token string
}

// Runs is the routes of workflow runs.
func Runs(o RunsOptions) Piece {
	return func(r chi.Router, d *Door) {
		runs, token := &runRoutes{d, o.Manager}, newBearer(o.Token)
		r.Get("/api/workflow-runs", d.inbound(token.only(runs.list)))
		r.Get("/api/workflow-runs/{id}", d.inbound(token.only(runs.inspect)))
		r.Post("/api/workflow-runs/{id}/redrive", d.inbound(token.only(runs.redrive)))
		r.Post("/api/workflow-runs/{id}/cancel", d.inbound(token.only(runs.cancel)))
	}
}

type runRoutes struct {
	*Door
	manager RunManager
}

func (r *runRoutes) list(w http.ResponseWriter, req *http.Request) error {
	filter, err := runFilter(req)
	if err != nil {
		return err
	}
	page, err := r.manager.List(req.Context(), filter)
	if err != nil {
		return err
	}
	body := runsBody{make([]runBody, len(page.Items)), page.More}
	for i, run := range page.Items {
		body.Runs[i] = runOf(run)
	}
	writeJSON(w, http.StatusOK, body)
	return nil
}

func runFilter(r *http.Request) (f core.RunFilter, err error) {
	query, err := queryOf(r)
	if err != nil {
		return f, err
	}
	status, given, err := query.text("status")
	if err == nil && given {
		f.Status, err = core.ParseRunStatus(status)
	}
	if err != nil {
		return f, err
	}
	if f.Workflow, given, err = query.text("workflow"); err == nil && given && f.Workflow == "" {
		err = errNoName
	}
	if err != nil {
		return f, err
	}
	if f.EventID, err = query.id("event_id"); err != nil {
		return f, err
	}
	if f.After, err = query.id("after"); err != nil {
		return f, err
	}
	f.Limit, err = query.number("limit", core.DefaultPage, 1, core.MaxPage)
	return f, err
}

var errNoName = core.Refuse(core.Invalid, "workflow must be the name of one")

func (r *runRoutes) inspect(w http.ResponseWriter, req *http.Request) error {
	id, err := runID(req)
	if err != nil {
		return err
	}
	run, err := r.manager.Inspect(req.Context(), id)
	if err != nil {
		return err
	}
	writePieces(w, inspected(run))
	return nil
}

func (r *runRoutes) redrive(w http.ResponseWriter, req *http.Request) error {
	id, err := runID(req)
	if err != nil {
		return err
	}
	body, err := r.optional(w, req, "from")
	if err != nil {
		return err
	}
	from, err := fromOf(body)
	if err != nil {
		return err
	}
	run, err := r.manager.Redrive(req.Context(), id, from)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, runOf(run))
	return nil
}

func fromOf(body fields) (manage.From, error) {
	text, given, err := body.text("from")
	if err != nil || !given {
		return manage.FromStart, err
	}
	return manage.ParseFrom(clip(text))
}

func (r *runRoutes) cancel(w http.ResponseWriter, req *http.Request) error {
	id, err := runID(req)
	if err != nil {
		return err
	}
	if _, err := r.optional(w, req); err != nil {
		return err
	}
	run, err := r.manager.Cancel(req.Context(), id)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, runOf(run))
	return nil
}

// runID is the run that a path names. What is no id names none.
func runID(r *http.Request) (core.ID, error) {
	id, err := core.ParseID(segment(r, "id"))
	if err != nil {
		return "", manage.ErrRun
	}
	return id, nil
}

type runsBody struct {
	Runs []runBody `json:"workflow_runs"`
	More bool      `json:"has_more"`
}

// A runBody is a run as it is listed. What does not apply, here and below, is null.
type runBody struct {
	ID          core.ID        `json:"id"`
	Workflow    string         `json:"workflow"`
	EventID     core.ID        `json:"event_id"`
	Status      core.RunStatus `json:"status"`
	CurrentStep *string        `json:"current_step"`
	Epoch       int            `json:"epoch"`
	CreatedAt   string         `json:"created_at"`
	StartedAt   *string        `json:"started_at"`
	CompletedAt *string        `json:"completed_at"`
	Error       *string        `json:"error"`
}

func runOf(r core.Run) runBody {
	return runBody{
		ID:          r.ID,
		Workflow:    r.Workflow,
		EventID:     r.EventID,
		Status:      r.Status,
		CurrentStep: orNull(r.Step),
		Epoch:       r.Epoch,
		CreatedAt:   core.FormatTime(r.CreatedAt),
		StartedAt:   orNull(core.FormatTime(r.StartedAt)),
		CompletedAt: orNull(core.FormatTime(r.FinishedAt)),
		Error:       orNull(r.Error),
	}
}

// A run that is inspected, its steps and its history are written in pieces, as messages
// are, since what steps received and passed on is to come out as it is.

func inspected(run manage.Inspected) [][]byte {
	pieces := [][]byte{unclosed(runOf(run.Run)), []byte(`,"output":`), orNullDocument(run.Output), []byte(`,"steps":[`)}
	for i, s := range run.Steps {
		pieces = append(pieces, between(i), unclosed(stepHeadOf(s)),
			[]byte(`,"input":`), orNullDocument(s.State), []byte(`,"output":`), orNullDocument(s.Output), rest(stepTailOf(s)))
	}
	pieces = append(pieces, []byte(`],"history":[`))
	for i, e := range run.History {
		pieces = append(pieces, between(i), unclosed(entryOf(e)), []byte(`,"data":`), orNullDocument([]byte(e.Data)), []byte("}"))
	}
	return append(pieces, []byte("]}"))
}

func between(i int) []byte {
	if i == 0 {
		return nil
	}
	return []byte(",")
}

func orNullDocument(text []byte) []byte {
	if len(text) == 0 {
		return []byte("null")
	}
	return document(text)
}

type stepHead struct {
	Name    string          `json:"name"`
	Path    string          `json:"path"`
	Type    string          `json:"type"`
	Status  core.StepStatus `json:"status"`
	Attempt int             `json:"attempt"`
}

func stepHeadOf(s core.Step) stepHead { return stepHead{s.Name, s.Path, s.Type, s.Status, s.Attempt} }

type stepTail struct {
	Error       *string `json:"error"`
	StartedAt   *string `json:"started_at"`
	CompletedAt *string `json:"completed_at"`
}

func stepTailOf(s core.Step) stepTail {
	return stepTail{orNull(s.Error), orNull(core.FormatTime(s.StartedAt)), orNull(core.FormatTime(s.FinishedAt))}
}

type entryBody struct {
	Seq   int            `json:"seq"`
	At    string         `json:"at"`
	Epoch int            `json:"epoch"`
	Type  core.EntryType `json:"type"`
	Step  *string        `json:"step"` // its path
}

func entryOf(e core.Entry) entryBody {
	return entryBody{e.Seq, core.FormatTime(e.At), e.Epoch, e.Type, orNull(e.Path)}
}
