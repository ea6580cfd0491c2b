package main

import (
	"context"
	"errors"
	"iter"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// Commands that look and repair ask these services. Each is a service of core/manage on the
// configured database or, with --url, the management API of a running server. The server uses
// the same services. So both have the same methods and refusals.

// An eventService reads, searches, replays and cancels the stored events; see [manage.Events].
type eventService interface {
	List(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error)
	Search(ctx context.Context, f core.EventFilter, filter string) (manage.Found, error)
	Inspect(ctx context.Context, id core.ID) (manage.Told, error)
	Replay(ctx context.Context, f core.EventFilter, s manage.Span, dry bool) (manage.Replayed, error)
	Cancel(ctx context.Context, id core.ID) (manage.Canceled, error)
	Export(ctx context.Context, f core.EventFilter, n int, bare bool) iter.Seq2[manage.Told, error]
}

// A jobService reads and retries the stored jobs; see [manage.Jobs].
type jobService interface {
	List(ctx context.Context, f core.JobFilter) (manage.JobPage, error)
	Search(ctx context.Context, s manage.JobSearch) (manage.FoundJobs, error)
	Errors(ctx context.Context, f core.FailureFilter) (manage.Errors, error)
	Job(ctx context.Context, id core.ID) (core.Job, error)
	Attempts(ctx context.Context, id core.ID, skip int) (core.Page[core.Attempt], error)
	SentBody(ctx context.Context, id core.ID, number int) (string, error)
	Retry(ctx context.Context, id core.ID) (int, error)
	RetryAll(ctx context.Context, lane core.Lane) (manage.Retried, error)
}

// A queueService reads and changes the configured queues; see [manage.Queues].
type queueService interface {
	List(ctx context.Context) ([]manage.Listed, error)
	Queue(ctx context.Context, name string) (manage.Listed, error)
	Peek(ctx context.Context, name string, limit int) ([]core.TakenJob, error)
	DeadLetters(ctx context.Context, name string, after core.ID, limit int) (core.Page[core.TakenJob], error)
	Retry(ctx context.Context, name string, id core.ID) (manage.Retried, error)
	Drain(ctx context.Context, name string) (int, error)
}

// A runService reads and changes the workflow runs; see [manage.Runs].
type runService interface {
	List(ctx context.Context, f core.RunFilter) (core.Page[core.Run], error)
	Inspect(ctx context.Context, id core.ID, from manage.Place, limit int) (manage.Inspected, error)
	Graph(ctx context.Context, id core.ID) (manage.Graph, error)
	Redrive(ctx context.Context, id core.ID, how manage.Redrive) (manage.Redriven, error)
	Cancel(ctx context.Context, id core.ID) (core.Run, error)
}

// A tailService reads new events and changes of jobs; see [manage.Tail].
type tailService interface {
	Look(ctx context.Context, from manage.Cursor, follow []core.ID) (manage.News, error)
}

// An operator is the services that a command asks. The caller closes it.
type operator struct {
	cfg *config.Config // nil for a server, which does not return its configuration

	events eventService
	jobs   jobService
	queues queueService
	runs   runService
	tail   tailService
	stats  func(context.Context) (wire.Stats, error) // the state of everything that is configured
	series func(context.Context, manage.Window, ...core.Lane) (wire.Series, error)

	breakers breakerService
	holds    holdService
	lines    lineService
	audit    auditService

	operations operationService
	schedules  scheduleService

	// drive does an operation beside the gateways that run; nil for a server, which does it itself.
	drive func(ctx context.Context, id core.ID, seen func(core.Operation)) (core.Operation, error)

	// replaying sets the function that gets the numbers of a replay of events after each slice; nil for a
	// server.
	replaying func(did func(manage.Replayed))

	handlers func(context.Context) ([]string, error) // the names of the configured handlers

	close func()
}

// operator returns the services of the server at --url, or the services on the configured
// database. Another gateway process may use that database at the same time.
func (a *app) operator(ctx context.Context) (*operator, error) {
	if a.remote() {
		return a.remoteOperator(ctx)
	}
	cfg, err := a.loadConfig(ctx)
	if err != nil {
		return nil, err
	}
	// The warning comes before the first result, and a wrong database is the first thing that a
	// user should suspect.
	a.warnOtherDatabase(ctx, cfg)
	s, err := a.openExisting(ctx, cfg)
	if err != nil {
		return nil, err
	}
	op, err := a.localOperator(cfg, s)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return op, nil
}

// ask opens the operator, calls ask with it, and closes it.
func (a *app) ask(ctx context.Context, ask func(*operator) error) error {
	op, err := a.operator(ctx)
	if err != nil {
		return err
	}
	defer op.close()
	return ask(op)
}

// localOperator returns the services on an open store, assembled like those of a server. The
// operator closes the store.
func (a *app) localOperator(cfg *config.Config, s core.Store) (*operator, error) {
	clock := a.storeClock()
	events, err := gateway.Events(cfg, s, clock)
	if err != nil {
		return nil, err
	}
	operations, err := gateway.Operations(cfg, s, clock)
	if err != nil {
		return nil, err
	}
	schedules, err := gateway.CronSources(cfg, s, clock)
	if err != nil {
		return nil, err
	}
	doer, err := gateway.Doer(cfg, s, clock)
	if err != nil {
		return nil, err
	}
	jobs := gateway.Jobs(cfg, s, clock)
	// An event's jobs are shown with the reasons why they wait, which depend on the gates of
	// their lanes.
	events.Waits = jobs.Waits
	stats, curves := gateway.Statistics(cfg, s, clock), gateway.Series(cfg, s, clock)
	return &operator{
		cfg:    cfg,
		events: events,
		jobs:   jobs,
		queues: gateway.Queues(cfg, s, clock),
		runs:   gateway.Runs(cfg, s, clock),
		tail:   gateway.Tail(cfg, s, clock),
		stats: func(ctx context.Context) (wire.Stats, error) {
			standing, err := stats.Stats(ctx)
			return wire.StatsOf(standing), err
		},
		series: func(ctx context.Context, w manage.Window, lanes ...core.Lane) (wire.Series, error) {
			c, err := curves.Curves(ctx, w, lanes...)
			return wire.SeriesOf(c), err
		},

		breakers: gateway.Breakers(cfg, s, clock),
		holds:    gateway.Holds(cfg, s, clock),
		lines:    gateway.Lines(cfg, s, clock),
		audit:    gateway.Audit(s),

		operations: operations,
		schedules:  schedules,
		drive:      doer.Drive,
		replaying:  func(did func(manage.Replayed)) { events.Progress = did },

		handlers: func(context.Context) ([]string, error) {
			return wire.List(cfg.SortedHandlers(), func(h config.Handler) string { return h.Name }), nil
		},

		close: func() { s.Close() },
	}, nil
}
