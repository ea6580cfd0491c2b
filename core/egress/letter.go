package egress

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
	"github.com/eventgateway/gateway/core/worker"
)

// A Letter is the content of a delivery. It is the same for every attempt.
type Letter struct {
	Body        []byte // nil for a GET
	ContentType string // empty without a body
}

// HTTPLetter returns the content of a delivery of an event by [Client.HTTP]. The error of a
// delivery whose body cannot be made begins with its class, as the Error of the attempt does.
func (t Target) HTTPLetter(e core.Event) (Letter, error) {
	l, err := compose(t.Transform, t.Method, &e)
	return l, told(err)
}

// GRPCLetter is HTTPLetter for [Client.GRPC]. The body is the field payload of the message.
func (t Target) GRPCLetter(e core.Event) (Letter, error) {
	l, err := composeText(t.Transform, &e)
	return l, told(err)
}

// told returns the error with the text that the attempt has.
func told(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(untransformed(err).Error)
}

// errNotText is the error of a payload that no gRPC message can hold.
var errNotText = errors.New("the payload is not UTF-8, as a gRPC string has to be")

// untransformed returns the reply to a job whose body could not be made. A missing value of
// the payload is an error of class data, as in a workflow.
func untransformed(err error) worker.Reply {
	switch {
	case errors.Is(err, expr.ErrNotNumber):
		return unsendable("data: transform: " + err.Error())
	case err == errNotText:
		return unsendable("protocol: " + err.Error())
	}
	return unsendable("transform: " + err.Error())
}

// compose makes the content of a request. A transform replaces the payload of the event.
func compose(t *expr.Template, method string, e *core.Event) (Letter, error) {
	if method == http.MethodGet {
		return Letter{}, nil
	}
	if err := transform(t, e); err != nil {
		return Letter{}, err
	}
	return Letter{e.Payload, contentType(e)}, nil
}

// composeText makes the content of a message of gRPC, whose payload is text. Bytes are in base64.
func composeText(t *expr.Template, e *core.Event) (Letter, error) {
	if err := transform(t, e); err != nil {
		return Letter{}, err
	}
	l := Letter{e.Payload, contentType(e)}
	switch {
	case e.Binary:
		l.Body = base64.StdEncoding.AppendEncode(nil, e.Payload)
	case !utf8.Valid(e.Payload):
		return Letter{}, errNotText
	}
	return l, nil
}

// transform replaces the payload by the result of a template, if there is one.
func transform(t *expr.Template, e *core.Event) error {
	if t == nil {
		return nil
	}
	body, err := t.Render(expr.View(e.Payload, e.ContentType, e.Opaque()), expr.OfEvent(string(e.ID), e.Type, e.Source, e.CreatedAt))
	if err != nil {
		return err
	}
	e.Payload, e.ContentType, e.Binary = body, "application/json", false
	return nil
}

// contentType returns the content type that the sender declared. If there is none, it is
// guessed from the payload. It is empty if there is no payload.
func contentType(e *core.Event) string {
	switch {
	case e.ContentType != "" && isValue(e.ContentType):
		return e.ContentType
	case e.NoData():
		return ""
	case e.Binary:
		return "application/octet-stream"
	case json.Valid(e.Payload):
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}
