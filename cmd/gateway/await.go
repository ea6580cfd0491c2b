package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/units"
)

// A server often starts together with its database or before it: under compose, after a power
// cut, during an upgrade of the database. If the server ended, the program that started it
// would have to try again, and some service managers give up after a few tries. So the server
// waits. The wait is bounded, since a wrong address looks the same as a database that is down,
// and the operator must learn of it.

const (
	waitVariable = "GATEWAY_DATABASE_WAIT"
	defaultWait  = 5 * time.Minute
	mostWait     = 24 * time.Hour

	// awaitRest is the pause after the first try. Each later pause is twice as long, up to
	// awaitRestMost.
	awaitRest     = time.Second
	awaitRestMost = 15 * time.Second
)

// databaseWait returns how long a server waits for its database. The default is 5 minutes.
func (a *app) databaseWait(cfg *config.Config) (time.Duration, error) {
	text := a.setting(cfg, waitVariable)
	if text == "" {
		return defaultWait, nil
	}
	d, err := units.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("the environment variable %s %w", waitVariable, err)
	case d.Duration > mostWait:
		return 0, core.Refuse(core.Invalid, "the environment variable %s must be from 0s, which is not to wait, to 1d", waitVariable)
	}
	return d.Duration, nil
}

// awaitStore opens the database of a server. It waits while a networked database cannot be
// reached. It does not wait for a SQLite file that cannot be opened.
func (a *app) awaitStore(ctx context.Context, cfg *config.Config, log *slog.Logger) (core.Store, error) {
	most, err := a.databaseWait(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Database.Driver == "sqlite" {
		most = 0
	}
	return a.await(ctx, most, log, func() (core.Store, error) { return a.openServed(ctx, cfg, log) })
}

// await opens a store. For at most the duration most, it tries again after an error that may
// pass. A wrong password, an unknown name or a schema that is too new does not pass.
func (a *app) await(ctx context.Context, most time.Duration, log *slog.Logger, open func() (core.Store, error)) (core.Store, error) {
	began := a.clock()
	for rest := awaitRest; ; rest = min(2*rest, awaitRestMost) {
		s, err := open()
		now := a.clock()
		left := most - now.Sub(began)
		switch {
		case err == nil && rest > awaitRest:
			log.Info("the database is there", "waited", terminal.Span(now.Sub(began)))
			return s, nil
		case err != nil && ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil || most == 0 || !core.IsKind(err, core.Unavailable):
			return s, err
		case left <= 0:
			return nil, fmt.Errorf("%w; it stayed away for %s, which %s bounds", err, terminal.Span(now.Sub(began)), waitVariable)
		}
		rest = min(rest, left)
		log.Warn("waiting for the database", "error", err, "since", core.FormatTime(began),
			"next_try", core.FormatTime(now.Add(rest)), "until", core.FormatTime(began.Add(most)))
		if err := pause(ctx, rest); err != nil {
			return nil, err
		}
	}
}
