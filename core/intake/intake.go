// Package intake is the door events come in through: one received request
// becomes one [core.Arrival], handed to the store.
//
// The one idea to know: everything is decided before anything is written. A
// request is checked in a fixed order, and the first check that fails ends it:
//
//	source known ─▶ address allowed ─▶ signature over the raw bytes ─▶ UTF-8
//	  ─▶ event type, delivery id, headers ─▶ who wants it ─▶ Accept
//
// Nothing of the body is parsed before its signature holds, and then only if no
// header named the event's type.
//
// intake knows nothing of HTTP but header names; it imports core and the
// standard library, without net/http.
package intake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
)

// Kind is the kind of a source, and so of the door its events come in by.
type Kind int

// The kinds of doors.
const (
	Webhook Kind = iota + 1 // events of others, whose senders are verified
	Event                   // events of one's own programs
)

// A Source is a sender that is known by name.
type Source struct {
	Name string
	Kind Kind

	// Provider names the service whose conventions the sender follows, such as
	// "github"; empty for none in particular. See the table in envelope.go.
	Provider string

	// Verify decides whether a request comes from the sender it claims to come
	// from. A [core.Refusal] of kind Invalid or Unauthorized says that it does
	// not; any other error, that this could not be found out. Nil trusts everyone.
	Verify func(Request) error

	// Allowed are the networks requests may come from; empty means all.
	Allowed []netip.Prefix
}

// A Request is an event as it was received, before any of it is believed.
type Request struct {
	Kind   Kind   // the door it came in by
	Source string // name of the source, from the path
	Type   string // event type from the path; empty for Webhook

	Header   Header
	Body     []byte // all of it; Receive's from now on
	ClientIP netip.Addr
	At       time.Time // when the request began to arrive
}

// Header holds header fields as net/http does, under canonical names, so that
// an http.Header converts to it for free.
type Header map[string][]string

// Get returns the first value of the field with this canonical name, or "".
func (h Header) Get(name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// ErrMalformed is the cause of refusals whose message explains to a developer
// what to change. Other refusals carry one of the fixed texts senders know.
var ErrMalformed = errors.New("malformed request")

// ErrVerification wraps errors that kept a sender from being verified at all.
var ErrVerification = errors.New("verification error")

var (
	errUnknownSource = core.Refuse(core.NotFound, "Unknown source")
	errForbidden     = core.Refuse(core.Forbidden, "Forbidden")
	errNotUTF8       = core.Refuse(core.Invalid, "Invalid UTF-8")
)

// Deps is what an Intake works with. Bell, Observe and Log may be nil.
type Deps struct {
	Inbox core.Inbox
	IDs   *core.IDs
	Clock core.Clock

	Bell    *core.Bell    // rung for every lane that got a job
	Observe core.Observer // told Accepted, Repeated, Unverified
	Log     *slog.Logger  // told what was odd about an event and taken all the same

	Sources   []Source
	Consumers []Consumer
}

// Intake receives events. It is safe for concurrent use and never changes: a
// new configuration makes a new one.
type Intake struct {
	Deps
	sources map[string]Source
	matcher matcher
}

// New returns an Intake for these sources and consumers. Source names are unique.
func New(d Deps) *Intake {
	if d.Observe == nil {
		d.Observe = func(core.Fact) {}
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	in := &Intake{Deps: d, sources: map[string]Source{}, matcher: newMatcher(d.Consumers)}
	for _, s := range d.Sources {
		in.sources[s.Name] = s
	}
	return in
}

// Admit says whether a request to a source is worth reading: the source exists,
// is of this kind, and takes requests from the address. An edge asks it before it
// reads a body; Receive asks again.
func (in *Intake) Admit(k Kind, source string, from netip.Addr) error {
	_, err := in.admit(k, source, from)
	return err
}

func (in *Intake) admit(k Kind, source string, from netip.Addr) (Source, error) {
	s, ok := in.sources[source]
	if !ok || s.Kind != k {
		return Source{}, errUnknownSource
	}
	if len(s.Allowed) > 0 && !contains(s.Allowed, from) {
		return Source{}, errForbidden
	}
	return s, nil
}

// contains reports whether one of the networks holds the address; no network
// holds the zero address.
func contains(networks []netip.Prefix, a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, n := range networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// Receive checks the request and stores its event together with a job for each
// consumer that wants it. Without an error both are on stable storage, or the
// event was a duplicate. A [core.Refusal] is the sender's to read; an error that
// wraps [ErrVerification] says that verifying failed; others come from the store.
func (in *Intake) Receive(ctx context.Context, r Request) (core.Receipt, error) {
	s, err := in.admit(r.Kind, r.Source, r.ClientIP)
	if err != nil {
		return core.Receipt{}, err
	}
	if err := in.verify(s, r); err != nil {
		return core.Receipt{}, err
	}
	if !utf8.Valid(r.Body) || bytes.IndexByte(r.Body, 0) >= 0 {
		return core.Receipt{}, errNotUTF8
	}
	event, err := in.event(s, r)
	if err != nil {
		return core.Receipt{}, err
	}
	arrival := core.Arrival{Event: event, Jobs: in.jobs(event)}
	receipt, err := in.Inbox.Accept(ctx, arrival)
	if err != nil {
		return core.Receipt{}, fmt.Errorf("accept event from source %q: %w", r.Source, err)
	}
	in.announce(arrival, receipt, in.Clock().Sub(r.At))
	return receipt, nil
}

// verify asks the source's verifier, and states the fact if it says no.
func (in *Intake) verify(s Source, r Request) error {
	if s.Verify == nil {
		return nil
	}
	err := s.Verify(r)
	var refusal *core.Refusal
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &refusal):
		return fmt.Errorf("%w: source %q: %w", ErrVerification, s.Name, err)
	case refusal.Kind == core.Invalid || refusal.Kind == core.Unauthorized:
		in.Observe(core.Unverified{Source: s.Name, Reason: refusal.Error(), ClientIP: address(r.ClientIP)})
	}
	return err
}

func address(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// event reads what the request says about itself.
func (in *Intake) event(s Source, r Request) (core.Event, error) {
	e := envelope{source: s, request: r, log: in.Log}
	eventType, err := e.eventType()
	if err != nil {
		return core.Event{}, err
	}
	deliveryID, err := e.deliveryID()
	if err != nil {
		return core.Event{}, err
	}
	return core.Event{
		ID:          in.IDs.Next(),
		Source:      s.Name,
		Type:        eventType,
		Payload:     e.payload(),
		ContentType: e.contentType(),
		Headers:     e.headers(),
		DeliveryID:  deliveryID,
		CreatedAt:   r.At.UTC().Truncate(time.Millisecond),
	}, nil
}

func (in *Intake) jobs(e core.Event) []core.NewJob {
	wanted := in.matcher.match(e.Source, e.Type)
	if len(wanted) == 0 {
		return nil
	}
	jobs := make([]core.NewJob, len(wanted))
	for i, t := range wanted {
		jobs[i] = core.NewJob{ID: in.IDs.Next(), Lane: t.lane, MaxAttempts: t.maxAttempts}
	}
	return jobs
}

// announce tells those who wait for work, and those who count, what was stored.
func (in *Intake) announce(a core.Arrival, r core.Receipt, took time.Duration) {
	if r.Duplicate {
		in.Observe(core.Repeated{Source: a.Event.Source, Type: a.Event.Type, First: r.EventID})
		return
	}
	for _, j := range a.Jobs {
		in.Bell.Ring(j.Lane)
	}
	in.Observe(core.Accepted{Event: a.Event, Jobs: r.Jobs, Took: took})
}
