package mysql

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/store"
)

const jobSource = "(SELECT ? AS status_, ? AS id_, ? AS lease_" + store.MySQLRow + " UNION ALL SELECT ?, ?, ?" + store.MySQLRow + ") AS r"

// TestOfKeys: rows are found by a list of keys, and values that differ are chosen by the key. Other statements
// keep their row source.
func TestOfKeys(t *testing.T) {
	const update = "UPDATE " + jobSource + " STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`) SET status = r.status_, lease = NULL WHERE jobs.id = r.id_ AND jobs.lease = r.lease_ AND EXISTS (SELECT 1 FROM runs WHERE runs.id = r.id_)"
	k := OfKeys(update)
	if k == nil {
		t.Fatal("the UPDATE has to keep its row source")
	}
	sql, args := k.On([][]any{{"dead", "a", "x"}, {"dead", "b", "y"}})
	want := "UPDATE jobs FORCE INDEX (`PRIMARY`) SET status = ?, lease = NULL WHERE jobs.id IN (?, ?) AND jobs.lease = CASE jobs.id WHEN ? THEN ? WHEN ? THEN ? END AND EXISTS (SELECT 1 FROM runs WHERE runs.id = jobs.id)"
	if sql != want || !slices.Equal(args, []any{"dead", "a", "b", "a", "x", "b", "y"}) {
		t.Errorf("On = %s, %v; want %s", sql, args, want)
	}
	for _, sql := range []string{
		strings.Replace(update, "jobs.id = r.id_", "jobs.lease = r.lease_", 1),                      // another condition comes first
		strings.Replace(update, "SET status", "LEFT JOIN gates ON TRUE SET status", 1),              // joined tables
		strings.Replace(update, "WHERE jobs.id = r.id_ AND", "WHERE", 1),                            // the key is not compared
		strings.ReplaceAll(update, "jobs", "attempts"),                                              // the key has two columns
		"SELECT jobs.id FROM " + jobSource + " STRAIGHT_JOIN jobs WHERE jobs.id = r.id_",            // changes nothing
		"UPDATE jobs SET status = ? WHERE jobs.id = ?",                                              // no row source
		"UPDATE " + jobSource + " STRAIGHT_JOIN jobs SET status = (SELECT 1 WHERE jobs.id = r.id_)", // the comparison is in a subquery
	} {
		if k := OfKeys(sql); k != nil {
			got, _ := k.On([][]any{{"dead", "a", "x"}})
			t.Errorf("OfKeys(%s) = %s, want none", sql, got)
		}
	}
}

// TestKeyedParts: a statement has a limited number of rows and bytes. Rows with the same key keep the row source.
func TestKeyedParts(t *testing.T) {
	const sql = "UPDATE " + jobSource + " STRAIGHT_JOIN jobs SET status = r.status_ WHERE jobs.id = r.id_"
	rows := make([][]any, 2*maxKeyed+1)
	for i := range rows {
		rows[i] = []any{fmt.Sprint("status ", i%7), fmt.Sprint("job ", i), nil}
	}
	cutInto := func(rows [][]any, packet int) (lengths []int) {
		t.Helper()
		all, err := parts([]store.Stmt{{SQL: sql, Rows: rows}}, packet)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			if strings.Contains(p.sql, "UNION ALL") {
				lengths = append(lengths, -1)
			} else {
				lengths = append(lengths, strings.Count(p.sql, "WHEN"))
			}
			if n := len(p.sql) + size(p.args); n > p.size || p.size > packet {
				t.Errorf("a part has %d bytes, and its size is %d of %d", n, p.size, packet)
			}
		}
		return lengths
	}
	if got := cutInto(rows, 1<<20); !slices.Equal(got, []int{maxKeyed, maxKeyed, 0}) { // one row has the value that all rows have
		t.Errorf("rows of the parts = %v", got)
	}
	if got := cutInto(rows[:4], 700); len(got) != 2 {
		t.Errorf("rows of the parts in small packets = %v, want two parts", got)
	}
	if got := cutInto([][]any{{strings.Repeat("x", 500), "a", nil}, rows[0]}, 620); len(got) != 2 {
		t.Errorf("rows of the parts = %v, want one each: a row that fits alone fits beside another", got)
	}
	if got := cutInto([][]any{rows[0], rows[1], rows[0]}, 1<<20); !slices.Equal(got, []int{-1}) {
		t.Errorf("rows of the parts with a key that comes twice = %v", got)
	}
	if got := cutInto([][]any{rows[0], {"a", nil, nil}}, 1<<20); !slices.Equal(got, []int{-1}) {
		t.Errorf("rows of the parts with a key that is null = %v", got)
	}
}

