package expr

// maxFilter bounds a filter, in bytes.
const maxFilter = 4096

// A Filter decides about payloads. It never changes and is safe for concurrent use.
//
// A test looks for a witness: it holds if some value that its path selects, or some
// pair of values of its two paths, is as it asks; so nothing selected is false. The
// negative operators are the exact opposite of the positive ones: $.a != 1 is true
// of a payload without a. Values of different JSON types are neither equal nor in
// order. Numbers compare by their exact value, strings by code point, arrays and
// objects by all that is in them.
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
// The error is one line that says at which column, counted in characters from 1,
// what is wrong, and what to write instead. Tests that could never hold are wrong
// too ($.a < null), and so are those whose cost would be the square of a payload's
// size: $.a contains $.b[*].
func ParseFilter(text string) (*Filter, error) {
	if err := checkText("filter", text, maxFilter); err != nil {
		return nil, err
	}
	p := filterParser{scanner{text: text, stops: wordStops, words: true}}
	c, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.ahead() != 0 {
		return nil, p.unexpected("and, or, or the end")
	}
	return &Filter{c, text}, nil
}

// String is the text that the filter was parsed of.
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

type anyOf []condition

func (a anyOf) holds(s scope) bool {
	for _, c := range a {
		if c.holds(s) {
			return true
		}
	}
	return false
}

type allOf []condition

func (a allOf) holds(s scope) bool {
	for _, c := range a {
		if !c.holds(s) {
			return false
		}
	}
	return true
}

type negation struct{ condition }

func (n negation) holds(s scope) bool { return !n.condition.holds(s) }

// An operand is a path or a literal.
type operand struct {
	path  *reference // nil: a literal
	value any
}

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

// A check asks an operand for something that is known beforehand.
type check struct {
	operand   operand
	criterion criterion
}

func (c check) holds(s scope) bool { return c.operand.some(s, c.criterion) }

// A comparison asks its left side for something that depends on the payload. The
// right side is looked at once, so that pairs need not be gone through.
type comparison struct {
	left, right operand
	operator    operator
}

func (c comparison) holds(s scope) bool {
	return c.left.some(s, c.operator(s.budget(), c.right.values(s)))
}
