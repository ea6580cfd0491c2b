package reference

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/eventgateway/gateway/cmd/bench/internal/consume"
)

const hostedAck = sqliteAck + ` RETURNING id`

// hostedQ is a request a commit. Its consumers do not wait for each other.
type hostedQ struct{ *hosted }

func openHostedQueue(cfg QueueConfig) (Queue, error) {
	q := hostedQ{connectHosted(cfg.URL, cfg.Token, cfg.Consumers)}
	_, err := q.send(statement{SQL: sqliteQueue})
	return q, err
}

func (q hostedQ) Close() error { return q.close() }

func (q hostedQ) Fill(_ context.Context, first, count, size int) error {
	return fill(first, count, size, func(rows []row) error {
		_, err := q.send(statement{sqlitePut, []any{text(pairs(rows))}})
		return err
	})
}

// pairs are rows as JSON has them.
func pairs(rows []row) [][2]any {
	out := make([][2]any, len(rows))
	for i, r := range rows {
		out[i] = [2]any{r.id, r.payload}
	}
	return out
}

// Receive makes up to n visible messages invisible and returns them, in one request.
func (q hostedQ) Receive(_ context.Context, n int) (messages []consume.Message, err error) {
	now := milliseconds()
	results, err := q.send(statement{sqliteReceive, []any{now + visibility, now, n}})
	if err != nil {
		return nil, err
	}
	for _, r := range results[0] {
		var id int64
		var payload string
		if err := json.Unmarshal(r, &[]any{&id, &payload}); err != nil {
			return nil, fmt.Errorf("read a message: %w", err)
		}
		messages = append(messages, received(id, []byte(payload)))
	}
	return messages, nil
}

// Ack deletes messages and counts the rows that RETURNING names.
func (q hostedQ) Ack(_ context.Context, messages []consume.Message) (int, error) {
	ids, err := rowIDs(messages)
	if err != nil {
		return 0, err
	}
	results, err := q.send(statement{hostedAck, []any{text(ids)}})
	if err != nil {
		return 0, err
	}
	return len(results[0]), nil
}
