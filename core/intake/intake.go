// Package intake is the door events come in through: one received request
// becomes one [core.Arrival], handed to the store.
//
// The one idea to know: everything is decided before anything is written. A
// request is checked in a fixed order, and the first check that fails ends it:
//
//	source known ─▶ address allowed ─▶ signature over the raw bytes ─▶ UTF-8
//	  ─▶ out of the envelope: event type, delivery id, headers, payload
//	  ─▶ schema ─▶ who wants it, under which key, with which params ─▶ Accept
//
// Nothing of the body is parsed before its signature holds (an SNS notification
// carries its own, so package sns does both), and then only as far as somebody
// asks: the type of most events is in a header, and a [expr.Document] is decoded
// when a filter, a key or a schema first looks at it.
//
// Where to change something: what is known of a provider is one line of
// provider.go; CloudEvents, topics and schedules have a file each; whom an event
// concerns is match.go.
//
// intake knows nothing of HTTP but header names; it imports core, core/expr,
// core/sns and the standard library, without net/http.
package intake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
	"github.com/eventgateway/gateway/core/sns"
)

// Kind is the kind of a source, and so of the door its events come in by.
type Kind int

// The kinds of doors.
const (
	Webhook Kind = iota + 1 // events of others, whose senders are verified
	Event                   // events of one's own programs
	Topic                   // notifications of Amazon SNS
	Tick                    // slots of a schedule; no request comes in by it
)

// A Source is a sender that is known by name.
type Source struct {
	Name string
	Kind Kind

	// Provider names the service whose conventions the sender follows, such as
	// "github"; empty for none in particular. See the table in provider.go.
	Provider string

	// Verify decides whether a request comes from the sender it claims to come
	// from. A [core.Refusal] of kind Invalid or Unauthorized says that it does
	// not; any other error, that this could not be found out. Nil trusts everyone.
	Verify func(Request) error

	// ByBody makes two requests with the same body one delivery, whatever id their headers
	// carry. It is for a source whose signature covers the body alone.
	ByBody bool

	// Topic opens the envelopes of a source of kind Topic, and says whether they
	// are genuine.
	Topic *sns.Topic

	// Binary takes payloads of any bytes. Without it a payload is UTF-8 text without NUL bytes.
	Binary bool

	// Origins are the names of senders whose handshake is answered, or * for all. See
	// [Intake.Handshake].
	Origins []string

	// Schema is what payloads must look like; nil takes any.
	Schema *expr.Schema

	// Schedule is that of a source of kind Tick, as its events tell it.
	Schedule string

	// Allowed are the networks requests may come from; empty means all.
	Allowed []netip.Prefix

	place uint32 // of the ids of its events in their blocks
}

