//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

// beside makes a second gateway, with its own database file.
func (g *gateway) beside(t *testing.T, config string) *gateway {
	t.Helper()
	second := newGateway(t, config, nil)
	second.env = append(second.env, g.env[1:]...)
	return second
}

// TestSecondGateway: a SQLite file serves one gateway, even if a second one uses another name
// of the file. Each would overwrite events of the other.
func TestSecondGateway(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"hard link", "lock file removed", "symbolic link"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := receiver.New(t)
			g := newGateway(t, plainConfig, r)
			g.start()
			g.send("/events/order.created", `{}`)
			second := g.beside(t, plainConfig)
			switch how {
			case "hard link":
				check(t, os.Link(g.database(), second.database()))
			case "symbolic link":
				check(t, os.Symlink(g.database(), second.database()))
			case "lock file removed":
				remove(t, g.database()+".lock")
				second = g.beside(t, plainConfig+"database: {url: "+g.database()+"}\n")
			}
			want := []string{filepath.Base(g.database()), "is in use by another gateway", "stop that one"}
			checkRefused(t, second, second.command("start"), want, 1)
			events := []string{g.send("/events/order.created", `{}`)}
			g.run("jobs", "list")
			g.kill()
			g.start()
			events = append(events, g.send("/events/order.created", `{}`))
			g.awaitIdle(10 * time.Second)
			g.stop()
			g.ledger().holds(events)
			g.ledger().check(1)
		})
	}
}

// TestCommandsThroughHardLink: a command that opens the file of a running gateway by another
// name is refused: it would write to its own log.
func TestCommandsThroughHardLink(t *testing.T) {
	t.Parallel()
	g := newGateway(t, plainConfig, receiver.New(t))
	g.start()
	g.send("/events/order.created", `{}`)
	other := g.beside(t, plainConfig)
	check(t, os.Link(g.database(), other.database()))
	got := run(t, other.command("jobs", "retry"))
	if got.code != 1 || !strings.Contains(got.stderr, "under another name") {
		t.Errorf("jobs retry through a hard link: exit code %d\n%s%s\nwant 1, and that the file is served under another name", got.code, got.stdout, got.stderr)
	}
	g.run("jobs", "retry")
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLostDatabase: a gateway does not start on a file that lacks accepted events. The error
// names the wrong file. Files that may help to recover the events stay unchanged.
func TestLostDatabase(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		killed bool
		lose   func(t *testing.T, db string)
		want   []string
	}{
		{"emptied", false, emptied(""), []string{"gateway.db is empty", "remove gateway.db.lock to begin with an empty database"}},
		{"emptied after a kill", true, emptied(""), []string{"gateway.db is empty", "gateway.db-wal"}},
		{"removed after a kill", true, removed(""), []string{"gateway.db is missing", "gateway.db-wal"}},
		{"log removed", true, removed("-wal"), []string{"gateway.db lacks", "gateway.db-wal", "remove gateway.db.lock"}},
		{"log emptied", true, emptied("-wal"), []string{"gateway.db lacks", "gateway.db-wal", "remove gateway.db.lock"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g, events := served(t)
			if tt.killed {
				g.kill()
			} else {
				g.stop()
			}
			kept := snapshot(t, g.dir)
			tt.lose(t, g.database())
			lost := snapshot(t, g.dir)
			checkRefused(t, g, g.command("start"), tt.want, 1)
			if tt.name != "removed after a kill" && !strings.HasPrefix(tt.name, "log") {
				checkRefused(t, g, g.command("jobs", "list"), tt.want, 1)
				if got := run(t, g.command("doctor")); got.code != 1 || !strings.Contains(got.stdout, tt.want[0]) {
					t.Errorf("doctor: exit code %d\n%s\nwant 1 and %q", got.code, got.stdout, tt.want[0])
				}
			}
			for name, text := range snapshot(t, g.dir) {
				if was, known := lost[name]; known && was != text && !strings.HasSuffix(name, "-shm") && !strings.HasSuffix(name, ".lock") {
					t.Errorf("a refused start changed %s", name)
				}
			}
			for name, text := range kept { // the remedy in the message
				if !strings.HasSuffix(name, "-shm") && !strings.HasSuffix(name, ".lock") {
					write(t, filepath.Join(g.dir, name), text)
				}
			}
			g.start()
			g.awaitIdle(5 * time.Second)
			g.stop()
			g.ledger().holds(events)
		})
	}
}

// TestBeginAnew: the remedies in the error of a refused start work.
func TestBeginAnew(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		lose   func(t *testing.T, db string)
		remove []string
	}{
		{"emptied", emptied(""), []string{"gateway.db-wal", "gateway.db.lock"}},
		{"log removed", removed("-wal"), []string{"gateway.db.lock"}},
		{"all removed", func(t *testing.T, db string) { removed("")(t, db); removed("-wal")(t, db) }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g, _ := served(t)
			g.kill()
			tt.lose(t, g.database())
			for _, name := range tt.remove {
				remove(t, filepath.Join(g.dir, name))
			}
			g.start()
			if warned := strings.Contains(g.log.String(), "a new database was made"); warned != (tt.name == "all removed") {
				t.Errorf("warned of a new database %v:\n%s", warned, g.log)
			}
			event := g.send("/events/order.created", `{}`)
			g.awaitIdle(5 * time.Second)
			g.stop()
			g.start()
			g.stop()
			g.ledger().holds([]string{event})
		})
	}
}

// TestLogOfKilledGateway: the first program that opens the file after a kill moves the log
// into the file. Then no event is missing.
func TestLogOfKilledGateway(t *testing.T) {
	t.Parallel()
	g, events := served(t)
	g.kill()
	l := g.ledger()
	l.holds(events)
	l.close()
	if exists(g.database() + "-wal") {
		t.Fatal("the log is still there, so nothing was tested")
	}
	g.start()
	g.awaitIdle(5 * time.Second)
	g.stop()
	g.ledger().holds(events)
}

// TestNoLocks: the error says that a file system has no locks.
func TestNoLocks(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("strace")
	need(t, "strace", err)
	for call, file := range map[string]string{"flock": "gateway.db.lock", "fcntl": "gateway.db"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, plainConfig, receiver.New(t))
			c := g.command("start")
			trace := filepath.Join(t.TempDir(), "trace")
			c.name, c.args = "strace", []string{"-f", "-qq", "-o", trace, "-P", filepath.Join(g.dir, file), "-e", "inject=" + call + ":error=ENOLCK", binary, "start"}
			checkRefused(t, g, c, []string{"lock " + file + ": no locks available", "network file systems", "put the database on a local disk"}, 1)
		})
	}
}

// served returns a running gateway that accepted events, some of them only in the log.
func served(t *testing.T) (*gateway, []string) {
	t.Helper()
	g := newGateway(t, plainConfig, receiver.New(t))
	g.start()
	events := []string{g.send("/events/order.created", `{}`)}
	g.stop()
	g.start()
	for range 3 {
		events = append(events, g.send("/events/order.created", `{}`))
	}
	return g, events
}

func emptied(suffix string) func(*testing.T, string) {
	return func(t *testing.T, db string) { check(t, os.Truncate(db+suffix, 0)) }
}

func removed(suffix string) func(*testing.T, string) {
	return func(t *testing.T, db string) { remove(t, db+suffix) }
}

// snapshot reads the database's files in a folder.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(dir, "gateway.db*"))
	check(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		check(t, err)
		files[filepath.Base(path)] = string(text)
	}
	return files
}
