package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/wait"
	"github.com/eventgateway/gateway/store"
)

// inWAL returns the number of pages in the WAL, and how many of them are in the database file as
// well.
func inWAL(t *testing.T, c store.Conn) (pages, moved int64) {
	t.Helper()
	row := do(t, c, read("PRAGMA wal_checkpoint(NOOP)"))[0].Rows[0]
	return row[1].(int64), row[2].(int64)
}

// pages writes n pages in one commit.
func pages(t *testing.T, c store.Conn, n int64) {
	t.Helper()
	do(t, c, write(`INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT randomblob(3000) FROM n`, n))
}

func TestPagesAreMovedBesideTheWriter(t *testing.T) {
	c := openConn(t, filepath.Join(t.TempDir(), "gateway.db"))
	do(t, c, write("CREATE TABLE t (x BLOB)"))
	pages(t, c, checkpointAt/2)
	if n, moved := inWAL(t, c); n < checkpointAt/2 || moved > 0 {
		t.Fatalf("%d pages are in the WAL and %d of them moved, want some %d and none", n, moved, checkpointAt/2)
	}
	pages(t, c, checkpointAt)
	awaitMoved(t, c)
	pages(t, c, 1)
	if n, _ := inWAL(t, c); n > 10 {
		t.Errorf("%d pages are in the WAL, want it to have begun anew", n)
	}
}

func awaitMoved(t *testing.T, c store.Conn) {
	t.Helper()
	wait.For(t, 10*time.Second, "all pages of the WAL were moved", func() bool {
		n, moved := inWAL(t, c)
		return n == moved
	})
}

// TestPagesThatCouldNotBeMoved: pages that a checkpoint failed to move are moved as soon as that
// is possible, even if few pages are written then. A disk that was full may have little room for
// more.
func TestPagesThatCouldNotBeMoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	c := openConn(t, path)
	do(t, c, write("CREATE TABLE t (x BLOB)"))
	pages(t, c, 20)
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	c.writer.checkpointer.wake()
	wait.For(t, 10*time.Second, "the checkpointer fails without the file", c.writer.checkpointer.owed.Load)
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if n, moved := inWAL(t, c); n < 20 || moved > 0 {
		t.Fatalf("of %d pages in the WAL %d were moved, want some 20 and none", n, moved)
	}
	pages(t, c, 1)
	awaitMoved(t, c)
}

func TestRoundsGoAfterWhatIsWrittenMeanwhile(t *testing.T) {
	trouble := errors.New("the disk is full")
	type round struct {
		written, moved int64
		err            error
	}
	for _, tt := range []struct {
		name   string
		rounds []round
		all    bool
		looks  int
	}{
		{"nothing was", []round{{100, 100, nil}, {100, 100, nil}}, true, 2},
		{"something was, once", []round{{100, 100, nil}, {109, 109, nil}, {109, 109, nil}}, true, 3},
		{"something was each time", []round{{100, 100, nil}, {109, 109, nil}, {118, 118, nil}}, false, 3},
		{"somebody read, then not", []round{{100, 40, nil}, {100, 100, nil}}, true, 2},
		{"somebody reads", []round{{100, 40, nil}, {100, 40, nil}, {100, 40, nil}}, false, 3},
		{"it fails", []round{{0, 0, trouble}}, false, 1},
		{"it fails later", []round{{100, 100, nil}, {0, 0, trouble}}, false, 2},
	} {
		looks := 0
		all, err := moveMost(func() (int64, int64, error) {
			r := tt.rounds[looks]
			looks++
			return r.written, r.moved, r.err
		})
		if want := tt.rounds[tt.looks-1].err; all != tt.all || looks != tt.looks || err != want {
			t.Errorf("%s: all %v after %d rounds, %v; want %v after %d, %v", tt.name, all, looks, err, tt.all, tt.looks, want)
		}
	}
}

// TestPagesWrittenInEveryRound: the checkpointer gives up if pages are written in every round.
// The writer's next commit then moves them.
func TestPagesWrittenInEveryRound(t *testing.T) {
	c := openConn(t, filepath.Join(t.TempDir(), "gateway.db"))
	do(t, c, write("CREATE TABLE t (x BLOB)"))
	s, err := dial(dsn(c.file.path))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	more := int64(20)
	all, err := moveMost(func() (written, moved int64, err error) {
		written, moved, err = move(s)
		pages(t, c, more) // more pages each time, since the WAL may have been reset
		more += 20
		return written, moved, err
	})
	if all || err != nil {
		t.Errorf("all was moved: %v, %v; want what was written last to be left", all, err)
	}
	if n, moved := inWAL(t, c); n < moved+20 {
		t.Errorf("of %d pages in the WAL %d were moved, want the last 20 not to be", n, moved)
	}
	c.writer.checkpointer.rest.Store(true)
	pages(t, c, 1)
	if n, moved := inWAL(t, c); n != moved {
		t.Errorf("of %d pages in the WAL %d were moved, want all", n, moved)
	}
}

func TestTheWriterMovesWhatIsLeft(t *testing.T) {
	c := openConn(t, filepath.Join(t.TempDir(), "gateway.db"))
	do(t, c, write("CREATE TABLE t (x BLOB)"))
	pages(t, c, 20)
	c.writer.checkpointer.rest.Store(true)
	pages(t, c, 1)
	if n, moved := inWAL(t, c); n < 20 || n != moved {
		t.Errorf("of %d pages in the WAL %d were moved, want all", n, moved)
	}
	pages(t, c, 1)
	if n, moved := inWAL(t, c); n > 10 || moved > 0 {
		t.Errorf("%d pages are in the WAL and %d of them moved, want few and none", n, moved)
	}
}

// TestOnlyLazyBatchesAreNotSynced checks the synchronous setting of the connection after each
// batch.
func TestOnlyLazyBatchesAreNotSynced(t *testing.T) {
	c := openConn(t, filepath.Join(t.TempDir(), "gateway.db"))
	do(t, c, write("CREATE TABLE t (n INTEGER)"))
	lazy, eager := write("DELETE FROM t"), write("DELETE FROM t")
	lazy.Lazy = true
	const full, normal = int64(2), int64(1)
	for _, tt := range []struct {
		stmts []store.Stmt
		want  int64
	}{
		{[]store.Stmt{eager}, full},
		{[]store.Stmt{lazy}, normal},
		{[]store.Stmt{lazy, lazy}, normal},
		{[]store.Stmt{lazy, eager}, full},
		{[]store.Stmt{lazy}, normal},
		{[]store.Stmt{eager}, full},
	} {
		res := do(t, c, append(tt.stmts, read("PRAGMA synchronous"))...)
		if got := res[len(tt.stmts)].Rows[0][0]; got != tt.want {
			t.Errorf("synchronous = %v in a batch of %d, lazy %v, want %v", got, len(tt.stmts), tt.stmts[0].Lazy, tt.want)
		}
	}
	do(t, c, lazy)
	c.writer.disconnect()
	if got := do(t, c, eager, read("PRAGMA synchronous"))[1].Rows[0][0]; got != full {
		t.Errorf("synchronous = %v on a connection that was opened anew, want %v", got, full)
	}
}
