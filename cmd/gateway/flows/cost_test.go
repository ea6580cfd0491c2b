package flows_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// A counted connection counts its batches, by what they are.
type counted struct {
	store.Conn
	mu      sync.Mutex
	batches []string
}

func (c *counted) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	kind := "read"
	if writes(stmts) {
		kind = "write"
	}
	c.mu.Lock()
	c.batches = append(c.batches, kind+": "+stmts[0].Name+fmt.Sprintf(" (%d)", len(stmts)))
	c.mu.Unlock()
	return c.Conn.Batch(ctx, stmts...)
}

// TestCost: a step that calls costs at most three batches, with all that is asked in
// between. On a database over HTTP each is a request.
func TestCost(t *testing.T) {
	const steps = 10
	var yaml strings.Builder
	yaml.WriteString("workflows:\n  long:\n    source: shop\n    steps:\n")
	for i := range steps {
		fmt.Fprintf(&yaml, "      - {name: s%d, url: http://receiver/s%d}\n", i, i)
	}
	for _, p := range everywhere {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, p, yaml.String())
			run := w.accept("order", `{}`)[0]
			c := &counted{Conn: w.conn}
			w.wrap = func(store.Conn) store.Conn { return c }
			if err := w.tick(); err != nil {
				t.Fatal(err)
			}
			if r := w.run(run); r.Status != core.RunCompleted {
				t.Fatalf("run is %s after one tick, want completed", r.Status)
			}
			t.Logf("%d batches for %d steps", len(c.batches), steps)
			// One more for the beginning of the run, its definition, and three looks.
			if most := 3*steps + 5; len(c.batches) > most {
				t.Errorf("%d batches for %d steps, want at most %d:\n%s", len(c.batches), steps, most, strings.Join(c.batches, "\n"))
			}
		})
	}
}
