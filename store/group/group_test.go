package group

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A desk is a commit function that a test can block. It records the batches that it committed.
type desk struct {
	mu     sync.Mutex
	groups [][]string
	held   chan struct{} // nil, or closed to let the commits through
	begun  chan struct{}
	fail   func(names []string) error
}

func (d *desk) commit(batches []*Batch) error {
	var names []string
	for _, b := range batches {
		names = append(names, b.Stmts[0].Name)
		b.Results[0].Changed = 1
	}
	if d.begun != nil {
		d.begun <- struct{}{}
	}
	if d.held != nil {
		<-d.held
	}
	if d.fail != nil {
		if err := d.fail(names); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.groups = append(d.groups, names)
	return nil
}

func stmt(name string) []store.Stmt { return []store.Stmt{{Name: name}} }

// queue puts batches in the line while the committer is busy, and returns when all of them wait.
// errs waits for their errors.
func queue(l *Line, names ...string) (errs func() []error) {
	all := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			var res []store.Result
			res, all[i] = l.Do(context.Background(), stmt(name))
			if all[i] == nil && res[0].Changed != 1 {
				runtime.Gosched()
				all[i] = fmt.Errorf("results = %v", res)
			}
		})
		for len(l.wait) != i+1 {
			runtime.Gosched()
		}
	}
	return func() []error { wg.Wait(); return all }
}

// busy returns a line whose only committer is in the middle of a commit. release ends that
// commit.
func busy(d *desk, bounds ...Bounds) (l *Line, release func()) {
	d.held, d.begun = make(chan struct{}), make(chan struct{}, 100)
	l = NewLine(1, d.commit, bounds...)
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Do(context.Background(), stmt("first"))
	}()
	<-d.begun
	return l, func() { close(d.held); <-done }
}

func TestWhatWaitsSharesACommit(t *testing.T) {
	var d desk
	l, release := busy(&d)
	defer l.Close()
	errs := queue(l, "a", "b", "c")
	release()
	for _, err := range errs() {
		if err != nil {
			t.Error(err)
		}
	}
	if got, want := fmt.Sprint(d.groups), "[[first] [a b c]]"; got != want {
		t.Errorf("commits = %s, want %s", got, want)
	}
}

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		bounds Bounds
		want   string
	}{
		{Bounds{Statements: 2}, "[[first] [a b] [c]]"},
		{Bounds{Statements: 1}, "[[first] [a] [b] [c]]"},
		{Bounds{Bytes: 1}, "[[first] [a b c]]"},
		{Bounds{}, "[[first] [a b c]]"},
	} {
		var d desk
		l, release := busy(&d, c.bounds)
		errs := queue(l, "a", "b", "c")
		release()
		for _, err := range errs() {
			if err != nil {
				t.Error(err)
			}
		}
		l.Close()
		if got := fmt.Sprint(d.groups); got != c.want {
			t.Errorf("commits within %+v = %s, want %s", c.bounds, got, c.want)
		}
	}
	for _, c := range []struct {
		bounds            Bounds
		statements, bytes int
		want              bool
	}{{Bounds{Bytes: 10}, 99, 9, true}, {Bounds{Bytes: 10}, 1, 10, false}, {Bounds{Statements: 5, Bytes: 10}, 5, 1, false}} {
		if got := c.bounds.admit(c.statements, c.bytes); got != c.want {
			t.Errorf("%+v admits one more to %d statements of %d bytes: %v, want %v", c.bounds, c.statements, c.bytes, got, c.want)
		}
	}
	b := Batch{Stmts: []store.Stmt{{Args: []any{"abc"}}, {Rows: [][]any{{"a"}, {int64(1)}, {"b"}}}}}
	if b.statements() != 4 || b.size() != 5 {
		t.Errorf("a batch has %d statements of %d bytes, want 4 of 5", b.statements(), b.size())
	}
}

