package sqlite

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/storetest"
)

// large fills a database with a run of many steps, entries and tokens, and a job with many
// attempts. Both are finished.
var large = []string{
	`INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at) VALUES ('E', 'shop', 'order', '{}', '', '', NULL, 1000)`,
	`INSERT INTO runs VALUES ('R', 'w', 'E', 'd', 'completed', 1, 12000, 'one', '{}', '', NULL, 1000, 1000, 1000, 0, NULL)`,
	`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) INSERT INTO steps
		SELECT printf('S%05d', i), 'R', 1, NULL, '', printf('p%05d', i), 'one', 'http', 'succeeded', 1, NULL, NULL, '', '', '', NULL, 1000, 1000, NULL, NULL, NULL FROM n`,
	`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO step_texts SELECT 'R', printf('N%05d', i), '{}' FROM n`,
	`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000) INSERT INTO history SELECT 'R', i, 'M', 1000, 1, 'completed', '', '' FROM n`,
	`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) INSERT INTO callbacks SELECT printf('T%05d', i), 'R', printf('S%05d', i), 1000 FROM n`,
	intoJobs + `VALUES ('J', 'E', 'queue/q', NULL, 'completed', 7000, 9999, NULL, NULL, '', 1000, 1000)`,
	`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 7000) INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at) SELECT 'J', printf('L%05d', i), i, 500, '', '', 1, 1000 FROM n`,
}

func run(t *testing.T, c store.Conn, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if _, err := c.Batch(context.Background(), store.Stmt{Name: "fill", SQL: text}); err != nil {
			t.Fatalf("%.60s: %v", text, err)
		}
	}
}

