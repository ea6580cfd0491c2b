package sns

import (
	"errors"
	"time"
)

const (
	maxNew   = 10              // new addresses at once
	newEvery = 6 * time.Second // brings one more
)

var errNoBudget = errors.New("not fetched: messages name too many certificates that are new here; if strangers send them, set topic_arns")

// A budget is what may be spent on strangers: maxNew at once, and one more every
// newEvery. The zero budget is full.
type budget struct {
	full time.Time // when it is full again
}

// take spends one, or reports that there is none.
func (b *budget) take(now time.Time) bool {
	const span = maxNew * newEvery
	switch {
	case b.full.Before(now):
		b.full = now
	case b.full.After(now.Add(span)): // the clock was set back
		b.full = now.Add(span)
	}
	if b.full.Add(newEvery).After(now.Add(span)) {
		return false
	}
	b.full = b.full.Add(newEvery)
	return true
}
