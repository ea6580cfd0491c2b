package expr

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/theory/jsonpath/spec"
)

// A segment picks values of each value that the segments before it picked. A segment with
// descendant (..) applies its selectors to every value below as well.
type segment struct {
	selectors  []selector
	descendant bool
}

// A selector picks values of an array or object. Only the fields of its kind are set.
type selector struct {
	kind  selectorKind
	name  string
	index int
	slice spec.SliceSelector
	test  test // of byTest
}

// A selectorKind says which fields of a selector are set. The kinds of singular paths come
// first: see singular.
type selectorKind uint8

const (
	byName selectorKind = iota
	byIndex
	bySlice
	byWildcard
	byTest
)

// A query is a path within a path: a path that begins with $ or @ in a condition. root
// distinguishes $, whose value is the same for all items, from @.
type query struct {
	segments []segment
	root     bool
}

func (q query) singular() bool { return singular(q.segments) }

// singular reports whether all segments are names and indexes.
func singular(segments []segment) bool {
	for _, s := range segments {
		if s.descendant || len(s.selectors) != 1 || s.selectors[0].kind > byIndex {
			return false
		}
	}
	return true
}

// A pathReader makes the tree of a path that the library's parser has accepted. The library
// does not export its trees of conditions. So the reader explains only mistakes that the
// library allows and this package does not. Reading is recursive, and its depth is bounded by
// maxPath: each level takes a character.
type pathReader struct {
	text  string
	pos   int
	memos int // values that do not depend on @
}

// broken ends the reading of a text that is no path. It is recovered in readPath. broken
// carries the error from any depth to readPath.
type broken struct{ err error }

// readPath returns the segments of a path and how many memos an evaluation needs.
func readPath(text string) (segments []segment, memos int, err error) {
	r := pathReader{text: text, pos: len("$")}
	defer func() {
		switch p := recover().(type) {
		case nil:
		// Only a mistake in the path becomes an error. Any other panic is a fault of the
		// program.
		case broken:
			err = p.err
		default:
			panic(p)
		}
	}()
	segments = r.segments()
	// The segments must fill the whole text.
	if r.pos < len(text) {
		r.unexpected()
	}
	return segments, r.memos, nil
}

// fail panics, because the grammar is read by a dozen functions that call each other, and each
// would have to pass the error on.
func (r *pathReader) fail(offset int, format string, args ...any) {
	panic(broken{at(r.text, offset, format, args...)})
}

// unexpected ends the reading for a text that the library's parser accepted and this reader
// does not know. No such text is known; the fuzz tests look for one.
func (r *pathReader) unexpected() { r.fail(r.pos, "the path cannot be read from here") }

// peek is the next byte, 0 at the end.
func (r *pathReader) peek() byte {
	if r.pos < len(r.text) {
		return r.text[r.pos]
	}
	return 0
}

// skip skips blanks and returns the byte after them.
func (r *pathReader) skip() byte {
	for strings.IndexByte(blanks, r.peek()) >= 0 && r.pos < len(r.text) {
		r.pos++
	}
	return r.peek()
}

// take reads a symbol if it is next, after blanks.
func (r *pathReader) take(symbol string) bool {
	r.skip()
	if !strings.HasPrefix(r.text[r.pos:], symbol) {
		return false
	}
	r.pos += len(symbol)
	return true
}

// expect reads a symbol that must be next.
func (r *pathReader) expect(symbol string) {
	if !r.take(symbol) {
		r.unexpected()
	}
}

// segments reads the segments after a $ or @. It ends before the first text that begins no
// segment.
func (r *pathReader) segments() (all []segment) {
	for {
		before := r.pos
		switch c := r.skip(); {
		// Blanks may stand before a segment. If no segment follows them, they belong to the
		// text after the path.
		case c == '.' || c == '[':
			all = append(all, r.segment())
		default:
			r.pos = before
			return all
		}
	}
}

// segment reads one segment: a name after a dot, brackets, or either after "..".
func (r *pathReader) segment() (s segment) {
	switch {
	case r.take("["):
		s.selectors = r.selectors()
		return s
	case r.take(".."):
		s.descendant = true
	default:
		r.expect(".")
	}
	switch c := r.peek(); {
	// After ".." come brackets, a star or a name, as after a dot.
	case c == '[' && s.descendant:
		r.pos++
		s.selectors = r.selectors()
	case c == '*':
		r.pos++
		s.selectors = []selector{{kind: byWildcard}}
	default:
		s.selectors = []selector{{kind: byName, name: r.word()}}
	}
	return s
}

