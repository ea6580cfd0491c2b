//go:build linux

package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// TestRefusedStarts: a start with a mistake fails at once, with exit code 1. The error says
// how to correct it, and existing files stay unchanged.
func TestRefusedStarts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		config  string // instead of plainConfig
		prepare func(t *testing.T, g *gateway)
		want    []string // each in a line of standard error
		lines   int      // number of lines of standard error
	}{
		{
			name:   "bad configuration",
			config: "servr: {port: 1}\nsources: {app: {type: evnt}}\nhandlers: {h: {source: nobody, url: \"ftp://x\"}}\n",
			want: []string{`gateway.yaml:1:1: servr: `, `did you mean "server"?`, `gateway.yaml:2:`, `sources.app.type`, `handlers.h.source`,
				`handlers.h.url`, `the configuration has 4 problems`},
			lines: 5,
		},
		{
			name:    "no configuration",
			prepare: func(t *testing.T, g *gateway) { remove(t, filepath.Join(g.dir, "gateway.yaml")) },
			want:    []string{`gateway.yaml: no such file; "gateway init" writes one`},
			lines:   2,
		},
		{
			name:    "port in use",
			prepare: takePort,
			want:    []string{"port ${PORT} is in use by another program; stop it, or set server.port"},
			lines:   1,
		},
		{
			name:   "database folder that does not exist",
			config: plainConfig + "database: {url: nowhere/gateway.db}\n",
			want:   []string{"nowhere"},
			lines:  1,
		},
		{
			name: "database file that is something else",
			prepare: func(t *testing.T, g *gateway) {
				write(t, g.database(), strings.Repeat("this is a diary, not a database\n", 100))
			},
			want:  []string{"gateway.db", "file is not a database", "let database.url name another file, or restore a backup"},
			lines: 1,
		},
		{
			name:    "database of a newer version",
			prepare: makeNewer,
			want:    []string{"newer version of the gateway", "run the newer version"},
			lines:   1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := receiver.New(t)
			g := newGateway(t, plainConfig, r)
			if tt.config != "" {
				g.configure(tt.config)
			}
			if tt.prepare != nil {
				tt.prepare(t, g)
			}
			before, _ := os.ReadFile(g.database())
			checkRefused(t, g, g.command("start"), tt.want, tt.lines)
			if after, _ := os.ReadFile(g.database()); before != nil && string(after) != string(before) {
				t.Error("the database file was changed")
			}
		})
	}
}

func checkRefused(t *testing.T, g *gateway, c command, wants []string, lines int) {
	t.Helper()
	began := time.Now()
	got := run(t, c)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("refused after %v, want at once", took)
	}
	if got.code != 1 {
		t.Errorf("exit code = %d, want 1", got.code)
	}
	for _, want := range wants {
		if want = strings.ReplaceAll(want, "${PORT}", fmt.Sprint(g.port)); !strings.Contains(got.stderr, want) {
			t.Errorf("standard error =\n%swant %q in it", got.stderr, want)
		}
	}
	if n := strings.Count(got.stderr, "\n"); n != lines {
		t.Errorf("standard error has %d lines, want %d:\n%s", n, lines, got.stderr)
	}
	if got.stdout != "" {
		t.Errorf("standard output = %q, want none", got.stdout)
	}
}

func takePort(t *testing.T, g *gateway) {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", g.port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
}

// makeNewer makes a database and adds a schema step of a later version.
func makeNewer(t *testing.T, g *gateway) {
	t.Helper()
	g.start()
	g.stop()
	l := openLedger(t, g.database())
	if _, err := l.db.Exec(`INSERT INTO schema_steps (number, applied_at) VALUES (9999, 0)`); err != nil {
		t.Fatal(err)
	}
	// The database must be in one file, for the comparison.
	if _, err := l.db.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		t.Fatal(err)
	}
	if err := l.db.Close(); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestUnwritableDatabase: the error names a folder or a file without the right to write, and
// does not say "error 14".
func TestUnwritableDatabase(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"folder", "file"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, plainConfig+"database: {url: data/gateway.db}\n", receiver.New(t))
			// t.TempDir is closed to other users, and root may write anywhere.
			dir, err := os.MkdirTemp("", "gateway-e2e-unwritable-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			data := filepath.Join(dir, "data")
			if err := os.Mkdir(data, 0o755); err != nil {
				t.Fatal(err)
			}
			if what == "file" {
				write(t, filepath.Join(data, "gateway.db"), "")
				chmod(t, filepath.Join(data, "gateway.db"), 0o444)
				chmod(t, data, 0o777)
			} else {
				chmod(t, data, 0o555)
			}
			config, err := os.ReadFile(filepath.Join(g.dir, "gateway.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "gateway.yaml"), string(config))
			chmod(t, filepath.Join(dir, "gateway.yaml"), 0o644)
			chmod(t, dir, 0o755)
			c := g.command("start")
			c.dir, c.user = dir, unprivileged()
			checkRefused(t, g, c, []string{"data/gateway.db", "permission denied"}, 1)
		})
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// TestOpenGatewayWarns: without a token every client may send events. The log has a warning at
// each start.
func TestOpenGatewayWarns(t *testing.T) {
	t.Parallel()
	const warning = "everyone may send events"
	for config, want := range map[string]bool{plainConfig: true, plainConfig + "api: {auth_token: a-token-of-more-than-24-bytes}\n": false} {
		g := newGateway(t, config, receiver.New(t))
		g.start()
		if want {
			wait.For(t, 5*time.Second, "the warning in the log", func() bool { return strings.Contains(g.process.log.String(), warning) })
		}
		g.stop() // the whole log is written now
		if got := strings.Contains(g.process.log.String(), warning); got != want {
			t.Errorf("with a token %v: warned %v", !want, got)
		}
	}
}
