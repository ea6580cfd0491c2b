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

// measured has a method for each method of a store except Close. The compiler does not notice a
// missing method, since the store is embedded. TestStoreIsMeasured does.
type measured struct {
	core.Store
	*ops
}

// ops holds the metrics of all methods, by the role of the store that declares them. The series
// exist before the first call, so a rate of errors starts from 0.
type ops struct {
	inboxOps
	worklistOps
	counterOps
	calendarOps
	runsOps
	ledgerOps
	backlogOps
	archiveOps
	chronicleOps
	operationsOps
	operationLogOps
	minutesOps
	holdsOps
	auditOps
	linesOps
	upkeepOps
}

// newOps makes the series of all methods.
func newOps(f factory) *ops {
	m := opFamilies{
		took:   f.seconds("store_duration_seconds", "How long calls of the store took.", storeBuckets, "op"),
		failed: f.counter("store_errors_total", "Calls of the store that failed.", "op"),
	}
	return &ops{
		inboxOps:        newInboxOps(m),
		worklistOps:     newWorklistOps(m),
		counterOps:      newCounterOps(m),
		calendarOps:     newCalendarOps(m),
		runsOps:         newRunsOps(m),
		ledgerOps:       newLedgerOps(m),
		backlogOps:      newBacklogOps(m),
		archiveOps:      newArchiveOps(m),
		chronicleOps:    newChronicleOps(m),
		operationsOps:   newOperationsOps(m),
		operationLogOps: newOperationLogOps(m),
		minutesOps:      newMinutesOps(m),
		holdsOps:        newHoldsOps(m),
		auditOps:        newAuditOps(m),
		linesOps:        newLinesOps(m),
		upkeepOps:       newUpkeepOps(m),
	}
}

// opFamilies are the two families that measure the methods of a store. Their label op is the
// name of a method, in lower case with underscores.
type opFamilies struct {
	took   *prometheus.HistogramVec
	failed *prometheus.CounterVec
}

// op makes the series of the method with this name.
func (f opFamilies) op(name string) *op {
	return &op{f.took.WithLabelValues(name), f.failed.WithLabelValues(name)}
}

