package sqlite

import (
	"fmt"
	"testing"

	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/storetest"
)

// BenchmarkAck takes and acks 10 messages of a queue with more and more waiting messages, and
// with 100,000 messages that were acked before.
func BenchmarkAck(b *testing.B) {
	for _, n := range []struct{ waiting, acked int }{{1_000, 0}, {100_000, 0}, {1_000_000, 0}, {1_000, 100_000}} {
		b.Run(fmt.Sprintf("waiting=%d/acked=%d", n.waiting, n.acked), func(b *testing.B) {
			if testing.Short() && n.waiting+n.acked > 1000 {
				b.Skip("many rows take a while to write")
			}
			var conn store.Conn
			s := open(b, func(c store.Conn) store.Conn { conn = c; return c })
			seed(b, conn, "queue/plan", n.waiting+n.acked, 0)
			storetest.BenchAck(b, s, "queue/plan", n.acked)
		})
	}
}
