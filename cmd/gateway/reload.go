package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
)

// hangups are the SIGHUPs that come until the returned function is called. Those that
// come while one is being answered count as one.
func hangups() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// A reloader has a program follow its configuration while it serves: when somebody says
// that it has changed, and at an address, when it has.
type reloader struct {
	source  configSource
	told    <-chan os.Signal
	log     *slog.Logger
	program *gateway.Program
	missing bool // the newest try to read anything failed
}

// begin reloads beside a program that serves, until the function is called.
func (r *reloader) begin(ctx context.Context, p *gateway.Program) (end func()) {
	r.program = p
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.run(ctx)
	}()
	return func() { cancel(); <-done }
}

func (r *reloader) run(ctx context.Context) {
	for {
		var due <-chan time.Time
		if d := r.source.poll(); d > 0 {
			due = time.After(d)
		}
		select {
		case <-r.told:
			r.reload(ctx)
		case <-due:
			r.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// look reloads if there is something new, or something at all again: what it is must be
// said once more then.
func (r *reloader) look(ctx context.Context) {
	var changed bool
	err := core.Contain(func() (err error) { changed, err = r.source.changed(ctx); return err })
	if err != nil {
		r.miss(ctx, err)
	} else if changed || r.missing {
		r.reload(ctx)
	}
}

// reload reads the configuration and has the program follow it, or say why not. One that
// is too much for the code that reads it is no reason to end what follows another.
func (r *reloader) reload(ctx context.Context) {
	err := core.Contain(func() error { r.read(ctx); return nil })
	if err != nil {
		r.program.Ignore(r.source.name(), core.ReloadInvalid, err)
	}
}

func (r *reloader) read(ctx context.Context) {
	cfg, err := r.source.load(ctx)
	var problems config.Problems
	var forbidden config.Forbidden
	switch {
	case errors.As(err, &forbidden):
		r.missing = false
		r.program.Ignore(r.source.name(), core.ReloadForbidden, err)
	case errors.As(err, &problems):
		r.missing = false
		r.program.Ignore(r.source.name(), core.ReloadInvalid, err)
	case err != nil:
		r.miss(ctx, err)
	default:
		r.missing = false
		r.follow(ctx, cfg)
	}
}

func (r *reloader) miss(ctx context.Context, err error) {
	if ctx.Err() == nil {
		r.missing = true
		r.program.Ignore(r.source.name(), core.ReloadUnreachable, err)
	}
}

// follow has the program follow a configuration. Why it does not, the program tells.
func (r *reloader) follow(ctx context.Context, cfg *config.Config) {
	if result, _ := r.program.Reload(ctx, r.source.name(), cfg); result == core.ReloadApplied {
		warn(r.log, cfg)
	}
}

// warn logs the warnings of a configuration. Each line says which field it is about.
func warn(log *slog.Logger, cfg *config.Config) {
	for _, w := range cfg.Warnings() {
		log.Warn(w.Path+": "+w.Message, "at", w.Path)
	}
}