// rowsOf counts the rows of every table but schema_steps. It leaves out empty tables.
func rowsOf(t *testing.T, c store.Conn) map[string]int64 {
	t.Helper()
	ask := func(sql string) [][]any {
		res, err := c.Batch(context.Background(), store.Stmt{Name: "count", SQL: sql, Reads: true})
		if err != nil {
			t.Fatal(err)
		}
		return res[0].Rows
	}
	rows := map[string]int64{}
	for _, table := range ask(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'schema_steps'`) {
		name := table[0].(string)
		if n := ask(`SELECT COUNT(*) FROM ` + name)[0][0].(int64); n > 0 {
			rows[name] = n
		}
	}
	return rows
}

// TestPurgeOfMuch: a run and a job with more rows than one batch may delete are deleted
// completely, 1,000 rows at a time.
func TestPurgeOfMuch(t *testing.T) {
	var conn store.Conn
	most := 0
	s := open(t, func(c store.Conn) store.Conn {
		conn = c
		return storetest.Watched(c, func(st store.Stmt) {
			if !st.Reads {
				most = max(most, len(st.Rows))
			}
		})
	})
	run(t, conn, large...)
	n, _, err := s.Purge(t.Context(), time.UnixMilli(1000), 500)
	if n != 0 || err != nil {
		t.Errorf("Purge at the very time = %d, %v, want 0", n, err)
	}
	n, _, err = s.Purge(t.Context(), time.UnixMilli(2000), 500)
	if n != 3 || err != nil {
		t.Errorf("Purge = %d, %v, want 3", n, err)
	}
	if left := rowsOf(t, conn); len(left) > 0 {
		t.Errorf("after Purge there are %v", left)
	}
	if most != 1000 {
		t.Errorf("a statement deletes up to %d rows, want 1000", most)
	}
}

// TestPurgeOfMany: jobs and runs are deleted in batches with a bounded number of attempts and
// entries.
func TestPurgeOfMany(t *testing.T) {
	var conn store.Conn
	s := open(t, func(c store.Conn) store.Conn { conn = c; return c })
	run(t, conn, `INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at) VALUES ('E', 'shop', 'order', '{}', '', '', NULL, 9000)`,
		`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20) `+intoJobs+`SELECT printf('J%02d', i), 'E', 'queue/q', NULL, 'completed', 2000, 9999, NULL, NULL, '', 1000, 1000 FROM n`,
		`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) INSERT INTO runs
			SELECT printf('R%02d', i), 'w', 'E', 'd', 'completed', 1, 2500, 'one', '{}', '', NULL, 1000, 1000, 1000, 0, NULL FROM n`)
	for i, want := range []int{4, 4, 4, 4, 4, 2, 2, 2, 2, 2, 0} {
		if n, _, err := s.Purge(t.Context(), time.UnixMilli(2000), 500); n != want || err != nil {
			t.Errorf("Purge, the time %d = %d, %v, want %d", i+1, n, err, want)
		}
	}
}

// TestPurgeWhenLate: the first commit of a purge deletes 6 jobs, and 48 if the oldest could have
// been deleted ten minutes ago.
func TestPurgeWhenLate(t *testing.T) {
	for late, want := range map[int64]int{0: 6, 600_000: 48} {
		first := 0
		var conn store.Conn
		s := open(t, func(c store.Conn) store.Conn {
			conn = c
			return storetest.Watched(c, func(st store.Stmt) {
				if first == 0 && st.Name == "purge_jobs" {
					first = len(st.Rows)
				}
			})
		})
		run(t, conn, `INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at) VALUES ('E', 'shop', 'order', '{}', '', '', NULL, 1000)`,
			`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) `+intoJobs+`SELECT printf('J%03d', i), 'E', 'queue/q', NULL, 'completed', 1, 9, NULL, NULL, '', 1000, 1000 FROM n`)
		if n, _, err := s.Purge(t.Context(), time.UnixMilli(1001+late), 500); n != 101 || err != nil {
			t.Errorf("Purge = %d, %v, want 101", n, err)
		}
		if first != want {
			t.Errorf("%d ms late: the first commit deletes %d jobs, want %d", late, first, want)
		}
	}
}

// TestPurgeFindsBareEvents: a purge finds events without jobs behind many old events that still
// have jobs, even with small limits.
func TestPurgeFindsBareEvents(t *testing.T) {
	var conn store.Conn
	s := open(t, func(c store.Conn) store.Conn { conn = c; return c })
	run(t, conn, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at)
			SELECT printf('0%010d', i), 'shop', 'order', '{}', '', '', NULL, 1000 FROM n`,
		intoJobs+`SELECT 'J' || id, id, 'queue/q', NULL, 'available', 0, 1, 5000, NULL, '', 1000, NULL FROM events WHERE id < '00000004998'`)
	var deleted []int
	for range 12 {
		n, _, err := s.Purge(t.Context(), time.Now(), 500)
		if err != nil {
			t.Fatal(err)
		}
		deleted = append(deleted, n)
	}
	if left := rowsOf(t, conn); !maps.Equal(left, map[string]int64{"events": 4997, "jobs": 4997}) {
		t.Errorf("after %d times Purge (%v) there are %v", len(deleted), deleted, left)
	}
}

