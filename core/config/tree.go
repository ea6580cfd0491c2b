package config

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/eventgateway/gateway/core/once"
)

// A position is a place in a file; line and column count from 1.
type position struct {
	file         string
	line, column int
}

// A kind is one of the three shapes of a node. The library's other shapes, aliases and merge
// keys, are resolved by then.
type kind int

const (
	scalar kind = iota
	mapping
	list
)

// A node is a piece of a YAML file that knows its position, also after it was merged into
// another file. Aliases and merge keys are resolved. It is the one representation between YAML
// and the Go types. Merging and expansion change it in place.
type node struct {
	kind   kind
	at     position // of the key for a mapping's value, so that every field of an entry can be clicked on alike
	text   string   // scalar: the value
	raw    string   // scalar: the text in the file, if expansion changed it
	own    string   // scalar: the text with variableMark for each value of a variable, if expansion changed it
	plain  bool     // scalar: without quotes, so it may be a number, a truth value or null
	broken bool     // a problem of it was reported, so nothing more is reported about it
	fields []entry  // mapping: in the order of the file
	lookup map[string]*node
	items  []*node // list

	variables int // scalar: how many variables with a value it holds
}

// An entry is a key of a mapping and its value.
type entry struct {
	key   string
	value *node
}

// null reports whether n has no value. A variable that expands to nothing counts; a variable
// with the text "null" does not.
func (n *node) null() bool {
	if n.kind != scalar || !n.plain || n.broken {
		return false
	}
	return n.text == "" || n.raw == "" && slices.Contains([]string{"~", "null", "Null", "NULL"}, n.text)
}

// quoted reports whether quotes make n a text. Quotes around a variable do not: between braces
// YAML requires them.
func (n *node) quoted() bool { return !n.plain && n.raw == "" }

// saysNull reports whether null is written out.
func (n *node) saysNull() bool { return n.null() && n.text != "" }

// field returns the value of a key, or nil.
func (n *node) field(key string) *node { return n.lookup[key] }

// put adds a key that n does not have.
func (n *node) put(key string, value *node) {
	if n.lookup == nil {
		n.lookup = map[string]*node{}
	}
	n.lookup[key] = value
	n.fields = append(n.fields, entry{key, value})
}

// shape names the kind of n for a message.
func (n *node) shape() string {
	switch {
	case n.kind == mapping:
		return "a mapping"
	case n.kind == list:
		return "a list"
	case n.null():
		return "nothing"
	}
	return "text"
}

// shown describes n where a scalar belongs. It hides the value of a variable, which may be a
// secret in the wrong place.
func (n *node) shown() string {
	switch {
	case n.kind != scalar || n.null():
		return n.shape()
	case n.raw != "":
		return "what " + quote(n.raw) + " expands to"
	}
	return quote(n.text)
}

