package config

import (
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core/expr"
)

// data checks how a step transforms its data.
func (k *checker) data(path string, s *Step) {
	k.mapping(path+".input", &s.Input)
	k.mapping(path+".output", &s.Output)
	k.resultPath(path+".result_path", &s.ResultPath)
	k.singularReference(path+".items_path", &s.ItemsPath)
	k.singularReference(path+".timestamp_path", &s.TimestampPath)
}

// singularReference checks a JSONPath that must lead to one value, of the state or of $$.
func (k *checker) singularReference(path string, p *Parsed[*expr.Reference]) {
	if err := keep(p, expr.ParseReference); p.Text != "" {
		k.oneValue(path, err == nil && p.Value.Singular(), err)
	}
}

// mapping checks a JSONPath or template. A text with a hole is a template. The two have
// different messages, since a path with a typing error looks nothing like a template.
func (k *checker) mapping(path string, m *Parsed[*Mapping]) {
	if strings.Contains(m.Text, "{{") {
		k.expression(path, keep(m, func(text string) (*Mapping, error) {
			t, err := expr.ParseTemplate(text)
			return &Mapping{Template: t}, err
		}))
		return
	}
	const must = `must be a JSONPath such as $.order, or a template such as {"id": {{ $.id }}}`
	err := keep(m, func(text string) (*Mapping, error) {
		p, err := expr.ParseReference(text)
		return &Mapping{Path: p}, err
	})
	switch {
	case err != nil && k.origin.marks[path].expanded:
		k.problem(path, must)
	case err != nil:
		k.problem(path, must+"; %v", err)
	}
}

// resultPath checks the place for a step's result. The text null, which drops the result, has
// no path.
func (k *checker) resultPath(path string, p *Parsed[*expr.Path]) {
	if p.Text == "" || p.Text == "null" {
		return
	}
	// The result is written to this place, so the path must lead to exactly one.
	const must = "must be a JSONPath to one place, as in $.stock or $.parts[0], or $ to replace the state, or null to drop the result"
	err := keep(p, expr.ParsePath)
	switch {
	case err == nil && !p.Value.Singular():
		k.problem(path, must)
	case err == nil && slices.ContainsFunc(p.Value.Steps(), fromEnd):
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
