package expr

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// The characters that end a word and a path. Inside of brackets a path may contain any
// character.
const (
	blanks    = " \t\r\n"
	wordStops = blanks + `"'()[]{},`
	pathStops = blanks + `"'()]{},=!<>&|?`
)

// maxLevels bounds how deep an expression is nested.
const maxLevels = 50

// A scanner reads the common parts of filters and templates: paths and values. The parsers of
// filters and templates embed it. It reads from left to right and never goes back more than one
// word, so parsing takes linear time.
type scanner struct {
	text   string
	pos    int // in bytes
	levels int

	// stops are the characters that end a word. words says that a word is a string, unless
	// it is a number, true, false or null.
	stops string
	words bool

	// quoted forbids double quotes: the text is inside of a JSON string.
	quoted bool
}

// fail returns an error at a byte of the text.
func (s *scanner) fail(offset int, format string, args ...any) error {
	return at(s.text, offset, format, args...)
}

// skip skips blanks and returns the position after them.
func (s *scanner) skip() int {
	rest := s.text[s.pos:]
	s.pos += len(rest) - len(strings.TrimLeft(rest, blanks))
	return s.pos
}

// ahead returns the next character after blanks, 0 at the end.
func (s *scanner) ahead() byte {
	if s.skip() == len(s.text) {
		return 0
	}
	return s.text[s.pos]
}

// take reads a symbol if it is next.
func (s *scanner) take(symbol string) bool {
	found := strings.HasPrefix(s.text[s.skip():], symbol)
	if found {
		s.pos += len(symbol)
	}
	return found
}

// word returns the next word without reading it; it is empty where none begins.
func (s *scanner) word() string {
	rest := s.text[s.skip():]
	if i := strings.IndexAny(rest, s.stops); i >= 0 {
		return rest[:i]
	}
	return rest
}

// keyword reads the given word, and reports false if another text is next.
func (s *scanner) keyword(word string) bool {
	found := s.word() == word
	if found {
		s.pos += len(word)
	}
	return found
}

// next describes the next text for an error.
func (s *scanner) next() string {
	if s.ahead() == 0 {
		return "the end"
	}
	if word := s.word(); word != "" {
		return shown(word)
	}
	// A whole character is shown, and not its first byte.
	_, size := utf8.DecodeRuneInString(s.text[s.pos:])
	return s.text[s.pos : s.pos+size]
}

// deeper goes one level down; the caller goes up again itself.
func (s *scanner) deeper(start int) error {
	if s.levels++; s.levels > maxLevels {
		return s.fail(start, "nested deeper than %d levels; use fewer brackets and nots", maxLevels)
	}
	return nil
}

// reference reads a path, which is next. It cuts the path out by its brackets and quotes first,
// and parses it then. So a mistake in a path is explained by the path's own parser.
func (s *scanner) reference() (*reference, error) {
	start := s.skip()
	end, err := s.pathEnd(start)
	if err != nil {
		return nil, err
	}
	text := s.text[start:end]
	s.pos = end
	// The error concerns the third $, which would otherwise be reported as a strange path.
	if strings.HasPrefix(text, "$$$") {
		return nil, s.fail(start, "path %s: "+beginnings, shown(text))
	}
	// The path itself is parsed with one dollar.
	doubled := strings.HasPrefix(text, "$$")
	if doubled {
		start++
	}
	path, err := ParsePath(s.text[start:end])
	if err != nil {
		return nil, s.pathFault(start, text, err)
	}
	return &reference{path, doubled}, nil
}

// pathFault puts an error about a path in its place.
func (s *scanner) pathFault(start int, path string, err error) error {
	var f *fault
	if errors.As(err, &f) {
		return s.fail(start+f.offset, "path %s: %s", shown(path), f.message)
	}
	return s.fail(start, "%v", err)
}

// pathEnd finds the end of the path that begins at a byte. Brackets nest, and may contain any
// character, also one that ends a path outside of them.
func (s *scanner) pathEnd(start int) (int, error) {
	var open []int
	for i := start; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '[':
			open = append(open, i)
		case len(open) == 0 && strings.IndexByte(pathStops, c) >= 0:
			return i, nil
		// A bracket is open here, since ] outside of brackets ends the path.
		case c == ']':
			open = open[:len(open)-1]
		// This quote ends the JSON string around the hole.
		case c == '"' && s.quoted:
			return 0, s.fail(i, "path %s: close its bracket; inside of a JSON string, names have single quotes: ['name']", shown(s.text[start:i]))
		case c == '"' || c == '\'':
			i += quotedLength(s.text[i:]) - 1
		}
	}
	if len(open) > 0 {
		return 0, s.fail(open[0], `path %s: the bracket is not closed; write "]"`, shown(s.text[start:]))
	}
	return len(s.text), nil
}

