package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/order"
)

// maxDefinition bounds a definition, in bytes. A definition is one value of one row in the
// store. Aliases are written out in it, so without a bound a small file could make it very
// large.
const maxDefinition = 1 << 20

// Definition returns the definition that new runs of a workflow follow, also after the
// configuration changes. It is a small configuration of its own: the workflow as it was
// written, merged with its overlay, and delivery.default_retry, from which the workflow takes
// missing values. Variables stay unexpanded, so the definition contains no secret that the
// files do not contain. The order of a workflow's fields does not change its definition. The
// definition is zero if there is no such workflow, or if the configuration was not made by
// Load.
func (c *Config) Definition(workflow string) core.Definition {
	if c.origin == nil {
		return core.Definition{}
	}
	if d := c.origin.definitions[workflow]; d != nil {
		return *d
	}
	return core.Definition{}
}

// ParseDefinition reads a result of Definition and expands its variables by lookup. The error
// is Problems, as for Load. It concerns variables only: everything else was valid when the
// definition was made.
func ParseDefinition(d core.Definition, lookup func(string) (string, bool)) (Workflow, error) {
	const file = "definition"
	r := &report{}
	tree := parse(file, []byte(d.Body), r)
	if r.fatal {
		return Workflow{}, r.sorted()
	}
	// Variables are expanded now, so a run follows the secrets of today, and the definition of
	// its day.
	env := environment{lookup: lookup, used: map[string]bool{}}
	env.expand(tree, "", r)
	c := decode(tree, decoder{report: r, origin: &origin{root: position{file: file}, marks: map[string]mark{}}})
	k := checker{Config: c, report: r}
	all := c.SortedWorkflows()
	// Load makes the same checks, so a definition is as strict as a file.
	for _, w := range all {
		k.workflow(w)
	}
	if len(all) != 1 && len(r.problems) == 0 {
		r.add(position{file: file}, "workflows", "must hold one workflow, not %d", len(all))
	}
	if len(r.problems) > 0 {
		return Workflow{}, r.sorted()
	}
	w := all[0]
	w.Earlier = tree.field("workflows").field(w.Name).field(maxBytes) == nil
	return w, nil
}

// definitions makes the definition of every workflow of a tree, by name.
func definitions(tree *node, r *report) map[string]*core.Definition {
	workflows := tree.field("workflows")
	if workflows == nil {
		return nil
	}
	all := map[string]*core.Definition{}
	for _, f := range workflows.fields {
		text := define(tree, f)
		if len(text) > maxDefinition {
			r.add(f.value.at, join("workflows", f.key), "is larger than 1 MiB with its aliases written out")
			continue
		}
		// The hash names the definition in the store, so that equal definitions are stored
		// once.
		sum := sha256.Sum256(text)
		all[f.key] = &core.Definition{Hash: hex.EncodeToString(sum[:]), Body: string(text)}
	}
	return all
}

// define writes one definition. If the definition is too large, the result may be cut, but is
// still too large to pass.
func define(tree *node, workflow entry) []byte {
	// The definition has the form of a configuration, so the same pipeline reads it.
	root, workflows := &node{kind: mapping}, &node{kind: mapping}
	if delivery := tree.field("delivery"); delivery != nil {
		if retry := delivery.field("default_retry"); retry != nil {
			kept := &node{kind: mapping}
			kept.put("default_retry", retry)
			root.put("delivery", kept)
		}
	}
	root.put("workflows", workflows)
	workflows.put(workflow.key, bounded(workflow.value))
	// Writing would take memory for every alias, so the size is estimated first.
	if size := root.size(); size > maxDefinition {
		return make([]byte, size)
	}
	text, err := yaml.Marshal(root.written())
	if err != nil {
		panic("config: " + err.Error()) // all of it was YAML before
	}
	return text
}

// maxBytes is a field that every definition has: see Workflow.Earlier.
const maxBytes = "max_bytes"

// bounded returns a workflow with the field maxBytes.
func bounded(workflow *node) *node {
	if workflow.kind != mapping || workflow.field(maxBytes) != nil {
		return workflow
	}
	// The tree of the configuration is shared, so the workflow is copied before it gets another
	// field.
	n := &node{kind: mapping}
	for _, f := range workflow.fields {
		n.put(f.key, f.value)
	}
	n.put(maxBytes, &node{kind: scalar, text: strconv.Itoa(maxRunBytes), plain: true})
	return n
}

// size returns about how many bytes n takes when it is written, and never more.
func (n *node) size() int {
	size := len(n.source())
	for _, f := range n.fields {
		size += len(f.key) + f.value.size()
	}
	for _, item := range n.items {
		size += item.size()
	}
	return size
}

// source returns a scalar as the file has it.
func (n *node) source() string { return cmp.Or(n.raw, n.text) }

// written returns n as the YAML library writes it, with sorted fields and unexpanded variables.
// Quoted texts keep their quotes, and no other scalar gets quotes, which would make it text.
func (n *node) written() *yaml.Node {
	switch n.kind {
	case mapping:
		y := &yaml.Node{Kind: yaml.MappingNode}
		fields := slices.Clone(n.fields)
		order.Sort(fields, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
		for _, f := range fields {
			y.Content = append(y.Content, text(f.key, nameForm().MatchString(f.key)), f.value.written())
		}
		return y
	case list:
		y := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range n.items {
			y.Content = append(y.Content, item.written())
		}
		return y
	}
	return text(n.source(), n.plain)
}

// text returns a scalar. Quotes keep a text from becoming a number or null when it is read
// again.
func text(s string, plain bool) *yaml.Node {
	y := &yaml.Node{Kind: yaml.ScalarNode, Value: s}
	if !plain {
		y.Style = yaml.DoubleQuotedStyle
	}
	return y
}
