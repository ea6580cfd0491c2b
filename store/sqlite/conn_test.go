package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	sqlite3 "modernc.org/sqlite/lib"
)

func openConn(t *testing.T, path string) *conn {
	t.Helper()
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*conn)
}

// do runs statements that must succeed.
func do(t *testing.T, c store.Conn, stmts ...store.Stmt) []store.Result {
	t.Helper()
	res, err := c.Batch(context.Background(), stmts...)
	if err != nil {
		t.Fatalf("Batch: %v", err)
	}
	return res
}

func write(sql string, args ...any) store.Stmt {
	return store.Stmt{Name: "write", SQL: sql, Args: args}
}
func read(sql string, args ...any) store.Stmt {
	return store.Stmt{Name: "read", SQL: sql, Args: args, Reads: true}
}

// one reads a single value.
func one(t *testing.T, c store.Conn, sql string) any {
	t.Helper()
	return do(t, c, read(sql))[0].Rows[0][0]
}

func TestSettingsReachEveryConnection(t *testing.T) {
	c := openConn(t, filepath.Join(t.TempDir(), "gateway.db"))
	do(t, c, write("CREATE TABLE t (n INTEGER)"))
	for pragma, want := range map[string]any{"journal_mode": "wal", "synchronous": int64(2), "busy_timeout": int64(5000)} {
		if got := one(t, c, "PRAGMA "+pragma); got != want {
			t.Errorf("reader: %s = %v, want %v", pragma, got, want)
		}
		res := do(t, c, write("DELETE FROM t"), read("PRAGMA "+pragma))
		if got := res[1].Rows[0][0]; got != want {
			t.Errorf("writer: %s = %v, want %v", pragma, got, want)
		}
	}
	if _, err := c.Batch(context.Background(), read("INSERT INTO t VALUES (1)")); err == nil {
		t.Error("a statement that says it reads was allowed to write")
	}
}

func TestVersionIsNotOneThatLosesTheLog(t *testing.T) {
	c := openConn(t, filepath.Join(t.TempDir(), "gateway.db"))
	var major, minor, patch int
	version := one(t, c, "SELECT sqlite_version()").(string)
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		t.Fatal(err)
	}
	// SQLite 3.51.3 fixed a race that corrupts the database when one connection resets the WAL
	// while another writes: https://www.sqlite.org/wal.html#walresetbug
	if major*1e6+minor*1e3+patch < 3_051_003 {
		t.Errorf("SQLite %s has the WAL reset bug; need 3.51.3", version)
	}
}

func TestBatchIsAllOrNothing(t *testing.T) {
	c := openConn(t, filepath.Join(t.TempDir(), "gateway.db"))
	do(t, c, write("CREATE TABLE t (n INTEGER PRIMARY KEY)"))
	_, err := c.Batch(context.Background(), write("INSERT INTO t VALUES (1)"), write("INSERT INTO t VALUES (1)"))
	if err == nil || core.IsKind(err, core.Unavailable) || !strings.HasPrefix(err.Error(), "write: ") {
		t.Errorf("Batch = %v, want an error that names the statement", err)
	}
	if n := one(t, c, "SELECT COUNT(*) FROM t"); n != int64(0) {
		t.Errorf("%v rows after a failed batch, want 0", n)
	}
	if res, err := c.Batch(context.Background()); res != nil || err != nil {
		t.Errorf("empty batch = %v, %v, want nothing", res, err)
	}
}

// TestBadBatchFailsAlone sends good and bad batches at once, so that they share commits. Only the
// bad ones may fail.
func TestBadBatchFailsAlone(t *testing.T) {
	c := openConn(t, filepath.Join(t.TempDir(), "gateway.db"))
	do(t, c, write("CREATE TABLE t (n INTEGER PRIMARY KEY)"))
	var wg sync.WaitGroup
	for n := range 400 {
		wg.Go(func() {
			stmts := []store.Stmt{write("INSERT INTO t VALUES (?)", int64(n))}
			if n%5 == 0 {
				stmts = append(stmts, write("INSERT INTO t VALUES (?)", int64(n))) // the same key twice, which is refused
			}
			_, err := c.Batch(context.Background(), stmts...)
			if bad := n%5 == 0; bad != (err != nil) {
				t.Errorf("batch %d = %v", n, err)
			}
		})
	}
	wg.Wait()
	if n := one(t, c, "SELECT COUNT(*) FROM t WHERE n % 5 <> 0"); n != int64(320) {
		t.Errorf("%v good rows, want 320", n)
	}
	if n := one(t, c, "SELECT COUNT(*) FROM t WHERE n % 5 = 0"); n != int64(0) {
		t.Errorf("%v bad rows, want 0", n)
	}
}

