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

// hangups returns a channel of SIGHUPs, and a function that ends it. SIGHUPs that come during
// a reload count as one.
func hangups() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// A reloader reloads the configuration while the program serves: on a SIGHUP, and if the
// document at an address has changed.
type reloader struct {
	source  configSource
	told    <-chan os.Signal
	log     *slog.Logger
	program *gateway.Program
	missing bool // the newest try to read the configuration failed
}

// begin reloads in the background, until the caller calls the returned function.
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

// run waits for a SIGHUP or for the next look at a remote configuration, until ctx ends.
// Reloads happen one at a time on this goroutine.
func (r *reloader) run(ctx context.Context) {
	for {
		var due <-chan time.Time
		if d := r.source.poll(); d > 0 {
			due = time.After(d)
		}
		select {
		case <-r.told:
			r.reload(ctx, core.BySignal)
		case <-due:
			r.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// look reloads if the configuration has changed, or if it can be read again after a failure.
// The program then reports its state again.
func (r *reloader) look(ctx context.Context) {
	var changed bool
	err := core.Contain(func() (err error) { changed, err = r.source.changed(ctx); return err })
	if err != nil {
		r.miss(ctx, core.ByChange, err)
	} else if changed || r.missing {
		r.reload(ctx, core.ByChange)
	}
}

// reload reads the configuration and applies it, or has the program report the refusal. A
// panic while reading a configuration does not end the program.
func (r *reloader) reload(ctx context.Context, by core.ReloadCause) {
	err := core.Contain(func() error { r.read(ctx, by); return nil })
	if err != nil {
		r.program.Ignore(by, r.source.name(), core.ReloadInvalid, err)
	}
}

// read loads the configuration and applies it, or reports the kind of its failure: forbidden
// fields, problems, or no access. The running configuration stays in each of these cases.
func (r *reloader) read(ctx context.Context, by core.ReloadCause) {
	cfg, err := r.source.load(ctx)
	var problems config.Problems
	var forbidden config.Forbidden
	switch {
	case errors.As(err, &forbidden):
		r.missing = false
		r.program.Ignore(by, r.source.name(), core.ReloadForbidden, err)
	case errors.As(err, &problems):
		r.missing = false
		r.program.Ignore(by, r.source.name(), core.ReloadInvalid, err)
	case err != nil:
		r.miss(ctx, by, err)
	default:
		r.missing = false
		r.follow(ctx, by, cfg)
	}
}

// miss reports that the configuration could not be read, unless the program is stopping: then
// the read was interrupted.
func (r *reloader) miss(ctx context.Context, by core.ReloadCause, err error) {
	if ctx.Err() == nil {
		r.missing = true
		r.program.Ignore(by, r.source.name(), core.ReloadUnreachable, err)
	}
}

// follow applies a configuration. The program reports a refusal itself.
func (r *reloader) follow(ctx context.Context, by core.ReloadCause, cfg *config.Config) {
	if result, _ := r.program.Reload(ctx, by, r.source.name(), cfg); result == core.ReloadApplied {
		warn(r.log, cfg)
	}
}

// warn logs the warnings of a configuration. Each line says which field it is about.
func warn(log *slog.Logger, cfg *config.Config) {
	for _, w := range cfg.Warnings() {
		log.Warn(w.Path+": "+w.Message, "at", w.Path)
	}
}
