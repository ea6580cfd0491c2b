package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// PrintJSON writes v to Out as one indented document. It is the only output of a command with
// --json, so that a program can parse all of standard output.
func (s *Screen) PrintJSON(v any) error {
	doc, err := encoded(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Out, "%s\n", VisibleJSON(Indented(doc)))
	return err
}

// PrintJSONLine writes v to Out as a document on one line, for output that has no end: a
// program reads it line by line.
func (s *Screen) PrintJSONLine(v any) error {
	doc, err := encoded(v)
	if err != nil {
		return err
	}
	s.Printf("%s", VisibleJSON(doc))
	return nil
}

// encoded returns v as JSON on one line. It leaves <, > and & as they are, which encoding/json
// would escape for HTML: users read this text.
func encoded(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("write as JSON: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// MaxIndent is the nesting up to which JSON is broken into lines. Indentation adds bytes in
// proportion to depth times size: 10 KiB of brackets would become 100 MB.
const MaxIndent = 64

// Indented breaks a valid document into indented lines, unless it nests deeper than MaxIndent.
func Indented(doc []byte) []byte {
	doc = bytes.TrimSpace(doc)
	var b bytes.Buffer
	if depth(doc) > MaxIndent || json.Indent(&b, doc, "", "  ") != nil {
		return doc
	}
	return b.Bytes()
}

// depth returns the nesting depth of a valid document. It scans bytes and decodes nothing: a
// payload can have many MiB.
func depth(doc []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// JSONElement returns v as text in the form in which [Screen.PrintJSON] writes it as a part of
// a larger document, at an indent.
func JSONElement(v any, indent string) (string, error) {
	text, err := encoded(v)
	if err != nil {
		return "", err
	}
	var spread bytes.Buffer
	if depth(text)+len(indent)/2 <= MaxIndent && json.Indent(&spread, text, indent, "  ") == nil {
		text = spread.Bytes()
	}
	return string(VisibleJSON(text)), nil
}

// JSONLists writes the lists that are the values of the last fields of an object, element by
// element. Together with the text before and after them, the result equals the
// output of [Screen.PrintJSON] for the whole object, but only one element is in memory at a time.
type JSONLists struct {
	out io.Writer
	n   int // elements of the present list
}

// JSONLists returns a writer of lists. The caller has written the object up to the value of
// the first list.
func (s *Screen) JSONLists() *JSONLists { return &JSONLists{out: s.Out} }

// Add writes an element of the present list.
func (l *JSONLists) Add(v any) error {
	text, err := JSONElement(v, "    ")
	if err != nil {
		return err
	}
	before := ",\n    "
	if l.n == 0 {
		before = "[\n    "
	}
	l.n++
	_, err = fmt.Fprint(l.out, before, text)
	return err
}

// Next ends the present list, and begins the list that is the value of the field name.
func (l *JSONLists) Next(name string) {
	l.end()
	fmt.Fprintf(l.out, ",\n  %q: ", name)
	l.n = 0
}

// End ends the last list and the object.
func (l *JSONLists) End() {
	l.end()
	fmt.Fprint(l.out, "\n}\n")
}

// end ends the present list; an empty list takes no line of its own, as in PrintJSON.
func (l *JSONLists) end() {
	if l.n == 0 {
		fmt.Fprint(l.out, "[]")
		return
	}
	fmt.Fprint(l.out, "\n  ]")
}