func TestReadBatchSeesOneState(t *testing.T) {
	c := openConn(t, filepath.Join(t.TempDir(), "gateway.db"))
	do(t, c, write("CREATE TABLE t (n INTEGER)"), write("INSERT INTO t VALUES (0)"))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				do(t, c, write("UPDATE t SET n = n + 1"))
			}
		}
	}()
	for range 300 {
		res := do(t, c, read("SELECT n FROM t"), read("SELECT n FROM t"), read("SELECT n FROM t"))
		if a, b := res[0].Rows[0][0], res[2].Rows[0][0]; a != b {
			t.Fatalf("one batch read %v and then %v", a, b)
		}
	}
	close(stop)
	<-stopped
}

func TestClosed(t *testing.T) {
	c := openConn(t, filepath.Join(t.TempDir(), "gateway.db"))
	if err := c.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	for range 100 { // a send to the channel's buffer must not block forever
		if _, err := c.Batch(context.Background(), write("SELECT 1")); !core.IsKind(err, core.Unavailable) {
			t.Fatalf("Batch after Close = %v, want unavailable", err)
		}
	}
	if err := c.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestCallerMayGiveUp(t *testing.T) {
	c := openConn(t, filepath.Join(t.TempDir(), "gateway.db"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, st := range []store.Stmt{read("SELECT 1"), write("CREATE TABLE IF NOT EXISTS t (n INTEGER)")} {
		// The writer may already have the batch. Then it may succeed or fail.
		if _, err := c.Batch(ctx, st); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Batch(%s) = %v, want canceled", st.SQL, err)
		}
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.db")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("this is not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "no", "such", "x.db"): "does not exist",
		dir:                                      "cannot be opened: is a directory",
		garbage:                                  "file is not a database (26): it is damaged or something else: let database.url name another file, or restore a backup",
	} {
		c, err := Open(path)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%s) = %v, want %q", path, err, want)
		}
		if c != nil {
			c.Close()
		}
	}
}

func TestOddPaths(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a b.db", "q?x=1.db", "50%.db", "50%25.db", "h#h.db", "ü.db", "a&b.db"} {
		c := openConn(t, filepath.Join(dir, name))
		do(t, c, write("CREATE TABLE t (n INTEGER)"))
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Size() == 0 && one(t, c, "SELECT COUNT(*) FROM t") != int64(0) {
			t.Errorf("Open(%q) used another file: %v", name, err)
		}
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%q has mode %v, want 0600", name, info.Mode())
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 7*3 { // each with its WAL and index
		t.Errorf("%d files, want 21: %v", len(files), files)
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	lock, err := Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Acquire(path)
	if want := fmt.Sprintf("(process %d)", os.Getpid()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("second Acquire = %v, want it to name %s", err, want)
	}
	acquireAgain(t, lock, path)
}

// TestLockFollowsLinks: the lock follows symbolic links, as SQLite does. With two locks on one
// file, two gateways would take each other's jobs.
func TestLockFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "gateway.db"), filepath.Join(dir, "link.db")
	lock, err := Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if err := os.Symlink("gateway.db", link); err != nil {
		t.Fatal(err)
	}
	if again, err := Acquire(link); err == nil {
		again.Release()
		t.Error("Acquire through a link took a second lock")
	}
}

// TestCloseWaitsForReads runs reads at the same time as Close, under the race detector too.
func TestCloseWaitsForReads(t *testing.T) {
	c := openConn(t, filepath.Join(t.TempDir(), "gateway.db"))
	var wg sync.WaitGroup
	for range 3 * maxReaders {
		wg.Go(func() {
			for {
				if _, err := c.Batch(context.Background(), read("SELECT COUNT(*) FROM json_each('[1,2,3]')")); err != nil {
					if !core.IsKind(err, core.Unavailable) {
						t.Errorf("Batch while closing = %v, want unavailable", err)
					}
					return
				}
			}
		})
	}
	if err := c.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	wg.Wait()
	if len(c.readers.idle) != 0 || len(c.readers.free) != maxReaders {
		t.Errorf("after Close %d sessions are open and %d may be taken, want 0 and %d", len(c.readers.idle), len(c.readers.free), maxReaders)
	}
}

