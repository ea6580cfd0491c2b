package core_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strconv"
	"strings"
	"testing"
)

// machineTimes are the uses of the machine's clock: how many a file has, -1 for any
// number, and why none is compared with a stored time. Stored times are the database's, and
// are compared with the time of core.DatabaseClock, which packages get as their Clock.
var machineTimes = map[string]*struct {
	uses  int
	why   string
	found int
}{}

func init() {
	const many = -1
	const (
		duration  = "it measures the duration of an operation in this process"
		bound     = "it bounds the duration of an operation in this process"
		age       = "it is the age of a value that this process keeps"
		reference = "it is the machine's side of the database clock"
		foreign   = "it is compared with a time of another system"
	)
	for _, m := range []struct {
		path string
		uses int
		why  string
	}{
		{"core/clock.go", 1, reference},
		{"cmd/gateway/clock.go", 1, reference},
		{"cmd/gateway/clock_skewed.go", 1, reference},
		{"functions/internal/boot/boot.go", 1, reference},
		{"core/web/intake.go", 1, "it is a clock for tests, which store nothing"},

		{"core/sns/certificates.go", 1, foreign},
		{"core/sns/sns.go", 1, foreign},
		{"core/egress/client.go", 1, "receivers compare the times of signatures with their own clocks"},
		{"store/hosted/answer.go", 1, foreign},
		{"cmd/gateway/internal/doctor/outside.go", 2, foreign},
		{"functions/internal/boot/tick.go", 2, "the deadline of an invocation is a time of the machine"},

		{"core/config/remote/cloud/cloud.go", 1, duration},
		{"core/gateway/vitals.go", 2, duration},
		{"core/telemetry/metrics/store.go", many, duration},
		{"core/telemetry/metrics/storeaudit.go", 3, duration},
		{"core/telemetry/metrics/storeholds.go", 3, duration},
		{"core/telemetry/metrics/storelines.go", 6, duration},
		{"core/telemetry/metrics/storeoperations.go", 8, duration},
		{"core/telemetry/metrics/storeminutes.go", 4, duration},
		{"core/telemetry/metrics/storereads.go", many, duration},
		{"store/audit.go", 2, duration},
		{"store/purge.go", 6, duration},
		{"store/group/pace.go", 2, duration},
		{"store/timed.go", 4, duration},

		{"core/egress/answer.go", 1, bound},
		{"core/web/body.go", 1, bound},
		{"core/web/ops.go", 3, bound},
		{"core/web/queues.go", 3, bound},
		{"core/web/reply.go", 2, bound},
		{"store/overload.go", 4, bound},
		{"store/deadline.go", 1, bound},
		{"cmd/gateway/traces.go", 2, bound},
		{"functions/internal/boot/secrets.go", 1, bound},

		{"core/egress/direct.go", 1, age},
		{"core/egress/wire.go", 1, age},
		{"core/web/rate.go", 2, age},
		{"store/mysql/session.go", 2, age},
		{"store/postgres/liveness.go", 1, age},
		{"store/postgres/open.go", 2, age},
		{"store/sqlite/renew.go", 2, age},
	} {
		machineTimes[m.path] = &struct {
			uses  int
			why   string
			found int
		}{uses: m.uses, why: m.why}
	}
}

// checkMachineTimes looks for uses of the machine's clock that the list does not have.
func checkMachineTimes(t *testing.T, file string, f *ast.File) {
	for _, other := range []string{"cmd/bench/", "infra/", "store/storetest/"} { // not part of the program
		if strings.HasPrefix(file, other) {
			return
		}
	}
	uses := machineTimesIn(f)
	listed := machineTimes[file]
	if listed != nil {
		listed.found = uses
	}
	if uses > 0 && listed == nil {
		t.Errorf("%s reads the machine's clock, which may differ from the database's; take a core.Clock, or list the file here with the reason why no stored time is compared with it", file)
	}
}

// checkMachineTimesFound checks that each file of the list has as many uses as the list says.
func checkMachineTimesFound(t *testing.T) {
	for file, m := range machineTimes {
		if m.found != m.uses && (m.uses >= 0 || m.found == 0) {
			t.Errorf("%s reads the machine's clock %d times, and %d uses are listed; check for each that %s", file, m.found, m.uses, m.why)
		}
	}
}

// machineTimesIn counts the uses of the machine's clock in a file.
func machineTimesIn(f *ast.File) (uses int) {
	clocks := map[string]map[string]bool{} // by the file's name for the package
	for _, spec := range f.Imports {
		of, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(of)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		switch of {
		case "time":
			clocks[name] = map[string]bool{"Now": true, "Since": true, "Until": true}
		case module + "/core":
			clocks[name] = map[string]bool{"SystemClock": true}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && clocks[x.Name][sel.Sel.Name] {
				uses++
			}
		}
		return true
	})
	return uses
}

// TestMachineTimesAreSeen: the rule finds all forbidden uses, and no others.
func TestMachineTimesAreSeen(t *testing.T) {
	for _, c := range []struct {
		imports, code string
		want          int
	}{
		{`"time"`, `time.Now()`, 1},
		{`"time"`, `f := time.Now; f()`, 1},
		{`"time"`, `time.Since(a) + time.Until(b)`, 2},
		{`clock "time"`, `clock.Now()`, 1},
		{`"` + module + `/core"`, `core.NewIDs(core.SystemClock)`, 1},
		{`"time"`, `x.Now(); time.After(time.Second); time.UnixMilli(1)`, 0},
		{`"example.com/time"`, `clock.Now()`, 0},
	} {
		src := fmt.Sprintf("package p\nimport %s\nfunc f() {\n_ = %s\n}\n", c.imports, c.code)
		src = strings.Replace(src, "_ = f :=", "f :=", 1)
		src = strings.Replace(src, "_ = x", "x", 1)
		f, err := parser.ParseFile(token.NewFileSet(), "p.go", src, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%s: %v", c.code, err)
			continue
		}
		if got := machineTimesIn(f); got != c.want {
			t.Errorf("%s, %s: found %d, want %d", c.imports, c.code, got, c.want)
		}
	}
}
