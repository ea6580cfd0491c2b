package expr

import (
	"fmt"
	"unicode/utf8"

	"github.com/theory/jsonpath/parser"
	"github.com/theory/jsonpath/spec"
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
	segments []*spec.Segment
	singular bool
}

// ParsePath parses a path of at most 512 bytes. It may have one "..", its lists of
// selectors ([0, 1]) may be combined in at most 64 ways, and a path that begins
// with $ inside a filter selector must be singular: each of these would otherwise
// let a small payload cost a lot. The error is one line that says at which column,
// counted in characters from 1, what is wrong, and what to write instead.
func ParsePath(text string) (*Path, error) {
	if err := checkPath(text); err != nil {
		return nil, err
	}
	query, err := parser.Parse(functions(), text)
	if err != nil {
		return nil, explain(text, err)
	}
	p := &Path{text: text, segments: query.Segments(), singular: query.Singular() != nil}
	return p, nil
}

// String returns the path as it was written.
func (p *Path) String() string { return p.text }

// Singular reports whether the path leads to at most one value in any payload: it
// consists of names and indexes alone.
func (p *Path) Singular() bool { return p.singular }

// One returns the first value that the path selects, and whether there is one.
// For a singular path it allocates nothing.
func (p *Path) One(root any) (v any, ok bool) {
	if p.singular {
		return p.follow(root)
	}
	if all := p.Select(root); len(all) > 0 {
		return all[0], true
	}
	return nil, false
}

// Select returns all values that the path selects: those of an array in its order,
// those of an object in the order of their names, those of ".." with a node before
// what is in it. A value that several selectors pick is there several times. The
// root is a tree such as [Document.Value] returns.
func (p *Path) Select(root any) []any {
	if p.singular {
		if v, ok := p.follow(root); ok {
			return []any{v}
		}
		return nil
	}
	found := []any{root}
	for _, s := range p.segments {
		next := make([]any, 0, len(found))
		for _, v := range found {
			if s.IsDescendant() {
				next = appendDescendants(next, s, v, root)
			} else {
				next = appendSelected(next, s, v, root)
			}
		}
		found = next
	}
	return found
}

// follow walks a singular path.
func (p *Path) follow(v any) (any, bool) {
	for _, s := range p.segments {
		var ok bool
		switch sel := s.Selectors()[0].(type) {
		case spec.Name:
			v, ok = member(v, string(sel))
		case spec.Index:
			v, ok = element(v, int(sel))
		}
		if !ok {
			return nil, false
		}
	}
	return v, true
}

func member(v any, name string) (any, bool) {
	object, _ := v.(map[string]any)
	v, ok := object[name]
	return v, ok
}

// element returns the i-th element of an array, counted from its end if i < 0.
func element(v any, i int) (any, bool) {
	list, _ := v.([]any)
	if i < 0 {
		i += len(list)
	}
	if i < 0 || i >= len(list) {
		return nil, false
	}
	return list[i], true
}

// appendDescendants applies a segment to v and to everything below it.
func appendDescendants(to []any, s *spec.Segment, v, root any) []any {
	to = appendSelected(to, s, v, root)
	for child := range children(v) {
		switch child.(type) {
		case []any, map[string]any:
			to = appendDescendants(to, s, child, root)
		}
	}
	return to
}

// appendSelected applies a segment to v.
func appendSelected(to []any, s *spec.Segment, v, root any) []any {
	for _, selector := range s.Selectors() {
		switch sel := selector.(type) {
		case spec.Name:
			if v, ok := member(v, string(sel)); ok {
				to = append(to, v)
			}
		case spec.Index:
			if v, ok := element(v, int(sel)); ok {
				to = append(to, v)
			}
		case spec.SliceSelector:
			to = appendSlice(to, sel, v)
		case spec.WildcardSelector:
			if list, ok := v.([]any); ok {
				to = append(to, list...)
				continue
			}
			for child := range children(v) {
				to = append(to, child)
			}
		case *spec.FilterSelector:
			for child := range children(v) {
				if sel.Eval(child, root) {
					to = append(to, child)
				}
			}
		}
	}
	return to
}

func appendSlice(to []any, s spec.SliceSelector, v any) []any {
	list, _ := v.([]any)
	low, high := s.Bounds(len(list))
	for i := low; s.Step() > 0 && i < high; i += s.Step() {
		to = append(to, list[i])
	}
	for i := high; s.Step() < 0 && i > low; i += s.Step() {
		to = append(to, list[i])
	}
	return to
}

// children yields the elements of an array, or the values of an object in the
// order of their names.
func children(v any) func(yield func(any) bool) {
	return func(yield func(any) bool) {
		switch v := v.(type) {
		case []any:
			for _, child := range v {
				if !yield(child) {
					return
				}
			}
		case map[string]any:
			for _, name := range members(nil, v) {
				if !yield(v[name]) {
					return
				}
			}
		}
	}
}

// checkPath refuses what the parser would take.
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
