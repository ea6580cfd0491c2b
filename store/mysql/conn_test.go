package mysql

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/infra/test/wait"
	"github.com/eventgateway/gateway/store"
)

// do runs statements that must succeed.
func (c *conn) do(t *testing.T, stmts ...store.Stmt) []store.Result {
	t.Helper()
	res, err := c.Batch(context.Background(), stmts...)
	if err != nil {
		t.Fatalf("Batch: %v", err)
	}
	return res
}

// read reads a single value.
func (c *conn) read(t *testing.T, sql string) any {
	t.Helper()
	return c.do(t, reading(sql))[0].Rows[0][0]
}

func writing(sql string, args ...any) store.Stmt {
	return store.Stmt{Name: "write", SQL: sql, Args: args}
}

func reading(sql string, args ...any) store.Stmt {
	return store.Stmt{Name: "read", SQL: sql, Args: args, Reads: true}
}

// inserting returns a statement that inserts rows into the table t.
func inserting(rows ...[]any) store.Stmt {
	return store.Stmt{Name: "insert", SQL: "INSERT INTO t (n, v) VALUES (?, ?)" + store.MySQLRow + ", (?, ?)" + store.MySQLRow, Rows: rows}
}

// withTable returns a connection to a database with the table t.
func withTable(t *testing.T) *conn {
	c := opened(t, servers.MySQL(t))
	c.do(t, writing("CREATE TABLE t (n BIGINT PRIMARY KEY, v LONGBLOB)"))
	return c
}

func TestSettingsReachEveryConnection(t *testing.T) {
	c := opened(t, servers.MySQL(t)+"?sql_mode=%27ANSI,NO_BACKSLASH_ESCAPES%27&autocommit=0")
	var wg sync.WaitGroup
	for range pooled {
		wg.Go(func() {
			res, err := c.Batch(context.Background(), reading("SELECT @@sql_mode, @@autocommit, @@innodb_lock_wait_timeout, @@character_set_client, SLEEP(0.05)"))
			if err != nil {
				t.Error(err)
				return
			}
			got := fmt.Sprint(res[0].Rows[0][:4])
			if want := "[STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION 1 5 binary]"; got != want {
				t.Errorf("settings = %v, want %v", got, want)
			}
		})
	}
	wg.Wait()
}

// TestSchemaCharset: statements of the schema are sent as utf8mb4. Values beside them are bytes all the same.
func TestSchemaCharset(t *testing.T) {
	c := opened(t, servers.MySQL(t))
	step := store.Stmt{Name: "schema_step", SQL: "CREATE TABLE t AS SELECT @@character_set_client AS v"}
	if _, err := c.Batch(t.Context(), step); err != nil {
		t.Fatal(err)
	}
	if got := c.read(t, "SELECT v FROM t"); got != "utf8mb4" {
		t.Errorf("the character set of a schema step = %v, want utf8mb4", got)
	}
	step.SQL = "CREATE TABLE u (v TEXT, w VARBINARY(9))"
	if _, err := c.Batch(t.Context(), step, writing("INSERT INTO u VALUES (CHARSET(?), ?)", "a", "a\xff")); err != nil {
		t.Fatal(err)
	}
	if got := c.do(t, reading("SELECT v, w FROM u"))[0].Rows[0]; got[0] != "binary" || got[1] != "a\xff" {
		t.Errorf("a value of a schema step = %q, want binary and its bytes", got)
	}
}

// TestNameOfTheFailure: an error names the statement that failed, or the few that it may be, of which those before
// the last have no result set.
func TestNameOfTheFailure(t *testing.T) {
	c := withTable(t)
	silent := func(name, sql string) store.Stmt { return store.Stmt{Name: name, SQL: sql, Uncounted: true} }
	ok, bad := "INSERT INTO t VALUES (1, '')", "INSERT INTO nowhere VALUES (1)"
	for want, stmts := range map[string][]store.Stmt{
		"a: ":           {{Name: "a", SQL: bad}, {Name: "b", SQL: ok}},
		"b: ":           {{Name: "a", SQL: ok}, {Name: "b", SQL: bad}},
		"a or b: ":      {silent("a", ok), {Name: "b", SQL: bad}, {Name: "c", SQL: ok}},
		"b or c: ":      {{Name: "a", SQL: ok}, silent("b", bad), {Name: "c", SQL: ok}},
		"b or commit: ": {{Name: "a", SQL: ok}, silent("b", bad)},
		"a or commit: ": {silent("a", bad)},
	} {
		if _, err := c.Batch(t.Context(), stmts...); err == nil || !strings.HasPrefix(err.Error(), want) && !strings.Contains(err.Error(), ": "+want) {
			t.Errorf("error = %v, want one of %q", err, want)
		}
	}
	if got := c.read(t, "SELECT COUNT(*) FROM t"); got != int64(0) {
		t.Errorf("%v rows are left of batches that failed", got)
	}
}

