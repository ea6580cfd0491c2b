package infra_test

import (
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/telemetry/metrics"
	"github.com/eventgateway/gateway/core/web"
)

const packaged = "sam/config" // packaged next to the functions' code

// mains returns the existing functions, by their names in the template.
func mains(t *testing.T) map[string]string {
	t.Helper()
	found, err := filepath.Glob("../functions/*/main.go")
	if err != nil || len(found) == 0 {
		t.Fatalf("no functions: %v", err)
	}
	all := map[string]string{}
	for _, f := range found {
		name := filepath.Base(filepath.Dir(f))
		all[strings.ToUpper(name[:1])+name[1:]+"Function"] = name
	}
	return all
}

// TestFunctions: the template has the existing functions, and builds each with its make
// target.
func TestFunctions(t *testing.T) {
	functions := deployed(t, nil).functions()
	if got, want := slices.Sorted(maps.Keys(functions)), slices.Sorted(maps.Keys(mains(t))); !slices.Equal(got, want) {
		t.Fatalf("the template has %q, functions are %q", got, want)
	}
	targets := regexp.MustCompile(`(?m)^(build-\w+): NAME := (\w+)$`).FindAllStringSubmatch(string(read(t, "../Makefile")), -1)
	if len(targets) != len(functions) {
		t.Errorf("make has %d targets for %d functions", len(targets), len(functions))
	}
	for _, target := range targets {
		if name := strings.TrimPrefix(target[1], "build-"); mains(t)[name] != target[2] {
			t.Errorf("%s builds %s", target[1], target[2])
		}
	}
	for name, f := range functions {
		got := fmt.Sprint(f["Handler"], f["Runtime"], f["Architectures"], f["CodeUri"], f["InvokeMode"])
		if want := "bootstrapprovided.al2023[arm64].<nil>"; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
		if method := load(t, stack).Resources[name].Metadata["BuildMethod"]; method != "makefile" {
			t.Errorf("%s is built by %v", name, method)
		}
	}
}

// TestFunctionsBuild does the steps of "sam build". The result is a program for Lambda with
// the configuration next to it. A short run builds one function, since make has one recipe for
// all.
func TestFunctionsBuild(t *testing.T) {
	for name, main := range mains(t) {
		if testing.Short() && main != "cron" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			build := exec.CommandContext(t.Context(), "make", "build-"+name)
			build.Dir = ".."
			build.Env = append(os.Environ(), "ARTIFACTS_DIR="+dir, "GOFLAGS=-buildvcs=false", "MAKEFLAGS=")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			checkBootstrap(t, filepath.Join(dir, "bootstrap"), main)
			want, _ := filepath.Glob(packaged + "/*")
			got, _ := filepath.Glob(dir + "/*")
			if len(got) != len(want)+1 || len(want) < 4 {
				t.Errorf("packaged are %q, of %q", got, want)
			}
		})
	}
}

func checkBootstrap(t *testing.T, path, main string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Machine != elf.EM_AARCH64 || slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Errorf("it is for %v, or needs libraries", f.Machine)
	}
	// Each cold start loads all linked code. Segments are whole pages of 64 KiB, so a few more bytes
	// may cost a page.
	const most = 15<<20 + 256<<10
	if file, err := os.Stat(path); err != nil || file.Size() > most {
		t.Errorf("it has %d bytes (%v), want at most %d", file.Size(), err, most)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	got := fmt.Sprint(info.Path, " ", settings["-tags"], " ", settings["-trimpath"], " ", settings["CGO_ENABLED"])
	want := "github.com/eventgateway/gateway/functions/" + main + " lambda.norpc,grpcnotrace,nopgxregisterdefaulttypes,nogrpc true 0"
	if main == "worker" {
		want = strings.Replace(want, ",nogrpc", "", 1)
	}
	if got != want {
		t.Errorf("built is %s, want %s", got, want)
	}
}

// TestFunctionConfig: with the variables of a stack's functions, the configuration is valid
// and has no warning. Its database is one that functions support.
func TestFunctionConfig(t *testing.T) {
	for database, parameters := range deployments {
		t.Run(database, func(t *testing.T) {
			for name, f := range deployed(t, parameters).functions() {
				c := functionConfig(t, variablesOf(f))
				want := map[string]string{"hosted_sql": "hosted_sql", "postgres": "postgres", "rds": "postgres"}[database]
				if c.Database.Driver != want {
					t.Errorf("%s is on %s, want %s", name, c.Database.Driver, want)
				}
				for _, w := range c.Warnings() {
					t.Errorf("%s: %s: %s", name, w.Path, w.Message)
				}
				if len(c.API.AuthToken) == 0 || len(c.API.MetricsAuthToken) == 0 || c.Server.PublicURL == "" {
					t.Errorf("%s: the API or the metrics are open, or nobody knows the address", name)
				}
			}
		})
	}
}

