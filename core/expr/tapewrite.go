package expr

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// appendNode appends the same text as appendCompact for the tree of a node.
func (d *Document) appendNode(b []byte, i, limit int) []byte {
	if d.tape[i].kind() >= isArray {
		const usual = 8 // bytes of text for a node
		// The steps are spent for the whole value before the first byte is written.
		nodes := d.tape[i].end() - i
		d.steps += nodes
		if !d.budget.spend(nodes) {
			return b
		}
		b = slices.Grow(b, min(usual*nodes, len(d.text), max(0, limit-len(b))))
	}
	return d.appendCompact(b, i, limit)
}

// appendCompact copies numbers and plain strings from the text as they are, and decodes other
// strings to escape them in the one canonical way.
func (d *Document) appendCompact(b []byte, i, limit int) []byte {
	switch n := d.tape[i]; n.kind() {
	case isArray:
		return d.appendElements(b, i, limit)
	case isObject:
		return d.appendMembers(b, i, limit)
	case isNumber:
		return appendSpan(b, d.text, n.start(), n.end(), limit)
	// With its quotes, which are next to its text.
	case isString:
		return appendSpan(b, d.text, n.start()-1, n.end()+1, limit)
	default:
		return appendCompact(b, d.scalar(n), limit)
	}
}

// appendElements checks the limit after each element.
func (d *Document) appendElements(b []byte, array, limit int) []byte {
	b = append(b, '[')
	end := d.tape[array].end()
	for i := array + 1; i < end; i = d.after(i) {
		if i > array+1 {
			b = append(b, ',')
		}
		if b = d.appendCompact(b, i, limit); len(b) > limit {
			return b
		}
	}
	return append(b, ']')
}

// A label is the name of a member without escapes.
type label struct {
	node   int
	prefix uint64 // its first eight bytes, as a number that is in the order of texts
}

// label reads the first eight bytes of a name at once. Shorter names are filled with zeros, so
// they come before longer ones with the same beginning.
func (d *Document) label(i int) label {
	n := d.tape[i]
	start, length := n.start(), n.end()-n.start()
	if start+8 > len(d.text) { // at the end of the text
		var first [8]byte
		copy(first[:], d.raw(n))
		return label{i, binary.BigEndian.Uint64(first[:])}
	}
	// The bytes after the name are shifted out. No name has a byte 0.
	beyond := 8 * max(0, 8-length)
	return label{i, binary.BigEndian.Uint64(d.text[start:]) >> beyond << beyond}
}

// order compares labels. Of two equal names, the first in the text is less.
func (d *Document) order(a, b label) int {
	if a.prefix != b.prefix {
		return cmp.Compare(a.prefix, b.prefix)
	}
	return cmp.Or(bytes.Compare(d.raw(d.tape[a.node]), d.raw(d.tape[b.node])), a.node-b.node)
}

// appendMembers appends an object, in the order of its names. If a name has escapes, it
// uses the tree, which has the decoded names.
func (d *Document) appendMembers(b []byte, object, limit int) []byte {
	var few [16]label
	// Values are not needed for sorting, so the labels only have the nodes of the names.
	labels, end := few[:0], d.tape[object].end()
	for i := object + 1; i < end; i = d.after(i + 1) {
		if d.tape[i].kind() != isString {
			tree, _ := d.tree(object)
			return appendCompact(b, tree, limit)
		}
		labels = append(labels, d.label(i))
	}
	// Equal names are side by side after this, in the order of the text.
	d.sort(labels)
	b = append(b, '{')
	for i, l := range labels {
		if i+1 < len(labels) && l.prefix == labels[i+1].prefix && bytes.Equal(d.raw(d.tape[l.node]), d.raw(d.tape[labels[i+1].node])) {
			continue // the last one counts
		}
		n, v := d.tape[l.node], d.tape[l.node+1]
		b = appendSpan(b, d.text, n.start()-1, n.end()+1, limit)
		b = append(b, ':')
		// The most common value is copied without another call.
		if v.kind() == isString {
			b = appendSpan(b, d.text, v.start()-1, v.end()+1, limit)
		} else {
			b = d.appendCompact(b, l.node+1, limit)
		}
		if b = append(b, ','); len(b) > limit {
			return b
		}
	}
	// The comma after the last member goes.
	if len(labels) > 0 {
		b = b[:len(b)-1]
	}
	return append(b, '}')
}

// sort sorts a few labels in place by insertion, which needs no calls. Most objects have few
// members.
func (d *Document) sort(labels []label) {
	if len(labels) > 16 {
		slices.SortFunc(labels, d.order)
		return
	}
	for i := 1; i < len(labels); i++ {
		l, k := labels[i], i
		for ; k > 0 && (l.prefix < labels[k-1].prefix || l.prefix == labels[k-1].prefix && d.order(l, labels[k-1]) < 0); k-- {
			labels[k] = labels[k-1]
		}
		labels[k] = l
	}
}

// appendSpan appends a part of a text. Names and values are usually short. If there is
// room, sixteen bytes are copied for any short length: the compiler knows that number, so
// the copy needs no call.
func appendSpan(b, text []byte, start, end, limit int) []byte {
	const short = 16
	// The bytes after the end are overwritten by the next append.
	if n := len(b); end-start <= short && n+short <= cap(b) && start+short <= len(text) {
		*(*[short]byte)(b[n : n+short]) = [short]byte(text[start:])
		return b[:n+end-start]
	}
	return append(b, upTo(limit, len(b), text[start:end])...)
}
