package gateway

import (
	"maps"
	"net/textproto"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/egress"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/preview"
)

// Preview returns a configuration as a side of a comparison. It decides with the intake and the
// transforms of a gateway that serves the configuration. The configuration may be one of
// [config.ParseRules].
func Preview(c *config.Config) (preview.Side, error) {
	consumers, err := Consumers(c)
	if err != nil {
		return preview.Side{}, err
	}
	s := preview.Side{Sources: map[string]string{}, Consumers: previewed(c)}
	// The sources have no verifier and no client: stored events have no sender to check.
	var sources []intake.Source
	for _, source := range c.SortedSources() {
		s.Sources[source.Name] = source.Type
		sources = append(sources, intake.Source{Name: source.Name, Kind: kinds[source.Type], Schema: source.Schema.Value, Binary: source.Binary})
	}
	in := intake.New(intake.Deps{Sources: sources, Consumers: consumers})
	letters := lettersOf(c)
	s.Decide = func(e core.Event) preview.Outcome {
		arrival, err := in.Foresee(e)
		if err != nil {
			return preview.Outcome{Refused: err.Error()}
		}
		o := preview.Outcome{Undecided: arrival.Undecided, Jobs: make([]preview.Job, len(arrival.Jobs))}
		for i, j := range arrival.Jobs {
			o.Jobs[i] = preview.Job{NewJob: j}
			if compose := letters[j.Lane]; compose != nil {
				letter, err := compose(e)
				if err != nil {
					o.Jobs[i].Err = err.Error()
					continue
				}
				o.Jobs[i].Body, o.Jobs[i].ContentType = letter.Body, letter.ContentType
			}
		}
		return o
	}
	s.Why = func(e core.Event, lane core.Lane) string {
		for _, d := range intake.Decline(slices.DeleteFunc(slices.Clone(consumers), func(c intake.Consumer) bool { return c.Lane != lane }))(e) {
			return d.Why
		}
		return "it takes events of another source"
	}
	return s, nil
}

// lettersOf returns the functions that make the bodies of deliveries, by lane.
func lettersOf(c *config.Config) map[core.Lane]func(core.Event) (egress.Letter, error) {
	all := map[core.Lane]func(core.Event) (egress.Letter, error){}
	for _, h := range c.SortedHandlers() {
		t := egress.Target{Name: h.Name, Method: h.Method, Transform: h.Transform.Value}
		compose := t.HTTPLetter
		if h.Type == "grpc" {
			compose = t.GRPCLetter
		}
		all[core.HandlerLane(h.Name)] = compose
	}
	return all
}

// previewed returns the consumers of a comparison. Each has the settings that decide where and
// how an event is delivered, but not when or how often.
func previewed(c *config.Config) (all []preview.Consumer) {
	for _, h := range c.SortedHandlers() {
		all = append(all, preview.Consumer{Lane: core.HandlerLane(h.Name), Lined: h.Lines.Limit > 0, Settings: map[string]string{
			"url": h.URL, "type": h.Type, "method": h.Method, "headers": headerText(h),
		}})
	}
	for _, q := range c.SortedQueues() {
		all = append(all, preview.Consumer{Lane: core.QueueLane(q.Name), Lined: q.Lines.Limit > 0})
	}
	for _, w := range c.SortedWorkflows() {
		all = append(all, preview.Consumer{Lane: core.WorkflowLane(w.Name), Settings: map[string]string{"definition": c.Definition(w.Name).Hash}})
	}
	return all
}

// headerText returns the headers of a handler as one text, the same for the same headers.
func headerText(h config.Handler) string {
	own := map[string]string{}
	for name, value := range headers(h.Headers) {
		own[textproto.CanonicalMIMEHeaderKey(name)] = value
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(own)) {
		b.WriteString(name + "\x00" + own[name] + "\x00")
	}
	return b.String()
}