// An op holds the metrics of one method.
type op struct {
	took   prometheus.Observer
	failed prometheus.Counter
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

// inboxOps measures [core.Inbox] and [core.Express]. A sender waits for these calls, so their
// durations are most of intake_duration_seconds.
type inboxOps struct{ accept, acceptAll, acceptAndTake *op }

func newInboxOps(f opFamilies) inboxOps {
	return inboxOps{
		accept:        f.op("accept"),
		acceptAll:     f.op("accept_all"),
		acceptAndTake: f.op("accept_and_take"),
	}
}

func (m *measured) Accept(ctx context.Context, a core.Arrival) (_ core.Receipt, err error) {
	defer m.accept.ended(time.Now(), &err)
	return m.Store.Accept(ctx, a)
}

func (m *measured) AcceptAndTake(ctx context.Context, now time.Time, a core.Arrival, holds map[core.ID]time.Duration) (_ core.Receipt, _ []core.TakenJob, err error) {
	defer m.acceptAndTake.ended(time.Now(), &err)
	return m.Store.AcceptAndTake(ctx, now, a, holds)
}

func (m *measured) AcceptAll(ctx context.Context, all []core.Arrival) (_ []core.Receipt, err error) {
	defer m.acceptAll.ended(time.Now(), &err)
	return m.Store.AcceptAll(ctx, all)
}

// worklistOps measures [core.Worklist]. Workers make these calls all the time, even without
// work. Consumers of queues cause take and release too.
type worklistOps struct{ due, take, settle, release, recover, lapsed, strays, closeBreakers *op }

func newWorklistOps(f opFamilies) worklistOps {
	return worklistOps{
		due:           f.op("due"),
		take:          f.op("take"),
		settle:        f.op("settle"),
		release:       f.op("release"),
		recover:       f.op("recover"),
		lapsed:        f.op("lapsed"),
		strays:        f.op("strays"),
		closeBreakers: f.op("close_breakers"),
	}
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

// counterOps measures [core.Counter], the requests of the consumers of queues about messages
// that they have received.
type counterOps struct{ ack, extend, held *op }

func newCounterOps(f opFamilies) counterOps {
	return counterOps{
		ack:    f.op("ack"),
		extend: f.op("extend"),
		held:   f.op("held"),
	}
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

// calendarOps measures [core.Calendar], the marks of schedules.
type calendarOps struct{ marks, mark *op }

func newCalendarOps(f opFamilies) calendarOps {
	return calendarOps{
		marks: f.op("marks"),
		mark:  f.op("mark"),
	}
}

func (m *measured) Marks(ctx context.Context, sources []string) (_ map[string]core.Mark, err error) {
	defer m.marks.ended(time.Now(), &err)
	return m.Store.Marks(ctx, sources)
}

func (m *measured) Mark(ctx context.Context, marks ...core.Mark) (err error) {
	defer m.mark.ended(time.Now(), &err)
	return m.Store.Mark(ctx, marks...)
}

// runsOps measures [core.Runs], the changes of workflow runs and the reads that decide them.
type runsOps struct{ definition, situations, survey, transit, awaited *op }

func newRunsOps(f opFamilies) runsOps {
	return runsOps{
		definition: f.op("definition"),
		situations: f.op("situations"),
		survey:     f.op("survey"),
		transit:    f.op("transit"),
		awaited:    f.op("awaited"),
	}
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

func (m *measured) Transit(ctx context.Context, ts ...core.Transition) (_ []core.Transited, err error) {
	defer m.transit.ended(time.Now(), &err)
	return m.Store.Transit(ctx, ts...)
}

func (m *measured) Awaited(ctx context.Context, now time.Time, hash, receipt string) (_ core.Awaiting, err error) {
	defer m.awaited.ended(time.Now(), &err)
	return m.Store.Awaited(ctx, now, hash, receipt)
}

// backlogOps measures [core.Backlog]. A scrape of /metrics calls tallies and ended itself, so this role
// shows the cost of scraping.
type backlogOps struct{ depth, tallies, ended, peek, deadLetters, completed *op }

func newBacklogOps(f opFamilies) backlogOps {
	return backlogOps{
		depth:       f.op("depth"),
		tallies:     f.op("tallies"),
		ended:       f.op("ended"),
		peek:        f.op("peek"),
		deadLetters: f.op("dead_letters"),
		completed:   f.op("completed"),
	}
}

func (m *measured) Depth(ctx context.Context) (_ int, err error) {
	defer m.depth.ended(time.Now(), &err)
	return m.Store.Depth(ctx)
}

func (m *measured) Tallies(ctx context.Context, now time.Time, lanes []core.Lane) (_ map[core.Lane]core.Tally, err error) {
	defer m.tallies.ended(time.Now(), &err)
	return m.Store.Tallies(ctx, now, lanes)
}

func (m *measured) Ended(ctx context.Context, lanes []core.Lane) (_ map[core.Lane]core.Ended, err error) {
	defer m.ended.ended(time.Now(), &err)
	return m.Store.Ended(ctx, lanes)
}

func (m *measured) Peek(ctx context.Context, now time.Time, lane core.Lane, limit int) (_ []core.TakenJob, err error) {
	defer m.peek.ended(time.Now(), &err)
	return m.Store.Peek(ctx, now, lane, limit)
}

func (m *measured) DeadLetters(ctx context.Context, lane core.Lane, after core.ID, limit int) (_ core.Page[core.TakenJob], err error) {
	defer m.deadLetters.ended(time.Now(), &err)
	return m.Store.DeadLetters(ctx, lane, after, limit)
}

func (m *measured) Completed(ctx context.Context) (_ int, err error) {
	defer m.completed.ended(time.Now(), &err)
	return m.Store.Completed(ctx)
}

// operationsOps measures [core.Operations]. Only operators cause these calls, and one call may
// change many rows.
type operationsOps struct{ retry, cancel, replay, drain *op }

func newOperationsOps(f opFamilies) operationsOps {
	return operationsOps{
		retry:  f.op("retry"),
		cancel: f.op("cancel"),
		replay: f.op("replay"),
		drain:  f.op("drain"),
	}
}

func (m *measured) Retry(ctx context.Context, now time.Time, id core.ID, lane core.Lane) (_ int, err error) {
	defer m.retry.ended(time.Now(), &err)
	return m.Store.Retry(ctx, now, id, lane)
}

func (m *measured) Cancel(ctx context.Context, now time.Time, event core.ID) (_ core.Cancellation, err error) {
	defer m.cancel.ended(time.Now(), &err)
	return m.Store.Cancel(ctx, now, event)
}

func (m *measured) Replay(ctx context.Context, now time.Time, arrivals ...core.Arrival) (_ int, err error) {
	defer m.replay.ended(time.Now(), &err)
	return m.Store.Replay(ctx, now, arrivals...)
}

func (m *measured) Drain(ctx context.Context, lane core.Lane, below core.ID, limit int) (_ int, err error) {
	defer m.drain.ended(time.Now(), &err)
	return m.Store.Drain(ctx, lane, below, limit)
}

// upkeepOps measures [core.Upkeep]: the start of a process, its regular duties, and the checks
// of /health (rehearse).
type upkeepOps struct{ turn, purge, migrate, schema, rehearse, ping *op }

func newUpkeepOps(f opFamilies) upkeepOps {
	return upkeepOps{
		turn:     f.op("turn"),
		purge:    f.op("purge"),
		migrate:  f.op("migrate"),
		schema:   f.op("schema"),
		rehearse: f.op("rehearse"),
		ping:     f.op("ping"),
	}
}

func (m *measured) Turn(ctx context.Context, now time.Time, name string, hold time.Duration) (_ bool, err error) {
	defer m.turn.ended(time.Now(), &err)
	return m.Store.Turn(ctx, now, name, hold)
}

func (m *measured) Purge(ctx context.Context, before time.Time, limit int) (_ int, _ bool, err error) {
	defer m.purge.ended(time.Now(), &err)
	return m.Store.Purge(ctx, before, limit)
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
