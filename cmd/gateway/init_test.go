package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/eventgateway/gateway/core/config"
)

// secretField finds the literal secrets in a starter file.
var secretField = regexp.MustCompile(`(?m)^\s+(?:auth_token|signing_secret|secret|api_key): "?([^"$\s]+)"?$`)

// TestInitSecrets: each starter file has secrets of its own, in a file that only its owner
// can read, and listens on this machine alone.
func TestInitSecrets(t *testing.T) {
	seen := map[string]bool{}
	for _, template := range templateNames() {
		for range 2 {
			dir := t.TempDir()
			overlay := filepath.Join(dir, overlayFile)
			if err := os.WriteFile(overlay, nil, 0o644); err != nil { // --force makes an existing file secret, too
				t.Fatal(err)
			}
			if code, _, stderr := (session{}).run(t.Context(), "init", "--force", "--template", template, "--dir", dir); code != 0 {
				t.Fatalf("init --template %s ends with %d: %s", template, code, stderr)
			}
			info, err := os.Stat(overlay)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %s has the mode %v (%v), want 0600", template, overlayFile, info.Mode(), err)
			}
			cfg, err := config.Load(config.Options{FS: os.DirFS(dir), Path: baseFile, Env: "local", Lookup: func(string) (string, bool) { return "", false }})
			if err != nil {
				t.Fatal(err)
			}
			if cfg.Server.Host != "127.0.0.1" {
				t.Errorf("%s: listens on %q, want 127.0.0.1", template, cfg.Server.Host)
			}
			text, err := os.ReadFile(overlay)
			if err != nil {
				t.Fatal(err)
			}
			found := secretField.FindAllSubmatch(text, -1)
			if len(found) < 2 {
				t.Errorf("%s: %d secrets in %s, want at least 2", template, len(found), overlayFile)
			}
			for _, match := range found {
				if secret := string(match[1]); seen[secret] || len(secret) < 44 {
					t.Errorf("%s: the secret %q is short or was written before", template, secret)
				} else {
					seen[secret] = true
				}
			}
		}
	}
}

// TestTemplatesHoldNoSecret: each field for a secret in a template holds a variable or a
// hole.
func TestTemplatesHoldNoSecret(t *testing.T) {
	files, err := templates.ReadDir("templates")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := templates.ReadFile("templates/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range secretField.FindAllSubmatch(text, -1) {
			if !slices.Contains([]string{"{{hex}}", "whsec_{{base64}}"}, string(match[1])) {
				t.Errorf("%s has the secret %s", f.Name(), match[1])
			}
		}
	}
}
