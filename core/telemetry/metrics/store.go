package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventgateway/gateway/core"
)

// storeBuckets are in seconds. They reach from a read on the same machine (0.5 ms) to an
// overloaded database (5 s).
var storeBuckets = []float64{.0005, .002, .005, .02, .05, .2, 1, 5}

// Store wraps a store. Each call has its duration measured and its failures counted, by the
// name of the method. The results are passed on unchanged.
func (m *Metrics) Store(s core.Store) core.Store { return &measured{s, m.store} }

// measured has a method for each method of a store except Close.
type measured struct {
	core.Store
	*ops
}

// ops holds the metrics of each method, one line for each role.
type ops struct {
	accept, acceptAll                                                                          *op
	due, take, settle, release, recover, lapsed, strays, closeBreakers                         *op
	ack, extend, held                                                                          *op
	marks, mark                                                                                *op
	definition, situations, survey, transit, awaited                                           *op
	event, events, job, jobs, attempts, depth, tallies, peek, deadLetters, finished, completed *op
	nth, read, jobsOf, attemptsOf                                                              *op
	run, runs, steps, history                                                                  *op
	retry, replay, turn, purge, drain, migrate, schema, rehearse, ping                         *op
}

// An op holds the metrics of one method.
type op struct {
	took   prometheus.Observer
	failed prometheus.Counter
}

// newOps makes the series of all methods.
func newOps(f factory) *ops {
	took := f.seconds("store_duration_seconds", "What calls of the store took.", storeBuckets, "op")
	failed := f.counter("store_errors_total", "Calls of the store that failed.", "op")
	of := func(name string) *op { return &op{took.WithLabelValues(name), failed.WithLabelValues(name)} }
	return &ops{
		accept: of("accept"), acceptAll: of("accept_all"),
		due: of("due"), take: of("take"), settle: of("settle"), release: of("release"), recover: of("recover"),
		lapsed: of("lapsed"), strays: of("strays"), closeBreakers: of("close_breakers"),
		ack: of("ack"), extend: of("extend"), held: of("held"),
		marks: of("marks"), mark: of("mark"),
		definition: of("definition"), situations: of("situations"), survey: of("survey"), transit: of("transit"),
		awaited: of("awaited"),
		event:   of("event"), events: of("events"), job: of("job"), jobs: of("jobs"), attempts: of("attempts"), attemptsOf: of("attempts_of"),
		depth: of("depth"), tallies: of("tallies"), peek: of("peek"), deadLetters: of("dead_letters"),
		finished: of("finished"), completed: of("completed"),
		nth: of("nth"), read: of("read"), jobsOf: of("jobs_of"),
		run: of("run"), runs: of("runs"), steps: of("steps"), history: of("history"),
		retry: of("retry"), replay: of("replay"), turn: of("turn"), purge: of("purge"), drain: of("drain"),
		migrate: of("migrate"), schema: of("schema"), rehearse: of("rehearse"), ping: of("ping"),
	}
}

// ended measures a call that began at a time and ends now.
func (o *op) ended(began time.Time, err *error) {
	o.took.Observe(time.Since(began).Seconds())
	if failure(*err) {
		o.failed.Inc()
	}
}

// failure reports whether an error counts as a failure of the store. [core.NotFound] is a
// normal answer, and a canceled call was ended by its caller.
func failure(err error) bool {
	return err != nil && !core.IsKind(err, core.NotFound) && !errors.Is(err, context.Canceled)
}

func (m *measured) Accept(ctx context.Context, a core.Arrival) (_ core.Receipt, err error) {
	defer m.accept.ended(time.Now(), &err)
	return m.Store.Accept(ctx, a)
}

func (m *measured) AcceptAll(ctx context.Context, all []core.Arrival) (_ []core.Receipt, err error) {
	defer m.acceptAll.ended(time.Now(), &err)
	return m.Store.AcceptAll(ctx, all)
}

func (m *measured) Due(ctx context.Context, lanes []core.Lane) (_ map[core.Lane]core.Outlook, err error) {
	defer m.due.ended(time.Now(), &err)
	return m.Store.Due(ctx, lanes)
}

func (m *measured) Take(ctx context.Context, now time.Time, quotas []core.Quota) (_ []core.TakenJob, err error) {
	defer m.take.ended(time.Now(), &err)
	return m.Store.Take(ctx, now, quotas)
}

func (m *measured) Settle(ctx context.Context, outcomes ...core.Outcome) (_ core.Settlement, err error) {
	defer m.settle.ended(time.Now(), &err)
	return m.Store.Settle(ctx, outcomes...)
}

func (m *measured) Release(ctx context.Context, due time.Time, jobs ...core.Job) (err error) {
	defer m.release.ended(time.Now(), &err)
	return m.Store.Release(ctx, due, jobs...)
}

