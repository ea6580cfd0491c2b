package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core/config"
)

var (
	manualBlock    = regexp.MustCompile("(?ms)^ *```([a-z]+)\n(.*?)^ *```$")
	manualVariable = regexp.MustCompile(`\$\{([A-Z0-9_]+)\}`)
)

// TestManualConfigurations: "gateway validate" accepts each example of these chapters alone, as a
// whole file.
func TestManualConfigurations(t *testing.T) {
	for topic, least := range map[string]int{"configuration": 11, "recipes": 5} {
		examples := 0
		text := read(t, chapterFile(topic))
		for _, at := range manualBlock.FindAllStringSubmatchIndex(text, -1) {
			language, example := text[at[2]:at[3]], text[at[4]:at[5]]
			if language != "yaml" {
				continue
			}
			examples++
			line := strings.Count(text[:at[4]], "\n") + 1
			path := filepath.Join(t.TempDir(), "gateway.yaml")
			if err := os.WriteFile(path, []byte(example), 0o600); err != nil {
				t.Fatal(err)
			}
			env := map[string]string{}
			for _, variable := range manualVariable.FindAllStringSubmatch(example, -1) {
				env[variable[1]] = valueFor(variable[1])
			}
			if code, _, stderr := (session{env: env}).run(t.Context(), "validate", "-c", path); code != exitDone {
				t.Errorf("%s:%d: validate ends with %d and says\n%s", chapterFile(topic), line, code, stderr)
			}
		}
		if examples < least {
			t.Errorf("%s has %d examples in YAML, want %d or more", chapterFile(topic), examples, least)
		}
	}
}

// valueFor is a value that a variable of an example may have.
func valueFor(variable string) string {
	switch {
	case variable == "DATABASE_URL":
		return "postgres://gateway:secret@db.example.com:5432/gateway"
	case strings.HasSuffix(variable, "WEBHOOK"):
		return "https://hooks.example.com/services/T0/B0/x"
	}
	switch variable {
	case "SHOP_TOKEN", "DASHBOARD_TOKEN": // tokens with roles differ
		return variable + "-" + strings.Repeat("Z2F0ZXdheQ", 4)
	}
	return "whsec_" + strings.Repeat("Z2F0ZXdheQ", 4)
}

// TestManualFields: each field that a chapter names by its path is one.
func TestManualFields(t *testing.T) {
	known := referenceDefaults(t)
	field := regexp.MustCompile("`((?:server|database|worker|api|delivery|(?:sources|handlers|queues|workflows)\\.\\*|alerts\\[\\])\\.[a-z_.\\[\\]]+)`")
	named := 0
	for _, file := range documents(t) {
		if strings.HasPrefix(file, "../../infra/") {
			continue
		}
		for _, m := range field.FindAllStringSubmatch(read(t, file), -1) {
			if _, ok := known[m[1]]; !ok && m[1] != "workflows.*.headers" { // GATEWAY_CONFIG_ALLOW names the headers of all steps by this
				t.Errorf("%s names the field %s, which is not in the reference", file, m[1])
			}
			named++
		}
	}
	if named < 200 {
		t.Errorf("%d fields were found", named)
	}
}

