package core_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
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

// The rings, from the inside out. A package imports packages of rings further in, and packages
// of its own ring only as neighbours says.
var rings = []struct {
	name     string
	packages []string // patterns; /... covers the packages below
}{
	{"vocabulary", []string{"core"}},
	{"pure: no IO, and no role of the store", []string{
		"core/units", "core/endpoint", "core/expr", "core/cron", "core/verify", "core/sns", "core/config", "core/workflow", "proto/..."}},
	{"services: they decide, and let others do IO", []string{
		"core/intake", "core/worker", "core/runner", "core/pull", "core/manage", "core/alert", "core/retention", "core/telemetry", "store"}},
	{"edges: HTTP, gRPC, metrics, databases", []string{
		"core/wire", "core/web/...", "core/egress", "core/config/remote/...", "core/telemetry/metrics", "core/telemetry/traces",
		"store/group", "store/sqlite", "store/postgres", "store/mysql", "store/hosted", "store/storetest"}},
	{"assembly", []string{"core/gateway"}},
	{"mains", []string{"cmd/...", "functions/..."}},
}

// neighbours are the imports within a ring, and why each is.
var neighbours = map[string]string{
	"core/verify core/endpoint":                   "keys of Standard Webhooks are read in one way, in and out",
	"core/sns core/endpoint":                      "addresses of topics are endpoints",
	"core/config core/units":                      "fields are durations",
	"core/config core/endpoint":                   "what a configuration means is known without a network",
	"core/config core/expr":                       "expressions are parsed once, when they are read",
	"core/config core/cron":                       "schedules are parsed once, when they are read",
	"core/config core/verify":                     "schemes have names and rules for secrets",
	"core/config core/sns":                        "topics have names",
	"core/workflow core/config":                   "definitions are compiled from the configuration",
	"core/workflow core/expr":                     "steps evaluate conditions and templates",
	"core/alert core/worker":                      "an alert is a target of the worker",
	"core/web core/wire":                          "replies are records",
	"core/web/lambda core/web":                    "requests of functions are served by the same routes",
	"core/config/remote core/egress":              "an address is read through the guard of addresses",
	"core/config/remote/cloud core/egress":        "an address is read through the guard of addresses",
	"core/config/remote/cloud core/config/remote": "object stores are one more kind of address",
	"store/sqlite store/group":                    "batches share commits",
	"store/postgres store/group":                  "batches share commits",
	"store/mysql store/group":                     "batches share commits",
	"store/hosted store/group":                    "batches share commits",
}

