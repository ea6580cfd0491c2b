package infra_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestOnce: make test runs some packages under the race detector alone. The detector's run leaves
// none of them out. A test of theirs that is skipped there, or that depends on -short, on the
// detector or on allocations, runs without it too.
func TestOnce(t *testing.T) {
	makefile := string(read(t, "../Makefile"))
	both, serial := regexp.MustCompile(setting(t, makefile, "BOTH")), setting(t, makefile, "SERIAL")
	differs := regexp.MustCompile(`testing\.Short\(|AllocsPerRun|GATEWAY_TEST_WHOLE|storetest\.Whole\(|func Test(` + serial + `)\(`)
	bothIn := strings.Fields(setting(t, makefile, "BOTHIN"))
	left := map[string]bool{} // packages of BOTHIN that have no such test
	for _, p := range bothIn {
		left[strings.TrimPrefix(p, "./")] = true
	}
	unused := alternatives(setting(t, makefile, "BOTH"))
	pure, few := packages(t, makefile, "PURE"), packages(t, makefile, "FEW")
	elsewhere := regexp.MustCompile(`^(cmd/|infra|store/(postgres|mysql|hosted)$|functions/e2e$)`)
	for name := range packages(t, makefile, "ONCE") {
		sources := testsOf(t, name)
		for file, f := range sources.files {
			if regexp.MustCompile(`(?m)^//go:build .*race`).MatchString(f) {
				t.Errorf("%s depends on the race detector, so its package must not be in ONCE", file)
			}
		}
		for test := range sources.reach(func(d ast.Node) bool { return differs.MatchString(sources.text(d)) }) {
			if !both.MatchString(test) || !slices.Contains(bothIn, "./"+name) {
				t.Errorf("%s of %s differs under the race detector or -short, so BOTH and BOTHIN must name it", test, name)
			}
			delete(left, name)
			unused = slices.DeleteFunc(unused, func(u string) bool { return "Test"+u == test })
		}
		if pure[name] || few[name] || elsewhere.MatchString(name) {
			t.Errorf("%s is in ONCE, but make race does not run it", name)
		}
	}
	if len(left) > 0 || len(unused) > 0 {
		t.Errorf("BOTHIN and BOTH name what no package in ONCE has: %v, %q", slices.Collect(maps.Keys(left)), unused)
	}
	const whole = "-skip '^Test($(SERIAL))$$' $$($(GO) list ./... | grep -Ev '/store/(postgres|mysql|hosted)$$|/cmd/|/functions/|/infra|/$(PURE)$$|/$(FEW)$$')"
	if race := regexp.MustCompile(`(?m)^race-packages:\n.*$`).FindString(makefile); !strings.Contains(race, whole) {
		t.Errorf("the first command of make race-packages does not run all packages but those that it leaves out:\n%s", race)
	}
	if race := regexp.MustCompile(`(?m)^race-served:\n.*$`).FindString(makefile); !strings.Contains(race, " ./functions/internal/...") {
		t.Errorf("the first command of make race-served does not run the functions' tests:\n%s", race)
	}
	if !strings.Contains(makefile, "\nrace: race-packages race-programs race-served ##") {
		t.Error("make race has not its three parts")
	}
}

// TestRaced: the race detector leaves out packages that have no goroutines and no locks, and in
// others the tests that have no goroutines.
func TestRaced(t *testing.T) {
	makefile := string(read(t, "../Makefile"))
	shared := regexp.MustCompile(setting(t, makefile, "SHARED"))
	few := packages(t, makefile, "FEW")
	unused := alternatives(setting(t, makefile, "SHARED"))
	for name := range packages(t, makefile, "PURE") {
		if few[name] {
			t.Errorf("%s is in PURE and in FEW", name)
		}
		for test := range testsOf(t, name).reach(concurrent) {
			t.Errorf("%s of %s has goroutines, so its package must not be in PURE", test, name)
		}
		if code := codeOf(t, name); code.has(locks) || code.has(concurrent) {
			t.Errorf("%s has goroutines or locks, so it must not be in PURE", name)
		}
	}
	for name := range few {
		if codeOf(t, name).has(concurrent) {
			t.Errorf("%s starts goroutines, so it must not be in FEW", name)
		}
		for test := range testsOf(t, name).reach(concurrent) {
			if !shared.MatchString(test) {
				t.Errorf("%s of %s has goroutines, so SHARED must name it", test, name)
			}
			unused = slices.DeleteFunc(unused, func(u string) bool { return "Test"+u == test })
		}
	}
	if len(unused) > 0 {
		t.Errorf("SHARED names %q, which have no goroutines", unused)
	}
}

