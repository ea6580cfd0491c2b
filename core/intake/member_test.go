package intake

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestStringMember(t *testing.T) {
	tests := []struct{ doc, want string }{
		{`{"type":"a"}`, "a"},
		{"\t\r\n { \"type\" : \"a\" } ", "a"},
		{`{"ty\u0070e":"a\"\\\u00e4"}`, `a"\ä`},
		{`{"x":"\\\\","type":"a"}`, "a"},
		{`{"x":"type","type":"a"}`, "a"},
		{`{"x":"\"type\":\"no\"","y":["type",{"type":"no"}]}`, ""},
		{`{"type":{"type":"no"},"z":"no"}`, ""},
		{`{"type":"no","type":null}`, ""},
		{`{"Type":"no"}`, ""},
		{`{"type":"no"} {}`, ""},
		{`{"type" "no"}`, ""},
		{`{"type":"no`, ""},
		{`{"\`, ""},
		{`"type"`, ""},
		{``, ""},
	}
	for _, tt := range tests {
		if got := stringMember([]byte(tt.doc), "type"); got != tt.want {
			t.Errorf("stringMember(%s) = %q, want %q", tt.doc, got, tt.want)
		}
	}
}

func FuzzStringMember(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"type":"x"}],"type":"y","b":"\\\""}`))
	f.Add([]byte(`{"type":"y","type":{"type":1}}`))
	f.Add([]byte(`{"type":"y":"z",}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		if strings.Count(string(doc), "{")+strings.Count(string(doc), "[") > maxDepth {
			t.Skip()
		}
		if got, want := stringMember(doc, "type"), decoded(doc, "type"); got != want {
			t.Errorf("stringMember(%s) = %q, want %q", doc, got, want)
		}
	})
}

// decoded returns the member as encoding/json reads it. stringMember must return the same.
func decoded(doc []byte, name string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(doc, &members) != nil {
		return ""
	}
	var s string
	if raw := members[name]; len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func BenchmarkStringMember(b *testing.B) {
	var members []string
	for i := range 30 {
		members = append(members, fmt.Sprintf(`"member%d":{"text":"some text","number":%d}`, i, i))
	}
	doc := []byte(`{"type":"order.created",` + strings.Join(members, ",") + `}`)
	for name, f := range map[string]func([]byte, string) string{"scan": stringMember, "map": decoded} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				f(doc, "type")
			}
		})
	}
}
