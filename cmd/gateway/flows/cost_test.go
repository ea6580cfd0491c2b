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

// A counted connection records its batches, by the names of their first statements.
type counted struct {
	store.Conn
	mu      sync.Mutex
	batches []string
}

func (c *counted) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	c.mu.Lock()
	c.batches = append(c.batches, stmts[0].Name)
	c.mu.Unlock()
	return c.Conn.Batch(ctx, stmts...)
}

// without returns the number of batches with another name.
func (c *counted) without(name string) (n int) {
	for _, b := range c.batches {
		if b != name {
			n++
		}
	}
	return n
}

// TestCost: a step with a call costs at most three batches. On a database over HTTP each batch
// is a request. Looks for due jobs are not counted: their number depends on time.
func TestCost(t *testing.T) {
	const steps = 10
	var yaml strings.Builder
	yaml.WriteString("worker: {max_concurrency: 10}\nworkflows:\n  long:\n    source: shop\n    steps:\n")
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
			t.Logf("%d batches for %d steps, %d of them looks at what is due", len(c.batches), steps, len(c.batches)-c.without("due"))
			// The 3 other batches: the lanes with work, the definition, the begin of the run.
			if most := 3*steps + 3; c.without("due") > most {
				t.Errorf("%d batches for %d steps, want at most %d:\n%s", c.without("due"), steps, most, strings.Join(c.batches, "\n"))
			}
		})
	}
}
