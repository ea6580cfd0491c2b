package mysql

import (
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/store"
)

// TestOfOne: the values of a single row stand where the statement names a column of the row source. Another
// row source stays.
func TestOfOne(t *testing.T) {
	const source = "(SELECT ? AS id_, ? AS lease_, ? AS status_" + store.MySQLRow + " UNION ALL SELECT ?, ?, ?" + store.MySQLRow + ") AS r"
	tests := []struct {
		sql, want string
		columns   []int
	}{
		{"UPDATE " + source + " STRAIGHT_JOIN jobs FORCE INDEX (`PRIMARY`) SET status = r.status_ WHERE jobs.id = r.id_ AND lease = r.lease_ AND jobs.id = r.id_",
			"UPDATE jobs FORCE INDEX (`PRIMARY`) SET status = ? WHERE jobs.id = ? AND lease = ? AND jobs.id = ?", []int{2, 0, 1, 0}},
		{"INSERT INTO attempts (lease, job_id) SELECT r.lease_, jobs.id FROM " + source + " STRAIGHT_JOIN jobs WHERE jobs.id = r.id_",
			"INSERT INTO attempts (lease, job_id) SELECT ?, jobs.id FROM jobs WHERE jobs.id = ?", []int{1, 0}},
		{"SELECT r.id_ FROM " + source + " LEFT JOIN gates ON gates.lane = r.id_", "", nil},
		{"INSERT INTO t (a) SELECT r.id_ FROM " + source + " WHERE r.id_ <> ''", "", nil},
		{"INSERT INTO t (a) VALUES (?)" + store.MySQLRow + ", (?)" + store.MySQLRow, "", nil},
		{"UPDATE jobs SET status = ? WHERE id = ?", "", nil},
	}
	for _, tt := range tests {
		if got, columns := OfOne(tt.sql); got != tt.want || !slices.Equal(columns, tt.columns) {
			t.Errorf("OfOne(%s) = %s, %v; want %s, %v", tt.sql, got, columns, tt.want, tt.columns)
		}
	}
}

// TestSingleRowIsTooLarge: a value that stands in a statement twice counts twice.
func TestSingleRowIsTooLarge(t *testing.T) {
	sql := "UPDATE (SELECT ? AS a_" + store.MySQLRow + " UNION ALL SELECT ?" + store.MySQLRow + ") AS r STRAIGHT_JOIN t SET a = r.a_, b = r.a_ WHERE t.c = r.a_"
	row := []any{strings.Repeat("x", 1000)}
	if _, err := parts([]store.Stmt{{SQL: sql, Rows: [][]any{row}}}, 3000); err == nil {
		t.Error("three times 1000 bytes fit into 3000")
	}
	all, err := parts([]store.Stmt{{SQL: sql, Rows: [][]any{row}}}, 4000)
	if err != nil || len(all) != 1 || len(all[0].args) != 3 {
		t.Errorf("parts = %d, %v; want one with three arguments", len(all), err)
	}
}