// setting returns the value of a variable of the Makefile.
func setting(t *testing.T, makefile, variable string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + variable + ` +:= (.+)$`).FindStringSubmatch(makefile)
	if m == nil {
		t.Fatalf("the Makefile has no variable %s", variable)
	}
	return strings.ReplaceAll(m[1], "$$", "$")
}

// alternatives returns A and B of ^Test(A|B)$.
func alternatives(of string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(of, "^Test("), ")$"), "|")
}

// packages returns the folders that a variable of the Makefile selects, as a regular expression for
// the ends of their names.
func packages(t *testing.T, makefile, variable string) map[string]bool {
	t.Helper()
	set := map[string]bool{}
	for _, part := range regexp.MustCompile(`([a-z/]+)/\(([a-z/|]+)\)|([a-z/]+)`).FindAllStringSubmatch(setting(t, makefile, variable), -1) {
		if part[3] != "" {
			set[part[3]] = true
		}
		for _, name := range strings.FieldsFunc(part[2], func(r rune) bool { return r == '|' }) {
			set[part[1]+"/"+name] = true
		}
	}
	if len(set) == 0 {
		t.Fatalf("the Makefile has no packages in %s", variable)
	}
	return set
}

// sources are the parsed files of a package: of its tests, or of the rest.
type sources struct {
	set    *token.FileSet
	files  map[string]string // name: text
	parsed []*ast.File
}

func testsOf(t *testing.T, folder string) sources { return parsed(t, folder, true) }
func codeOf(t *testing.T, folder string) sources  { return parsed(t, folder, false) }

func parsed(t *testing.T, folder string, tests bool) sources {
	t.Helper()
	s := sources{set: token.NewFileSet(), files: map[string]string{}}
	names, _ := filepath.Glob("../" + folder + "/*.go")
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") != tests {
			continue
		}
		s.files[name] = string(read(t, name))
		f, err := parser.ParseFile(s.set, name, s.files[name], parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		s.parsed = append(s.parsed, f)
	}
	if len(s.files) == 0 {
		t.Errorf("the Makefile names %s, which has no tests or no code", folder)
	}
	return s
}

func (s sources) text(d ast.Node) string {
	begin, end := s.set.Position(d.Pos()), s.set.Position(d.End())
	return s.files[begin.Filename][begin.Offset:end.Offset]
}

// reach returns the names of the tests, fuzz targets included, that have a property, or that name a
// declaration of their package which has it, in any number of steps.
func (s sources) reach(has func(ast.Node) bool) map[string]bool {
	names := map[string]bool{}
	for more := true; more; {
		more = false
		for _, f := range s.parsed {
			for _, d := range f.Decls {
				if !has(d) && !mentions(d, names) {
					continue
				}
				for _, name := range declared(d) {
					more = more || !names[name]
					names[name] = true
				}
			}
		}
	}
	maps.DeleteFunc(names, func(name string, _ bool) bool {
		return name == "TestMain" || !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz")
	})
	return names
}

func declared(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		names = append(names, d.Name.Name)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				for _, name := range v.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

func mentions(n ast.Node, names map[string]bool) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && names[id.Name]
		return !found
	})
	return found
}

// concurrent reports whether a declaration starts goroutines, itself or by what the tests use for it.
func concurrent(n ast.Node) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.SelectorExpr:
			of, _ := n.X.(*ast.Ident)
			found = found || n.Sel.Name == "Go" || n.Sel.Name == "Parallel" || n.Sel.Name == "AfterFunc" || of != nil && of.Name == "httptest" && n.Sel.Name == "NewServer"
		}
		return !found
	})
	return found
}

// locks reports whether a declaration has a type of sync, or of sync/atomic.
func locks(n ast.Node) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		sel, _ := n.(*ast.SelectorExpr)
		if sel != nil {
			of, _ := sel.X.(*ast.Ident)
			found = found || of != nil && (of.Name == "atomic" || of.Name == "sync" && !strings.HasPrefix(sel.Sel.Name, "Once"))
		}
		return !found
	})
	return found
}

// has reports whether a declaration has a property.
func (s sources) has(property func(ast.Node) bool) bool {
	for _, f := range s.parsed {
		for _, d := range f.Decls {
			if property(d) {
				return true
			}
		}
	}
	return false
}
