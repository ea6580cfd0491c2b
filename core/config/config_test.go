package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
	"gopkg.in/yaml.v3"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestLoadFindsFilesBesideTheBase(t *testing.T) {
	files := fstest.MapFS{
		"conf/events.yml":       file("server: {port: 1, host: \"${HOST_NAME}\"}\n"),
		"conf/events.prod1.yml": file("server: {port: 2}\n"),
		"conf/.env.prod1":       file("HOST_NAME=prod.example\n"),
		".env.prod1":            file("HOST_NAME=elsewhere.example\n"),
	}
	c, err := Load(Options{FS: files, Path: "./conf/events.yml", Env: "prod1"})
	if err != nil {
		t.Fatalf("Load = %v, want no error", err)
	}
	if c.Server.Port != 2 || c.Server.Host != "prod.example" {
		t.Errorf("Load = port %d, host %q, want 2, prod.example", c.Server.Port, c.Server.Host)
	}
}

func TestLoadRefusesFiles(t *testing.T) {
	for _, tc := range []struct{ name, env, base, overlay, want string }{
		{"path as environment", "../prod", "", "", `gateway.yaml: "../prod" is not a name of an environment`},
		{"capitals in environment", "Prod", "", "", `gateway.yaml: "Prod" is not a name of an environment`},
		{"large base", "", strings.Repeat("#", MaxFile+1), "", "gateway.yaml: is larger than 1 MiB"},
		{"large overlay", "x", "", strings.Repeat("#", MaxFile+1), "gateway.x.yaml: is larger than 1 MiB"},
	} {
		files := fstest.MapFS{"gateway.yaml": file(tc.base), "gateway.x.yaml": file(tc.overlay)}
		_, err := Load(Options{FS: files, Path: "gateway.yaml", Env: tc.env})
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: Load = %v, want %v", tc.name, err, tc.want)
		}
	}
}

// A deniedFS is a file system whose files may not be read.
type deniedFS struct{}

func (deniedFS) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

func TestLoadReportsUnreadableFile(t *testing.T) {
	_, err := Load(Options{FS: deniedFS{}, Path: "gateway.yaml"})
	if want := "gateway.yaml: cannot be read: permission denied"; err == nil || err.Error() != want {
		t.Errorf("Load = %v, want %v", err, want)
	}
}

func TestHandMadeConfig(t *testing.T) {
	c := Default()
	c.Sources = map[string]Source{"b": {Name: "b", Type: "event"}, "a": {Name: "a", Type: "event"}}
	if got := c.SortedSources(); got[0].Name != "a" || got[1].Name != "b" {
		t.Errorf("SortedSources = %v, want a, b", got)
	}
	if got := len(c.Warnings()); got != 3 {
		t.Errorf("Warnings = %v, want 3", c.Warnings())
	}
}

func TestSecretsStaySecret(t *testing.T) {
	const canary = "canary"
	files := fstest.MapFS{"gateway.yaml": file(`
database: {driver: postgres, url: "postgres://u:canary@h/d", api_token: canary}
api: {auth_token: canary, metrics_auth_token: canary, tokens: [{name: a, token: "canary-2", role: read}]}
delivery: {signing_secret: [canary, canary]}
sources: {s: {type: webhook, verify: hmac, secret: "${S}"}}
handlers: {h: {source: s, url: "https://h.example", signing_secret: canary, headers: {Authorization: Bearer canary}}}
queues: {q: {source: s, api_key: canary}}
alerts: {url: "https://hooks.example/canary", on: [dlq]}
workflows: {w: {source: s, steps: [{name: a, url: "https://a.example", headers: {X: canary}}]}}
`), ".env.x": file("S=canary\n")}
	c, err := Load(Options{FS: files, Path: "gateway.yaml", Env: "x"})
	if err != nil {
		t.Fatalf("Load = %v, want no error", err)
	}
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "config", c, "secret", c.API.AuthToken)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "config", c, "secret", c.API.AuthToken)
	asJSON, _ := json.Marshal(c)
	asYAML, _ := yaml.Marshal(c)
	var printed strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&printed, verb, *c)
		fmt.Fprintf(&printed, verb, c.API.AuthToken)
	}
	for what, text := range map[string]string{
		"slog": logged.String(), "json": string(asJSON), "yaml": string(asYAML), "fmt": printed.String(),
		"warnings": lines(c.Warnings()),
	} {
		if strings.Contains(text, canary) || strings.Contains(text, "63616e617279") {
			t.Errorf("%s shows a secret: %s", what, text)
		}
	}
	if got := c.API.AuthToken.First(); got != canary {
		t.Errorf("Reveal = %q, want %q", got, canary)
	}
}

