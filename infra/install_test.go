package infra_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestInstallSeesWhatIsMissing: on a machine without packages, infra/test/install names each program that the
// tests need. PostgreSQL and the font are left out: it looks for them in fixed folders too.
func TestInstallSeesWhatIsMissing(t *testing.T) {
	t.Parallel()
	programs := programsOf(t, "bash", "dirname", "id", "cmp") // and no apt-get
	c := exec.Command("bash", "test/install")
	c.Env = []string{"PATH=" + programs}
	said, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("infra/test/install: %v\n%s", err, said)
	}
	for _, want := range []string{"gcc", "strace", "iproute2", "git", "mariadb-server-core", "prometheus", "nodejs", "chromium-headless-shell"} {
		if !strings.Contains(string(said), "(apt-get install "+want) {
			t.Errorf("it does not say that %s is missing:\n%s", want, said)
		}
	}
}

// TestInstallKeepsPackages: the node packages are installed once. Another checkout gets them without
// npm, unless its lock file is another.
func TestInstallKeepsPackages(t *testing.T) {
	t.Parallel()
	programs := programsOf(t, "bash", "dirname", "id", "cmp", "sha256sum", "cut", "touch", "rm", "cp", "mv", "mkdir", "find")
	writeFile(t, filepath.Join(programs, "node"), "")
	writeFile(t, filepath.Join(programs, "npm"), `#!/bin/sh
mkdir -p node_modules/p && cp package-lock.json node_modules/p && echo "${PWD##*/}" >>"$CALLS"`)
	home := t.TempDir()
	calls := filepath.Join(home, "calls")
	folders := []string{"d1", "azurite", "openapi", "browser", "clients"}
	for _, c := range []struct{ lock, calls string }{
		{"{}", "d1 azurite openapi browser clients"},
		{"{}", ""},
		{"{ }", "d1 azurite openapi browser clients"},
		{"{}", ""},
	} {
		checkout := t.TempDir()
		install := filepath.Join(checkout, "install")
		script, err := os.ReadFile("test/install")
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, install, string(script))
		for _, folder := range folders {
			writeFile(t, filepath.Join(checkout, folder, "package-lock.json"), c.lock)
		}
		writeFile(t, calls, "")
		for range 2 { // The second one does nothing.
			run := exec.Command("bash", install)
			run.Env = []string{"PATH=" + programs, "HOME=" + home, "CALLS=" + calls}
			if said, err := run.CombinedOutput(); err != nil {
				t.Fatalf("install: %v\n%s", err, said)
			}
		}
		if got := strings.Join(strings.Fields(readFile(t, calls)), " "); got != c.calls {
			t.Errorf("with the lock file %q, npm ran in %q, want %q", c.lock, got, c.calls)
		}
		for _, folder := range folders {
			if got := readFile(t, filepath.Join(checkout, folder, "node_modules/p/package-lock.json")); got != c.lock {
				t.Errorf("%s has packages of the lock file %q, want %q", folder, got, c.lock)
			}
		}
	}
}

// programsOf returns a folder that has only the named programs.
func programsOf(t *testing.T, names ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// writeFile writes a file that can be run, and the folders above it.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
