package config

import (
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core/expr"
)

// data checks how a step transforms its data.
func (k *checker) data(path string, s Step) {
	k.mapping(path+".input", s.Input)
	k.mapping(path+".output", s.Output)
	k.resultPath(path+".result_path", s.ResultPath)
	k.singularReference(path+".items_path", s.ItemsPath)
	k.singularReference(path+".timestamp_path", s.TimestampPath)
}

// singularReference checks a JSONPath that must lead to one value, of the state or of $$.
func (k *checker) singularReference(path, text string) {
	if text != "" {
		p, err := expr.ParseReference(text)
		k.oneValue(path, err == nil && p.Singular(), err)
	}
}

// mapping checks a JSONPath or template. A text with a hole is a template.
func (k *checker) mapping(path, text string) {
	if strings.Contains(text, "{{") {
		k.transform(path, text)
		return
	}
	if text == "" {
		return
	}
	const must = `must be a JSONPath such as $.order, or a template such as {"id": {{ $.id }}}`
	_, err := expr.ParseReference(text)
	switch {
	case err != nil && k.origin.marks[path].expanded:
		k.problem(path, must)
	case err != nil:
		k.problem(path, must+"; %v", err)
	}
}

// resultPath checks the place for a step's result.
func (k *checker) resultPath(path, text string) {
	if text == "" || text == "null" {
		return
	}
	const must = "must be a JSONPath to one place, as in $.stock or $.parts[0], or $ to replace the state, or null to drop the result"
	p, err := expr.ParsePath(text)
	switch {
	case err == nil && !p.Singular():
		k.problem(path, must)
	case err == nil && slices.ContainsFunc(p.Steps(), fromEnd):
		k.problem(path, must+"; an index counts from the start here")
	case err != nil && k.origin.marks[path].expanded:
		k.problem(path, must)
	case err != nil:
		k.problem(path, must+"; %v", err)
	}
}

// fromEnd reports whether a step of a path is an index that counts from the end of its array.
func fromEnd(step any) bool {
	i, isIndex := step.(int)
	return isIndex && i < 0
}