func TestParseNetwork(t *testing.T) {
	for text, want := range map[string]string{
		"10.1.2.3": "10.1.2.3/32", "10.1.2.3/8": "10.0.0.0/8", "::1": "::1/128", "2001:db8::1/32": "2001:db8::/32",
		"::ffff:10.0.0.1": "10.0.0.1/32", "::ffff:10.0.0.1/104": "10.0.0.0/8",
	} {
		if got, err := ParseNetwork(text); err != nil || got.String() != want {
			t.Errorf("ParseNetwork(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "10.0.0", "10.0.0.0/33", "fe80::1%eth0", "::ffff:10.0.0.1/64", "host", "10.0.0.1-10.0.0.9"} {
		if got, err := ParseNetwork(text); err == nil {
			t.Errorf("ParseNetwork(%q) = %v, want an error", text, got)
		}
	}
}

func TestSQLitePath(t *testing.T) {
	for url, want := range map[string]string{
		"gateway.db": "gateway.db", "/var/lib/x.db": "/var/lib/x.db", "file:x.db": "x.db", "sqlite:x.db": "x.db",
		"sqlite://x.db": "x.db", "sqlite:///var/x.db": "/var/x.db", "file:///var/x.db": "/var/x.db",
	} {
		if got := (Database{URL: Secret(url)}).SQLitePath(); got != want {
			t.Errorf("SQLitePath(%q) = %q, want %q", url, got, want)
		}
		if message := sqliteURL(url); message != "" {
			t.Errorf("sqliteURL(%q) = %q, want no message", url, message)
		}
	}
	for _, url := range []string{"postgres://h/d", ":memory:", "file::memory:", "x.db?mode=ro", "sqlite:", "file://"} {
		if sqliteURL(url) == "" {
			t.Errorf("sqliteURL(%q) = no message, want one", url)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"port", "host", "retry", "max_body_size"}
	for word, want := range map[string]string{
		"prot": "port", "retires": "retry", "Host": "host", "max_bodysize": "max_body_size", "x": "", "colour": "", strings.Repeat("p", 100): "",
	} {
		if got := nearest(word, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

// TestTemplates loads the files that "gateway init" writes. The base file is loaded with every
// variable set, as in production. With its overlay it is loaded without variables, as on a
// laptop.
func TestTemplates(t *testing.T) {
	const folder = "../../cmd/gateway/templates"
	found, err := filepath.Glob(folder + "/*.yaml")
	if err != nil || len(found) != 10 {
		t.Fatalf("Glob(%s) = %v, %v, want ten files", folder, found, err)
	}
	production := map[string]string{
		"GATEWAY_API_TOKEN": strings.Repeat("t", 32), "GATEWAY_SIGNING_SECRET": strings.Repeat("s", 32), "GITHUB_WEBHOOK_SECRET": strings.Repeat("g", 32),
		"STRIPE_WEBHOOK_SECRET": strings.Repeat("w", 32), "SNS_TOPIC_ARN": "arn:aws:sns:eu-west-1:123456789012:orders",
	}
	set := func(name string) (string, bool) { v, ok := production[name]; return v, ok }
	unset := func(string) (string, bool) { return "", false }
	for _, name := range []string{"default", "github", "stripe", "sns", "cron"} {
		template(t, Options{FS: starters(t), Path: name + ".yaml", Lookup: set}, 0)
		warnings := 0
		if name == "sns" {
			warnings = 1 // skip_verify
		}
		template(t, Options{FS: starters(t), Path: name + ".yaml", Env: "local", Lookup: unset}, warnings)
		if _, err := Load(Options{FS: os.DirFS(folder), Path: name + ".yaml", Lookup: unset}); err == nil || !strings.Contains(err.Error(), "api.auth_token") {
			t.Errorf("Load(%s.yaml) without variables = %v, want api.auth_token asked for", name, err)
		}
	}
}

// starters returns the templates with secrets in their holes, as "gateway init" fills them.
func starters(t *testing.T) fs.FS {
	t.Helper()
	const folder = "../../cmd/gateway/templates"
	files := fstest.MapFS{}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		filled := strings.NewReplacer("{{hex}}", strings.Repeat("0f", 32), "{{base64}}", strings.Repeat("A", 43)+"=").Replace(string(text))
		files[e.Name()] = &fstest.MapFile{Data: []byte(filled)}
	}
	return files
}

func template(t *testing.T, o Options, warnings int) {
	c, err := Load(o)
	if err != nil {
		t.Errorf("Load(%s, %q) = %v, want no error", o.Path, o.Env, err)
		return
	}
	if got := c.Warnings(); len(got) != warnings {
		t.Errorf("Load(%s, %q).Warnings = %v, want %d", o.Path, o.Env, got, warnings)
	}
}

func TestDefaultTemplateDeliversToItself(t *testing.T) {
	lookup := func(name string) (string, bool) { return "9001", name == "PORT" }
	c, err := Load(Options{FS: starters(t), Path: "default.yaml", Env: "local", Lookup: lookup})
	if err != nil {
		t.Fatalf("Load(default.yaml, local) = %v, want no error", err)
	}
	if c.Server.Host != "127.0.0.1" {
		t.Errorf("Load(default.yaml, local) = host %q, want 127.0.0.1", c.Server.Host)
	}
	if got := c.Handlers["echo"].URL; c.Server.Port != 9001 || got != "http://127.0.0.1:9001/_echo" {
		t.Errorf("Load(default.yaml, local) = port %d, url %q, want 9001 and http://127.0.0.1:9001/_echo", c.Server.Port, got)
	}
}

// TestImports keeps the package pure: the caller of Load decides where files and variables come
// from.
func TestImports(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			if slices.Contains([]string{"os", "net/http", "database/sql", "log"}, path) {
				t.Errorf("%s imports %s, want no IO", name, path)
			}
		}
	}
}

// FuzzLoad loads anything at all: it may fail, with Problems on single lines, but never panic.
func FuzzLoad(f *testing.F) {
	archives, _ := filepath.Glob("testdata/*.txtar")
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		seed := map[string]string{}
		for _, file := range a.Files {
			seed[file.Name] = string(file.Data)
		}
		f.Add(seed["gateway.yaml"], seed["gateway.local.yaml"], seed[".env.local"], seed["env"])
	}
	f.Fuzz(func(t *testing.T, base, overlay, dotenv, value string) {
		files := fstest.MapFS{"gateway.yaml": file(base), "gateway.local.yaml": file(overlay), ".env.local": file(dotenv)}
		c, err := Load(Options{FS: files, Path: "gateway.yaml", Env: "local", Lookup: func(name string) (string, bool) { return value, name != "UNSET" }})
		var problems Problems
		switch {
		case err == nil:
			problems = c.Warnings()
			again(t, c)
		case !errors.As(err, &problems) || len(problems) == 0:
			t.Fatalf("Load = %v, want Problems", err)
		}
		for _, p := range problems {
			if strings.ContainsAny(p.String(), "\n\r\x00") || p.File == "" || p.Message == "" {
				t.Errorf("Load = %q, want one line with a file and a message", p.String())
			}
		}
	})
}

// TestOverlayNames: the overlay of a base file of another name is beside it, or else the one
// of gateway.yaml; two are a mistake.
func TestOverlayNames(t *testing.T) {
	const base = "server: {port: 1}\n"
	with := func(port int) *fstest.MapFile {
		return &fstest.MapFile{Data: fmt.Appendf(nil, "server: {port: %d}\n", port)}
	}
	for name, c := range map[string]struct {
		path  string
		files map[string]int // overlays with their ports
		port  int
		says  string
	}{
		"own":             {"etc/custom.yaml", map[string]int{"etc/custom.prod.yaml": 2}, 2, ""},
		"shared":          {"etc/custom.yaml", map[string]int{"etc/gateway.prod.yaml": 3}, 3, ""},
		"both":            {"etc/custom.yaml", map[string]int{"etc/custom.prod.yaml": 2, "etc/gateway.prod.yaml": 3}, 0, `etc/gateway.prod.yaml: is an overlay for environment "prod", and so is etc/custom.prod.yaml; keep one`},
		"elsewhere":       {"etc/custom.yaml", map[string]int{"gateway.prod.yaml": 3}, 1, `neither`},
		"none":            {"custom.yaml", nil, 1, `environment "prod" has no files: none of custom.prod.yaml, gateway.prod.yaml and .env.prod exists`},
		"gateway":         {"gateway.yaml", map[string]int{"gateway.prod.yaml": 3}, 3, ""},
		"another ending":  {"gateway.yml", map[string]int{"gateway.prod.yml": 2}, 2, ""},
		"shared, no name": {"custom", map[string]int{"gateway.prod.yaml": 3}, 3, ""},
	} {
		files := fstest.MapFS{c.path: {Data: []byte(base)}}
		for path, port := range c.files {
			files[path] = with(port)
		}
		got, err := Load(Options{FS: files, Path: c.path, Env: "prod"})
		switch {
		case c.port == 0:
			if err == nil || err.Error() != c.says {
				t.Errorf("%s: Load = %v, want %s", name, err, c.says)
			}
		case err != nil || got.Server.Port != c.port:
			t.Errorf("%s: Load = %v, %v, want port %d", name, got, err, c.port)
		case strings.HasPrefix(c.says, "environment") && got.Warnings()[0].Message != c.says:
			t.Errorf("%s: warned %q, want %q", name, got.Warnings()[0].Message, c.says)
		}
	}
}
