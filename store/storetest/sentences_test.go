package storetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// This file keeps the suite and the interfaces in step. It reads the comments of core/store.go and
// core/transition.go and splits them into sentences. A sentence without a check is a promise that
// no driver is held to. A check without a sentence tests something that no caller may rely on.

// unchecked lists the sentences that no check here can hold a store to, with the place that does
// or with a reason.
var unchecked = map[string]string{
	"It refuses a database of a newer version":                                                           "the drivers, who can make one",
	"The schema of an empty database is at step 0, and a schema that lacks a step is at the step before": "the drivers, who can make one",
	"A database of a newer version has a higher step than Migrate brings it to":                          "the drivers, who can make one",
	"It counts up to MaxDepth": "store/sqlite, which can make as many quickly",
	"The caller must be the only process that takes from those lanes, such as a process that starts on its own database file":     "a demand on callers",
	"Each call reads a bounded part of the tables, and the next call continues after it: more says whether a part is left unread": "store/sqlite, which can make as much quickly",
	"It sends the statements of that work, and returns an error while they fail":                                                  "store/sqlite, where tables can be broken quickly, and cmd/gateway/e2e on servers",
	"The caller passes at most MaxTogether arrivals":                                                                              "a demand on callers",
	"An Inbox stores events":                                "a title",
	"An Express stores events whose jobs are taken at once": "a title",
	"If the error leaves open whether the arrival was stored, the jobs that may have been taken come with it": "RunFaults, which loses answers",
	"Release gives back those that were":                                             "RunFaults, which loses answers",
	"A Worklist leases due work and records its outcomes":                            "a title",
	"A Counter settles and extends the jobs that consumers of a queue have received": "a title",
	"Of the unfinished jobs of a lane it reads the jobs that are due last, up to FailureReach; More is true as well if a lane has more of them":             "store/sqlite, which can make as many quickly",
	"It reads at most MaxDepth unfinished jobs of a lane, the first due of them":                                                                            "store/sqlite, which can make as many quickly",
	"It reads as many entries of an index as there are newer events":                                                                                        "a cost, which the drivers' plans show",
	"The clock was set back between the two times, and ids grow on as if it had not been: so the events of a period are the events with ids of that period": "a reason",
	"The caller uses few names, which are constants":                                                                                                        "a demand on callers",
	"An Archive returns stored events in full, with their jobs and attempts":                                                                                "a title",
	"A Calendar stores up to when the slots of the cron sources are dealt with, so that a process finds the slots that became due while no process watched": "a title",
	"A Ledger answers queries about events and jobs":                                                                                                        "a title",
	"A Backlog counts jobs by lane and state, and shows the jobs that wait in a lane":                                                                       "a title",
	"It shows statuses as a [Ledger] does":                                                                                                                  "a title",
	"Operations are the changes that operators ask for":                                                                                                     "a title",
	"Holds stops lanes and lets them go on":                                                                                                                 "a title",
	"Upkeep has the operations of the start of a process, and its regular duties":                                                                           "a title",
	"Runs stores the changes of workflow runs":                                                                                                              "a title",
	"A Chronicle answers queries about runs":                                                                                                                "a title",
	"Lines has the calls that only lanes with lines need":                                                                                                   "a title",
	"An Audit keeps the entries of changes":                                                                                                                 "a title",
	"Only PurgeAudit deletes an entry, and no method changes one":                                                                                           "no other method has a statement for it",
	"It is for a change that no other method of the store makes":                                                                                            "a reason",
	"See [Line]": "a reference",
	"Minutes keeps how much happened in each minute":                                                "a title",
	"An OperationLog stores operations and does their slices":                                       "a title",
	"Otherwise the caller reads from the old cursor again: it then finds the matches that are left": "a demand on callers",
}

// TestEachSentenceHasACheck requires a check for each sentence of the roles' comments, and a
// sentence for each check of a role. The roles that are not listed below, such as odd texts and
// races, check aspects of many sentences and have names of their own.
func TestEachSentenceHasACheck(t *testing.T) {
	held := map[string]bool{}
	for _, g := range roles() {
		for _, c := range g.checks {
			held[c.sentence] = true
		}
	}
	said := map[string]bool{}
	for _, file := range []string{"store.go", "transition.go", "line.go", "operation.go", "audit.go", "minutes.go"} {
		for _, s := range sentences(t, "../../core/"+file) {
			said[s] = true
			if !held[s] && unchecked[s] == "" {
				t.Errorf("core/%s says %q, and no check is named so", file, s)
			}
		}
	}
	for _, g := range []role{inbox, expresses, worklist, counter, calendar, runs, archive, chronicle, upkeep, operations, operationLog, minutes, queues, audits} {
		for _, c := range g.checks {
			if !said[c.sentence] {
				t.Errorf("the check %q is no sentence of core/store.go, core/transition.go or core/line.go", c.sentence)
			}
		}
	}
	for s := range unchecked {
		if !said[s] {
			t.Errorf("%q is no sentence of core/store.go, core/transition.go or core/line.go", s)
		}
	}
}

// TestNamesAreUnique requires different names in a role. Of two checks with one name, a pattern of
// -run would select both, and the tests of broken stores would find only the first.
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

// sentences returns the sentences of the comments on the role interfaces of a file and on their
// methods. The interface Store is left out: it only embeds the roles.
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

// split returns the sentences of a comment without their full stops. A sentence ends at a full
// stop that a blank follows, so abbreviations and code such as "core.Job" do not end one.
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
