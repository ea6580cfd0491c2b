package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// countingConn is a database with some waiting lanes. It counts what it is asked.
type countingConn struct {
	store.Conn
	waiting           []string
	statements, lanes int
}

func (c *countingConn) Batch(_ context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	results := make([]store.Result, len(stmts))
	for i, st := range stmts {
		c.statements++
		c.lanes += len(st.Rows)
		if st.Name == "jobs_waiting_lanes" && st.Args[0] == "" {
			for _, l := range c.waiting {
				results[i].Rows = append(results[i].Rows, []any{l})
			}
		}
	}
	return results, nil
}

// TestDueOfManyIdleLanes: what a look at 10,000 lanes asks the database depends on the lanes in which
// jobs wait, on every database. Strays asks about none.
func TestDueOfManyIdleLanes(t *testing.T) {
	var lanes []core.Lane
	for i := range 10_000 {
		lanes = append(lanes, core.Lane(fmt.Sprintf("handler/%05d", i)))
	}
	ctx := t.Context()
	for _, d := range []store.Dialect{store.SQLite, store.Postgres, store.MySQL, store.D1} {
		for _, waiting := range [][]string{nil, {"handler/00007", "handler/09999", "queue/other"}} {
			c := &countingConn{waiting: waiting}
			s := store.New(c, d, core.SystemClock)
			if _, err := s.Due(ctx, lanes); err != nil {
				t.Fatal(err)
			}
			if want := max(0, len(waiting)-1); c.statements > 4 || c.lanes != want {
				t.Errorf("%s, %d lanes with jobs: Due sends %d statements that ask about %d lanes, want at most 4, about %d", d.Name, len(waiting), c.statements, c.lanes, want)
			}
			*c = countingConn{waiting: nil}
			if _, err := s.Strays(ctx, time.Now(), lanes); err != nil {
				t.Fatal(err)
			}
			if c.statements > 2 || c.lanes > 0 {
				t.Errorf("%s: Strays sends %d statements that ask about %d lanes, want 2 about none", d.Name, c.statements, c.lanes)
			}
		}
	}
}

// fullConn is a MySQL database in which jobs wait in every lane, more than a page of them in each.
type fullConn struct {
	store.Conn
	lanes       []core.Lane
	pages, asks int // statements for the names of lanes, and lanes that are asked about
}

func (c *fullConn) Batch(_ context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	results := make([]store.Result, len(stmts))
	for i, st := range stmts {
		switch st.Name {
		case "jobs_waiting_lanes":
			lane := c.lanes[c.pages]
			c.pages++
			for range 100 {
				results[i].Rows = append(results[i].Rows, []any{string(lane)})
			}
		case "due":
			c.asks += len(st.Rows)
		}
	}
	return results, nil
}

// TestDueOfManyBusyLanes: where a statement finds one lane, a look gives up the search for lanes with
// jobs after as many statements as it takes to ask about each lane, and asks about each.
func TestDueOfManyBusyLanes(t *testing.T) {
	c := &fullConn{}
	for i := range 10_000 {
		c.lanes = append(c.lanes, core.Lane(fmt.Sprintf("handler/%05d", i)))
	}
	if _, err := store.New(c, store.MySQL, core.SystemClock).Due(t.Context(), c.lanes); err != nil {
		t.Fatal(err)
	}
	if most := len(c.lanes)/250 + 1; c.pages > most || c.asks != len(c.lanes) {
		t.Errorf("Due reads %d pages of lanes and asks about %d lanes, want at most %d, and all", c.pages, c.asks, most)
	}
}
