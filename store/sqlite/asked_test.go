package sqlite

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// The rows of BenchmarkAsked: events with a completed job each, in 20 lanes, and a few jobs in
// every other status. Those few are as old as possible, so that a listing reaches them last.
const (
	askEvents = numbers + `INSERT INTO events (id, source, type, payload, content_type, headers, delivery_id, created_at) SELECT printf('0%025d', i), iif(i % 10 = 0, 'crm', 'shop'), 'order.created', '{"total": 42, "pad": "' || hex(zeroblob(200)) || '"}',
		'application/json', '', 'delivery ' || i, 1000 + i FROM n`
	askJobs = numbers + intoJobs + `SELECT printf('1%025d', i), printf('0%025d', i), 'handler/h' || (i % 20), NULL,
		'completed', 1, 3, NULL, NULL, '', 1000 + i, 1500 + i FROM n`
	askFew = numbers + intoJobs + `SELECT ?2 || printf('%025d', i), printf('0%025d', i), 'handler/h' || (i % 20), NULL,
		?2, 1, 3, ?3 + i, NULL, '', 1000 + i, ?4 + i FROM n`
)

func fillAsked(tb testing.TB, c store.Conn, rows, few int) {
	tb.Helper()
	far := time.Now().Add(time.Hour).UnixMilli()
	for _, s := range []store.Stmt{
		{SQL: askEvents, Args: []any{int64(rows)}},
		{SQL: askJobs, Args: []any{int64(rows)}},
		{SQL: askFew, Args: []any{int64(few), "available", int64(1000), nil}},
		{SQL: askFew, Args: []any{int64(few), "retryable", far, nil}},
		{SQL: askFew, Args: []any{int64(few), "running", far, nil}},
		{SQL: askFew, Args: []any{int64(few), "dead", nil, int64(1000)}},
		{SQL: `UPDATE jobs SET id = '00' || substr(id, 3) || status WHERE status <> 'completed'`},
		{SQL: `UPDATE jobs SET lane = 'queue/rare' WHERE id IN (SELECT id FROM jobs ORDER BY id LIMIT 10)`},
		{SQL: `PRAGMA wal_checkpoint(TRUNCATE)`, Reads: true},
	} {
		s.Name = "fill"
		if _, err := c.Batch(context.Background(), s); err != nil {
			tb.Fatal(err)
		}
	}
}

// BenchmarkAsked measures the requests of operators on a million events and jobs. It reports the
// median of each.
func BenchmarkAsked(b *testing.B) {
	rows := 1_000_000
	if testing.Short() {
		rows = 10_000
	}
	var conn store.Conn
	s := open(b, func(c store.Conn) store.Conn { conn = c; return c })
	fillAsked(b, conn, rows, 1000)
	ctx := context.Background()
	var all []core.Lane
	for i := range 20 {
		all = append(all, core.Lane(fmt.Sprintf("handler/h%d", i)))
	}
	ask := func(name string, do func() error) {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if err := do(); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		})
	}
	jobs := func(f core.JobFilter) func() error {
		return func() error { _, err := s.Jobs(ctx, f); return err }
	}
	events := func(f core.EventFilter) func() error {
		return func() error { _, err := s.Events(ctx, f); return err }
	}
	ask("events", events(core.EventFilter{}))
	ask("events/crm", events(core.EventFilter{Source: "crm"}))
	ask("events/nobody", events(core.EventFilter{Source: "nobody"}))
	ask("events/delivery", events(core.EventFilter{DeliveryID: "delivery 777777"}))
	ask("jobs", jobs(core.JobFilter{}))
	for _, st := range core.Statuses() {
		ask("jobs/"+string(st), jobs(core.JobFilter{Status: st}))
	}
	ask("jobs/lane", jobs(core.JobFilter{Lane: all[7]}))
	for _, l := range []core.Lane{"queue/rare", "handler/nobody"} {
		ask("jobs/lane "+string(l[:5]), jobs(core.JobFilter{Lane: l}))
	}
	ask("jobs/lane and dead", jobs(core.JobFilter{Lane: all[7], Status: core.Dead}))
	ask("jobs/lane and completed", jobs(core.JobFilter{Lane: "queue/rare", Status: core.Completed}))
	ask("failures", func() error { _, err := s.Failures(ctx, core.FailureFilter{}); return err })
	ask("failures of a lane", func() error { _, err := s.Failures(ctx, core.FailureFilter{Lane: all[7]}); return err })
	ask("tallies of 20", func() error { _, err := s.Tallies(ctx, time.Now(), all); return err })
	ask("ended of 20", func() error { _, err := s.Ended(ctx, all); return err })
	ask("completed", func() error { _, err := s.Completed(ctx); return err })
	ask("depth", func() error { _, err := s.Depth(ctx); return err })
	ask("nth of 1000", func() error { _, err := s.Nth(ctx, core.EventFilter{}, 1000); return err })
	ask("nth of 100000", func() error { _, err := s.Nth(ctx, core.EventFilter{}, 100_000); return err })
	ask("read 1000", func() error { _, err := s.Read(ctx, "", core.EventFilter{Limit: 1000}); return err })
	ask("read newest 250", func() error { _, err := s.ReadNewest(ctx, core.EventFilter{Limit: 250}); return err })
	ask("finished", func() error { _, err := s.Finished(ctx, time.UnixMilli(500_000), "", 1000); return err })
	n := 0
	ask("purge of 500", func() error { n++; _, _, err := s.Purge(ctx, time.UnixMilli(2_000_000), 500); return err })
}
