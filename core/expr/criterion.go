package expr

import (
	"encoding/json"
	"strings"
)

// A criterion is the condition of a test for one value, which may be a *branch. A criterion
// that runs out of steps returns anything: the evaluation then has no result.
type criterion interface{ meets(b *budget, v any) bool }

// An operator makes a criterion for the values on its left from the values on its right: a
// left value must stand in the relation to at least one right value.
type operator func(b *budget, rights []any) criterion

// operators are the positive operators except matches, whose right side is a pattern.
var operators = map[string]operator{
	"==":          equalTo,
	"<":           func(b *budget, r []any) criterion { return newBound(b, r, 1, false) },
	"<=":          func(b *budget, r []any) criterion { return newBound(b, r, 1, true) },
	">":           func(b *budget, r []any) criterion { return newBound(b, r, -1, false) },
	">=":          func(b *budget, r []any) criterion { return newBound(b, r, -1, true) },
	"in":          elementOf,
	"contains":    containing,
	"starts_with": func(_ *budget, r []any) criterion { return affix{texts(r), strings.HasPrefix} },
	"ends_with":   func(_ *budget, r []any) criterion { return affix{texts(r), strings.HasSuffix} },
}

// present is met by all values.
type present struct{}

// meets needs no steps: the path was paid for.
func (present) meets(*budget, any) bool { return true }

// truth is met by all values but null, false, 0 and "".
type truth struct{}

