package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// openStore opens the configured database, creating it if its driver does so,
// and brings its schema up to date.
func openStore(ctx context.Context, db config.Database, clock core.Clock) (core.Store, error) {
	conn, dialect, err := connect(db)
	if err != nil {
		return nil, err
	}
	s := store.New(conn, dialect, clock)
	if err := s.Migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the database: %w", err), s.Close())
	}
	return s, nil
}

func connect(db config.Database) (store.Conn, store.Dialect, error) {
	switch db.Driver {
	case "sqlite":
		conn, err := sqlite.Open(db.SQLitePath())
		return conn, store.SQLite, err
	default:
		return nil, store.SQLite, core.Refuse(core.Unsupported, "the %s driver is not built into this version yet; use driver: sqlite", db.Driver)
	}
}

// openExisting opens the configured database for a command that works on what a
// server stored, beside that server if it runs. It creates none: an empty one in
// the wrong folder would look like events that are gone.
func (a *app) openExisting(ctx context.Context) (core.Store, error) {
	cfg, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	if db := cfg.Database; db.Driver == "sqlite" {
		if _, err := os.Stat(db.SQLitePath()); errors.Is(err, fs.ErrNotExist) {
			return nil, core.Refuse(core.NotFound, "no database at %s yet; start the gateway first", db.SQLitePath())
		}
	}
	return openStore(ctx, cfg.Database, a.clock)
}
