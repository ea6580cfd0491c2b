package worker

import (
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// split returns the lanes that are due, longest due first, and the time at which the next of
// the other lanes will be due (zero if there is none).
func split(due map[core.Lane]time.Time, now time.Time) (ready []core.Lane, next time.Time) {
	for lane, at := range due {
		switch {
		case !at.After(now):
			ready = append(ready, lane)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	slices.SortFunc(ready, func(a, b core.Lane) int {
		if c := due[a].Compare(due[b]); c != 0 {
			return c
		}
		return strings.Compare(string(a), string(b))
	})
	return ready, next
}

// share divides n jobs among lanes. It gives them out one by one, each to the lane that has
// the fewest jobs, so that a handler whose deliveries hang cannot take the slots of the
// others. No lane gets more than its most. Among equals the lane that comes first gets the
// job: lanes come longest due first.
func share(n int, lanes []claim) []core.Quota {
	given := make([]int, len(lanes))
	for ; n > 0; n-- {
		// The search takes time in proportion to the lanes. That is little beside the claim, which
		// costs a round trip to the database.
		least := -1
		for i, l := range lanes {
			if given[i] < l.most && (least < 0 || l.held+given[i] < lanes[least].held+given[least]) {
				least = i
			}
		}
		if least < 0 {
			break
		}
		given[least]++
	}
	var quotas []core.Quota
	for i, g := range given {
		if g > 0 {
			quotas = append(quotas, core.Quota{Lane: lanes[i].lane, N: g})
		}
	}
	return quotas
}
