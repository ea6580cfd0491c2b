// Package intake receives events: it makes one [core.Arrival] of one request, and passes it
// to the store.
//
// The one idea to know: every decision is made before the first write. A request is checked
// in a fixed order, and the first check that fails ends it:
//
//	source known ─▶ address allowed ─▶ signature over the raw bytes ─▶ UTF-8
//	  ─▶ out of the envelope: event type, delivery id, headers, payload
//	  ─▶ schema ─▶ consumers that want it, with keys and params ─▶ Accept
//
// No part of the body is parsed before its signature is verified. (An SNS notification
// carries its own signature, so package sns does both.) After that only the needed parts
// are parsed: the type of most events is in a header, and a [expr.Document] is decoded when
// a filter, a key or a schema first reads it.
//
// Where to change something: the data about a provider is one line of provider.go.
// CloudEvents, topics, schedules and delays have a file each. match.go finds the consumers of an
// event.
//
// intake knows nothing of HTTP but header names. It imports core, core/expr, core/sns,
// core/units and the standard library, without net/http.
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

// Kind is the kind of a source. Each kind has a route of its own.
type Kind int

// The kinds of sources.
const (
	Webhook Kind = iota + 1 // events of other services, whose signatures are verified
	Event                   // events of the operator's own programs, through the API
	Topic                   // notifications of Amazon SNS
	Tick                    // slots of a schedule; it has no route
)

// A Source is a configured source of events.
type Source struct {
	Name string
	Kind Kind

	// Provider names the service whose conventions the sender follows, such as "github". It
	// is empty for other senders. See the table in provider.go.
	Provider string

	// Verify checks that a request comes from the sender that it claims. A [core.Refusal]
	// of kind Invalid or Unauthorized says that it does not. Any other error says that the
	// check itself failed. Nil accepts every sender.
	Verify func(Request) error

	// ByBody treats two requests with the same body as one delivery, also if the ids in
	// their headers differ. It is for a source whose signature covers only the body.
	ByBody bool

	// Topic opens and verifies the envelopes of a source of kind Topic.
	Topic *sns.Topic

	// Binary accepts payloads of any bytes. Without it a payload must be UTF-8 text without
	// NUL bytes.
	Binary bool

	// Origins are the names of senders whose handshake is answered, or * for all. See
	// [Intake.Handshake].
	Origins []string

	// Schema validates payloads; nil accepts any.
	Schema *expr.Schema

	// Schedule is the schedule of a source of kind Tick, as its events show it.
	Schedule string

	// Allowed are the networks from which requests may come; empty means all.
	Allowed []netip.Prefix

	place uint32 // place of its events' ids in their blocks
}

// A Request is a received event before any check.
type Request struct {
	Kind   Kind   // the kind of the route by which it came
	Source string // name of the source, from the path
	Type   string // event type from the path; for kind Event only
	Target string // path and query as sent; some signatures cover them

	Header   Header
	Body     []byte // the whole body; Receive takes ownership of it
	ClientIP netip.Addr
	At       time.Time // when the request began to arrive, by Deps.Clock
}

// Header holds header fields as net/http does, under canonical names. An http.Header
// converts to it without a copy.
type Header map[string][]string

