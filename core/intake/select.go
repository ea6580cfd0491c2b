package intake

import (
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

// Select parses a filter, and returns a function that reports whether it matches a stored event. It
// decides as the filter of a consumer does when the event comes in or is replayed. So a filter that
// runs out of steps, or that has to read JSON without a view, does not match. It returns the error
// of [expr.ParseFilter].
func Select(filter string) (func(core.Event) bool, error) {
	f, err := expr.ParseFilter(filter)
	if err != nil {
		return nil, err
	}
	return func(e core.Event) bool {
		holds, _ := f.Match(view(&e), contextOf(e)) // false with an error
		return holds
	}, nil
}
