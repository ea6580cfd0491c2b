//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestConfig: the functions tell their configuration without secrets, and a preview compares a new one
// with it over the events that they export.
func TestConfig(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		d, r := newStory(t, db)
		d.send("/events/order.created", `{"n": 1}`)
		d.send("/events/order.created", `{"n": 2}`)
		r.Await(t, 20*time.Second, "/orders", 2)
		told := d.must(200, "GET", "/api/config", "").body
		for _, want := range []string{`"configuration":`, "order.*", "inbox", `"workflow_definitions":`, "approval"} {
			if !strings.Contains(told, want) {
				t.Errorf("the configuration lacks %q: %s", want, told)
			}
		}
		if strings.Contains(told, githubSecret) {
			t.Errorf("the configuration has the secret of a source: %s", told)
		}
		d.must(400, "GET", "/api/config?source=app", "")

		if said := d.gateway("preview", "-c", "gateway.yaml", "--url", d.api.URL); !strings.Contains(said, "2 events") {
			t.Errorf("a preview of the same configuration says\n%s", said)
		}
		text, err := os.ReadFile(filepath.Join(d.dir, "gateway.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(text), `events: ["order.*"],`, `events: ["order.*"], filter: $.n > 1,`, 1)
		if err := os.WriteFile(filepath.Join(d.dir, "new.yaml"), []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		preview := exec.Command(program("gateway"), "preview", "-c", "new.yaml", "--url", d.api.URL)
		preview.Dir, preview.Env = d.dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + d.dir}, d.env...)
		said, _ := preview.CombinedOutput()
		if code := preview.ProcessState.ExitCode(); code != 3 || !strings.Contains(string(said), "orders") {
			t.Errorf("a preview of a new filter ends with %d and says\n%s\nwant 3, and the handler whose event is lost", code, said)
		}
	})
}
