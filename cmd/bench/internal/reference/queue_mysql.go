package reference

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	driver "github.com/go-sql-driver/mysql"

	"github.com/eventgateway/gateway/cmd/bench/internal/consume"
)

const (
	mysqlQueue = `CREATE TABLE q (id BIGINT PRIMARY KEY, payload LONGBLOB NOT NULL, visible_at BIGINT NOT NULL, attempt INT NOT NULL, KEY q_visible (visible_at, id)) ENGINE = InnoDB`

	mysqlPut  = `INSERT INTO q (id, payload, visible_at, attempt) VALUES `
	mysqlLook = `SELECT id, payload FROM q FORCE INDEX (q_visible) WHERE visible_at <= ? ORDER BY visible_at, id LIMIT ? FOR UPDATE SKIP LOCKED`
	mysqlHide = `UPDATE q SET visible_at = ?, attempt = attempt + 1 WHERE id IN `
	mysqlAck  = `DELETE FROM q WHERE id IN `
)

// mysqlQ claims with one consumer at a time, as the pipeline does.
type mysqlQ struct {
	*mysql
	claiming sync.Mutex
}

// openMySQLQueue creates the table on a database that has none: it is dropped after the run.
func openMySQLQueue(ctx context.Context, cfg QueueConfig) (Queue, error) {
	db, err := connectMySQL(cfg.URL, cfg.Consumers)
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, mysqlQueue); err != nil {
		_ = db.Close()
		return nil, err
	}
	return &mysqlQ{mysql: &mysql{db: db}}, nil
}

func (q *mysqlQ) Close() error { return q.db.Close() }

// Fill inserts a batch of rows as one INSERT, visible since time 0.
func (q *mysqlQ) Fill(ctx context.Context, first, count, size int) error {
	return fill(first, count, size, func(rows []row) error {
		var args []any
		for _, r := range rows {
			args = append(args, r.id, r.payload)
		}
		_, err := q.db.ExecContext(ctx, mysqlPut+list("(?,?,0,0)", len(rows)), args...)
		return err
	})
}

// Receive tries again where it met an ack in a circle of locks, which the server breaks
// by taking one of them back.
func (q *mysqlQ) Receive(_ context.Context, n int) (messages []consume.Message, err error) {
	for range 10 {
		var circle *driver.MySQLError
		if messages, err = q.receive(n); !errors.As(err, &circle) || circle.Number != 1213 {
			break
		}
	}
	return messages, err
}

// receive looks and hides in one transaction of two round trips. The mutex is held over both,
// so two consumers never look at the same time.
func (q *mysqlQ) receive(n int) (messages []consume.Message, err error) {
	now := milliseconds()
	q.claiming.Lock()
	defer q.claiming.Unlock()
	err = q.within(func(ctx context.Context, c *sql.Conn) error {
		args := []any{now + visibility}
		err := results(ctx, c, begin+mysqlLook, []any{now, n}, func(rows *sql.Rows) error {
			var id int64
			var payload sql.RawBytes
			err := rows.Scan(&id, &payload)
			messages, args = append(messages, received(id, payload)), append(args, id)
			return err
		})
		// An empty look commits too, or its locks would stay until the connection is used
		// again.
		if err == nil && len(messages) > 0 {
			_, err = c.ExecContext(ctx, mysqlHide+keys(len(messages))+";COMMIT", args...)
		} else if err == nil {
			_, err = c.ExecContext(ctx, "COMMIT")
		}
		return err
	})
	return messages, err
}

func (q *mysqlQ) Ack(ctx context.Context, messages []consume.Message) (int, error) {
	args := make([]any, len(messages))
	for i, m := range messages {
		args[i] = m.Receipt
	}
	return changed(q.db.ExecContext(ctx, mysqlAck+keys(len(args)), args...))
}
