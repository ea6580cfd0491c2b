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
	{"tools: they know nothing of a gateway", []string{"core/once", "core/order", "cmd/gateway/manual"}},
	{"vocabulary", []string{"core"}},
	{"pure: no IO, and no role of the store", []string{
		"core/units", "core/endpoint", "core/curl", "core/expr", "core/cron", "core/verify", "core/sns", "core/config", "core/workflow", "core/preview", "proto/..."}},
	{"services: they decide, and do IO through roles", []string{
		"core/intake", "core/worker", "core/runner", "core/pull", "core/manage", "core/operate", "core/alert", "core/retention", "core/lines", "core/series", "core/telemetry", "store"}},
	{"edges: HTTP, gRPC, metrics, databases", []string{
		"core/wire", "core/web/...", "core/egress", "core/config/remote/...", "core/telemetry/metrics", "core/telemetry/traces",
		"store/group", "store/sqlite", "store/postgres", "store/mysql", "store/hosted", "store/storetest"}},
	{"assembly", []string{"core/gateway"}},
	{"mains", []string{"cmd/...", "functions/..."}},
}

// neighbours are the permitted imports within a ring, each with its reason.
var neighbours = map[string]string{
	"core/verify core/endpoint":                   "keys of Standard Webhooks are parsed by the same code for both directions",
	"core/sns core/endpoint":                      "the URLs in notifications are checked as endpoints",
	"core/config core/units":                      "some fields are durations",
	"core/config core/endpoint":                   "URLs, headers and signing keys are checked without a network",
	"core/config core/expr":                       "expressions are parsed once, when they are read",
	"core/config core/cron":                       "schedules are parsed once, when they are read",
	"core/config core/verify":                     "names and secrets of signature schemes are checked",
	"core/config core/sns":                        "names of topics are checked",
	"core/workflow core/config":                   "definitions are compiled from the configuration",
	"core/workflow core/expr":                     "steps evaluate conditions and templates",
	"core/alert core/worker":                      "the worker delivers alerts, so an alert is one of its targets",
	"core/operate core/worker":                    "the worker does operations, so they are one of its targets",
	"core/manage core/operate":                    "a plan of an operation finds the matches as the operation does",
	"core/web core/wire":                          "replies are encoded records",
	"core/web core/web/console":                   "the console is served beside the API",
	"core/web/lambda core/web":                    "requests to functions are served by the same routes",
	"core/config/remote core/egress":              "configurations are fetched through the address guard",
	"core/config/remote/cloud core/egress":        "configurations are fetched through the address guard",
	"core/config/remote/cloud core/config/remote": "an object store implements the Store of that package",
	"store/sqlite store/group":                    "a group batches commits of several callers",
	"store/postgres store/group":                  "a group batches commits of several callers",
	"store/mysql store/group":                     "a group batches commits of several callers",
	"store/hosted store/group":                    "a group batches commits of several callers",
}

