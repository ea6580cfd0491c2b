package expr

import (
	"errors"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/core/once"
)

// refusal is the format of the parser's errors. It counts bytes from 1. The library has no
// typed errors, so its texts are matched. A text that does not match is shown as it is.
var refusal = once.Regexp(`^jsonpath: (.*?)( at position ([0-9]+))?$`)

// explain converts the parser's error: it names the column, the mistake, and the text that
// was probably meant.
func explain(path string, err error) error {
	m := refusal().FindStringSubmatch(err.Error())
	if m == nil {
		return errors.New("not a path: " + err.Error())
	}
	// An error without a position concerns the end.
	offset := len(path)
	if position, err := strconv.Atoi(m[3]); err == nil {
		offset = min(position-1, len(path))
	}
	if remedy := remedy(path, offset); remedy != "" {
		return at(path, offset, "%s", remedy)
	}
	return at(path, offset, "%s", reword(m[1]))
}

var (
	// nameBefore and nameAfter are the parts of a name around a place, dashes included.
	nameBefore = once.Regexp(`[\pL\pN_-]+$`)
	nameAfter  = once.Regexp(`^[\pL\pN_-]+`)
	number     = once.Regexp(`^-?[0-9]+`)
)

// remedy returns the text to write instead, for common mistakes; empty for others. The cases
// are ordered by how specific they are: the first one that fits the text around the mistake is
// used.
func remedy(path string, offset int) string {
	before, after := path[:offset], path[offset:]
	switch {
	case strings.TrimSpace(path) != path:
		return "remove the blanks around the path"
	case strings.HasPrefix(path, "$$"):
		return "a path begins with one $, as in $.name"
	case path[0] != '$' && nameAfter().FindString(path) == path:
		return "a path begins with $, as in $." + path
	case path[0] != '$':
		return "a path begins with $, as in $.name"
	case nameAfter().MatchString(path[1:]) && !strings.HasPrefix(path, "$-"):
		return "a dot belongs after the $, as in $." + nameAfter().FindString(path[1:])
	// A dash is not permitted in a name after a dot.
	case strings.HasPrefix(after, "-") && nameBefore().MatchString(before):
		return "a name with a dash needs brackets: $['" + nameBefore().FindString(before) + nameAfter().FindString(after) + "']"
	// In other languages, $.0 is an element.
	case strings.HasSuffix(before, ".") && number().MatchString(after):
		return "a position needs brackets: [" + number().FindString(after) + "]"
	case after == "" && strings.HasSuffix(before, "."):
		return "a name or * belongs after a dot"
	case after == "" && strings.Count(before, "[") > strings.Count(before, "]"):
		return `the bracket is not closed; write "]"`
	}
	return ""
}

// reword replaces the parser's own terms in its message. The parser names its tokens
// ("unexpected eof", "unexpected identifier"), which an author of a filter does not know.
func reword(message string) string {
	what, unexpected := strings.CutPrefix(message, "unexpected ")
	switch {
	case message == "invalid comparison operator":
		return message + "; write ==, !=, <, <=, > or >="
	case !unexpected:
		return message
	case what == "eof":
		return "the path ends too early"
	case what == "identifier":
		return "a word does not belong here"
	case strings.HasPrefix(what, "'"):
		return what + " does not belong here"
	}
	return "a " + what + " does not belong here"
}