func TestValues(t *testing.T) {
	c := withTable(t)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	texts := []string{"", string(all), `\`, `'`, `\'; DROP TABLE t; -- `, "?", "/*row*/", "\xbf\x27", "ü€😀", strings.Repeat("'", 10_000)}
	var rows [][]any
	for i, text := range texts {
		rows = append(rows, []any{int64(i), text})
	}
	rows = append(rows, []any{int64(-1 << 63), nil}, []any{int64(1<<63 - 1), nil})
	c.do(t, inserting(rows...))
	for _, row := range rows {
		res := c.do(t, reading("SELECT n, v FROM t WHERE n = ?", row[0]))
		if got := res[0].Rows[0]; got[0] != row[0] || got[1] != row[1] {
			t.Errorf("row = %q, want %q", got, row)
		}
		if row[1] == nil {
			continue
		}
		res = c.do(t, reading("SELECT n FROM t WHERE n = ? AND v = ?", row...), writing("UPDATE t SET v = ? WHERE n = ? AND v = ?", row[1], row[0], row[1]))
		if len(res[0].Rows) != 1 || res[1].Changed != 1 {
			t.Errorf("%.40q is not found by its value: %v", row[1], res)
		}
	}
}

func TestBatchIsAllOrNothing(t *testing.T) {
	c := withTable(t)
	for name, batch := range map[string][]store.Stmt{
		"no table":  {writing("INSERT INTO t (n) VALUES (1)"), {Name: "bad", SQL: "INSERT INTO nowhere VALUES (1)"}, writing("INSERT INTO t (n) VALUES (2)")},
		"a key":     {writing("INSERT INTO t (n) VALUES (1)"), {Name: "bad", SQL: "INSERT INTO t (n) VALUES (1)"}},
		"a read":    {writing("INSERT INTO t (n) VALUES (1)"), {Name: "bad", SQL: "SELECT nothing FROM t", Reads: true}, writing("INSERT INTO t (n) VALUES (2)")},
		"rows":      {inserting([]any{int64(1), "a"}), {Name: "bad", SQL: inserting().SQL, Rows: [][]any{{int64(2), "b"}, {int64(2), "b"}}}},
		"the first": {{Name: "bad", SQL: "INSERT INTO nowhere VALUES (1)"}, writing("INSERT INTO t (n) VALUES (1)")},
	} {
		_, err := c.Batch(context.Background(), batch...)
		if !store.Definite(err) || !strings.Contains(err.Error(), "bad: ") {
			t.Errorf("%s: Batch = %v, want an error that names the statement", name, err)
		}
		if n := c.read(t, "SELECT COUNT(*) FROM t"); n != int64(0) {
			t.Fatalf("%s: %v rows after a failed batch, want 0", name, n)
		}
	}
	if res, err := c.Batch(context.Background()); res != nil || err != nil {
		t.Errorf("empty batch = %v, %v, want nothing", res, err)
	}
}

// TestBadBatchFailsAlone sends good and bad batches at once, so that they share commits. Only the
// bad ones may fail.
func TestBadBatchFailsAlone(t *testing.T) {
	c := withTable(t)
	var wg sync.WaitGroup
	for n := range int64(300) {
		wg.Go(func() {
			rows := [][]any{{n, "v"}}
			if n%5 == 0 {
				rows = append(rows, rows[0]) // the same key twice, which is refused
			}
			res, err := c.Batch(context.Background(), inserting(rows...))
			if bad := n%5 == 0; bad != (err != nil) {
				t.Errorf("batch %d = %v", n, err)
			} else if !bad && res[0].Changed != 1 {
				t.Errorf("batch %d changed %d rows, want its own", n, res[0].Changed)
			}
		})
	}
	wg.Wait()
	if n := c.read(t, "SELECT COUNT(*) FROM t WHERE n % 5 <> 0"); n != int64(240) {
		t.Errorf("%v good rows, want 240", n)
	}
	if n := c.read(t, "SELECT COUNT(*) FROM t WHERE n % 5 = 0"); n != int64(0) {
		t.Errorf("%v bad rows, want 0", n)
	}
}

func TestReadBatchSeesOneState(t *testing.T) {
	c := withTable(t)
	c.do(t, writing("INSERT INTO t (n) VALUES (0)"))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				c.do(t, writing("UPDATE t SET n = n + 1"))
			}
		}
	}()
	for range 100 {
		res := c.do(t, reading("SELECT n FROM t"), reading("SELECT n FROM t"), reading("SELECT n FROM t"))
		if a, b := res[0].Rows[0][0], res[2].Rows[0][0]; a != b {
			t.Errorf("one batch read %v and then %v", a, b)
			break
		}
	}
	close(stop)
	<-stopped
}

