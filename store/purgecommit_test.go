package store

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestPurgeCommitSize: the rows of a purge's commits double while commits are slow for their
// rows, halve while they are quick, and stay between least and most. Otherwise a purge on a slow
// disk would never end, or accepts on a fast disk would wait behind large commits.
func TestPurgeCommitSize(t *testing.T) {
	const rows = 100
	const quick, slow = rows * slowRow / 4, rows * slowRow * 2
	b := commitSizeOf(25, 0)
	for i, tt := range []struct {
		took time.Duration
		want int
	}{
		{quick, 25},
		{slow, 50},
		{rows * slowRow * 3 / 4, 50},
		{slow, 100},
		{slow, 25 * maxGrowth},
		{slow, 25 * maxGrowth},
		{quick, 100},
		{quick, 50},
		{quick, 25},
	} {
		next := b.next(tt.took, rows)
		if next.rows != tt.want {
			t.Errorf("%d: after %v for %d rows a commit has %d, want %d", i, tt.took, rows, next.rows, tt.want)
		}
		b = next
	}
	if next := commitSizeOf(0, 0).next(time.Second, rows); next.rows != 0 {
		t.Errorf("no bound became %d rows", next.rows)
	}
}

// TestPurgeCommitSizeWhenLate: the later a purge is, the larger are its commits.
func TestPurgeCommitSizeWhenLate(t *testing.T) {
	for late, want := range map[time.Duration]int{
		-time.Hour: 6, 0: 6, onTime: 6, (onTime + tooLate) / 2: 27, tooLate: 48, 1000 * time.Hour: 48,
	} {
		if b := commitSizeOf(6, late); b.rows != want || b.least != want || b.most != 48 {
			t.Errorf("%v late: a purge begins with %+v, want %d rows at least and 48 at most", late, b, want)
		}
	}
}

// TestPurgePause: a purge pauses for ten times as long as a commit took, and at most 5 ms.
func TestPurgePause(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: 0, 100 * time.Microsecond: time.Millisecond, time.Second: 5 * time.Millisecond} {
		if got := pauseAfter(took); got != want {
			t.Errorf("after %v: a pause of %v, want %v", took, got, want)
		}
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
