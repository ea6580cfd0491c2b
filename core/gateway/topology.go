package gateway

import (
	"cmp"
	"net/url"
	"strconv"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/wire"
)

// Topology returns the entries of a configuration, and the next times of its schedules after now.
func Topology(c *config.Config, now time.Time) wire.Topology {
	t := wire.Topology{Sources: []wire.ConfiguredSource{}, Consumers: []wire.ConfiguredConsumer{}, Alerts: []wire.ConfiguredAlert{}}
	for _, s := range c.SortedSources() {
		t.Sources = append(t.Sources, configuredSource(s, now))
	}
	for _, h := range c.SortedHandlers() {
		t.Consumers = append(t.Consumers, wire.ConfiguredConsumer{
			Name: core.HandlerLane(h.Name).Consumer(), Kind: "handler", Source: h.Source, Events: orEmpty(h.Events), Filter: h.Filter.Text,
			IdempotencyKey: h.IdempotencyKey.Text, Delay: h.Delay.Seconds(), Lines: linedOf(h.Lines), Attempts: h.Retry.Max,
			URL: withoutSecrets(h.URL), Protocol: h.Type, Method: h.Method, Transform: h.Transform.Value != nil, RateLimit: h.RateLimit,
		})
	}
	for _, q := range c.SortedQueues() {
		t.Consumers = append(t.Consumers, wire.ConfiguredConsumer{
			Name: core.QueueLane(q.Name).Consumer(), Kind: "queue", Source: q.Source, Events: orEmpty(q.Events), Filter: q.Filter.Text,
			IdempotencyKey: q.IdempotencyKey.Text, Delay: q.Delay.Seconds(), Lines: linedOf(q.Lines), Attempts: q.MaxAttempts,
			VisibilityTimeout: q.VisibilityTimeout.Seconds(),
		})
	}
	for _, w := range c.SortedWorkflows() {
		consumer := wire.ConfiguredConsumer{Name: core.WorkflowLane(w.Name).Consumer(), Kind: "workflow", Source: w.Source, Events: orEmpty(w.Events)}
		for _, s := range w.Steps {
			consumer.Steps = append(consumer.Steps, s.Name)
		}
		t.Consumers = append(t.Consumers, consumer)
	}
	for i, a := range c.Alerts {
		alert := wire.ConfiguredAlert{Name: strconv.Itoa(i + 1), Type: a.Type, On: orEmpty(a.On)}
		if u, err := url.Parse(a.URL.Reveal()); err == nil {
			alert.Host = u.Hostname()
		}
		t.Alerts = append(t.Alerts, alert)
	}
	return t
}

// configuredSource returns the record of a source.
func configuredSource(s config.Source, now time.Time) wire.ConfiguredSource {
	record := wire.ConfiguredSource{Name: s.Name, Type: s.Type, Verify: s.Verify}
	switch s.Type {
	case "webhook":
		record.Path = "/webhooks/" + s.Name
	case "sns":
		record.Path = "/sns/" + s.Name
	case "event":
		record.Path = "/events/" + s.Name + "/{event_type}"
	case "cron":
		record.Schedule, record.Timezone = s.Schedule.Text, cmp.Or(s.Timezone, "UTC")
		at := now
		for range wire.NextTimes {
			if at = s.Schedule.Value.Next(at); at.IsZero() {
				break
			}
			record.Next = append(record.Next, wire.Time{Time: at})
		}
	}
	return record
}

// linedOf returns the record of the lines of a handler or queue; nil if it has none.
func linedOf(l config.Lines) *wire.Lined {
	if l.Limit == 0 {
		return nil
	}
	return &wire.Lined{Key: l.Key.Text, Limit: l.Limit, OnDead: l.OnDead}
}

// withoutSecrets returns an address without the parts that often have credentials. An address that
// cannot be read is left out: any part of it may be secret.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}

// orEmpty returns a list that is not nil.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
