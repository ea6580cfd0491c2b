package expr

import (
	"fmt"
	"unicode/utf8"

	"github.com/theory/jsonpath/parser"
)

// Bounds of a path, beyond those of RFC 9535. With them a path selects at most
// maxWays times as many nodes as a payload has, and looks at each about as often.
const (
	maxPath = 512 // bytes
	maxWays = 64  // ways to pick one selector of each segment
)

// A Path is a JSONPath (RFC 9535): it selects values of a payload. It never
// changes and is safe for concurrent use.
type Path struct {
	text     string
	segments []segment
	singular bool
	memos    int // of an evaluation
}

// ParsePath parses a path of at most 512 bytes. It may have one "..", and its lists of
// selectors ([0, 1]) may be combined in at most 64 ways: without these two bounds a small
// payload could cost many steps. The second argument of match and search must be a literal,
// which ParsePath compiles; RFC 9535 would let it come from a payload. The error is one line.
// It names the mistake, its column in characters from 1, and the text to write instead.
func ParsePath(text string) (*Path, error) {
	if err := checkPath(text); err != nil {
		return nil, err
	}
	// The library decides whether the text is a path. readPath then only has to read valid
	// ones.
	if _, err := parser.Parse(functions, text); err != nil {
		return nil, explain(text, err)
	}
	segments, memos, err := readPath(text)
	if err != nil {
		return nil, err
	}
	return &Path{text: text, segments: segments, singular: singular(segments), memos: memos}, nil
}

// String returns the path as it was written.
func (p *Path) String() string { return p.text }

// Singular reports whether the path leads to at most one value in any payload: it
// consists of names and indexes alone.
func (p *Path) Singular() bool { return p.singular }

// Steps returns the names (string) and the indexes (int) of a singular path, from the root
// on; none for $ and for a path that is not singular. An index below 0 counts from the end
// of the array.
func (p *Path) Steps() (steps []any) {
	if !p.singular {
		return nil
	}
	for _, s := range p.segments {
		if only := s.selectors[0]; only.kind == byName {
			steps = append(steps, only.name)
		} else {
			steps = append(steps, only.index)
		}
	}
	return steps
}

// checkPath refuses paths that the parser would accept.
func checkPath(text string) error {
	switch {
	case text == "":
		return fmt.Errorf("a path is empty; the whole payload is $, a member of it $.name")
	case len(text) > maxPath:
		return fmt.Errorf("a path has at most %d bytes, not %d", maxPath, len(text))
	case !utf8.ValidString(text):
		return fmt.Errorf("a path must be valid UTF-8")
	}
	return checkCost(text)
}
