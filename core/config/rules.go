package config

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/eventgateway/gateway/core"
)

// Rules are the part of a configuration that decides about events: which are accepted, which
// jobs they get, and how these are delivered. They contain no secret: a program that may read
// events may read them too.
type Rules struct {
	// Text is a configuration with sources, handlers, queues, workflows and delivery.default_retry,
	// merged and expanded. It has the fields that decide about events, and of sources only type,
	// binary, schema, schedule and timezone. Filters, transforms and paths are exact. Values of headers
	// are ***, and so are the values of variables and the queries in addresses.
	Text string

	// Definitions are the hashes of the definitions of the workflows, by name; see
	// [Config.Definition].
	Definitions map[string]string
}

// ruleFields are the fields that Rules keep, by section. A field that is missing here stays
// secret.
var ruleFields = map[string][]string{
	"sources":   {"type", "binary", "schema", "schedule", "timezone"},
	"handlers":  {"source", "events", "url", "type", "method", "retry", "idempotency_key", "delay", "lines", "filter", "transform", "headers"},
	"queues":    {"source", "events", "idempotency_key", "delay", "lines", "filter", "max_attempts"},
	"workflows": {"source", "events", "timeout", "max_bytes", "params", "on_failure", "steps"},
}

// Rules returns the rules of a configuration that Load made; the zero Rules of any other.
func (c *Config) Rules() Rules {
	if c.origin == nil || c.origin.tree == nil {
		return Rules{}
	}
	root := &node{kind: mapping}
	if retry := c.origin.tree.field("delivery").child("default_retry"); retry != nil {
		delivery := &node{kind: mapping}
		delivery.put("default_retry", retry)
		root.put("delivery", delivery)
	}
	for _, section := range namedSections {
		from := c.origin.tree.field(section)
		if from == nil || from.kind != mapping {
			continue
		}
		kept := &node{kind: mapping}
		for _, f := range from.fields {
			kept.put(f.key, c.rule(section, f))
		}
		root.put(section, kept)
	}
	text, err := yaml.Marshal(root.exact())
	if err != nil {
		panic("config: " + err.Error()) // all of it was YAML before
	}
	r := Rules{Text: string(text), Definitions: map[string]string{}}
	for name := range c.Workflows {
		r.Definitions[name] = c.Definition(name).Hash
	}
	return r
}

// child is field for a node that may be nil.
func (n *node) child(key string) *node {
	if n == nil {
		return nil
	}
	return n.field(key)
}

// rule returns an entry of a section with the fields of ruleFields.
func (c *Config) rule(section string, from entry) *node {
	kept := &node{kind: mapping}
	for _, f := range from.value.fields {
		switch {
		case !slices.Contains(ruleFields[section], f.key):
		case f.key == "schema":
			// The file may name a file of the machine. The text is the schema itself.
			if text := c.Sources[from.key].Schema.Text; text != "" {
				kept.put(f.key, &node{kind: scalar, text: text})
			}
		default:
			kept.put(f.key, f.value.unsecret(f.key))
		}
	}
	return kept
}

// unsecret returns the value of a field without secrets. Steps have fields of the same names,
// at any depth.
func (n *node) unsecret(key string) *node {
	switch {
	case n.kind == scalar && key == "url":
		return &node{kind: scalar, text: hideAddress(n)}
	case n.kind == mapping:
		kept := &node{kind: mapping}
		for _, f := range n.fields {
			switch {
			case key == "headers" && !f.value.null():
				kept.put(f.key, &node{kind: scalar, text: mask})
			default:
				kept.put(f.key, f.value.unsecret(f.key))
			}
		}
		return kept
	case n.kind == list:
		kept := &node{kind: list}
		for _, item := range n.items {
			kept.items = append(kept.items, item.unsecret(key))
		}
		return kept
	}
	return n
}

// hideAddress returns an address without the parts that may be secret: values of variables, and the
// query. An address has no user.
func hideAddress(n *node) string {
	text := n.text
	if n.raw != "" {
		text = strings.ReplaceAll(n.own, variableMark, mask)
	}
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		text = text[:i+1] + mask
	}
	return text
}

// exact returns n as the YAML library writes it, with variables expanded, so that parse and
// decode read the same values without expanding anything.
func (n *node) exact() *yaml.Node {
	switch n.kind {
	case mapping:
		y := &yaml.Node{Kind: yaml.MappingNode}
		for _, f := range n.fields {
			y.Content = append(y.Content, text(f.key, nameForm().MatchString(f.key)), f.value.exact())
		}
		return y
	case list:
		y := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range n.items {
			y.Content = append(y.Content, item.exact())
		}
		return y
	}
	// Quotes around a variable do not make its value a text; see quoted. But a value such as null
	// is no null.
	return text(n.text, n.null() || !n.quoted() && !(&node{text: n.text, plain: true}).null())
}

// ParseRules reads Rules, which another process may have made. The result is a Config for
// services that decide about events, and for nothing else: its addresses and headers are not whole.
// The error is Problems.
func ParseRules(rules Rules) (*Config, error) {
	const file = "rules"
	r := &report{}
	tree := parse(file, []byte(rules.Text), r)
	if r.fatal {
		return nil, r.sorted()
	}
	c := decode(tree, decoder{report: r, origin: &origin{root: position{file: file}, marks: map[string]mark{}}})
	k := checker{Config: c, report: r, sourceNames: names(c.Sources), hidden: true}
	for h := range edited(c.Handlers) {
		path := join("handlers", h.Name)
		k.subscription(path, h.Source, h.Events)
		k.filter(path+".filter", &h.Filter)
		k.transform(path+".transform", &h.Transform)
		k.singularPath(path+".idempotency_key", &h.IdempotencyKey)
		k.lines(path+".lines", &h.Lines)
	}
	k.queues()
	k.workflows()
	if len(r.problems) > 0 {
		return nil, r.sorted()
	}
	c.origin.definitions = map[string]*core.Definition{}
	for name := range c.Workflows {
		c.origin.definitions[name] = &core.Definition{Hash: rules.Definitions[name]}
	}
	return c, nil
}
