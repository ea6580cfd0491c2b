package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/eventgateway/gateway/store"
)

// oneState lets several statements read one state of the database.
const oneState = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

// errNoConnection wraps what kept a batch from a connection.
var errNoConnection = errors.New("connect")

// once sends a batch in one piece and reads what comes back. The server takes all
// statements up to the end of the piece for one transaction and commits it there,
// so a batch that was sent in part leaves nothing.
func (c *conn) once(ctx context.Context, stmts []store.Stmt) ([]store.Result, error) {
	pc, err := c.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoConnection, err)
	}
	defer pc.Release()

	var b pgx.Batch
	many := len(stmts) > 1 && readsOnly(stmts)
	if many {
		b.Queue(oneState)
	}
	if c.mode.local {
		b.Queue(localSettings)
	}
	if c.mode.stale(pc.Conn()) {
		b.Queue("DISCARD PLANS")
	}
	first := len(b.QueuedQueries)
	for _, s := range stmts {
		t := translate(s.SQL)
		b.Queue(t.sql, t.args(s, c.mode.literal)...)
	}
	if many {
		b.Queue("COMMIT")
	}
	return receive(ctx, pc, &b, first, stmts)
}

func readsOnly(stmts []store.Stmt) bool {
	for _, s := range stmts {
		if !s.Reads {
			return false
		}
	}
	return true
}

// receive reads the results, after those of statements of our own.
func receive(ctx context.Context, pc *pgxpool.Conn, b *pgx.Batch, own int, stmts []store.Stmt) (results []store.Result, err error) {
	br := pc.SendBatch(ctx, b)
	defer func() {
		// The commit is answered last.
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

// confirmed is the error of a commit that was answered after ctx was done. The driver then
// asks the server to cancel, and a server that waits for its synchronous standby answers as
// if the commit were confirmed.
func confirmed(ctx context.Context, stmts []store.Stmt) error {
	if ctx.Err() == nil || readsOnly(stmts) {
		return nil
	}
	return fmt.Errorf("commit: %w", ctx.Err())
}

func result(br pgx.BatchResults, s store.Stmt) (r store.Result, err error) {
	if !s.Reads {
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
	return r, rows.Err()
}

// cut cuts a row beyond the byte limit, before its texts are copied.
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

// values is a row as store.Result has it. Everything that is not an integer is
// read as text.
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
