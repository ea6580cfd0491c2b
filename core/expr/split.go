package expr

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Errors of texts that cannot be split.
var (
	ErrNotTree = errors.New("the text is not one JSON array or object of the expected kind")
	ErrNotPart = errors.New("what stands for the next element or member is not JSON")
)

// Elements calls a function with each element of a JSON array, in order and with its spelling. It ends at the
// first error of the function, and returns it. It returns [ErrNotPart] where an element is not JSON, and
// [ErrNotTree] if the text is not one array with blanks around it. It has called the function for all elements
// before that place. An element is a part of the text, and no copy.
//
// It accepts what encoding/json accepts. With decoders of encoding/json, which read each value twice, batches of
// CloudEvents took 1.5 times the CPU on SQLite, storing them included.
func Elements(text []byte, each func(element []byte) error) error {
	s := splitter{recorder: recorder{text: text, skips: true}}
	return s.split('[', ']', func(i int) (int, error) {
		value, end, err := s.part(i)
		if err != nil {
			return end, err
		}
		return end, each(value)
	})
}

// Members calls a function with each member of a JSON object, as [Elements] does for an array. A name is
// decoded, and may come more than once.
func Members(text []byte, each func(name string, value []byte) error) error {
	s := splitter{recorder: recorder{text: text, skips: true}}
	return s.split('{', '}', func(i int) (int, error) {
		name, i, err := s.name(i)
		if err != nil {
			return i, err
		}
		value, end, err := s.part(i)
		if err != nil {
			return end, err
		}
		return end, each(name, value)
	})
}

// A splitter finds the parts of an array or object.
type splitter struct{ recorder }

// split reads the text of an array or object. one reads a part at a position, and returns the position after it.
func (s *splitter) split(open, shut byte, one func(i int) (end int, err error)) error {
	c, i := s.after(0)
	if c != open {
		return ErrNotTree
	}
	c, i = s.after(i + 1)
	for first := true; c != shut; first = false {
		switch {
		case c == 0 && i == len(s.text):
			return ErrNotTree // it is cut short
		case !first && c != ',':
			return ErrNotPart
		case !first:
			i++
		}
		var err error
		if i, err = one(i); err != nil {
			return err
		}
		c, i = s.after(i)
	}
	if _, i = s.after(i + 1); i < len(s.text) {
		return ErrNotTree // more text would be lost
	}
	return nil
}

// name reads the name of a member and its colon.
func (s *splitter) name(i int) (name string, end int, err error) {
	c, i := s.after(i)
	if c != '"' {
		return "", i, ErrNotPart
	}
	end = s.string(i + 1)
	if end == failed {
		return "", i, ErrNotPart
	}
	quoted := s.text[i+1 : end-1]
	if c, i = s.after(end); c != ':' {
		return "", i, ErrNotPart
	}
	return string(appendText(nil, quoted)), i + 1, nil
}

// part reads a value after the blanks before it.
func (s *splitter) part(i int) (value []byte, end int, err error) {
	_, i = s.after(i)
	if end = s.value(i); end != failed {
		return s.text[i:end], end, nil
	}
	// It may be nested deeper than the recorder reads. A decoder takes no stack for that.
	s.depth = 0
	d := json.NewDecoder(bytes.NewReader(s.text[i:]))
	var raw json.RawMessage
	if d.Decode(&raw) != nil {
		return nil, i, ErrNotPart
	}
	return raw, i + int(d.InputOffset()), nil
}
