package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// A remoteConn is a database with a clock of its own. Each batch takes trip.
type remoteConn struct {
	ahead, trip time.Duration
	back        []time.Duration // how long the next answers take, beside trip
	fails       []error         // the errors of the next batches
	batches     [][]string
}

func (f *remoteConn) Batch(_ context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	var names []string
	results := make([]store.Result, len(stmts))
	time.Sleep(f.trip / 2)
	for i, s := range stmts {
		names = append(names, s.Name)
		if s.Name == "check_clock" {
			results[i].Rows = [][]any{{time.Now().Add(f.ahead).UnixMilli()}}
		}
	}
	time.Sleep(f.trip - f.trip/2)
	if len(f.back) > 0 {
		time.Sleep(f.back[0])
		f.back = f.back[1:]
	}
	f.batches = append(f.batches, names)
	if len(f.fails) > 0 {
		err := f.fails[0]
		if f.fails = f.fails[1:]; err != nil {
			return nil, err
		}
	}
	return results, nil
}

func (f *remoteConn) Close() error { return nil }

// sent returns the batches since the last call of sent.
func (f *remoteConn) sent() [][]string {
	sent := f.batches
	f.batches = nil
	return sent
}

// TestTimed: the query for the time is added to batches that are sent anyway, and does not appear
// in their results.
func TestTimed(t *testing.T) {
	away := core.Refuse(core.Unavailable, "away")
	synctest.Test(t, func(t *testing.T) {
		f := &remoteConn{ahead: 45 * time.Second, trip: 10 * time.Millisecond}
		clock := core.NewDatabaseClock(core.SystemClock)
		s := store.NewTimed(f, store.Postgres, clock)
		ping := func() error { return s.Ping(t.Context()) }
		write := func() error { // one statement with rows and without a read
			_, err := s.Ack(t.Context(), time.Now(), "queue/a", []core.Ref{{ID: "J"}})
			return err
		}
		step := func(why string, do func() error, fails bool, want ...[]string) {
			t.Helper()
			if err := do(); (err != nil) != fails {
				t.Errorf("%s: %v, want an error: %v", why, err, fails)
			}
			if got := f.sent(); !slices.EqualFunc(got, want, slices.Equal) {
				t.Errorf("%s: sent %v, want %v", why, got, want)
			}
		}
		plain, timed := []string{"ping"}, []string{"ping", "check_clock"}

		step("the first batch", ping, false, timed)
		if off := time.Until(clock.Now()) - 45*time.Second; off.Abs() > time.Millisecond {
			t.Errorf("the clock is %v off", off)
		}
		step("the second one", ping, false, plain)
		time.Sleep(time.Minute)
		step("a write that a read may come before", write, false, []string{"ack"})
		step("a read after a minute", ping, false, timed)
		step("the next read", ping, false, plain)
		time.Sleep(time.Minute + 11*time.Second)
		step("a write, when no read came", write, false, []string{"ack", "check_clock"})
		step("a read after that", ping, false, plain)

		f.fails = []error{away}
		step("the database is away", ping, true, plain)
		f.fails = []error{away}
		step("and still is", ping, true, timed)
		step("it is back", ping, false, timed)
		f.ahead = 0
		step("nothing is due", ping, false, plain)
		time.Sleep(time.Minute)
		f.fails = []error{errors.New("no such function")}
		step("the question may be what fails the batch", ping, false, timed, plain)
		f.fails = []error{errors.New("no such table"), errors.New("no such table")}
		step("the batch fails anyway", ping, true, timed, plain)
	})
}

// TestMeasureTime: a process that begins gets the time from the quickest of several answers, however
// slow the first ones were, and at once.
func TestMeasureTime(t *testing.T) {
	for name, c := range map[string]struct {
		trips []time.Duration // of the answers in turn, of which the way back takes all
		asks  int
		off   time.Duration // how far the clock may be off
	}{
		"quick":          {[]time.Duration{2 * time.Millisecond}, 1, 2 * time.Millisecond},
		"first one slow": {[]time.Duration{230 * time.Millisecond, 3 * time.Millisecond}, 2, 3 * time.Millisecond},
		"all slow":       {[]time.Duration{100 * time.Millisecond, 60 * time.Millisecond, 80 * time.Millisecond, 300 * time.Millisecond}, 4, 31 * time.Millisecond},
		"far away":       {slices.Repeat([]time.Duration{40 * time.Millisecond}, 20), 8, 21 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &remoteConn{ahead: 45 * time.Second, back: c.trips}
				clock := core.NewDatabaseClock(core.SystemClock)
				if err := store.NewTimed(f, store.Postgres, clock).MeasureTime(t.Context(), 8); err != nil {
					t.Fatal(err)
				}
				if off := time.Until(clock.Now()) - f.ahead; off.Abs() > c.off {
					t.Errorf("the clock is %v off, want at most %v", off, c.off)
				}
				if got := f.sent(); len(got) != c.asks || !slices.Equal(got[0], []string{"ping", "check_clock"}) {
					t.Errorf("sent %v, want %d times the time", got, c.asks)
				}
			})
		})
	}
}

// TestMeasureTimeFails: an error of the database is returned; that it does not know the query is
// not an error.
func TestMeasureTimeFails(t *testing.T) {
	away := core.Refuse(core.Unavailable, "away")
	for name, c := range map[string]struct {
		fails []error
		want  error
	}{
		"away":       {[]error{away}, away},
		"no query":   {[]error{errors.New("no such function")}, nil},
		"no service": {[]error{errors.New("no such function"), away}, away},
	} {
		f := &remoteConn{fails: c.fails}
		if err := store.NewTimed(f, store.Postgres, core.NewDatabaseClock(core.SystemClock)).MeasureTime(t.Context(), 8); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestTimedSQLite: a database file uses the machine's clock, so no query for the time is sent.
func TestTimedSQLite(t *testing.T) {
	f := &remoteConn{ahead: 45 * time.Second}
	clock := core.NewDatabaseClock(core.SystemClock)
	if err := store.NewTimed(f, store.SQLite, clock).Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.NewTimed(f, store.SQLite, clock).MeasureTime(t.Context(), 8); err != nil {
		t.Error(err)
	}
	if got := f.sent(); len(got) != 1 || len(got[0]) != 1 || clock.Ahead() != 0 {
		t.Errorf("sent %v, and the clock is %v ahead, want no question and 0", got, clock.Ahead())
	}
}
