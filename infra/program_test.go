package infra_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/eventgateway/gateway/core/config"
)

const (
	unit       = "systemd/gateway.service"
	dockerfile = "docker/Dockerfile"
	starter    = "../cmd/gateway/templates/default.yaml" // /etc/gateway/gateway.yaml of the packages
)

// runtimeVariables are read by Go's runtime. The SDK for traces reads the OTEL_ variables,
// which core/telemetry/traces documents.
var runtimeVariables = []string{"GOMEMLIMIT", "GOGC", "GOMAXPROCS"}

// literals returns the names of variables in the program's string literals.
var literals = sync.OnceValues(func() (map[string]bool, error) {
	all := map[string]bool{}
	for _, name := range runtimeVariables {
		all[name] = true
	}
	for _, dir := range []string{"../cmd/gateway", "../core"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			return literalsOf(path, all)
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
})

var (
	name       = regexp.MustCompile(`^(GATEWAY_[A-Z_]+|RUST_LOG|NO_COLOR)$`)
	traceNames = regexp.MustCompile(`\bOTEL_[A-Z_]+\b`)
)

func literalsOf(path string, into map[string]bool) error {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil && (name.MatchString(s) || traceNames.MatchString(s)) {
				into[s] = true
			}
		}
		return true
	})
	for _, c := range f.Comments {
		for _, n := range traceNames.FindAllString(c.Text(), -1) {
			into[n] = true
		}
	}
	return nil
}

// variables returns the variables that the program reads.
func variables(t *testing.T) map[string]bool {
	t.Helper()
	all, err := literals()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestVariables: the program reads each variable that these files set.
func TestVariables(t *testing.T) {
	if !variables(t)["GATEWAY_LOG"] || !variables(t)["OTEL_SERVICE_NAME"] || variables(t)["GATEWAY_NONE"] {
		t.Fatalf("the program reads %v", variables(t))
	}
	used := gatewayFiles(t)
	for name := range offers(t, "systemd/gateway.env.example") {
		if !variables(t)[name] && !strings.Contains(used, "${"+name) {
			t.Errorf("gateway.env.example: nothing reads %s", name)
		}
	}
	for _, file := range []string{unit, dockerfile} {
		for _, m := range regexp.MustCompile(`(?m)^(?:Environment=|ENV )(\w+)=`).FindAllSubmatch(read(t, file), -1) {
			if !variables(t)[string(m[1])] {
				t.Errorf("%s: nothing reads %s", file, m[1])
			}
		}
	}
}

// TestPackage: the configuration of the packages is valid once every variable has a value.
func TestPackage(t *testing.T) {
	offered := offers(t, "systemd/gateway.env.example")
	fill := func(name string) (string, bool) {
		if name == "PORT" || strings.HasSuffix(name, "_URL") {
			return "", false // they have defaults
		}
		return strings.Repeat("x", 32), offered[name]
	}
	c, err := config.Load(config.Options{FS: os.DirFS(filepath.Dir(starter)), Path: filepath.Base(starter), Lookup: fill})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.API.AuthToken) == 0 {
		t.Error("the API is open")
	}
}