// functionConfig returns the configuration of a function with these variables.
func functionConfig(t *testing.T, variables map[string]any) *config.Config {
	t.Helper()
	c, err := loadFunctionConfig(variables, false)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// loadFunctionConfig reads the packaged files, either as files or as a configuration from a
// URL.
func loadFunctionConfig(variables map[string]any, remote bool) (*config.Config, error) {
	looked := strings.NewReplacer("Api.ApiEndpoint", "https://api.example.com", "PostgreSQL.Outputs.Host", "db.example.com")
	return config.Load(config.Options{
		FS: os.DirFS(packaged), Path: fmt.Sprint(variables["GATEWAY_CONFIG"]), Env: fmt.Sprint(variables["GATEWAY_ENV"]),
		Remote: remote,
		Lookup: func(name string) (string, bool) {
			v, ok := variables[name].(string)
			switch {
			case name == "DATABASE_URL":
				v = "postgres://gateway:secret@db.example.com:5432/gateway"
			case strings.HasPrefix(v, "ssm:"), strings.HasPrefix(v, "secretsmanager:"):
				v = strings.Repeat("x", 32)
			}
			return looked.Replace(v), ok
		},
	})
}

// awsVariables are set by Lambda.
var awsVariables = []string{"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_LAMBDA_FUNCTION_NAME", "LAMBDA_TASK_ROOT"}

// TestFunctionVariables: the program or the configuration reads each variable of a function.
// Each variable that they read can be set, or is documented.
func TestFunctionVariables(t *testing.T) {
	var files strings.Builder
	names, _ := filepath.Glob(packaged + "/*.yaml")
	for _, f := range names {
		files.Write(read(t, f))
	}
	chapter, given := string(read(t, "../cmd/gateway/manual/functions.md")), map[string]bool{}
	read := functionVariables(t)
	for function, f := range deployed(t, nil).functions() {
		for name := range variablesOf(f) {
			given[name] = true
			if !read[name] && !variables(t)[name] && !strings.Contains(files.String(), "${"+name) {
				t.Errorf("%s: nothing reads %s", function, name)
			}
		}
	}
	for name := range read {
		if !given[name] && !slices.Contains(awsVariables, name) && !strings.Contains(chapter, "`"+name+"`") {
			t.Errorf("%s is read by the functions, and neither set in the template nor told of in the manual", name)
		}
	}
	for name := range used([]byte(files.String())) {
		if !given[name] {
			t.Errorf("the configuration asks for %s, which the template does not give", name)
		}
	}
}

// used returns the variables that a configuration uses outside of comments.
func used(file []byte) map[string]bool {
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(`\$\{(\w+)`).FindAllSubmatch(regexp.MustCompile(`(?m)#.*$`).ReplaceAll(file, nil), -1) {
		all[string(m[1])] = true
	}
	return all
}

// TestFunctionConfigFromURL: a configuration from a URL may use no variable of the
// template's, unless ConfigVariables lists the variable. If it lists the variables of the
// packaged files, these files can be at a URL as they are.
func TestFunctionConfigFromURL(t *testing.T) {
	for database, parameters := range deployments {
		t.Run(database, func(t *testing.T) {
			needed := used(read(t, filepath.Join(packaged, "gateway.yaml")))
			maps.Copy(needed, used(read(t, filepath.Join(packaged, "gateway."+database+".yaml"))))
			list := strings.Join(slices.Sorted(maps.Keys(needed)), ",")
			with := maps.Clone(parameters)
			with["ConfigVariables"] = list
			for name, f := range deployed(t, parameters).functions() {
				_, err := loadFunctionConfig(variablesOf(f), true)
				for variable := range needed {
					if err == nil || !strings.Contains(err.Error(), "may not read the environment variable "+variable+";") {
						t.Errorf("%s: a configuration from a URL reads %s by default: %v", name, variable, err)
					}
				}
			}
			for name, f := range deployed(t, with).functions() {
				if _, err := loadFunctionConfig(variablesOf(f), true); err != nil {
					t.Errorf("%s: with ConfigVariables=%s: %v", name, list, err)
				}
			}
		})
	}
}

// functionVariables returns the names of variables in the code of the functions.
func functionVariables(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	files, _ := filepath.Glob("../functions/*/*.go")
	inner, _ := filepath.Glob("../functions/internal/*/*.go")
	for _, f := range append(files, inner...) {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)"`).FindAllSubmatch(read(t, f), -1) {
			all[string(m[1])] = true
		}
	}
	if !all["GATEWAY_LINGER"] || !all["AWS_REGION"] {
		t.Errorf("the functions read %v", all)
	}
	return all
}

