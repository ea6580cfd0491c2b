package config

import (
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/core/once"
)

// A brokenText is a text in quotes that contains the same quote: YAML ends the text there, and
// cannot read the rest. It is the usual mistake with filters, whose values are in quotes
// themselves.
type brokenText struct {
	line  int
	key   string // the key of the text; empty in a list
	quote byte
}

// String describes the fault and the correct spelling, without the text: it may be a secret.
func (b brokenText) String() string {
	of, names, written := "a text", "single", `'$.total == "10"'`
	if b.key != "" {
		of = "the text of " + b.key
	}
	if b.quote == '\'' {
		names, written = "double", `"$.total == '10'"`
	}
	return fmt.Sprintf("the %c inside of %s ends that text; put %s quotes around it: filter: %s", b.quote, of, names, written)
}

// brokenTextFrom finds the first broken text at or after a line of a file that is not YAML. The
// library names the line where the mapping or list of the text begins.
func brokenTextFrom(data []byte, line int) (brokenText, bool) {
	block := -1 // the indentation of the line that begins a block of text, in which quotes have no meaning
	for i, text := range strings.Split(string(data), "\n") {
		indent := len(text) - len(strings.TrimLeft(text, " "))
		if block >= 0 && (indent > block || strings.TrimSpace(text) == "") {
			continue
		}
		block = -1
		if blockText().MatchString(text) {
			block = indent
		}
		if found, ok := brokenTextIn(text); ok && i+1 >= line {
			found.line = i + 1
			return found, true
		}
	}
	return brokenText{}, false
}

var (
	// blockText matches a line that begins a block of text with | or >.
	blockText = once.Regexp(`(^|[\s:-])[|>][-+0-9]*\s*(#.*)?$`)
	// keyBefore finds the key of the text that begins at the end of a line.
	keyBefore = once.Regexp(`([A-Za-z0-9_.-]+)\s*:\s+$`)
)

// brokenTextIn finds a broken text in a line.
func brokenTextIn(line string) (brokenText, bool) {
	last := byte(':') // the newest character that is no blank; at the start of a line a text may begin
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == ' ' || c == '\t':
			continue
		case c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t'):
			return brokenText{}, false // a comment
		case c != '"' && c != '\'' || !strings.ContainsRune(":-,[{", rune(last)):
			last = c
			continue // of a text without quotes
		}
		// The text ends at its closing quote. Only a comma, a bracket, a colon or a comment may
		// follow.
		end := closing(line, i)
		if end < 0 {
			return brokenText{}, false // it ends on a later line
		}
		rest := strings.TrimLeft(line[end+1:], " \t\r")
		if rest != "" && !strings.ContainsRune(",]}:#", rune(rest[0])) {
			b := brokenText{quote: c}
			if m := keyBefore().FindStringSubmatch(line[:i]); m != nil {
				b.key = m[1]
			}
			return b, true
		}
		last, i = c, end
	}
	return brokenText{}, false
}

// closing is where the text ends that the quote at start opens; -1 if that is not on the line.
func closing(line string, start int) int {
	quote := line[start]
	for i := start + 1; i < len(line); i++ {
		switch {
		case line[i] == '\\' && quote == '"':
			i++
		case line[i] != quote:
		case quote == '\'' && strings.HasPrefix(line[i+1:], "'"):
			i++ // '' is a quote in the text
		default:
			return i
		}
	}
	return -1
}
