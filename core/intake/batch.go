package intake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/eventgateway/gateway/core"
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

func (in *Intake) receiveAll(ctx context.Context, r Request) ([]core.Receipt, error) {
	s, err := in.admit(r.Kind, r.Source, r.ClientIP)
	if err != nil {
		return nil, err
	}
	if err := in.verify(ctx, s, r); err != nil {
		return nil, err
	}
	if !readable(r.Body) {
		return nil, errNotUTF8
	}
	if _, ok := r.Header[idempotencyKey]; ok {
		return nil, malformed("Idempotency-Key is for one event; events of a batch are known by their source and id")
	}
	arrivals, err := in.readAll(s, r)
	if err != nil {
		return nil, err
	}
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
	took := in.Clock().Sub(r.At)
	for i, a := range arrivals {
		in.announce(a, parents[i], receipts[i], took)
	}
	return receipts, nil
}

// readAll makes the arrivals of a batch.
func (in *Intake) readAll(s Source, r Request) ([]core.Arrival, error) {
	if len(r.Body) > largeBody {
		in.large <- struct{}{}
		defer func() { <-in.large }()
	}
	elements, err := elementsOf(r)
	if err != nil {
		return nil, err
	}
	header := maps.Clone(r.Header)
	header["Content-Type"] = []string{structuredMode + "+json"}
	arrivals := make([]core.Arrival, len(elements))
	for i, element := range elements {
		one := r
		one.Header, one.Body, one.Type = header, element.body, fallbackType
		e := envelope{source: s, request: one, provider: providerCalled(s.Provider), log: in.Log}
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
	refusal, ok := errors.AsType[*core.Refusal](err)
	if !ok {
		return err
	}
	where := fmt.Sprintf("events[%d]", i)
	if e.line > 0 {
		where += fmt.Sprintf(" (line %d)", e.line)
	}
	message := refusal.Message
	if errors.Is(err, ErrNotText) {
		message = refusal.Error()
	}
	return &core.Refusal{Kind: refusal.Kind, Message: where + ": " + message, Cause: ErrMalformed, RetryAfter: refusal.RetryAfter}
}

var errTooMany = &core.Refusal{
	Kind: core.TooLarge, Cause: ErrMalformed,
	Message: fmt.Sprintf("a request may have at most %d events; send more of them in further requests", core.MaxTogether),
}

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

// itemsOf splits a JSON array into its items.
func itemsOf(body []byte) (all []element, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	notArray := malformed("a batch of CloudEvents must be a JSON array")
	if open, err := d.Token(); err != nil || open != json.Delim('[') {
		return nil, notArray
	}
	for d.More() {
		if len(all) == core.MaxTogether {
			return nil, errTooMany
		}
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			return nil, malformed("events[%d]: it is not JSON", len(all))
		}
		all = append(all, element{body: raw})
	}
	if _, err := d.Token(); err != nil {
		return nil, notArray
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, notArray
	}
	return all, nil
}
