package intake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

// Media types of several CloudEvents in one request. One is a JSON array, see
// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md#4-json-batch-format.
// The other has one event on each line.
const (
	arrayOfEvents = structuredMode + "-batch+json"
	linesOfEvents = "application/x-ndjson"
)

// IsBatch reports whether a body of this content type has several structured CloudEvents.
func IsBatch(contentType string) bool {
	m := media(contentType)
	return m == arrayOfEvents || m == linesOfEvents
}

// ReceiveAll checks a request with several structured CloudEvents, at most
// [core.MaxTogether], and stores them in one commit. It checks each event as Receive would.
// The receipts are in the order of the events. If one event is refused, the whole request
// is refused, and the refusal names the event and its fault.
func (in *Intake) ReceiveAll(ctx context.Context, r Request) ([]core.Receipt, error) {
	receipts, err := in.receiveAll(ctx, r)
	if err != nil && !unverified(err) {
		in.Refused(r.Source, err)
	}
	return receipts, err
}

// receiveAll does the work of ReceiveAll, which records the refusals. The checks have the
// order of Receive: the signature covers the raw body, so no event is parsed before it is
// verified.
func (in *Intake) receiveAll(ctx context.Context, r Request) ([]core.Receipt, error) {
	s, err := in.admit(r.Kind, r.Source, r.ClientIP)
	if err != nil {
		return nil, err
	}
	if err := in.verify(ctx, s, r); err != nil {
		return nil, err
	}
	// A structured event is JSON, so its body is text also for a source with binary:
	// true. Bytes come as data_base64 within it.
	if !readable(r.Body) {
		return nil, errNotUTF8
	}
	// One key for several events would make all but the first a duplicate.
	if _, ok := r.Header[idempotencyKey]; ok {
		return nil, malformed("Idempotency-Key is for one event; events of a batch are known by their source and id")
	}
	arrivals, err := in.readAll(s, r)
	if err != nil {
		return nil, err
	}
	// The spans are made before the commit, since they are stored with the events.
	parents := make([]core.Span, len(arrivals))
	for i := range arrivals {
		parents[i] = in.trace(&arrivals[i].Event)
	}
	receipts, err := in.Inbox.AcceptAll(ctx, arrivals)
	if err != nil {
		err = fmt.Errorf("accept %d events from source %q: %w", len(arrivals), s.Name, err)
		if core.IsKind(err, core.Unavailable) && !core.NoEffect(err) {
			err = &Unknown{Err: err} // if the request is repeated, its events are recognised by their source and id
		}
		return nil, err
	}
	// Only stored jobs are announced: a worker that the bell wakes earlier would find
	// nothing.
	took := in.Clock().Sub(r.At)
	for i, a := range arrivals {
		in.announce(a, parents[i], receipts[i], took)
	}
	return receipts, nil
}

// readAll makes the arrivals of a batch.
func (in *Intake) readAll(s Source, r Request) ([]core.Arrival, error) {
	// The place is held for the whole batch: its events are parsed one after the other.
	if len(r.Body) > largeBody {
		in.large <- struct{}{}
		defer func() { <-in.large }()
	}
	elements, err := elementsOf(r)
	if err != nil {
		return nil, err
	}
	// Each event is read as if it had come alone. The clone keeps the caller's header
	// unchanged. All events share the clone: reading an event copies the header before it
	// changes it.
	header := maps.Clone(r.Header)
	header["Content-Type"] = []string{structuredMode + "+json"}
	arrivals := make([]core.Arrival, len(elements))
	for i, element := range elements {
		// The path of a batch names no type. The fallback type passes the check of
		// the path, and the attribute of each event replaces it.
		one := r
		one.Header, one.Body, one.Type = header, element.body, fallbackType
		e := envelope{source: s, request: one, provider: providerCalled(s.Provider), log: in.Log}
		// Each event needs a block of its own, since a block has one place for each
		// consumer.
		if arrivals[i], err = in.open(s, one, in.IDs.Block(), e.open); err != nil {
			return nil, element.refused(i, err)
		}
	}
	return arrivals, nil
}

// An element is one event of a batch.
type element struct {
	body []byte
	line int // its line number, from 1; 0 if it is in an array
}

// refused adds the name of the event to a refusal.
func (e element) refused(i int, err error) error {
	// Other errors are faults of the gateway, and no event of the batch caused them.
	refusal, ok := errors.AsType[*core.Refusal](err)
	if !ok {
		return err
	}
	where := fmt.Sprintf("events[%d]", i)
	if e.line > 0 {
		where += fmt.Sprintf(" (line %d)", e.line)
	}
	// The fixed text "Invalid UTF-8" does not say which setting helps, so the cause is
	// added. The sender of a batch is a developer, and ErrMalformed lets the edge show
	// the whole message.
	message := refusal.Message
	if errors.Is(err, ErrNotText) {
		message = refusal.Error()
	}
	return &core.Refusal{Kind: refusal.Kind, Message: where + ": " + message, Cause: ErrMalformed, RetryAfter: refusal.RetryAfter}
}

// errTooMany is found while the body is split, before the events beyond the limit take
// memory.
var errTooMany = &core.Refusal{
	Kind: core.TooLarge, Cause: ErrMalformed,
	Message: fmt.Sprintf("a request may have at most %d events; send more of them in further requests", core.MaxTogether),
}

// elementsOf splits a body into its events, by the content type. The elements of an array
// are known to be JSON. Lines are not checked: their parser refuses a bad line, with its
// number.
func elementsOf(r Request) ([]element, error) {
	body := unmarked(r.Body)
	if media(r.Header.Get("Content-Type")) == linesOfEvents {
		return linesOf(body)
	}
	return itemsOf(body)
}

// linesOf splits a body into lines. It leaves out blank lines.
func linesOf(body []byte) (all []element, err error) {
	line := 0
	for text := range bytes.Lines(body) {
		line++
		// Blank lines count as lines, so that the number in a refusal is the number
		// in the sender's file.
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		if len(all) == core.MaxTogether {
			return nil, errTooMany
		}
		all = append(all, element{text, line})
	}
	return all, nil
}

// itemsOf splits a JSON array into its items, at most as many as a request may have.
func itemsOf(body []byte) (all []element, err error) {
	err = expr.Elements(body, func(item []byte) error {
		if len(all) == core.MaxTogether {
			return errTooMany
		}
		all = append(all, element{body: item})
		return nil
	})
	switch {
	case errors.Is(err, expr.ErrNotTree):
		return nil, malformed("a batch of CloudEvents must be a JSON array")
	case errors.Is(err, expr.ErrNotPart):
		return nil, malformed("events[%d]: it is not JSON", len(all))
	}
	return all, err
}
