package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// Checks of migrations, on empty databases. Processes of several versions may start at the same
// time, lose their connection or die at any step. A failure means that a deployment needs manual
// repair of the database, or that it loses an index without notice.

// RunMigrations checks the sentences of core.Upkeep about Migrate that need an empty database,
// several processes or a newer version. empty makes an empty database and returns a function that
// dials it. Each call of that function stands for another process.
func RunMigrations(t *testing.T, d store.Dialect, empty func(t *testing.T) (dial func() store.Conn)) {
	newStore := func(c store.Conn) *store.Store { return store.New(Weakened(c), d, core.SystemClock) }
	// Each sub-test has a database of its own.
	t.Run("Two processes start at once on an empty database", func(t *testing.T) {
		t.Parallel()
		migrateTogether(t, newStore, empty(t))
	})
	t.Run("Each step may be sent twice", func(t *testing.T) {
		t.Parallel()
		dial := empty(t)
		migrated(t, newStore(sentTwice{dial()}))
		usable(t, newStore(dial()))
	})
	t.Run("An interrupted migration continues", func(t *testing.T) {
		t.Parallel()
		breakOff(t, newStore, empty(t))
	})
	t.Run("A slow process that dies leaves no dropped index", func(t *testing.T) {
		t.Parallel()
		migrateOutrun(t, newStore, d, empty(t))
	})
	t.Run("It refuses a database of a newer version", func(t *testing.T) {
		t.Parallel()
		refuseNewer(t, newStore, empty(t))
	})
	t.Run("The jobs of an event are found after the index on events is dropped", func(t *testing.T) {
		t.Parallel()
		migrateLater(t, newStore, d, empty(t)())
	})
	t.Run("Schema follows each step", func(t *testing.T) {
		t.Parallel()
		followSteps(t, newStore, empty(t))
	})
}

// beforeLater is the last schema step of the versions that found all jobs of an event by jobs_event.
const beforeLater = 71

// migrateLater brings a database of such a version up to date. It has a job that was stored with its event
// and a replayed one.
func migrateLater(t *testing.T, newStore func(store.Conn) *store.Store, d store.Dialect, c store.Conn) {
	s, now, ids := newStore(c), core.SystemClock(), core.NewIDs(core.SystemClock)
	migrated(t, s)
	block := ids.Block()
	a := core.Arrival{Event: core.Event{ID: block.At(0), Source: "s", Type: "t", CreatedAt: now}, Jobs: []core.NewJob{{ID: block.At(1), Lane: "queue/a", MaxAttempts: 1}}}
	again := core.Arrival{Event: core.Event{ID: a.Event.ID}, Jobs: []core.NewJob{{ID: ids.Next(), Lane: "queue/a", MaxAttempts: 1}}}
	if _, err := s.Accept(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Replay(t.Context(), now, again); err != nil {
		t.Fatal(err)
	}
	back := []store.Stmt{{Name: "forget_steps", SQL: fmt.Sprint("DELETE FROM schema_steps WHERE number > ", beforeLater)}}
	if d.Name != store.MySQL.Name { // it keeps jobs_event
		back = append(back, store.Stmt{Name: "drop_later", SQL: "DROP INDEX jobs_later"}, store.Stmt{Name: "make_earlier", SQL: "CREATE INDEX jobs_event ON jobs (event_id, id)"})
	}
	if _, err := c.Batch(t.Context(), back...); err != nil {
		t.Fatal(err)
	}
	s = newStore(c)
	migrated(t, s)
	if found, err := store.Compare(t.Context(), c, d); err != nil || len(found) > 0 {
		t.Errorf("Compare after the migration = %v, %v, want no difference", found, err)
	}
	of, err := s.JobsOf(t.Context(), []core.ID{a.Event.ID})
	if err != nil || len(of[a.Event.ID]) != 2 {
		t.Errorf("JobsOf after the migration = %v, %v, want the first job and the replayed one", of, err)
	}
	if got, err := s.Cancel(t.Context(), now, a.Event.ID); err != nil || got.Canceled != 2 {
		t.Errorf("Cancel after the migration = %+v, %v, want 2 canceled", got, err)
	}
}

// followSteps calls Schema and Pending before each step. It migrates by one step at a time, since
// each connection breaks after four batches. Schema must report each step, over a connection that
// fails the test if a statement writes.
func followSteps(t *testing.T, newStore func(store.Conn) *store.Store, dial func() store.Conn) {
	s := newStore(writeless{dial(), t})
	for batches := 0; ; batches++ {
		have, want, err := s.Schema(t.Context())
		pending, failed := s.Pending(t.Context())
		if err != nil || failed != nil || len(pending) != want-have || have < want && pending[0].Number != have+1 {
			t.Fatalf("Schema after %d batches = %d, %d, %v, with %d pending, %v, want those that are missing", batches, have, want, err, len(pending), failed)
		}
		if batches == 0 && have != 0 {
			t.Errorf("Schema of an empty database = %d, want 0", have)
		}
		if have == want {
			return
		}
		if err := newStore(&limited{dial(), 4}).Migrate(t.Context()); err != nil && !strings.Contains(err.Error(), errBrokenOff.Error()) {
			t.Fatalf("Migrate = %v", err)
		}
	}
}

// writeless is a connection that fails the test when a statement writes.
type writeless struct {
	store.Conn
	t *testing.T
}

func (c writeless) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	for _, s := range stmts {
		if !s.Reads {
			c.t.Errorf("%s was sent, want nothing but reads: %s", s.Name, s.SQL)
		}
	}
	return c.Conn.Batch(ctx, stmts...)
}

