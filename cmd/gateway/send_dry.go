package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/sns"
)

// dryRun lists the handlers and queues that would get a job for an event.
func (a *app) dryRun(ctx context.Context, cfg *config.Config, source config.Source, r sendRequest, l letter) error {
	arrival, err := a.foresee(ctx, cfg, source, r.eventType, l)
	if err != nil {
		return err
	}
	if arrival == nil {
		a.notef("the gateway answers this itself, and stores no event")
		return a.printMatches(cfg, nil)
	}
	return a.printMatches(cfg, arrival.Jobs)
}

// foresee is what the gateway would store of a letter, nil if nothing. It asks the
// real intake, with an inbox that keeps nothing, so that it cannot differ from what
// the gateway does. Signatures are not looked at.
func (a *app) foresee(ctx context.Context, cfg *config.Config, source config.Source, eventType string, l letter) (*core.Arrival, error) {
	consumers, err := gateway.Consumers(cfg)
	if err != nil {
		return nil, err
	}
	schema, err := gateway.Schema(source)
	if err != nil {
		return nil, err
	}
	seen := intake.Source{
		Name: source.Name, Kind: doors[source.Type], Provider: source.Verify, Schema: schema,
		Topic: sns.NewTopic(sns.Options{SkipVerify: true}),
	}
	var inbox dryInbox
	in := intake.New(intake.Deps{
		Inbox: &inbox, IDs: core.NewIDs(a.clock), Clock: a.clock, Sources: []intake.Source{seen}, Consumers: consumers,
	})
	request := intake.Request{Kind: seen.Kind, Source: source.Name, Header: intake.Header(l.header), Body: l.body, At: a.clock()}
	if seen.Kind == intake.Event {
		request.Type = eventType
	}
	_, err = in.Receive(ctx, request)
	return inbox.arrival, err
}

// doors are the kinds of sources that send posts to.
var doors = map[string]intake.Kind{"webhook": intake.Webhook, "event": intake.Event, "sns": intake.Topic}

// A dryInbox remembers what it was asked to store.
type dryInbox struct{ arrival *core.Arrival }

func (d *dryInbox) Accept(_ context.Context, a core.Arrival) (core.Receipt, error) {
	d.arrival = &a
	return core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}, nil
}

// warnOfType tells when a payload names another type than the one asked for. Posted
// by the provider it would have that type; posted to a topic it will, since the
// gateway looks at the subject last.
func (a *app) warnOfType(ctx context.Context, cfg *config.Config, source config.Source, eventType string, l letter) {
	if source.Type == "event" || source.Type == "webhook" && typeHeader(source) != ceType {
		return
	}
	l.header = l.header.Clone()
	l.header.Del(ceType)
	arrival, err := a.foresee(ctx, cfg, source, eventType, l)
	// What the gateway would refuse, it says itself. A payload that names no type is
	// an event like any other.
	if err != nil || arrival == nil || arrival.Event.Type == eventType || arrival.Event.Type == "event" {
		return
	}
	names := visible(arrival.Event.Type)
	if source.Type == "sns" {
		a.notef("the payload names its type, %s, which goes before the subject: the event is not of type %s", names, eventType)
		return
	}
	a.notef("the payload names its type, %s; the event is of type %s all the same, since -t says so", names, eventType)
}

// shownURL is an address without the parts that often are credentials.
func shownURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

type matchJSON struct {
	Name   string `json:"name"`
	Method string `json:"method"`
	URL    string `json:"url"`
}

type queueMatchJSON struct {
	Name string `json:"name"`
}

func (a *app) printMatches(cfg *config.Config, jobs []core.NewJob) error {
	matches, queues := []matchJSON{}, []queueMatchJSON{}
	for _, j := range jobs {
		if name := j.Lane.Queue(); name != "" {
			queues = append(queues, queueMatchJSON{name})
			continue
		}
		h := cfg.Handlers[j.Lane.Handler()]
		matches = append(matches, matchJSON{h.Name, h.Method, shownURL(h.URL)})
	}
	if a.json {
		return a.printJSON(struct {
			Handlers     []matchJSON      `json:"handlers"`
			Queues       []queueMatchJSON `json:"queues"`
			WorkflowRuns []struct{}       `json:"workflows"`
		}{matches, queues, []struct{}{}})
	}
	if len(jobs) == 0 {
		a.notef("no handler and no queue wants this event")
		return nil
	}
	a.printGrid(matchGrid(matches, queues))
	return nil
}

func matchGrid(matches []matchJSON, queues []queueMatchJSON) grid {
	g := grid{heading: []string{"HANDLER", "DELIVERS TO"}}
	for _, m := range matches {
		g.add(visible(m.Name), visible(fmt.Sprintf("%s %s", m.Method, m.URL)))
	}
	for _, q := range queues {
		g.add(visible(string(core.QueueLane(q.Name))), visible("consumers of queue "+q.Name))
	}
	return g
}