// word reads a name without quotes, of a member or a function.
func (r *pathReader) word() string {
	start := r.pos
	// The library has checked the first character, so digits need no special case here.
	for c := r.peek(); c == '_' || c >= utf8.RuneSelf || c-'0' < 10 || c|0x20-'a' < 26; c = r.peek() {
		r.pos++
	}
	if r.pos == start {
		r.unexpected()
	}
	return r.text[start:r.pos]
}

// selectors reads the rest of a pair of brackets.
func (r *pathReader) selectors() (all []selector) {
	for {
		all = append(all, r.selector())
		if r.take("]") {
			return all
		}
		r.expect(",")
	}
}

// selector reads one selector. Without a quote, a * or a ? it is an index, or a slice with up
// to two colons.
func (r *pathReader) selector() selector {
	switch c := r.skip(); {
	case c == '\'' || c == '"':
		return selector{kind: byName, name: r.quoted()}
	case c == '*':
		r.pos++
		return selector{kind: byWildcard}
	case c == '?':
		r.pos++
		return selector{kind: byTest, test: r.or()}
	}
	// Each end of a slice may be missing, which nil stands for.
	var ends [3]any
	colons := 0
	for {
		if c := r.skip(); c == '-' || c-'0' < 10 {
			ends[colons] = r.whole()
		}
		// A slice has at most two colons.
		if colons == 2 || !r.take(":") {
			break
		}
		colons++
	}
	// Without a colon the one number is an index, which must be there.
	switch i, ok := ends[0].(int); {
	case colons > 0:
		return selector{kind: bySlice, slice: spec.Slice(ends[:]...)}
	case !ok:
		r.unexpected()
		fallthrough
	default:
		return selector{kind: byIndex, index: i}
	}
}

// number reads the text of a number.
func (r *pathReader) number() string {
	start := r.pos
	for r.pos < len(r.text) && strings.IndexByte("+-.0123456789eE", r.text[r.pos]) >= 0 {
		r.pos++
	}
	return r.text[start:r.pos]
}

// whole reads a whole number. Numbers beyond an int are refused; RFC 9535 limits them to 2^53 -
// 1 anyway.
func (r *pathReader) whole() int {
	start := r.pos
	i, err := strconv.Atoi(r.number())
	if err != nil {
		r.fail(start, "not a position in an array")
	}
	return i
}

// quoted reads a text in quotes of either kind, with the escapes of JSON.
func (r *pathReader) quoted() (text string) {
	start := r.pos
	raw := r.text[start : start+quotedLength(r.text[start:])]
	r.pos += len(raw)
	if raw[0] == '\'' && len(raw) > 1 {
		// The text is rewritten as a JSON string: an escaped single quote becomes a plain one,
		// and a double quote gets its escape.
		inside := strings.NewReplacer(`\'`, `'`, `\\`, `\\`, `"`, `\"`).Replace(raw[1 : len(raw)-1])
		raw = `"` + inside + `"`
	}
	if json.Unmarshal([]byte(raw), &text) != nil {
		r.fail(start, "not a text in quotes")
	}
	return text
}

// or, and, basic read the condition of a selector.
func (r *pathReader) or() test {
	// A list of one part is returned as that part, so that it costs nothing.
	all := anyTest{r.and()}
	for r.take("||") {
		all = append(all, r.and())
	}
	if len(all) == 1 {
		return all[0]
	}
	return all
}

// and binds more tightly than or.
func (r *pathReader) and() test {
	all := allTests{r.basic()}
	for r.take("&&") {
		all = append(all, r.basic())
	}
	if len(all) == 1 {
		return all[0]
	}
	return all
}

// basic reads a negation, a group, a call of match or search, the existence of a path, or a
// comparison.
func (r *pathReader) basic() test {
	switch {
	case r.take("!"):
		return notTest{r.basic()}
	case r.take("("):
		t := r.or()
		r.expect(")")
		return t
	}
	// A letter begins a function, or a literal such as true.
	if c := r.peek(); c|0x20-'a' < 26 {
		if t := r.matching(); t != nil {
			return t
		}
	}
	if c := r.peek(); c == '$' || c == '@' {
		return r.existence()
	}
	return r.comparison(r.operand())
}

