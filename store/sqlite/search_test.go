package sqlite

import (
	"context"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/store"
)

// The rows of BenchmarkJobSearch: jobs of 20 lanes, of which 70 % are completed, 1 % are dead and the
// others due. Twelve of the dead ones, spread evenly, have the error that is searched.
const searchJobs = numbers + intoJobs + `SELECT printf('1%025d', i), printf('0%025d', i), 'handler/h' || (i % 20), NULL,
	CASE WHEN i % 100 = 0 THEN 'dead' WHEN i % 10 < 7 THEN 'completed' ELSE 'available' END, 1, 3,
	CASE WHEN i % 10 >= 7 THEN 1000 + i END, NULL,
	CASE WHEN i % 100 <> 0 THEN '' WHEN i % 83300 = 0 THEN 'connect: connection refused' ELSE 'status: 503 Service Unavailable' END,
	1000 + i, CASE WHEN i % 10 < 7 THEN 1500 + i END FROM n`

// BenchmarkJobSearch measures the search for 12 errors among a million jobs, with all its pages. It
// reports how many requests the pages take.
func BenchmarkJobSearch(b *testing.B) {
	rows := 1_000_000
	if testing.Short() {
		rows = 10_000
	}
	var conn store.Conn
	s := open(b, func(c store.Conn) store.Conn { conn = c; return c })
	for _, st := range []store.Stmt{
		{Name: "fill", SQL: askEvents, Args: []any{int64(rows)}},
		{Name: "fill", SQL: searchJobs, Args: []any{int64(rows)}},
		{Name: "fill", SQL: `PRAGMA wal_checkpoint(TRUNCATE)`, Reads: true},
	} {
		if _, err := conn.Batch(context.Background(), st); err != nil {
			b.Fatal(err)
		}
	}
	jobs := manage.NewJobs(s, time.Now)
	dead := core.JobFilter{Status: core.Dead}
	for _, bench := range []struct {
		name   string
		search manage.JobSearch
	}{
		{"dead", manage.JobSearch{JobFilter: dead, Error: "connection refused"}},
		{"dead of a source", manage.JobSearch{JobFilter: dead, Source: "crm", Error: "connection refused"}},
		{"dead of each source", manage.JobSearch{JobFilter: dead, Source: "shop"}},
		{"all", manage.JobSearch{Error: "connection refused"}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var pages, found int
			var longest time.Duration
			for b.Loop() {
				pages, found = 0, 0
				for f := bench.search; pages == 0 || f.After != ""; pages++ {
					began := time.Now()
					page, err := jobs.Search(b.Context(), f)
					if err != nil {
						b.Fatal(err)
					}
					found, f.After, longest = found+len(page.Items), page.Next, max(longest, time.Since(began))
				}
			}
			b.ReportMetric(float64(pages), "pages")
			b.ReportMetric(float64(found), "found")
			b.ReportMetric(float64(longest.Microseconds())/1000, "longest-ms")
		})
	}
}
