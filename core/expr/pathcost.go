package expr

import (
	"fmt"
	"strings"
)

// checkCost refuses paths that do more than a fixed number of things per node of a payload. It
// looks at the text only, and also accepts a text that is no path. The bounds concern factors that multiply: a second ".." makes the cost the square of the payload's size, and each list of
// selectors multiplies the number of selected nodes.
func checkCost(path string) error {
	// Dots and commas in names must not count.
	bare := unquote(path)
	if first := strings.Index(bare, ".."); first >= 0 {
		if second := strings.Index(bare[first+2:], ".."); second >= 0 {
			return at(path, first+2+second, `a path has one ".." at most; name the members on the way`)
		}
	}
	if ways(bare) > maxWays {
		return fmt.Errorf("the path's lists of selectors combine in more than %d ways; shorten them, or use two paths", maxWays)
	}
	return nil
}

// unquote replaces quoted text by blanks, so that only operators remain. It keeps the length,
// so that offsets in the result are offsets in the path. A backslash hides the quote after it.
func unquote(path string) string {
	bare := []byte(path)
	var quote byte
	for i := 0; i < len(bare); i++ {
		switch c := bare[i]; {
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == 0:
		case c == quote:
			quote = 0
		case c == '\\' && i+1 < len(bare):
			bare[i], bare[i+1] = 'x', 'x'
			i++
		default:
			bare[i] = 'x'
		}
	}
	return string(bare)
}

// ways multiplies the lengths of all lists of selectors, up to a bound. It counts arguments of
// functions like selectors. Lists inside a condition count too, although they do not multiply
// the selected nodes: the bound is on the work, and a condition is evaluated for each node.
func ways(bare string) int {
	// open has the number of selectors of each open bracket.
	product, open := 1, []int{}
	for _, c := range bare {
		switch {
		case c == '[':
			open = append(open, 1)
		case c == ',' && len(open) > 0:
			open[len(open)-1]++
		case c == ']' && len(open) > 0:
			// The product stops growing above the bound, so it cannot overflow.
			product = min(product*open[len(open)-1], maxWays+1)
			open = open[:len(open)-1]
		}
	}
	return product
}
