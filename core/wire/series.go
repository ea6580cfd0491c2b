package wire

import (
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// Series is how much happened in each step of the last hour or day. Lists of numbers have one number
// for each step, the oldest first.
type Series struct {
	Window string `json:"window"`       // hour or day
	From   Time   `json:"from"`         // when the first step begins
	Until  Time   `json:"until"`        // the end of the counted time; the last step may end later
	Step   int    `json:"step_seconds"` // the length of a step
	Steps  int    `json:"steps"`        // how many there are

	Sources   []SourceSeries   `json:"sources"`
	Consumers []ConsumerSeries `json:"consumers"` // handlers, then queues, then workflows
}

// SourceSeries are the events of a source.
type SourceSeries struct {
	Name     string `json:"name"`
	Accepted []int  `json:"accepted"`
}

// ConsumerSeries are the deliveries of a consumer.
type ConsumerSeries struct {
	Name      string `json:"name"` // see [core.Lane.Consumer]
	Completed []int  `json:"completed"`
	Failed    []int  `json:"failed"`
	Dead      []int  `json:"dead"`
}

// SeriesOf returns the record of curves.
func SeriesOf(c manage.Curves) Series {
	numbers := func(curve manage.Curve, number func(core.Counts) int) []int { return List(curve.Steps, number) }
	s := Series{Window: string(c.Window), From: Time{c.From}, Until: Time{c.Until}, Step: int(c.Step.Seconds())}
	_, s.Steps = c.Window.Steps()
	s.Sources = List(c.Sources, func(curve manage.Curve) SourceSeries {
		return SourceSeries{curve.Lane.Source(), numbers(curve, func(n core.Counts) int { return n.Accepted })}
	})
	s.Consumers = List(c.Consumers, func(curve manage.Curve) ConsumerSeries {
		return ConsumerSeries{
			Name:      curve.Lane.Consumer(),
			Completed: numbers(curve, func(n core.Counts) int { return n.Completed }),
			Failed:    numbers(curve, func(n core.Counts) int { return n.Failed }),
			Dead:      numbers(curve, func(n core.Counts) int { return n.Dead }),
		}
	})
	return s
}
