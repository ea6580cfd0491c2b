package expr

import (
	"regexp"
	"regexp/syntax"
	"sync/atomic"

	"github.com/theory/jsonpath/registry"
	"github.com/theory/jsonpath/spec"
)

// maxPattern bounds the patterns of match and search, which a payload may supply;
// a longer one matches nothing. In bytes.
const maxPattern = 4096

// functions returns the functions of RFC 9535 for one path. The library's match
// and search give way to ours: they panic where an argument selects nothing, and
// compile their pattern again for every value.
func functions() *registry.Registry {
	r := registry.New()
	replace(r.Get("match"), func(pattern string) string { return `\A(?:` + pattern + `)\z` })
	replace(r.Get("search"), func(pattern string) string { return pattern })
	return r
}

// replace changes how a function works but not what arguments it takes.
func replace(f *spec.FuncExtension, wrap func(string) string) {
	was, m := *f, matcher{wrap: wrap}
	*f = *spec.Extension(was.Name(), was.ReturnType(), was.Validate, m.evaluate)
}

// A matcher matches texts with patterns and remembers the last one, which is the
// only one if it is written in the path.
type matcher struct {
	wrap func(string) string
	last atomic.Pointer[compiled]
}

type compiled struct {
	pattern string
	regexp  *regexp.Regexp // nil if the pattern is none
}

func (m *matcher) evaluate(args []spec.PathValue) spec.PathValue {
	subject, isText := textOf(args[0])
	pattern, isPattern := textOf(args[1])
	if !isText || !isPattern {
		return spec.LogicalFalse
	}
	c := m.last.Load()
	if c == nil || c.pattern != pattern {
		c = &compiled{pattern, compile(pattern, m.wrap)}
		m.last.Store(c)
	}
	return spec.Logical(c.regexp != nil && c.regexp.MatchString(subject))
}

// textOf returns the string that an argument is, if it is one.
func textOf(arg spec.PathValue) (string, bool) {
	v, ok := arg.(*spec.ValueType)
	if !ok || v == nil {
		return "", false
	}
	s, ok := v.Value().(string)
	return s, ok
}

// compile returns the regular expression of a pattern (I-Regexp, RFC 9485), in
// which the dot is any character but CR and LF; nil if it is none.
func compile(pattern string, wrap func(string) string) *regexp.Regexp {
	if len(pattern) > maxPattern {
		return nil
	}
	tree, err := syntax.Parse(pattern, syntax.Perl|syntax.DotNL)
	if err != nil {
		return nil
	}
	narrowDots(tree)
	re, err := regexp.Compile(wrap(tree.String()))
	if err != nil {
		return nil
	}
	return re
}

// notLineEnd are the characters a dot stands for.
var notLineEnd = []rune{0, '\n' - 1, '\n' + 1, '\r' - 1, '\r' + 1, '\U0010FFFF'}

func narrowDots(re *syntax.Regexp) {
	if re.Op == syntax.OpAnyChar {
		re.Op, re.Rune = syntax.OpCharClass, notLineEnd
	}
	for _, sub := range re.Sub {
		narrowDots(sub)
	}
}
