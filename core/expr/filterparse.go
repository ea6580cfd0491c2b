package expr

import (
	"slices"
	"strings"
)

// A filterParser reads one filter, a method for each rule of the grammar. Each method reads as
// much as its rule covers, or returns an error.
type filterParser struct{ scanner }

// or reads the whole of a filter, or of a group. A single part is returned as it is, so that a
// plain test has no wrapper at run time.
func (p *filterParser) or() (condition, error) {
	all, err := p.chain("or", p.and)
	if len(all) == 1 {
		return all[0], err
	}
	return anyOf(all), err
}

// and binds more tightly than or, as in most languages.
func (p *filterParser) and() (condition, error) {
	all, err := p.chain("and", p.unary)
	if len(all) == 1 {
		return all[0], err
	}
	return allOf(all), err
}

// chain reads parts that a word joins.
func (p *filterParser) chain(word string, part func() (condition, error)) (all []condition, err error) {
	for len(all) == 0 || p.keyword(word) {
		c, err := part()
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// unary reads not, exists, a group or a test. It looks for the keywords before it looks for a
// test, so exists and not cannot be words without quotes.
func (p *filterParser) unary() (condition, error) {
	start := p.skip()
	switch {
	case p.keyword("not"):
		return p.negated(start)
	// exists may stand before its path or after it.
	case p.keyword("exists"):
		if p.ahead() != '$' {
			return nil, p.unexpected("a path after exists")
		}
		path, err := p.reference()
		return check{operand{path: path}, present{}}, err
	case p.take("("):
		return p.group(start)
	}
	return p.test()
}

// negated reads the part after not. Each not is a level: otherwise a filter of a thousand nots
// would need a thousand frames of the stack.
func (p *filterParser) negated(start int) (condition, error) {
	if err := p.deeper(start); err != nil {
		return nil, err
	}
	c, err := p.unary()
	p.levels--
	return negation{c}, err
}

// group reads the rest of a group after its bracket. The error names the opening bracket, which
// may be far away.
func (p *filterParser) group(start int) (condition, error) {
	if err := p.deeper(start); err != nil {
		return nil, err
	}
	c, err := p.or()
	if err != nil {
		return nil, err
	}
	p.levels--
	if !p.take(")") {
		return nil, p.unexpected(") for the ( at " + place(p.text, start))
	}
	return c, nil
}

// test reads one test: a path alone, a path with exists, or two operands with an operator.
func (p *filterParser) test() (condition, error) {
	// A symbol at the beginning is an operator without its left side.
	if symbol(p.word()) != "" {
		return nil, p.unexpected("a path or a value")
	}
	left, err := p.side()
	if err != nil {
		return nil, err
	}
	if left.path != nil && p.keyword("exists") {
		return check{left.operand, present{}}, nil
	}
	op, err := p.operator()
	if err != nil {
		return nil, err
	}
	// Without an operator the test is the truth of a path.
	if op.name == "" {
		return p.alone(left)
	}
	c, err := p.compare(left, op)
	// The negation is around the whole test: "not in" of a missing member is true.
	if op.negative {
		c = negation{c}
	}
	return c, err
}

// alone makes the test of a path without an operator.
func (p *filterParser) alone(left side) (condition, error) {
	if left.path != nil {
		// Nothing else may follow a path that stands alone.
		if next := p.word(); next == "and" || next == "or" || p.ahead() == ')' || p.ahead() == 0 {
			return check{left.operand, truth{}}, nil
		}
		return nil, p.unexpected("an operator, exists, and, or, or the end")
	}
	// The error then concerns the word itself, and not the missing operator after it.
	if word, ok := left.value.(string); ok && reserved[strings.ToLower(word)] {
		p.pos = left.start
	}
	return nil, p.unexpected("an operator after " + left.text)
}

// A side is an operand as it stands in the text. The text is quoted in errors.
type side struct {
	operand
	start int
	text  string
}

// side reads an operand: a path, which begins with $, or a literal.
func (p *filterParser) side() (side, error) {
	o := side{start: p.skip()}
	var err error
	switch p.ahead() {
	case 0:
		return o, p.fail(o.start, `expected a path or a value; a test is like $.type == "order.created"`)
	case '$':
		o.path, err = p.reference()
	default:
		o.value, err = p.value()
	}
	o.text = shown(p.text[o.start:p.pos])
	return o, err
}

// An operatorUse is an operator as it stands in the text. It keeps its spelling, since errors
// quote the spelling.
type operatorUse struct {
	name     string // of the positive operator, empty if there is none
	negative bool
	start    int
	text     string
}

// operator reads an operator if there is one.
func (p *filterParser) operator() (operatorUse, error) {
	use := operatorUse{start: p.skip()}
	word := p.word()
	// Symbols need no blanks around them: $.a==1.
	if use.text = symbol(word); use.text != "" {
		return p.symbolic(use)
	}
	// not before an operator negates the test: $.a not in [1].
	if word == "not" {
		p.pos += len(word)
		use.negative, word = true, p.word()
	}
	if word == "matches" || reserved[word] && operators[word] != nil {
		p.pos += len(word)
		use.name, use.text = word, word
		return use, nil
	}
	if use.negative {
		return use, p.fail(p.pos, "after not comes in, contains, starts_with, ends_with or matches, not %s; "+
			"otherwise not stands before the test, as in not $.name == 1", p.next())
	}
	return use, nil
}

// symbol returns the characters of operators at the beginning of a text.
func symbol(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, "=!<>&|~"))]
}

// logical reports whether a symbol means and, or or not in other languages.
func logical(symbol string) bool {
	return symbol == "!" || strings.HasPrefix(symbol, "&") || strings.HasPrefix(symbol, "|")
}

