package boot

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/hosted"
	"github.com/eventgateway/gateway/store/postgres"
)

// maxConnections bounds the connections of one environment. An environment serves one
// invocation, or a few, and there may be hundreds of environments.
const maxConnections = 2

// downTime is the pause before the next try after the database could not be reached.
const downTime = 500 * time.Millisecond

// A database opens its connection when a statement first needs it. While opening fails, later
// statements try again: an environment that starts during an outage of the database serves as
// soon as the outage is over.
type database struct {
	open    func(context.Context) (store.Conn, error)
	dialect store.Dialect
	clock   core.Clock          // of this machine
	times   *core.DatabaseClock // compared when the connection is opened, and about once a minute

	mu   sync.Mutex // held while the connection is opened
	conn store.Conn // nil until the connection is open
	err  error      // of the last try to open it
	at   time.Time  // time of the last try
}

// driver returns the function that opens the configured database, and its SQL dialect.
func (f *function) driver(db config.Database) (open func(context.Context) (store.Conn, error), d store.Dialect, err error) {
	switch db.Driver {
	case "postgres":
		return func(ctx context.Context) (store.Conn, error) {
			return postgres.Open(ctx, db.URL.Reveal(), db.MaxConnections)
		}, store.Postgres, nil
	case "hosted_sql":
		o := hosted.Options{
			AccountID:      db.AccountID,
			DatabaseID:     db.DatabaseID,
			APIToken:       db.APIToken.Reveal(),
			Endpoint:       db.HostedSQLEndpoint,
			API:            f.env("GATEWAY_HOSTED_SQL_API"),
			MaxConnections: db.MaxConnections,
		}
		return func(ctx context.Context) (store.Conn, error) { return hosted.Open(ctx, o) }, store.D1, nil
	}
	return nil, d, core.Refuse(core.Invalid, "database.driver: a function has no %q, only hosted_sql and postgres", db.Driver)
}

func (d *database) store() *store.Store { return store.NewTimed(d, d.dialect, d.times) }

// Batch implements [store.Conn]. It opens the connection if necessary.
func (d *database) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	c, err := d.connected(ctx)
	switch {
	case core.IsKind(err, core.Unavailable):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("open the database: %v", err) // not wrapped: senders of events must not see the refusal
	}
	return c.Batch(ctx, stmts...)
}

// Close implements [store.Conn].
func (d *database) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == nil {
		return nil
	}
	return d.conn.Close()
}

// connected returns the connection, after the schema was checked. It opens the connection if
// necessary.
func (d *database) connected(ctx context.Context) (store.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if since := d.clock().Sub(d.at); d.conn != nil || d.err != nil && since >= 0 && since < downTime {
		return d.conn, d.err
	}
	d.conn, d.err = d.connect(ctx)
	d.at = d.clock()
	return d.conn, d.err
}

func (d *database) connect(ctx context.Context) (store.Conn, error) {
	c, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := d.fits(ctx, c); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// fits refuses a schema that is older than this version needs. A newer schema has everything
// that an older one has.
func (d *database) fits(ctx context.Context, c store.Conn) error {
	have, want, err := store.NewTimed(c, d.dialect, d.times).Schema(ctx)
	if err != nil {
		return fmt.Errorf("look at the schema: %w", err)
	}
	if have < want {
		return core.Refuse(core.Invalid, "database schema is at step %d, this version needs %d: run `gateway migrate up`", have, want)
	}
	return nil
}