// asRouted returns the routes of the routers, by function.
func asRouted(t *testing.T) map[string][]string {
	t.Helper()
	c, err := config.Load(config.Options{FS: fstest.MapFS{"gateway.yaml": {Data: []byte(one + "console: true\nserver: {host: 127.0.0.1}\n")}}, Path: "gateway.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for function, part := range map[string]gateway.Part{"Intake": gateway.IntakeRoutes, "Pull": gateway.APIRoutes} {
		g, err := gateway.NewPart(c, gateway.Deps{
			Store: empty(t), Clock: core.SystemClock, Log: slog.New(slog.DiscardHandler),
			Metrics: metrics.New(metrics.Options{Names: gateway.Names(c)}),
		}, part)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range web.Routes(g.Handler()) {
			all[function] = append(all[function], r.Method+" "+r.Pattern)
		}
	}
	return all
}

// takes reports whether a route of the HTTP API covers a route of a router.
func takes(api, route string) bool {
	before, proxy := strings.CutSuffix(api, "{proxy+}")
	return api == route || proxy && strings.HasPrefix(route, before)
}

// TestRoutes: the HTTP API sends every route of the routers to its function, and has no other
// routes.
func TestRoutes(t *testing.T) {
	d := deployed(t, nil)
	routed, needed := asRouted(t), map[string]bool{}
	for function, routes := range routed {
		for _, route := range routes {
			if api := taken(t, d, function, route); api == "" {
				t.Errorf("%s of %s cannot be reached", route, function)
			} else {
				needed[api] = true
			}
		}
	}
	for name, r := range d.there("AWS::ApiGatewayV2::Route") {
		if key := fmt.Sprint(r.Properties["RouteKey"]); !needed[key] {
			t.Errorf("%s: no router has %s", name, key)
		}
	}
	if len(routed["Intake"]) != 11 || len(routed["Pull"]) < 25 {
		t.Errorf("intake has %d routes, pull %d", len(routed["Intake"]), len(routed["Pull"]))
	}
	for _, c := range [][2]string{{"GET /api/{proxy+}", "POST /api/jobs"}, {"POST /api/{proxy+}", "POST /apis"}, {"GET /a", "GET /a/b"}} {
		if takes(c[0], c[1]) {
			t.Errorf("%s is taken for %s", c[0], c[1])
		}
	}
}

// taken returns the route of the HTTP API that covers a router's route, if it leads to the
// router's function.
func taken(t *testing.T, d deployment, function, route string) (key string) {
	t.Helper()
	for name, r := range d.there("AWS::ApiGatewayV2::Route") {
		if !takes(r.Properties["RouteKey"].(string), route) {
			continue
		}
		key = r.Properties["RouteKey"].(string)
		target := strings.TrimPrefix(fmt.Sprint(d.value(r.Properties["Target"])), "integrations/")
		integration := d.value(d.Resources[target].Properties).(map[string]any)
		if integration["IntegrationUri"] != function+"Function.Arn" || integration["PayloadFormatVersion"] != "2.0" {
			t.Errorf("%s leads %s to %v, want %s", name, route, integration, function)
		}
	}
	return key
}

// TestTimes: each caller of a function waits longer than the function may take.
func TestTimes(t *testing.T) {
	const apiWaits = 30 // longest wait of an HTTP API, in seconds
	functions := deployed(t, nil).functions()
	for _, name := range []string{"IntakeFunction", "PullFunction"} {
		if timeout := functions[name]["Timeout"].(float64); timeout >= apiWaits {
			t.Errorf("%s may take %v s", name, timeout)
		}
	}
	if timeout := functions["CronFunction"]["Timeout"].(float64); timeout < 65 {
		t.Errorf("cron has %v s for its minute", timeout)
	}
	if timeout, delivery := functions["WorkerFunction"]["Timeout"].(float64), config.Default().Delivery.Timeout.Seconds(); timeout < 60+delivery {
		t.Errorf("the worker has %v s, a delivery takes %v", timeout, delivery)
	}
}

// TestSchedules: worker and cron are called each minute, and a late call is dropped.
func TestSchedules(t *testing.T) {
	for name, f := range deployed(t, nil).functions() {
		events, scheduled := f["Events"].(map[string]any)
		if want := name == "WorkerFunction" || name == "CronFunction"; scheduled != want || len(events) > 1 {
			t.Errorf("%s has the events %v", name, events)
		}
		if !scheduled {
			continue
		}
		minute := events["Minute"].(map[string]any)
		p, _ := minute["Properties"].(map[string]any)
		if minute["Type"] != "ScheduleV2" || p["ScheduleExpression"] != "rate(1 minute)" || p["OmitName"] != true {
			t.Errorf("%s is called as %v", name, minute)
		}
		for _, late := range []any{p["RetryPolicy"], f["EventInvokeConfig"]} {
			if got := fmt.Sprint(late); got != "map[MaximumEventAgeInSeconds:60 MaximumRetryAttempts:0]" {
				t.Errorf("%s: late calls are %s", name, got)
			}
		}
	}
}
