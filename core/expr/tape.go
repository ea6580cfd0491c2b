package expr

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
	"unicode/utf8"
)

// A kind is the type of a node.
type kind uint8

// The kinds of nodes.
const (
	isNull kind = iota
	isFalse
	isTrue
	isNumber
	isString // ASCII without escapes, so that its bytes are its text
	isCoded  // any other string
	isArray
	isObject
)

// A node is one value of a JSON text, or the name of a member, in eight bytes: a tree needs
// fifty to some hundreds. The elements or members of an array or object come right after
// it, and a name comes right before its value. So a tape has the order of the text.
type node uint64

// A node is its kind and two numbers. For a string they are its position in the text,
// between its quotes. For a number they are its position. For an array or object they are
// the number of its elements or members, and the node after its last one.
const (
	kindBits = 3
	endBits  = 29
	maxText  = 1<<endBits - 1 // bytes
)

// newNode packs a node. The numbers fit, since a text has at most maxText bytes.
func newNode(kind kind, start, end int) node {
	return node(start)<<(kindBits+endBits) | node(end)<<kindBits | node(kind)
}

func (n node) kind() kind { return kind(n & (1<<kindBits - 1)) }
func (n node) start() int { return int(n >> (kindBits + endBits)) }
func (n node) count() int { return n.start() }
func (n node) end() int   { return int(n >> kindBits & (1<<endBits - 1)) }

// A recorder reads a JSON text onto a tape. It accepts exactly the texts that encoding/json
// accepts, up to maxDepth. Its methods begin at a byte of the text and return the byte
// after the text that they read, or failed.
//
// It is not a library because it decides whether a payload is JSON. Libraries of the same speed
// differ there from encoding/json, which most readers of the payload use. They skip text that
// no path selects (gjson, jsonparser). They refuse bytes that are not UTF-8 and repeated names
// by default (jsontext). They accept raw line ends in strings (fastjson), or convert numbers to
// floats (simdjson-go).
//
// nodes is the tape so far, and depth is how many arrays and objects are open. If skips is set, there is no
// tape: a splitter needs only the ends of values.
type recorder struct {
	text  []byte
	nodes []node
	depth int
	skips bool
}

// failed is the position that the methods of a recorder return for a text that is not JSON, or
// is too deep.
const failed = -1

// usualText is the largest text, in bytes, whose tape is recorded in memory that is kept
// for the next one.
const usualText = 64 << 10

// spare keeps that memory. The length of a tape is known only at its end.
var spare = sync.Pool{New: func() any { return new([]node) }}

// record returns the tape of a text, whose first node is the value itself; nil if
// the text is not one JSON value with blanks around it, is nested too deep or has
// 512 MiB. A tape has at most four times the size of its text.
func record(text []byte) []node {
	switch {
	case len(text) > maxText:
		return nil
	case len(text) > usualText:
		return recordLarge(text)
	}
	memory := spare.Get().(*[]node)
	defer spare.Put(memory)
	// The tape grows in memory that is kept, and is copied in its final size.
	r := recorder{text: text, nodes: (*memory)[:0]}
	ok := r.all()
	*memory = r.nodes
	if !ok {
		return nil
	}
	return slices.Clone(r.nodes)
}

// recordLarge records without growing the tape, which would take several times the memory.
// Every value and name except the first comes after one of four bytes, so their count
// bounds the number of nodes.
func recordLarge(text []byte) []node {
	most := 1
	for _, before := range []string{"[", "{", ",", ":"} {
		most += bytes.Count(text, []byte(before))
	}
	r := recorder{text: text, nodes: make([]node, 0, min(most, len(text)/2+1))}
	switch {
	case !r.all():
		return nil
	// The bound was far too high, as for long strings that contain commas.
	case len(r.nodes) < cap(r.nodes)/2:
		return slices.Clone(r.nodes)
	}
	return r.nodes
}

// all reads the whole text.
func (r *recorder) all() bool {
	end := r.value(0)
	if end == failed {
		return false
	}
	// Only blanks may follow the value.
	_, end = r.after(end)
	return end == len(r.text)
}

// after returns the next byte that is not a blank and its position. It returns 0 at the
// end, and for a byte 0, which is not JSON either.
func (r *recorder) after(i int) (byte, int) {
	for ; i < len(r.text); i++ {
		if c := r.text[i]; c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c, i
		}
	}
	return 0, i
}

// value reads a value of any type, after the blanks before it.
func (r *recorder) value(i int) int {
	c, i := r.after(i)
	switch c {
	case '"':
		return r.string(i + 1)
	case '{':
		return r.object(i + 1)
	case '[':
		return r.array(i + 1)
	case 't':
		return r.word(i, "true", isTrue)
	case 'f':
		return r.word(i, "false", isFalse)
	case 'n':
		return r.word(i, "null", isNull)
	}
	return r.number(i)
}

// add appends a node to the tape.
func (r *recorder) add(n node) {
	if !r.skips {
		r.nodes = append(r.nodes, n)
	}
}

