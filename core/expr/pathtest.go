package expr

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// An evaluation is the state of evaluating one path with its conditions. It lasts for one path
// and one payload, so its memos are never stale.
type evaluation struct {
	root   any
	budget *budget
	memos  []memo
}

// A memo is a result that does not depend on @, computed once.
type memo struct {
	made bool
	v    any
	ok   bool
}

// A test is a condition of a selector, or a part of one. The current value is @.
type test interface {
	holds(e *evaluation, current any) bool
}

// An anyTest holds if one of its parts does. The parts after it are not evaluated, also by the
// count of steps.
type anyTest []test

func (a anyTest) holds(e *evaluation, current any) bool {
	for _, t := range a {
		if t.holds(e, current) {
			return true
		}
	}
	return false
}

// An allTests holds if all its parts do.
type allTests []test

func (a allTests) holds(e *evaluation, current any) bool {
	for _, t := range a {
		if !t.holds(e, current) {
			return false
		}
	}
	return true
}

// A notTest holds if its part does not, also if that has no value.
type notTest struct{ test }

func (n notTest) holds(e *evaluation, current any) bool { return !n.test.holds(e, current) }

// exists is true if a path selects anything.
type exists struct{ query query }

// A singular path needs no list of values.
func (x exists) holds(e *evaluation, current any) bool {
	if x.query.singular() {
		_, ok := single(x).in(e, current)
		return ok
	}
	return len(e.all(x.query, current)) > 0
}

// keptTest evaluates its test once. Without it, a condition such as $.a[?@.id == $.owner.id]
// would walk to the owner again for each element.
type keptTest struct {
	test
	memo int
}

func (k keptTest) holds(e *evaluation, current any) bool {
	m := &e.memos[k.memo]
	if !m.made {
		m.ok = k.test.holds(e, current)
		m.made = true
	}
	return e.budget.spend(1) && m.ok
}

// matches is true of a text in which the pattern is found. It has no bound for the text like a
// filter's pattern: the budget alone limits it.
type matches struct {
	subject quantity
	program *program
}

// A value that is no text does not match, as RFC 9535 requires.
func (m matches) holds(e *evaluation, current any) bool {
	v, _ := m.subject.in(e, current)
	text, ok := v.(string)
	return ok && m.program.in(e.budget, text)
}

// A quantity is an operand of a comparison. It may have no value. A quantity without a value
// differs from one with the value null.
type quantity interface {
	in(e *evaluation, current any) (v any, ok bool)
}

// A literal is a value in the text of the path.
type literal struct{ v any }

func (l literal) in(*evaluation, any) (any, bool) { return l.v, true }

// keptQuantity is evaluated once.
type keptQuantity struct {
	quantity
	memo int
}

func (k keptQuantity) in(e *evaluation, current any) (any, bool) {
	m := &e.memos[k.memo]
	if !m.made {
		m.v, m.ok = k.quantity.in(e, current)
		m.made = true
	}
	e.budget.spend(1)
	return m.v, m.ok
}

// single is the value that a singular path leads to.
type single struct{ query query }

// in follows the path from $ or from @.
func (s single) in(e *evaluation, current any) (any, bool) {
	if s.query.root {
		current = e.root
	}
	return follow(e.budget, s.query.segments, current)
}

// length is how many characters a text has, or elements an array, or members an object.
type length struct{ of quantity }

// Other values have no length, and the operand then has no value.
func (l length) in(e *evaluation, current any) (any, bool) {
	v, _ := l.of.in(e, current)
	switch v := v.(type) {
	case string:
		return natural(utf8.RuneCountInString(v)), e.budget.spend(span(len(v)))
	case []any:
		return natural(len(v)), true
	case map[string]any:
		return natural(len(v)), true
	}
	return nil, false
}

// count is how many values a path selects.
type count struct{ query query }

func (c count) in(e *evaluation, current any) (any, bool) {
	return natural(len(e.all(c.query, current))), true
}

// sole is the value that a path selects, if it selects exactly one.
type sole struct{ query query }

func (s sole) in(e *evaluation, current any) (any, bool) {
	// Several values are as good as none, as RFC 9535 requires.
	if all := e.all(s.query, current); len(all) == 1 {
		return all[0], true
	}
	return nil, false
}

// natural returns a count as a number of the tree.
func natural(n int) json.Number { return json.Number(strconv.Itoa(n)) }

// A comparator is an operator of RFC 9535.
type comparator string

// A relation compares two quantities. Two quantities without a value are equal; a quantity
// with a value does not equal one without. Values of different types are neither equal nor
// ordered. Only numbers and strings are ordered.
type relation struct {
	left, right quantity
	comparator  comparator
}

func (r relation) holds(e *evaluation, current any) bool {
	left, hasLeft := r.left.in(e, current)
	right, hasRight := r.right.in(e, current)
	// The result means nothing once the budget is spent.
	if !e.budget.spend(1) {
		return false
	}
	// RFC 9535, section 2.3.5.2.2, has the rules for missing values.
	both := hasLeft && hasRight
	same := func() bool { return hasLeft == hasRight && (!both || equal(e.budget, left, right)) }
	switch r.comparator {
	case "==":
		return same()
	case "!=":
		return !same()
	case "<":
		return both && less(e.budget, left, right)
	case "<=":
		return both && less(e.budget, left, right) || same()
	case ">":
		return both && less(e.budget, right, left)
	}
	return both && less(e.budget, right, left) || same()
}

// less reports whether v comes before w. Values that are not both numbers or both strings have
// no order, so neither is less.
func less(b *budget, v, w any) bool {
	switch v := v.(type) {
	case json.Number:
		w, ok := w.(json.Number)
		return ok && b.spend(2*stepsPerNumber+span(len(v)+len(w))) && parseDecimal(v).compare(parseDecimal(w)) < 0
	case string:
		w, ok := w.(string)
		return ok && b.compare(v, w) < 0
	}
	return false
}

// equal reports whether two values are the same, with all values in them. Each compared pair of
// values is a step, so that large equal arrays cannot be compared again and again for nothing.
func equal(b *budget, v, w any) bool {
	if !b.spend(1) {
		return false
	}
	switch v := v.(type) {
	case json.Number:
		w, ok := w.(json.Number)
		// Equal spellings need no parsing.
		return ok && (v == w || b.spend(2*stepsPerNumber+span(len(v)+len(w))) && parseDecimal(v) == parseDecimal(w))
	case string:
		w, ok := w.(string)
		return ok && len(v) == len(w) && b.spend(span(len(v))) && v == w
	case []any:
		w, ok := w.([]any)
		return ok && equalArrays(b, v, w)
	case map[string]any:
		w, ok := w.(map[string]any)
		return ok && equalObjects(b, v, w)
	}
	return v == w
}

// equalArrays compares the lengths first, which costs nothing.
func equalArrays(b *budget, v, w []any) bool {
	if len(v) != len(w) {
		return false
	}
	for i := range v {
		if !equal(b, v[i], w[i]) {
			return false
		}
	}
	return true
}

// equalObjects compares members in the order of their names, so that the same comparison
// always takes the same steps.
func equalObjects(b *budget, v, w map[string]any) bool {
	// Objects with different numbers of members are different.
	if len(v) != len(w) || !b.spend(stepsPerMember*len(v)) {
		return false
	}
	var few [16]string
	for _, name := range members(few[:0], v) {
		other, ok := w[name]
		if !ok || !equal(b, v[name], other) {
			return false
		}
	}
	return true
}
