package infra_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOnce: make test runs some packages under the race detector alone. The detector's run leaves
// none of them out, and their tests do the same with and without it and -short.
func TestOnce(t *testing.T) {
	makefile := string(read(t, "../Makefile"))
	packages := func(variable string) map[string]bool {
		m := regexp.MustCompile(`(?m)^` + variable + ` +:= core/\(([a-z/|]+)\)$`).FindStringSubmatch(makefile)
		if m == nil {
			t.Fatalf("the Makefile has no packages in %s", variable)
		}
		set := map[string]bool{}
		for name := range strings.SplitSeq(m[1], "|") {
			set["core/"+name] = true
		}
		return set
	}
	skipped := regexp.MustCompile(`(?m)^SERIAL +:= ([A-Za-z|]+)$`).FindStringSubmatch(makefile)
	if skipped == nil {
		t.Fatal("the Makefile has no tests in SERIAL")
	}
	differs := regexp.MustCompile(`testing\.Short\(|AllocsPerRun|//go:build .*race|func Test(` + skipped[1] + `)\(`)
	pure := packages("PURE")
	for name := range packages("ONCE") {
		if pure[name] {
			t.Errorf("%s is in ONCE and in PURE, so make test runs it never", name)
		}
		files, _ := filepath.Glob("../" + name + "/*.go")
		if len(files) == 0 {
			t.Errorf("ONCE names %s, which does not exist", name)
		}
		for _, f := range files {
			if found := differs.Find(read(t, f)); found != nil {
				t.Errorf("%s has %s, so its package must not be in ONCE", f, found)
			}
		}
	}
	if race := regexp.MustCompile(`(?m)^race:.*\n.*$`).FindString(makefile); !strings.Contains(race, "-skip '^Test($(SERIAL))$$' $$($(GO) list ./... |") {
		t.Errorf("the first command of make race does not run all packages but those that it leaves out:\n%s", race)
	}
}
