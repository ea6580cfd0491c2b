package expr

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
)

// Bounds of templates, in bytes.
const (
	maxTemplate = 64 << 10
	maxResult   = 4 << 20
	usualResult = 64 << 10 // whose memory is kept
)

// ErrNotNumber is the error of a template whose function number got something that is no
// number.
var ErrNotNumber = errors.New("the value before | number is no number and no text of one; after ?? stands the value to use instead")

// ErrTooLarge is the error of a template whose result has more than 4 MiB.
var ErrTooLarge = errors.New("the result of the template has more than 4 MiB; select less of the payload")

// A Template makes JSON from payloads: it is JSON with holes, {{ expression }}. The value
// of an expression fills its hole. A Template never changes and is safe for concurrent use.
//
// Outside of quotes a hole is a value of any type, null if there is none. In a JSON string
// it is text: strings unchanged, numbers in their spelling, booleans, the empty text for
// null, and the JSON of arrays and objects. A path that can select several values gives the
// array of them, which may be empty.
type Template struct{ parts []part }

// ParseTemplate parses a template of at most 64 KiB. Its expressions:
//
//	expression = piped { "??" piped } ;                 the first that is neither missing nor null
//	piped      = ( path | value ) { "|" function } ;
//	function   = "string" | "number" | "json" | "join('separator')" ;
//
// Paths and values are as in [ParseFilter], without words; in a JSON string they use single
// quotes. A function leaves missing values and null unchanged. Otherwise string gives the
// text that a JSON string would have, json the JSON text, and join the texts of an array's
// elements (or of a single value) with the separator between them. number accepts numbers,
// and strings that spell a number in JSON, with or without blanks around it. For any other
// value the next alternative after ?? is used; if there is none, Render fails with
// [ErrNotNumber].
//
// The error is one line. It names the line and column, the mistake, and the text to write
// instead. The names of members cannot have holes.
func ParseTemplate(text string) (*Template, error) {
	if err := checkText("template", text, maxTemplate); err != nil {
		return nil, err
	}
	p := templateParser{scanner: scanner{text: text, stops: wordStops + "?|"}}
	if err := p.parse(); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return &Template{p.parts}, nil
}

// Render fills the holes for a payload and its context, which may be nil. The result is
// valid JSON for all payloads: Render only appends to it, and never parses an inserted
// text. The errors are [ErrBudget], [ErrNotNumber], [ErrTooLarge] and those of
// [Document.Err]. ErrTooLarge applies to the result and to every intermediate text of
// functions. It is found while the text is written.
func (t *Template) Render(d *Document, c *Context) ([]byte, error) {
	// The result is written into memory that is used again, and copied at the end in its final
	// size.
	memory := results.Get().(*[]byte)
	defer results.Put(memory)
	d.begin()
	w := renderer{scope: scope{d, c}, out: (*memory)[:0]}
	for _, p := range t.parts {
		if err := w.part(p); err != nil {
			return nil, err
		}
		if len(w.out) > maxResult {
			return nil, ErrTooLarge
		}
		if err := d.settle(); err != nil {
			return nil, err
		}
	}
	// A large result keeps its memory, and the pool keeps the small one.
	if cap(w.out) > usualResult {
		return w.out, nil
	}
	*memory = w.out
	return bytes.Clone(w.out), nil
}

// results keeps the memory of results, unless they are large, because the length of a
// result is known only at its end.
var results = sync.Pool{New: func() any { return new([]byte) }}

// A part is a piece of the template's text, or a hole.
type part struct {
	text   string
	start  int      // in the template
	hole   []choice // nil: text
	quoted bool     // in a JSON string
	place  string   // of the hole, for errors
}

// A choice is one of the alternatives of a hole.
type choice struct {
	operand   operand
	functions []function
}

// A renderer fills the holes of one template. It is made for each rendering, so a Template can
// be used by several goroutines.
type renderer struct {
	scope scope
	out   []byte
	made  int // bytes of text that functions made
}

// part appends a piece of the template's text, or the value of a hole.
func (w *renderer) part(p part) error {
	if p.hole == nil {
		w.out = append(w.out, p.text...)
		return nil
	}
	if w.copied(p) {
		return nil
	}
	v, err := w.first(p.hole)
	switch {
	case errors.Is(err, ErrNotNumber):
		return fmt.Errorf("the hole at %s: %w", p.place, err)
	case err != nil:
		return err
	// In a JSON string the value is text, whose quotes and backslashes are escaped.
	case p.quoted:
		text, err := plain(v, maxResult-len(w.out))
		if err != nil {
			return err
		}
		w.out = appendEscaped(w.out, text, maxResult)
	default:
		w.out = appendCompact(w.out, v, maxResult)
	}
	return nil
}

// copied fills a hole from the tape, if its first path leads to a value that can be copied
// from there.
func (w *renderer) copied(p part) bool {
	c, d := p.hole[0], w.scope.payload
	// Functions, literals, $$ and paths with several values need the general way.
	if c.functions != nil || c.operand.path == nil || c.operand.path.context || !c.operand.path.path.singular || !d.onTape() {
		return false
	}
	d.budget.spend(len(c.operand.path.path.segments))
	i := d.find(c.operand.path.path)
	if i < 0 || d.tape[i].kind() == isNull {
		return false
	}
	switch kind := d.tape[i].kind(); {
	case !p.quoted:
		w.out = d.appendNode(w.out, i, maxResult)
	// The spelling on the tape is right within a JSON string. Other kinds need their text
	// first.
	case kind == isNumber || kind == isString:
		w.out = append(w.out, upTo(maxResult, len(w.out), d.raw(d.tape[i]))...)
	default:
		return false
	}
	return true
}

// first returns the value of a hole, nil for null and for a missing value: no caller
// distinguishes the two. It skips an alternative that should be a number and is not, unless
// it is the last.
func (w *renderer) first(choices []choice) (v any, err error) {
	for _, c := range choices {
		v, err = w.choice(c)
		// Only a missing value, and one that should be a number, leave the decision to the next
		// alternative.
		if v != nil || err != nil && !errors.Is(err, ErrNotNumber) {
			return v, err
		}
	}
	return nil, err
}

// choice returns the value of one alternative after its functions. Missing values and null skip
// the functions.
func (w *renderer) choice(c choice) (any, error) {
	v := w.value(c.operand)
	for _, f := range c.functions {
		if v == nil {
			return nil, nil
		}
		var err error
		if v, err = f(w.scope.budget(), grown(v), maxResult-w.made); err != nil {
			return nil, err
		}
		if text, ok := v.(string); ok {
			w.made += len(text)
		}
		if w.made > maxResult {
			return nil, ErrTooLarge
		}
	}
	return v, nil
}

// value returns the value of an operand; nil if a path selects nothing.
func (w *renderer) value(o operand) any {
	switch {
	case o.path == nil:
		return o.value
	case !o.path.path.Singular():
		return o.path.all(w.scope)
	}
	v, _ := o.path.one(w.scope)
	return v
}
