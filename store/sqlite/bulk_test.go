package sqlite

import (
	"context"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/operate"
	"github.com/eventgateway/gateway/store"
)

// The rows of BenchmarkRetryAll: dead jobs of ten lanes.
const bulkJobs = numbers + intoJobs + `SELECT printf('00%024d', i), printf('0%025d', i), 'handler/h' || (i % 10), NULL,
	'dead', 3, 3, NULL, NULL, 'status: 503 Service Unavailable', 1000 + i, 1500 + i FROM n`

// BenchmarkRetryAll measures a retry of 20,000 dead jobs.
func BenchmarkRetryAll(b *testing.B) {
	const rows = 20_000
	for _, way := range []string{"store", "operation"} {
		b.Run(way, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				var conn store.Conn
				s := open(b, func(c store.Conn) store.Conn { conn = c; return c })
				for _, st := range []store.Stmt{
					{Name: "fill", SQL: askEvents, Args: []any{int64(rows)}},
					{Name: "fill", SQL: bulkJobs, Args: []any{int64(rows)}},
					{Name: "fill", SQL: `PRAGMA wal_checkpoint(TRUNCATE)`, Reads: true},
				} {
					if _, err := conn.Batch(context.Background(), st); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
				n := 0
				if way == "store" {
					var err error
					if n, err = s.Retry(b.Context(), time.Now(), "", ""); err != nil {
						b.Fatal(err)
					}
				} else {
					ids := core.NewIDs(time.Now)
					w := operate.Walker{Store: s}
					o := manage.NewOperations(w, ids, time.Now)
					o.Doer = operate.New(operate.Deps{Walker: w, IDs: ids, Clock: time.Now, Bell: &core.Bell{}, Observe: func(core.Fact) {}})
					op, err := o.Do(b.Context(), manage.Rush{Operation: core.Operation{Action: core.RetryAction, Filter: core.OperationFilter{Status: "dead"}}})
					if err != nil {
						b.Fatal(err)
					}
					n = op.Acted
				}
				if n != rows {
					b.Fatal(n)
				}
			}
		})
	}
}
