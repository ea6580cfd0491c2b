package expr

import (
	"encoding/json"
	"strings"
)

// A function changes a value that is not nil, into nil if nothing comes of it. The one error is
// [ErrTooLarge].
type function func(v any) (any, error)

// known are the functions without an argument; join has one.
var known = map[string]function{
	"string": toString,
	"number": toNumber,
	"json":   toJSON,
}

// huge reports whether the JSON of a value is so large that nothing can come of
// it. It is asked before that is built.
func huge(v any) bool { return within(v, maxResult+len(`""`)) < 0 }

// plain is the text of a value.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return string(v)
	}
	return string(appendCompact(nil, v))
}

func toString(v any) (any, error) {
	if huge(v) {
		return nil, ErrTooLarge
	}
	return plain(v), nil
}

func toJSON(v any) (any, error) {
	if huge(v) {
		return nil, ErrTooLarge
	}
	return string(appendCompact(nil, v)), nil
}

func toNumber(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		return v, nil
	case string:
		if text := strings.TrimSpace(v); jsonNumber.MatchString(text) {
			return json.Number(text), nil
		}
	}
	return nil, nil
}

// joiner returns the function join with its argument.
func joiner(separator string) function {
	return func(v any) (any, error) {
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		var text []byte
		for i, item := range list {
			if huge(item) || len(text) > maxResult {
				return nil, ErrTooLarge
			}
			if i > 0 {
				text = append(text, separator...)
			}
			text = append(text, plain(item)...)
		}
		return string(text), nil
	}
}
