package reference

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/consume"
	"github.com/eventgateway/gateway/cmd/bench/internal/server"
)

// orders are the ways to find messages that a database knows.
func orders(driver string) []string {
	if driver == server.Postgres {
		return []string{ByID, ByDue}
	}
	return []string{""}
}

func openQueue(t *testing.T, db server.Database, order string) Queue {
	t.Helper()
	q, err := OpenQueue(t.Context(), QueueConfig{Driver: db.Driver, URL: db.URL, Token: db.Token, Consumers: 4, Order: order})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return q
}

func TestEveryMessageIsConsumedOnce(t *testing.T) {
	onEach(t, func(t *testing.T, db server.Database) {
		for i, order := range orders(db.Driver) {
			if i > 0 {
				db = databases[db.Driver](t)
			}
			q, p := openQueue(t, db, order), consume.Plan{First: 5, Count: 603, Batch: 10, Stall: patience}
			if err := q.Fill(t.Context(), p.First, p.Count, 1024); err != nil {
				t.Fatal(err)
			}
			res := consume.Run(t.Context(), slices.Repeat([]consume.Consumer{q}, 4), p)
			if res.Err != nil || res.Acked != p.Count || res.Duplicated+res.Strange > 0 || slices.Contains(res.Received, 0) {
				t.Errorf("%s: Run() acked %d of %d, duplicated %d, strange %d, %v", order, res.Acked, p.Count, res.Duplicated, res.Strange, res.Err)
			}
			if n := count(t, db, "SELECT count(*) AS n FROM q"); n != 0 {
				t.Errorf("%s: %d messages are left, want none", order, n)
			}
		}
	})
}

func TestATakenMessageIsInvisible(t *testing.T) {
	onEach(t, func(t *testing.T, db server.Database) {
		q, ctx := openQueue(t, db, ""), t.Context()
		if err := q.Fill(ctx, 0, 3, 1024); err != nil {
			t.Fatal(err)
		}
		first := receiveFrom(t, q, 2)
		second := receiveFrom(t, q, 2)
		if len(first) != 2 || len(second) != 1 || first[0] == second[0] || first[1] == second[0] {
			t.Errorf("Receive(2) = %v, then %v, want all three between them", first, second)
		}
		if more := receiveFrom(t, q, 2); len(more) > 0 {
			t.Errorf("Receive(2) of taken messages = %v, want none", more)
		}
		for want, messages := range [][]consume.Message{{}, second} {
			if want == 0 {
				messages = []consume.Message{{Receipt: "77"}}
			}
			if n, err := q.Ack(ctx, messages); n != want || err != nil {
				t.Errorf("Ack(%v) = %d, %v, want %d", messages, n, err, want)
			}
		}
		const taken = "SELECT count(*) AS n FROM q WHERE attempt = 1"
		if n := count(t, db, taken); n != 2 {
			t.Errorf("%d messages are taken, want 2", n)
		}
	})
}

func receiveFrom(t *testing.T, q Queue, n int) []consume.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	messages, err := q.Receive(ctx, n)
	if err != nil {
		t.Fatal(err)
	}
	return messages
}
