package config

import (
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// Unknown refuses the name of a handler, queue, source or workflow that is not configured. The
// refusal names the nearest of the known names, or the first 20 of them. Its kind is
// [core.NotFound].
func Unknown(kind, name string, known []string) error {
	return core.Refuse(core.NotFound, "no %s %s is configured; %s", kind, quote(name), listKnown(name, known))
}

// listKnown returns the nearest known name as a question, or the known names.
func listKnown(name string, known []string) string {
	// A suggestion is more useful than a long list.
	if near := nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	switch more := ""; len(known) {
	case 0:
		return "there is none"
	case 1:
		return "there is " + known[0]
	default:
		if len(known) > maxListed {
			known, more = known[:maxListed], ", …"
		}
		return "there are " + strings.Join(known, ", ") + more
	}
}