// mistaken are operators of other languages.
var mistaken = map[string]string{
	"=": "==", "===": "==", "!==": "!=", "<>": "!=", "=<": "<=", "=>": ">=", "=!": "!=", "=~": "matches", "~=": "matches", "~": "matches", "!~": "not matches",
}

// symbolic reads an operator that consists of symbols. != is stored as a negated ==, so that it
// is exactly the opposite, also for a payload without the member.
func (p *filterParser) symbolic(use operatorUse) (operatorUse, error) {
	switch {
	// &&, || and ! have their own message, which needs the context of the caller.
	case logical(use.text):
		return operatorUse{}, nil // the caller reports the mistake
	case use.text == "!=":
		use.name, use.negative = "==", true
	case operators[use.text] != nil:
		use.name = use.text
	// The message names the operator of this language.
	case mistaken[use.text] != "":
		return use, p.fail(use.start, "%s is no operator; write %s", use.text, mistaken[use.text])
	default:
		return use, p.fail(use.start, "%s is no operator; text that begins with such a character needs quotes", use.text)
	}
	p.pos += len(use.text)
	return use, nil
}

// unexpected returns the error for a text at which another one was expected.
func (p *filterParser) unexpected(expected string) error {
	word := p.word()
	// The most likely causes come first: an operator of another language, a word in capitals, a
	// blank in a path.
	lower := strings.ToLower(word)
	switch {
	case logical(symbol(word)):
		return p.fail(p.pos, "%s is not known here; use and, or, not", symbol(word))
	case word != lower && reserved[lower]:
		return p.fail(p.pos, "unexpected %s; the words of the language are in lower case: %s", word, lower)
	// This is the usual mistake with a blank in a path: $.items [0].
	case p.ahead() == '[':
		return p.fail(p.pos, "unexpected [; a path has blanks only inside of its brackets")
	}
	if p.ahead() == 0 {
		return p.fail(p.pos, "expected %s", expected)
	}
	// A word after a complete test is usually the rest of a text without quotes.
	if strings.HasPrefix(expected, "and") && (plainName(word) || p.ahead() == ',') {
		expected += "; text with blanks or commas needs quotes"
	}
	return p.fail(p.pos, "unexpected %s; expected %s", p.next(), expected)
}

// compare reads the right side of an operator and checks that the two sides can
// stand in its relation.
func (p *filterParser) compare(left side, op operatorUse) (condition, error) {
	if op.name == "matches" {
		return p.match(left, op)
	}
	right, err := p.side()
	if err != nil {
		return nil, err
	}
	// Two literals are a test with the same result for every payload, so it is a mistake.
	if left.path == nil && right.path == nil {
		return nil, p.onePath(left, op)
	}
	if err := p.checkSides(left, op, right); err != nil {
		return nil, err
	}
	// A literal is prepared once, here. A path is evaluated for each payload.
	if right.path == nil {
		return check{left.operand, operators[op.name](&budget{leastSteps}, []any{right.value})}, nil
	}
	return comparison{left.operand, right.operand, operators[op.name]}, nil
}

// onePath returns the error for a test that does not depend on the payload.
func (p *filterParser) onePath(left side, op operatorUse) error {
	name := "name"
	if word, ok := left.value.(string); ok && plainName(word) {
		name = word
	}
	return p.fail(left.start, "one side of %s must be a path, as in $.%s", op.text, name)
}

// match reads the pattern after matches.
func (p *filterParser) match(left side, op operatorUse) (condition, error) {
	re, err := p.pattern()
	if err != nil {
		return nil, err
	}
	if left.path == nil {
		return nil, p.onePath(left, op)
	}
	return check{left.operand, pattern{re}}, nil
}

// sideTypes are the types literals may have beside an operator; none: any. With
// others the test would always be false.
var sideTypes = map[string]struct{ left, right []string }{
	"in":          {nil, []string{"array"}},
	"contains":    {[]string{"string", "array"}, nil},
	"starts_with": {[]string{"string"}, []string{"string"}},
	"ends_with":   {[]string{"string"}, []string{"string"}},
	"<":           {[]string{"number", "string"}, []string{"number", "string"}},
}

// checkSides refuses tests that are always false, and tests that cost too much.
func (p *filterParser) checkSides(left side, op operatorUse, right side) error {
	name := op.name
	// All four orders have the same types.
	if name[0] == '<' || name[0] == '>' {
		name = "<"
	}
	if err := p.checkSide("before", left, op, sideTypes[name].left); err != nil {
		return err
	}
	if err := p.checkSide("after", right, op, sideTypes[name].right); err != nil {
		return err
	}
	// These three compare each left value with each right value. With a singular path on the
	// right there is at most one right value, so the cost stays proportional to the payload.
	searching := name == "contains" || name == "starts_with" || name == "ends_with"
	if searching && left.path != nil && right.path != nil && !right.path.path.Singular() {
		return p.fail(right.start, "after %s a path must lead to one value: names and indexes alone", op.text)
	}
	return nil
}

// typeWords are the names of the types of literals in errors.
var typeWords = map[string]string{"array": "a list", "string": "a string", "number": "a number"}

// checkSide checks one literal. Paths pass, since their types are not known before the payload
// comes.
func (p *filterParser) checkSide(where string, s side, op operatorUse, types []string) error {
	if s.path != nil || len(types) == 0 || slices.Contains(types, typeName(s.value)) {
		return nil
	}
	what := ""
	for _, t := range types {
		what += typeWords[t] + ", "
	}
	return p.fail(s.start, "%s %s comes %s or a path, not %s", where, op.text, strings.TrimSuffix(what, ", "), s.text)
}
