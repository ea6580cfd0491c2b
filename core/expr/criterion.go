package expr

import (
	"encoding/json"
	"regexp"
	"strings"
)

// A criterion is what a test asks of one value, which may be a *branch.
type criterion interface{ meets(v any) bool }

// An operator makes of the values on its right the criterion for those on its
// left: to stand in the relation to at least one of them.
type operator func(rights []any) criterion

// operators are the positive ones but matches, whose right side is a pattern.
var operators = map[string]operator{
	"==":          equalTo,
	"<":           func(r []any) criterion { return newBound(r, 1, false) },
	"<=":          func(r []any) criterion { return newBound(r, 1, true) },
	">":           func(r []any) criterion { return newBound(r, -1, false) },
	">=":          func(r []any) criterion { return newBound(r, -1, true) },
	"in":          elementOf,
	"contains":    containing,
	"starts_with": func(r []any) criterion { return affix{texts(r), strings.HasPrefix} },
	"ends_with":   func(r []any) criterion { return affix{texts(r), strings.HasSuffix} },
}

// present is met by all values.
type present struct{}

func (present) meets(any) bool { return true }

// truth is met by all values but null, false, 0 and "".
type truth struct{}

func (truth) meets(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case json.Number:
		return parseDecimal(v).digits != ""
	}
	return true
}

// A set is met by the values that are in it. To look one up takes no more than to
// read it, however large the set is.
type set struct {
	strings map[string]struct{}
	numbers map[decimal]struct{}
	trees   map[string]struct{} // arrays and objects, by their canonical text
	longest int                 // of the texts of trees
	null    bool
	bools   [2]bool
}

func newSet() *set {
	return &set{strings: map[string]struct{}{}, numbers: map[decimal]struct{}{}, trees: map[string]struct{}{}}
}

func equalTo(rights []any) criterion {
	s := newSet()
	for _, v := range rights {
		s.add(v)
	}
	return s
}

// elementOf is met by the elements of all arrays on the right.
func elementOf(rights []any) criterion {
	s := newSet()
	for _, v := range rights {
		list, _ := v.([]any)
		for _, item := range list {
			s.add(item)
		}
	}
	return s
}

func (s *set) add(v any) {
	switch v := v.(type) {
	case nil:
		s.null = true
	case bool:
		s.bools[index(v)] = true
	case string:
		s.strings[v] = struct{}{}
	case json.Number:
		s.numbers[parseDecimal(v)] = struct{}{}
	case []any, map[string]any:
		text := Canonical(v)
		s.trees[text] = struct{}{}
		s.longest = max(s.longest, len(text))
	}
}

func (s *set) meets(v any) (ok bool) {
	switch v := v.(type) {
	case nil:
		return s.null
	case bool:
		return s.bools[index(v)]
	case string:
		_, ok = s.strings[v]
	case json.Number:
		if len(s.numbers) > 0 {
			_, ok = s.numbers[parseDecimal(v)]
		}
	case *branch:
		return len(s.trees) > 0 && s.meets(v.tree())
	case []any, map[string]any:
		if len(s.trees) > 0 && within(v, s.longest) >= 0 {
			_, ok = s.trees[Canonical(v)]
		}
	}
	return ok
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// within takes what the JSON text of a value needs at least from a number of
// bytes, and stops when that is used up. What is left is then negative.
func within(v any, limit int) int {
	switch v := v.(type) {
	case string:
		return limit - len(v) - 2
	case []any:
		limit -= 1 + max(1, len(v))
		for i := 0; i < len(v) && limit >= 0; i++ {
			limit = within(v[i], limit)
		}
		return limit
	case map[string]any:
		limit -= 1 + max(1, len(v))
		for name, item := range v {
			if limit -= len(name) + 3; limit < 0 {
				break
			}
			limit = within(item, limit)
		}
		return limit
	}
	return limit - 1
}

// A bound is met by the numbers and strings that are before one of the right side,
// or after one, which is the same as before its last or after its first.
type bound struct {
	direction int // 1: before, -1: after
	orEqual   bool
	number    *decimal // the farthest; nil: there is none
	text      *string
}

func newBound(rights []any, direction int, orEqual bool) criterion {
	b := &bound{direction: direction, orEqual: orEqual}
	for _, v := range rights {
		switch v := v.(type) {
		case json.Number:
			if d := parseDecimal(v); b.number == nil || d.compare(*b.number)*direction > 0 {
				b.number = &d
			}
		case string:
			if b.text == nil || strings.Compare(v, *b.text)*direction > 0 {
				b.text = &v
			}
		}
	}
	return b
}

func (b *bound) meets(v any) bool {
	switch v := v.(type) {
	case json.Number:
		return b.number != nil && b.allows(b.number.compare(parseDecimal(v)))
	case string:
		return b.text != nil && b.allows(strings.Compare(*b.text, v))
	}
	return false
}

// allows judges how the bound compares with a value.
func (b *bound) allows(order int) bool {
	return order*b.direction > 0 || b.orEqual && order == 0
}

// texts returns the strings among some values.
func texts(values []any) (all []string) {
	for _, v := range values {
		if text, ok := v.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// An affix is met by the strings that begin, or end, with one of some texts.
type affix struct {
	texts []string
	has   func(s, text string) bool
}

func (a affix) meets(v any) bool {
	s, ok := v.(string)
	if !ok {
		return false
	}
	for _, text := range a.texts {
		if a.has(s, text) {
			return true
		}
	}
	return false
}

// A container is met by the strings that have one of some texts in them, and by
// the arrays that have one of some values.
type container struct {
	parts    affix
	elements criterion
}

func containing(rights []any) criterion {
	return container{affix{texts(rights), strings.Contains}, equalTo(rights)}
}

func (c container) meets(v any) bool {
	list, ok := grown(v).([]any)
	if !ok {
		return c.parts.meets(v)
	}
	for _, item := range list {
		if c.elements.meets(item) {
			return true
		}
	}
	return false
}

// maxSubject bounds what patterns are tried on, in bytes: matching is linear, but
// some hundred times slower than reading.
const maxSubject = 64 << 10

// A pattern is met by the strings in which it is found.
type pattern struct{ regexp *regexp.Regexp }

func (p pattern) meets(v any) bool {
	s, ok := v.(string)
	return ok && len(s) <= maxSubject && p.regexp.MatchString(s)
}