// meets parses a number to compare its value: 0.0 and 0e5 are 0 too. Arrays and objects are
// true, also empty ones.
func (truth) meets(_ *budget, v any) bool {
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

// A set is met by its values. Looking a value up takes no longer than reading it, for any
// size of the set.
type set struct {
	strings map[string]struct{}
	numbers map[decimal]struct{}
	trees   map[string]struct{} // arrays and objects, by their canonical text
	longest int                 // of the texts of trees
	null    bool
	bools   [2]bool
}

// newSet returns an empty set, which no value meets.
func newSet() *set {
	return &set{strings: map[string]struct{}{}, numbers: map[decimal]struct{}{}, trees: map[string]struct{}{}}
}

// equalTo is the operator ==. A hash set was chosen over comparing pairs: two paths with a
// thousand values each would need a million comparisons.
func equalTo(b *budget, rights []any) criterion {
	s := newSet()
	s.add(b, rights)
	return s
}

// elementOf is met by the elements of all arrays on the right.
func elementOf(b *budget, rights []any) criterion {
	s := newSet()
	for _, v := range rights {
		// A value that is no array has no elements.
		list, _ := v.([]any)
		s.add(b, list)
	}
	return s
}

// stepsPerElement is how many steps a set needs to store a value.
const stepsPerElement = 8

// add stores values until the budget is spent. The evaluation then ends with ErrBudget, so an
// incomplete set does no harm.
func (s *set) add(b *budget, values []any) {
	for _, v := range values {
		if !b.spend(stepsPerElement) {
			return
		}
		s.addOne(b, v)
	}
}

// addOne stores a value by its type, since values of different types are never equal.
func (s *set) addOne(b *budget, v any) {
	switch v := v.(type) {
	case nil:
		s.null = true
	case bool:
		s.bools[index(v)] = true
	case string:
		b.spend(span(len(v)))
		s.strings[v] = struct{}{}
	case json.Number:
		b.spend(span(len(v)))
		s.numbers[parseDecimal(v)] = struct{}{}
	case []any, map[string]any:
		// The text is written only if its steps are left.
		if !weigh(b, v) {
			return
		}
		text := Canonical(v)
		s.trees[text] = struct{}{}
		// A longer value cannot be in the set: see fits.
		s.longest = max(s.longest, len(text))
	}
}

// meets looks a value up. Sets without values of its type cost no steps.
func (s *set) meets(b *budget, v any) (ok bool) {
	switch v := v.(type) {
	case nil:
		return s.null
	case bool:
		return s.bools[index(v)]
	case string:
		if len(s.strings) > 0 {
			b.spend(1 + span(len(v)))
			_, ok = s.strings[v]
		}
	case json.Number:
		if len(s.numbers) > 0 {
			b.spend(stepsPerNumber + span(len(v)))
			_, ok = s.numbers[parseDecimal(v)]
		}
	// The tree is built only if the set has arrays or objects at all.
	case *branch:
		return len(s.trees) > 0 && s.meets(b, v.tree())
	case []any, map[string]any:
		if len(s.trees) > 0 && s.fits(b, v) && weigh(b, v) {
			_, ok = s.trees[Canonical(v)]
		}
	}
	return ok
}

// stepsPerNumber is how many steps it takes to parse a number.
const stepsPerNumber = 4

// fits reports whether the text of an array or object is at most as long as the longest in
// the set. A false always costs the same steps, although the members of an object come in any
// order.
func (s *set) fits(b *budget, v any) bool {
	// A success spends the steps that it took. A failure is charged the same for each order of
	// the members.
	before := *b
	if within(b, v, s.longest) >= 0 {
		return true
	}
	*b = before
	b.spend(s.longest)
	return false
}

// weigh spends the steps for writing the text of a value.
func weigh(b *budget, v any) bool {
	switch v := v.(type) {
	case string:
		return b.spend(1 + 4*span(len(v)))
	case json.Number:
		return b.spend(stepsPerNumber + span(len(v)))
	case []any:
		b.spend(1)
		for _, item := range v {
			if !weigh(b, item) {
				return false
			}
		}
	case map[string]any:
		b.spend(1 + stepsPerMember*len(v))
		for name, item := range v {
			if !b.spend(span(len(name))) || !weigh(b, item) {
				return false
			}
		}
	}
	return b.spend(1)
}

// index returns the index of a truth value in set.bools.
func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// within subtracts from limit the smallest number of bytes that the JSON text of a value
// needs. It stops as soon as the result is negative.
func within(b *budget, v any, limit int) int {
	switch v := v.(type) {
	case string:
		return limit - len(v) - 2
	case []any:
		limit -= 1 + max(1, len(v))
		for i := 0; i < len(v) && limit >= 0 && b.spend(1); i++ {
			limit = within(b, v[i], limit)
		}
		return limit
	case map[string]any:
		limit -= 1 + max(1, len(v))
		for name, item := range v {
			if limit -= len(name) + 3; limit < 0 || !b.spend(1) {
				break
			}
			limit = within(b, item, limit)
		}
		return limit
	}
	// The shortest other values have one character, such as 0.
	return limit - 1
}

// A bound is met by the numbers and strings that are before one value of the right side, or
// after one. That means: before its last value, or after its first. It takes the same time for
// any number of values on the right.
type bound struct {
	direction int // 1: before, -1: after
	orEqual   bool
	number    *decimal // the farthest; nil: there is none
	text      *string
}

// newBound keeps only the farthest number and the farthest text of the right side: a left value
// that stands in the relation to any of them stands in it to the farthest.
func newBound(b *budget, rights []any, direction int, orEqual bool) criterion {
	o := &bound{direction: direction, orEqual: orEqual}
	for _, v := range rights {
		// An incomplete bound does no harm: the evaluation ends with ErrBudget.
		if !b.spend(stepsPerNumber) {
			return o
		}
		switch v := v.(type) {
		case json.Number:
			b.spend(span(len(v)))
			// A greater one is farther for <, a smaller one for >.
			if d := parseDecimal(v); o.number == nil || d.compare(*o.number)*direction > 0 {
				o.number = &d
			}
		case string:
			if o.text == nil || b.compare(v, *o.text)*direction > 0 {
				o.text = &v
			}
		}
	}
	return o
}

// meets compares with the bound of the value's own type. Other types have no order.
func (o *bound) meets(b *budget, v any) bool {
	switch v := v.(type) {
	case json.Number:
		return o.number != nil && b.spend(stepsPerNumber+span(len(v))) && o.allows(o.number.compare(parseDecimal(v)))
	case string:
		return o.text != nil && o.allows(b.compare(*o.text, v))
	}
	return false
}

// allows reports whether a value with this order relative to the bound meets it.
func (o *bound) allows(order int) bool {
	// order is positive if the bound is greater than the value.
	return order*o.direction > 0 || o.orEqual && order == 0
}

// compare compares two texts.
func (b *budget) compare(v, w string) int {
	b.spend(span(min(len(v), len(w))))
	return strings.Compare(v, w)
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

// An affix is met by the strings that begin, or end, with one of some texts. Its function
// decides which end is meant.
type affix struct {
	texts []string
	has   func(s, text string) bool
}

// meets tries each text. A filter has few of them: on the right of these operators a path must
// be singular.
func (a affix) meets(b *budget, v any) bool {
	s, ok := v.(string)
	if !ok {
		return false
	}
	for _, text := range a.texts {
		if b.spend(1+span(len(s))) && a.has(s, text) {
			return true
		}
	}
	return false
}

// A container is met by the strings that contain one of some texts, and by the arrays that
// contain one of some values.
type container struct {
	parts    affix
	elements criterion
}

// containing is the operator contains. It tests strings for parts and arrays for elements.
func containing(b *budget, rights []any) criterion {
	return container{affix{texts(rights), strings.Contains}, equalTo(b, rights)}
}

// meets needs the elements of an array, so it builds the tree of a branch.
func (c container) meets(b *budget, v any) bool {
	list, ok := grown(v).([]any)
	if !ok {
		return c.parts.meets(b, v)
	}
	for _, item := range list {
		if !b.spend(1) {
			return false
		}
		if c.elements.meets(b, item) {
			return true
		}
	}
	return false
}

// maxSubject bounds the texts that patterns are matched with, in bytes: matching is linear,
// but some hundred times slower than reading.
const maxSubject = 64 << 10

// A pattern is met by the strings in which it is found.
type pattern struct{ program *program }

// meets refuses texts above maxSubject instead of matching a part of them: a match at the end
// would be missed.
func (p pattern) meets(b *budget, v any) bool {
	s, ok := v.(string)
	return ok && len(s) <= maxSubject && p.program.in(b, s)
}
