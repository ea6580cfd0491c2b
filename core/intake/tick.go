package intake

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

// A slotBody is the payload of a slot's event. Times are UTC.
type slotBody struct {
	ScheduledAt string `json:"scheduled_at"` // time of the slot, not of the event
	Schedule    string `json:"schedule"`     // as configured
	Source      string `json:"source"`
	FiredAt     string `json:"fired_at,omitempty"` // when an operator fired the source; such an event has no slot
}

// Fire stores the event of one slot of a schedule, for a source of kind Tick. Firing the
// same slot again stores nothing, at any time and in any process: the delivery id of the
// event is the slot's Unix time in seconds.
func (in *Intake) Fire(ctx context.Context, source string, slot time.Time) error {
	s, ok := in.sources[source]
	if !ok || s.Kind != Tick {
		return fmt.Errorf("fire source %q: it has no schedule", source)
	}
	// The time of the event is the present, also if the slot is fired late. The payload
	// has the slot's time.
	now, ids := in.Clock(), in.IDs.Block()
	_, err := in.tick(ctx, s, now, ids, slotBody{ScheduledAt: core.FormatTime(slot)}, strconv.FormatInt(slot.Unix(), 10))
	return err
}

// FireNow stores an event as Fire does, but of no slot: its payload says when it was fired, and its
// delivery id is made of its own id, which no slot has. So it takes the place of no slot, and each
// call stores an event. Its receipt is never a duplicate, unless every job of it repeats a key. It
// returns the time as well. The error for a source that is not of kind Tick is no [core.Refusal].
func (in *Intake) FireNow(ctx context.Context, source string) (core.Receipt, time.Time, error) {
	s, ok := in.sources[source]
	if !ok || s.Kind != Tick {
		return core.Receipt{}, time.Time{}, fmt.Errorf("fire source %q: it has no schedule", source)
	}
	now, ids := in.Clock(), in.IDs.Block()
	at := core.FormatTime(now)
	receipt, err := in.tick(ctx, s, now, ids, slotBody{ScheduledAt: at, FiredAt: at}, firedNow+string(ids.At(s.place)))
	return receipt, now.UTC().Truncate(time.Millisecond), err
}

// firedNow begins the delivery ids of events that an operator fired.
const firedNow = "fired-"

// tick stores an event of a schedule.
func (in *Intake) tick(ctx context.Context, s Source, now time.Time, ids core.Block, body slotBody, delivery string) (core.Receipt, error) {
	body.Schedule, body.Source = s.Schedule, s.Name
	payload, err := json.Marshal(body)
	if err != nil {
		return core.Receipt{}, err
	}
	event := core.Event{
		ID:          ids.At(s.place),
		Source:      s.Name,
		Type:        core.CronTick,
		Payload:     payload,
		ContentType: "application/json",
		DeliveryID:  delivery,
		CreatedAt:   now.UTC().Truncate(time.Millisecond),
	}
	// The gateway made the payload itself, so only its fit with the consumers is checked.
	arrival, err := in.arrival(event, expr.NewDocument(payload, event.ContentType), ids)
	if err != nil {
		return core.Receipt{}, fmt.Errorf("fire source %q: %w", s.Name, err)
	}
	parent := in.trace(&arrival.Event)
	receipt, err := in.accept(ctx, arrival)
	if err == nil && !receipt.Duplicate { // a duplicate is normal: another process was first
		in.announce(arrival, parent, receipt, in.Clock().Sub(now))
	}
	return receipt, err
}
