package expr

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/theory/jsonpath/registry"
)

// functions are the functions of RFC 9535. The library checks their arguments; this package
// implements them.
var functions = registry.New()

// patternFunctions complete the patterns of match and search. match must cover the whole text,
// search may find the pattern anywhere. The group keeps an alternation in the pattern together.
var patternFunctions = map[string]func(string) string{
	"match":  func(pattern string) string { return `\A(?:` + pattern + `)\z` },
	"search": func(pattern string) string { return pattern },
}

// compilePattern compiles an I-Regexp (RFC 9485), in which the dot is any character but CR and
// LF. I-Regexp is a subset of RE2's syntax apart from the dot, so RE2 compiles it after the
// dots are narrowed. RE2 accepts a little more than I-Regexp, which does no harm.
func compilePattern(pattern string, wrap func(string) string) (*program, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl|syntax.DotNL)
	var why *syntax.Error
	if errors.As(err, &why) {
		return nil, fmt.Errorf("is none: %s: %s", why.Code, shown(why.Expr))
	}
	if err != nil {
		return nil, err
	}
	narrowDots(tree)
	return newProgram(wrap(tree.String()))
}

// notLineEnd are the characters that a dot matches.
var notLineEnd = []rune{0, '\n' - 1, '\n' + 1, '\r' - 1, '\r' + 1, '\U0010FFFF'}

// narrowDots replaces each dot in a parsed pattern. The tree is changed and not the text, since
// a dot in brackets or after a backslash is no dot.
func narrowDots(re *syntax.Regexp) {
	if re.Op == syntax.OpAnyChar {
		re.Op, re.Rune = syntax.OpCharClass, notLineEnd
	}
	for _, sub := range re.Sub {
		narrowDots(sub)
	}
}

// A program is a regular expression with its cost.
type program struct {
	regexp *regexp.Regexp
	size   int // of its instructions; 0 if the pattern is a plain text
}

// newProgram compiles an RE2. It parses the pattern a second time for the number of its
// instructions, which regexp does not export.
func newProgram(text string) (*program, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	p := &program{regexp: re}
	// A plain text is found by a search of the standard library, at the cost of reading the
	// text.
	if _, plain := re.LiteralPrefix(); plain {
		return p, nil
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	code, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	p.size = len(code.Inst)
	return p, nil
}

// instructionsPerStep is how many instructions of a pattern can be tried on one byte in the
// time of a step.
const instructionsPerStep = 8

// in reports whether a text contains a match of the pattern. At worst RE2 tries each
// instruction on each byte.
func (p *program) in(b *budget, text string) bool {
	return b.spend(1+span(len(text))+len(text)*p.size/instructionsPerStep) && p.regexp.MatchString(text)
}
