package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// failAs makes jobs of one status with an error, in a number of lanes. Their ids begin with a
// letter.
const failAs = numbers + intoJobs + `SELECT ?2 || printf('%025d', i), 'e', 'handler/h' || (i % ?3), NULL, ?4, 3, 5, ?5, NULL,
	iif(?6, 'status: 503 Service Unavailable, request ' || (1000000 + i), ''), 1000 + i, ?7 FROM n`

func failJobs(tb testing.TB, c store.Conn, n int, letter string, lanes int, status core.Status, due, finished any) {
	tb.Helper()
	failed := int64(1)
	if status == core.Completed || status == core.Available {
		failed = 0
	}
	args := []any{int64(n), letter, int64(lanes), string(status), due, failed, finished}
	if _, err := c.Batch(context.Background(), store.Stmt{Name: "fill", SQL: failAs, Args: args}); err != nil {
		tb.Fatal(err)
	}
}

// TestFailuresAreBounded: of more failed jobs than one call returns, the newest are returned. Of a
// lane with very many unfinished jobs, it reads the jobs that are due last, and More says that
// there are others.
func TestFailuresAreBounded(t *testing.T) {
	var conn store.Conn
	s := open(t, func(c store.Conn) store.Conn { conn = c; return c })
	check := func(when string, want int, more bool) {
		t.Helper()
		got, err := s.Failures(t.Context(), core.FailureFilter{})
		if err != nil || len(got.Items) != want || got.More != more {
			t.Errorf("%s: Failures = %d jobs, more %t, %v, want %d, %t", when, len(got.Items), got.More, err, want, more)
		}
		if !slices.IsSortedFunc(got.Items, func(a, b core.FailedJob) int { return cmp.Compare(b.ID, a.ID) }) {
			t.Errorf("%s: Failures is not newest first", when)
		}
	}
	far := time.Now().Add(time.Hour).UnixMilli()
	failJobs(t, conn, core.FailureReach-1, "1", 1, core.Available, int64(1000), nil)
	failJobs(t, conn, 1, "2", 1, core.Retryable, far, nil)
	check("with as many unfinished jobs as are read", 1, false)
	failJobs(t, conn, 1, "3", 1, core.Retryable, int64(900), nil)
	check("with one more, which is due first", 1, true)
	if _, err := conn.Batch(t.Context(), store.Stmt{Name: "end", SQL: "DELETE FROM jobs"}); err != nil {
		t.Fatal(err)
	}
	failJobs(t, conn, core.MaxFailures, "4", 1, core.Dead, nil, int64(1))
	check("with as many dead jobs as are returned", core.MaxFailures, false)
	failJobs(t, conn, 7, "5", 3, core.Dead, nil, int64(1))
	check("with some more in other lanes", core.MaxFailures, true)
}

// BenchmarkFailures lists the failed jobs among a million, of which 300,000 are dead, 25,000 wait
// for another attempt and 25,000 are due. It reports the best time as well, since other work on the
// machine disturbs the mean.
func BenchmarkFailures(b *testing.B) {
	const rows = 1_000_000
	for _, lanes := range []int{1, 20, 200} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			var conn store.Conn
			s := open(b, func(c store.Conn) store.Conn { conn = c; return c })
			n := rows
			if testing.Short() {
				n /= 1000
			}
			failJobs(b, conn, n*65/100, "1", lanes, core.Completed, nil, int64(1))
			failJobs(b, conn, n*30/100, "2", lanes, core.Dead, nil, int64(1))
			failJobs(b, conn, n*5/200, "3", lanes, core.Retryable, time.Now().Add(time.Hour).UnixMilli(), nil)
			failJobs(b, conn, n*5/200, "4", lanes, core.Available, int64(1000), nil)
			for _, f := range []core.FailureFilter{{}, {Lane: "handler/h0"}} {
				b.Run("lane="+string(f.Lane), func(b *testing.B) {
					took := time.Hour
					for b.Loop() {
						began := time.Now()
						if _, err := s.Failures(b.Context(), f); err != nil {
							b.Fatal(err)
						}
						took = min(took, time.Since(began))
					}
					b.ReportMetric(float64(took.Microseconds())/1000, "best-ms")
				})
			}
		})
	}
}

// TestFailuresAreTheNewest: of jobs in lanes of very different sizes, the answer has those that one
// plain statement finds, whatever the limit.
func TestFailuresAreTheNewest(t *testing.T) {
	var conn store.Conn
	s := open(t, func(c store.Conn) store.Conn { conn = c; return c })
	now := time.Now()
	const random = numbers + intoJobs + `SELECT '01M7' || printf('%022d', i), 'e', 'handler/h' || (abs(random()) % (1 + abs(random()) % 9)), NULL,
		CASE abs(random()) % 5 WHEN 0 THEN 'retryable' WHEN 1 THEN 'running' WHEN 2 THEN 'completed' ELSE 'dead' END, 3, 5, NULL, NULL,
		CASE abs(random()) % 3 WHEN 0 THEN '' WHEN 1 THEN 'status: 503' ELSE 'no order ' || random() END, 1, NULL FROM n`
	far := now.Add(time.Hour).UnixMilli()
	for _, st := range []store.Stmt{
		{Name: "fill", SQL: random, Args: []any{int64(3000)}},
		{Name: "due", SQL: "UPDATE jobs SET due_at = iif(random() % 2, 1000, ?1) + abs(random()) % 1000 WHERE status IN ('retryable', 'running')", Args: []any{far}},
	} {
		if _, err := conn.Batch(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	const plain = `SELECT id, lane, iif(status = 'running', 'retryable', status), last_error FROM jobs
		WHERE (status IN ('dead', 'retryable') OR status = 'running' AND due_at <= ?) AND (lane = ?2 OR ?2 = '') ORDER BY id DESC`
	for _, lane := range []string{"", "handler/h0", "handler/h8"} {
		results, err := conn.Batch(t.Context(), store.Stmt{Name: "plain", SQL: plain, Args: []any{now.UnixMilli(), lane}, Reads: true})
		if err != nil || len(results[0].Rows) == 0 {
			t.Fatalf("%d rows, %v", len(results[0].Rows), err)
		}
		var all []core.FailedJob
		for _, row := range results[0].Rows {
			all = append(all, core.FailedJob{ID: core.ID(row[0].(string)), Lane: core.Lane(row[1].(string)), Status: core.Status(row[2].(string)), Error: row[3].(string)})
		}
		for _, limit := range []int{1, 2, 10, 99, 500, 1000, len(all) - 1, len(all), len(all) + 1} {
			got, err := s.Failures(t.Context(), core.FailureFilter{Lane: core.Lane(lane), Limit: limit})
			if want := all[:min(limit, len(all))]; err != nil || !slices.Equal(got.Items, want) || got.More != (len(want) < len(all)) {
				t.Errorf("Failures of %q, at most %d = %d jobs, more %t, %v, want %d, %t", lane, limit, len(got.Items), got.More, err, len(want), len(want) < len(all))
			}
		}
	}
}
