package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/intake"
)

// dryRun lists the handlers that would get a job for an event. It asks the real
// intake, with an inbox that keeps nothing, so that the answer cannot differ from
// what the gateway does.
func (a *app) dryRun(ctx context.Context, cfg *config.Config, source config.Source, eventType string, payload []byte) error {
	var inbox dryInbox
	in := intake.New(intake.Deps{
		Inbox:     &inbox,
		IDs:       core.NewIDs(a.clock),
		Clock:     a.clock,
		Sources:   []intake.Source{{Name: source.Name, Kind: kindOf(source)}},
		Consumers: gateway.Consumers(cfg),
	})
	_, err := in.Receive(ctx, intake.Request{
		Kind:   kindOf(source),
		Source: source.Name,
		Type:   pathType(source, eventType),
		Header: intake.Header{"Ce-Type": {eventType}},
		Body:   payload,
		At:     a.clock(),
	})
	if err != nil {
		return err
	}
	return a.printMatches(cfg, inbox.jobs)
}

// A dryInbox remembers what it was asked to store.
type dryInbox struct{ jobs []core.NewJob }

func (d *dryInbox) Accept(_ context.Context, a core.Arrival) (core.Receipt, error) {
	d.jobs = a.Jobs
	return core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}, nil
}

func kindOf(s config.Source) intake.Kind {
	if s.Type == "webhook" {
		return intake.Webhook
	}
	return intake.Event
}

// pathType is the event type as far as the path of a request has it.
func pathType(s config.Source, eventType string) string {
	if s.Type == "webhook" {
		return ""
	}
	return eventType
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

func (a *app) printMatches(cfg *config.Config, jobs []core.NewJob) error {
	matches := records(jobs, func(j core.NewJob) matchJSON {
		h := cfg.Handlers[j.Lane.Handler()]
		return matchJSON{h.Name, h.Method, shownURL(h.URL)}
	})
	if a.json {
		return a.printJSON(struct {
			Handlers     []matchJSON `json:"handlers"`
			WorkflowRuns []struct{}  `json:"workflows"`
		}{matches, []struct{}{}})
	}
	if len(matches) == 0 {
		a.notef("no handler wants this event")
		return nil
	}
	g := grid{heading: []string{"HANDLER", "DELIVERS TO"}}
	for _, m := range matches {
		g.add(visible(m.Name), visible(fmt.Sprintf("%s %s", m.Method, m.URL)))
	}
	a.printGrid(g)
	return nil
}
