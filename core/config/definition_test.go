package config

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/eventgateway/gateway/core"
)

// again parses the definition of every workflow of a configuration. Each result must equal the
// workflow that Load returned: core/gateway takes one for the other.
func again(t *testing.T, c *Config) (workflows int) {
	t.Helper()
	for name, want := range c.Workflows {
		d := c.Definition(name)
		got, err := ParseDefinition(d, c.Lookup)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("ParseDefinition(%q) = %v (-want +got):\n%s\n%s", name, err, diff, d.Body)
		}
		workflows++
	}
	return workflows
}

func TestDefinitionsOfTranscripts(t *testing.T) {
	archives, _ := filepath.Glob("testdata/*.txtar")
	seen := 0
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := Load(optionsOf(a)); err == nil {
			seen += again(t, c)
		}
	}
	if seen < 7 {
		t.Errorf("%d workflows read again, want at least 7", seen)
	}
}

func loadText(t *testing.T, text string, more ...string) *Config {
	t.Helper()
	env := map[string]string{"TOKEN": "canary", "SECS": "90", "NOTHING": ""}
	files := fstest.MapFS{"gateway.yaml": file("sources: {shop: {type: event}}\n" + text)}
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = file(more[i+1])
	}
	c, err := Load(Options{FS: files, Path: "gateway.yaml", Env: map[bool]string{true: "x"}[len(more) > 0],
		Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	if err != nil {
		t.Fatalf("Load = %v, want no error", err)
	}
	return c
}

// A definition keeps the meaning of every spelling of YAML that Load understands.
func TestDefinitionKeepsSpellings(t *testing.T) {
	c := loadText(t, `
delivery:
  default_retry: &retry {max: 2, interval: "${SECS}", backoff: fixed}
workflows:
  "123":
    source: shop
    events: ["*", 'a.b', "1"]
    timeout: ${SECS}
    steps:
      - &first
        name: "no"
        url: https://${HOST:-a.example}/?q=1#x
        headers: {1: 007, "true": "x: y # z", X-Long: "`+strings.Repeat("long ", 60)+`", Empty: "", Gone: ~, Null: "null", Blank: , Words: one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen  sixteen, T: "\ttab\u00a0é\U0001F600 \\"}
        result_path: null
        retry: *retry
        on_failure:
        input: |
          {"text": "{{ $.a }}",
           "n": {{ $.n }} }
        output: >-
          {{ $.a ??
          $$.event.id }}
      - {<<: *first, name: "true", result_path: "null", end: false}
      - {name: "0x1f", type: !!str choice, default: "null", choices: [{condition: '$.a == "${NOTHING}"', goto: "null"}]}
      - name: "null"
        type: wait
        seconds: !!int 5
`, "gateway.x.yaml", "workflows: {'123': {timeout: 30, params: [{name: a, required: false}]}}\n", ".env.x", "HOST=b.example\n")
	if again(t, c) != 1 {
		t.Error("the workflow was not read again")
	}
	if body := c.Definition("123").Body; strings.Contains(body, "b.example") || !strings.Contains(body, "${HOST:-a.example}") {
		t.Errorf("Definition holds what a variable held:\n%s", body)
	}
}

func TestDefinitionHoldsNoVariable(t *testing.T) {
	c := loadText(t, `
workflows:
  w: {source: shop, steps: [{name: a, url: "https://a.example/${TOKEN}", headers: {Authorization: "Bearer ${TOKEN}"}, input: '"{{ $.a }}${TOKEN}"'}]}
`)
	again(t, c)
	if d := c.Definition("w"); strings.Contains(d.Body, "canary") || len(d.Hash) != 64 {
		t.Errorf("Definition = %+v, want none of canary and a hash of 64 digits", d)
	}
}

// Runs of one workflow share a definition until it says something else.
func TestDefinitionHash(t *testing.T) {
	const w = "workflows: {w: {source: shop, timeout: 5, steps: [{name: a, url: https://a.example, headers: {A: b, C: d}}]}}"
	hash := func(text string) string { return loadText(t, text).Definition("w").Hash }
	want := hash(w)
	for range 20 {
		if got := hash(w); got != want {
			t.Fatalf("Definition has hash %s, then %s", want, got)
		}
	}
	for name, tt := range map[string]struct {
		text string
		same bool
	}{
		"another order":         {"workflows: {w: {steps: [{headers: {C: d, A: b}, url: https://a.example, name: a}], timeout: 5, source: shop}}", true},
		"another layout":        {"workflows:\n  w:\n    source: shop\n    timeout: 5\n    steps:\n    - name: a\n      url: https://a.example\n      headers: {A: b, C: d}", true},
		"beside another":        {w + "\nqueues: {q: {source: shop}}", true},
		"another name":          {strings.Replace(w, "{w:", "{v: {source: shop, steps: [{name: a, url: https://a.example}]}, w:", 1), true},
		"another timeout":       {strings.Replace(w, "5", "6", 1), false},
		"another header":        {strings.Replace(w, "C: d", "C: e", 1), false},
		"another default_retry": {w + "\ndelivery: {default_retry: {interval: 5s}}", false},
		"another delivery":      {w + "\ndelivery: {timeout: 5s}", true},
	} {
		if got := hash(tt.text); (got == want) != tt.same {
			t.Errorf("%s: the same hash: %v, want %v", name, got == want, tt.same)
		}
	}
	if a, b := loadText(t, w), loadText(t, strings.Replace(w, "{w:", "{v:", 1)); a.Definition("w").Hash == b.Definition("v").Hash {
		t.Error("workflows of two names have one definition")
	}
}

func TestDefinitionOfNothing(t *testing.T) {
	for name, c := range map[string]*Config{"made by hand": Default(), "without it": loadText(t, "")} {
		if d := c.Definition("w"); d != (core.Definition{}) {
			t.Errorf("%s: Definition = %+v, want none", name, d)
		}
	}
}

// A few lines of aliases can stand for much text.
func TestDefinitionTooLarge(t *testing.T) {
	// The second definition is too large only when it is written: the YAML library escapes
	// characters that cannot be printed.
	for _, tt := range []struct {
		value   string
		aliases int
	}{{strings.Repeat("x", 20_000), 60}, {`"` + strings.Repeat(`\ufeff`, 15_000) + `"`, 20}} {
		steps := "- {name: a, url: https://a.example, headers: {X: &v " + tt.value + "}}\n    - {name: b, url: https://a.example, headers: {X0: *v"
		for i := range tt.aliases {
			steps += ", X" + strconv.Itoa(i+1) + ": *v"
		}
		files := fstest.MapFS{"gateway.yaml": file("sources: {shop: {type: event}}\nworkflows:\n  w:\n    source: shop\n    steps:\n    " + steps + "}}\n")}
		_, err := Load(Options{FS: files, Path: "gateway.yaml"})
		if want := "workflows.w: is larger than 1 MiB with its aliases written out"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load of %d aliases of %d bytes = %.200v, want %q", tt.aliases, len(tt.value), err, want)
		}
	}
}

