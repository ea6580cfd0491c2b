package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/eventgateway/gateway/cmd/gateway/manual"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/telemetry"
	"github.com/eventgateway/gateway/core/telemetry/metrics"
	"github.com/eventgateway/gateway/store/sqlite"
)

const startLong = `Start serves the configuration: it takes events in, stores them, delivers them to
the handlers that want them, and hands them to the consumers of queues.

The first SIGTERM or SIGINT stops taking events, lets deliveries under way finish
for at most worker.drain_timeout_secs, gives the rest back and exits with 0. A
second one exits at once; nothing is lost either way.

The configuration may be at an address: https://..., s3://bucket/key, gs://bucket/object
or az://account/container/blob. It must be readable by everyone, so secrets are left out
of it: it may read variables GATEWAY_VAR_*, and variables that GATEWAY_CONFIG_ENV lists.
It may neither spell out a secret nor switch on server.allow_private_urls,
server.trust_proxy or server.echo, unless GATEWAY_CONFIG_ALLOW lists that field, such as
server.echo,sources.*.allowed_ips.

SIGHUP reads the configuration again. One at an address is asked for changes about
every 30 seconds, or as often as GATEWAY_CONFIG_POLL says, such as 5s. A new one is
followed from then on, all of it; work under way ends by the earlier one. The earlier one
stays, with a warning in the log and a word in /health, if the new one has errors,
cannot be read, changes the database or where the server listens, or takes away a
token, a key, the verification of a source or all sources. The same goes for one at an
address that lets more addresses in than the one before (server.trusted_proxies, or
allowed_ips of a source), unless GATEWAY_CONFIG_ALLOW lists that field.

While a database server cannot be reached start waits for it, with a line in the log for
each try: up to 5 minutes, or as long as GATEWAY_DATABASE_WAIT says (from 0s, not at all,
to 1d). It exits at once on an error that waiting does not mend: a wrong password, a
database that does not exist, tables of a newer version. Once it serves it waits without
end.

Environment: GATEWAY_LOG_FORMAT=json for structured logs; GATEWAY_LOG or RUST_LOG for the
levels of the log: one level, or a list such as "warn,worker=debug". Traces are exported
to OTEL_EXPORTER_OTLP_ENDPOINT over HTTP, if it is set.`

// newStart makes "gateway start", the server. It exits with 0 after a signal to stop, also if
// the signal comes while it still waits for its database. It exits with 1 if the configuration
// is not valid, the port is taken, another server has the SQLite file, or the database does not
// come in time.
func newStart(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "start",
		Short:   "Serve events",
		Long:    startLong,
		Example: "  gateway start\n  gateway start -c /etc/gateway/gateway.yaml\n  gateway start -c https://config.example.com/gateway.yaml\n  gateway start --env local",
		GroupID: groupServe,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.start(c.Context())
		},
	}
}

// start serves until ctx ends. The order of the steps matters:
//
//	SIGHUP is caught first: by default it would end a process that still starts.
//	The configuration is read before the log begins, since it sets the log's form.
//	The lock on a SQLite file comes before the file is opened: the second of two servers
//	must fail before it changes anything.
//	The deferred calls run in reverse: the store closes before the lock is given up, and
//	the last lines of the log are written at the very end.
func (a *app) start(ctx context.Context) error {
	told, deaf := hangups()
	defer deaf()
	a.tuneMemory()
	source, err := a.configSource()
	if err != nil {
		return err
	}
	cfg, err := source.load(ctx)
	if err != nil {
		return err
	}
	lines := newSpool(a.stderr)
	defer lines.close()
	log := a.logger(cfg, lines)
	defer telemetry.Flush(log)
	release, err := a.lockDatabase(cfg.Database, log)
	if err != nil {
		return err
	}
	defer release()
	s, err := a.awaitStore(ctx, cfg, log)
	// A service manager that stops a server which waits for its database must not report a
	// failure.
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		log.Info("told to stop before the database was there")
		return nil // no error, like a stop after the start
	}
	if err != nil {
		return err
	}
	defer s.Close()
	return a.serve(ctx, cfg, s, &reloader{source: source, told: told, log: log})
}