// existence reads a path, and a comparison if an operator follows.
func (r *pathReader) existence() test {
	q := r.query()
	// Only a singular path can be compared. The existence of any path can be tested.
	if c := r.skip(); q.singular() && strings.IndexByte("=!<>", c) >= 0 && c != 0 {
		return r.comparison(r.single(q))
	}
	// A path from $ gives the same answer for each item.
	return r.remembered(exists{q}, q.root)
}

// comparators are in this order because some begin with another: the longer one is first.
var comparators = []comparator{"==", "!=", "<=", ">=", "<", ">"}

// comparison reads the operator and the right side after an operand.
func (r *pathReader) comparison(left operandOf) test {
	for _, c := range comparators {
		// The result is fixed only if both sides are.
		if r.take(string(c)) {
			right := r.operand()
			return r.remembered(relation{left.value, right.value, c}, left.fixed && right.fixed)
		}
	}
	r.unexpected()
	return nil
}

// An operandOf is an operand and whether its value is the same for each @.
type operandOf struct {
	value quantity
	fixed bool
}

// operand reads a literal, a singular path, or a function.
func (r *pathReader) operand() operandOf {
	switch c := r.skip(); {
	case c == '\'' || c == '"':
		return operandOf{literal{r.quoted()}, true}
	case c == '-' || c-'0' < 10:
		return operandOf{literal{json.Number(r.number())}, true}
	case c == '$' || c == '@':
		return r.single(r.query())
	}
	// Literals and functions share the form of their first word.
	switch word := r.word(); word {
	case "true", "false":
		return operandOf{literal{word == "true"}, true}
	case "null":
		return operandOf{literal{nil}, true}
	// Its argument is an operand, and may have no value.
	case "length":
		r.expect("(")
		of := r.operand()
		r.expect(")")
		return r.kept(length{of.value}, of.fixed)
	// Their argument is any path.
	case "count", "value":
		r.expect("(")
		if c := r.skip(); c != '$' && c != '@' {
			r.unexpected()
		}
		q := r.query()
		r.expect(")")
		if word == "count" {
			return r.kept(count{q}, q.root)
		}
		return r.kept(sole{q}, q.root)
	}
	r.unexpected()
	return operandOf{}
}

// query reads a path within the path.
func (r *pathReader) query() query {
	root := r.peek() == '$'
	r.pos++
	return query{r.segments(), root}
}

// single is the operand of a singular path.
func (r *pathReader) single(q query) operandOf { return r.kept(single{q}, q.root) }

// kept returns an operand that is evaluated once for all values of @, if this is possible.
func (r *pathReader) kept(q quantity, fixed bool) operandOf {
	if fixed {
		r.memos++
		// The number of the memo is its place in the memory of each evaluation.
		q = keptQuantity{q, r.memos - 1}
	}
	return operandOf{q, fixed}
}

// remembered returns a test that is made once for all values of @, if this is possible.
func (r *pathReader) remembered(t test, fixed bool) test {
	if !fixed {
		return t
	}
	r.memos++
	return keptTest{t, r.memos - 1}
}

// matching reads a call of match or search. It returns nil if the next text is not a call.
func (r *pathReader) matching() test {
	start := r.pos
	// The word may also be a literal or another function; then it is read again.
	name := r.word()
	wrap, ok := patternFunctions[name]
	if !ok {
		r.pos = start
		return nil
	}
	r.expect("(")
	subject := r.operand()
	r.expect(",")
	r.skip()
	at := r.pos
	// A path or function as the pattern could make the cost depend on the payload.
	pattern, isLiteral := r.operand().value.(literal)
	r.expect(")")
	if !isLiteral {
		r.fail(at, "the pattern of %s must be a text in quotes: what a pattern costs depends on it, so it cannot come from a payload", name)
	}
	text, isText := pattern.v.(string)
	if !isText { // as RFC 9535 has it, true of nothing
		return anyTest{}
	}
	p, err := compilePattern(text, wrap)
	if err != nil {
		r.fail(at, "%v", fmt.Errorf("the pattern of %s %w", name, err))
	}
	return r.remembered(matches{subject.value, p}, subject.fixed)
}
