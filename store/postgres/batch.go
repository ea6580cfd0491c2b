package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/eventgateway/gateway/store"
)

// beginSnapshot begins a transaction in which all statements read one state of the database.
const beginSnapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

// once sends a batch as one message and reads the results. The server runs all statements up
// to the end of the message (Sync) in one transaction and commits it there, so a batch that
// arrived in part leaves nothing.
func (c *conn) once(ctx context.Context, stmts []store.Stmt) ([]store.Result, error) {
	pc, err := c.pool.Acquire(ctx)
	if err != nil {
		return nil, store.Unsent(fmt.Errorf("connect: %w", err))
	}
	defer pc.Release()

	// Statements of our own come first. Their results are read and dropped.
	var b pgx.Batch
	many := len(stmts) > 1 && store.ReadsOnly(stmts)
	if many {
		b.Queue(beginSnapshot)
	}
	if c.mode.local {
		b.Queue(localSettings)
	}
	if c.mode.plansExpired(pc.Conn()) {
		b.Queue("DISCARD PLANS")
	}
	first := len(b.QueuedQueries)
	for _, s := range stmts {
		sql, args := translate(s.SQL).with(s, c.mode.literal)
		b.Queue(sql, args...)
	}
	if many {
		b.Queue("COMMIT")
	}
	return receive(ctx, pc, &b, first, stmts)
}

// receive sends a batch and reads its results, after the results of own statements that the
// driver put before it.
func receive(ctx context.Context, pc *pgxpool.Conn, b *pgx.Batch, own int, stmts []store.Stmt) (results []store.Result, err error) {
	br := pc.SendBatch(ctx, b)
	defer func() {
		// The server answers the commit last, after all results: until Close returns, no
		// result is final.
		if closing := br.Close(); err == nil && closing != nil {
			results, err = nil, fmt.Errorf("commit: %w", closing)
		}
		if late := confirmed(ctx, stmts); err == nil && late != nil {
			results, err = nil, late
		}
	}()
	for range own {
		if _, err := br.Exec(); err != nil {
			return nil, fmt.Errorf("prepare the transaction: %w", err)
		}
	}
	results = make([]store.Result, len(stmts))
	for i, s := range stmts {
		if results[i], err = result(br, s); err != nil {
			return nil, named(s, err)
		}
	}
	return results, nil
}

// confirmed is an error if the server may have answered a commit without the confirmation of
// its synchronous standby. When ctx is done, pgx sends a cancel request. A server that waits for
// the standby then stops waiting and reports success, so such an answer counts as lost.
func confirmed(ctx context.Context, stmts []store.Stmt) error {
	if ctx.Err() == nil || store.ReadsOnly(stmts) {
		return nil
	}
	return fmt.Errorf("commit: %w", ctx.Err())
}

// result reads the result of one statement.
func result(br pgx.BatchResults, s store.Stmt) (r store.Result, err error) {
	if !s.Reads && !s.Returns {
		tag, err := br.Exec()
		return store.Result{Changed: tag.RowsAffected()}, err
	}
	rows, err := br.Query()
	if err != nil {
		return r, err
	}
	defer rows.Close()
	limit := s.ByteLimit()
	for rows.Next() {
		raw := rows.RawValues()
		if cut(&limit, raw) {
			r.Cut++
		}
		row, err := values(rows.FieldDescriptions(), raw)
		if err != nil {
			return r, err
		}
		r.Rows = append(r.Rows, row)
	}
	if s.Returns {
		r.Changed = rows.CommandTag().RowsAffected()
	}
	return r, rows.Err()
}

// cut cuts a row beyond the byte limit. It works on the buffer of pgx, so that the texts which
// are left out are never copied.
func cut(limit *store.ByteLimit, raw [][]byte) bool {
	bytes := 0
	for _, b := range raw {
		bytes += len(b)
	}
	if !limit.Exceeded(bytes) {
		return false
	}
	for i, b := range raw {
		if limit.Omits(len(b)) {
			raw[i] = nil
		}
	}
	return true
}

// values copies a row into the types of store.Result: string, int64 or nil. Columns are
// integers or text; all other types, such as those of an EXPLAIN, are read as text.
func values(fields []pgconn.FieldDescription, raw [][]byte) ([]any, error) {
	out := make([]any, len(raw))
	for i, b := range raw {
		if b == nil {
			continue
		}
		switch fields[i].DataTypeOID {
		case pgtype.Int8OID, pgtype.Int4OID, pgtype.Int2OID:
			n, err := integer(fields[i].Format, b)
			if err != nil {
				return nil, fmt.Errorf("column %s: %w", fields[i].Name, err)
			}
			out[i] = n
		default:
			out[i] = string(b)
		}
	}
	return out, nil
}

// integer reads a value in either format: prepared statements give binary values, the simple
// protocol text.
func integer(format int16, b []byte) (int64, error) {
	if format == pgx.TextFormatCode {
		return strconv.ParseInt(string(b), 10, 64)
	}
	switch len(b) {
	case 8:
		return int64(binary.BigEndian.Uint64(b)), nil
	case 4:
		return int64(int32(binary.BigEndian.Uint32(b))), nil
	case 2:
		return int64(int16(binary.BigEndian.Uint16(b))), nil
	}
	return 0, fmt.Errorf("integer of %d bytes", len(b))
}
