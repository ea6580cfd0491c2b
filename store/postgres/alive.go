package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// A connection may be gone without a word: a network has forgotten it, or this process
// was stopped for a while, as functions are between two invocations. Whoever sends on
// such a one waits until its own time is over. So one that nobody has used for a while is
// asked first whether it is still there; what it costs, a round trip, is nothing after
// such a while.
const (
	// trustFor is how long a connection is used unasked for what may be sent twice;
	// trustOnce, for what may not.
	trustFor  = 5 * time.Second
	trustOnce = time.Second

	// pingTime is how long it has for an answer.
	pingTime = 500 * time.Millisecond
)

// A use is when a connection was last acquired, or made, by the wall: the other clock may have
// stood still with the process.
type use struct{ at time.Time }

// unused is for how long nobody has acquired a connection, and takes it for acquired.
func unused(pc *pgx.Conn) time.Duration {
	now, data := time.Now().Round(0), pc.PgConn().CustomData()
	last, ok := data["use"].(*use)
	if !ok { // it was made just now: Open asks then
		data["use"] = &use{now}
		return 0
	}
	since := now.Sub(last.at)
	last.at = now
	return max(since, -since) // the wall may step back
}

// alive tells whether a connection can be used. If one that was quiet is gone, so are the
// others that were.
func (c *conn) alive(ctx context.Context, pc *pgx.Conn) (bool, error) {
	trusted := trustFor
	if ctx.Value(onceOnly{}) != nil {
		trusted = trustOnce
	}
	if unused(pc) <= trusted {
		return true, nil
	}
	if answers(ctx, pc) {
		return true, nil
	}
	if ctx.Err() == nil {
		c.pool.Reset()
	}
	return false, nil
}

// answers asks a connection whether it is still there, and breaks it unless it says so
// in time. One whose caller only went away would be ended in good order, and with nobody
// there that takes a quarter of a minute, during which it has its place in the pool.
func answers(ctx context.Context, pc *pgx.Conn) bool {
	wire := pc.PgConn().Conn()
	late := time.AfterFunc(pingTime, func() { wire.Close() })
	err := pc.Ping(ctx)
	if late.Stop() && err == nil {
		return true
	}
	wire.Close()
	return false
}
