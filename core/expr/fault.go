package expr

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A fault is a mistake at one place of an expression's text. The parsers nest: a path may stand
// in a filter, which moves the offset of the path's fault to its place in the filter.
type fault struct {
	text    string
	offset  int // in bytes
	message string
}

// at returns an error at a byte of a text.
func at(text string, offset int, format string, args ...any) error {
	return &fault{text, min(offset, len(text)), fmt.Sprintf(format, args...)}
}

// A fault is one line, because config prints one line for each problem.
func (f *fault) Error() string { return "at " + place(f.text, f.offset) + ": " + f.message }

// place names a byte by its column, counted in characters from 1. If the text has several
// lines it names the line too.
func place(text string, offset int) string {
	before := text[:offset]
	start := strings.LastIndexByte(before, '\n') + 1
	column := utf8.RuneCountInString(before[start:]) + 1
	// Most expressions are one line, and then the line says nothing.
	if !strings.Contains(text, "\n") {
		return fmt.Sprintf("column %d", column)
	}
	return fmt.Sprintf("line %d, column %d", strings.Count(before, "\n")+1, column)
}

// maxShown bounds the quoted part of an expression in an error, in characters.
const maxShown = 60

// shown returns a part of an expression for an error: on one line, and short.
func shown(text string) string {
	line := strings.Map(func(r rune) rune {
		// A terminal would interpret control characters.
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if runes := []rune(line); len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return line
}

// checkText refuses texts that are too long, or that contain NUL characters or invalid UTF-8.
// The parsers call it first, so they need not expect such texts.
func checkText(what, text string, limit int) error {
	switch {
	case len(text) > limit:
		return fmt.Errorf("a %s has at most %d bytes, not %d", what, limit, len(text))
	case !utf8.ValidString(text) || strings.Contains(text, "\x00"):
		return fmt.Errorf("a %s must be valid UTF-8, without NUL characters", what)
	}
	return nil
}
