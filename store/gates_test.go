package store

import (
	"fmt"
	"testing"

	"github.com/eventgateway/gateway/core"
)

// TestSettleAppliesFewSuccesses: the jobs of a Settle, each taken as it was stored and so under a lease of its
// own, cost few looks at their gate, also where a hundred succeed.
func TestSettleAppliesFewSuccesses(t *testing.T) {
	s := New(nil, SQLite, nil)
	var outcomes []core.Outcome
	for i := range 100 {
		id := fmt.Sprint(i)
		lane := core.Lane([]string{"handler/a", "handler/b"}[i%2])
		outcomes = append(outcomes, core.Outcome{JobID: core.ID(id), Lease: core.Lease("lease " + id), Lane: lane, Verdict: core.Success})
	}
	stmts, _ := s.gateStmts(outcomes)
	if len(stmts) != 1 || len(stmts[0].Rows) != 2*mostSuccesses {
		t.Fatalf("%d statements, want one with %d rows", len(stmts), 2*mostSuccesses)
	}
	of := map[any]int{}
	for _, row := range stmts[0].Rows {
		of[row[succeededLane]]++
	}
	if of["handler/a"] != mostSuccesses || of["handler/b"] != mostSuccesses {
		t.Errorf("rows of %v, want %d of each lane", of, mostSuccesses)
	}
}