// join extends a path by a key. Odd keys are quoted, so that a problem stays one line.
func join(path, key string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if key == "" || len(key) > maxWord || strings.ContainsFunc(key, odd) {
		key = quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// index extends a path by the index of a list item.
func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// parse reads the one document of a configuration, which is a mapping. An empty file is an
// empty mapping. After a problem the tree is incomplete.
func parse(file string, data []byte, r *report) *node {
	root := parseAny(file, data, r)
	if root.kind == mapping {
		return root
	}
	if !root.null() {
		r.stop(file, 1, "must be a mapping with sections such as sources and handlers, not %s", root.shape())
	}
	return &node{kind: mapping, at: root.at}
}

// parseAny reads the one document of a file.
func parseAny(file string, data []byte, r *report) *node {
	top := position{file, 1, 1}
	empty := &node{at: top, plain: true}
	if bytes.Count(data, []byte("%TAG")) > maxDirectives {
		r.stop(file, 0, "has more than %d %%TAG directives; a configuration needs none", maxDirectives)
		return empty
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return empty
	} else if err != nil {
		syntaxProblem(file, data, err, r)
		return empty
	}
	// A second document would be ignored in silence.
	if err := decoder.Decode(&second); err == nil {
		r.stop(file, second.Line, "a second document starts here; a configuration is one document")
	} else if !errors.Is(err, io.EOF) {
		syntaxProblem(file, data, err, r)
	}
	b := builder{file: file, report: r, open: map[*yaml.Node]bool{}}
	return b.node(document.Content[0], top, "")
}

var (
	// yamlLine finds the line in a message of the library.
	yamlLine = once.Regexp(`line ([0-9]+): `)
	// parserErrors are the texts for which the library counts lines from 0; for its scanner's
	// it counts from 1.
	parserErrors = once.Regexp(`did not find expected (<|node content|'-' indicator|key|',' or)`)
	// unknownAnchor matches an error whose name may be a secret that begins with * and lacks
	// its quotes, so the name is hidden.
	unknownAnchor = once.Regexp(`^unknown anchor '(.*)' referenced$`)
)

// placeless are the errors without a line. For other errors without a line, the fault is in the
// first line.
var placeless = once.Regexp(`^(control characters|invalid|incomplete|unexpected|unknown anchor)`)

// onlyLine returns the line that contains a text, or 0 if no line or several lines do.
func onlyLine(data []byte, text string) int {
	before, after, found := bytes.Cut(data, []byte(text))
	if !found || bytes.Contains(after, []byte(text)) {
		return 0
	}
	return 1 + bytes.Count(before, []byte("\n"))
}

// syntaxProblem reports an error of the YAML library, with its line, and without the library's
// name.
func syntaxProblem(file string, data []byte, err error, r *report) {
	// The library's line numbers are corrected before the text is replaced.
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	// The message has a line, or concerns the first line, or the whole file.
	switch m := yamlLine().FindStringSubmatch(text); {
	case m != nil:
		line, _ = strconv.Atoi(m[1])
		text = strings.Replace(text, m[0], "", 1)
		if parserErrors().MatchString(text) {
			line++
		}
	case placeless().MatchString(text):
		line = 0
	}
	// The library's messages name the symptom. The usual causes are replaced by their remedy.
	if tab := tabbed(data, line); tab > 0 && strings.HasPrefix(text, "found ") {
		line, text = tab, "indent with spaces, not tabs"
	} else if strings.Contains(text, "cannot start any token") {
		text += "; text that starts with @ ` or % needs quotes"
	} else if m := unknownAnchor().FindStringSubmatch(text); m != nil {
		line, text = onlyLine(data, "*"+m[1]), "an alias refers to no anchor; text that starts with * needs quotes"
	} else if strings.HasPrefix(text, "did not find expected") {
		if broken, found := brokenTextFrom(data, line); found {
			line, text = broken.line, broken.String()
		}
	}
	r.stop(file, line, "is not YAML: %s", strings.ReplaceAll(text, "\n", " "))
}

// removable returns how to remove a mapping of a section, or "" if it cannot be removed.
func removable(path string) string {
	if path == "" {
		return ""
	}
	return "; null removes it"
}

// tabbed returns the given line or the next one if a tab indents it, else 0. The library names
// the line before the tab if the value began there.
func tabbed(data []byte, line int) int {
	all := strings.Split(string(data), "\n")
	for i := max(line, 1); i <= min(line+1, len(all)); i++ {
		if blanks := all[i-1][:len(all[i-1])-len(strings.TrimLeft(all[i-1], " \t"))]; strings.Contains(blanks, "\t") {
			return i
		}
	}
	return 0
}

// maxDirectives bounds a file's %TAG directives: the library compares each one with all before
// it.
const maxDirectives = 100

// maxNodes bounds a file's nodes with aliases written out: a few lines of aliases can stand for
// billions.
const maxNodes = 100_000

// A builder converts the library's nodes.
type builder struct {
	file   string
	report *report
	nodes  int
	open   map[*yaml.Node]bool // anchors being written out, to detect an anchor that contains itself
}

// position returns the place of a node of the library.
func (b *builder) position(y *yaml.Node) position { return position{b.file, y.Line, y.Column} }

// node converts y, which stands at the given place and path.
func (b *builder) node(y *yaml.Node, at position, path string) *node {
	n := &node{at: at}
	// The bound is reported once. The rest of the tree stays empty.
	if b.nodes++; b.nodes > maxNodes {
		if b.nodes == maxNodes+1 {
			b.report.stop(b.file, 0, "is too large: a configuration has at most %d values, aliases counted each time", maxNodes)
		}
		return n
	}
	if y.Kind != yaml.AliasNode && y.Style&yaml.TaggedStyle != 0 && !knownTag(y.Tag) {
		b.report.add(at, path, "the tag %s is not allowed here; write the plain value", quote(y.Tag))
		n.broken = true
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		return b.alias(y, at, path)
	case yaml.MappingNode:
		n.kind = mapping
		b.fields(n, y, path)
	case yaml.SequenceNode:
		n.kind = list
		for i, item := range y.Content {
			n.items = append(n.items, b.node(item, b.position(item), index(path, i)))
		}
	default:
		n.text = y.Value
		n.plain = y.Style&^yaml.TaggedStyle == 0 && (y.Style == 0 || y.Tag != "!!str")
	}
	return n
}

// knownTag reports whether a tag is one of YAML's own. Other tags would ask for a type that a
// configuration does not have.
func knownTag(tag string) bool {
	return slices.Contains([]string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq"}, tag)
}

// alias converts the anchor of an alias again for each alias, so that each copy can be merged
// and expanded by itself.
func (b *builder) alias(y *yaml.Node, at position, path string) *node {
	if b.open[y.Alias] {
		b.report.add(at, path, "the anchor %s contains itself", quote(y.Value))
		return &node{at: at, broken: true}
	}
	b.open[y.Alias] = true
	defer delete(b.open, y.Alias)
	return b.node(y.Alias, at, path)
}

// fields reads the keys of a mapping. A key may appear once. Keys that are written out take
// precedence over those of a merge key (<<).
func (b *builder) fields(n *node, y *yaml.Node, path string) {
	var merged []*node
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		at := b.position(key)
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			b.report.add(at, path, "a key must be a name")
			continue
		}
		if key.Tag == "!!merge" {
			merged = append(merged, b.node(value, at, path))
			continue
		}
		here := join(path, key.Value)
		// YAML's parser accepts repeated keys. The last one would win in silence.
		if first := n.field(key.Value); first != nil {
			b.report.add(at, here, "is given twice; the first is on line %d", first.at.line)
			continue
		}
		n.put(key.Value, b.node(value, at, here))
	}
	// The keys of the mapping itself come first, wherever << stands.
	for _, m := range merged {
		b.inherit(n, m, path)
	}
}

// inherit adds the fields of a merge key's mapping, or of each of its mappings, where n has
// none.
func (b *builder) inherit(n, from *node, path string) {
	switch from.kind {
	case list:
		for _, item := range from.items {
			b.inherit(n, item, path)
		}
	case mapping:
		for _, f := range from.fields {
			if n.field(f.key) == nil {
				n.put(f.key, f.value)
			}
		}
	default:
		b.report.add(from.at, path, "<< takes a mapping, such as an alias of one")
	}
}

// remove takes a key away.
func (n *node) remove(key string) {
	delete(n.lookup, key)
	n.fields = slices.DeleteFunc(n.fields, func(f entry) bool { return f.key == key })
}

// keys returns the keys of a mapping.
func (n *node) keys() (all []string) {
	for _, f := range n.fields {
		all = append(all, f.key)
	}
	return all
}

// merge lays an overlay over a tree: mappings merge key by key, everything else replaces. A
// null that is written out removes a mapping, such as a handler, but no section, which would
// remove all of its tokens. An empty value cannot replace a mapping: otherwise a mapping whose
// lines are all commented out would erase the base file's mapping.
func merge(base, over *node, path string, r *report) {
	for _, f := range over.fields {
		here := join(path, f.key)
		old := base.field(f.key)
		switch {
		// A null for an unknown name is probably a typing error.
		case old == nil && f.value.saysNull() && slices.Contains(namedSections, path):
			r.add(f.value.at, here, "is null, which removes an entry, but %s has none of this name%s", path, r.suggest(f.key, "it has", base.keys()))
		case old == nil:
			base.put(f.key, f.value)
		case old.kind == mapping && f.value.kind == mapping:
			merge(old, f.value, here, r)
		case old.kind == mapping && f.value.saysNull() && path != "":
			base.remove(f.key)
		case old.kind == mapping && f.value.null():
			r.add(f.value.at, here, "is empty and would erase the value from %s, line %d; remove this line, or give it fields%s", old.at.file, old.at.line, removable(path))
		default:
			*old = *f.value
		}
	}
}
