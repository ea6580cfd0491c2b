package store

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestPurgeCommitSize: the rows of a purge's commits double while commits are slow for their
// rows, halve while they are quick, and stay between least and maxGrowth times least. Otherwise
// a purge on a slow disk would never end, or accepts on a fast disk would wait behind large
// commits.
func TestPurgeCommitSize(t *testing.T) {
	const rows = 100
	const ownTime, quick, slow = maxPause / pauseFactor / 2, rows * slowRow / 4, rows * slowRow * 2
	b := commitSize{25, 25}
	for i, tt := range []struct {
		took time.Duration
		want int
		rest time.Duration
	}{
		{ownTime, 25, pauseFactor * ownTime},
		{quick, 25, maxPause},
		{slow, 50, maxPause},
		{rows * slowRow * 3 / 4, 50, maxPause},
		{slow, 100, maxPause},
		{slow, 25 * maxGrowth, maxPause},
		{slow, 25 * maxGrowth, maxPause},
		{quick, 100, maxPause},
		{quick, 50, maxPause},
		{quick, 25, maxPause},
		{ownTime, 25, pauseFactor * ownTime},
	} {
		next, rest := b.next(tt.took, rows)
		if next.rows != tt.want || rest != tt.rest {
			t.Errorf("%d: after %v for %d rows a commit has %d after a pause of %v, want %d after %v", i, tt.took, rows, next.rows, rest, tt.want, tt.rest)
		}
		b = next
	}
	if next, rest := (commitSize{}).next(time.Second, rows); next.rows != 0 || rest != 0 {
		t.Errorf("no bound became %d, with a pause of %v; want neither", next.rows, rest)
	}
}

// TestPurgeCommitsAreBounded compares the batches of a purge, with and without a bound. Each
// batch is written as the number of rows of each of its statements. A job or run shares its
// batch with all of its parts, and jobs, runs and unreferenced events never share one.
func TestPurgeCommitsAreBounded(t *testing.T) {
	s := &Store{sql: newStatements(SQLite)}
	rows := func(parts ...int64) (rows [][]any) {
		for i, n := range parts {
			rows = append(rows, []any{fmt.Sprint("id", i), fmt.Sprint("event", i/2), n})
		}
		return rows
	}
	all := expired{before: int64(1), jobs: rows(1, 1, 0, 2, 9, 1), runs: rows(3, 3), unreferenced: [][]any{{"a", int64(1)}, {"b", int64(1)}, {"c", int64(1)}, {"d", int64(1)}}}
	for _, tt := range []struct {
		most int
		want string
	}{
		{0, "jobs 6 attempts 6 runs 2 steps 2 texts 2 history 2 callbacks 2 events 3; events 4"},
		{3, "jobs 3 attempts 3 events 2; jobs 1 attempts 1 events 1; jobs 1 attempts 1 events 1; jobs 1 attempts 1 events 1; " +
			"runs 1 steps 1 texts 1 history 1 callbacks 1 events 1; runs 1 steps 1 texts 1 history 1 callbacks 1 events 1; events 3; events 1"},
	} {
		p := all
		var got []string
		for batch := s.nextBatch(&p, tt.most); rowsOf(batch) > 0; batch = s.nextBatch(&p, tt.most) {
			got = append(got, rowCounts(batch))
		}
		if text := strings.Join(got, "; "); text != tt.want {
			t.Errorf("commits of %d rows are %s, want %s", tt.most, text, tt.want)
		}
	}
}

// rowCounts writes a batch as the names of its deletes with their numbers of rows.
func rowCounts(batch []Stmt) string {
	var words []string
	for _, st := range batch {
		if name, purges := strings.CutPrefix(st.Name, "purge_"); purges && len(st.Rows) > 0 {
			words = append(words, fmt.Sprint(name, " ", len(st.Rows)))
		}
	}
	return strings.Join(words, " ")
}
