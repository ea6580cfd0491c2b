package intake

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/eventgateway/gateway/core"
)

// If the store does not say whether it stored an event, the reply gives the sender the
// event's id, and the sender may send the event again under that id. The ids of an event's
// jobs and runs follow from the event's id. So the two requests store one event, also if
// the first one is stored after the second.
//
// An id names its source, and the time at which it was made. So the check of an id needs no
// stored data, and a sender of one source cannot name an event of another.

// Repeat is the header field with which a sender of kind [Event] repeats an event. Its
// value is the id of an [Unknown].
const Repeat = "X-Gateway-Repeat"

const (
	// repeatable is for how long after it was made an id can be repeated. Purges keep an
	// event for at least that long.
	repeatable = time.Hour

	// ahead is the largest tolerated difference between the clocks of two processes.
	ahead = time.Minute
)

// An Unknown is the error of an event that may or may not be stored.
type Unknown struct {
	EventID core.ID // "" for several events in one request, which have delivery ids
	Err     error   // of the store
}

func (u *Unknown) Error() string {
	return fmt.Sprintf("event %s may be stored or not: %v", u.EventID, u.Err)
}

// Unwrap returns the error of the store.
func (u *Unknown) Unwrap() error { return u.Err }

// The places of ids in a block. The first half has the ids of events, by their source. The
// second half has the ids of jobs and runs, two for each consumer.
const (
	sourcePlaces = core.BlockSize / 2
	forJob       = sourcePlaces
	forRun       = sourcePlaces + 1
)

// placeOf returns the place of a source's event ids in a block. It must not depend on the
// rest of the configuration, so it is a hash of the source's name. If another source has
// that place, it is the next free one.
func placeOf(name string, taken map[uint32]bool) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	n := h.Sum32() % sourcePlaces
	for taken[n] {
		n = (n + 1) % sourcePlaces
	}
	taken[n] = true
	return n
}

// block returns the block for the ids of a request: a new block, or the block of the event
// that the request repeats.
func (in *Intake) block(s Source, r Request) (b core.Block, again bool, err error) {
	text := r.Header.Get(Repeat)
	if text == "" || s.Kind != Event {
		return in.IDs.Block(), false, nil
	}
	// An id of another source, of an unknown form or from the future was not given out
	// here. It gets one text, which does not say which of the three it is.
	id, err := core.ParseID(text)
	b, place := core.BlockOf(id)
	switch made := id.Time(); {
	case err != nil, place != s.place, made.After(in.Clock().Add(ahead)):
		return b, true, malformed("x-gateway-repeat must be the event id that a 503 of this source told")
	case made.Before(in.Clock().Add(-repeatable)):
		return b, true, malformed("x-gateway-repeat names an event of more than %d minutes ago: look for it with GET /api/events/%s, or send it without this header",
			int(repeatable.Minutes()), id)
	}
	return b, true, nil
}

// known reports whether a repeated event is stored. If the stored event with its id has
// another type or payload, the request is refused.
func (in *Intake) known(ctx context.Context, a core.Arrival) (bool, error) {
	stored, err := in.Events.Event(ctx, a.Event.ID)
	switch {
	case core.IsKind(err, core.NotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for event %s: %w", a.Event.ID, err)
	case stored.Source != a.Event.Source || stored.Type != a.Event.Type || !bytes.Equal(stored.Payload, a.Event.Payload):
		return false, malformed("x-gateway-repeat names an event with another type or payload: repeat the request as it was, or leave the header out")
	}
	return true, nil
}

// repeat stores a repeated event, unless it is stored already. The answer is the same as
// the answer to the first request would have been.
func (in *Intake) repeat(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	// The lookup comes first, since it compares the type and the payload. A first request
	// that is stored between the lookup and Accept does no harm: Accept stores the same
	// arrival once.
	known, err := in.known(ctx, a)
	if core.IsKind(err, core.Unavailable) {
		return core.Receipt{}, &Unknown{a.Event.ID, err}
	}
	if err != nil {
		return core.Receipt{}, err
	}
	if known {
		return core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}, nil
	}
	receipt, err := in.accept(ctx, a)
	if core.IsKind(err, core.Unavailable) {
		err = &Unknown{a.Event.ID, err}
	}
	return receipt, err
}
