package operate

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// MaxAhead is how far the clock of another process may be ahead, so that an operation still acts on
// all that this process stored. It is the bound of [core.DatabaseClock] for two processes. A record
// that is farther ahead comes from a clock that was wrong, and does not count: an operation would
// begin in the future for as long as the record is stored.
const MaxAhead = 6 * time.Second

// Moment returns the id and the time of a new operation. All records that are stored have lower ids,
// and finished at the time or earlier.
//
// The clock of this process does not suffice for that. Each process learns the time of the database
// with an error, which is tens of milliseconds on D1. So a job can have died a little later by the
// clock of its worker than it is now, and an operator who saw it dead expects its retry.
func (w *Walker) Moment(ctx context.Context, ids *core.IDs, now time.Time) (core.ID, time.Time, error) {
	newest, finished, err := w.Store.Newest(ctx)
	if err != nil {
		return "", time.Time{}, err
	}
	id, at, most := ids.Next(), now.UTC().Truncate(time.Millisecond), now.Add(MaxAhead)
	if newest >= id && newest.Time().Before(most) {
		// Only this id is ahead: later ones come from the clock again.
		id = core.NewIDs(func() time.Time { return newest.Time().Add(time.Millisecond) }).Next()
	}
	if finished.After(at) && finished.Before(most) {
		at = finished
	}
	return id, at, nil
}
