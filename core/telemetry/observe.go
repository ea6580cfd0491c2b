package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Log returns an observer that writes facts as log lines. The level is info for success, warn
// for failures that are tried again, and error for failures that need a person.
func Log(l *slog.Logger) core.Observer {
	o := logger{
		http:     l.With(Target, "http"),
		intake:   l.With(Target, "intake"),
		cron:     l.With(Target, "cron"),
		worker:   l.With(Target, "worker"),
		alert:    l.With(Target, "alert"),
		pull:     l.With(Target, "pull"),
		workflow: l.With(Target, "workflow"),
		store:    l.With(Target, "store"),
		config:   l.With(Target, "config"),
		manage:   l.With(Target, "manage"),
	}
	return o.observe
}

// A logger has one slog.Logger for each target.
type logger struct{ http, intake, cron, worker, alert, pull, workflow, store, config, manage *slog.Logger }

// observe writes the line of a fact. A fact that is not listed makes no line; the tests of package
// metrics hold that each has one.
func (o logger) observe(f core.Fact) {
	switch f := f.(type) {
	case core.Accepted:
		o.accepted(f)
	case core.FilterFailed:
		line(o.intake, slog.LevelError, "filter failed; the event is stored without a job for this consumer", slog.String("event", string(f.Event.ID)),
			slog.String("source", f.Event.Source), slog.String("type", f.Event.Type), consumer(f.Lane), slog.String("filter", f.Lane.Filter()),
			slog.Any("error", f.Why))
	case core.Repeated:
		line(o.intake, slog.LevelInfo, "duplicate event ignored", slog.String("first", string(f.First)),
			slog.String("source", f.Source), slog.String("type", f.Type))
	case core.Unverified:
		line(o.intake, slog.LevelWarn, "verification failed", slog.String("source", f.Source),
			slog.String("reason", f.Reason), slog.String("client_ip", f.ClientIP))
	case core.TurnedAway: // debug: the sender's error, which changes nothing here
		line(o.intake, slog.LevelDebug, "event turned away", slog.String("source", f.Source), slog.String("reason", kindWord(f.Kind)))
	case core.ConnectionClosed:
		line(o.http, slog.LevelWarn, "connection closed: too many are open", slog.String("reason", string(f.Why)),
			slog.String("client_ip", f.ClientIP))
	case core.Confirmed:
		line(o.intake, slog.LevelInfo, "subscription confirmed", slog.String("source", f.Source), slog.String("topic", f.Topic))
	case core.Unsubscribed:
		line(o.intake, slog.LevelWarn, "subscription has ended; the topic sends no more", slog.String("source", f.Source),
			slog.String("topic", f.Topic))
	case core.Skipped:
		o.skipped(f)
	case core.Settled:
		o.settled(f)
	case core.BreakerMoved:
		o.moved(f)
	case core.Superseded:
		o.superseded(f)
	case core.Released:
		line(o.worker, slog.LevelInfo, "jobs given back", slog.Int("jobs", f.Jobs), slog.String("why", f.Why))
	case core.Pulled:
		o.pulled(f)
	case core.StepMoved:
		o.stepMoved(f)
	case core.RunMoved:
		o.runMoved(f)
	case core.CalledIn:
		o.calledIn(f)
	case core.Replayed, core.EventCanceled, core.Revived, core.Drained, core.LaneHeld, core.LaneReleased, core.LineSkipped,
		core.OperationBegun, core.OperationEnded:
		o.operated(f)
	case core.Recovered:
		line(o.worker, slog.LevelInfo, "jobs of an earlier process recovered", slog.Int("jobs", f.Jobs))
	case core.Purged:
		line(o.store, slog.LevelInfo, "old records deleted", slog.Int("rows", f.Rows), slog.Int64("duration_ms", f.Took.Milliseconds()),
			slog.Bool("more", f.More))
	case core.Reloaded:
		o.reloaded(f)
	case core.ClocksDiffer:
		o.clocksDiffer(f)
	case core.DatabaseClockJumped:
		line(o.store, slog.LevelWarn, "the database's clock has jumped; leases and due times follow it", slog.String("by", clockSpan(f.By)))
	case core.Troubled:
		o.troubled(f)
	}
}

// skipped logs slots of a schedule that made no events. For a hold they were skipped as an operator
// wanted it.
func (o logger) skipped(f core.Skipped) {
	level, message := slog.LevelWarn, "slots passed unseen and are too old to be made up for"
	if f.Held {
		level, message = slog.LevelInfo, "slots skipped: the source is held"
	}
	line(o.cron, level, message, slog.String("source", f.Source),
		slog.Int("slots", f.Slots), slog.String("first_slot", core.FormatTime(f.First)), slog.String("last_slot", core.FormatTime(f.Last)))
}

// superseded logs an outcome that was not stored.
func (o logger) superseded(f core.Superseded) {
	message := "outcome came after its lease; another attempt stands"
	attrs := []slog.Attr{slog.String("job", string(f.Job.ID)), consumerOf(f.Job), slog.Int("attempt", f.Job.Number())}
	if f.Why != "" {
		message = "outcome of a step came too late and changes nothing"
		attrs = append(attrs, slog.String("why", f.Why))
	}
	line(o.delivery(f.Job.Lane), slog.LevelWarn, message, attrs...)
}

