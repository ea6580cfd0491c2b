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
	programs := t.TempDir()
	for _, name := range []string{"bash", "dirname", "id", "cmp"} { // and no apt-get
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(programs, name)); err != nil {
			t.Fatal(err)
		}
	}
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