// TestSoleKeys: of each table the primary key is the column in soleKeys, and no other.
func TestSoleKeys(t *testing.T) {
	c := opened(t, servers.MySQL(t))
	migrated(t, c)
	for table, key := range soleKeys {
		got := c.read(t, "SELECT GROUP_CONCAT(column_name) FROM information_schema.key_column_usage "+
			"WHERE table_schema = DATABASE() AND constraint_name = 'PRIMARY' AND table_name = '"+table+"'")
		if got != key {
			t.Errorf("the primary key of %s = %v, want %s", table, got, key)
		}
	}
}

// TestSettleMany: outcomes of one call that differ in all values are stored each with its own, also where
// statements are cut. An outcome whose lease was lost changes nothing.
func TestSettleMany(t *testing.T) {
	const n = 2*maxKeyed + 7
	ctx, now := context.Background(), time.Now().Truncate(time.Millisecond)
	s := migrated(t, opened(t, servers.MySQL(t)))
	if _, err := s.Accept(ctx, arrival(core.NewIDs(core.SystemClock), "handler/a", n)); err != nil {
		t.Fatal(err)
	}
	taken, err := s.Take(ctx, time.Now(), []core.Quota{{Lane: "handler/a", N: n, Hold: time.Minute}})
	if err != nil || len(taken) != n {
		t.Fatalf("Take = %d jobs, %v; want %d", len(taken), err, n)
	}
	var all []core.Outcome
	var lost []core.ID
	for i, j := range taken {
		at := now.Add(time.Duration(i) * time.Millisecond)
		o := core.Outcome{JobID: j.Job.ID, Lease: j.Lease, Status: core.Completed, At: at,
			Attempt: core.Attempt{Number: 1, StatusCode: 200 + i%5, Response: fmt.Sprintf("reply %d of 'this' \\ \xff", i), StartedAt: at}}
		if i%3 == 1 {
			o.Status, o.DueAt, o.Attempt.Error = core.Retryable, at.Add(time.Hour), fmt.Sprint("error ", i)
		}
		if i%10 == 9 {
			o.Lease, lost = "another", append(lost, o.JobID)
		}
		all = append(all, o)
	}
	settled, err := s.Settle(ctx, all...)
	slices.Sort(lost)
	slices.Sort(settled.Lost)
	if err != nil || !slices.Equal(settled.Lost, lost) {
		t.Fatalf("Settle = %v, %v; want %v lost", settled.Lost, err, lost)
	}
	for _, o := range all {
		j, err := s.Job(ctx, o.JobID)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprint(o.Status, o.DueAt.UnixMilli(), o.Attempt.Error)
		if o.Lease == "another" {
			want = fmt.Sprint(core.Running, j.DueAt.UnixMilli(), "")
		}
		if got := fmt.Sprint(j.Status, j.DueAt.UnixMilli(), j.LastError); got != want {
			t.Errorf("job = %s, want %s", got, want)
		}
		attempts, err := s.Attempts(ctx, o.JobID, 0, 2)
		if err != nil {
			t.Fatal(err)
		}
		var replies, wanted []string
		for _, a := range attempts {
			replies = append(replies, fmt.Sprintf("%d %q %d", a.StatusCode, a.Response, a.StartedAt.UnixMilli()))
		}
		if o.Lease != "another" {
			wanted = []string{fmt.Sprintf("%d %q %d", o.Attempt.StatusCode, o.Attempt.Response, o.Attempt.StartedAt.UnixMilli())}
		}
		if !slices.Equal(replies, wanted) {
			t.Errorf("attempts of a %s job = %v, want %v", j.Status, replies, wanted)
		}
	}
}
