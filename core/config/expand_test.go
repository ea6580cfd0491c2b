package config

import (
	"runtime"
	"strings"
	"testing"
)

func TestVariables(t *testing.T) {
	env := map[string]string{"A": "a", "EMPTY": "", "NESTED": "${A}", "_X9": "x"}
	for text, want := range map[string]struct{ expanded, own, complaint string }{
		"plain":                 {"plain", "plain", ""},
		"${A}":                  {"a", "\x00", ""},
		"<${A}${A}>":            {"<aa>", "<\x00\x00>", ""},
		"${_X9}$A$$ $${A}":      {"x$A$$ $a", "\x00$A$$ $\x00", ""},
		"${NONE:-d}":            {"d", "d", ""},
		"${EMPTY:-d}-${EMPTY}":  {"d-", "d-", ""},
		"${A:-d}":               {"a", "\x00", ""},
		"${NONE:-}":             {"", "", ""},
		"${NONE:-:-$ {}}":       {":-$ {}", ":-$ {}", ""},
		"${NESTED}":             {"${A}", "\x00", ""},
		"${A":                   {"", "", `"${" starts a variable here`},
		"${}":                   {"", "", `"${" starts a variable here`},
		"${9}":                  {"", "", `"${" starts a variable here`},
		"${A-d}":                {"", "", `"${" starts a variable here`},
		"${A:d}":                {"", "", `"${" starts a variable here`},
		"${A }":                 {"", "", `"${" starts a variable here`},
		"${A:-x":                {"", "", `"${" starts a variable here`},
		"${":                    {"", "", `"${" starts a variable here`},
		"${NONE}":               {"", "", "the environment variable NONE is not set"},
		"${NONE}${NONE}${NONE}": {"", "", "the environment variable NONE is not set"},
		"${A:-${B}}":            {"}", "}", "the default of ${A} holds another variable"},
	} {
		e := &environment{lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }, used: map[string]bool{}}
		x := expansion{environment: e, reported: map[string]bool{}}
		x.text(text)
		complaint := strings.Join(x.complaints, "\n")
		if complaint == "" && want.complaint == "" && x.expanded.String() == want.expanded && x.own.String() == want.own && x.variables == strings.Count(want.own, variableMark) {
			continue
		}
		if want.complaint == "" || !strings.HasPrefix(complaint, want.complaint) || len(x.complaints) != 1 {
			t.Errorf("text(%q) = %q, %q, %q, want %q, %q, %q", text, x.expanded.String(), x.own.String(), complaint, want.expanded, want.own, want.complaint)
		}
	}
}

// The expansion of a text takes memory in proportion to its length, and so time. An earlier
// expansion copied the rest of the text for each variable: 79 GB for this text.
func TestExpansionIsLinear(t *testing.T) {
	const size = 150_000
	text := strings.Repeat("${A:-x}", size)
	x := expansion{environment: &environment{used: map[string]bool{}}, reported: map[string]bool{}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	x.text(text)
	runtime.ReadMemStats(&after)
	if x.expanded.Len() != size {
		t.Fatalf("%d bytes of expansion, want %d", x.expanded.Len(), size)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(10*len(text)) {
		t.Errorf("%d bytes of text took %d bytes of memory, want at most ten times as many", len(text), took)
	}
}