func TestParseDefinitionRefuses(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	canary := func(string) (string, bool) { return "canary", true }
	for name, tt := range map[string]struct {
		body, want string
		lookup     func(string) (string, bool)
	}{
		"url":       {"workflows: {w: {source: shop, steps: [{name: a, url: '${HOST}'}]}}", "workflows.w.steps[0].url: must start with http:// or https://", canary},
		"variable":  {"workflows: {w: {source: shop, steps: [{name: a, url: 'https://${HOST}'}]}}", "the environment variable HOST is not set", none},
		"no lookup": {"workflows: {w: {source: shop, steps: [{name: a, url: 'https://${HOST}'}]}}", "the environment variable HOST is not set", nil},
		"nothing":   {"", "must hold one workflow, not 0", none},
		"no YAML":   {"{", "is not YAML", none},
		"text":      {"workflows: w", "must be a mapping", none},
	} {
		_, err := ParseDefinition(core.Definition{Body: tt.body}, tt.lookup)
		var problems Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: ParseDefinition = %v, want %q", name, err, tt.want)
		}
	}
}

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "http://localhost:8888",
		"server: {port: 9000}": "http://localhost:9000",
		"server: {public_url: 'https://events.example/in/'}": "https://events.example/in",
	} {
		if got := loadText(t, text).Address(); got != want {
			t.Errorf("Address with %q = %q, want %q", text, got, want)
		}
	}
}

// Every definition has max_bytes, so that processes of a version that does not know the field
// leave its runs alone. A definition without max_bytes is from such a version.
func TestDefinitionsSayHowMuchRunsMayWrite(t *testing.T) {
	for field, want := range map[string]int{"": 64 << 20, ", max_bytes: 1048576": 1 << 20, ", max_bytes: 67108864": 64 << 20} {
		c := loadOne(t, "sources: {shop: {type: event}}\nworkflows: {w: {source: shop, steps: [{name: a, url: https://a.example}]"+field+"}}\n")
		d := c.Definition("w")
		if n := strings.Count(d.Body, "max_bytes: "+strconv.Itoa(want)); n != 1 {
			t.Errorf("the definition of a workflow with %q has max_bytes %d times: %s", field, n, d.Body)
		}
		if w, err := ParseDefinition(d, nil); err != nil || w.MaxBytes != want || w.Earlier || c.Workflows["w"].MaxBytes != want {
			t.Errorf("with %q it is read as %d, earlier %v, %v; want %d", field, w.MaxBytes, w.Earlier, err, want)
		}
	}
	old := core.Definition{Body: "workflows: {w: {source: shop, steps: [{name: a, url: 'https://a.example'}]}}"}
	if w, err := ParseDefinition(old, nil); err != nil || !w.Earlier || w.MaxBytes != 64<<20 {
		t.Errorf("an earlier definition is read as %d bytes, earlier %v, %v", w.MaxBytes, w.Earlier, err)
	}
	for _, wrong := range []string{"0", "1048575", "1073741825", "64M"} {
		files := fstest.MapFS{"gateway.yaml": file("sources: {shop: {type: event}}\nworkflows: {w: {source: shop, max_bytes: " + wrong + ", steps: [{name: a, url: https://a.example}]}}\n")}
		_, err := Load(Options{FS: files, Path: "gateway.yaml"})
		if want := "workflows.w.max_bytes: must be a whole number from 1048576 to 1073741824"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("max_bytes %s: %v, want %q", wrong, err, want)
		}
	}
}

func loadOne(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Load(Options{FS: fstest.MapFS{"gateway.yaml": file(text)}, Path: "gateway.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