// The rules beside the rings. A rule names packages by pattern (/... also covers the
// packages below), the packages that they must not import, and the reason. A direct ban
// does not apply to packages that are reached through others: fmt itself reaches os.
var rules = []struct {
	of, not string
	direct  bool
	why     string
}{
	{"core", module + "/...", false, "the vocabulary depends on nothing of ours"},
	{"core/units", module + "/...", false, "quantities need nothing of ours"},
	{"core/endpoint", module + "/...", false, "shapes of URLs and headers need nothing of ours"},
	{"core/expr", module + "/...", false, "expressions know documents, not events"},

	{"core/intake", module + "/core/workflow", false, "intake is told what begins a run and what its params are"},
	{"core/worker", module + "/core/workflow", false, "the worker is told what became of a step"},
	{"core/retention", module + "/core/...", false, "the store decides what is over"},
	{"core/telemetry/...", module + "/core/config", false, "names are passed in"},
	{"core/telemetry/traces", module + "/core/...", false, "traces are made of facts"},
	{"core/gateway", module + "/core/config/remote/...", false, "a configuration is read before it is assembled"},
	{"core/gateway", module + "/core/telemetry/traces", false, "a function has no use for an exporter in the background"},
	{"core/...", module + "/store/...", false, "core declares, store implements"},
	{"store/...", module + "/core/...", false, "the store knows the vocabulary, not the services"},
	{"core/web/lambda", module + "/store", false, "what comes in does not know what stores"},
	{"cmd/gateway", module + "/core/web/lambda", false, "a server gets requests, not events"},
	{"cmd/gateway", module + "/functions/...", false, "mains import, they are not imported"},
	{"cmd/gateway", module + "/infra/...", false, "servers for tests are no part of the program"},
	{"functions/...", module + "/cmd/...", false, "mains import, they are not imported"},
	{"functions/...", module + "/store/sqlite", false, "a function has no disk that lasts"},
	{"functions/...", module + "/core/config/remote/cloud", false, "a configuration is packaged, or at an http(s) address"},

	{"core/config", "database/sql", false, "configuration names a driver, it does not load one"},
	{"core/expr", "database/sql", false, "the pure ring is testable without a machine"},
	{"core/workflow", "database/sql", false, "the pure ring is testable without a machine"},
	{"core/config/remote/...", "os", true, "the environment is read through a lookup function"},
	{"core/wire", "net/http", true, "records know their shape, the edge knows HTTP"},
	{"core/wire", "os", true, "records know their shape, the edge knows HTTP"},
	{"store", "database/sql", false, "a Conn is all the store sees of a database"},

	{"core/...", "modernc.org/...", false, "drivers are the store's"},
	{"core/...", "github.com/spf13/...", false, "the command line is cmd's"},
	{"core/...", "github.com/getkin/...", false, "the description of the routes is checked by tests, not by the program"},
	{"core/config/remote", "gocloud.dev/...", false, "functions read addresses too, and the providers' libraries are larger than they may be"},
	{"core/gateway", "github.com/prometheus/...", false, "functions are assembled here too, and all but one show no metrics"},
	{"core/gateway", "go.opentelemetry.io/...", false, "only core/telemetry/traces knows the SDK"},
	{"store", "modernc.org/...", false, "dialects are text; drivers live in a folder each"},

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

// pure is the number of rings, from the inside, whose packages do not import the packages of
// io themselves.
const pure = 3

var io = []string{"net/http", "os", "database/sql"}

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

// libraries are the well-known packages that do a part of the work, and where. The project
// uses them and does not write that part itself.
var libraries = []struct{ of, library, why string }{
	{"core/web/lambda", "github.com/aws/aws-lambda-go/events", "events of Lambda"},
	{"core/web/lambda", "github.com/awslabs/aws-lambda-go-api-proxy/core", "requests of API Gateway and function URLs"},
	{"functions/internal/boot", "github.com/aws/aws-lambda-go/lambda", "the runtime API of Lambda"},
	{"core/web", "github.com/go-chi/chi/v5", "routes"},
	{"core/config", "gopkg.in/yaml.v3", "configuration files"},
	{"core/config/remote/cloud", "gocloud.dev/blob", "configurations in object stores"},
	{"core/egress", "google.golang.org/grpc", "deliveries to gRPC receivers"},
	{"store/hosted", "github.com/hashicorp/go-retryablehttp", "requests to D1, which are sent again"},
	{"store/mysql", "github.com/go-sql-driver/mysql", "the protocol of MySQL and MariaDB"},
	{"store/postgres", "github.com/jackc/pgx/v5/pgxpool", "the protocol of PostgreSQL"},
	{"store/sqlite", "modernc.org/sqlite", "SQLite without C"},
}

// TestLibraries fails if the project no longer uses one of the libraries for its part.
func TestLibraries(t *testing.T) {
	imports := map[string][]string{}
	for _, p := range packages(t) {
		imports[p.ImportPath] = append(imports[p.ImportPath], p.Imports...)
	}
	for _, l := range libraries {
		if !slices.Contains(imports[module+"/"+l.of], l.library) {
			t.Errorf("%s does not import %s: %s", l.of, l.library, l.why)
		}
	}
}

// ringOf is the number of the ring of a package; -1 for a package of none.
func ringOf(path string) int {
	path = strings.TrimPrefix(path, module+"/")
	for i, r := range rings {
		for _, pattern := range r.packages {
			if covers(pattern, path) {
				return i
			}
		}
	}
	return -1
}

func TestRings(t *testing.T) {
	met := map[string]bool{}
	for _, p := range packages(t) {
		ring, name := ringOf(p.ImportPath), strings.TrimPrefix(p.ImportPath, module+"/")
		if ring < 0 {
			if !covers("infra/...", name) {
				t.Errorf("%s is in no ring: give it its place in deps_test.go", name)
			}
			continue
		}
		for _, imported := range p.Imports {
			if ring < pure && slices.Contains(io, imported) {
				t.Errorf("%s imports %s: the ring %q does no IO", name, imported, rings[ring].name)
			}
			other, of := strings.CutPrefix(imported, module+"/")
			switch r := ringOf(imported); {
			case !of || r < 0 && !covers("infra/...", other), r >= 0 && r < ring, covers("cmd/...", name) && covers("cmd/...", other), covers("functions/...", name) && covers("functions/...", other):
			case covers("cmd/bench/...", name) && covers("infra/...", other): // it starts the servers that the tests start
			case r == ring && neighbours[name+" "+other] != "":
				met[name+" "+other] = true
			case r == ring:
				t.Errorf("%s imports %s of its own ring: say why in neighbours, or pass in what it needs", name, other)
			default:
				t.Errorf("%s imports %s, which is in a ring further out", name, other)
			}
		}
	}
	for pair := range neighbours {
		if !met[pair] {
			t.Errorf("neighbours has %q, and there is no such import", pair)
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

// TestHouse checks house rules that no linter here checks. Every package and every exported
// name has a comment. No file and no function is so long that it must hold two ideas.
// Outgoing calls are made through core/egress, where the address guard is. No stored time
// is compared with the machine's clock.
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
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
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
	checkFunctions(t, fset, path, f)
	if f.Name.Name != "main" {
		checkDocs(t, path, f)
	}
	checkOutbound(t, strings.TrimPrefix(path, "../"), f)
	checkMachineTimes(t, strings.TrimPrefix(path, "../"), f)
}

// maxFunction is how many lines a function may have, and maxMethods how many methods an
// interface may have itself, beside those of interfaces that it embeds.
const (
	maxFunction = 65
	maxMethods  = 8
)

func checkFunctions(t *testing.T, fset *token.FileSet, path string, f *ast.File) {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
		if n > maxFunction {
			t.Errorf("%s: %s has %d lines; at most %d", path, fn.Name.Name, n, maxFunction)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if i, ok := n.(*ast.InterfaceType); ok && i.Methods.NumFields() > maxMethods {
			own := slices.DeleteFunc(slices.Clone(i.Methods.List), func(m *ast.Field) bool { return len(m.Names) == 0 })
			if len(own) > maxMethods {
				t.Errorf("%s: an interface has %d methods; at most %d", path, len(own), maxMethods)
			}
		}
		return true
	})
}

// checkDocs checks that exported types, functions, and methods of exported types have a
// comment. Methods whose interface is documented by the standard library need none.
func checkDocs(t *testing.T, path string, f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) && !standard[d.Name.Name] {
				t.Errorf("%s: %s has no comment", path, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if ts, ok := spec.(*ast.TypeSpec); ok && ts.Name.IsExported() && d.Doc == nil && ts.Doc == nil {
					t.Errorf("%s: type %s has no comment", path, ts.Name.Name)
				}
			}
		}
	}
}

var standard = map[string]bool{"Error": true, "Unwrap": true, "Is": true, "As": true, "String": true, "Close": true, "Read": true, "Write": true, "Len": true, "Less": true, "Swap": true}

func exportedReceiver(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	name, ok := of.(*ast.Ident)
	return ok && name.IsExported()
}