// word reads true, false or null.
func (r *recorder) word(i int, word string, kind kind) int {
	end := i + len(word)
	if end > len(r.text) || string(r.text[i:end]) != word {
		return failed
	}
	r.add(newNode(kind, 0, 0))
	return end
}

// open begins an array or object and returns its node.
func (r *recorder) open(kind kind) (int, bool) {
	r.depth++
	r.add(newNode(kind, 0, 0))
	return len(r.nodes) - 1, r.depth <= maxDepth
}

// close ends the array or object, which has count elements or members.
func (r *recorder) close(at, count int) {
	r.depth--
	if r.skips {
		return
	}
	// Only now are the count and the end known.
	r.nodes[at] = newNode(r.nodes[at].kind(), count, len(r.nodes))
}

// array reads an array, whose bracket was read.
func (r *recorder) array(i int) int {
	at, ok := r.open(isArray)
	if !ok {
		return failed
	}
	c, end := r.after(i)
	if c == ']' {
		r.close(at, 0)
		return end + 1
	}
	for count := 1; ; count++ {
		if i = r.value(i); i == failed {
			return failed
		}
		switch c, i = r.after(i); c {
		case ']':
			r.close(at, count)
			return i + 1
		case ',':
			i++
		default:
			return failed
		}
	}
}

// object reads an object, whose brace was read.
func (r *recorder) object(i int) int {
	at, ok := r.open(isObject)
	if !ok {
		return failed
	}
	c, i := r.after(i)
	if c == '}' {
		r.close(at, 0)
		return i + 1
	}
	// Each round reads a name, a colon and a value. Any other byte ends the loop and the text.
	for count := 1; c == '"'; count++ {
		if i = r.string(i + 1); i == failed {
			return failed
		}
		if c, i = r.after(i); c != ':' {
			return failed
		}
		if i = r.value(i + 1); i == failed {
			return failed
		}
		switch c, i = r.after(i); c {
		case '}':
			r.close(at, count)
			return i + 1
		case ',':
			c, i = r.after(i + 1)
		default:
			return failed
		}
	}
	return failed
}

// string reads a string, whose first quote was read.
func (r *recorder) string(start int) int {
	text, i := r.text, start
	// Most strings have no special bytes, so eight are tested at once.
	for ; i+8 <= len(text); i += 8 {
		if found := special(binary.LittleEndian.Uint64(text[i:])); found != 0 {
			i += bits.TrailingZeros64(found) / 8
			if text[i] != '"' {
				break
			}
			r.add(newNode(isString, start, i))
			return i + 1
		}
	}
	return r.rest(start, i)
}

// special finds the bytes among eight bytes of a string that end the string or need
// decoding. It sets the high bit of the lowest such byte, which is the first, and of no
// lower byte.
func special(x uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	// The terms find bytes of 128 and more, control characters, quotes and backslashes. A
	// borrow can set bits above the first such byte, which does not matter.
	return (x | (x - ' '*ones) | ((x ^ '"'*ones) - ones) | ((x ^ '\\'*ones) - ones)) & highs
}

// rest reads the rest of a string byte by byte.
func (r *recorder) rest(start, i int) int {
	// It stays so unless an escape or a letter beyond ASCII comes.
	kind := isString
	for ; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '"':
			r.add(newNode(kind, start, i))
			return i + 1
		// JSON does not permit raw control characters in strings.
		case c < ' ':
			return failed
		case c == '\\':
			kind = isCoded
			if i = r.escape(i + 1); i == failed {
				return failed
			}
		// It may not be UTF-8, which is decided when the text is needed.
		case c >= utf8.RuneSelf:
			kind = isCoded
		}
	}
	return failed
}

// escape reads the rest of an escape after its backslash, and returns the position of its
// last byte.
func (r *recorder) escape(i int) int {
	if i >= len(r.text) {
		return failed
	}
	switch r.text[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i
	case 'u':
		// Surrogates are not checked here: encoding/json accepts unpaired ones too.
		if _, ok := hexadecimal(r.text[i+1:]); ok {
			return i + 4
		}
	}
	return failed
}

// number reads a number, or finds that the next text is not a value.
func (r *recorder) number(start int) int {
	i := start
	if r.at(i) == '-' {
		i++
	}
	// A number has a whole part, and may have a fraction and an exponent. The whole part has no
	// needless zero.
	whole := i
	if i = r.digits(i); i == failed || r.text[whole] == '0' && i > whole+1 {
		return failed
	}
	if r.at(i) == '.' {
		if i = r.digits(i + 1); i == failed {
			return failed
		}
	}
	if c := r.at(i); c == 'e' || c == 'E' {
		i++
		if sign := r.at(i); sign == '+' || sign == '-' {
			i++
		}
		if i = r.digits(i); i == failed {
			return failed
		}
	}
	r.add(newNode(isNumber, start, i))
	return i
}

// at returns the byte at a position, 0 at the end.
func (r *recorder) at(i int) byte {
	if i < len(r.text) {
		return r.text[i]
	}
	return 0
}

// digits reads one digit or more.
func (r *recorder) digits(start int) int {
	i := start
	for i < len(r.text) && r.text[i]-'0' < 10 {
		i++
	}
	if i == start {
		return failed
	}
	return i
}
