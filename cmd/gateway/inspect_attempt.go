package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
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
		attempt, err := numbered(job, attempts, f.number)
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

// numbered returns the newest attempt with a number.
func numbered(job core.Job, attempts []core.Attempt, number int) (core.Attempt, error) {
	var known []string
	for _, a := range slices.Backward(attempts) {
		if a.Number == number {
			return a, nil
		}
		known = append([]string{strconv.Itoa(a.Number)}, known...)
	}
	if len(known) == 0 {
		return core.Attempt{}, core.Refuse(core.NotFound, "job %s has no recorded attempt", job.ID)
	}
	return core.Attempt{}, core.Refuse(core.NotFound, "job %s has no record of attempt %d; there are %s", job.ID, number, strings.Join(known, ", "))
}

// notRecorded is the refusal for an attempt without an exchange.
func notRecorded(number int) error {
	return core.Refuse(core.NotFound, "attempt %d did not record what was sent; with delivery.record: headers, or record: headers of its handler, later attempts do", number)
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
		a.Notef("%s", notRecorded(t.Number))
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
			a.Notef("the URL or headers are longer than what is kept")
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
	x := t.Exchange
	switch {
	case x == nil:
		return notRecorded(t.Number)
	case strings.HasPrefix(x.Method, "/"):
		return core.Refuse(core.Invalid, "attempt %d was a gRPC call, which curl cannot make", t.Number)
	}
	command := curlOf(x)
	if x.BodySize > 0 && f.bodyFile != "" {
		if sum, err := hashOfFile(f.bodyFile); err != nil {
			return err
		} else if sum != x.BodySHA256 {
			a.Notef("%s has another SHA-256 than the body that was sent", terminal.Visible(f.bodyFile))
		}
		command.add("--data-binary", shellQuote("@"+f.bodyFile))
	} else if x.KeptBody > 0 && !x.CutBody() {
		body, err := op.jobs.SentBody(ctx, job.ID, t.Number)
		if err != nil {
			return err
		}
		command.send(core.Event{Payload: []byte(body)})
	} else if x.BodySize > 0 {
		told, err := op.events.Inspect(ctx, job.EventID)
		if err != nil {
			return err
		}
		if hashOf(told.Event.Payload) != x.BodySHA256 {
			return core.Refuse(core.Invalid, "attempt %d sent %d bytes that are not the payload of event %s: they were made from it; give a file with them: --body-file",
				t.Number, x.BodySize, job.EventID)
		}
		command.send(told.Event)
	}
	if x.Cut {
		a.Notef("the URL or headers are longer than what is kept: the command sends a part of them")
	}
	a.Printf("%s%s", command.comments(), command.text())
	return nil
}

func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// hashOfFile returns the SHA-256 of a file in hexadecimal.
func hashOfFile(path string) (string, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, pathless(err))
	}
	return hashOf(body), nil
}
