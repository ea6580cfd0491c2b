package web

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// A RunManager serves the operators of workflow runs; see [manage.Runs].
type RunManager interface {
	List(ctx context.Context, f core.RunFilter) (core.Page[core.Run], error)
	Inspect(ctx context.Context, id core.ID, from manage.Place, limit int) (manage.Inspected, error)
	Graph(ctx context.Context, id core.ID) (manage.Graph, error)
	Step(ctx context.Context, id core.ID, path string) (manage.Execution, error)
	Redrive(ctx context.Context, id core.ID, how manage.Redrive) (manage.Redriven, error)
	Cancel(ctx context.Context, id core.ID) (core.Run, error)
}

// RunsOptions are the dependencies of the routes of workflow runs.
type RunsOptions struct {
	Manager RunManager

	// Tokens are the tokens of the API; none leaves the routes open.
	Tokens []Token
}

// Runs returns the routes of workflow runs.
func Runs(o RunsOptions) Piece {
	return func(r chi.Router, d *Door) {
		runs, token := &runRoutes{d, o.Manager}, newKeyring(o.Tokens)
		r.Get("/api/workflow-runs", d.viewing(token, runs.charged(listBytes, runs.list)))
		r.Get("/api/workflow-runs/{id}", d.viewing(token, runs.charged(d.runBytes(), runs.inspect)))
		r.Get("/api/workflow-runs/{id}/graph", d.viewing(token, runs.charged(graphBytes, runs.graph)))
		r.Get("/api/workflow-runs/{id}/step", d.viewing(token, runs.charged(d.runBytes(), runs.step)))
		r.Post("/api/workflow-runs/{id}/redrive", d.changing(token, runs.redrive))
		r.Post("/api/workflow-runs/{id}/cancel", d.changing(token, runs.cancel))
	}
}

// runRoutes serve the operators of workflow runs.
type runRoutes struct {
	*Door
	manager RunManager
}

// list answers with a page of runs, the newest first.
func (r *runRoutes) list(w http.ResponseWriter, req *http.Request) error {
	filter, err := runFilter(req)
	if err != nil {
		return err
	}
	page, err := r.manager.List(req.Context(), filter)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.RunsOf(page))
	return nil
}