// clocksDiffer logs that this machine's clock differs from the database's by 1 s or more, or
// that the clocks agree again.
func (o logger) clocksDiffer(f core.ClocksDiffer) {
	// The message names NTP, since a wrong clock makes signatures fail and schedules fire at other
	// times.
	level, message := slog.LevelWarn, "this machine's clock differs from the database's; stored times are the database's, let NTP set both"
	if f.Ahead.Abs() < time.Second {
		level, message = slog.LevelInfo, "this machine's clock agrees with the database's again"
	}
	line(o.store, level, message, slog.String("database_ahead", clockSpan(f.Ahead)))
}

// clockSpan formats a difference of clocks, rounded to 1 ms.
func clockSpan(d time.Duration) string { return d.Round(time.Millisecond).String() }

// troubled logs a failed action that will be tried again. A panic is logged as an error, since
// it is a defect that needs a person.
func (o logger) troubled(f core.Troubled) {
	if p := (*core.Panic)(nil); errors.As(f.Err, &p) {
		line(o.store, slog.LevelError, "panic", slog.String("doing", f.Doing), slog.Any("error", f.Err), slog.String("stack", p.Stack))
		return
	}
	line(o.store, slog.LevelWarn, "trying again", slog.String("doing", f.Doing), slog.Any("error", f.Err))
}

// accepted logs a stored event, or a raised alert.
func (o logger) accepted(f core.Accepted) {
	log, message := o.intake, "event accepted"
	if f.Event.Source == core.AlertSource {
		log, message = o.alert, "alert raised"
	}
	if !log.Enabled(context.Background(), slog.LevelInfo) {
		return // before the line is built: this is the most frequent one
	}
	line(log, slog.LevelInfo, message, slog.String("event", string(f.Event.ID)),
		slog.String("source", f.Event.Source), slog.String("type", f.Event.Type), slog.Int("jobs", f.Jobs))
}

// revived logs jobs that an operator retried.
func (o logger) revived(f core.Revived) {
	attrs := []slog.Attr{slog.Int("jobs", f.Jobs)}
	if f.ID != "" {
		attrs = append(attrs, slog.String("job", string(f.ID)))
	}
	if f.Lane != "" {
		attrs = append(attrs, consumer(f.Lane))
	}
	message := "dead jobs retried"
	switch {
	case f.Early:
		message = "job retried before its time"
	case f.Canceled:
		message = "canceled job retried"
	}
	line(o.manage, slog.LevelInfo, message, attrs...)
}

// kindWord returns the kind of a refusal as the text of the field reason.
func kindWord(k core.Kind) string {
	switch k {
	case core.Invalid:
		return "invalid"
	case core.Unauthorized:
		return "unauthorized"
	case core.Forbidden:
		return "forbidden"
	case core.NotFound:
		return "not found"
	case core.TooLarge:
		return "too large"
	case core.Unsupported:
		return "unsupported"
	case core.Unavailable:
		return "unavailable"
	case core.Looped:
		return "looped"
	}
	return "internal"
}

// deliveryWords are the messages for the statuses in which an attempt can leave a job.
type deliveryWords struct{ completed, retryable, dead string }

var (
	handlerWords = deliveryWords{"delivered", "delivery failed, will retry", "job is dead"}
	queueWords   = deliveryWords{"message acked", "message is back in its queue", "message is dead"}
	staleWords   = deliveryWords{"job closed", "job put back", "job is dead"} // jobs of workflow lanes whose run has moved on
	alertWords   = deliveryWords{"alert delivered", "alert could not be delivered, will retry", "alert is dead: it was not delivered"}
)

// settled logs the outcome of an attempt.
func (o logger) settled(f core.Settled) {
	words := wordsOf(f.Job.Lane)
	level, message := slog.LevelInfo, words.completed
	switch f.Outcome.Status {
	case core.Retryable:
		level, message = slog.LevelWarn, words.retryable
	case core.Dead:
		level, message = slog.LevelError, words.dead
	}
	// The line is built only if it is shown, since this is a frequent fact.
	log := o.delivery(f.Job.Lane)
	if !log.Enabled(context.Background(), level) {
		return
	}
	a := f.Outcome.Attempt
	attrs := []slog.Attr{
		slog.String("event", string(f.Job.EventID)), slog.String("job", string(f.Job.ID)),
		consumerOf(f.Job), slog.Int("attempt", a.Number),
	}
	if f.Job.Lane.Queue() == "" { // no receiver was called for a message
		attrs = append(attrs, slog.Int("status", a.StatusCode), slog.Int64("duration_ms", a.Duration.Milliseconds()))
	}
	if a.Error != "" {
		attrs = append(attrs, slog.String("error", a.Error))
	}
	if !f.Outcome.DueAt.IsZero() {
		attrs = append(attrs, slog.String("due", core.FormatTime(f.Outcome.DueAt)))
	}
	line(log, level, message, attrs...)
}

