package expr

// maxFilter bounds a filter, in bytes.
const maxFilter = 4096

// A Filter decides about payloads. It never changes and is safe for concurrent use.
//
// A test looks for a witness. It holds if some value that its path selects, or some pair of
// values of its two paths, meets it. So a path that selects nothing makes it false. The
// negative operators are the exact opposite of the positive ones: $.a != 1 is true for a
// payload without a. Values of different JSON types are neither equal nor ordered. Numbers
// compare by their exact value, strings by code point, arrays and objects by all their
// values.
type Filter struct {
	condition condition
	text      string
}

// ParseFilter parses a filter of at most 4,096 bytes and 50 levels:
//
//	filter   = or ;   or = and { "or" and } ;   and = unary { "and" unary } ;
//	unary    = "not" unary | "exists" path | "(" or ")" | test ;
//	test     = path | path "exists" | operand operator operand ;
//	operator = "==" | "!=" | "<" | "<=" | ">" | ">="
//	         | [ "not" ] ( "in" | "contains" | "starts_with" | "ends_with" | "matches" ) ;
//	operand  = path | value ;
//	value    = string | number | "true" | "false" | "null" | list | word ;
//	list     = "[" [ value { "," value } ] "]" ;
//	string   = JSON string | "'" raw "'" ;
//
// A path begins with $ in the payload and with $$ in the [Context], and has blanks
// only inside of brackets. A word is text without blanks, quotes, brackets or
// commas; after matches, an unquoted pattern runs to the next blank. Patterns are
// RE2, not anchored, of at most 1,024 bytes.
//
// The error is one line. It names the column of the mistake, counted in characters from 1,
// the mistake, and the text to write instead. Two kinds of tests are refused as well: tests
// that can never hold ($.a < null), and tests whose cost is the square of a payload's size
// ($.a contains $.b[*]).
func ParseFilter(text string) (*Filter, error) {
	if err := checkText("filter", text, maxFilter); err != nil {
		return nil, err
	}
	p := filterParser{scanner{text: text, stops: wordStops, words: true}}
	c, err := p.or()
	if err != nil {
		return nil, err
	}
	// Something follows a complete condition, most often a word without its operator.
	if p.ahead() != 0 {
		return nil, p.unexpected("and, or, or the end")
	}
	return &Filter{c, text}, nil
}

// String returns the text of which the filter was parsed.
func (f *Filter) String() string { return f.text }

// Match reports whether the filter holds for a payload and its context, which may
// be nil. A string of more than 64 KiB matches no pattern. The errors are [ErrBudget] if
// the filter ran out of steps before it had an answer, and those of [Document.Err] if it asked
// for the payload.
func (f *Filter) Match(d *Document, c *Context) (bool, error) {
	d.begin()
	holds := f.condition.holds(scope{d, c})
	if err := d.settle(); err != nil {
		return false, err
	}
	return holds, nil
}

// A condition is a filter or a part of one.
type condition interface{ holds(s scope) bool }

// An anyOf holds if one of its conditions does.
type anyOf []condition

// The conditions are evaluated in the order of the text, so an author can put the cheap one
// first.
func (a anyOf) holds(s scope) bool {
	for _, c := range a {
		if c.holds(s) {
			return true
		}
	}
	return false
}

// An allOf holds if all its conditions do. It stops at the first that does not.
type allOf []condition

func (a allOf) holds(s scope) bool {
	for _, c := range a {
		if !c.holds(s) {
			return false
		}
	}
	return true
}

// A negation holds if its condition does not.
type negation struct{ condition }

func (n negation) holds(s scope) bool { return !n.condition.holds(s) }

// An operand is a path or a literal.
type operand struct {
	path  *reference // nil: a literal
	value any
}

// values returns all values of the operand, for the right side of an operator.
func (o operand) values(s scope) []any {
	if o.path == nil {
		return []any{o.value}
	}
	return o.path.all(s)
}

// some reports whether a value of the operand meets a criterion.
func (o operand) some(s scope, c criterion) bool {
	b := s.budget()
	switch {
	case o.path == nil:
		return c.meets(b, o.value)
	// A single value can stay on the tape.
	case o.path.path.Singular():
		v, ok := o.path.one(s)
		return ok && c.meets(b, v)
	}
	for _, v := range o.path.all(s) {
		if !b.spend(1) {
			return false
		}
		if c.meets(b, v) {
			return true
		}
	}
	return false
}

// A check is a test with a criterion that does not depend on the payload.
type check struct {
	operand   operand
	criterion criterion
}

func (c check) holds(s scope) bool { return c.operand.some(s, c.criterion) }

// A comparison is a test with a criterion that depends on the payload. The right side is
// read once, so no pairs are compared.
type comparison struct {
	left, right operand
	operator    operator
}

// holds makes the criterion from the right side first, and then tests the left values one by
// one.
func (c comparison) holds(s scope) bool {
	return c.left.some(s, c.operator(s.budget(), c.right.values(s)))
}
