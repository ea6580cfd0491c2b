package web

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/intake"
)

// A Receiver receives events; see [intake.Intake].
type Receiver interface {
	Admit(k intake.Kind, source string, from netip.Addr) error
	Receive(ctx context.Context, r intake.Request) (intake.Result, error)
	ReceiveAll(ctx context.Context, r intake.Request) ([]core.Receipt, error)
	Refused(source string, err error)
	Handshake(k intake.Kind, source, origin string, from netip.Addr) (allowed string, err error)
}

// IntakeOptions are the dependencies of the intake routes.
type IntakeOptions struct {
	Receiver Receiver

	// Clock returns the time at which events are received. Nil means the machine's clock.
	Clock core.Clock

	// Tokens are the tokens of the API; none leaves /events open. The signatures of webhooks and topics replace a token.
	Tokens []Token
}

// Intake returns the routes by which events come in.
func Intake(o IntakeOptions) Piece {
	return func(r chi.Router, d *Door) {
		i := &intakeRoutes{d, o.Receiver, o.Clock, newKeyring(o.Tokens)}
		if i.clock == nil {
			i.clock = core.SystemClock
		}
		r.Post("/webhooks/{source}", d.receiving(&d.budgets.intake, i.webhook))
		r.Post("/sns/{source}", d.receiving(&d.budgets.intake, i.topic))
		r.Post("/events/{source}/{event_type}", d.receiving(&d.budgets.intake, i.event))
		r.Post("/events/{event_type}", d.receiving(&d.budgets.intake, i.shortEvent))
		r.Options("/webhooks/{source}", d.receiving(&d.budgets.intake, i.handshakeOf(intake.Webhook)))
		r.Options("/events/{source}/{event_type}", d.receiving(&d.budgets.intake, i.handshakeOf(intake.Event)))
		r.Options("/events/{event_type}", d.receiving(&d.budgets.intake, i.shortHandshake))
	}
}

// intakeRoutes serve the senders of events.
type intakeRoutes struct {
	*Door
	receiver Receiver
	clock    core.Clock
	token    *keyring
}

// webhook and topic serve senders whose requests carry a signature in place of a token.
func (i *intakeRoutes) webhook(w http.ResponseWriter, r *http.Request) error {
	return i.from(intake.Webhook, w, r)
}

func (i *intakeRoutes) topic(w http.ResponseWriter, r *http.Request) error {
	return i.from(intake.Topic, w, r)
}

// from answers senders that expect status 200.
func (i *intakeRoutes) from(k intake.Kind, w http.ResponseWriter, r *http.Request) error {
	result, err := i.receive(w, r, intake.Request{Kind: k, Source: segment(r, "source")})
	if err != nil {
		return err
	}
	received(w, r, http.StatusOK, "Event received", result)
	return nil
}

// event serves a sender that names the source and the type in the path.
func (i *intakeRoutes) event(w http.ResponseWriter, r *http.Request) error {
	return i.eventFrom(segment(r, "source"), w, r)
}

// shortEvent serves a path with one name after /events: the type of an event of the default
// source, or the source of several events.
func (i *intakeRoutes) shortEvent(w http.ResponseWriter, r *http.Request) error {
	if intake.IsBatch(r.Header.Get("Content-Type")) {
		return i.batch(segment(r, "event_type"), w, r)
	}
	return i.eventFrom(core.DefaultSource, w, r)
}

// eventFrom accepts one event of a source. The token is checked before the body is read, and a
// wrong one counts as a refusal of the source.
func (i *intakeRoutes) eventFrom(source string, w http.ResponseWriter, r *http.Request) error {
	if err := i.token.check(w, r); err != nil {
		i.receiver.Refused(source, err)
		return err
	}
	in := intake.Request{Kind: intake.Event, Source: source, Type: segment(r, "event_type")}
	result, err := i.receive(w, r, in)
	if err != nil {
		return err
	}
	received(w, r, http.StatusAccepted, "Event accepted", result)
	return nil
}

// batch accepts several events of a source. It answers with a list of results, in the order
// of the events.
func (i *intakeRoutes) batch(source string, w http.ResponseWriter, r *http.Request) error {
	if err := i.token.check(w, r); err != nil {
		i.receiver.Refused(source, err)
		return err
	}
	in, err := i.read(w, r, intake.Request{Kind: intake.Event, Source: source})
	if err != nil {
		return err
	}
	// As for a single event: all events of a complete request are stored.
	receipts, err := i.receiver.ReceiveAll(context.WithoutCancel(r.Context()), in)
	if err != nil {
		return err
	}
	list := make([]receiptBody, len(receipts))
	for n, receipt := range receipts {
		list[n] = receiptBody{receipt.EventID, receipt.Duplicate, receipt.Jobs}
	}
	writeJSON(w, http.StatusAccepted, list)
	return nil
}

// read fills in the request. It does not read the body if the source would refuse the
// request.
func (i *intakeRoutes) read(w http.ResponseWriter, r *http.Request, in intake.Request) (intake.Request, error) {
	// The time of arrival is when the head was read: a slow body must not make a signature look
	// too old.
	in.At = i.clock()
	in.ClientIP = recordOf(w).client
	if err := i.receiver.Admit(in.Kind, in.Source, in.ClientIP); err != nil {
		return in, err
	}
	// Admit needs the head only, so a sender of an unknown source sends its body for nothing, but
	// the gateway does not read it.
	body, err := i.body(w, r)
	if err != nil {
		i.unread(in.Source, err)
		return in, err
	}
	in.Header, in.Body, in.Target = intake.Header(r.Header), body, target(r)
	return in, nil
}

// receive reads the request and passes it on.
func (i *intakeRoutes) receive(w http.ResponseWriter, r *http.Request, in intake.Request) (intake.Result, error) {
	in, err := i.read(w, r, in)
	if err != nil {
		return intake.Result{}, err
	}
	// An event that has arrived completely is stored, also if its sender has disconnected:
	// the sender cannot know how far it got. The store bounds the time of that.
	return i.receiver.Receive(context.WithoutCancel(r.Context()), in)
}

// unread tells the receiver why a body did not arrive. A body that came too slowly counts
// as incomplete.
func (i *intakeRoutes) unread(source string, err error) {
	switch {
	case errors.Is(err, errSlow):
		err = errIncomplete
	case errors.Is(err, errBusy):
		err = core.Refuse(core.Unavailable, "%v", err)
	}
	i.receiver.Refused(source, err)
}

// target returns the path and query of a request as they were sent.
func target(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		return r.RequestURI
	}
	return r.URL.RequestURI()
}

// segment returns a parameter of the path, decoded once. The router splits the path as it
// was sent if decoding would lose something, such as an encoded slash in a segment.
func segment(r *http.Request, name string) string {
	s := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return s
	}
	decoded, err := url.PathUnescape(s)
	if err != nil {
		return s // impossible: net/http refuses such a path
	}
	return decoded
}