// wordsOf returns the messages for the jobs of a lane.
func wordsOf(l core.Lane) deliveryWords {
	switch {
	case l.Alert():
		return alertWords
	case l.Queue() != "":
		return queueWords
	case l.Workflow() != "":
		return staleWords
	}
	return handlerWords
}

// pulled logs the requests of a queue's consumers. Consumers may send many, so most of these
// lines are at debug.
func (o logger) pulled(f core.Pulled) {
	level := slog.LevelDebug // consumers may send many requests
	if f.Action == core.MessagesReturned {
		level = slog.LevelInfo
	}
	line(o.pull, level, "messages "+string(f.Action), slog.String("queue", f.Queue), slog.Int("messages", f.Messages))
}

// moved logs that a circuit breaker opened, closed or was reset.
func (o logger) moved(f core.BreakerMoved) {
	if f.Gate.Open() {
		line(o.worker, slog.LevelError, "circuit breaker is open; deliveries wait", consumer(f.Lane),
			slog.String("probe", core.FormatTime(f.Gate.OpenUntil)))
		return
	}
	message := "circuit breaker is closed; deliveries go on, slowly at first"
	if f.Reset {
		message = "circuit breaker was reset; deliveries go on, slowly at first"
	}
	line(o.worker, slog.LevelInfo, message, consumer(f.Lane))
}

// operated logs the change of an operator.
func (o logger) operated(f core.Fact) {
	switch f := f.(type) {
	case core.Replayed:
		line(o.manage, slog.LevelInfo, "event replayed", slog.String("event", string(f.Event.ID)),
			slog.String("source", f.Event.Source), slog.String("type", f.Event.Type), slog.Int("jobs", len(f.Asked)))
	case core.EventCanceled:
		line(o.manage, slog.LevelInfo, "event canceled", slog.String("event", string(f.ID)),
			slog.Int("jobs", f.Jobs), slog.Int("runs", f.Runs), slog.Int("running", f.Running))
	case core.Revived:
		o.revived(f)
	case core.OperationBegun:
		line(o.manage, slog.LevelInfo, "operation begun", slog.String("operation", string(f.Operation.ID)),
			slog.String("action", string(f.Operation.Action)), slog.Int("rate", f.Operation.Rate), slog.String("by", f.Operation.By))
	case core.OperationEnded:
		o.operationEnded(f.Operation)
	case core.Drained:
		line(o.manage, slog.LevelWarn, "queue drained", slog.String("queue", f.Queue), slog.Int("messages", f.Messages))
	case core.LaneHeld:
		o.held(f.Hold)
	case core.LaneReleased:
		line(o.delivery(f.Lane), slog.LevelInfo, "hold was ended; jobs go on", consumer(f.Lane))
	case core.LineSkipped:
		line(o.manage, slog.LevelInfo, "dead job skipped; its line goes on", slog.String("job", string(f.Job.ID)), consumer(f.Job.Lane))
	}
}

// held logs that an operator held a lane.
func (o logger) held(h core.Hold) {
	attrs := []slog.Attr{consumer(h.Lane)}
	if !h.Until.IsZero() {
		attrs = append(attrs, slog.String("until", core.FormatTime(h.Until)))
	}
	if h.Reason != "" {
		attrs = append(attrs, slog.String("reason", h.Reason))
	}
	line(o.delivery(h.Lane), slog.LevelWarn, "held by an operator; its jobs wait", attrs...)
}

// delivery returns the logger for the outcomes of a lane's jobs. That of a source's lane is the
// logger of the intake.
func (o logger) delivery(l core.Lane) *slog.Logger {
	switch {
	case l.Source() != "":
		return o.intake
	case l.Alert():
		return o.alert
	case l.Queue() != "":
		return o.pull
	case l.Workflow() != "":
		return o.workflow
	}
	return o.worker
}

// consumerOf returns the attribute of [consumer] for a job's lane. An alert also has the host
// that it is posted to.
func consumerOf(j core.Job) slog.Attr {
	if j.Host == "" {
		return consumer(j.Lane)
	}
	return slog.Attr{Value: slog.GroupValue(consumer(j.Lane), slog.String("host", j.Host))}
}

// consumer returns the attribute that names a lane's consumer, or the source of a source's lane. Its key is handler for handlers
// only, so a search for a handler's lines finds no lines of queues, workflows or alerts. An
// alert has its whole lane, as in listings of jobs.
func consumer(l core.Lane) slog.Attr {
	switch {
	case l.Alert():
		return slog.String("lane", string(l))
	case l.Queue() != "":
		return slog.String("queue", l.Queue())
	case l.Workflow() != "":
		return slog.String("workflow", l.Workflow())
	case l.Source() != "":
		return slog.String("source", l.Source())
	}
	return slog.String("handler", l.Consumer())
}

// line writes a line without a context.
func line(l *slog.Logger, level slog.Level, message string, attrs ...slog.Attr) {
	l.LogAttrs(context.Background(), level, message, attrs...)
}
