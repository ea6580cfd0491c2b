package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/core/expr"
)

// A placement says where a step's result goes in its state: a result_path.
type placement struct {
	drop  bool  // the result is dropped
	steps []any // names (string) and indexes (int) from the root; empty: the result replaces the state
}

// parsePlacement reads a result_path of a [config.Step].
func parsePlacement(text string) (placement, error) {
	switch text {
	case "", "$":
		return placement{}, nil
	case "null":
		return placement{drop: true}, nil
	}
	p, err := expr.ParsePath(text)
	if err != nil {
		return placement{}, err
	}
	if !p.Singular() {
		return placement{}, errors.New("it must be a path to one place")
	}
	return placement{steps: pathSteps(text)}, nil
}

// pathSteps returns the names and indexes of a path. The path must be singular and valid.
func pathSteps(text string) (steps []any) {
	text = text[1:]
	for {
		text = strings.TrimLeft(text, " \t\r\n")
		switch {
		case text == "":
			return steps
		case text[0] == '.':
			end := 1 + strings.IndexAny(text[1:]+".", ".[ \t\r\n")
			steps, text = append(steps, text[1:end]), text[end:]
		default:
			var inside string
			inside, text = bracket(text)
			steps = append(steps, selector(inside))
		}
	}
}

// bracket cuts the brackets at the start of a text. It returns their content and the rest.
func bracket(text string) (inside, after string) {
	var quote byte
	for i := 1; ; i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case c == quote:
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'':
			quote = c
		case c == ']':
			return strings.Trim(text[1:i], " \t\r\n"), text[i+1:]
		}
	}
}

// selector returns the index or name in brackets.
func selector(text string) any {
	if text[0] != '\'' && text[0] != '"' {
		i, err := strconv.Atoi(text)
		if err != nil {
			return -1 // an index that no array has
		}
		return i
	}
	if text[0] == '\'' {
		text = strings.NewReplacer(`\'`, `'`, `\\`, `\\`, `"`, `\"`).Replace(text[1 : len(text)-1])
		text = `"` + text + `"`
	}
	var name string
	_ = json.Unmarshal([]byte(text), &name)
	return name
}

// put returns a copy of tree with value at a place. It makes missing or null objects and
// arrays on the way there. The tree itself does not change.
func put(tree any, steps []any, value any) (any, error) {
	return putAt("$", tree, steps, value)
}

func putAt(path string, tree any, steps []any, value any) (any, error) {
	if len(steps) == 0 {
		return value, nil
	}
	if i, ok := steps[0].(int); ok {
		return putElement(path, tree, i, steps[1:], value)
	}
	name := steps[0].(string)
	object, ok := tree.(map[string]any)
	if !ok && tree != nil {
		return nil, fmt.Errorf("%s is no object, so the result cannot be put into it", path)
	}
	child, err := putAt(path+"."+name, object[name], steps[1:], value)
	if err != nil {
		return nil, err
	}
	object = maps.Clone(object)
	if object == nil {
		object = map[string]any{}
	}
	object[name] = child
	return object, nil
}

// putElement puts a value into an array: into an element, or after the last one.
func putElement(path string, tree any, i int, steps []any, value any) (any, error) {
	array, ok := tree.([]any)
	if !ok && tree != nil {
		return nil, fmt.Errorf("%s is no array, so the result cannot be put into it", path)
	}
	if i < 0 || i > len(array) {
		return nil, fmt.Errorf("%s has %d elements, so the result cannot be put at index %d", path, len(array), i)
	}
	array = slices.Clone(array)
	if i == len(array) {
		array = append(array, nil)
	}
	child, err := putAt(fmt.Sprintf("%s[%d]", path, i), array[i], steps, value)
	array[i] = child
	return array, err
}
