package expr

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A cutting is what a text was cut into: names and values of members, or elements with names that are empty.
type cutting struct {
	Names, Values []string
	Err           error
}

func (c *cutting) add(name string, value []byte) error {
	c.Names, c.Values = append(c.Names, name), append(c.Values, string(value))
	return nil
}

// cut cuts a text as an array and as an object.
func cut(text []byte) (array, object cutting) {
	array.Err = Elements(text, func(value []byte) error { return array.add("", value) })
	object.Err = Members(text, object.add)
	return array, object
}

// byDecoder returns what encoding/json cuts a text into. An error says only that there is one.
func byDecoder(text []byte, open json.Delim) (c cutting) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // or a number that no float64 holds would be an error
	if token, err := d.Token(); err != nil || token != open {
		c.Err = ErrNotTree
		return c
	}
	for d.More() {
		name := ""
		if open == '{' {
			token, err := d.Token()
			if err != nil {
				c.Err = err
				return c
			}
			name = token.(string)
		}
		var raw json.RawMessage
		if c.Err = d.Decode(&raw); c.Err != nil {
			return c
		}
		_ = c.add(name, raw)
	}
	if _, c.Err = d.Token(); c.Err == nil && len(bytes.TrimLeft(text[d.InputOffset():], " \t\r\n")) > 0 {
		c.Err = ErrNotTree
	}
	return c
}

// splitAgrees requires that a text is cut as encoding/json cuts it, up to the same place.
func splitAgrees(t testing.TB, text []byte) {
	t.Helper()
	array, object := cut(text)
	for open, got := range map[json.Delim]cutting{'[': array, '{': object} {
		want := byDecoder(text, open)
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b error) bool { return (a == nil) == (b == nil) })); diff != "" {
			t.Fatalf("%q as %v (-want +got):\n%s", text, open, diff)
		}
	}
}

// TestSplitIsThatOfEncodingJSON tries bytes at every position of some texts.
func TestSplitIsThatOfEncodingJSON(t *testing.T) {
	for _, text := range []string{
		`[]`, ` [ 1 , "a\n" ,{"b":[2]}, [ ] ] `, `{}`, "\t{ \"a\" : 1 ,\r\"\\u0062\\ud83d\": [1, {}],\n\"a\":\"}\" } ", `{"é":null,"":-1.5e3}`, `[tru]`, `[1 2]`, `[,]`, `{"a":1 "b":2}`, `[1]]`, `{} 1`,
	} {
		splitAgrees(t, []byte(text))
		for i := range len(text) + 1 {
			splitAgrees(t, []byte(text[:i]))
			for _, c := range []byte(seldom) {
				splitAgrees(t, []byte(text[:i]+string([]byte{c})+text[i:]))
				splitAgrees(t, []byte(text[:i]+string([]byte{c})+text[min(i+1, len(text)):]))
			}
		}
	}
	// Deeper than the recorder reads, beside a part that is not, and deeper than encoding/json reads.
	for _, depth := range []int{199, 200, 201, 9_999, 10_001} {
		splitAgrees(t, []byte("["+nest(depth)+",1,"+nest(3)+"]"))
		splitAgrees(t, []byte(`{"a":`+nest(depth)+`,"b":1}`))
	}
}

// FuzzSplit: the parts are those of encoding/json.
func FuzzSplit(f *testing.F) {
	for _, text := range []string{`[1,"a",{"b":[]}]`, `{"a":1,"\u0062":[2],"a":null}`, `[1 2]`, "[\"\xff\"]", "[" + nest(201) + "]"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { splitAgrees(t, text) })
}

// TestSplitSaysWhere: the errors tell a text that is no array or object from a part that is not JSON, and come
// after the parts before that place.
func TestSplitSaysWhere(t *testing.T) {
	for text, want := range map[string]struct {
		parts int
		err   error
	}{
		``: {0, ErrNotTree}, `1`: {0, ErrNotTree}, `[`: {0, ErrNotTree}, `[1`: {1, ErrNotTree}, `[1] [2]`: {1, ErrNotTree}, `[1],`: {1, ErrNotTree},
		`[1,]`: {1, ErrNotPart}, `[1,2,{]`: {2, ErrNotPart}, `[1 2]`: {1, ErrNotPart}, `[1,"2]`: {1, ErrNotPart}, "[1,2\x00]": {2, ErrNotPart}, `[]`: {0, nil},
	} {
		if array, _ := cut([]byte(text)); len(array.Values) != want.parts || !errors.Is(array.Err, want.err) {
			t.Errorf("%q: %d parts and %v, want %d and %v", text, len(array.Values), array.Err, want.parts, want.err)
		}
	}
	for _, text := range []string{`{"a" 1}`, `{"a":}`, `{a:1}`, `{"a`, `{"a":1,}`, `{"a":1;"b":2}`} {
		if _, object := cut([]byte(text)); !errors.Is(object.Err, ErrNotPart) {
			t.Errorf("%q: %v, want %v", text, object.Err, ErrNotPart)
		}
	}
}

// TestSplitEndsEarly: the error of the caller's function ends the split and is returned.
func TestSplitEndsEarly(t *testing.T) {
	enough := errors.New("enough")
	var got []string
	err := Elements([]byte(`[1,2,3 and no JSON`), func(value []byte) error {
		if got = append(got, string(value)); len(got) == 2 {
			return enough
		}
		return nil
	})
	if err != enough || strings.Join(got, " ") != "1 2" {
		t.Errorf("%v and %v, want 1 2 and %v", got, err, enough)
	}
}

// TestSplitCopiesNothing: elements are parts of the text.
func TestSplitCopiesNothing(t *testing.T) {
	text := []byte(`[{"a":"bcdefghijklmnop"},[1,2,3],"x"]`)
	if n := testing.AllocsPerRun(100, func() {
		if err := Elements(text, func([]byte) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("%v allocations, want at most 1", n)
	}
}
