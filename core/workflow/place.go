package workflow

import (
	"fmt"
	"maps"
	"slices"

	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/expr"
)

// A placement says where a step's result goes in its state: a result_path. config has checked
// that the path is singular and has no index from the end.
type placement struct {
	drop  bool  // the result is dropped
	steps []any // names (string) and indexes (int) from the root; empty: the result replaces the state
}

// placementOf returns the placement of a result_path of a [config.Step].
func placementOf(p config.Parsed[*expr.Path]) placement {
	switch {
	case p.Text == "null":
		return placement{drop: true}
	// No result_path: the result replaces the state.
	case p.Value == nil:
		return placement{}
	}
	return placement{steps: p.Value.Steps()}
}

// put returns a copy of tree with value at a place. It makes missing or null objects and
// arrays on the way there. The tree itself does not change.
func put(tree any, steps []any, value any) (any, error) {
	return putAt("$", tree, steps, value)
}

// path is the place so far, for errors. Only the objects and arrays on the way are copied.
func putAt(path string, tree any, steps []any, value any) (any, error) {
	if len(steps) == 0 {
		return value, nil
	}
	if i, ok := steps[0].(int); ok {
		return putElement(path, tree, i, steps[1:], value)
	}
	// Missing objects are made. A value of another type is not replaced: that would lose data.
	name := steps[0].(string)
	object, ok := tree.(map[string]any)
	if !ok && tree != nil {
		return nil, fmt.Errorf("%s is no object, so the result cannot be put into it", path)
	}
	child, err := putAt(path+"."+name, object[name], steps[1:], value)
	if err != nil {
		return nil, err
	}
	// Other steps may still read the old tree.
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
	// An index right behind the last element appends.
	if i == len(array) {
		array = append(array, nil)
	}
	child, err := putAt(fmt.Sprintf("%s[%d]", path, i), array[i], steps, value)
	array[i] = child
	return array, err
}