// migrated migrates a store, and ends the test on an error.
func migrated(t *testing.T, s *store.Store) {
	t.Helper()
	if err := s.Migrate(context.Background()); err != nil {
		t.Fatalf("Migrate = %v, want none", err)
	}
}

// usable fails unless a store accepts an event, and its job can be taken and settled. A schema
// that lacks a column or an index needed for that would fail here.
func usable(t *testing.T, s core.Store) {
	t.Helper()
	r := newRig(t, s, Options{})
	r.settle(r.ended(r.taken().Job, core.Completed))
}

// migrateTogether starts eight processes on one empty database at the same moment. All must
// succeed, although each finds steps that another one is running.
func migrateTogether(t *testing.T, newStore func(store.Conn) *store.Store, dial func() store.Conn) {
	const processes = 8
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range processes {
		s := newStore(dial())
		wg.Go(func() {
			<-start
			if err := s.Migrate(context.Background()); err != nil {
				t.Errorf("Migrate of process %d of %d = %v, want none", i, processes, err)
			}
		})
	}
	close(start)
	wg.Wait()
	usable(t, newStore(dial()))
}

// sentTwice sends each batch a second time before it returns the answer, as another process might
// have sent it.
type sentTwice struct{ store.Conn }

func (c sentTwice) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	if res, err := c.Conn.Batch(ctx, stmts...); err != nil {
		return res, err
	}
	return c.Conn.Batch(ctx, stmts...)
}

// breakOff migrates again and again, each time with one more batch before the connection breaks,
// until a migration succeeds. So the migration is interrupted once before each of its batches, and
// each next process continues.
func breakOff(t *testing.T, newStore func(store.Conn) *store.Store, dial func() store.Conn) {
	const enough = 100
	for batches := range enough {
		if err := newStore(&limited{dial(), batches}).Migrate(context.Background()); err == nil {
			usable(t, newStore(dial()))
			return
		} else if !strings.Contains(err.Error(), errBrokenOff.Error()) {
			t.Fatalf("Migrate that breaks off after %d batches = %v, want %v", batches, err, errBrokenOff)
		}
	}
	t.Fatalf("Migrate is not whole after %d batches", enough)
}

// errBrokenOff is the refusal of a connection after its last permitted batch.
var errBrokenOff = core.Refuse(core.Unavailable, "the process ended here")

// limited is a connection that breaks after a number of batches, as that of a process that dies.
type limited struct {
	store.Conn
	left int
}

func (c *limited) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	if c.left--; c.left < 0 {
		return nil, errBrokenOff
	}
	return c.Conn.Batch(ctx, stmts...)
}

// migrateOutrun lets two processes migrate one database. The slower process has looked at the
// steps before the faster one does them. The slower one dies before each step that drops an
// index. It must not leave an index behind that the faster one has dropped.
func migrateOutrun(t *testing.T, newStore func(store.Conn) *store.Store, d store.Dialect, dial func() store.Conn) {
	migrated(t, newStore(dial()))
	for done, step := range store.SchemaSteps() {
		if !strings.HasPrefix(step.Name, "drop index ") {
			continue
		}
		if err := newStore(&outdated{limited: limited{dial(), 1 + done}}).Migrate(t.Context()); !errors.Is(err, errBrokenOff) {
			t.Fatalf("Migrate of a process that dies before step %d = %v, want %v", step.Number, err, errBrokenOff)
		}
		if found, err := store.Compare(t.Context(), dial(), d); err != nil || len(found) != 0 {
			t.Errorf("after a process died before step %d: Compare = %v, %v, want no difference", step.Number, found, err)
		}
	}
}

// outdated answers its first query of the steps as if no step were done.
type outdated struct {
	limited
	asked bool
}

func (c *outdated) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	res, err := c.limited.Batch(ctx, stmts...)
	if err == nil && stmts[0].Name == "schema_read" && !c.asked {
		c.asked, res[0].Rows = true, nil
	}
	return res, err
}

// refuseNewer marks a database as migrated by a newer version. This version must change nothing,
// and its refusal must tell the operator that the database is newer. A schema that lacks a step
// in the middle counts as being at the step before it.
func refuseNewer(t *testing.T, newStore func(store.Conn) *store.Store, dial func() store.Conn) {
	s, conn := newStore(dial()), dial()
	migrated(t, s)
	future := store.Stmt{Name: "future", SQL: `INSERT INTO schema_steps (number, applied_at) VALUES (?, ?)`, Args: []any{int64(9000), int64(0)}}
	if _, err := conn.Batch(context.Background(), future); err != nil {
		t.Fatal(err)
	}
	err := s.Migrate(context.Background())
	want := fmt.Sprintf("the database is at schema step %d, from a newer version of the gateway", 9000)
	if !core.IsKind(err, core.Invalid) || !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("Migrate of a newer database = %v, want a refusal of kind Invalid: %s", err, want)
	}
	if have, newest, err := s.Schema(context.Background()); err != nil || have != 9000 || newest >= have {
		t.Errorf("Schema of a newer database = %d, %d, %v, want 9000 and less", have, newest, err)
	}
	if pending, err := s.Pending(context.Background()); err != nil || len(pending) != 0 {
		t.Errorf("Pending of a newer database = %v, %v, want none", pending, err)
	}
	missing := store.Stmt{Name: "past", SQL: `DELETE FROM schema_steps WHERE number = 5`}
	if _, err := conn.Batch(context.Background(), missing); err != nil {
		t.Fatal(err)
	}
	if have, _, err := s.Schema(context.Background()); err != nil || have != 4 {
		t.Errorf("Schema without step 5 = %d, %v, want 4", have, err)
	}
}
