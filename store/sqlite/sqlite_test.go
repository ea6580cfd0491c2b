package sqlite

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/storetest"
)

// open opens an empty, migrated database in a folder of its own.
func open(tb testing.TB, wrap func(store.Conn) store.Conn) core.Store {
	tb.Helper()
	conn, err := Open(filepath.Join(tb.TempDir(), "gateway.db"))
	if err != nil {
		tb.Fatal(err)
	}
	if wrap != nil {
		conn = wrap(conn)
	}
	s := store.New(conn, store.SQLite, core.SystemClock)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	if err := s.Migrate(context.Background()); err != nil {
		tb.Fatalf("Migrate: %v", err)
	}
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) core.Store { return open(t, nil) })
}

func TestFaults(t *testing.T) {
	storetest.RunFaults(t, func(t *testing.T, f *storetest.Fault) core.Store {
		return open(t, func(c store.Conn) store.Conn { return storetest.Faulty(c, f) })
	})
}

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) core.Store { return open(b, nil) })
}
