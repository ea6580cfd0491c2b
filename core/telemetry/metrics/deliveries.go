package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/telemetry"
)

var (
	// deliveryBuckets are in seconds. They reach to the longest timeouts.
	deliveryBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

	// lagBuckets are in seconds. They reach from a waiting worker (5 ms) to one that was down
	// for half an hour.
	lagBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 5, 15, 60, 300, 1800}
)

// ends are the statuses of a job after an attempt.
var ends = []core.Status{core.Completed, core.Retryable, core.Dead}

// classes are the texts before the first colon of an attempt's error. Package egress defines
// most of them.
var classes = []string{
	"blocked", "connect", "data", "dns", "protocol", "status", "timeout", "tls", "transform",
	core.LeaseExpired, telemetry.Other,
}

// deliveries counts the outcomes of jobs.
//
// mortality has a series for every lane, also for those of queues and workflows: one alert rule on
// dlq_total covers all work that was given up.
type deliveries struct {
	handlers  known[*handler]
	alerts    known[words] // the results, by the lane of the alert place
	mortality known[prometheus.Counter]
}

// A handler holds the metrics of one handler.
//
// took and lag are resolved observers, so that an attempt hashes no label.
type handler struct {
	results, errors words
	moved           words
	took, lag       prometheus.Observer
}

// The states that a circuit breaker can change to.
const (
	open   = "open"
	closed = "closed"
)

// newDeliveries makes the series of all handlers, alert places and lanes.
func newDeliveries(f factory, n telemetry.Names) deliveries {
	results := f.counter("deliveries_total", "Attempts to deliver to a handler, by the status they left the job in.", "handler", "result")
	failures := f.counter("delivery_errors_total", "Attempts to deliver to a handler that failed, by the class of the error.", "handler", "class")
	moved := f.counter("circuit_breaker_transitions_total", "Times that a circuit breaker opened or closed.", "handler", "to")
	took := f.seconds("delivery_duration_seconds", "How long attempts to deliver took.", deliveryBuckets, "handler")
	lag := f.seconds("delivery_lag_seconds", "From an event's being accepted to the first attempt to deliver it.", lagBuckets, "handler")
	dead := f.counter("dlq_total", "Jobs that died and workflow runs that failed.", "target")
	alerts := f.counter("alerts_total", "Attempts to deliver an alert, by the status they left the job in.", "type", "result")
	return deliveries{
		handlers: knowing(n.Handlers, func(label string) *handler {
			return &handler{
				results: wording(results, ends, label), errors: wording(failures, classes, label),
				moved: wording(moved, []string{open, closed}, label),
				took:  took.WithLabelValues(label), lag: lag.WithLabelValues(label),
			}
		}),
		alerts: placing(n.Alerts, func(label string) words { return wording(alerts, ends, label) }),
		mortality: knowing(targets(n), func(label string) prometheus.Counter {
			return dead.WithLabelValues(label)
		}),
	}
}

// placing makes a value for each alert place, labelled with the place's type.
func placing[T any](places map[core.Lane]string, of func(label string) T) known[T] {
	k := known[T]{named: make(map[string]T, len(places)), other: of(telemetry.Other)}
	for lane, label := range places {
		k.named[string(lane)] = of(label)
	}
	return k
}

// targets returns the names of all lanes, as the API and the command line write them.
func targets(n telemetry.Names) (all []string) {
	add := func(l core.Lane) { all = append(all, l.Consumer()) }
	for _, name := range n.Handlers {
		add(core.HandlerLane(name))
	}
	for _, name := range n.Queues {
		add(core.QueueLane(name))
	}
	for name := range n.Workflows {
		add(core.WorkflowLane(name))
	}
	for lane := range n.Alerts {
		add(lane)
	}
	return all
}

// settled counts an attempt. Attempts at queue messages are counted by [queues.pulled] instead,
// except dead messages.
func (d *deliveries) settled(f core.Settled) {
	// A dead job counts in every kind of lane. The rest depends on the kind.
	lane, o := f.Job.Lane, f.Outcome
	if o.Status == core.Dead {
		d.mortality.of(lane.Consumer()).Inc()
	}
	switch kindOf(lane) {
	case ofHandler:
		d.handlers.of(lane.Handler()).settled(f.Job, o)
	case ofAlert:
		d.alerts.of(string(lane)).count(string(o.Status))
	}
}

// settled counts an attempt. An attempt that was never sent has no duration, and only its
// result is counted. The lag is measured only at a job's first attempt: an earlier lease, or a
// retry by an operator, would add its own waiting time.
func (h *handler) settled(j core.Job, o core.Outcome) {
	a := o.Attempt
	// An attempt has one result. A failed one also has a class of error.
	h.results.count(string(o.Status))
	if a.Error != "" {
		h.errors.count(classOf(a.Error))
	}
	if a.Duration <= 0 {
		return
	}
	h.took.Observe(a.Duration.Seconds())
	if a.Number == 1 && j.Attempt <= 1 && j.LastError == "" {
		h.lag.Observe(max(a.StartedAt.Sub(j.CreatedAt), 0).Seconds())
	}
}

// classOf returns the class of an error: the text before its first colon.
func classOf(err string) string {
	class, _, _ := strings.Cut(err, ":")
	return class
}

// moved counts that a circuit breaker opened or closed.
func (d *deliveries) moved(f core.BreakerMoved) {
	to := closed
	if f.Gate.Open() {
		to = open
	}
	d.handlers.of(f.Lane.Handler()).moved.count(to)
}

// runMoved counts a failed run.
func (d *deliveries) runMoved(f core.RunMoved) {
	if f.Run.Status == core.RunFailed {
		d.mortality.of(core.WorkflowLane(f.Run.Workflow).Consumer()).Inc()
	}
}

// count adds 1 to the counter of a word. A word that is not in w counts as [telemetry.Other].
func (w words) count(word string) {
	c, ok := w[word]
	if !ok {
		c = w[telemetry.Other]
	}
	c.Inc()
}

// queues counts the messages that the consumers of queues receive, settle, extend and return.
//
// A message that becomes dead counts here, and in dlq_total by way of its Settled fact.
type queues struct{ messages known[words] }

var actions = []core.PullAction{
	core.MessagesReceived, core.MessagesAcked, core.MessagesRetried, core.MessagesDead, core.MessagesExtended, core.MessagesReturned,
}

func newQueues(f factory, n telemetry.Names) queues {
	messages := f.counter("queue_messages_total", "Messages of a queue, by the act of a consumer.", "queue", "action")
	return queues{knowing(n.Queues, func(label string) words { return wording(messages, actions, label) })}
}

// pulled counts the messages of one request.
func (q *queues) pulled(f core.Pulled) {
	q.messages.of(f.Queue)[string(f.Action)].Add(float64(f.Messages))
}
