package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/wait"
	"github.com/eventgateway/gateway/store"
)

// copied copies a file to a new one, as mv does between file systems.
func copied(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// moved moves a file as mv does between file systems.
func moved(t *testing.T, from, to string) {
	t.Helper()
	copied(t, from, to)
	if err := os.Remove(from); err != nil {
		t.Fatal(err)
	}
}

// afterKill opens a copy of the database as a gateway would find it if this one were killed now.
func afterKill(t *testing.T, path string) *conn {
	t.Helper()
	dir := t.TempDir()
	for _, suffix := range []string{"", "-wal"} {
		copied(t, path+suffix, filepath.Join(dir, "gateway.db"+suffix))
	}
	return openConn(t, filepath.Join(dir, "gateway.db"))
}

// insert retries until the row is accepted.
func insert(t *testing.T, c *conn, n int) {
	t.Helper()
	wait.For(t, 10*time.Second, "a row is accepted", func() bool {
		_, err := c.Batch(t.Context(), write("INSERT INTO t VALUES (?) ON CONFLICT DO NOTHING", int64(n)))
		if err != nil && !core.IsKind(err, core.Unavailable) {
			t.Fatalf("Batch = %v, want unavailable", err)
		}
		return err == nil
	})
}

func count(t *testing.T, c store.Conn) int64 {
	t.Helper()
	return one(t, c, "SELECT COUNT(*) FROM t").(int64)
}

// TestFilesMovedAway: any of the database's files are moved to another file system and back. The
// server continues, and no accepted row is lost.
func TestFilesMovedAway(t *testing.T) {
	for _, what := range [][]string{{""}, {"", "-wal", "-shm"}, {"", "-shm", "-wal"}, {"-wal"}, {"-wal", ""}} {
		t.Run("db"+strings.Join(what, ",db"), func(t *testing.T) {
			path, away := filepath.Join(t.TempDir(), "gateway.db"), filepath.Join(t.TempDir(), "away.db")
			l, c := serve(t, path)
			do(t, c, write("CREATE TABLE t (n INTEGER PRIMARY KEY)"))
			insert(t, c, 1)
			var reading sync.WaitGroup
			defer reading.Wait()
			for range 3 { // these sessions are in use meanwhile
				reading.Go(func() {
					for range 200 {
						_, _ = c.Batch(t.Context(), read("SELECT COUNT(*) FROM t"), read("SELECT 1"))
					}
				})
			}
			for _, suffix := range what {
				moved(t, path+suffix, away+suffix)
			}
			_, err := c.Batch(t.Context(), write("INSERT INTO t VALUES (2)"))
			if what[0] == "" && !core.IsKind(err, core.Unavailable) {
				t.Errorf("Batch without the file = %v, want unavailable", err)
			}
			for _, suffix := range what {
				moved(t, away+suffix, path+suffix)
			}
			for n := range 4 {
				insert(t, c, n+1)
			}
			if n := count(t, c); n != 4 {
				t.Errorf("%d rows, want 4", n)
			}
			if n := count(t, afterKill(t, path)); n != 4 {
				t.Errorf("%d rows after a kill, want 4", n)
			}
			if err := os.Remove(path + ".lock"); err != nil {
				t.Fatal(err)
			}
			if second, err := Acquire(path); err == nil {
				second.Release()
				t.Error("a second gateway may lock the file that came back")
			}
			reading.Wait()
			if err := errors.Join(c.Close(), l.Release()); err != nil {
				t.Fatal(err)
			}
			if n := count(t, openConn(t, path)); n != 4 {
				t.Errorf("%d rows after the end, want 4", n)
			}
		})
	}
}

// TestLogDeleted: after the WAL was deleted, its commits are moved into the database file before
// another write is accepted.
func TestLogDeleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	_, c := serve(t, path)
	do(t, c, write("CREATE TABLE t (n INTEGER PRIMARY KEY)"))
	for n := range 3 {
		insert(t, c, 2*n)
		if err := os.Remove(path + "-wal"); err != nil {
			t.Fatal(err)
		}
		insert(t, c, 2*n+1)
		if rows := count(t, afterKill(t, path)); rows != int64(2*n+2) {
			t.Errorf("%d rows after a kill, want %d", rows, 2*n+2)
		}
	}
}

// TestOlderFileInPlace: a server does not switch to a file that lacks its commits until the file
// has them.
func TestOlderFileInPlace(t *testing.T) {
	path, away := filepath.Join(t.TempDir(), "gateway.db"), filepath.Join(t.TempDir(), "away.db")
	l, c := serve(t, path)
	do(t, c, write("CREATE TABLE t (n INTEGER PRIMARY KEY)"))
	c.Close()
	l.Release()
	copied(t, path, away)
	_, c = serve(t, path)
	insert(t, c, 1)
	if err := os.Rename(path, path+".newer"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"-wal", path+".newer-wal"); err != nil {
		t.Fatal(err)
	}
	copied(t, away, path)
	for _, st := range []store.Stmt{write("INSERT INTO t VALUES (2)"), read("SELECT COUNT(*) FROM t")} {
		wait.For(t, 10*time.Second, st.SQL+" says what is wrong", func() bool {
			_, err := c.Batch(t.Context(), st)
			if !core.IsKind(err, core.Unavailable) {
				t.Fatalf("%s = %v, want unavailable", st.SQL, err)
			}
			return strings.Contains(err.Error(), "lacks commits")
		})
	}
	for _, suffix := range []string{"-wal", ""} {
		if err := os.Rename(path+".newer"+suffix, path+suffix); err != nil {
			t.Fatal(err)
		}
	}
	insert(t, c, 2)
	if n := count(t, c); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}

// TestEmptiedFile: no row is accepted into a file that was emptied.
func TestEmptiedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	_, c := serve(t, path)
	do(t, c, write("CREATE TABLE t (n INTEGER PRIMARY KEY)"))
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Batch(t.Context(), write("INSERT INTO t VALUES (1)")); !core.IsKind(err, core.Unavailable) || !strings.Contains(err.Error(), "was emptied") {
		t.Errorf("Batch = %v, want unavailable, and why", err)
	}
}