// quotedLength returns the length of the quoted name at the beginning of a text. In the
// name a backslash escapes the next character.
func quotedLength(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i + 1
		}
	}
	return len(text)
}

// quotedText reads a string, whose first quote is next. In double quotes it is a JSON
// string. In single quotes it is any text up to the next single quote.
func (s *scanner) quotedText() (string, error) {
	start := s.pos
	rest := s.text[start:]
	if rest[0] == '"' {
		return s.jsonText(start, rest)
	}
	length := strings.IndexByte(rest[1:], '\'')
	if length < 0 {
		return "", s.fail(start, "the string is not closed; write ' at its end")
	}
	s.pos += length + 2
	return rest[1 : length+1], nil
}

// jsonText reads a string in double quotes. Its end is found before it is decoded, so that an
// error can say whether the end or an escape is wrong.
func (s *scanner) jsonText(start int, rest string) (string, error) {
	if s.quoted {
		return "", s.fail(start, "inside of a JSON string, write strings in single quotes: 'text'")
	}
	length := quotedLength(rest)
	if length < 2 || rest[length-1] != '"' || trailingBackslashes(rest[:length-1])%2 == 1 {
		return "", s.fail(start, `the string is not closed; write " at its end`)
	}
	var text string
	// The end is right, so an escape in the text is wrong.
	if json.Unmarshal([]byte(rest[:length]), &text) != nil {
		return "", s.fail(start, `not a JSON string; write \\ for a backslash and \n for a new line, or use single quotes, where nothing is escaped`)
	}
	s.pos += length
	return text, nil
}

// trailingBackslashes counts the backslashes at the end of a text. An odd number escapes the
// quote after them.
func trailingBackslashes(text string) int { return len(text) - len(strings.TrimRight(text, `\`)) }

// isNumberText reports whether a text is a number of JSON (RFC 8259). It uses the reader of
// payloads, so that an expression accepts the same numbers as a payload.
func isNumberText(text string) bool {
	r := recorder{text: []byte(text)}
	return r.number(0) == len(text)
}

// reserved are the words that are never strings without quotes.
var reserved = map[string]bool{
	"and": true, "or": true, "not": true, "exists": true, "in": true, "contains": true,
	"starts_with": true, "ends_with": true, "matches": true,
}

// value reads a literal, which is next.
func (s *scanner) value() (any, error) {
	switch start := s.skip(); s.ahead() {
	case '"', '\'':
		return s.quotedText()
	case '[':
		return s.list(start)
	}
	return s.bare()
}

// bare reads a literal without quotes.
func (s *scanner) bare() (any, error) {
	start, word := s.skip(), s.word()
	s.pos += len(word)
	switch {
	case word == "true" || word == "false":
		return word == "true", nil
	case word == "null":
		return nil, nil
	// The spelling is kept, as for numbers of payloads.
	case isNumberText(word):
		return json.Number(word), nil
	case s.words && reserved[word]:
		return nil, s.fail(start, `%s is a word of the language; as text it needs quotes: "%s"`, word, word)
	// Otherwise $.a==1&&$.b==2 would compare $.a with the word 1&&$.b==2.
	case s.words && (strings.Contains(word, "&&") || strings.Contains(word, "||")):
		return nil, s.fail(start, "use and, or, not, with blanks around them; text with && or || in it needs quotes")
	case s.words && word != "":
		return word, nil
	}
	// Nothing was read, so the error points at the beginning.
	s.pos = start
	if word != "" {
		return nil, s.fail(start, "expected a path or a value, not %s; a path begins with $, as in $.id, and text needs quotes", shown(word))
	}
	return nil, s.fail(start, "expected a path or a value, not %s", s.next())
}

// list reads a list, whose bracket is next.
func (s *scanner) list(start int) (any, error) {
	if err := s.deeper(start); err != nil {
		return nil, err
	}
	s.pos++
	// An empty list is permitted: no value is in it.
	items := []any{}
	for !s.take("]") {
		if len(items) > 0 && !s.take(",") {
			return nil, s.fail(s.pos, "expected a comma or ] in the list, not %s", s.next())
		}
		// A list is prepared once, so it cannot contain values of the payload.
		if s.ahead() == '$' {
			return nil, s.fail(s.pos, "a list has values, no paths")
		}
		item, err := s.value()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	s.levels--
	return items, nil
}
