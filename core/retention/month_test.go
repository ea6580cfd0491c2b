package retention_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/retention"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
	"github.com/eventgateway/gateway/store/storetest"
)

// purging returns a function that makes one pass in each of two processes.
func purging(t *testing.T, s core.Store) func() {
	stated := func(f core.Fact) {
		if _, ok := f.(core.Purged); !ok {
			t.Errorf("fact %T %+v, want none but of rows that were purged", f, f)
		}
	}
	var processes []*retention.Purger
	for range 2 {
		processes = append(processes, retention.New(retention.Deps{Upkeep: s, Clock: core.SystemClock, Observe: stated}, 72*time.Hour, 72*time.Hour))
	}
	return func() {
		for _, p := range processes {
			if err := p.Tick(t.Context(), core.Budget{}); err != nil {
				t.Errorf("Tick = %v, want none", err)
			}
		}
	}
}

func TestMonth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(core.SystemClock)
		storetest.Month(t, m, purging(t, m), m.Rows)
	})
}

// TestMonthOnSQLite counts the rows of every table of the schema.
func TestMonthOnSQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	synctest.Test(t, func(t *testing.T) {
		conn, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		s := store.New(conn, store.SQLite, core.SystemClock)
		defer s.Close()
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		storetest.Month(t, s, purging(t, s), func() map[string]int { return rowsOf(t, conn) })
	})
}

func rowsOf(t *testing.T, c store.Conn) map[string]int {
	ask := func(sql string) [][]any {
		results, err := c.Batch(context.Background(), store.Stmt{Name: "count", SQL: sql, Reads: true})
		if err != nil {
			t.Fatal(err)
		}
		return results[0].Rows
	}
	rows := map[string]int{}
	for _, table := range ask(`SELECT name FROM sqlite_schema WHERE type = 'table'`) {
		name := table[0].(string)
		rows[name] = int(ask(`SELECT COUNT(*) FROM ` + name)[0][0].(int64))
	}
	return rows
}
