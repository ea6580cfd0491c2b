package worker

import (
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// split separates lanes that are due, longest due first, from the time when the
// next of the others will be (zero if there is none).
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

// share divides n jobs over lanes, one by one, always to the lane that would then
// hold fewest, so that a handler whose deliveries hang cannot take the slots of
// the others. No lane gets more than its most. Lanes come longest due first, which
// decides between equals.
func share(n int, lanes []claim) []core.Quota {
	given := make([]int, len(lanes))
	for ; n > 0; n-- {
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
