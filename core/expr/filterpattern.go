package expr

import (
	"errors"
	"regexp/syntax"
	"strings"
)

// maxRegexp bounds the pattern of a filter, in bytes.
const maxRegexp = 1024

// pattern reads the pattern after matches, and compiles it. A pattern in double quotes is a
// JSON string, so each backslash is written twice. A pattern in single quotes is taken as it
// is.
func (p *filterParser) pattern() (*program, error) {
	const expected = `after matches comes a quoted regular expression, as in '^order\.'`
	start := p.skip()
	var text string
	switch first := p.ahead(); first {
	case 0, '$':
		return nil, p.fail(start, "%s, not %s", expected, p.next())
	case '"', '\'':
		var err error
		if text, err = p.quotedText(); err != nil {
			return nil, err
		}
	// Without quotes, the pattern ends at a blank. It may have brackets and commas.
	default:
		text = p.text[start:]
		if i := strings.IndexAny(text, blanks); i >= 0 {
			text = text[:i]
		}
		p.pos += len(text)
	}
	return p.compile(start, text)
}

// compile compiles a pattern. The remedy of the error depends on the quotes, since a pattern
// without quotes is often cut at a blank.
func (p *filterParser) compile(start int, text string) (*program, error) {
	if len(text) > maxRegexp {
		return nil, p.fail(start, "a pattern has at most %d bytes, not %d", maxRegexp, len(text))
	}
	program, err := newProgram(text)
	var why *syntax.Error
	if !errors.As(err, &why) {
		return program, err
	}
	// Authors often bring patterns with lookaheads from other languages.
	remedy := "patterns are RE2, without lookaround and references"
	if c := p.text[start]; c != '"' && c != '\'' {
		remedy = "a pattern without quotes runs to the next blank; put it in single quotes"
	}
	return nil, p.fail(start, "not a pattern: %s: %s; %s", why.Code, shown(why.Expr), remedy)
}