// TestLargeBatches sends batches that need several packets, and statements that need several
// parts.
func TestLargeBatches(t *testing.T) {
	c := withTable(t)
	size := c.read(t, "SELECT @@max_allowed_packet").(int64)
	third := strings.Repeat("x", int(size/3))
	c.do(t, inserting([]any{int64(1), third}, []any{int64(2), third}, []any{int64(3), third}, []any{int64(4), third}), writing("DELETE FROM t WHERE n = 4"))
	if n := c.read(t, "SELECT COUNT(*) FROM t"); n != int64(3) {
		t.Errorf("%v rows, want 3", n)
	}
	_, err := c.Batch(context.Background(), inserting([]any{int64(5), third}, []any{int64(6), third}, []any{int64(7), third}), writing("INSERT INTO t (n) VALUES (1)"))
	if err == nil || c.read(t, "SELECT COUNT(*) FROM t") != int64(3) {
		t.Errorf("a batch of several packets is not all or nothing: %v", err)
	}
	_, err = c.Batch(context.Background(), inserting([]any{int64(9), third + third + third}))
	if !core.IsKind(err, core.TooLarge) || !strings.Contains(err.Error(), "max_allowed_packet") {
		t.Errorf("a row larger than a packet = %v, want a refusal", err)
	}
	var rows [][]any
	for n := range int64(3*maxRows + 1) {
		rows = append(rows, []any{100 + n, nil})
	}
	if res := c.do(t, inserting(rows...)); res[0].Changed != int64(len(rows)) {
		t.Errorf("Changed = %d, want %d", res[0].Changed, len(rows))
	}
}

func TestClosed(t *testing.T) {
	c := withTable(t)
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	for _, s := range []store.Stmt{writing("INSERT INTO t (n) VALUES (1)"), reading("SELECT 1"), inserting([]any{int64(1), nil})} {
		if _, err := c.Batch(context.Background(), s); !core.IsKind(err, core.Unavailable) {
			t.Errorf("%s after Close = %v, want unavailable", s.SQL, err)
		}
	}
}

