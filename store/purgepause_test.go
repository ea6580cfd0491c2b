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
