package expr

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// A templateParser reads one template: it reads the JSON only for its quotes, and parses the
// holes. It collects the parts in the order of the text.
type templateParser struct {
	scanner // its quoted says that a JSON string is open
	parts   []part
	done    int // the text before this byte is in parts
}

// parse goes through the text once. It only tracks whether a JSON string is open; check finds
// out whether the text is JSON.
func (p *templateParser) parse() error {
	hole := -1 // where the last hole of the open string begins
	for p.pos < len(p.text) {
		start := p.pos
		switch c := p.text[start]; {
		case strings.HasPrefix(p.text[start:], "{{"):
			if err := p.hole(); err != nil {
				return err
			}
			hole = start
		// An escaped quote does not end the string.
		case c == '\\':
			p.pos = min(start+2, len(p.text))
		case c == '"':
			p.quoted = !p.quoted
			p.pos++
		default:
			p.pos++
		}
		if p.quoted || hole < 0 {
			continue
		}
		if err := p.checkName(hole); err != nil {
			return err
		}
		hole = -1
	}
	p.literal(len(p.text))
	return nil
}

// checkName refuses a hole whose value is followed by a colon.
func (p *templateParser) checkName(hole int) error {
	if strings.HasPrefix(strings.TrimLeft(p.text[p.pos:], blanks), ":") {
		return p.fail(hole, "member names are fixed; a hole stands in a value")
	}
	return nil
}

// literal makes a part of the text up to a byte.
func (p *templateParser) literal(end int) {
	// Two holes side by side have no text between them.
	if end > p.done {
		p.parts = append(p.parts, part{text: p.text[p.done:end], start: p.done})
	}
}

// hole reads a hole, whose braces are next.
func (p *templateParser) hole() error {
	start := p.pos
	p.literal(start)
	p.pos += len("{{")
	var choices []choice
	// The alternatives are tried in this order when the template is rendered.
	for len(choices) == 0 || p.take("??") {
		c, err := p.choice()
		if err != nil {
			return err
		}
		choices = append(choices, c)
	}
	if !p.take("}}") {
		return p.fail(p.pos, "the hole that begins at %s is not closed: expected }}, ?? or |, not %s", place(p.text, start), p.next())
	}
	p.parts = append(p.parts, part{start: start, hole: choices, quoted: p.quoted, place: place(p.text, start)})
	p.done = p.pos
	return nil
}

// choice reads an alternative: a path or a literal, and its functions.
func (p *templateParser) choice() (c choice, err error) {
	if p.ahead() == '$' {
		c.operand.path, err = p.reference()
	} else {
		c.operand.value, err = p.value()
	}
	for err == nil && p.take("|") {
		var f function
		f, err = p.function()
		c.functions = append(c.functions, f)
	}
	return c, err
}

// function reads the name of a function, and the argument of join.
func (p *templateParser) function() (function, error) {
	const join = "join"
	start, name := p.skip(), p.word()
	p.pos += len(name)
	switch f, ok := known[name]; {
	case ok:
		return f, nil
	case name == join:
		return p.join(start)
	// || is how other languages write a default.
	case name == "" && p.ahead() == '|':
		return nil, p.fail(start-1, "|| is not known here; a default is written after ??")
	case name == "":
		return nil, p.fail(start, "after | comes a function: string, number, json or join(', '), not %s", p.next())
	}
	return nil, p.fail(start, "unknown function %s; there are string, number, json and join(', ')", shown(name))
}

// join reads the separator of the function join. start is the position of its name, for errors.
func (p *templateParser) join(start int) (function, error) {
	if !p.take("(") || p.ahead() != '"' && p.ahead() != '\'' {
		return nil, p.fail(start, "join needs a separator: join(', ')")
	}
	separator, err := p.quotedText()
	if err != nil {
		return nil, err
	}
	if !p.take(")") {
		return nil, p.fail(p.pos, "expected ) after the separator, not %s", p.next())
	}
	return joiner(separator), nil
}

// filler stands in a hole when the template is checked. In a string it cannot continue an
// escape.
func (p part) filler() string {
	switch {
	case p.hole == nil:
		return p.text
	case p.quoted:
		return "_"
	}
	return "null"
}

// check refuses templates that are not JSON when their holes are filled.
func (p *templateParser) check() error {
	// A hole in a value is filled with null, and a hole in a string with _. If that is
	// JSON, every result is.
	var filled strings.Builder
	for _, part := range p.parts {
		filled.WriteString(part.filler())
	}
	// An empty text would be reported as JSON that ends too early.
	if strings.Trim(filled.String(), blanks) == "" {
		return p.fail(0, `a template is empty; it is JSON with holes, as in {"id": {{ $.id }}}`)
	}
	if TooDeep([]byte(filled.String())) {
		return p.fail(0, "the template is nested deeper than %d levels", maxDepth)
	}
	var v json.RawMessage
	err := json.Unmarshal([]byte(filled.String()), &v)
	var why *json.SyntaxError
	if !errors.As(err, &why) {
		return err
	}
	return p.notJSON(why)
}

// notJSON converts an error of the JSON parser to a place in the template.
func (p *templateParser) notJSON(why *json.SyntaxError) error {
	// The more specific explanations come first.
	const problem = "the template is not JSON: "
	// The parser counted bytes of the filled text, and the author needs the place in the
	// template.
	place, hole := p.unfill(int(why.Offset) - 1)
	switch {
	case why.Error() == "unexpected end of JSON input":
		return p.fail(len(p.text), problem+"it ends too early; a quote, a bracket or a value is missing")
	// A backslash before a hole would change the first letter of its value.
	case hole && p.inString(place):
		return p.fail(place, problem+"an escape cannot go on in a hole")
	case hole:
		return p.fail(place, problem+"a hole cannot stand here; is a comma or a colon missing before it?")
	case place < len(p.text) && strings.IndexByte(blanks+`{}[],:"`, p.text[place]) < 0:
		return p.fail(place, problem+"%v; text and names belong in double quotes", why)
	}
	return p.fail(place, problem+"%v", why)
}

// inString reports whether the hole at a place is in a JSON string.
func (p *templateParser) inString(place int) bool {
	return slices.ContainsFunc(p.parts, func(part part) bool { return part.start == place && part.quoted })
}

// unfill finds the place in the template of a byte of its filled text, and whether
// that is in a hole.
func (p *templateParser) unfill(offset int) (place int, hole bool) {
	for _, part := range p.parts {
		length := len(part.filler())
		switch {
		// The byte is in a later part.
		case offset >= length:
			offset -= length
		case part.hole != nil:
			return part.start, true
		default:
			return part.start + max(0, offset), false
		}
	}
	return len(p.text), false
}
