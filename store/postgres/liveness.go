package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// A connection can end without notice: a network device drops its entry, or this process is
// suspended for a while, as functions are between two invocations. A batch on such a
// connection waits until its deadline. So a connection that was idle for some seconds gets a
// ping before it is used again. The ping costs one round trip, and only after an idle time.
const (
	// pingAfter is the idle time after which a connection gets a ping. It is pingAfterOnce for
	// a batch that is not repeatable: such a batch fails if its connection has ended, where
	// others are sent again on a new connection.
	pingAfter     = 5 * time.Second
	pingAfterOnce = time.Second

	// pingTimeout is how long the server has to answer a ping.
	pingTimeout = 500 * time.Millisecond
)

// A use is the time at which a connection was last acquired or made. It has no monotonic
// reading: the monotonic clock may stand still while the process is suspended.
type use struct{ at time.Time }

// idleTime is the time since a connection was last acquired. It notes that the connection is
// acquired now. A connection is used by one goroutine at a time, so its data needs no lock.
func idleTime(pc *pgx.Conn) time.Duration {
	now, data := time.Now().Round(0), pc.PgConn().CustomData()
	last, ok := data["use"].(*use)
	if !ok { // the connection was made just now: AfterConnect calls this
		data["use"] = &use{now}
		return 0
	}
	since := now.Sub(last.at)
	last.at = now
	return max(since, -since) // the wall clock may be set back
}

// usable reports whether an idle connection can be used. The pool calls it before it hands the
// connection out, and takes another connection if the result is false. If one idle connection
// has ended, the others have probably ended too, so all of them are dropped.
func (c *conn) usable(ctx context.Context, pc *pgx.Conn) (bool, error) {
	limit := pingAfter
	if ctx.Value(onceOnly{}) != nil {
		limit = pingAfterOnce
	}
	if idleTime(pc) <= limit {
		return true, nil
	}
	if ping(ctx, pc) {
		return true, nil
	}
	if ctx.Err() == nil { // else the caller gave up, and the ping says nothing about the server
		c.pool.Reset()
	}
	return false, nil
}

// ping reports whether the server answers on a connection in time. Otherwise it closes the
// socket itself: pgx would close the connection in good order, and without a server that
// takes 15 s, during which the connection keeps its place in the pool.
func ping(ctx context.Context, pc *pgx.Conn) bool {
	socket := pc.PgConn().Conn()
	late := time.AfterFunc(pingTimeout, func() { socket.Close() })
	err := pc.Ping(ctx)
	if late.Stop() && err == nil {
		return true
	}
	socket.Close()
	return false
}