// Get returns the first value of the field with this canonical name, or "".
func (h Header) Get(name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// ErrMalformed is the cause of refusals whose message explains the fault to a developer.
// Other refusals have one of the fixed texts.
var ErrMalformed = errors.New("malformed request")

// ErrNotText is the cause of the refusal of a payload that is not text. The message of the
// refusal is a fixed text; ErrNotText names the setting that an operator can change.
var ErrNotText = errors.New("the payload is no UTF-8 text, or has a NUL byte; a source with binary: true takes any bytes")

// ErrVerification wraps errors that prevented the verification of a sender.
var ErrVerification = errors.New("verification error")

var (
	errUnknownSource = core.Refuse(core.NotFound, "Unknown source")
	errForbidden     = core.Refuse(core.Forbidden, "Forbidden")
	errNotUTF8       = &core.Refusal{Kind: core.Invalid, Message: "Invalid UTF-8", Cause: ErrNotText}
)

// Deps are the dependencies of an Intake. Bell, Observe and Log may be nil.
type Deps struct {
	Inbox  core.Inbox
	Events Events
	IDs    *core.IDs
	Clock  core.Clock

	Bell    *core.Bell    // rung for every lane that got a job
	Observe core.Observer // of Accepted, FilterFailed, Repeated, Unverified, TurnedAway, Confirmed, Unsubscribed

	// Trace makes the span of an event's intake. Parent is the span that the sender named,
	// or zero. The new span is stored with the event, and all later spans of the event are
	// in its trace. Nil leaves the event in the sender's span, if it named one.
	Trace func(parent core.Span) core.Span

	// Alarm is called for every failed verification as well, and may take its time. It may
	// be nil.
	Alarm func(context.Context, core.Unverified)
	Log   *slog.Logger // for oddities of accepted events

	Sources   []Source
	Consumers []Consumer
}

// Events reads stored events. See [core.Ledger].
type Events interface {
	Event(ctx context.Context, id core.ID) (core.Event, error)
}

// Intake receives events. It is safe for concurrent use and never changes: a changed
// configuration makes a new Intake.
type Intake struct {
	Deps
	sources map[string]Source
	matcher matcher
	large   chan struct{} // a place for each large body that is being read
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

// Admit reports whether a request to a source is worth reading: the source exists, is of
// this kind, and accepts requests from the address. An edge calls it before it reads a
// body. Receive makes the same check. The error is a [core.Refusal].
func (in *Intake) Admit(k Kind, source string, from netip.Addr) error {
	_, err := in.admit(k, source, from)
	if err != nil {
		in.Refused(source, err)
	}
	return err
}

// Refused records that an edge refused a request before it had read all of it. Admit and
// Receive record their own refusals.
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

// admit gives a source of another kind the text of an unknown one, so that a scan of routes
// does not find out which sources exist.
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

// contains reports whether one of the networks contains the address. No network contains
// the zero address.
func contains(networks []netip.Prefix, a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, n := range networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// A Result is the result of a request.
type Result struct {
	core.Receipt

	// Answer is the text of the reply if the request had no event: the request was a
	// challenge, or about a subscription.
	Answer string
}

// Receive checks a request, and stores its event together with a job for each consumer that
// wants it. Without an error there are three cases: both are on stable storage, or the
// event was a duplicate, or the request had no event and the result has an Answer.
//
// The message of a [core.Refusal] is for the sender. An error that wraps [ErrVerification]
// says that the verification itself failed. An error that wraps [sns.ErrConfirmation] says
// that a subscription could not be confirmed. Other errors come from the store. An
// [Unknown] says that the event may or may not be stored; after any other error nothing is
// stored.
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

// take stores the letter that open returns.
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

// largeBody bounds small bodies, in bytes. A decoded body may take fifty times its size in
// memory, and a second of a processor. So at most half of the processors read large bodies,
// one at a time each, while the others read small ones.
const largeBody = 64 << 10

// read makes the arrival of a request: it reads the content, checks it, and finds its
// consumers.
func (in *Intake) read(s Source, r Request, ids core.Block, open func() (letter, error)) (core.Arrival, error) {
	if len(r.Body) > largeBody {
		in.large <- struct{}{}
		defer func() { <-in.large }()
	}
	return in.open(s, r, ids, open)
}

// open makes the arrival of an envelope's content.
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
	event.ID = ids.At(s.place)
	event.CreatedAt = receivedAt(r.At, event.ID)
	arrival, err := in.weigh(s, event, ids)
	postpone(arrival, l.dueAt)
	return arrival, err
}

// weigh makes the arrival of an event that is out of its envelope: it checks the payload against
// the schema of the source, and finds the consumers.
func (in *Intake) weigh(s Source, e core.Event, ids core.Block) (core.Arrival, error) {
	document := view(&e)
	if err := conforms(s, document); err != nil {
		return core.Arrival{}, err
	}
	return in.arrival(e, document, ids)
}

// view returns the JSON view of an event's payload.
func view(e *core.Event) *expr.Document { return expr.View(e.Payload, e.ContentType, e.Opaque()) }

// contextOf returns the context in which filters read an event.
func contextOf(e core.Event) *expr.Context {
	return expr.OfEvent(string(e.ID), e.Type, e.Source, e.CreatedAt)
}

// receivedAt returns when a request came in, in milliseconds precision. If its id is more
// than a minute older, the clock was set back since, and the time is the id's.
func receivedAt(at time.Time, id core.ID) time.Time {
	if made := id.Time(); at.Sub(made) > time.Minute {
		return made
	}
	return at.UTC().Truncate(time.Millisecond)
}

// readable reports whether bytes can be stored as text.
func readable(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

// verify calls the source's verifier.
func (in *Intake) verify(ctx context.Context, s Source, r Request) error {
	if s.Verify == nil {
		return nil
	}
	return in.verified(ctx, s, r, s.Verify(r))
}

// verified states the fact if a sender could not be verified. An error that is not a
// refusal says that the verification itself failed.
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

// invalidSignature is the reply to every sender that could not be verified, for any reason.
const invalidSignature = "Invalid signature"

// unverified reports whether an error says that a sender could not be verified.
func unverified(err error) bool {
	refusal, ok := errors.AsType[*core.Refusal](err)
	return ok && refusal.Message == invalidSignature
}

// address returns "" for an unknown address; its String would be "invalid IP".
func address(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// conforms validates the payload against the schema of the source.
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
	// If NoEffect holds, nothing is stored, and the sender can repeat the request as it
	// is.
	if core.IsKind(err, core.Unavailable) && !core.NoEffect(err) {
		err = &Unknown{a.Event.ID, err}
	}
	return core.Receipt{}, err
}

// arrival returns the event with a job for each consumer that wants it, and a run for each
// workflow. If its payload does not fit one of them, the event is refused as a whole.
func (in *Intake) arrival(e core.Event, d *expr.Document, ids core.Block) (core.Arrival, error) {
	arrival := core.Arrival{Event: e}
	wanted := in.matcher.match(e.Source, e.Type)
	if len(wanted) == 0 {
		return arrival, nil
	}
	if err := fits(wanted, d); err != nil {
		return core.Arrival{}, err
	}
	arrival = arrivalFor(wanted, e, d, ids, e.CreatedAt)
	return arrival, legible(wanted, arrival, d)
}

// key returns the value by which a consumer recognises duplicates, as text; "" if the
// payload has none. Null and the empty string count as none: otherwise all events without a
// value would be one event. A text with characters outside Unicode counts as none too,
// since all such characters are equal once decoded: two deliveries are better than none.
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

// announce rings the bell for the stored jobs, and states the facts.
func (in *Intake) announce(a core.Arrival, parent core.Span, r core.Receipt, took time.Duration) {
	if r.Duplicate {
		in.Observe(core.Repeated{Source: a.Event.Source, Type: a.Event.Type, First: r.EventID})
		return
	}
	if r.Taken < len(a.Jobs) { // else all are taken
		for _, j := range a.Jobs {
			in.ring(j)
		}
	}
	in.Observe(core.Accepted{Event: a.Event, Jobs: r.Jobs, Asked: a.Jobs, Took: took, Parent: parent})
	for _, u := range a.Undecided {
		in.Observe(core.FilterFailed{Event: a.Event, Undecided: u})
	}
}
