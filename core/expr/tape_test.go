package expr

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// judge requires the same judgment and value of a payload as encoding/json's. It returns them.
func judge(t testing.TB, payload []byte) (tree any, isJSON bool) {
	t.Helper()
	want, isJSON := parseJSON(payload)
	if taken := record(payload) != nil; taken != isJSON {
		t.Fatalf("record(%q) takes it: %v, want %v", payload, taken, isJSON)
	}
	if !isJSON {
		return nil, false
	}
	if got := NewDocument(payload, "").Value(); !reflect.DeepEqual(got, want) {
		t.Fatalf("Value(%q) = %#v, want %#v", payload, got, want)
	}
	return want, true
}

// seldom are bytes that have a meaning somewhere in JSON, and some that have none.
const seldom = "\x00\t\n\x1f \"\\/,:[]{}+-.019eEabfntu'\x7f\x80\xa9\xc3\xed\xff"

// TestTapeTakesWhatIsJSON tries bytes at every position: the tape reads strings 8 bytes at a
// time, and differently at the end of the text.
func TestTapeTakesWhatIsJSON(t *testing.T) {
	var every strings.Builder
	for c := range 256 {
		every.WriteByte(byte(c))
	}
	for text, bytes := range map[string]string{
		`"0123456789abcdefghi"`:                    every.String(),
		`{"a":-10.25e+3,"b":[true,false,null,{}]}`: seldom, `"\u00e9\ud83d\ude00\n\\"`: seldom, `"äöü€"`: seldom, `["",[],{"":0}]`: seldom, "\t[ 1 ,\r{ \"a\" : 2 } ]\n": seldom,
	} {
		judge(t, []byte(text))
		for i := range len(text) + 1 {
			judge(t, []byte(text[:i]))
			for _, c := range []byte(bytes) {
				judge(t, []byte(text[:i]+string([]byte{c})+text[i:]))
				judge(t, []byte(text[:i]+string([]byte{c})+text[min(i+1, len(text)):]))
			}
		}
	}
	for _, text := range []string{`-`, `-0`, `01`, `1.`, `.5`, `1e`, `1e+`, `1E-07`, `0e0`, `1.5.5`, `+1`, `Infinity`, `tru`, `nulll`, `[1,]`, `{"a":1,}`, `{"a"}`, `{1:2}`, `[1}`, `{"a":1]`, `[]]`, `1 2`, "\uFEFF1", `"\ud800\u0041"`, `"\ud800\ud800\udc00"`, `"\udc00\ud800"`, `"\u12g4"`, `"\U1234"`, `'a'`} {
		judge(t, []byte(text))
	}
	for depth := 199; depth < 203; depth++ {
		judge(t, []byte(nest(depth)))
		judge(t, []byte(strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth)))
	}
}

// agrees requires that a path selects the same value from a new document as from a decoded
// tree, alone and in a template.
func agrees(t testing.TB, payload []byte, tree any, p *Path) {
	t.Helper()
	want, there := p.one(&budget{leastSteps}, tree)
	got, ok := NewDocument(payload, "").One(p)
	if ok != (there && p.Singular()) || ok && !reflect.DeepEqual(got, want) {
		t.Fatalf("One(%s) of %q = %#v, %v, want %#v, %v", p, payload, got, ok, want, there)
	}
	if !p.Singular() {
		return
	}
	hole := []choice{{operand: operand{path: &reference{path: p}}}}
	value := string(appendCompact(nil, want, unlimited))
	bare, err := plain(want, unlimited)
	if err != nil {
		t.Fatal(err)
	}
	text := string(appendEscaped(nil, bare, unlimited))
	for _, quoted := range []bool{false, true} {
		out, err := (&Template{parts: []part{{hole: hole, quoted: quoted}}}).Render(NewDocument(payload, ""), nil)
		if w := map[bool]string{false: value, true: text}[quoted]; err != nil || string(out) != w {
			t.Fatalf("Render({{ %s }}) of %q = %s, %v, want %s", p, payload, out, err, w)
		}
	}
}