// serve assembles the program on an open store and serves until ctx ends, the deliveries under
// way included.
func (a *app) serve(ctx context.Context, cfg *config.Config, s core.Store, r *reloader) error {
	log := r.log
	tracer, flush := a.startTraces(ctx, cfg, log)
	defer flush()
	// A database on another machine has its own clock. Its distance from this machine's clock
	// is logged when it changes, and shown as a metric.
	var ahead func() time.Duration
	if a.times != nil {
		a.times.Tell(telemetry.Log(log))
		ahead = a.times.Ahead
	}
	// Everything that differs between this program and functions is passed in here.
	p, err := gateway.NewProgram(cfg, gateway.Deps{
		Store:     s,
		Clock:     a.storeClock(),
		Machine:   a.clock,
		Ahead:     ahead,
		Log:       log,
		Version:   readBuild().Version,
		Database:  identify(cfg.Database),
		SoleTaker: cfg.Database.Driver == "sqlite",
		Rest:      gateway.RestOf(cfg.Database),
		Traces:    tracer,
		Metrics:   newMetrics(cfg, log),
		Manual:    manual.JSON,
	})
	if err != nil {
		return err
	}
	// The port is taken after the assembly, which can fail, and before the line "serving",
	// which scripts wait for.
	listener, err := listen(ctx, cfg.Server)
	if err != nil {
		return err
	}
	warn(log, cfg)
	log.Info("serving", "address", listener.Addr().String(), "version", readBuild().Version,
		"database", describe(cfg.Database), "sources", len(cfg.Sources), "handlers", len(cfg.Handlers), "queues", len(cfg.Queues), "workflows", len(cfg.Workflows))
	defer r.begin(ctx, p)()
	if err := p.Serve(ctx, listener); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// newMetrics makes the metrics of the configured consumers and sources.
func newMetrics(cfg *config.Config, log *slog.Logger) *metrics.Metrics {
	b := readBuild()
	return metrics.New(metrics.Options{
		Names:    gateway.Names(cfg),
		Version:  b.Version,
		Revision: b.Commit,
		Go:       b.Go,
		Log:      log.With(telemetry.Target, "web"),
	})
}

// logger returns the log of a server. A mistake in its variables is a warning in the log: a
// server that does not start because of its log would be worse.
func (a *app) logger(cfg *config.Config, out io.Writer) *slog.Logger {
	log, err := telemetry.NewLogger(telemetry.LogOptions{
		Out:      out,
		Terminal: a.colourfulLogs(),
		Format:   a.setting(cfg, "GATEWAY_LOG_FORMAT"),
		Filter:   cmp.Or(a.setting(cfg, "GATEWAY_LOG"), a.setting(cfg, "RUST_LOG")),
	})
	if err != nil {
		log.Warn(err.Error())
	}
	return log
}

// setting returns a variable of the configuration's .env file, otherwise of the environment.
// Variables in the .env file configure the program too, since a file beside the configuration
// is all that some deployments have.
func (a *app) setting(cfg *config.Config, name string) string {
	if v, ok := cfg.DotEnv[name]; ok {
		return v.Reveal()
	}
	return a.env(name)
}

// colourfulLogs reports whether log lines go to a terminal and may be coloured.
func (a *app) colourfulLogs() bool {
	f, ok := a.stderr.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && !a.NoColor && a.env("NO_COLOR") == ""
}

// lockDatabase refuses a second server on the same SQLite file. Other databases allow several
// servers.
func (a *app) lockDatabase(db config.Database, log *slog.Logger) (release func(), err error) {
	if db.Driver != "sqlite" {
		return func() {}, nil
	}
	// SQLite would let two servers open one file, and each would take the running jobs of the
	// other for its own.
	if a.lock, err = sqlite.Acquire(db.SQLitePath()); err != nil {
		return nil, err
	}
	for _, w := range a.lock.Warnings() {
		log.Warn(w)
	}
	return func() { a.lock.Release() }, nil
}

// listen takes the configured port, and explains the two common reasons why it cannot.
func listen(ctx context.Context, s config.Server) (net.Listener, error) {
	var lc net.ListenConfig
	address := net.JoinHostPort(s.Host, strconv.Itoa(s.Port))
	l, err := lc.Listen(ctx, "tcp", address)
	switch {
	// The usual cause is a second copy of this program.
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port %d is in use by another program; stop it, or set server.port", s.Port)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("port %d needs rights this user lacks; set server.port to 1024 or above", s.Port)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}
