package storetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// elsewhere are the sentences that no check here can hold a store to, and who does.
var elsewhere = map[string]string{
	"A database of a newer version is refused":                                                   "the drivers, who can make one",
	"That of an empty database is at step 0, and one that misses a step at the step before that": "the drivers, who can make one",
	"A database of a newer version has come further":                                             "the drivers, who can make one",
	"It counts up to MaxDepth":                                                                   "store/sqlite, which can make as many quickly",
	"It is sound only while the caller is the sole taker of those lanes, as a process that starts on its own database file is":                              "a demand on callers",
	"However much there is, a call looks at a bounded part, and the next one goes on from there: more tells whether there is a part that was not looked at": "store/sqlite, which can make as much quickly",
	"It sends the statements of that work, and fails while they fail":                                                                                       "store/sqlite, where tables can be broken quickly, and cmd/gateway/e2e on servers",
	"There are at most MaxTogether":                                                                                                "a demand on callers",
	"An Inbox takes events in":                                                                                                     "a title",
	"A Worklist hands out due work and records what became of it":                                                                  "a title",
	"A Counter is where consumers of a queue hand back what they took":                                                             "a title",
	"Of the jobs of a lane that are not finished it looks at MaxDepth, those that are due first":                                   "store/sqlite, which can make as many quickly",
	"It counts up to MaxDepth, and beside more than ten times as many dead ones it may be too high":                                "store/sqlite, which can make as many quickly",
	"It reads as many entries of an index as there are newer events":                                                               "a cost, which the drivers' plans show",
	"The clock was set back meanwhile, and ids grow on as if it had not been; so events of a time are those with ids of that time": "a reason",
	"Names are few and constant":                                                                                                   "a demand on callers",
	"An Archive gives back what was received":                                                                                      "a title",
	"A Calendar remembers how far the cron sources have come, so that a slot which became due while nobody looked can be told from one that was fired": "a title",
	"A Ledger answers questions":                          "a title",
	"Upkeep is what operators and start-up do to a store": "a title",
	"Runs is where workflow runs move":                    "a title",
	"A Chronicle answers questions about runs":            "a title",
}

// Each sentence of the roles' comments is a check's name, and each name that
// looks like one is still a sentence there.
func TestEachSentenceHasACheck(t *testing.T) {
	held := map[string]bool{}
	for _, g := range roles() {
		for _, c := range g.checks {
			held[c.says] = true
		}
	}
	said := map[string]bool{}
	for _, file := range []string{"store.go", "transition.go"} {
		for _, s := range sentences(t, "../../core/"+file) {
			said[s] = true
			if !held[s] && elsewhere[s] == "" {
				t.Errorf("core/%s says %q, and no check is named so", file, s)
			}
		}
	}
	for _, g := range []role{inbox, worklist, counter, calendar, runs, archive, chronicle, upkeep, operations, queues} {
		for _, c := range g.checks {
			if !said[c.says] {
				t.Errorf("the check %q is no sentence of core/store.go or core/transition.go", c.says)
			}
		}
	}
	for s := range elsewhere {
		if !said[s] {
			t.Errorf("%q is no sentence of core/store.go or core/transition.go", s)
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	for _, g := range roles() {
		seen := map[string]bool{}
		for _, c := range g.checks {
			if seen[c.name()] {
				t.Errorf("%s has two checks %q", g.name, c.name())
			}
			seen[c.name()] = true
		}
	}
}

// sentences are those of the comments on the role interfaces and their methods.
func sentences(t *testing.T, file string) []string {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, spec := range g.Specs {
			role, ok := spec.(*ast.TypeSpec).Type.(*ast.InterfaceType)
			if !ok || len(role.Methods.List) == 0 || spec.(*ast.TypeSpec).Name.Name == "Store" {
				continue
			}
			out = append(out, split(g.Doc.Text())...)
			for _, m := range role.Methods.List {
				out = append(out, split(m.Doc.Text())...)
			}
		}
	}
	return out
}

func split(comment string) []string {
	text := strings.Join(strings.Fields(comment), " ")
	var out []string
	for s := range strings.SplitSeq(text, ". ") {
		if s = strings.TrimSuffix(s, "."); s != "" {
			out = append(out, s)
		}
	}
	return out
}