// runFilter returns the selection of a listing.
func runFilter(r *http.Request) (f core.RunFilter, err error) {
	query, err := queryOf(r, "status", "workflow", "event_id", "after", "limit")
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
	if f.Workflow, err = query.name("workflow", "the name of one"); err != nil {
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

// inspect answers with a run and one page of its steps and history.
func (r *runRoutes) inspect(w http.ResponseWriter, req *http.Request) error {
	id, err := runID(req)
	if err != nil {
		return err
	}
	// One limit counts steps and entries together: a page has the steps first.
	from, limit, err := placeOf(req)
	if err != nil {
		return err
	}
	run, err := r.manager.Inspect(req.Context(), id, from, limit)
	if err != nil {
		return err
	}
	writePieces(w, inspected(wire.StoryOfRun(run)))
	return nil
}

// graphBytes is about how much memory a graph takes: an epoch has up to about 10,000 steps.
const graphBytes = 8 << 20

// graph answers with the graph of a run.
func (r *runRoutes) graph(w http.ResponseWriter, req *http.Request) error {
	id, err := runID(req)
	if err != nil {
		return err
	}
	if _, err := queryOf(req); err != nil {
		return err
	}
	g, err := r.manager.Graph(req.Context(), id)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.GraphOf(g))
	return nil
}

// step answers with one execution of a step, by its path.
func (r *runRoutes) step(w http.ResponseWriter, req *http.Request) error {
	id, err := runID(req)
	if err != nil {
		return err
	}
	query, err := queryOf(req, "path")
	if err != nil {
		return err
	}
	const what = "the path of a step, as the run lists it"
	path, err := query.name("path", what)
	if err == nil && path == "" {
		err = core.Refuse(core.Invalid, "path must be given: %s", what)
	}
	if err != nil {
		return err
	}
	x, err := r.manager.Step(req.Context(), id, path)
	if err != nil {
		return err
	}
	s := wire.StepOf(x.Step)
	writePieces(w, append(stepPieces(s), []byte(`,"job_id":`), mustJSON(wire.Text(x.Job)), []byte("}")))
	return nil
}

// stepPieces returns a step without its end. Input and output are documents of senders and handlers,
// so they keep their bytes.
func stepPieces(s wire.Step) [][]byte {
	tail := mustJSON(s.StepTail)
	return [][]byte{unclosed(s.StepHead), []byte(`,"input":`), orNull(s.Input), []byte(`,"output":`), orNull(s.Output), []byte(","), tail[1 : len(tail)-1]}
}

// placeOf returns where the requested page begins.
func placeOf(r *http.Request) (from manage.Place, limit int, err error) {
	query, err := queryOf(r, "after", "limit")
	if err != nil {
		return from, 0, err
	}
	after, given, err := query.text("after")
	if err == nil && given {
		from, err = manage.ParsePlace(clip(after))
	}
	if err != nil {
		return from, 0, err
	}
	limit, err = query.number("limit", manage.MaxLines, 1, manage.MaxLines)
	return from, limit, err
}

// redrive continues a failed or canceled run.
func (r *runRoutes) redrive(w http.ResponseWriter, req *http.Request) error {
	id, err := runID(req)
	if err != nil {
		return err
	}
	body, err := r.optional(w, req, "from", "definition")
	if err != nil {
		return err
	}
	how, err := redriveOf(body)
	if err != nil {
		return err
	}
	run, err := r.manager.Redrive(req.Context(), id, how)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.RedrivenOf(run))
	return nil
}

// redriveOf reads how to redrive: from the first step and under the run's own definition, unless
// the body says otherwise.
func redriveOf(body fields) (manage.Redrive, error) {
	how := manage.Redrive{From: manage.FromStart, Definition: manage.FollowStored}
	text, given, err := body.text("from")
	if err == nil && given {
		how.From, err = manage.ParseFrom(clip(text))
	}
	if err != nil {
		return how, err
	}
	text, given, err = body.text("definition")
	if err == nil && given {
		how.Definition, err = manage.ParseFollow(clip(text))
	}
	return how, err
}

// cancel ends a run that has not finished.
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
	writeJSON(w, http.StatusOK, wire.RunOf(run))
	return nil
}

// runID returns the run id in a path. For a text that is not an id, no run exists.
func runID(r *http.Request) (core.ID, error) {
	id, err := core.ParseID(segment(r, "id"))
	if err != nil {
		return "", manage.ErrRun
	}
	return id, nil
}

// inspected returns a run, its steps and its history in pieces, like messages, since the
// JSON of steps must keep its bytes.
func inspected(run wire.RunStory) [][]byte {
	pieces := [][]byte{unclosed(run.Run), []byte(`,"output":`), orNull(run.Output), []byte(`,"steps":[`)}
	for i, s := range run.Steps {
		pieces = append(append(append(pieces, between(i)), stepPieces(s)...), []byte("}"))
	}
	pieces = append(pieces, []byte(`],"history":[`))
	for i, e := range run.History {
		pieces = append(pieces, between(i), unclosed(e.EntryHead), []byte(`,"data":`), orNull(e.Data), []byte("}"))
	}
	if !run.More {
		return append(pieces, []byte("]}"))
	}
	return append(pieces, []byte(`],"has_more":true,"next":`), mustJSON(run.Next), []byte("}"))
}

// between returns the comma before the ith element of a list; nothing before the first.
func between(i int) []byte {
	if i == 0 {
		return nil
	}
	return []byte(",")
}

// orNull returns a document, or null if there is none.
func orNull(document []byte) []byte {
	if document == nil {
		return []byte("null")
	}
	return document
}
