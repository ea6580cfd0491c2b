package verify_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/verify"
)

// TestEverySchemeIsComplete: a scheme has its vectors, its place in the fuzzers, its names in
// the configuration, its conventions, its rows in the manual and its request of gateway send.
// Each failure says where something is missing, so this test is the list of places to edit.
// TestSecurityTable holds one more row.
func TestEverySchemeIsComplete(t *testing.T) {
	texts := map[string]string{}
	for _, path := range []string{"../intake/provider.go", "../../cmd/gateway/manual/verification.md", "../../cmd/gateway/testdata/script/send_providers.txtar"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	for _, name := range verify.Schemes(nil) {
		has := func(path, line string) {
			t.Helper()
			if !strings.Contains(texts[path], line) {
				t.Errorf("scheme %s: %s lacks %q", name, path, line)
			}
		}
		vectored := false
		for _, v := range vectors {
			vectored = vectored || canonical(v.scheme) == name
		}
		if !vectored {
			t.Errorf("scheme %s: schemes_test.go has no vector of the provider in vectors", name)
		}
		if !slices.ContainsFunc(fuzzed, func(f fuzzedScheme) bool { return f.scheme == name }) {
			t.Errorf("scheme %s: fuzz_test.go does not have it at the end of fuzzed", name)
		}
		has("../../cmd/gateway/manual/verification.md", "| `"+name+"`")
		if name == "hmac" {
			continue // it is no provider's
		}
		if entry := `{name: "` + name + `"`; !strings.Contains(texts["../intake/provider.go"], entry) {
			t.Errorf("scheme %s: ../intake/provider.go has no entry %s in providers; add one with the headers or members of the body that have the event type and the delivery id, or %s} if the sender has neither", name, entry, entry)
		}
		script := "../../cmd/gateway/testdata/script/send_providers.txtar"
		configured := func(name string) bool { return strings.Contains(texts[script], "verify: "+name+",") }
		if !slices.ContainsFunc(namesOf(name), configured) {
			t.Errorf("scheme %s: %s has no source with it, and no request", name, script)
		}
	}
}

// TestDedupSchemes: the manual lists the schemes with which a source may have dedup: body, in the
// chapter of signatures and in the reference.
func TestDedupSchemes(t *testing.T) {
	names := verify.Schemes(func(c verify.Cover) bool { return c.BodyAlone })
	last := len(names) - 1
	first, end := "`"+strings.Join(names[:last], "`, `")+"`", "`"+names[last]+"`"
	for path, want := range map[string]string{
		"../../cmd/gateway/manual/verification.md":  "a source of " + first + " or " + end + " identifies repeats",
		"../../cmd/gateway/manual/configuration.md": "It is for " + first + " and " + end + ".",
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), want) {
			t.Errorf("%s lacks, in its sentence about dedup: body, the words %q", path, want)
		}
	}
}

// namesOf are the name of a scheme and its aliases.
func namesOf(scheme string) []string {
	return slices.DeleteFunc(verify.Names(), func(name string) bool { return canonical(name) != scheme })
}

// TestConfiguredNames: a configuration takes the names that New takes.
func TestConfiguredNames(t *testing.T) {
	field, _ := reflect.TypeFor[config.Source]().FieldByName("Verify")
	names := strings.Fields(field.Tag.Get("oneof"))
	if got, want := slices.Sorted(slices.Values(names)), verify.Schemes(nil); !slices.Equal(got, want) {
		t.Errorf("Verify in core/config/entries.go has oneof %v, want %v", got, want)
	}
	for pair := range strings.FieldsSeq(field.Tag.Get("also")) {
		alias, name, _ := strings.Cut(pair, "=")
		if aliases[alias] != name {
			t.Errorf("Verify in core/config/entries.go has also %s, want one of %v", pair, aliases)
		}
		names = append(names, alias)
	}
	if got, want := slices.Sorted(slices.Values(names)), verify.Names(); !slices.Equal(got, want) {
		t.Errorf("Verify in core/config/entries.go has the names %v, want %v", got, want)
	}
}