func TestABadBatchFailsAlone(t *testing.T) {
	bad := errors.New("a value is missing")
	d := desk{fail: func(names []string) error {
		for _, n := range names {
			if n == "bad" {
				return bad
			}
		}
		return nil
	}}
	l, release := busy(&d)
	defer l.Close()
	errs := queue(l, "a", "bad", "c")
	release()
	got := errs()
	if got[0] != nil || got[1] != bad || got[2] != nil {
		t.Errorf("errors = %v, want only the second to be %q", got, bad)
	}
	if got, want := fmt.Sprint(d.groups), "[[first] [a] [c]]"; got != want {
		t.Errorf("commits = %s, want %s", got, want)
	}
}

// TestTroubleIsNotRepeated: if the database is unavailable, the line does not try each batch on
// its own.
func TestTroubleIsNotRepeated(t *testing.T) {
	asked := 0
	d := desk{fail: func(names []string) error {
		asked++
		return core.Refuse(core.Unavailable, "away")
	}}
	l, release := busy(&d)
	defer l.Close()
	errs := queue(l, "a", "b", "c")
	release()
	for _, err := range errs() {
		if !core.IsKind(err, core.Unavailable) {
			t.Errorf("error = %v, want unavailable", err)
		}
	}
	if asked != 2 {
		runtime.Gosched()
		t.Errorf("%d commits were tried, want 2", asked)
	}
}

// TestAbandonedBatchIsNotWritten: a batch whose caller has given up is not committed. Otherwise a
// claim would lease jobs that no worker has.
func TestAbandonedBatchIsNotWritten(t *testing.T) {
	var d desk
	l, release := busy(&d)
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan error)
	go func() {
		_, err := l.Do(ctx, stmt("abandoned"))
		gone <- err
	}()
	for len(l.wait) != 1 {
		runtime.Gosched()
	}
	cancel()
	if err := <-gone; !core.IsKind(err, core.Unavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("Do = %v, want unavailable because canceled", err)
	}
	errs := queue2(l, "b")
	release()
	if err := errs()[0]; err != nil {
		t.Error(err)
	}
	l.Close()
	if got, want := fmt.Sprint(d.groups), "[[first] [b]]"; got != want {
		t.Errorf("commits = %s, want %s", got, want)
	}
}

// queue2 puts a batch in the line behind one that already waits.
func queue2(l *Line, name string) func() []error {
	err := make(chan error, 1)
	go func() {
		_, e := l.Do(context.Background(), stmt(name))
		err <- e
	}()
	for len(l.wait) != 2 {
		runtime.Gosched()
	}
	return func() []error { return []error{<-err} }
}

func TestClosedLineRefuses(t *testing.T) {
	var d desk
	l := NewLine(3, d.commit)
	l.Close()
	if _, err := l.Do(context.Background(), stmt("late")); !core.IsKind(err, core.Unavailable) {
		t.Errorf("Do on a closed line = %v, want unavailable", err)
	}
}

func TestMerge(t *testing.T) {
	batch := func(id string, texts ...string) *Batch {
		b := &Batch{Results: make([]store.Result, len(texts))}
		for _, sql := range texts {
			b.Stmts = append(b.Stmts, store.Stmt{SQL: sql, Rows: [][]any{{id + sql}}})
		}
		return b
	}
	batches := []*Batch{batch("1", "event", "job"), batch("2", "event", "job if", "read"), batch("3", "attempt", "settle"),
		batch("4", "event", "job if", "drop", "read"), batch("5", "job", "event"), batch("6", "settle")}
	m := Merge(batches)
	var order []string
	for _, s := range m.Stmts {
		order = append(order, fmt.Sprint(s.SQL, s.Rows))
	}
	want := "attempt[[3attempt]], settle[[3settle] [6settle]], event[[1event] [2event] [4event]], " +
		"job if[[2job if] [4job if]], drop[[4drop]], read[[2read] [4read]], job[[1job] [5job]], event[[5event]]"
	if got := strings.Join(order, ", "); got != want {
		t.Errorf("merged:\n%s\nwant:\n%s", got, want)
	}
	results := make([]store.Result, len(m.Stmts))
	for i := range results {
		results[i] = store.Result{Changed: 1, Rows: [][]any{{m.Stmts[i].SQL}}}
	}
	m.Share(results)
	for i, b := range batches {
		for j, s := range b.Stmts {
			alone := s.SQL == "attempt" || s.SQL == "drop" || i == 4 && s.SQL == "event"
			if got := b.Results[j]; got.Rows[0][0] != s.SQL || (got.Changed == 1) != alone {
				t.Errorf("batch %d, %s: %v", i+1, s.SQL, got)
			}
		}
	}
}

