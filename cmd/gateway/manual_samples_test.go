package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// examples are the blocks in a language of a Markdown file.
func examples(t *testing.T, file, language string) (blocks []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?sm)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(read(t, file), -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// example is the one block in a language of a chapter.
func example(t *testing.T, topic, language string) string {
	t.Helper()
	blocks := examples(t, chapterFile(topic), language)
	if len(blocks) != 1 {
		t.Fatalf("chapter %s has %d examples in %s, want 1", topic, len(blocks), language)
	}
	return blocks[0]
}

// TestManualConsumers: each example of a consumer is a complete program without syntax errors.
func TestManualConsumers(t *testing.T) {
	for _, c := range []struct {
		language, file string
		check          []string
	}{
		{"go", "main.go", []string{"go", "vet", "main.go"}},
		{"python", "consume.py", []string{"python3", "-m", "py_compile", "consume.py"}},
		{"sh", "consume.sh", []string{"sh", "-n", "consume.sh"}},
	} {
		t.Run(c.language, func(t *testing.T) {
			if _, err := exec.LookPath(c.check[0]); err != nil {
				servers.Check(t, fmt.Errorf("%w (%w)", err, servers.ErrMissing))
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(example(t, "pull-queues", c.language)), 0o600); err != nil {
				t.Fatal(err)
			}
			check := exec.CommandContext(t.Context(), c.check[0], c.check[1:]...)
			check.Dir = dir
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", check, err, out)
			}
		})
	}
}

// manualConfig writes the configuration of a chapter into a file, with the fields that the
// configuration needs around it, and checks that it is valid without a warning.
func manualConfig(t *testing.T, topic, inventory string) (path string) {
	t.Helper()
	const around = "api: {auth_token: 0123456789abcdef0123456789abcdef}\nsources: {shop: {type: event}}\n"
	path = filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(path, []byte(around+example(t, topic, "yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	s := session{env: map[string]string{"ORDERS_KEY": strings.Repeat("k", 32)}}
	code, stdout, stderr := s.run(t.Context(), "validate", "-c", path)
	if code != exitDone || stderr != "" || !strings.HasSuffix(stdout, inventory+"\n") {
		t.Errorf("validate ends with %d and says\n%s%s", code, stdout, stderr)
	}
	return path
}

// needed are the fields that a configuration needs, if the example does not have them.
var needed = []string{
	"api: {auth_token: 0123456789abcdef0123456789abcdef}",
	`delivery: {signing_secret: "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}`,
	"sources: {shop: {type: event}}",
}

// TestDocumentedConfigurations: each example of a configuration, in README and the chapters,
// is valid without a warning.
func TestDocumentedConfigurations(t *testing.T) {
	environment := map[string]string{"DATABASE_URL": "postgres://gateway:secret@db.example.com/gateway?sslmode=verify-full", "SLACK_WEBHOOK": "https://hooks.slack.com/services/T0/B0/x"}
	for _, name := range []string{
		"ORDERS_KEY", "D1_TOKEN", "GATEWAY_API_TOKEN", "SIGNING_SECRET", "GITHUB_WEBHOOK_SECRET", "STRIPE_WEBHOOK_SECRET", "NEW_TOKEN", "OLD_TOKEN",
		"GATEWAY_METRICS_TOKEN", "PARTNER_SECRET", "BILLING_TOKEN", "SEARCH_SIGNING_SECRET", "PAY_TOKEN", "OPS_SIGNING_SECRET",
	} {
		environment[name] = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	}
	for _, name := range []string{"SHOP_TOKEN", "DASHBOARD_TOKEN", "CI_TOKEN", "CI_TOKEN_2"} { // tokens with roles differ
		environment[name] = name + "-0123456789abcdef0123456789abcdef"
	}
	seen := 0
	for _, file := range documents(t) {
		if strings.HasPrefix(file, "../../infra/") { // parts of files that are configured there
			continue
		}
		for _, text := range strings.Split(strings.Join(examples(t, file, "yaml"), "---\n"), "---\n") {
			if text == "" || strings.HasPrefix(text, "scrape_configs:") { // of Prometheus
				continue
			}
			seen++
			if strings.Contains(text, "driver: mysql") {
				environment["DATABASE_URL"] = "mysql://gateway:secret@db.example.com/gateway?tls=true"
			}
			path := filepath.Join(t.TempDir(), "gateway.yaml")
			if err := os.WriteFile(path, []byte(completed(text)), 0o600); err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := (session{env: environment}).run(t.Context(), "validate", "-c", path)
			if stderr = untaken.ReplaceAllString(stderr, ""); code != exitDone || stderr != "" {
				t.Errorf("%s: validate ends with %d and says\n%s%s of\n%s", file, code, stdout, stderr, text)
			}
		}
	}
	if seen < 9 {
		t.Errorf("%d examples were found", seen)
	}
}

// untaken is the one warning that an example may cause: an example may show a source without its
// handlers, queues and workflows.
var untaken = regexp.MustCompile(`(?m)^warning: .*: no handler, queue or workflow takes this source's events\n`)

// completed is a configuration with the needed fields that it lacks.
func completed(text string) string {
	for _, line := range needed {
		if key, _, _ := strings.Cut(line, " "); !regexp.MustCompile("(?m)^" + key).MatchString(text) {
			text += line + "\n"
		}
	}
	return text
}

// TestManualQueue: the configuration that the consumers are for is valid, without a warning.
func TestManualQueue(t *testing.T) {
	manualConfig(t, "pull-queues", ": 1 source, 0 handlers, 1 queue")
}

// TestManualWorkflow: the example of a workflow can be used unchanged, and its run comes to its
// end.
func TestManualWorkflow(t *testing.T) {
	path := manualConfig(t, "workflows", ": 1 source, 0 handlers, 1 workflow")
	cfg, err := config.Load(config.Options{FS: hostFS{}, Path: path})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := sqlite.Open(filepath.Join(t.TempDir(), "gateway.db"))
	if err != nil {
		t.Fatal(err)
	}
	s := seeder{Store: store.New(conn, store.SQLite, core.SystemClock), cfg: cfg, calls: map[string]string{}}
	defer s.Close()
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := seedRun{ID: "01J9000000000000000000000A", Job: "01J9000000000000000000000B", Workflow: "fulfil-order", Replies: map[string][]string{
		"check-stock":                 {"503 ", `200 {"available": true}`},
		"prepare/payment":             {`200 {"paid": true}`},
		"prepare/parcels/pack/0/item": {`200 "P1"`},
		"prepare/parcels/pack/1/item": {`200 "P2"`},
	}}
	order := seedEvent{ID: "01J90000000000000000000001", Source: "shop", Type: "order.created",
		Payload: `{"order_id": "A17", "total": 99.50, "items": ["pen", "ink"]}`, At: stamp{time.Unix(1727776800, 0)}, Runs: []seedRun{run}}
	if err := s.event(order); err != nil {
		t.Fatal(err)
	}
	ended, err := s.Run(t.Context(), run.ID)
	if err != nil || ended.Status != core.RunCompleted {
		t.Errorf("the run is %s: %s (%v)", ended.Status, ended.Error, err)
	}
	if want := `{"order": "A17", "parcels": ["P1","P2"]}`; s.calls["notify"] != want {
		t.Errorf("notify was sent %s, want %s", s.calls["notify"], want)
	}
}
