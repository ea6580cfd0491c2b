package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/infra/test/servers"
)

// example is the one block in this language of README's section on queues.
func example(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n### Pull queues\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) != 1 {
		t.Fatalf("README's section on queues has %d examples in %s, want 1", len(blocks), language)
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
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(example(t, c.language)), 0o600); err != nil {
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

// TestReadmeQueue: the configuration the consumers are for is one, without a warning.
func TestReadmeQueue(t *testing.T) {
	const around = "api: {auth_token: 0123456789abcdef0123456789abcdef}\nsources: {shop: {type: event}}\n"
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(path, []byte(around+example(t, "yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	s := session{env: map[string]string{"ORDERS_KEY": strings.Repeat("k", 32)}}
	code, stdout, stderr := s.run(t.Context(), "validate", "-c", path)
	if code != exitDone || stderr != "" || !strings.HasSuffix(stdout, ": 1 source, 0 handlers, 1 queue\n") {
		t.Errorf("validate ends with %d and says\n%s%s", code, stdout, stderr)
	}
}