// TestAloneIsExact: the number of changes is known for a batch that was not merged with others.
func TestAloneIsExact(t *testing.T) {
	b := &Batch{Stmts: []store.Stmt{{SQL: "delete", Rows: [][]any{{"a"}, {"b"}, {"c"}}}}, Results: make([]store.Result, 1)}
	Merge([]*Batch{b}).Share([]store.Result{{Changed: 2}})
	if got := b.Results[0].Changed; got != 2 {
		t.Errorf("Changed = %d, want 2", got)
	}
}

// TestMergeKeepsReturns: a merged statement that returns rows still does, and each batch gets all of
// them, since the rows say whose they are.
func TestMergeKeepsReturns(t *testing.T) {
	batch := func(caller int64) *Batch {
		s := store.Stmt{SQL: "ack RETURNING caller", Rows: [][]any{{"job", caller}}, Returns: true}
		return &Batch{Stmts: []store.Stmt{s}, Results: make([]store.Result, 1)}
	}
	all := []*Batch{batch(1), batch(2)}
	m := Merge(all)
	if len(m.Stmts) != 1 || !m.Stmts[0].Returns {
		t.Fatalf("merged statements %+v, want one that returns rows", m.Stmts)
	}
	m.Share([]store.Result{{Rows: [][]any{{int64(2)}, {int64(1)}}, Changed: 2}})
	for i, b := range all {
		if got := fmt.Sprint(b.Results[0].Rows); got != "[[2] [1]]" {
			t.Errorf("batch %d got the rows %s, want all", i, got)
		}
	}
}

// TestMergeCounts: a merged statement is counted if one of its callers needs the number.
func TestMergeCounts(t *testing.T) {
	batch := func(uncounted bool) *Batch {
		return &Batch{Stmts: []store.Stmt{{SQL: "move", Rows: [][]any{{"job"}}, Uncounted: uncounted}}}
	}
	for _, want := range []bool{true, false} {
		for _, all := range [][]*Batch{{batch(true), batch(want)}, {batch(want), batch(true)}} {
			if m := Merge(all); len(m.Stmts) != 1 || m.Stmts[0].Uncounted != want {
				t.Errorf("merged statements %+v, want one with Uncounted = %v", m.Stmts, want)
			}
		}
	}
}

// TestMergeKeepsOrders: rows with a lock order stay in that order, and a batch whose statements
// have an order is not merged.
func TestMergeKeepsOrders(t *testing.T) {
	batch := func(keys ...string) *Batch {
		s := store.Stmt{SQL: "move", SortedBy: 2}
		for i, k := range keys {
			s.Rows = append(s.Rows, []any{int64(i), k})
		}
		return &Batch{Stmts: []store.Stmt{s}, Results: make([]store.Result, 1)}
	}
	first, second := batch("a", "y", "y"), batch("b", "y")
	m := Merge([]*Batch{first, second})
	if got, want := fmt.Sprint(m.Stmts[0].Rows), "[[0 a] [0 b] [1 y] [2 y] [1 y]]"; got != want {
		t.Errorf("merged rows = %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(second.Stmts[0].Rows), "[[0 b] [1 y]]"; got != want {
		t.Errorf("the second batch's own rows = %s afterwards, want %s", got, want)
	}
	if !Mergeable(first.Stmts) {
		t.Error("a batch of sorted rows is not mergeable")
	}
	if first.Stmts[0].NoMerge = true; Mergeable(first.Stmts) {
		t.Error("a batch that is to stay apart is mergeable")
	}
}
