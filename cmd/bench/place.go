package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/server"
	"github.com/eventgateway/gateway/cmd/bench/internal/sink"
)

// place is a folder and a database in which a system runs and can be started again. A place
// outlives the process in it, so that a system can be started again on its own tables.
type place struct {
	system   system
	dir      string
	database *server.Database
	keep     int    // hours until finished records are purged, or 0 for the default
	key      string // path to the key of the handler's lines; "" for no lines
}

// place makes a place with a fresh database. The folder holds configuration and log, and no
// data: the database is on the medium.
func (b *bench) place(s system) (p *place, err error) {
	p = &place{system: s}
	if p.database, err = b.site.server.New(); err != nil {
		return nil, err
	}
	if p.dir, err = os.MkdirTemp(b.dir, "run"); err != nil {
		return nil, errors.Join(err, p.database.Drop())
	}
	return p, nil
}

// close removes folder and database. The system must have ended.
func (p *place) close() error { return errors.Join(os.RemoveAll(p.dir), p.database.Drop()) }

// inPlace calls do with a place of the gateway, and removes the place.
func (b *bench) inPlace(do func(*place) error) error {
	p, err := b.place(b.systems[0])
	if err != nil {
		return err
	}
	return errors.Join(do(p), p.close())
}

// settle runs a system until it has delivered a few events and leaves its
// database in place.
func (b *bench) settle(ctx context.Context, s system) (*place, error) {
	p, err := b.place(s)
	if err != nil {
		return nil, err
	}
	// After an error the place is returned as well, for the caller to close.
	r, err := launch(ctx, *p, sink.Config{Events: 100}, mainSlots)
	if err != nil {
		return p, err
	}
	_, err = b.post(ctx, r, shape{slots: mainSlots, conns: 8, events: 100}, 0, 100)
	return p, errors.Join(err, r.stop())
}

// restart starts the system once more and returns how long that took.
func (p *place) restart(ctx context.Context) (time.Duration, error) {
	r, err := launch(ctx, *p, sink.Config{}, mainSlots)
	if err != nil {
		return 0, err
	}
	return r.child.Ready, r.stop()
}
