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

// example is the one block in this language of a section of README.
func example(t *testing.T, name, language string) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n### "+name+"\n")
	section = regexp.MustCompile(`\n###? `).Split(section, 2)[0]
	blocks := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) != 1 {
		t.Fatalf("README's section %q has %d examples in %s, want 1", name, len(blocks), language)
	}
	return blocks[0][1]
}

// TestReadmeConsumers: whoever copies an example has a program.
func TestReadmeConsumers(t *testing.T) {
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
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(example(t, "Pull queues", c.language)), 0o600); err != nil {
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

// readmeConfig writes the configuration of a section into a file, with what it needs
// around it, and checks that it is valid without a warning.
func readmeConfig(t *testing.T, name, inventory string) (path string) {
	t.Helper()
	const around = "api: {auth_token: 0123456789abcdef0123456789abcdef}\nsources: {shop: {type: event}}\n"
	path = filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(path, []byte(around+example(t, name, "yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	s := session{env: map[string]string{"ORDERS_KEY": strings.Repeat("k", 32)}}
	code, stdout, stderr := s.run(t.Context(), "validate", "-c", path)
	if code != exitDone || stderr != "" || !strings.HasSuffix(stdout, inventory+"\n") {
		t.Errorf("validate ends with %d and says\n%s%s", code, stdout, stderr)
	}
	return path
}

// TestReadmeQueue: the configuration the consumers are for is one, without a warning.
func TestReadmeQueue(t *testing.T) {
	readmeConfig(t, "Pull queues", ": 1 source, 0 handlers, 1 queue")
}

// TestReadmeWorkflow: whoever copies the example has a workflow that runs to its end.
func TestReadmeWorkflow(t *testing.T) {
	path := readmeConfig(t, "Workflows", ": 1 source, 0 handlers, 1 workflow")
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