// referenceDefaults are the defaults of the reference, by field. A test of core/config compares
// the reference with the code.
func referenceDefaults(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\| `?([^|`]*)`? *\\|").FindAllStringSubmatch(read(t, chapterFile("configuration")), -1) {
		all[m[1]] = strings.TrimSpace(m[2])
	}
	return all
}

// repeatedDefaults are the places that repeat a default.
var repeatedDefaults = []struct{ file, text, field, value string }{
	{chapterFile("events-in"), "`server.max_body_size` bytes (1 MiB)", "server.max_body_size", "1048576"},
	{chapterFile("events-in"), "`server.max_inbound` requests (100)", "server.max_inbound", "100"},
	{chapterFile("deliveries"), "within the timeout (30 s)", "delivery.timeout", "30s"},
	{chapterFile("deliveries"), "5 failures, 60 s", "handlers.*.circuit_breaker.failures", "5"},
	{chapterFile("deliveries"), "5 failures, 60 s", "handlers.*.circuit_breaker.cooldown", "60s"},
	{chapterFile("deliveries"), "By default `interval` is 30 s", "delivery.default_retry.interval", "30s"},
	{chapterFile("deliveries"), "`retry.max` attempts (5)", "delivery.default_retry.max", "5"},
	{chapterFile("deliveries"), "after five failures in a row", "handlers.*.circuit_breaker.failures", "5"},
	{chapterFile("deliveries"), "300 s after it was taken (`worker.stale_threshold_secs`)", "worker.stale_threshold_secs", "300"},
	{chapterFile("deliveries"), "`worker.retention_hours` (72)", "worker.retention_hours", "72"},
	{chapterFile("pull-queues"), "default 30s", "queues.*.visibility_timeout", "30s"},
	{chapterFile("workflows"), "default 64 MiB", "workflows.*.max_bytes", "67108864"},
	{chapterFile("databases"), "default `gateway.db`", "database.url", "gateway.db"},
	{chapterFile("databases"), "by default 300 seconds after they were taken (`worker.stale_threshold_secs`)", "worker.stale_threshold_secs", "300"},
	{chapterFile("databases"), "by default 300 s after the jobs were taken", "worker.stale_threshold_secs", "300"},
	{chapterFile("production"), "`worker.retention_hours` after it ended: 72", "worker.retention_hours", "72"},
	{chapterFile("recipes"), "3 without the field", "worker.retention_hours", "72"},
	{chapterFile("recipes"), "With the default of 5 attempts", "delivery.default_retry.max", "5"},
	{chapterFile("recipes"), "Five failures in a row", "handlers.*.circuit_breaker.failures", "5"},
	{chapterFile("recipes"), "Every 60 s one job", "handlers.*.circuit_breaker.cooldown", "60s"},
	{"../../infra/systemd/gateway.service", "worker.drain_timeout_secs, 30 by default", "worker.drain_timeout_secs", "30"},
}

// TestRepeatedDefaults: a default that changes has to change in all places that repeat it.
func TestRepeatedDefaults(t *testing.T) {
	defaults := referenceDefaults(t)
	for _, r := range repeatedDefaults {
		if defaults[r.field] != r.value {
			t.Errorf("%s says %q, but the default of %s is %s", r.file, r.text, r.field, defaults[r.field])
		}
		if text := strings.Join(strings.Fields(read(t, r.file)), " "); !strings.Contains(text, r.text) {
			t.Errorf("%s no longer says %q; correct repeatedDefaults", r.file, r.text)
		}
	}
}

// TestManualVariables: the reference has each variable of the environment that the commands read.
func TestManualVariables(t *testing.T) {
	_, section, _ := strings.Cut(read(t, chapterFile("configuration")), "\n## Variables of the environment\n")
	variable := regexp.MustCompile(`"(GATEWAY_[A-Z_]+[A-Z])"`)
	var want []string
	for _, pattern := range []string{"*.go", "../../core/config/*.go", "../../core/config/remote/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			for _, m := range variable.FindAllStringSubmatch(read(t, name), -1) {
				if !strings.HasPrefix(m[1], "GATEWAY_TEST_") {
					want = append(want, m[1])
				}
			}
		}
	}
	var got []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(GATEWAY_[A-Z_]+)` ").FindAllStringSubmatch(section, -1) {
		got = append(got, m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if want = slices.Compact(want); !slices.Equal(got, want) {
		t.Errorf("the reference has the variables\n%s\nthe program reads\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestTemplateDefaults: a starter file that writes out a default writes the present one.
func TestTemplateDefaults(t *testing.T) {
	lookup := func(name string) (string, bool) {
		if name == "SNS_TOPIC_ARN" {
			return "arn:aws:sns:eu-west-1:123456789012:orders", true
		}
		return strings.Repeat("Z2F0", 8), strings.HasSuffix(name, "_TOKEN") || strings.HasSuffix(name, "_SECRET")
	}
	for _, name := range templateNames() {
		cfg, err := config.Load(config.Options{FS: os.DirFS("templates"), Path: name + ".yaml", Lookup: lookup})
		if err != nil {
			t.Fatal(err)
		}
		is, want := cfg.Delivery, config.Default().Delivery
		is.SigningSecret = nil
		if is.Timeout != want.Timeout || is.DefaultRetry != want.DefaultRetry || cfg.Server.Port != config.Default().Server.Port {
			t.Errorf("templates/%s.yaml has port %d and %+v, the defaults are port %d and %+v", name, cfg.Server.Port, is, config.Default().Server.Port, want)
		}
	}
}
