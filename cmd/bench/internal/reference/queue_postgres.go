package reference

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/eventgateway/gateway/cmd/bench/internal/consume"
)

// The low fill factor leaves room in each page for the new version of a row that is taken. So
// taking by id writes no index entry.
const postgresQueue = `CREATE TABLE q (id bigint PRIMARY KEY, payload text NOT NULL, visible_at timestamptz NOT NULL DEFAULT now(), attempt int NOT NULL DEFAULT 0)
	WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);`

// Picked rows are addressed by row address, which pins that plan. The settings of a
// connection pin the other: see pinned.
const (
	postgresReceiveByID = `UPDATE q SET visible_at = now() + $2 * interval '1 ms', attempt = attempt + 1 WHERE ctid = ANY(ARRAY(
		SELECT ctid FROM q WHERE visible_at <= now() ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING id, payload`
	postgresReceiveByDue = `UPDATE q SET visible_at = now() + $2 * interval '1 ms', attempt = attempt + 1 WHERE ctid = ANY(ARRAY(
		SELECT ctid FROM q WHERE visible_at <= now() ORDER BY visible_at, id LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING id, payload`
	postgresAck = `DELETE FROM q WHERE id = ANY($1)`
)

// receive is one of the two statements above.
type postgresQ struct {
	pool    *pgxpool.Pool
	receive string
}

// openPostgresQueue has one connection for each consumer, so that no consumer waits for another
// one's round trip.
func openPostgresQueue(ctx context.Context, cfg QueueConfig) (Queue, error) {
	config, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(cfg.Consumers)
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error { return c.PgConn().Exec(ctx, pinned).Close() }
	q, schema := &postgresQ{receive: postgresReceiveByID}, postgresQueue
	// The index costs an entry for each receive, so only the order that needs it has it.
	if cfg.Order == ByDue {
		q.receive = postgresReceiveByDue
		schema += `CREATE INDEX q_visible ON q (visible_at, id)`
	}
	if q.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	if _, err := q.pool.Exec(ctx, schema, pgx.QueryExecModeSimpleProtocol); err != nil {
		q.pool.Close()
		return nil, err
	}
	return q, nil
}

func (q *postgresQ) Close() error {
	q.pool.Close()
	return nil
}

// Fill copies rows into the table: COPY is the fastest way in, and filling is not measured.
func (q *postgresQ) Fill(ctx context.Context, first, count, size int) error {
	return fill(first, count, size, func(rows []row) error {
		_, err := q.pool.CopyFrom(ctx, pgx.Identifier{"q"}, []string{"id", "payload"},
			pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) { return []any{rows[i].id, rows[i].payload}, nil }))
		return err
	})
}

// Receive is one statement and one round trip. Consumers skip the rows that another one has
// locked.
func (q *postgresQ) Receive(ctx context.Context, n int) (messages []consume.Message, err error) {
	rows, err := q.pool.Query(ctx, q.receive, n, visibility)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (consume.Message, error) {
		var id int64
		var payload []byte
		err := r.Scan(&id, &payload)
		return received(id, payload), err
	})
}

func (q *postgresQ) Ack(ctx context.Context, messages []consume.Message) (int, error) {
	ids, err := rowIDs(messages)
	if err != nil {
		return 0, err
	}
	tag, err := q.pool.Exec(ctx, postgresAck, ids)
	return int(tag.RowsAffected()), err
}
