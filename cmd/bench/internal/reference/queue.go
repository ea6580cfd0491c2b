package reference

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/consume"
	"github.com/eventgateway/gateway/cmd/bench/internal/event"
)

// A Queue is a table from which several consumers take messages: the plain SQL that the
// gateway's queue is compared with. Taking a message makes it invisible for a while, acking
// it deletes its row, and each is a commit of its own. It is safe for concurrent use.
type Queue interface {
	consume.Consumer

	// Fill inserts messages of size bytes with the sequence numbers from first on.
	Fill(ctx context.Context, first, count, size int) error

	Close() error
}

// QueueConfig has the settings of a queue's table. A queue's table is in a database of its own:
// it shares nothing with the tables of a pipeline.
type QueueConfig struct {
	Driver    string // sqlite, postgres, mysql or hosted_sql
	URL       string // as in a Config
	Token     string // of hosted_sql
	Consumers int    // maximum at a time
	Order     string // ByID or ByDue; on PostgreSQL only
}

// How consumers find messages. By id they use the primary key and step over invisible rows;
// taking then writes no index entry. By due time they use an index of times, which is
// necessary where many messages wait for their time.
const (
	ByID  = "by id"
	ByDue = "by due time"
)

// visibility is for how long a taken message is invisible, in milliseconds.
const visibility = 30_000

// fillBatch is how many messages are put in at once.
const fillBatch = 500

// OpenQueue makes the table.
func OpenQueue(ctx context.Context, cfg QueueConfig) (q Queue, err error) {
	switch cfg.Driver {
	case "sqlite":
		q, err = openSQLiteQueue(ctx, cfg)
	case "postgres":
		q, err = openPostgresQueue(ctx, cfg)
	case "mysql":
		q, err = openMySQLQueue(ctx, cfg)
	case "hosted_sql":
		q, err = openHostedQueue(cfg)
	default:
		return nil, fmt.Errorf("no reference for %q", cfg.Driver)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare the queue: %w", err)
	}
	return q, nil
}

// A row is a message as it is put in.
type row struct {
	id      int64
	payload string
}

// fill calls put for batch after batch of rows. One body serves all messages: each is stamped
// into it, and copied into its row.
func fill(first, count, size int, put func([]row) error) error {
	body, rows := event.Body(size), make([]row, 0, fillBatch)
	for seq := first; seq < first+count; seq++ {
		event.Stamp(body, seq, time.Now().UnixNano())
		rows = append(rows, row{int64(seq) + 1, string(body)})
		if len(rows) == fillBatch || seq == first+count-1 {
			if err := put(rows); err != nil {
				return fmt.Errorf("fill the queue: %w", err)
			}
			rows = rows[:0]
		}
	}
	return nil
}

// received is a message with a payload that was read. A payload without a sequence number gets
// -1, which the consumers count as strange.
func received(id int64, payload []byte) consume.Message {
	seq, ours := event.Seq(payload)
	if !ours {
		seq = -1
	}
	return consume.Message{Seq: seq, Receipt: strconv.FormatInt(id, 10)}
}

// rowIDs are the ids behind receipts.
func rowIDs(messages []consume.Message) ([]int64, error) {
	ids := make([]int64, len(messages))
	for i, m := range messages {
		id, err := strconv.ParseInt(m.Receipt, 10, 64)
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	return ids, nil
}

// milliseconds is the clock of the tables that keep times as numbers.
func milliseconds() int64 { return time.Now().UnixMilli() }