func (m *measured) Recover(ctx context.Context, now time.Time, lanes []core.Lane) (_ int, err error) {
	defer m.recover.ended(time.Now(), &err)
	return m.Store.Recover(ctx, now, lanes)
}

func (m *measured) Lapsed(ctx context.Context, now time.Time, lanes []core.Lane, limit int) (_ []core.TakenJob, err error) {
	defer m.lapsed.ended(time.Now(), &err)
	return m.Store.Lapsed(ctx, now, lanes, limit)
}

func (m *measured) Strays(ctx context.Context, now time.Time, known []core.Lane) (_ map[core.Lane]time.Time, err error) {
	defer m.strays.ended(time.Now(), &err)
	return m.Store.Strays(ctx, now, known)
}

func (m *measured) CloseBreakers(ctx context.Context, now time.Time, lanes ...core.Lane) (_ []core.Lane, err error) {
	defer m.closeBreakers.ended(time.Now(), &err)
	return m.Store.CloseBreakers(ctx, now, lanes...)
}

func (m *measured) Ack(ctx context.Context, now time.Time, lane core.Lane, refs []core.Ref) (_ int, err error) {
	defer m.ack.ended(time.Now(), &err)
	return m.Store.Ack(ctx, now, lane, refs)
}

func (m *measured) Extend(ctx context.Context, end time.Time, lane core.Lane, refs []core.Ref) (_ int, err error) {
	defer m.extend.ended(time.Now(), &err)
	return m.Store.Extend(ctx, end, lane, refs)
}

func (m *measured) Held(ctx context.Context, lane core.Lane, refs []core.Ref) (_ []core.TakenJob, err error) {
	defer m.held.ended(time.Now(), &err)
	return m.Store.Held(ctx, lane, refs)
}

func (m *measured) Marks(ctx context.Context, sources []string) (_ map[string]core.Mark, err error) {
	defer m.marks.ended(time.Now(), &err)
	return m.Store.Marks(ctx, sources)
}

func (m *measured) Mark(ctx context.Context, marks ...core.Mark) (err error) {
	defer m.mark.ended(time.Now(), &err)
	return m.Store.Mark(ctx, marks...)
}

func (m *measured) Definition(ctx context.Context, hash string) (_ core.Definition, err error) {
	defer m.definition.ended(time.Now(), &err)
	return m.Store.Definition(ctx, hash)
}

func (m *measured) Situations(ctx context.Context, steps []core.ID) (_ map[core.ID]core.Situation, err error) {
	defer m.situations.ended(time.Now(), &err)
	return m.Store.Situations(ctx, steps)
}

func (m *measured) Survey(ctx context.Context, run core.ID, epoch int, w core.Wanted) (_ []core.Step, err error) {
	defer m.survey.ended(time.Now(), &err)
	return m.Store.Survey(ctx, run, epoch, w)
}

func (m *measured) Transit(ctx context.Context, ts ...core.Transition) (_ []bool, err error) {
	defer m.transit.ended(time.Now(), &err)
	return m.Store.Transit(ctx, ts...)
}

func (m *measured) Awaited(ctx context.Context, now time.Time, hash, receipt string) (_ core.Awaiting, err error) {
	defer m.awaited.ended(time.Now(), &err)
	return m.Store.Awaited(ctx, now, hash, receipt)
}

func (m *measured) Event(ctx context.Context, id core.ID) (_ core.Event, err error) {
	defer m.event.ended(time.Now(), &err)
	return m.Store.Event(ctx, id)
}

func (m *measured) Events(ctx context.Context, f core.EventFilter) (_ core.Page[core.Event], err error) {
	defer m.events.ended(time.Now(), &err)
	return m.Store.Events(ctx, f)
}

func (m *measured) Job(ctx context.Context, id core.ID) (_ core.Job, err error) {
	defer m.job.ended(time.Now(), &err)
	return m.Store.Job(ctx, id)
}

func (m *measured) Jobs(ctx context.Context, f core.JobFilter) (_ core.Page[core.Job], err error) {
	defer m.jobs.ended(time.Now(), &err)
	return m.Store.Jobs(ctx, f)
}

func (m *measured) Attempts(ctx context.Context, job core.ID) (_ []core.Attempt, err error) {
	defer m.attempts.ended(time.Now(), &err)
	return m.Store.Attempts(ctx, job)
}

func (m *measured) AttemptsOf(ctx context.Context, jobs []core.ID) (_ map[core.ID][]core.Attempt, err error) {
	defer m.attemptsOf.ended(time.Now(), &err)
	return m.Store.AttemptsOf(ctx, jobs)
}

func (m *measured) Depth(ctx context.Context) (_ int, err error) {
	defer m.depth.ended(time.Now(), &err)
	return m.Store.Depth(ctx)
}

