package metrics

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// ledgerOps measures [core.Ledger], the listings and look-ups of events and jobs.
type ledgerOps struct{ event, events, job, jobs, failures, attempts, sourcesOf, finished *op }

func newLedgerOps(f opFamilies) ledgerOps {
	return ledgerOps{
		event:     f.op("event"),
		events:    f.op("events"),
		job:       f.op("job"),
		jobs:      f.op("jobs"),
		failures:  f.op("failures"),
		attempts:  f.op("attempts"),
		sourcesOf: f.op("sources_of"),
		finished:  f.op("finished"),
	}
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

func (m *measured) Failures(ctx context.Context, f core.FailureFilter) (_ core.Page[core.FailedJob], err error) {
	defer m.failures.ended(time.Now(), &err)
	return m.Store.Failures(ctx, f)
}

func (m *measured) Attempts(ctx context.Context, job core.ID, skip, limit int) (_ []core.Attempt, err error) {
	defer m.attempts.ended(time.Now(), &err)
	return m.Store.Attempts(ctx, job, skip, limit)
}

func (m *measured) SentBody(ctx context.Context, job core.ID, number int) (_ string, err error) {
	defer m.sentBody.ended(time.Now(), &err)
	return m.Store.SentBody(ctx, job, number)
}

func (m *measured) SourcesOf(ctx context.Context, events []core.ID) (_ map[core.ID]string, err error) {
	defer m.sourcesOf.ended(time.Now(), &err)
	return m.Store.SourcesOf(ctx, events)
}

func (m *measured) Finished(ctx context.Context, since time.Time, after core.ID, limit int) (_ core.Page[core.Job], err error) {
	defer m.finished.ended(time.Now(), &err)
	return m.Store.Finished(ctx, since, after, limit)
}

// archiveOps measures [core.Archive]. Its methods return whole events, so they move the most
// bytes of all reads.
type archiveOps struct{ nth, read, readNewest, newest, jobsOf, attemptsOf, sentBody *op }

func newArchiveOps(f opFamilies) archiveOps {
	return archiveOps{
		nth:        f.op("nth"),
		read:       f.op("read"),
		readNewest: f.op("read_newest"),
		newest:     f.op("newest"),
		jobsOf:     f.op("jobs_of"),
		attemptsOf: f.op("attempts_of"),
		sentBody:   f.op("sent_body"),
	}
}

func (m *measured) Nth(ctx context.Context, f core.EventFilter, n int) (_ core.ID, err error) {
	defer m.nth.ended(time.Now(), &err)
	return m.Store.Nth(ctx, f, n)
}

func (m *measured) Read(ctx context.Context, from core.ID, f core.EventFilter) (_ core.Page[core.Event], err error) {
	defer m.read.ended(time.Now(), &err)
	return m.Store.Read(ctx, from, f)
}

func (m *measured) ReadNewest(ctx context.Context, f core.EventFilter) (_ core.Page[core.Event], err error) {
	defer m.readNewest.ended(time.Now(), &err)
	return m.Store.ReadNewest(ctx, f)
}

func (m *measured) Newest(ctx context.Context) (_ core.ID, _ time.Time, err error) {
	defer m.newest.ended(time.Now(), &err)
	return m.Store.Newest(ctx)
}

func (m *measured) JobsOf(ctx context.Context, events []core.ID) (_ map[core.ID][]core.Job, err error) {
	defer m.jobsOf.ended(time.Now(), &err)
	return m.Store.JobsOf(ctx, events)
}

func (m *measured) AttemptsOf(ctx context.Context, jobs []core.ID) (_ map[core.ID][]core.Attempt, err error) {
	defer m.attemptsOf.ended(time.Now(), &err)
	return m.Store.AttemptsOf(ctx, jobs)
}

// chronicleOps measures [core.Chronicle], the listings and look-ups of runs.
type chronicleOps struct{ run, runs, steps, outline, history *op }

func newChronicleOps(f opFamilies) chronicleOps {
	return chronicleOps{
		run:     f.op("run"),
		runs:    f.op("runs"),
		steps:   f.op("steps"),
		outline: f.op("outline"),
		history: f.op("history"),
	}
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

func (m *measured) Outline(ctx context.Context, run core.ID, epoch int) (_ []core.Step, err error) {
	defer m.outline.ended(time.Now(), &err)
	return m.Store.Outline(ctx, run, epoch)
}

func (m *measured) History(ctx context.Context, run core.ID, after, limit int) (_ []core.Entry, err error) {
	defer m.history.ended(time.Now(), &err)
	return m.Store.History(ctx, run, after, limit)
}
