package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/hosted"
	"github.com/eventgateway/gateway/store/mysql"
	"github.com/eventgateway/gateway/store/postgres"
	"github.com/eventgateway/gateway/store/sqlite"
)

// openStore opens the configured database and migrates its schema. It creates the database if
// the driver does so.
// Commands migrate as servers do, so that a command of a new version also works beside an old
// database. The result is an interface without a store in it after an error, never a nil
// *store.Store that looks like one.
func (a *app) openStore(ctx context.Context, cfg *config.Config) (core.Store, error) {
	s, err := a.migratedStore(ctx, cfg, 2)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// migratedStore opens the database, takes missing schema steps, and asks the database for its
// time, asks times at most, so that the first stored time is right.
func (a *app) migratedStore(ctx context.Context, cfg *config.Config, asks int) (*store.Store, error) {
	s, err := a.connectStore(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := s.Migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the database: %w", err), s.Close())
	}
	if err := s.MeasureTime(ctx, asks); err != nil {
		return nil, errors.Join(fmt.Errorf("ask the database for its time: %w", err), s.Close())
	}
	return s, nil
}

// servedAsks is how often a server asks for the time at most: the leases that it takes depend on
// it. The time of a command need not be as exact.
const servedAsks = 8

// openServed opens the configured database for a server. It refuses tables that differ from
// the schema steps if events could get lost or stored twice. It logs other differences.
func (a *app) openServed(ctx context.Context, cfg *config.Config, log *slog.Logger) (core.Store, error) {
	s, err := a.migratedStore(ctx, cfg, servedAsks)
	if err != nil {
		return nil, err
	}
	found, err := s.Inspect(ctx)
	switch {
	// The caller waits for the database and opens it again. Other failures of the comparison do
	// not stop a server: the comparison needs rights on the catalog that serving does not need.
	case core.IsKind(err, core.Unavailable):
		return nil, errors.Join(err, s.Close())
	case err != nil:
		log.Warn("the tables could not be compared with the tables that the gateway makes", "error", err)
	}
	if err := store.RefuseHarmful(found); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for _, d := range found {
		log.Warn("the tables are not as the gateway made them", "what", d.What, "remedy", d.Remedy())
	}
	return s, nil
}

// connectStore opens the configured database without changing it.
func (a *app) connectStore(ctx context.Context, cfg *config.Config) (*store.Store, error) {
	conn, dialect, err := a.connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Database.Driver == "sqlite" {
		a.times = nil
		return store.New(conn, dialect, a.clock), nil
	}
	a.times = core.NewDatabaseClock(a.clock)
	return store.NewTimed(conn, dialect, a.times), nil
}

// connect opens a connection with the driver of the configuration, without changing the
// database. All four drivers are linked into this program; functions link a part of them.
func (a *app) connect(ctx context.Context, cfg *config.Config) (conn store.Conn, d store.Dialect, err error) {
	// A driver is a package of its own, and this is the only place that chooses one.
	db := cfg.Database
	var open func() (store.Conn, error)
	switch db.Driver {
	case "sqlite":
		d, open = store.SQLite, func() (store.Conn, error) {
			// A server has locked the file, and opens it through the lock.
			if a.lock != nil {
				return a.lock.Open()
			}
			return sqlite.Open(db.SQLitePath())
		}
	case "postgres":
		d, open = store.Postgres, func() (store.Conn, error) { return postgres.Open(ctx, db.URL.Reveal(), db.MaxConnections) }
	case "mysql":
		d, open = store.MySQL, func() (store.Conn, error) { return mysql.Open(ctx, db.URL.Reveal(), db.MaxConnections) }
	case "hosted_sql":
		d, open = store.D1, func() (store.Conn, error) {
			return hosted.Open(ctx, hosted.Options{
				AccountID:      db.AccountID,
				DatabaseID:     db.DatabaseID,
				APIToken:       db.APIToken.Reveal(),
				Endpoint:       db.HostedSQLEndpoint,
				API:            a.setting(cfg, "GATEWAY_HOSTED_SQL_API"),
				MaxConnections: db.MaxConnections,
			})
		}
	default:
		return nil, d, core.Refuse(core.Invalid, "database.driver: %q is none of sqlite, postgres, mysql, hosted_sql", db.Driver)
	}
	go d.Compose() // takes about as long as to connect
	conn, err = open()
	return conn, d, err
}

// describe names a database without its credentials.
func describe(db config.Database) string {
	switch db.Driver {
	case "sqlite":
		return "sqlite " + db.SQLitePath()
	case "hosted_sql":
		return "hosted_sql " + cmp.Or(db.HostedSQLEndpoint, db.DatabaseID)
	}
	// The part before an @ may be a password, even outside of a URL's user part.
	if u, err := url.Parse(db.URL.Reveal()); err == nil && u.Host != "" && !strings.ContainsAny(u.Host+u.Path, "@(") {
		return db.Driver + " " + u.Host + u.Path
	}
	return db.Driver
}

// blank reports whether a SQLite database does not exist yet. Opening it would create it. If
// its folder is missing too, blank returns false, and opening the database reports that.
func blank(db config.Database) bool {
	if db.Driver != "sqlite" {
		return false
	}
	info, err := os.Stat(db.SQLitePath())
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Stat(filepath.Dir(db.SQLitePath()))
		return err == nil
	}
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

// openExisting opens the configured database for a command that works on stored data. A server
// may use the database at the same time. It creates no database: an empty one in the wrong
// folder would look like lost events.
func (a *app) openExisting(ctx context.Context, cfg *config.Config) (core.Store, error) {
	// Servers of other drivers refuse a database that does not exist, so only the file needs
	// the check.
	if db := cfg.Database; db.Driver == "sqlite" {
		if _, err := os.Stat(db.SQLitePath()); errors.Is(err, fs.ErrNotExist) {
			return nil, core.Refuse(core.NotFound, "no database at %s yet; %q makes it", db.SQLitePath(), a.line("start"))
		}
	}
	return a.openStore(ctx, cfg)
}
