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
// the others. Lanes come longest due first, which decides between equals.
func share(n int, lanes []core.Lane, held map[core.Lane]int) []core.Quota {
	given := make([]int, len(lanes))
	for ; n > 0; n-- {
		least := 0
		for i := range lanes {
			if held[lanes[i]]+given[i] < held[lanes[least]]+given[least] {
				least = i
			}
		}
		given[least]++
	}
	var quotas []core.Quota
	for i, g := range given {
		if g > 0 {
			quotas = append(quotas, core.Quota{Lane: lanes[i], N: g})
		}
	}
	return quotas
}
