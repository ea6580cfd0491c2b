package reference

import (
	"context"
	"database/sql"
	"net/url"

	"github.com/eventgateway/gateway/cmd/bench/internal/consume"
)

const (
	sqliteQueue = `CREATE TABLE q (id INTEGER PRIMARY KEY, payload TEXT NOT NULL, visible_at INTEGER NOT NULL, attempt INTEGER NOT NULL)`

	sqlitePut     = `INSERT INTO q SELECT value ->> 0, value ->> 1, 0, 0 FROM json_each(?)`
	sqliteReceive = `UPDATE q SET visible_at = ?, attempt = attempt + 1 WHERE id IN
		(SELECT id FROM q WHERE visible_at <= ? ORDER BY id LIMIT CAST(? AS INTEGER)) RETURNING id, payload`
	sqliteAck = `DELETE FROM q WHERE id IN (SELECT value FROM json_each(?))`
)

// sqliteQ has one connection, which its consumers take turns with: more would wait
// for the same lock.
type sqliteQ struct {
	db                *sql.DB
	put, receive, ack *sql.Stmt
}

func openSQLiteQueue(ctx context.Context, cfg QueueConfig) (Queue, error) {
	// The same durability as the gateway: each receive and each ack is synced.
	options := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)"}}
	db, err := sql.Open("sqlite", "file:"+cfg.URL+"?"+options.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	q := &sqliteQ{db: db}
	if err := q.prepare(ctx); err != nil {
		_ = db.Close()
		return nil, err
	}
	return q, nil
}

// prepare creates the table, and then prepares the statements, which need it.
func (q *sqliteQ) prepare(ctx context.Context) (err error) {
	if _, err := q.db.ExecContext(ctx, sqliteQueue); err != nil {
		return err
	}
	for stmt, text := range map[**sql.Stmt]string{&q.put: sqlitePut, &q.receive: sqliteReceive, &q.ack: sqliteAck} {
		if *stmt, err = q.db.PrepareContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

func (q *sqliteQ) Close() error { return q.db.Close() }

func (q *sqliteQ) Fill(ctx context.Context, first, count, size int) error {
	return fill(first, count, size, func(rows []row) error {
		_, err := q.put.ExecContext(ctx, text(pairs(rows)))
		return err
	})
}

// Receive is one statement, and so one commit with a sync.
func (q *sqliteQ) Receive(ctx context.Context, n int) ([]consume.Message, error) {
	now := milliseconds()
	rows, err := q.receive.QueryContext(ctx, now+visibility, now, n)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return scanned(rows)
}

// scanned reads ids and payloads.
func scanned(rows *sql.Rows) (messages []consume.Message, err error) {
	for rows.Next() {
		var id int64
		var payload sql.RawBytes
		if err := rows.Scan(&id, &payload); err != nil {
			return nil, err
		}
		messages = append(messages, received(id, payload))
	}
	return messages, rows.Err()
}

func (q *sqliteQ) Ack(ctx context.Context, messages []consume.Message) (int, error) {
	ids, err := rowIDs(messages)
	if err != nil {
		return 0, err
	}
	return changed(q.ack.ExecContext(ctx, text(ids)))
}

// changed is how many rows a statement changed.
func changed(res sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}
