//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

const editedConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
api: {auth_token: a-token-of-operators-of-24-bytes}
database: {driver: sqlite, url: DATABASE}
sources: {app: {type: event}}
`

// TestCommandsOnAnotherDatabase: if the configuration names another database than the running
// gateway uses, commands warn and name both. They do not warn if the file is the same under
// another name, if another gateway answers, or if no gateway runs.
func TestCommandsOnAnotherDatabase(t *testing.T) {
	t.Parallel()
	g := newGateway(t, strings.ReplaceAll(editedConfig, "DATABASE", "gateway.db"), receiver.New(t))
	g.start()
	if err := os.Symlink("gateway.db", filepath.Join(g.dir, "link.db")); err != nil {
		t.Fatal(err)
	}
	configure := func(database, token string) {
		text := strings.ReplaceAll(editedConfig, "DATABASE", database)
		g.configure(strings.ReplaceAll(text, "a-token-of-operators-of-24-bytes", token))
	}
	const token = "a-token-of-operators-of-24-bytes"
	warned := func(when string, want bool) {
		t.Helper()
		r := run(t, g.command("jobs", "list"))
		both := strings.Contains(r.stderr, "works on sqlite "+filepath.Join(g.dir, "gateway.db")+", but this command works on sqlite "+filepath.Join(g.dir, "other.db"))
		if both != want || strings.Contains(r.stderr, "warning") != want || strings.Contains(r.stdout+r.stderr, token) {
			t.Errorf("%s: warned %v, want %v:\n%s", when, both, want, r.stderr)
		}
	}
	warned("as it was started", false)
	configure("link.db", token)
	warned("the same file under another name", false)
	configure("other.db", token)
	warned("another file", true)
	configure("other.db", "another-token-of-24-bytes-or-more")
	warned("a gateway that another token opens", false)
	configure("other.db", token)
	g.stop()
	warned("no gateway runs", false)
}
