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
}

// Fire stores the event of one slot of a schedule, for a source of kind Tick. Firing the
// same slot again stores nothing, at any time and in any process: the delivery id of the
// event is the slot's Unix time in seconds.
func (in *Intake) Fire(ctx context.Context, source string, slot time.Time) error {
	s, ok := in.sources[source]
	if !ok || s.Kind != Tick {
		return fmt.Errorf("fire source %q: it has no schedule", source)
	}
	payload, err := json.Marshal(slotBody{core.FormatTime(slot), s.Schedule, s.Name})
	if err != nil {
		return err
	}
	// The time of the event is the present, also if the slot is fired late. The payload
	// has the slot's time.
	now, ids := in.Clock(), in.IDs.Block()
	event := core.Event{
		ID:          ids.At(s.place),
		Source:      s.Name,
		Type:        core.CronTick,
		Payload:     payload,
		ContentType: "application/json",
		DeliveryID:  strconv.FormatInt(slot.Unix(), 10),
		CreatedAt:   now.UTC().Truncate(time.Millisecond),
	}
	// The gateway made the payload itself, so only its fit with the consumers is checked.
	arrival, err := in.arrival(event, expr.NewDocument(payload, event.ContentType), ids)
	if err != nil {
		return fmt.Errorf("fire source %q: %w", source, err)
	}
	parent := in.trace(&arrival.Event)
	receipt, err := in.accept(ctx, arrival)
	if err != nil {
		return err
	}
	if !receipt.Duplicate { // a duplicate is normal: another process was first
		in.announce(arrival, parent, receipt, in.Clock().Sub(now))
	}
	return nil
}
