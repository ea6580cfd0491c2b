package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/remote"
	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/wire"
)

const (
	// besideTimeout bounds the wait for a gateway that may run on this machine. A port without
	// a listener refuses at once.
	besideTimeout = 500 * time.Millisecond

	maxHealth = 64 << 10 // bytes of a response of /health that are read
)

// warnOtherDatabase warns if the gateway at the configured address uses another database than
// the configuration names. That happens if the configuration was edited: a running gateway
// does not change its database. A gateway that does not answer, or needs another token, causes
// no warning.
func (a *app) warnOtherDatabase(ctx context.Context, cfg *config.Config) {
	if a.completing {
		return
	}
	own := identify(cfg.Database)
	served, address, ok := a.servedDatabase(ctx, cfg)
	if !ok || served.ID == "" || served.ID == own.ID {
		return
	}
	a.Notef("warning: the gateway that runs at %s works on %s, but this command works on %s, which the configuration names by now; restart the gateway, or undo the change of database",
		address, terminal.Clip(served.Name, 200), own.Name)
}

// servedDatabase asks the gateway at the configured address for its database.
func (a *app) servedDatabase(ctx context.Context, cfg *config.Config) (served wire.Database, address string, ok bool) {
	// Each failure below means that nothing is known, which is no reason to warn.
	base, err := a.address(cfg)
	if err != nil {
		return served, "", false
	}
	ctx, cancel := context.WithTimeout(ctx, besideTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("health").String(), nil)
	if err != nil {
		return served, "", false
	}
	token := cfg.API.Granting(core.RoleRead).First()
	// The gateway names its database only to a caller that knows a token which may read. The proof is a hash
	// with the time, so that the token itself is not sent to a program that may not be the
	// gateway.
	r.Header.Set(wire.Proof, wire.ProofOf(token, a.clock()))
	calls := remote.HTTPClient(besideTimeout)
	defer calls.CloseIdleConnections()
	reply, err := calls.Do(r)
	if err != nil {
		return served, "", false
	}
	defer reply.Body.Close()
	var health struct{ Database *wire.Database }
	if json.NewDecoder(io.LimitReader(reply.Body, maxHealth)).Decode(&health) != nil || health.Database == nil {
		return served, "", false
	}
	return *health.Database, base.Host, true
}

// identify returns the name and the id of a database. The id of a SQLite file is the same for
// each of its paths, and in a container that mounts it.
func identify(db config.Database) wire.Database {
	if db.Driver != "sqlite" {
		name := describe(db)
		return wire.Database{Name: name, ID: name}
	}
	// Device and inode are the same for each path to the file. Without the file only the
	// absolute path is left.
	path := db.SQLitePath()
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	d := wire.Database{Name: "sqlite " + path, ID: "sqlite " + path}
	if info, err := os.Stat(path); err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			d.ID = fmt.Sprintf("sqlite file %d:%d", stat.Dev, stat.Ino)
		}
	}
	return d
}
