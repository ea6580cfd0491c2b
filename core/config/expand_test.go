package config

import (
	"strings"
	"testing"
	"time"
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
		x := expansion{environment: e, told: map[string]bool{}}
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

// Ten times the variables take about ten times as long. They took a hundred times as long when the rest of the text was
// copied for each.
func TestExpansionIsLinear(t *testing.T) {
	e := &environment{used: map[string]bool{}}
	cost := func(size int) time.Duration {
		text := strings.Repeat("${A:-x}", size)
		best := time.Duration(1<<63 - 1)
		for range 5 { // the fastest of some: others want the processor as well
			began := time.Now()
			x := expansion{environment: e, told: map[string]bool{}}
			x.text(text)
			best = min(best, time.Since(began))
			if x.expanded.Len() != size {
				t.Fatalf("%d bytes of expansion, want %d", x.expanded.Len(), size)
			}
		}
		return best
	}
	small, large := cost(15_000), cost(150_000)
	if ratio := float64(large) / float64(small); ratio > 40 {
		t.Errorf("150,000 variables take %v, %.0f times as long as 15,000 (%v), want about 10 times", large, ratio, small)
	}
}
