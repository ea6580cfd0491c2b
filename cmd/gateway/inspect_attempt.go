package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/curl"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// attemptFlags are the flags of "gateway inspect" that ask for one attempt.
type attemptFlags struct {
	number   int
	curl     bool
	bodyFile string
}

// inspectAttempt prints an attempt with its request and its reply, or the curl command that sends
// the request again. id is the id of a job, or of an event with one job. On a server it asks GET
// /api/jobs/{id} and /api/jobs/{id}/attempts, and GET /api/events/{id} for the body.
func (a *app) inspectAttempt(ctx context.Context, id core.ID, f attemptFlags) error {
	return a.ask(ctx, func(op *operator) error {
		job, err := jobOrOnly(ctx, op, id)
		if err != nil {
			return err
		}
		attempts, err := attemptsOf(ctx, op.jobs, job.ID)
		if err != nil {
			return err
		}
		attempt, err := manage.Numbered(job.ID, attempts, f.number)
		switch {
		case err != nil:
			return err
		case f.curl:
			return a.printCurl(ctx, op, job, attempt, f)
		case a.json:
			return a.PrintJSON(wire.AttemptOf(attempt))
		}
		a.printAttempt(job, attempt)
		return a.printSentBody(ctx, op, job, attempt)
	})
}

// jobOrOnly returns the job with an id, or the only job of the event with that id.
func jobOrOnly(ctx context.Context, op *operator, id core.ID) (core.Job, error) {
	job, err := op.jobs.Job(ctx, id)
	if !core.IsKind(err, core.NotFound) {
		return job, err
	}
	told, err := op.events.Inspect(ctx, id)
	switch {
	case core.IsKind(err, core.NotFound):
		return job, core.Refuse(core.NotFound, "no job and no event has the id %s", id)
	case err != nil:
		return job, err
	case len(told.Jobs) == 1:
		return told.Jobs[0], nil
	case len(told.Jobs) == 0:
		return job, core.Refuse(core.Invalid, "event %s has no jobs, so nothing was sent", id)
	}
	var names []string
	for _, j := range told.Jobs {
		names = append(names, string(j.ID)+" for "+terminal.Visible(consumerText(j)))
	}
	return job, core.Refuse(core.Invalid, "event %s has %d jobs; give the id of one: %s", id, len(names), strings.Join(names, ", "))
}

// printAttempt prints an attempt in full.
func (a *app) printAttempt(job core.Job, t core.Attempt) {
	a.Printf("attempt %d of job %s for %s", t.Number, terminal.Visible(string(job.ID)), terminal.Visible(consumerText(job)))
	a.PrintField("  ", "started", moment(t.StartedAt))
	a.PrintField("  ", "duration", terminal.Span(t.Duration))
	a.PrintField("  ", "status", statusCode(t.StatusCode))
	a.PrintField("  ", "error", terminal.Visible(t.Error))
	x := t.Exchange
	if x == nil {
		a.Notef("%s", manage.NotRecorded(t.Number))
	} else {
		a.Printf("\nrequest: %s %s", terminal.Visible(x.Method), terminal.Visible(x.URL))
		a.printHeaders(x.Headers)
		if x.BodySize > 0 {
			a.Printf("  body: %d bytes, SHA-256 %s", x.BodySize, terminal.Visible(x.BodySHA256))
		}
		if x.ReplyHeaders != nil {
			a.Printf("\nreply headers:")
			a.printHeaders(x.ReplyHeaders)
		}
		if x.Cut {
			a.Notef("the URL or headers are longer than the kept part")
		}
	}
	if t.Response != "" {
		a.Printf("\nreply body:\n%s", terminal.Visible(t.Response))
	}
}

// printSentBody prints the kept part of the body that an attempt sent.
func (a *app) printSentBody(ctx context.Context, op *operator, job core.Job, t core.Attempt) error {
	if t.Exchange == nil || t.Exchange.KeptBody == 0 {
		return nil
	}
	body, err := op.jobs.SentBody(ctx, job.ID, t.Number)
	if err != nil {
		return err
	}
	a.Printf("\nrequest body:\n%s", terminal.Visible(body))
	if t.Exchange.CutBody() {
		a.Notef("the body was %d bytes; %d are kept, with secrets masked", t.Exchange.BodySize, t.Exchange.KeptBody)
	}
	return nil
}

// printHeaders prints headers by name.
func (a *app) printHeaders(headers map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		a.Printf("  %s: %s", terminal.Visible(name), terminal.Visible(headers[name]))
	}
}

// printCurl prints the command that sends the request of an attempt again.
func (a *app) printCurl(ctx context.Context, op *operator, job core.Job, t core.Attempt, f attemptFlags) error {
	command, err := a.curlCommand(ctx, op, job, t, f)
	if err != nil {
		return err
	}
	if t.Exchange.Cut {
		a.Notef("the URL or headers are longer than the kept part: the command sends a part of them")
	}
	a.Printf("%s", command.Text())
	return nil
}

// curlCommand returns the command that sends the request of an attempt again, with the body of the
// attempt or of a file.
func (a *app) curlCommand(ctx context.Context, op *operator, job core.Job, t core.Attempt, f attemptFlags) (*curl.Command, error) {
	if t.Exchange == nil || t.Exchange.BodySize == 0 || f.bodyFile == "" {
		return manage.CurlOf(ctx, job, t, op.jobs.SentBody, func(ctx context.Context, id core.ID) (core.Event, error) {
			told, err := op.events.Inspect(ctx, id)
			return told.Event, err
		})
	}
	command, err := manage.CurlWithoutBody(t)
	if err != nil {
		return nil, err
	}
	body, err := os.ReadFile(f.bodyFile)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.bodyFile, pathless(err))
	}
	if manage.HashOf(body) != t.Exchange.BodySHA256 {
		a.Notef("%s has another SHA-256 than the body that was sent", terminal.Visible(f.bodyFile))
	}
	command.Add("--data-binary", shellQuote("@"+f.bodyFile))
	return command, nil
}