func TestDocumentOne(t *testing.T) {
	const payload = ` {"a": {"b": [1.50, "x", null, {"c": true}, []]}, "dup": 1, "\u0064up": {"z": 1, "y": 2, "z": {"é": 3, "e": [4, {}]}}, "": "empty", "é": "\ud83d\ude00\/",
		"dup2": [1], "dup2": "last", "long name, longer than eight bytes": 0, "long name, and the same eight bytes": false, "b\u0000": "nul", "b": "not"} `
	want := tree(t, payload)
	for _, path := range []string{
		"$", "$.a", "$.a.b", "$.a.b[0]", "$.a.b[1]", "$.a.b[2]", "$.a.b[3].c", "$.a.b[4]", "$.a.b[5]", "$.a.b[-1]", "$.a.b[-5]", "$.a.b[-6]", "$.a[0]", "$.a.b.c", "$.a.b[0].c",
		"$.dup", "$.dup.z", "$.dup.y", "$.dup.z['é']", "$['']", "$.é", "$.dup2", "$.none", `$["b\u0000"]`, "$.b", "$['long name, longer than eight bytes']", "$[0]", "$.*", "$..b",
	} {
		agrees(t, []byte(payload), want, mustPath(t, path))
	}
	for _, text := range []string{"not JSON", "", `"text"`, "12", nest(201), "null"} {
		d := NewDocument([]byte(text), "")
		want := d.Value()
		if got, ok := NewDocument([]byte(text), "").One(mustPath(t, "$")); !ok || got != want {
			t.Errorf("One($) of %q = %v, %v, want %v", text, got, ok, want)
		}
		if got, ok := NewDocument([]byte(text), "").One(mustPath(t, "$.a")); ok {
			t.Errorf("One($.a) of %q = %v, want none", text, got)
		}
	}
	form := NewDocument([]byte("payload=%7B%22a%22%3A%5B1%5D%7D"), formType)
	if got, ok := form.One(mustPath(t, "$.a")); !ok || Canonical(got) != "[1]" {
		t.Errorf("One($.a) of a form's payload = %v, %v, want [1]", got, ok)
	}
}

// TestMembersAreInOrder: members are in the order of their names, in objects of every size.
func TestMembersAreInOrder(t *testing.T) {
	for _, count := range []int{0, 1, 2, 16, 17, 1000} {
		var text strings.Builder
		for i := range count {
			fmt.Fprintf(&text, `,"member%d":%d,"m%d":[]`, i*7919%count, i, i*31%count/2)
		}
		payload := []byte("{" + strings.TrimPrefix(text.String(), ",") + "}")
		agrees(t, payload, tree(t, string(payload)), mustPath(t, "$"))
	}
}

// TestManyPathsAreLinear: looking up a member on the tape takes time in proportion to the
// object. So after a few look-ups a document builds the tree.
func TestManyPathsAreLinear(t *testing.T) {
	payload := "{" + strings.Repeat(`"a":1,`, 1000) + `"b":2}`
	filter := mustFilter(t, "$.b == 1"+strings.Repeat(" or $.b == 1", 300))
	d := NewDocument([]byte(payload), "")
	if holds(t, filter, d, nil) {
		t.Error("Match = true, want false")
	}
	if bound := (patience + 2) * len(d.tape); !d.decoded || d.steps > bound {
		t.Errorf("%d steps on a tape of %d nodes, tree built: %v; want at most %d and then the tree", d.steps, len(d.tape), d.decoded, bound)
	}
}

