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

// maxConnections is how many connections one environment holds: it serves one
// invocation, or few, and there may be hundreds of environments.
const maxConnections = 2

// downTime is how long a database that could not be reached is left alone.
const downTime = 500 * time.Millisecond

// A database is a connection that is made when it is first asked for something, and
// made again as long as that fails: an environment that comes up while the database is
// away serves as soon as it is back.
type database struct {
	open    func(context.Context) (store.Conn, error)
	dialect store.Dialect
	clock   core.Clock          // of this machine
	times   *core.DatabaseClock // measured while it is being opened, and about once a minute

	mu   sync.Mutex // held while it is being opened
	conn store.Conn // nil until it was
	err  error      // why it could not be
	at   time.Time  // when
}

// driver is how the configured database is opened, and how its SQL is spelt.
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

// Batch is that of a store.Conn.
func (d *database) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	c, err := d.connected(ctx)
	switch {
	case core.IsKind(err, core.Unavailable):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("open the database: %v", err) // its refusal is not for those who send events
	}
	return c.Batch(ctx, stmts...)
}

// Close is that of a store.Conn.
func (d *database) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == nil {
		return nil
	}
	return d.conn.Close()
}

// connected is the connection, of which is known that the schema suits this version.
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

// fits refuses a schema that is older than this version needs. A newer one has all that
// an older has.
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
