package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventgateway/gateway/core"
)

// The results of a pass that deletes old records.
const (
	complete = "complete"
	partial  = "partial" // more is left, for the next pass
)

// purges counts the passes that deleted records. A partial pass shows that deleting does not
// keep up with new records. Gateways that share a database share the passes, so each counts
// some of them.
type purges struct{ passes words }

func newPurges(f factory) purges {
	passes := f.counter("purges_total", "Passes that deleted old records, by whether some were left: complete or partial.", "result")
	return purges{wording(passes, []string{complete, partial})}
}

func (p *purges) purged(f core.Purged) {
	if f.More {
		p.passes.count(partial)
		return
	}
	p.passes.count(complete)
}

// schedules counts slots that were never fired. Slots that passed unseen are a count of lost work:
// each is an event that was never made. Slots of held sources are not: an operator wanted it.
type schedules struct{ skipped, held known[prometheus.Counter] }

func newSchedules(f factory, sources []string) schedules {
	counters := func(name, help string) known[prometheus.Counter] {
		family := f.counter(name, help, "source")
		return knowing(sources, func(label string) prometheus.Counter { return family.WithLabelValues(label) })
	}
	return schedules{
		skipped: counters("cron_slots_skipped_total", "Slots of a schedule that passed unseen and were too old to be made up for."),
		held:    counters("cron_slots_held_total", "Slots of a schedule that made no events because an operator held the source."),
	}
}

func (s *schedules) passed(f core.Skipped) {
	of := s.skipped
	if f.Held {
		of = s.held
	}
	of.of(f.Source).Add(float64(f.Slots))
}
