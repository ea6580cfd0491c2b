package boot

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// skewed is a database whose clock is an hour ahead. It records the names of the statements.
type skewed struct {
	store.Conn
	asked [][]string
}

func (s *skewed) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	results, err := s.Conn.Batch(ctx, stmts...)
	var names []string
	for i, st := range stmts {
		if names = append(names, st.Name); st.Name == "check_clock" && err == nil {
			results[i].Rows = [][]any{{time.Now().Add(time.Hour).UnixMilli()}}
		}
	}
	s.asked = append(s.asked, names)
	return results, err
}

// TestClockAtStart: the batch that reads the schema also reads the database's clock, so the
// clock costs an environment no round trip.
func TestClockAtStart(t *testing.T) {
	conn, err := sqlite.Open(filepath.Join(t.TempDir(), "gateway.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := store.New(conn, store.SQLite, time.Now).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	db := &skewed{Conn: conn}
	f, log := newTest(t, gateway.IntakeRoutes, minimal, nil)
	f.drive = func(config.Database) (func(context.Context) (store.Conn, error), store.Dialect, error) {
		return func(context.Context) (store.Conn, error) { return db, nil }, store.D1, nil
	}
	if err := f.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := [][]string{{"schema_read", "check_clock"}}; !slices.EqualFunc(db.asked, want, slices.Equal) {
		t.Errorf("asked the database %v, want %v", db.asked, want)
	}
	clock := f.assembled.Clock
	if off := time.Until(clock()) - time.Hour; off.Abs() > time.Minute {
		t.Errorf("the clock is %v off that of the database", off)
	}
	if off := time.Until(f.assembled.Machine()); off.Abs() > time.Minute {
		t.Errorf("the machine's clock is %v off", off)
	}
	if !strings.Contains(log.String(), "differs from the database") {
		t.Errorf("the log says nothing of an hour: %s", log)
	}
}

// TestTimesOfFunctions: stored times are the database's, and deadlines are the machine's.
func TestTimesOfFunctions(t *testing.T) {
	f, _ := newTest(t, gateway.IntakeRoutes, minimal, nil)
	a := withStore(t, f)
	a.database.times.Measure()(time.Now().Add(-time.Hour))
	if r := (&server{f}).ask(t, post("/events/app/order.created", `{}`)); r.StatusCode != 202 {
		t.Fatalf("POST = %+v, want 202", r)
	}
	page, err := a.Store.Events(t.Context(), core.EventFilter{})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("events %v, %v, want one", page.Items, err)
	}
	for what, at := range map[string]time.Time{"received": page.Items[0].CreatedAt, "id": page.Items[0].ID.Time()} {
		if off := time.Since(at) - time.Hour; off.Abs() > time.Minute {
			t.Errorf("%s: %v is %v from the database's time", what, at, off)
		}
	}
}