// A Request is an event as it was received, before any of it is believed.
type Request struct {
	Kind   Kind   // the door it came in by
	Source string // name of the source, from the path
	Type   string // event type from the path; of Event only
	Target string // path and query as they were sent; some signatures cover them

	Header   Header
	Body     []byte // all of it; Receive's from now on
	ClientIP netip.Addr
	At       time.Time // when the request began to arrive, by Deps.Clock
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

// ErrNotText is the cause of the refusal of a payload that is no text. The message of the
// refusal is a fixed text, and ErrNotText says what an operator can change.
var ErrNotText = errors.New("the payload is no UTF-8 text, or has a NUL byte; a source with binary: true takes any bytes")

// ErrVerification wraps errors that kept a sender from being verified at all.
var ErrVerification = errors.New("verification error")

var (
	errUnknownSource = core.Refuse(core.NotFound, "Unknown source")
	errForbidden     = core.Refuse(core.Forbidden, "Forbidden")
	errNotUTF8       = &core.Refusal{Kind: core.Invalid, Message: "Invalid UTF-8", Cause: ErrNotText}
)

// Deps is what an Intake works with. Bell, Observe and Log may be nil.
type Deps struct {
	Inbox  core.Inbox
	Events Events
	IDs    *core.IDs
	Clock  core.Clock

	Bell    *core.Bell    // rung for every lane that got a job
	Observe core.Observer // told Accepted, FilterFailed, Repeated, Unverified, TurnedAway, Confirmed, Unsubscribed

	// Trace makes the span of an event's intake, within the one that the event was sent
	// in if that is not zero. It is stored with the event, and whatever comes of the event
	// is in its trace. Nil leaves the event in the sender's, if it named one.
	Trace func(parent core.Span) core.Span

	// Alarm is told of every failed verification as well, with the time to do
	// something about it; may be nil.
	Alarm func(context.Context, core.Unverified)
	Log   *slog.Logger // told what was odd about an event and taken all the same

	Sources   []Source
	Consumers []Consumer
}

// Events has the events that are stored. See [core.Ledger].
type Events interface {
	Event(ctx context.Context, id core.ID) (core.Event, error)
}

// Intake receives events. It is safe for concurrent use and never changes: a
// new configuration makes a new one.
type Intake struct {
	Deps
	sources map[string]Source
	matcher matcher
	large   chan struct{} // one for each large body being read
}

// New returns an Intake for these sources and consumers. Source names are unique.
func New(d Deps) *Intake {
	if d.Observe == nil {
		d.Observe = func(core.Fact) {}
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	in := &Intake{Deps: d, sources: map[string]Source{}, matcher: newMatcher(d.Consumers), large: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
	taken := map[uint32]bool{}
	for _, s := range d.Sources {
		s.place = placeOf(s.Name, taken)
		in.sources[s.Name] = s
	}
	return in
}

// Admit says whether a request to a source is worth reading: the source exists,
// is of this kind, and takes requests from the address. An edge asks it before it
// reads a body; Receive asks again.
func (in *Intake) Admit(k Kind, source string, from netip.Addr) error {
	_, err := in.admit(k, source, from)
	if err != nil {
		in.Refused(source, err)
	}
	return err
}

// Refused hears from an edge that a request to a source was refused before all of it
// was read. What Admit and Receive refuse they know themselves.
func (in *Intake) Refused(source string, err error) {
	fact := core.TurnedAway{}
	if s, ok := in.sources[source]; ok {
		fact.Source = s.Name
	}
	if refusal, ok := errors.AsType[*core.Refusal](err); ok {
		fact.Kind = refusal.Kind
	}
	in.Observe(fact)
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

// A Result is what became of a request.
type Result struct {
	core.Receipt

	// Answer is the text to reply with if the request brought no event: it was a
	// challenge, or about a subscription.
	Answer string
}

// Receive checks the request and stores its event together with a job for each
// consumer that wants it. Without an error both are on stable storage, or the
// event was a duplicate, or there was none and the result has an answer. A
// [core.Refusal] is the sender's to read; an error that wraps [ErrVerification]
// says that verifying failed, one that wraps [sns.ErrConfirmation] that a
// subscription could not be confirmed; others come from the store. An [Unknown] says that
// the event may be stored or not; after any other error nothing is stored.
func (in *Intake) Receive(ctx context.Context, r Request) (Result, error) {
	result, err := in.receive(ctx, r)
	if err != nil && !unverified(err) {
		in.Refused(r.Source, err)
	}
	return result, err
}

func (in *Intake) receive(ctx context.Context, r Request) (Result, error) {
	s, err := in.admit(r.Kind, r.Source, r.ClientIP)
	if err != nil {
		return Result{}, err
	}
	if err := in.verify(ctx, s, r); err != nil {
		return Result{}, err
	}
	binary := !readable(r.Body)
	if binary && !s.Binary {
		return Result{}, errNotUTF8
	}
	if s.Kind == Topic {
		return in.receiveTopic(ctx, s, r)
	}
	e := envelope{source: s, request: r, provider: providerCalled(s.Provider), log: in.Log, binary: binary}
	if challenge := e.challenge(); challenge != "" {
		return Result{Answer: challenge}, nil
	}
	return in.take(ctx, s, r, e.open)
}

// take stores what open gets out of an envelope.
func (in *Intake) take(ctx context.Context, s Source, r Request, open func() (letter, error)) (Result, error) {
	block, again, err := in.block(s, r)
	if err != nil {
		return Result{}, err
	}
	arrival, err := in.read(s, r, block, open)
	if err != nil {
		return Result{}, err
	}
	parent := in.trace(&arrival.Event)
	store := in.accept
	if again {
		store = in.repeat
	}
	receipt, err := store(ctx, arrival)
	if err != nil {
		return Result{}, err
	}
	in.announce(arrival, parent, receipt, max(0, in.Clock().Sub(r.At)))
	return Result{Receipt: receipt}, nil
}

// largeBody is the size in bytes above which bodies are read by half of the
// processors only, and one at a time by each, while smaller ones pass by: decoded, a
// body may take fifty times its size, and a second.
const largeBody = 64 << 10

// read makes an arrival of a request: what is in it, whether that fits, and whom it
// concerns.
func (in *Intake) read(s Source, r Request, ids core.Block, open func() (letter, error)) (core.Arrival, error) {
	if len(r.Body) > largeBody {
		in.large <- struct{}{}
		defer func() { <-in.large }()
	}
	return in.open(s, r, ids, open)
}

// open makes an arrival of the content of an envelope.
func (in *Intake) open(s Source, r Request, ids core.Block, open func() (letter, error)) (core.Arrival, error) {
	l, err := open()
	if err != nil {
		return core.Arrival{}, err
	}
	event := core.Event{
		Source:      s.Name,
		Type:        l.eventType,
		Payload:     l.payload,
		Binary:      l.binary,
		ContentType: l.contentType,
		Headers:     l.headers,
		DeliveryID:  l.deliveryID,
	}
	document := view(&event)
	if err := conforms(s, document); err != nil {
		return core.Arrival{}, err
	}
	event.ID = ids.At(s.place)
	event.CreatedAt = receivedAt(r.At, event.ID)
	return in.arrival(event, document, ids)
}

// view is the JSON view of an event's payload.
func view(e *core.Event) *expr.Document { return expr.View(e.Payload, e.ContentType, e.Opaque()) }

// receivedAt is when a request came in, in milliseconds precision. If its id is of a much
// earlier time, the clock was set back since, and it is that.
func receivedAt(at time.Time, id core.ID) time.Time {
	if made := id.Time(); at.Sub(made) > time.Minute {
		return made
	}
	return at.UTC().Truncate(time.Millisecond)
}

// readable reports whether bytes can be kept as text.
func readable(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

// verify asks the source's verifier.
func (in *Intake) verify(ctx context.Context, s Source, r Request) error {
	if s.Verify == nil {
		return nil
	}
	return in.verified(ctx, s, r, s.Verify(r))
}

// verified states the fact if a sender could not be verified. What is not a refusal
// kept it from being found out.
func (in *Intake) verified(ctx context.Context, s Source, r Request, err error) error {
	var refusal *core.Refusal
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &refusal):
		return fmt.Errorf("%w: source %q: %w", ErrVerification, s.Name, err)
	case unverified(err):
		fact := core.Unverified{Source: s.Name, Reason: refusal.Error(), ClientIP: address(r.ClientIP)}
		in.Observe(fact)
		if in.Alarm != nil {
			in.Alarm(ctx, fact)
		}
	}
	return err
}

// invalidSignature is what a sender is told that could not be verified, whatever
// the reason.
const invalidSignature = "Invalid signature"

// unverified reports whether an error says that a sender could not be verified.
func unverified(err error) bool {
	refusal, ok := errors.AsType[*core.Refusal](err)
	return ok && refusal.Message == invalidSignature
}

func address(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// conforms checks the payload against the schema of the source.
func conforms(s Source, d *expr.Document) error {
	if s.Schema == nil {
		return nil
	}
	if err := d.Err(); err != nil {
		return core.Refuse(core.Invalid, "%v, and the source has a schema", err)
	}
	if violations := s.Schema.Check(d.Value()); len(violations) > 0 {
		return core.Refuse(core.Invalid, "%s", strings.Join(violations, "\n"))
	}
	return nil
}

func (in *Intake) accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	receipt, err := in.Inbox.Accept(ctx, a)
	if err == nil {
		return receipt, nil
	}
	err = fmt.Errorf("accept event from source %q: %w", a.Event.Source, err)
	if core.IsKind(err, core.Unavailable) && !core.NoEffect(err) {
		err = &Unknown{a.Event.ID, err}
	}
	return core.Receipt{}, err
}

// arrival is the event with a job for each consumer that wants it, and a run for each
// workflow. If its payload is not fit for one of them, it is refused as a whole.
func (in *Intake) arrival(e core.Event, d *expr.Document, ids core.Block) (core.Arrival, error) {
	arrival := core.Arrival{Event: e}
	wanted := in.matcher.match(e.Source, e.Type)
	if len(wanted) == 0 {
		return arrival, nil
	}
	if err := fits(wanted, d); err != nil {
		return core.Arrival{}, err
	}
	arrival = arrivalFor(wanted, e, d, ids)
	return arrival, legible(wanted, arrival, d)
}

// key is the value a consumer tells duplicates by, as text; "" if the payload has
// none. Null and the empty string are none: they would make one event of all that
// lack a value. Nor is a text with characters that Unicode does not have, which all
// look the same once they are decoded: better twice than not at all.
func key(path *expr.Path, d *expr.Document) string {
	if path == nil {
		return ""
	}
	v, ok := d.One(path)
	if !ok || v == nil || v == "" {
		return ""
	}
	text := expr.Canonical(v)
	if strings.ContainsRune(text, utf8.RuneError) {
		return ""
	}
	return bounded(text)
}

// announce tells those who wait for work, and those who count, what was stored.
func (in *Intake) announce(a core.Arrival, parent core.Span, r core.Receipt, took time.Duration) {
	if r.Duplicate {
		in.Observe(core.Repeated{Source: a.Event.Source, Type: a.Event.Type, First: r.EventID})
		return
	}
	for _, j := range a.Jobs {
		in.Bell.Ring(j.Lane)
	}
	in.Observe(core.Accepted{Event: a.Event, Jobs: r.Jobs, Asked: a.Jobs, Took: took, Parent: parent})
	for _, u := range a.Undecided {
		in.Observe(core.FilterFailed{Event: a.Event, Undecided: u})
	}
}