func (m *measured) Tallies(ctx context.Context, now time.Time, lanes []core.Lane) (_ map[core.Lane]core.Tally, err error) {
	defer m.tallies.ended(time.Now(), &err)
	return m.Store.Tallies(ctx, now, lanes)
}

func (m *measured) Peek(ctx context.Context, now time.Time, lane core.Lane, limit int) (_ []core.TakenJob, err error) {
	defer m.peek.ended(time.Now(), &err)
	return m.Store.Peek(ctx, now, lane, limit)
}

func (m *measured) DeadLetters(ctx context.Context, lane core.Lane, after core.ID, limit int) (_ core.Page[core.TakenJob], err error) {
	defer m.deadLetters.ended(time.Now(), &err)
	return m.Store.DeadLetters(ctx, lane, after, limit)
}

func (m *measured) Finished(ctx context.Context, since time.Time, after core.ID, limit int) (_ core.Page[core.Job], err error) {
	defer m.finished.ended(time.Now(), &err)
	return m.Store.Finished(ctx, since, after, limit)
}

func (m *measured) Completed(ctx context.Context) (_ int, err error) {
	defer m.completed.ended(time.Now(), &err)
	return m.Store.Completed(ctx)
}

func (m *measured) Nth(ctx context.Context, f core.EventFilter, n int) (_ core.ID, err error) {
	defer m.nth.ended(time.Now(), &err)
	return m.Store.Nth(ctx, f, n)
}

func (m *measured) Read(ctx context.Context, from core.ID, f core.EventFilter) (_ core.Page[core.Event], err error) {
	defer m.read.ended(time.Now(), &err)
	return m.Store.Read(ctx, from, f)
}

func (m *measured) JobsOf(ctx context.Context, events []core.ID) (_ map[core.ID][]core.Job, err error) {
	defer m.jobsOf.ended(time.Now(), &err)
	return m.Store.JobsOf(ctx, events)
}

func (m *measured) Run(ctx context.Context, id core.ID) (_ core.Run, err error) {
	defer m.run.ended(time.Now(), &err)
	return m.Store.Run(ctx, id)
}

func (m *measured) Runs(ctx context.Context, f core.RunFilter) (_ core.Page[core.Run], err error) {
	defer m.runs.ended(time.Now(), &err)
	return m.Store.Runs(ctx, f)
}

func (m *measured) Steps(ctx context.Context, run core.ID, epoch int, after core.ID, limit int) (_ core.Page[core.Step], err error) {
	defer m.steps.ended(time.Now(), &err)
	return m.Store.Steps(ctx, run, epoch, after, limit)
}

func (m *measured) History(ctx context.Context, run core.ID, after, limit int) (_ []core.Entry, err error) {
	defer m.history.ended(time.Now(), &err)
	return m.Store.History(ctx, run, after, limit)
}

func (m *measured) Retry(ctx context.Context, now time.Time, id core.ID, lane core.Lane) (_ int, err error) {
	defer m.retry.ended(time.Now(), &err)
	return m.Store.Retry(ctx, now, id, lane)
}

func (m *measured) Replay(ctx context.Context, now time.Time, arrivals ...core.Arrival) (_ int, err error) {
	defer m.replay.ended(time.Now(), &err)
	return m.Store.Replay(ctx, now, arrivals...)
}

func (m *measured) Turn(ctx context.Context, now time.Time, name string, hold time.Duration) (_ bool, err error) {
	defer m.turn.ended(time.Now(), &err)
	return m.Store.Turn(ctx, now, name, hold)
}

func (m *measured) Purge(ctx context.Context, before time.Time, limit int) (_ int, _ bool, err error) {
	defer m.purge.ended(time.Now(), &err)
	return m.Store.Purge(ctx, before, limit)
}

func (m *measured) Drain(ctx context.Context, lane core.Lane, below core.ID, limit int) (_ int, err error) {
	defer m.drain.ended(time.Now(), &err)
	return m.Store.Drain(ctx, lane, below, limit)
}

func (m *measured) Migrate(ctx context.Context) (err error) {
	defer m.migrate.ended(time.Now(), &err)
	return m.Store.Migrate(ctx)
}

func (m *measured) Schema(ctx context.Context) (_, _ int, err error) {
	defer m.schema.ended(time.Now(), &err)
	return m.Store.Schema(ctx)
}

func (m *measured) Rehearse(ctx context.Context, w core.Work) (err error) {
	defer m.rehearse.ended(time.Now(), &err)
	return m.Store.Rehearse(ctx, w)
}

func (m *measured) Ping(ctx context.Context) (err error) {
	defer m.ping.ended(time.Now(), &err)
	return m.Store.Ping(ctx)
}
