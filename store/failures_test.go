package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/eventgateway/gateway/core"
)

// TestAddTexts: the rows of errors may come in any order. A job without one was deleted in between, and
// a row may be for another caller.
func TestAddTexts(t *testing.T) {
	of := &failureRange{lane: "handler/a", status: core.Dead}
	var found []*failure
	var want []core.FailedJob
	rows := [][]any{{"0", "of another caller"}, {"5550", "of another caller"}, {"99999", "of another caller"}}
	for i := 9999; i >= 1000; i-- {
		id := fmt.Sprint(i)
		found = append(found, &failure{id: id, of: of})
		if i%10 > 0 {
			rows = append(rows, []any{id, "error " + id})
			want = append(want, core.FailedJob{ID: core.ID(id), Lane: "handler/a", Status: core.Dead, Error: "error " + id})
		}
	}
	found = slices.DeleteFunc(found, func(f *failure) bool { return f.id == "5550" })
	for range 3 {
		jobs := make([]*failure, len(found))
		for i, job := range found {
			jobs[i] = &failure{id: job.id, of: job.of}
		}
		addTexts(jobs, rows)
		if got := failedJobs(jobs); !slices.Equal(got, want) {
			t.Errorf("the jobs with their errors are %d, want %d", len(got), len(want))
		}
		rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	}
}