// TestReadersInTurn: reads one after the other use a single connection.
func TestReadersInTurn(t *testing.T) {
	c := openConn(t, filepath.Join(t.TempDir(), "gateway.db"))
	for range 10 {
		do(t, c, read("SELECT 1"))
	}
	if n := len(c.readers.idle); n != 1 {
		t.Errorf("%d connections are open after ten reads in turn, want 1", n)
	}
}

// TestFileThatIsGone: reads and writes fail once the database file has been renamed or deleted.
func TestFileThatIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	c := openConn(t, path)
	do(t, c, write("CREATE TABLE t (n INTEGER)"))
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	for _, st := range []store.Stmt{write("INSERT INTO t VALUES (1)"), read("SELECT COUNT(*) FROM t")} {
		_, err := c.Batch(context.Background(), st)
		if !core.IsKind(err, core.Unavailable) || !strings.Contains(err.Error(), "was deleted or replaced; put it back or restart the gateway") {
			t.Errorf("%s without the file = %v, want unavailable, and why", st.SQL, err)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a new file was made in its place")
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	do(t, c, write("INSERT INTO t VALUES (1)"))
}

// TestErrorsSayWhatToDo: an error of SQLite comes with the step that an operator can take.
func TestErrorsSayWhatToDo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	create := store.Stmt{Name: "create", SQL: "CREATE TABLE t (x TEXT)"}
	little := store.Stmt{Name: "little", SQL: "PRAGMA max_page_count = 3"}
	much := store.Stmt{Name: "much", SQL: "INSERT INTO t VALUES (?)", Args: []any{strings.Repeat("x", 1<<20)}}
	if _, err := c.Batch(t.Context(), create); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Batch(t.Context(), little); err != nil {
		t.Fatal(err)
	}
	_, err = c.Batch(t.Context(), much)
	if !core.IsKind(err, core.Unavailable) || !strings.HasSuffix(err.Error(), "is full (13): make room on the disk where it is") {
		t.Errorf("Batch on a full disk = %v, want what to do", err)
	}
}

// TestBusyNamesTheRemedy: SQLite says that a database is locked also where the file system cannot
// lock, so the error names a step for both cases.
func TestBusyNamesTheRemedy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	do(t, openConn(t, path), write("CREATE TABLE t (x TEXT)"))
	hold, err := dial(dsn(path))
	if err != nil {
		t.Fatal(err)
	}
	defer hold.close()
	if err := hold.control("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	impatient, err := dial(dsn(path, "busy_timeout(0)"))
	if err != nil {
		t.Fatal(err)
	}
	defer impatient.close()
	err = impatient.control("BEGIN IMMEDIATE")
	if !core.IsKind(err, core.Unavailable) || !strings.Contains(err.Error(), "end the program that holds it; if none does, "+remote) {
		t.Errorf("BEGIN beside another writer = %v, want what to do", err)
	}
}

func TestRemediesOfLocks(t *testing.T) {
	for code, want := range map[int]string{
		sqlite3.SQLITE_IOERR_LOCK:    remote,
		sqlite3.SQLITE_IOERR_SHMMAP:  remote,
		sqlite3.SQLITE_PROTOCOL:      remote,
		sqlite3.SQLITE_IOERR_WRITE:   failing,
		sqlite3.SQLITE_READONLY:      rights,
		sqlite3.SQLITE_CONSTRAINT:    "",
		sqlite3.SQLITE_IOERR_SHMLOCK: remote,
	} {
		if got := remedy(code); got != want {
			t.Errorf("remedy(%d) = %q, want %q", code, got, want)
		}
	}
}

// TestWalksLeaveAProcessor: while as many batches walk as may at a time, the next one that walks waits, also
// for its caller, and other reads and writes do not.
func TestWalksLeaveAProcessor(t *testing.T) {
	c := openConn(t, filepath.Join(t.TempDir(), "gateway.db"))
	walk := read("SELECT 1")
	walk.Walks = true
	for range maxWalks() {
		c.walks <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := c.Batch(ctx, walk)
		left <- err
	}()
	waits := make(chan error, 1)
	go func() {
		_, err := c.Batch(t.Context(), walk)
		waits <- err
	}()
	do(t, c, write("CREATE TABLE t (n INTEGER)"))
	one(t, c, "SELECT COUNT(*) FROM t")
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) || !core.IsKind(err, core.Unavailable) {
		t.Errorf("a walk whose caller left = %v, want unavailable, since it is canceled", err)
	}
	select {
	case err := <-waits:
		t.Errorf("a walk beyond the limit = %v, want that it waits", err)
	default:
	}
	<-c.walks
	if err := <-waits; err != nil {
		t.Errorf("a walk after another has ended: %v", err)
	}
}