// The rules beside the rings. A rule names packages by pattern (/... also covers the
// packages below), the packages that they must not import, and the reason. A direct ban
// does not apply to packages that are reached through others: fmt itself reaches os.
var rules = []struct {
	of, not string
	direct  bool
	why     string
}{
	{"core/once", module + "/...", false, "a tool may be used by every package"},
	{"core/order", module + "/...", false, "a tool may be used by every package"},
	{"core", module + "/...", false, "the vocabulary imports no other package of this module"},
	{"core/units", module + "/...", false, "durations need no other package of this module"},
	{"core/endpoint", module + "/...", false, "checks of URLs and headers need no other package of this module"},
	{"core/expr", module + "/...", false, "expressions read documents and know no events"},
	{"core/preview", module + "/...", false, "a comparison decides nothing: its caller passes what the two configurations do"},

	{"core/intake", module + "/core/workflow", false, "intake gets the first step and the check of params from its caller"},
	{"core/worker", module + "/core/workflow", false, "the worker gets the result of a step from the runner"},
	{"core/retention", module + "/core/...", false, "the store decides which records are finished"},
	{"core/lines", module + "/core/...", false, "the store decides which jobs a line admits"},
	{"core/series", module + "/core/...", false, "what is counted is stated as facts"},
	{"core/telemetry/...", module + "/core/config", false, "the caller passes the configured names"},
	{"core/telemetry/traces", module + "/core/...", false, "traces are made from facts alone"},
	{"core/gateway", module + "/core/config/remote/...", false, "the caller fetches the configuration before the gateway is assembled"},
	{"core/gateway", module + "/core/telemetry/traces", false, "functions are assembled here too, and cannot run an exporter in the background"},
	{"core/...", module + "/store/...", false, "core declares the roles of a store, and store implements them"},
	{"store/...", module + "/core/...", false, "the store imports the vocabulary, not the services"},
	{"core/web/lambda", module + "/store", false, "the edge uses a store by its roles only"},
	{"cmd/gateway", module + "/core/web/lambda", false, "the program serves HTTP requests, not events of a cloud"},
	{"cmd/gateway", module + "/functions/...", false, "a main package is not imported by another one"},
	{"cmd/gateway", module + "/infra/...", false, "servers for tests are not part of the program"},
	{"cmd/gateway/internal/terminal", module + "/...", false, "it writes texts and tables, and knows no events, jobs or commands"},
	{"cmd/gateway/internal/terminal", "net/...", true, "output needs no network"},
	{"cmd/gateway/internal/remote", module + "/cmd/...", false, "other programs may use the client: its caller prints, and owns the flags"},
	{"cmd/gateway/internal/remote", module + "/store/...", false, "a server has the database, its client needs none"},
	{"cmd/gateway/internal/remote", "os", true, "the caller passes tokens and addresses"},
	{"cmd/gateway/internal/doctor", "os", true, "it prints nothing and reads no environment: the caller passes Deps"},
	{"cmd/gateway/internal/...", "github.com/spf13/...", false, "flags and commands are the main package's"},
	{"cmd/gateway", "github.com/jedib0t/...", true, "internal/terminal makes tables and colours"},
	{"functions/...", module + "/cmd/gateway", false, "a main package is not imported by another one"},
	{"functions/...", module + "/cmd/gateway/internal/...", false, "a main package and its parts are not imported by another one"},
	{"functions/intake", module + "/cmd/gateway/manual", false, "only the function pull serves the console"},
	{"functions/worker", module + "/cmd/gateway/manual", false, "only the function pull serves the console"},
	{"functions/cron", module + "/cmd/gateway/manual", false, "only the function pull serves the console"},
	{"cmd/gateway/manual", module + "/...", false, "it has texts only, which a function links as well"},
	{"functions/...", module + "/store/sqlite", false, "the disk of a function is not kept between its instances"},
	{"functions/...", module + "/core/config/remote/cloud", false, "the configuration of a function is in its package, or at an http or https address"},

	{"core/config", "database/sql", false, "the configuration names a driver and does not load it"},
	{"core/expr", "database/sql", false, "the pure ring is tested without a database"},
	{"core/workflow", "database/sql", false, "the pure ring is tested without a database"},
	{"core/config/remote/...", "os", true, "the environment is read through a lookup function of the caller"},
	{"core/wire", "net/http", true, "records are encoded without HTTP, which is the edge's"},
	{"core/wire", "os", true, "records are encoded without HTTP, which is the edge's"},
	{"store", "database/sql", false, "the store uses a database through a Conn only"},

	{"core/...", "modernc.org/...", false, "only the packages below store import drivers"},
	{"core/...", "github.com/spf13/...", false, "only cmd parses a command line"},
	{"core/...", "github.com/getkin/...", false, "only tests check the description of the routes"},
	{"core/config/remote", "gocloud.dev/...", false, "functions import this package, and the providers' libraries exceed their size limit"},
	{"core/gateway", "github.com/prometheus/...", false, "functions are assembled here too, and only one of them serves metrics"},
	{"core/gateway", "go.opentelemetry.io/...", false, "only core/telemetry/traces knows the SDK"},
	{"store", "modernc.org/...", false, "a dialect is text; each driver is in a folder of its own"},

	{"functions/...", "modernc.org/...", false, "the disk of a function is not kept, and a cold start reads everything that is linked"},
	{"functions/...", module + "/store/sqlite", false, "the disk of a function is not kept between its instances"},
	{"functions/...", "github.com/go-sql-driver/...", false, "a cold start reads everything that is linked, and functions support two databases"},
	{"functions/...", "gocloud.dev/...", false, "the libraries of object stores are larger than a function"},
	{"functions/...", module + "/core/config/remote/cloud", false, "the configuration of a function is in its package, or at an http or https address"},
	{"functions/...", "github.com/spf13/...", false, "a function has no command line"},
	{"functions/...", "go.opentelemetry.io/...", false, "a function is stopped between two calls, so it cannot export in the background"},
	{"functions/...", "github.com/aws/aws-sdk-go-v2/service/...", false, "the three calls to AWS take a few lines; its clients take megabytes"},
	{"functions/intake", "google.golang.org/grpc/...", false, "only the worker calls receivers"},
	{"functions/pull", "google.golang.org/grpc/...", false, "only the worker calls receivers"},
	{"functions/cron", "google.golang.org/grpc/...", false, "only the worker calls receivers"},
	{"functions/pull", "github.com/prometheus/...", false, "only the intake function serves metrics"},
	{"functions/worker", "github.com/prometheus/...", false, "metrics of a function that serves no requests cannot be scraped"},
	{"functions/cron", "github.com/prometheus/...", false, "metrics of a function that serves no requests cannot be scraped"},
	{"functions/...", "html/template", false, "executed templates switch off the linker's dead-code removal"},
	{"functions/...", "text/template", true, "executed templates switch off the linker's dead-code removal"},

	{"cmd/gateway", "cloud.google.com/...", false, "two requests read a public object of Google; its library takes megabytes, and a millisecond of each start"},
	{"cmd/gateway", "github.com/Azure/...", false, "two requests read a public object of Azure; its library takes a megabyte"},
	{"cmd/gateway", "golang.org/x/net/trace", false, "executed templates switch off the linker's dead-code removal"},
	{"cmd/gateway", "html/template", false, "executed templates switch off the linker's dead-code removal"},
	{"cmd/gateway", "text/template", true, "executed templates switch off the linker's dead-code removal"},
}

