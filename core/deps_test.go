package core_test

import (
	"bytes"
	"encoding/json"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/eventgateway/gateway"

// The dependency rule. A rule names packages by pattern (/... covers what is
// below), what they must not import, and why. A banned name that ends in /...
// covers what is below it too. Bans marked direct leave alone what a package
// reaches through others: fmt itself reaches os.
var rules = []struct {
	of, not string
	direct  bool
	why     string
}{
	{"core", module + "/...", false, "the vocabulary depends on nothing of ours"},
	{"core", "net/http", true, "the vocabulary does no IO"},
	{"core", "os", true, "the vocabulary does no IO"},
	{"core", "database/sql", true, "the vocabulary does no IO"},

	{"core/verify", "net/http", true, "the pure ring is testable without a machine"},
	{"core/verify", "os", true, "the pure ring is testable without a machine"},
	{"core/endpoint", module + "/...", false, "shapes of URLs and headers need nothing of ours"},
	{"core/endpoint", "net/http", true, "the pure ring is testable without a machine"},
	{"core/cron", "net/http", true, "the pure ring is testable without a machine"},
	{"core/cron", "os", true, "the pure ring is testable without a machine"},
	{"core/expr", "net/http", true, "the pure ring is testable without a machine"},
	{"core/expr", "os", true, "the pure ring is testable without a machine"},
	{"core/expr", "database/sql", false, "the pure ring is testable without a machine"},
	{"core/config", "net/http", true, "configuration is read through an fs.FS and a lookup function"},
	{"core/config", "os", true, "configuration is read through an fs.FS and a lookup function"},
	{"core/config", "database/sql", false, "configuration names a driver, it does not load one"},
	{"core/config", module + "/core/egress", false, "what a configuration means is known without asking anybody"},
	{"core/config/remote", "os", true, "the environment is read through a lookup function"},
	{"core/config/remote", "gocloud.dev/...", false, "functions read addresses too, and the providers' libraries are larger than they may be"},
	{"core/config/remote/cloud", "os", true, "the environment is read through a lookup function"},
	{"core/gateway", module + "/core/config/remote/...", false, "what is assembled was read before"},

	{"core/sns", "net/http", true, "topics know addresses, the edge makes the calls"},
	{"core/sns", "os", true, "services do no IO of their own"},
	{"core/intake", "net/http", true, "intake knows events, the edge knows HTTP"},
	{"core/intake", "os", true, "services do no IO of their own"},
	{"core/alert", "net/http", true, "alerts are jobs, the worker's sender makes the calls"},
	{"core/alert", "os", true, "services do no IO of their own"},
	{"core/worker", "net/http", true, "the worker knows outcomes, the edge knows HTTP"},
	{"core/worker", "os", true, "services do no IO of their own"},

	{"core/retention", "net/http", true, "retention knows a store, and nobody outside"},
	{"core/retention", "os", true, "services do no IO of their own"},
	{"core/retention", module + "/core/...", false, "what is over is the store's to say"},
	{"core/pull", "net/http", true, "queues know messages, the edge knows HTTP"},
	{"core/pull", "os", true, "services do no IO of their own"},
	{"core/manage", "net/http", true, "operators come by HTTP or by the command line"},
	{"core/manage", "os", true, "services do no IO of their own"},

	{"core/wire", "net/http", true, "records know their shape, the edge knows HTTP"},
	{"core/wire", "os", true, "records know their shape, the edge knows HTTP"},
	{"core/wire", module + "/core/web", false, "arrows point down: edges and mains speak in records"},
	{"core/manage", module + "/core/wire", false, "services speak the vocabulary, edges and mains in records"},

	{"core/workflow", "net/http", true, "the state machine decides what happens, and lets others do it"},
	{"core/workflow", "os", true, "the pure ring is testable without a machine"},
	{"core/workflow", "database/sql", false, "the pure ring is testable without a machine"},
	{"core/runner", "net/http", true, "the runner knows answers, the edge knows HTTP"},
	{"core/runner", "os", true, "services do no IO of their own"},

	{"core/...", module + "/store/...", false, "core declares, store implements"},
	{"core/...", module + "/cmd/...", false, "mains import, they are not imported"},
	{"core/...", "modernc.org/...", false, "drivers are the store's"},
	{"core/...", "github.com/spf13/...", false, "the command line is cmd's"},
	{"core/...", "github.com/getkin/...", false, "the description of the routes is checked by tests, not by the program"},

	{"core/intake", module + "/core/web", false, "arrows point down: edges import services"},
	{"core/worker", module + "/core/egress", false, "arrows point down: edges import services"},
	{"core/pull", module + "/core/web", false, "arrows point down: edges import services"},
	{"core/manage", module + "/core/web", false, "arrows point down: edges import services"},
	{"core/intake", module + "/core/alert", false, "intake is told whom to alarm"},
	{"core/intake", module + "/core/workflow", false, "intake is told what begins a run and what its params are"},
	{"core/workflow", module + "/core/runner", false, "who decides does not know who acts"},
	{"core/workflow", module + "/core/worker", false, "runs know steps, the worker knows jobs"},
	{"core/workflow", module + "/core/intake", false, "a run begins with what is stored"},
	{"core/runner", module + "/core/worker", false, "runs know steps, the worker knows jobs"},
	{"core/runner", module + "/core/egress", false, "arrows point down: edges import services"},
	{"core/worker", module + "/core/workflow", false, "the worker is told what became of a step"},
	{"core/manage", module + "/core/runner", false, "what moves runs is passed in"},
	{"core/telemetry/traces", module + "/core/...", false, "traces are made of facts"},
	{"core/gateway", module + "/core/telemetry/traces", false, "a function has no use for what exports in the background"},
	{"core/gateway", "go.opentelemetry.io/...", false, "only core/telemetry/traces knows the SDK"},
	{"core/web", module + "/core/egress", false, "what comes in does not know what goes out"},
	{"core/egress", module + "/core/web", false, "what goes out does not know what comes in"},

	{"core/gateway", "github.com/prometheus/...", false, "functions are assembled here too, and all but one show no metrics"},
	{"core/telemetry", module + "/core/web", false, "what happened is told by who did it"},
	{"core/telemetry/metrics", module + "/core/web", false, "what happened is told by who did it"},
	{"core/telemetry/metrics", module + "/core/config", false, "names are passed in"},

	{"store", module + "/core/...", false, "the store knows the vocabulary, not the services"},
	{"store", "modernc.org/...", false, "dialects are text; drivers live in a folder each"},
	{"store", "database/sql", false, "a Conn is all the store sees of a database"},
	{"store/sqlite", module + "/core/...", false, "a driver knows the vocabulary, not the services"},
	{"store/postgres", module + "/core/...", false, "a driver knows the vocabulary, not the services"},
	{"store/mysql", module + "/core/...", false, "a driver knows the vocabulary, not the services"},
	{"store/hosted", module + "/core/...", false, "a driver knows the vocabulary, not the services"},
	{"cmd/gateway", module + "/infra/...", false, "servers for tests are no part of the program"},

	{"cmd/gateway", module + "/core/web/lambda", false, "a server gets requests, not events"},
	{"cmd/gateway", module + "/functions/...", false, "mains import, they are not imported"},
	{"core/...", module + "/functions/...", false, "mains import, they are not imported"},
	{"core/web/lambda", module + "/store", false, "what comes in does not know what stores"},

	{"functions/...", "modernc.org/...", false, "a function has no disk that lasts, and a cold start reads all that is linked"},
	{"functions/...", module + "/store/sqlite", false, "a function has no disk that lasts"},
	{"functions/...", "github.com/go-sql-driver/...", false, "a cold start reads all that is linked, and two databases are enough"},
	{"functions/...", "gocloud.dev/...", false, "a configuration is packaged, or at an http(s) address; object stores are larger than a function"},
	{"functions/...", module + "/core/config/remote/cloud", false, "a configuration is packaged, or at an http(s) address"},
	{"functions/...", "github.com/spf13/...", false, "a function has no command line"},
	{"functions/...", "go.opentelemetry.io/...", false, "nothing is exported in the background of a process that is stopped between two calls"},
	{"functions/...", "github.com/aws/aws-sdk-go-v2/service/...", false, "three calls without a client cost a few lines; clients cost megabytes"},
	{"functions/intake", "google.golang.org/grpc/...", false, "the worker calls receivers, and nobody else"},
	{"functions/pull", "google.golang.org/grpc/...", false, "the worker calls receivers, and nobody else"},
	{"functions/cron", "google.golang.org/grpc/...", false, "the worker calls receivers, and nobody else"},
	{"functions/pull", "github.com/prometheus/...", false, "intake shows the metrics, one function is enough for that"},
	{"functions/worker", "github.com/prometheus/...", false, "nobody can scrape a function that serves no requests"},
	{"functions/cron", "github.com/prometheus/...", false, "nobody can scrape a function that serves no requests"},
	{"functions/...", "html/template", false, "templates switch off the linker's dead-code removal"},
	{"functions/...", "text/template", true, "templates switch off the linker's dead-code removal"},

	// html/template itself is linked: net/rpc, which Google's libraries reach, parses a page
	// with it that nothing executes, and that is all right.
	{"cmd/gateway", "golang.org/x/net/trace", false, "templates that are executed switch off the linker's dead-code removal"},
	{"cmd/gateway", "html/template", true, "templates that are executed switch off the linker's dead-code removal"},
	{"cmd/gateway", "text/template", true, "templates switch off the linker's dead-code removal"},
}

// Packages that may break a rule, and why.
var excused = map[string]string{
	module + "/store/storetest": "a test suite, not part of the program",
}

type listed struct {
	ImportPath    string
	Imports, Deps []string
}

// packages are all there are, as they are built: functions in their own way.
func packages(t *testing.T) []listed {
	t.Helper()
	isFunction := func(p listed) bool { return covers(module+"/functions/...", p.ImportPath) }
	all := slices.DeleteFunc(list(t, "otel grpcnotrace", module+"/..."), isFunction)
	all = append(all, list(t, "lambda.norpc grpcnotrace nogrpc", module+"/functions/...")...)
	return append(all, list(t, "lambda.norpc grpcnotrace", module+"/functions/worker")...)
}

func list(t *testing.T, tags, pattern string) (all []listed) {
	t.Helper()
	cmd := exec.Command("go", "list", "-tags", tags, "-json=ImportPath,Imports,Deps", pattern)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p listed
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func covers(pattern, path string) bool {
	base, below := strings.CutSuffix(pattern, "/...")
	return path == base || below && strings.HasPrefix(path, base+"/")
}

func TestDependencyRule(t *testing.T) {
	used := make([]bool, len(rules))
	for _, p := range packages(t) {
		if excused[p.ImportPath] != "" {
			continue
		}
		for i, r := range rules {
			if !covers(module+"/"+r.of, p.ImportPath) {
				continue
			}
			used[i] = true
			reached := p.Deps
			if r.direct {
				reached = p.Imports
			}
			for _, dep := range reached {
				if covers(r.not, dep) && dep != p.ImportPath && dep != module+"/core" {
					t.Errorf("%s reaches %s: %s", p.ImportPath, dep, r.why)
				}
			}
		}
	}
	for i, r := range rules {
		if !used[i] {
			t.Errorf("rule %q, not %q: no such package", r.of, r.not)
		}
	}
}

// TestSQLiteHasItsLibc: modernc.org/sqlite is generated together with one version
// of its C library and crashes in odd places with another, which a careless
// upgrade of something else may pull in.
func TestSQLiteHasItsLibc(t *testing.T) {
	list := func(args ...string) string {
		out, err := exec.Command("go", append([]string{"list", "-m"}, args...)...).Output()
		if err != nil {
			t.Fatalf("go list -m %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	gomod, err := os.ReadFile(filepath.Join(list("-f", "{{.Dir}}", "modernc.org/sqlite"), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	resolved := list("modernc.org/libc")
	if !strings.Contains(string(gomod), resolved+"\n") {
		t.Errorf("go.mod resolves %s, which is not what modernc.org/sqlite asks for:\n%s", resolved, gomod)
	}
}

// TestHouse holds what no linter here does: every package says what it is, no
// file is so long that it must hold two ideas, calls to the outside are made through
// core/egress, where the address guard is, and nothing stored is compared with the
// machine's clock.
func TestHouse(t *testing.T) {
	commented := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != ".."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".pb.go"):
			return nil
		}
		checkFile(t, path, commented)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, ok := range commented {
		if !ok {
			t.Errorf("%s has no package comment", dir)
		}
	}
	checkMachineTimesFound(t)
	for _, o := range outside {
		if !o.found {
			t.Errorf("%s has leave to call out and does not", o.path)
		}
	}
}

func checkFile(t *testing.T, path string, commented map[string]bool) {
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(src, []byte("\n")); n > 500 && !strings.HasSuffix(path, "_test.go") {
		t.Errorf("%s has %d lines; at most 500", path, n)
	}
	if strings.HasSuffix(path, "_test.go") {
		return
	}
	dir := filepath.Dir(path)
	commented[dir] = commented[dir] || f.Doc != nil
	checkOutbound(t, strings.TrimPrefix(path, "../"), f)
	checkMachineTimes(t, strings.TrimPrefix(path, "../"), f)
}
