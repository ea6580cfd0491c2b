package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/telemetry"
)

// The results of a request with an event.
const (
	accepted   = "accepted"
	duplicate  = "duplicate"
	unverified = "unverified"
	invalid    = "invalid"
	tooLarge   = "too_large"
	refused    = "refused" // wrong token, address or encoding, or an unknown source
	looped     = "looped"  // passed on by too many gateways
	failed     = "failed"  // an error of the gateway or its database
)

// intakeBuckets are in seconds. They reach from a commit on the same machine (1 ms) to a sender
// on a slow line (10 s).
var intakeBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}

// intake counts received events and the jobs made for them.
type intake struct {
	sources known[*source]
	created map[string]prometheus.Counter // by the kind of consumer
	failed  known[prometheus.Counter]     // failures of filters, by consumer
}

// A source holds the metrics of one source.
//
// The first group is events_received_total by result. Each request moves exactly one of them.
type source struct {
	accepted, duplicate, unverified, invalid, tooLarge, refused, looped, failed prometheus.Counter

	repeated, forged prometheus.Counter // counted again, as families of their own
	took             prometheus.Observer
}

// newIntake makes the series of all sources, of all kinds of consumers, and of all filters.
func newIntake(f factory, n telemetry.Names) intake {
	received := f.counter("events_received_total", "Requests with an event, by their result.", "source", "result")
	repeated := f.counter("events_duplicated_total", "Events that had been received before.", "source")
	forged := f.counter("verification_failures_total", "Requests whose sender could not be verified.", "source")
	took := f.seconds("intake_duration_seconds", "From the first byte of a request to the commit of its event.", intakeBuckets, "source")
	created := f.counter("jobs_created_total", "Jobs created for events, by the kind of consumer.", "kind")
	filters := f.counter("filter_failures_total", "Events about which the filter of a consumer gave no answer, so that it got no job.", "target")
	return intake{
		failed: knowing(filtering(n), func(label string) prometheus.Counter { return filters.WithLabelValues(label) }),
		sources: knowing(n.Sources, func(label string) *source {
			result := func(r string) prometheus.Counter { return received.WithLabelValues(label, r) }
			return &source{
				accepted: result(accepted), duplicate: result(duplicate), unverified: result(unverified), invalid: result(invalid),
				tooLarge: result(tooLarge), refused: result(refused), looped: result(looped), failed: result(failed),
				repeated: repeated.WithLabelValues(label), forged: forged.WithLabelValues(label), took: took.WithLabelValues(label),
			}
		}),
		created: wording(created, kinds),
	}
}

// accepted counts an event. The gateway's own alerts are not counted as received, but their
// jobs are counted.
func (i *intake) accepted(f core.Accepted) {
	if f.Event.Source != core.AlertSource {
		s := i.sources.of(f.Event.Source)
		s.accepted.Inc()
		s.took.Observe(f.Took.Seconds())
	}
	i.count(f.Asked, f.Jobs)
}

// count counts the stored jobs, by the kind of their consumer. If stored is less than
// len(asked), some jobs with a key were left out as repeats. Their number is exact; which ones
// were left out is not known, so the first jobs with a key are counted.
func (i *intake) count(asked []core.NewJob, stored int) {
	allStored := stored == len(asked)
	for _, j := range asked {
		if allStored || j.Key == "" {
			i.created[kindOf(j.Lane)].Inc()
			stored--
		}
	}
	for _, j := range asked {
		if stored > 0 && j.Key != "" {
			i.created[kindOf(j.Lane)].Inc()
			stored--
		}
	}
}

// filtering returns the names of all consumers that can have a filter, as the API and the
// command line write them.
func filtering(n telemetry.Names) []string {
	return targets(telemetry.Names{Handlers: n.Handlers, Queues: n.Queues})
}

func (i *intake) filterFailed(f core.FilterFailed) { i.failed.of(f.Lane.Consumer()).Inc() }

func (i *intake) repeated(f core.Repeated) {
	s := i.sources.of(f.Source)
	s.duplicate.Inc()
	s.repeated.Inc()
}

func (i *intake) unverified(f core.Unverified) {
	s := i.sources.of(f.Source)
	s.unverified.Inc()
	s.forged.Inc()
}

// turnedAway counts a refused request by the kind of the refusal.
func (i *intake) turnedAway(f core.TurnedAway) {
	s := i.sources.of(f.Source)
	switch f.Kind {
	case core.Invalid:
		s.invalid.Inc()
	case core.TooLarge:
		s.tooLarge.Inc()
	case core.Unauthorized, core.Forbidden, core.NotFound, core.Unsupported:
		s.refused.Inc()
	case core.Looped:
		s.looped.Inc()
	default:
		s.failed.Inc()
	}
}

// The kinds of consumers: the first parts of lanes.
const (
	ofHandler  = "handler"
	ofQueue    = "queue"
	ofWorkflow = "workflow"
	ofAlert    = "alert"
)

var kinds = []string{ofHandler, ofQueue, ofWorkflow, ofAlert}

// kindOf returns the kind of a lane's consumer.
func kindOf(l core.Lane) string {
	switch {
	case l.Alert():
		return ofAlert
	case l.Queue() != "":
		return ofQueue
	case l.Workflow() != "":
		return ofWorkflow
	}
	return ofHandler
}