// forAll are the packages that every package may import, although no rule lists them.
var forAll = []string{module + "/core", module + "/core/once", module + "/core/order"}

// pure is the number of rings, from the inside, whose packages do not import the packages of
// io directly.
const pure = 4

var io = []string{"net/http", "os", "database/sql"}

type listed struct {
	ImportPath    string
	Imports, Deps []string
}

// packages lists all packages of the module with the build tags with which they are shipped.
func packages(t *testing.T) []listed {
	t.Helper()
	isFunction := func(p listed) bool { return covers(module+"/functions/...", p.ImportPath) }
	all := slices.DeleteFunc(list(t, "otel grpcnotrace nopgxregisterdefaulttypes", module+"/..."), isFunction)
	all = append(all, list(t, "lambda.norpc grpcnotrace nopgxregisterdefaulttypes nogrpc", module+"/functions/...")...)
	return append(all, list(t, "lambda.norpc grpcnotrace nopgxregisterdefaulttypes", module+"/functions/worker")...)
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
				if covers(r.not, dep) && dep != p.ImportPath && !slices.Contains(forAll, dep) {
					t.Errorf("%s reaches %s: %s", p.ImportPath, dep, r.why)
				}
			}
		}
	}
	for i, r := range rules {
		if !used[i] {
			t.Errorf("rule of %q, not %q: it covers no package", r.of, r.not)
		}
	}
}

// libraries are the well-known packages that do a part of the work, and where. The project
// uses them and does not write that part itself.
var libraries = []struct{ of, library, why string }{
	{"cmd/gateway", "github.com/spf13/cobra", "commands, flags and completion"},
	{"cmd/gateway/internal/terminal", "github.com/jedib0t/go-pretty/v6/table", "tables"},
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

// ringOf returns the number of the ring of a package; -1 if it is in no ring.
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
				t.Errorf("%s is in no ring; add it to rings in deps_test.go", name)
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
				t.Errorf("%s imports %s of its own ring; add the reason to neighbours, or pass the values in", name, other)
			default:
				t.Errorf("%s imports %s, which is in a ring further out", name, other)
			}
		}
	}
	for pair := range neighbours {
		if !met[pair] {
			t.Errorf("neighbours lists %q, which is not imported", pair)
		}
	}
}

// TestSQLiteHasItsLibc: modernc.org/sqlite is generated together with one version of its C
// library and crashes with other versions. An upgrade of another dependency may select such a
// version.
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
		t.Errorf("go.mod resolves %s, which is not the version that modernc.org/sqlite requires:\n%s", resolved, gomod)
	}
}

// TestHouse checks house rules that no linter here checks. Every package and every exported
// name has a comment. No file and no function is so long that it must hold two ideas. Every
// expression compiles.
// Outgoing calls are made through core/egress, where the address guard is. No stored time
// is compared with the machine's clock. Structs are sorted by core/order.
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
			t.Errorf("%s is in the list outside and makes no call; remove it from the list", o.path)
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
	checkExpressions(t, strings.TrimPrefix(path, "../"), f)
	checkSorts(t, strings.TrimPrefix(path, "../"), f)
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
