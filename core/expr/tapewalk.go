package expr

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// patience is how many times the length of a tape may be walked before the tree is built.
// In the tree a member is found at once. So any number of paths costs at most a few
// readings.
const patience = 8

// One returns the value that a singular path leads to in the payload, if it leads to one. It
// needs no tree for a string, a number, true, false or null. For a path that is not singular
// it finds no value.
func (d *Document) One(p *Path) (any, bool) {
	if !p.singular {
		return nil, false
	}
	d.begin()
	v, ok := d.one(p)
	return grown(v), ok
}

// Select returns all values that a path selects in the payload. Values of an array come in
// its order, values of an object in the order of their names. With ".." a node comes before
// its descendants. A value that several selectors pick comes several times. The errors
// are [ErrBudget] and those of [Document.Err].
func (d *Document) Select(p *Path) ([]any, error) {
	d.begin()
	all := p.all(&d.budget, d.Value())
	return all, d.settle()
}

// one is One, except that an array or object may be a *branch.
func (d *Document) one(p *Path) (any, bool) {
	if !p.singular || !d.onTape() {
		return p.one(&d.budget, d.Value())
	}
	d.budget.spend(len(p.segments))
	i := d.find(p)
	if i < 0 {
		return nil, false
	}
	return d.at(i), true
}

// onTape reports whether singular paths are to be followed on the tape.
func (d *Document) onTape() bool {
	d.view()
	return !d.decoded && d.steps <= patience*len(d.tape)
}

// find follows a singular path on the tape. It returns -1 if the path selects no value.
func (d *Document) find(p *Path) int {
	i := 0
	for k := range p.segments {
		if s := &p.segments[k].selectors[0]; s.kind == byName {
			i = d.member(i, s.name)
		} else {
			i = d.element(i, s.index)
		}
		if i < 0 {
			return -1
		}
	}
	return i
}

// member returns the node of a member's value, the last one of that name; -1: there
// is none.
func (d *Document) member(object int, name string) int {
	// It goes through all members, since the last one of a name counts.
	found, n := -1, d.tape[object]
	if n.kind() != isObject {
		return -1
	}
	// These steps only decide when the tree is built. They do not belong to the budget.
	d.steps += n.count()
	for i := object + 1; i < n.end(); i = d.after(i + 1) {
		if d.named(d.tape[i], name) {
			found = i + 1
		}
	}
	return found
}

// named reports whether a node has a name. It decodes the name only if it has escapes or
// letters beyond ASCII.
func (d *Document) named(n node, name string) bool {
	raw := d.raw(n)
	// Such a name is its own text.
	if n.kind() == isString {
		return string(raw) == name
	}
	if len(raw) > len(name)*len(`\uXXXX`) {
		return false // in any spelling
	}
	// The decoded name needs no allocation if it is short.
	var short [64]byte
	return string(appendText(short[:0], raw)) == name
}

// element returns the node of an element, counted from the end if i < 0; -1: there
// is none.
func (d *Document) element(array, i int) int {
	n := d.tape[array]
	if n.kind() != isArray {
		return -1
	}
	if i < 0 {
		i += n.count()
	}
	if i < 0 || i >= n.count() {
		return -1
	}
	d.steps += i
	// Elements have different lengths on the tape, so it walks over those before.
	at := array + 1
	for range i {
		at = d.after(at)
	}
	return at
}

// after returns the node after a value and all its parts.
func (d *Document) after(i int) int {
	if n := d.tape[i]; n.kind() >= isArray {
		return n.end()
	}
	return i + 1
}

// raw returns the spelling of a number, or the text between the quotes of a string.
func (d *Document) raw(n node) []byte { return d.text[n.start():n.end()] }

// An answer is the value of a node. Filters of several consumers often ask for the same member.
type answer struct {
	node  int
	value any
}

// maxKnown bounds the remembered answers, since each look-up compares all of them.
const maxKnown = 16

// at returns the value of a node. It usually returns the same value each time, so that
// repeated tests allocate nothing.
func (d *Document) at(i int) any {
	n := d.tape[i]
	// null, false and true need no memory.
	if n.kind() < isNumber {
		return d.scalar(n)
	}
	// A short list is searched faster than a map.
	for _, a := range d.known {
		if a.node == i {
			return a.value
		}
	}
	var v any
	if n.kind() >= isArray {
		v = &branch{document: d, node: i}
	} else {
		v = d.scalar(n)
		d.steps += (n.end() - n.start()) / 8 // copying is faster than walking
	}
	if len(d.known) < maxKnown {
		d.known = append(d.known, answer{i, v})
	}
	return v
}

// scalar returns the value of a node that is no array or object.
func (d *Document) scalar(n node) any {
	switch n.kind() {
	case isFalse:
		return false
	case isTrue:
		return true
	case isNumber:
		return json.Number(d.raw(n))
	case isString, isCoded:
		return d.string(n)
	}
	return nil
}

// string returns the text of a string node. It copies the text, so that a value does not keep
// the whole payload in memory.
func (d *Document) string(n node) string {
	raw := d.raw(n)
	if n.kind() == isString || bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw)
	}
	return string(appendText(make([]byte, 0, len(raw)), raw))
}

// tree builds the value of a node, and returns the node after it.
func (d *Document) tree(i int) (v any, next int) {
	n := d.tape[i]
	next = i + 1
	switch n.kind() {
	case isArray:
		list := make([]any, n.count())
		for k := range list {
			list[k], next = d.tree(next)
		}
		return list, next
	case isObject:
		object := make(map[string]any, n.count())
		for range n.count() {
			// A later member of the same name replaces the earlier one.
			name := d.string(d.tape[next])
			object[name], next = d.tree(next + 1)
		}
		return object, next
	}
	return d.scalar(n), next
}

// A branch is an array or object that is still on the tape. A singular path returns it in place
// of the tree: most criteria need no more, and templates can copy its text. All other code gets
// the result of grown. Its document must not change while it is used.
type branch struct {
	document *Document
	node     int
	value    any
}

// tree returns the array or object itself.
func (b *branch) tree() any {
	if b.value == nil {
		d := b.document
		d.steps += d.tape[b.node].end() - b.node
		b.value, _ = d.tree(b.node)
	}
	return b.value
}

// grown returns a value with the tree in place of a branch.
func grown(v any) any {
	if b, ok := v.(*branch); ok {
		return b.tree()
	}
	return v
}
