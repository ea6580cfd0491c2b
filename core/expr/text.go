package expr

import (
	"encoding/json"
	"strings"
)

// ParseText parses a text with holes, of at most 64 KiB, such as "order {{ $.id }} is sold
// out". Its expressions are as in [ParseTemplate] within a JSON string. The template
// renders a JSON string. An error names the line and column of the text, and the mistake.
func ParseText(text string) (*Template, error) {
	if err := checkText("text", text, maxTemplate); err != nil {
		return nil, err
	}
	p := templateParser{scanner: scanner{text: text, stops: wordStops + "?|", quoted: true}}
	for p.pos < len(text) {
		n := strings.Index(text[p.pos:], "{{")
		if n < 0 {
			break
		}
		// Everything between two holes is text. It is escaped below, so that it may contain
		// quotes.
		p.pos += n
		if err := p.hole(); err != nil {
			return nil, err
		}
	}
	p.literal(len(text))
	for i := range p.parts {
		if part := &p.parts[i]; part.hole == nil {
			// The text may have quotes and line ends of its own.
			quoted, err := json.Marshal(part.text)
			if err != nil {
				return nil, err
			}
			part.text = string(quoted[1 : len(quoted)-1])
		}
	}
	return &Template{quotedParts(p.parts)}, nil
}

// quotedParts are parts in a JSON string.
func quotedParts(parts []part) []part {
	quote := part{text: `"`}
	return append(append([]part{quote}, parts...), quote)
}