// TestTapeIsSmall holds the size of the tape for payloads that make the longest tapes, and for
// some that only look so.
func TestTapeIsSmall(t *testing.T) {
	for _, payload := range []string{
		"[" + strings.Repeat("1,", 1<<19) + "1]", "[" + strings.Repeat("[],", 1<<18) + "1]", `{` + strings.Repeat(`"":1,`, 1<<18) + `"":1}`, `"` + strings.Repeat(",", 1<<20) + `"`,
		strings.Repeat("[", 1<<20), "[" + strings.Repeat("1,", usualText/2-1) + "1]",
	} {
		text := []byte(payload)
		tape := record(text)
		if longest := len(text)/2 + 1; len(tape) > longest || cap(tape) > 3*len(tape)/2+longest/2 {
			t.Errorf("%.6s...: a tape of %d nodes with room for %d, of %d bytes, want at most %d", payload, len(tape), cap(tape), len(text), longest)
		}
		if n := testing.AllocsPerRun(1, func() { record(text) }); n > 2 {
			t.Errorf("%.6s...: the tape grew in %v steps, want 2 at most", payload, n)
		}
	}
}

// TestFreshDocumentsAllocateLittle: a new document does not allocate for each value of its
// payload.
func TestFreshDocumentsAllocateLittle(t *testing.T) {
	payload := usualPayload()
	filter, template := mustFilter(t, `$.order.total > 12 and $.id == "evt_1" and exists $.order.items`), mustTemplate(t, `{"id": {{ $.id }}, "items": {{ $.order.items }}}`)
	for name, f := range map[string]func(){
		"Match":  func() { holds(t, filter, NewDocument(payload, ""), nil) },
		"Render": func() { _, _ = template.Render(NewDocument(payload, ""), nil) },
	} {
		if n := testing.AllocsPerRun(100, f); n > 20 {
			t.Errorf("%s of a payload with 15 items allocates %v times, want 20 at most", name, n)
		}
	}
}

// BenchmarkRead compares three readings of a payload of 2 KB: the tape with one look-up, the
// decoded tree, and the validity check of encoding/json.
func BenchmarkRead(b *testing.B) {
	payload, p := usualPayload(), mustPath(b, "$.order.total")
	for name, read := range map[string]func(){
		"tape":  func() { NewDocument(payload, "").One(p) },
		"tree":  func() { NewDocument(payload, "").Value() },
		"valid": func() { json.Valid(payload) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				read()
			}
		})
	}
}

// FuzzTape: the tape accepts the payloads that encoding/json accepts, and a path selects the
// same value from both.
func FuzzTape(f *testing.F) {
	for _, payload := range []string{
		`{"a":[1,"x",null,true,{"b":-1.5e3}],"a":{"c":"\u00e9\ud800"}}`, " [[], {}, \"\\\"\", 0]\n", `"\ud83d\ude00"`, "\"\xff\xf0\x9f\"", `{"a":1}x`, "[1,\t02]", `{"é":{"e":1,"\u0065":[]},"":"/\/"}`, `{"m":1,"longer name":2,"m":[]}`,
	} {
		f.Add([]byte(payload), []byte{0, 1, 255})
		f.Add([]byte(payload), []byte{1, 0})
	}
	f.Fuzz(func(t *testing.T, payload, steps []byte) {
		tree, isJSON := judge(t, payload)
		if !isJSON {
			return
		}
		if p, err := ParsePath(walk(tree, steps)); err == nil {
			agrees(t, payload, tree, p)
		}
	})
}

// walk returns a path through a tree. Each byte of steps chooses a member or an element, or
// sometimes one that does not exist.
func walk(v any, steps []byte) string {
	path := []byte("$")
	for _, step := range steps {
		switch at := v.(type) {
		case map[string]any:
			names := append(members(nil, at), "none")
			name := names[int(step)%len(names)]
			path = append(appendString(append(path, '['), name, unlimited), ']')
			v = at[name]
		case []any:
			i := int(int8(step)) % (len(at) + 1)
			path = fmt.Appendf(path, "[%d]", i)
			v, _ = element(at, i)
		default:
			return string(path)
		}
	}
	return string(path)
}
