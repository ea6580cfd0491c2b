package sqlite

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// serve locks and opens a database as a server does.
func serve(t *testing.T, path string) (*Lock, *conn) {
	t.Helper()
	l, err := Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Release() })
	c, err := l.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return l, c.(*conn)
}

// TestMarkIsInTheLogAlone: while the WAL has a commit that the file lacks, the file's mark is
// lower than the noted mark.
func TestMarkIsInTheLogAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	_, c := serve(t, path)
	do(t, c, write("CREATE TABLE t (x BLOB)"))
	for round := range 3 {
		c.writer.checkpointer.wake()
		awaitMoved(t, c)
		wait.For(t, 10*time.Second, "a mark is due", c.writer.marker.due.Load)
		before := noteBeside(path).mark
		lazy := write("DELETE FROM t")
		lazy.Lazy = true
		do(t, c, lazy)
		if now := noteBeside(path).mark; now != before {
			t.Errorf("round %d: a commit that is not synced raised the noted mark from %d to %d", round, before, now)
		}
		do(t, c, write("INSERT INTO t VALUES (1)"))
		noted := noteBeside(path).mark
		if noted <= before {
			t.Errorf("round %d: the noted mark is %d after a commit behind a checkpoint, want more than %d", round, noted, before)
		}
		do(t, c, write("INSERT INTO t VALUES (1)"))
		if now := noteBeside(path).mark; now != noted {
			t.Errorf("round %d: the second commit behind a checkpoint raised the mark to %d, want %d", round, now, noted)
		}
		if got := one(t, c, "PRAGMA user_version"); got != noted {
			t.Errorf("round %d: mark of the database = %v, noted %d", round, got, noted)
		}
		alone := filepath.Join(t.TempDir(), "alone.db") // the file without its WAL
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(alone, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := one(t, openConn(t, alone), "PRAGMA user_version").(int64); got >= noted {
			t.Errorf("round %d: mark of the file without its log = %d, want less than %d", round, got, noted)
		}
	}
}

// TestMarkOfFailedCommit: a mark that was rolled back is neither noted nor used again.
func TestMarkOfFailedCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	_, c := serve(t, path)
	if _, err := c.Batch(t.Context(), write("no statement")); err == nil {
		t.Fatal("a batch that is no SQL succeeded")
	}
	if mark := noteBeside(path).mark; mark != 0 {
		t.Errorf("noted mark after a failed commit = %d, want none", mark)
	}
	do(t, c, write("CREATE TABLE t (n INTEGER)"))
	if mark := noteBeside(path).mark; mark != one(t, c, "PRAGMA user_version") || mark == 0 {
		t.Errorf("noted mark = %d, want that of the database", mark)
	}
}

// TestOlderFileIsRefused: a server refuses a file that is older than the noted mark. A command
// may still read it.
func TestOlderFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	l, c := serve(t, path)
	do(t, c, write("CREATE TABLE t (n INTEGER)"))
	c.Close()
	l.Release()
	older, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l, c = serve(t, path)
	do(t, c, write("INSERT INTO t VALUES (1)"))
	c.Close()
	l.Release()
	if err := os.WriteFile(path, older, 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err = Acquire(path); err != nil {
		t.Fatal(err)
	}
	if c, err := l.Open(); !core.IsKind(err, core.Unavailable) {
		t.Errorf("Open of an older file = %v, want unavailable", err)
		if err == nil {
			c.Close()
		}
	}
	l.Release()
	openConn(t, path)
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	serve(t, path)
}
