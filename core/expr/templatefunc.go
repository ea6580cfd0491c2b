package expr

import (
	"encoding/json"
	"strings"
)

// A function changes a value that is not nil. It returns at most room bytes of text. The
// errors are [ErrTooLarge], [ErrNotNumber] and [ErrBudget].
type function func(b *budget, v any, room int) (any, error)

// known are the functions without an argument; join has one.
var known = map[string]function{
	"string": toString,
	"number": toNumber,
	"json":   toJSON,
}

// plain returns the text of a value, at most limit bytes.
func plain(v any, limit int) (string, error) {
	var text string
	switch v := v.(type) {
	// null is the empty text.
	case nil:
	case string:
		text = v
	case json.Number:
		text = string(v)
	default:
		text = string(appendCompact(nil, v, limit))
	}
	if len(text) > limit {
		return "", ErrTooLarge
	}
	return text, nil
}

// toString is the function string.
func toString(_ *budget, v any, room int) (any, error) {
	text, err := plain(v, room)
	if err != nil {
		return nil, err
	}
	return text, nil
}

// toJSON is the function json. Its text is compact and has its members in order.
func toJSON(_ *budget, v any, room int) (any, error) {
	text := appendCompact(nil, v, room)
	// appendCompact stops a little after the limit.
	if len(text) > room {
		return nil, ErrTooLarge
	}
	return string(text), nil
}

// toNumber is the function number. It keeps the spelling of the number.
func toNumber(b *budget, v any, _ int) (any, error) {
	switch v := v.(type) {
	case json.Number:
		return v, nil
	case string:
		if !b.spend(1 + span(len(v))) {
			return nil, ErrBudget
		}
		// Forms and CSV files often have blanks around a number.
		if text := strings.TrimSpace(v); isNumberText(text) {
			return json.Number(text), nil
		}
	}
	return nil, ErrNotNumber
}

// joiner returns the function join with its argument.
func joiner(separator string) function {
	return func(b *budget, v any, room int) (any, error) {
		// A value that is no array is joined like an array of one.
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		var text []byte
		for i, item := range list {
			if i > 0 {
				text = append(text, separator...)
			}
			// The room shrinks with each part, so the result never exceeds it.
			part, err := plain(item, room-len(text))
			if err != nil {
				return nil, err
			}
			if !b.spend(1) {
				return nil, ErrBudget
			}
			text = append(text, part...)
		}
		return string(text), nil
	}
}