func TestCallerMayGiveUp(t *testing.T) {
	c := withTable(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, s := range []store.Stmt{writing("INSERT INTO t (n) VALUES (1)"), reading("SELECT 1"), inserting([]any{int64(2), nil})} {
		if _, err := c.Batch(ctx, s); err != nil && !core.IsKind(err, core.Unavailable) {
			t.Errorf("%s of a caller that is gone = %v, want unavailable", s.SQL, err)
		}
	}
	c.read(t, "SELECT 1")
}

// TestPoolIsBounded runs more batches at once than the pool may have connections.
func TestPoolIsBounded(t *testing.T) {
	url := servers.MySQL(t)
	small, err := Open(context.Background(), url, 2)
	if err != nil {
		t.Fatal(err)
	}
	c := small.(*conn)
	c.do(t, writing("CREATE TABLE t (n BIGINT PRIMARY KEY, v LONGBLOB)"))
	var wg sync.WaitGroup
	for n := range int64(20) {
		wg.Go(func() {
			if _, err := c.Batch(context.Background(), reading("SELECT SLEEP(0.01)")); err != nil {
				t.Error(err)
			}
			if _, err := c.Batch(context.Background(), inserting([]any{n, nil})); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := c.read(t, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE()"); n.(int64) > 2 {
		t.Errorf("%v connections, want at most 2", n)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestStaleConnections: the server closes all idle connections of the pool. The next batches
// succeed all the same.
func TestStaleConnections(t *testing.T) {
	c := withTable(t)
	var wg sync.WaitGroup
	for range pooled {
		wg.Go(func() { c.Batch(context.Background(), reading("SELECT SLEEP(0.05)")) })
	}
	wg.Wait()
	other := opened(t, "mysql://"+c.dsn())
	for _, row := range other.do(t, reading("SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"))[0].Rows {
		other.do(t, writing(fmt.Sprintf("KILL %d", row[0])))
	}
	wait.For(t, 20*time.Second, "connections killed", func() bool {
		return other.read(t, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE()") == int64(1)
	})
	for n := range int64(pooled) {
		c.do(t, writing("INSERT INTO t (n) VALUES (?)", n), reading("SELECT 1"))
	}
}

// TestKilled ends a connection in the middle of a batch. The batch fails as unavailable, because
// it is unknown whether it took effect.
func TestKilled(t *testing.T) {
	c := withTable(t)
	done := make(chan error, 1)
	go func() {
		_, err := c.Batch(context.Background(), writing("INSERT INTO t (n) VALUES (1)"), reading("SELECT SLEEP(30) /* to be killed */"))
		done <- err
	}()
	other := opened(t, "mysql://"+c.dsn())
	find := reading("SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID() AND info LIKE '%to be killed%'")
	wait.For(t, 20*time.Second, "it sleeps", func() bool { return len(other.do(t, find)[0].Rows) == 1 })
	other.do(t, writing(fmt.Sprintf("KILL %d", other.do(t, find)[0].Rows[0][0])))
	if err := <-done; !core.IsKind(err, core.Unavailable) {
		t.Errorf("Batch on a connection that was killed = %v, want unavailable", err)
	}
	if n := c.read(t, "SELECT COUNT(*) FROM t"); n != int64(0) {
		t.Errorf("%v rows, want none", n)
	}
}

// dsn returns the address with which the connection was opened.
func (c *conn) dsn() string { return c.pool.address.config.FormatDSN() }

// TestClassification has the server raise errors for which the statement is not the cause: the
// server is read-only, as after a failover, or another writer caused a conflict.
func TestClassification(t *testing.T) {
	c := withTable(t)
	_, err := c.Batch(context.Background(), writing("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1290, MESSAGE_TEXT = 'read only'"))
	if !core.IsKind(err, core.Unavailable) || strings.Contains(err.Error(), "root@") {
		t.Errorf("error 1290 = %v, want unavailable", err)
	}
	for _, conflict := range []int{1213, 1205, 1020} {
		_, err = c.Batch(context.Background(), writing(fmt.Sprintf("SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = %d, MESSAGE_TEXT = 'again'", conflict)))
		if !core.IsKind(err, core.Unavailable) {
			t.Errorf("error %d = %v, want unavailable in the end", conflict, err)
		}
	}
	c.read(t, "SELECT 1")
}

// TestLongSchemaStep: a schema step may run for longer than the read timeout of other statements.
func TestLongSchemaStep(t *testing.T) {
	t.Parallel()
	c := opened(t, servers.MySQL(t)+"?readTimeout=1s")
	if _, err := c.Batch(t.Context(), reading("SELECT SLEEP(3)")); !core.IsKind(err, core.Unavailable) {
		t.Errorf("Batch of a slow statement = %v, want that the server does not answer", err)
	}
	for _, table := range []string{"slow", "slower"} { // the second runs on the connection that the first released
		step := store.Stmt{Name: "schema_step", SQL: "CREATE TABLE " + table + " AS SELECT SLEEP(3) AS n"}
		if _, err := c.Batch(t.Context(), step); err != nil {
			t.Errorf("Batch of a slow schema step = %v, want none", err)
		}
	}
}
