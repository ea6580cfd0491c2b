package store

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A slowConn is a database in which every batch takes batchTime. Its old events have waiting
// jobs, in the given number of slices.
type slowConn struct {
	Conn
	slices  int
	batches int
}

const batchTime = 7 * time.Millisecond

func (p *slowConn) Batch(_ context.Context, stmts ...Stmt) ([]Result, error) {
	p.batches++
	time.Sleep(batchTime) // in the virtual time of the test
	results := make([]Result, len(stmts))
	for i, s := range stmts {
		if s.Name == "over_events" && p.slices > 0 {
			p.slices--
			for n := range partChunk {
				results[i].Rows = append(results[i].Rows, []any{fmt.Sprintf("%d-%04d", p.slices, n), nil})
			}
		}
	}
	return results, nil
}

// TestPurgePauses: while a purge has more to read, it leaves half of the time to other callers,
// even if it deleted nothing. It does not pause at the end.
func TestPurgePauses(t *testing.T) {
	for _, d := range []Dialect{SQLite, D1} {
		synctest.Test(t, func(t *testing.T) {
			p := &slowConn{slices: 1}
			s := New(p, d, core.SystemClock)
			for _, want := range []struct {
				more  bool
				times time.Duration // as long as the database was busy
			}{{true, 2}, {false, 1}} {
				began, asked := time.Now(), p.batches
				n, more, err := s.Purge(t.Context(), began, 500)
				if n != 0 || more != want.more || err != nil {
					t.Fatalf("Purge = %d, %v, %v; want 0, %v and no error", n, more, err, want.more)
				}
				if took, busy := time.Since(began), batchTime*time.Duration(p.batches-asked); took != want.times*busy {
					t.Errorf("more: %v: took %v of which the database was busy for %v, want %d times that", more, took, busy, want.times)
				}
			}
		})
	}
}

// An oldConn is a database in which one statement finds 50 rows, once. It counts the commits that
// delete.
type oldConn struct {
	Conn
	statement string
	rows      [][]any
	commits   int
}

func (c *oldConn) Batch(_ context.Context, stmts ...Stmt) ([]Result, error) {
	results := make([]Result, len(stmts))
	for i, s := range stmts {
		if s.Name == c.statement {
			results[i].Rows, c.statement = c.rows, ""
		}
	}
	if stmts[len(stmts)-1].Name == "purge_events" {
		c.commits++
	}
	return results, nil
}

// TestPurgeCatchesUp: a purge deletes in commits of 6 rows, and of 48 if a row could have been
// deleted ten minutes ago: a job, a run or an event.
func TestPurgeCatchesUp(t *testing.T) {
	for statement, row := range map[string]func(id string, end time.Time) []any{
		"over_jobs":   func(id string, end time.Time) []any { return []any{id, "event" + id, int64(1), end.UnixMilli()} },
		"over_runs":   func(id string, end time.Time) []any { return []any{id, "event" + id, int64(1), end.UnixMilli()} },
		"over_events": func(id string, end time.Time) []any { return []any{id, id, end.UnixMilli()} },
	} {
		for late, want := range map[time.Duration]int{time.Minute: 9, 10 * time.Minute: 2} {
			synctest.Test(t, func(t *testing.T) {
				before := time.Now().Add(-time.Hour)
				c := &oldConn{statement: statement}
				for i := range 50 {
					end := before
					if i == 0 {
						end = before.Add(-late)
					}
					c.rows = append(c.rows, row(fmt.Sprintf("%02d", i), end))
				}
				if _, _, err := New(c, SQLite, core.SystemClock).Purge(t.Context(), before, 500); err != nil {
					t.Fatal(err)
				}
				if c.commits != want {
					t.Errorf("%s, %v late: %d commits, want %d", statement, late, c.commits, want)
				}
			})
		}
	}
}