// TestPurgeTakesWhatItLookedAt: a purge deletes all events without jobs that it read, even if
// they are more than a batch deletes or if jobs and runs share the batch.
func TestPurgeTakesWhatItLookedAt(t *testing.T) {
	var conn store.Conn
	s := open(t, func(c store.Conn) store.Conn { conn = c; return c })
	run(t, conn, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5200) INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at)
			SELECT printf('0%010d', i), 'shop', 'order', '{}', '', '', NULL, 1000 FROM n`,
		intoJobs+`SELECT 'J' || id, id, 'queue/q', NULL, 'completed', 1, 1, NULL, NULL, '', 1000, 1000 FROM events WHERE id > '00000002200' AND id <= '00000003200'`,
		`INSERT INTO runs SELECT 'R' || id, 'w', id, 'd', 'completed', 1, 0, 'one', '{}', '', NULL, 1000, 1000, 1000, 0, NULL FROM events WHERE id > '00000003200' AND id <= '00000004200'`,
		intoJobs+`SELECT 'W' || id, id, 'queue/q', NULL, 'available', 0, 1, 5000, NULL, '', 1000, NULL FROM events WHERE id > '00000004200'`)
	for i, want := range []struct {
		deleted int
		more    bool
	}{{2500, true}, {2500, true}, {500, true}, {500, true}, {200, true}, {0, false}, {0, true}, {0, false}} {
		n, more, err := s.Purge(t.Context(), time.Now(), 500)
		if n != want.deleted || more != want.more || err != nil {
			t.Errorf("Purge, the time %d = %d, %t, %v, want %d, %t", i+1, n, more, err, want.deleted, want.more)
		}
	}
	if left := rowsOf(t, conn); !maps.Equal(left, map[string]int64{"events": 1000, "jobs": 1000}) {
		t.Errorf("there are %v", left)
	}
}

// TestPurgeLooksAgain: a purge reads events again after their deletion failed.
func TestPurgeLooksAgain(t *testing.T) {
	var conn store.Conn
	s := open(t, func(c store.Conn) store.Conn { conn = c; return c })
	run(t, conn, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at)
			SELECT printf('0%010d', i), 'shop', 'order', '{}', '', '', NULL, 1000 FROM n`,
		`CREATE TRIGGER keep BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'no'); END`)
	for range 2 {
		if n, _, err := s.Purge(t.Context(), time.Now(), 500); n != 0 || err == nil {
			t.Errorf("Purge = %d, %v, want an error", n, err)
		}
	}
	run(t, conn, `DROP TRIGGER keep`)
	if n, _, err := s.Purge(t.Context(), time.Now(), 500); n != 500 || err != nil {
		t.Errorf("Purge = %d, %v, want 500", n, err)
	}
	if _, err := s.Event(t.Context(), "00000000001"); err == nil {
		t.Error("the oldest event is passed by")
	}
}

// TestPurgeSweeps: repeated purges delete rows whose job or run does not exist, and no other
// rows.
func TestPurgeSweeps(t *testing.T) {
	var conn store.Conn
	s := open(t, func(c store.Conn) store.Conn { conn = c; return c })
	run(t, conn, large...)
	run(t, conn, `UPDATE runs SET finished_at = NULL`, `UPDATE jobs SET finished_at = NULL, due_at = 1000`,
		`INSERT INTO attempts (job_id, lease, attempt, status_code, error, response, duration_ms, created_at) SELECT 'gone', lease, attempt, 500, '', '', 1, 1000 FROM attempts LIMIT 1300`,
		`INSERT INTO steps SELECT 'G' || id, 'gone', 1, NULL, '', path, 'one', 'http', 'succeeded', 1, NULL, NULL, '', '', '', NULL, 1000, 1000, NULL, NULL, NULL FROM steps LIMIT 1300`,
		`INSERT INTO step_texts SELECT 'lost texts', name, body FROM step_texts LIMIT 1300`,
		`INSERT INTO history SELECT 'lost', seq, 'M', 1000, 1, 'completed', '', '' FROM history LIMIT 1300`,
		`INSERT INTO callbacks VALUES ('A', 'lost', 'S', 9000), ('Z', 'gone', 'S', 9000)`)
	for range 110 {
		if n, _, err := s.Purge(t.Context(), time.UnixMilli(2000), 100); n != 0 || err != nil {
			t.Fatalf("Purge = %d, %v, want 0", n, err)
		}
	}
	want := map[string]int64{"events": 1, "runs": 1, "jobs": 1, "steps": 10_000, "step_texts": 3000, "history": 12_000, "attempts": 7000, "callbacks": 1500}
	if left := rowsOf(t, conn); !maps.Equal(left, want) {
		t.Errorf("after sweeps there are %v, want %v", left, want)
	}
}