// TestUnit asks systemd-analyze where it is installed. Its error about the missing program is
// ignored.
func TestUnit(t *testing.T) {
	text := read(t, unit)
	for _, want := range []string{"ExecStart=/usr/bin/gateway start\n", "DynamicUser=yes\n", "StateDirectory=gateway\n", "StartLimitIntervalSec=0\n"} {
		if !bytes.Contains(text, []byte("\n"+want)) {
			t.Errorf("the unit lacks %s", want)
		}
	}
	if !restartsPanics(text) {
		t.Error("the unit is not started again after a panic, which ends a program with status 2")
	}
	for _, bad := range []string{"", "Restart=on-failure\nRestartPreventExitStatus=1 2\n", "Restart=always\nSuccessExitStatus=2 SIGKILL\n", "Restart=on-abnormal\n"} {
		if restartsPanics([]byte(bad)) {
			t.Errorf("%q is taken for what restarts panics", bad)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd is not installed here; continuous integration has it")
		return
	}
	copied := filepath.Join(t.TempDir(), "gateway.service")
	text = bytes.ReplaceAll(text, []byte("/usr/bin/gateway"), []byte("/bin/true"))
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", copied).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

var (
	restarts  = regexp.MustCompile(`(?m)^Restart=(?:on-failure|always)$`)
	prevented = regexp.MustCompile(`(?m)^(?:RestartPrevent|Success)ExitStatus=(?:.*\s)?2(?:\s|$)`)
)

// restartsPanics reports whether systemd restarts the unit after Go's exit status for a panic.
func restartsPanics(unit []byte) bool { return restarts.Match(unit) && !prevented.Match(unit) }

var (
	image  = regexp.MustCompile(`(?m)^\s*(?:image:|FROM(?: --platform=\S+)?|- )\s*([a-z][\w./-]*(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?)(?: AS \w+)?$`)
	pinned = regexp.MustCompile(`:[\w.-]+@sha256:[0-9a-f]{64}$`)
)

// TestPinned: each image has a tag and a digest, each action has a commit and its version, and
// Dependabot updates both.
func TestPinned(t *testing.T) {
	files, _ := filepath.Glob("compose/compose*.yaml")
	stages := map[string]bool{"gateway:devel": true} // images that are built here
	for _, m := range regexp.MustCompile(`AS (\w+)`).FindAllSubmatch(read(t, dockerfile), -1) {
		stages[string(m[1])] = true
	}
	named := regexp.MustCompile(`(?m)^\s*(?:image:|FROM )`)
	for _, file := range append(files, dockerfile) {
		if all, seen := len(named.FindAll(read(t, file), -1)), len(image.FindAll(read(t, file), -1)); seen < all {
			t.Errorf("%s names %d images, of which %d can be read", file, all, seen)
		}
		for _, m := range image.FindAllSubmatch(read(t, file), -1) {
			if !stages[string(m[1])] && !pinned.Match(m[1]) {
				t.Errorf("%s: %s is not a tag and a digest", file, m[1])
			}
		}
	}
	workflows, _ := filepath.Glob("../.github/workflows/*.yml")
	for _, file := range workflows {
		for _, m := range regexp.MustCompile(`uses: (\S+)(.*)`).FindAllSubmatch(read(t, file), -1) {
			byCommit := regexp.MustCompile(`@[0-9a-f]{40}$`).Match(m[1]) && regexp.MustCompile(`# v\d`).Match(m[2])
			if !byCommit && !bytes.HasPrefix(m[1], []byte("./")) {
				t.Errorf("%s: %s is not a commit with its version behind it", file, m[1])
			}
		}
	}
	for _, ecosystem := range []string{"docker\n    directory: /infra/docker\n", "docker-compose\n    directory: /infra/compose\n", "github-actions\n"} {
		if !bytes.Contains(read(t, "../.github/dependabot.yml"), []byte("package-ecosystem: "+ecosystem)) {
			t.Errorf("Dependabot does not follow %q", ecosystem)
		}
	}
	language := regexp.MustCompile(`(?m)^go (1\.\d+)`).FindSubmatch(read(t, "../go.mod"))
	if !bytes.Contains(read(t, dockerfile), append([]byte("golang:"), language[1]...)) {
		t.Errorf("the image is not built by Go %s", language[1])
	}
	if len(files) < 4 || len(workflows) < 2 {
		t.Errorf("looked at %v and %v", files, workflows)
	}
}

// inOneHost are the files whose databases are containers of the same host.
var inOneHost = []string{"../infra/compose/compose.postgres.yaml", "../infra/compose/compose.mysql.yaml"}

// TestExamplesVerifyDatabases: in the examples, a connection to a database on another machine
// verifies the server.
func TestExamplesVerifyDatabases(t *testing.T) {
	files := []string{"../README.md", "../template.yaml"}
	for _, pattern := range []string{"../infra/*/*.yaml", "../infra/*/*/*.yaml", "../infra/*/*.example", "../infra/*/*.md", "../cmd/gateway/templates/*", "../cmd/gateway/manual/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	seen := map[string]int{}
	for _, file := range files {
		if slices.Contains(inOneHost, file) {
			continue
		}
		for line := range strings.Lines(string(read(t, file))) {
			for scheme, verifies := range map[string]string{"postgres": "verify-full", "mysql": "tls=true"} {
				if !strings.Contains(line, scheme+"://") {
					continue
				}
				if seen[scheme]++; !strings.Contains(line, verifies) {
					t.Errorf("%s: %q; an example for another machine says %s", file, strings.TrimSpace(line), verifies)
				}
			}
		}
	}
	if seen["postgres"] < 5 || seen["mysql"] < 1 {
		t.Errorf("examples found: %v; the manual and the starter files have more", seen)
	}
}
