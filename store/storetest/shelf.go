package storetest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/eventgateway/gateway/store"
)

// Databases that checks use one after the other, emptied in between.

// A Shelf keeps the databases of finished checks for later checks, because making all tables and
// indexes costs a server more time than most checks take. D identifies a database for its driver.
// The zero Shelf is empty.
type Shelf[D any] struct {
	mu   sync.Mutex
	free []D
}

// Take returns an unused database of the shelf, or else a new one from fresh, which must last as
// long as the shelf. The database returns to the shelf when the test ends, after everything that
// the test opened is closed. The database of a failed test does not return.
func (s *Shelf[D]) Take(t *testing.T, fresh func() D) D {
	t.Helper()
	d, used := s.pop()
	if !used {
		d = fresh()
	}
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free = append(s.free, d)
	})
	return d
}

// pop removes and returns a free database, if there is one.
func (s *Shelf[D]) pop() (d D, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.free)
	if n == 0 {
		return d, false
	}
	d, s.free = s.free[n-1], s.free[:n-1]
	return d, true
}

// Empty deletes all rows of a migrated database except those of the schema.
func Empty(t *testing.T, c store.Conn) {
	t.Helper()
	var stmts []store.Stmt
	for _, step := range store.SchemaSteps() {
		if table, creates := strings.CutPrefix(step.Name, "create table "); creates {
			stmts = append(stmts, store.Stmt{Name: "empty", SQL: "DELETE FROM " + table})
		}
	}
	if _, err := c.Batch(context.Background(), stmts...); err != nil {
		t.Fatalf("empty the database of an earlier check: %v", err)
	}
}
