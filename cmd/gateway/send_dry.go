package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/sns"
	"github.com/eventgateway/gateway/core/wire"
)

// dryRun lists the handlers, queues and workflows that would get a job for an event.
func (a *app) dryRun(ctx context.Context, cfg *config.Config, source config.Source, r sendRequest, l letter) error {
	arrival, err := a.foresee(ctx, cfg, source, r.eventType, l)
	if err != nil {
		return err
	}
	if arrival == nil {
		a.Notef("the gateway answers this itself, and stores no event")
		arrival = &core.Arrival{}
	}
	return a.printMatches(cfg, arrival)
}

// declined returns the consumers that would not get a job for an event. Consumers whose filter
// fails are reported separately.
func declined(cfg *config.Config, arrival *core.Arrival) ([]core.Declined, error) {
	consumers, err := gateway.Consumers(cfg)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(intake.Decline(consumers)(arrival.Event), func(d core.Declined) bool {
		return slices.ContainsFunc(arrival.Undecided, func(u core.Undecided) bool { return u.Lane == d.Lane })
	}), nil
}

// foresee returns the arrival that the gateway would store for a letter, or nil. It uses the
// real intake with an inbox that stores nothing, so its result equals the gateway's.
// Signatures are not checked.
func (a *app) foresee(ctx context.Context, cfg *config.Config, source config.Source, eventType string, l letter) (*core.Arrival, error) {
	consumers, err := gateway.Consumers(cfg)
	if err != nil {
		return nil, err
	}
	// The source accepts every signature: a dry run is about filters and types, and the caller
	// may not have the secret.
	seen := intake.Source{
		Name: source.Name, Kind: doors[source.Type], Provider: source.Verify, Schema: source.Schema.Value, Binary: source.Binary,
		Topic: sns.NewTopic(sns.Options{SkipVerify: true}),
	}
	if source.Verify != "" {
		seen.Verify = func(intake.Request) error { return nil }
	}
	var inbox dryInbox
	in := intake.New(intake.Deps{
		Inbox: &inbox, IDs: core.NewIDs(a.clock), Clock: a.clock, Sources: []intake.Source{seen}, Consumers: consumers,
	})
	// Only the route of an event source has the type in its path. Other kinds find it in
	// headers or in the payload.
	request := intake.Request{Kind: seen.Kind, Source: source.Name, Header: intake.Header(l.header), Body: l.body, At: a.clock()}
	if seen.Kind == intake.Event {
		request.Type = eventType
	}
	_, err = in.Receive(ctx, request)
	return inbox.arrival, err
}

// doors maps types of sources that accept posts to kinds of intake.
var doors = map[string]intake.Kind{"webhook": intake.Webhook, "event": intake.Event, "sns": intake.Topic}

// A dryInbox records the arrival instead of storing it.
type dryInbox struct{ arrival *core.Arrival }

// Accept keeps the arrival and answers like a store.
func (d *dryInbox) Accept(_ context.Context, a core.Arrival) (core.Receipt, error) {
	d.arrival = &a
	return core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}, nil
}

// warnOfType warns of a payload that names another type than the requested one. If the
// payload is signed or goes to a topic, the event will have the payload's type. Otherwise the
// provider would give the event that type.
func (a *app) warnOfType(ctx context.Context, cfg *config.Config, source config.Source, eventType string, l letter) {
	if source.Type == "event" {
		return
	}
	if named := a.otherType(ctx, cfg, source, eventType, l); named != "" {
		a.Notef("the payload names its type, %s, which goes before %s: the event is not of type %s",
			terminal.Visible(named), typePlace(source), eventType)
		return
	}
	if source.Type != "webhook" || source.Verify != "" {
		return
	}
	l.header = l.header.Clone()
	l.header.Del(ceType)
	if named := a.otherType(ctx, cfg, source, eventType, l); named != "" {
		a.Notef("the payload names its type, %s; the event is of type %s all the same, since -t says so", terminal.Visible(named), eventType)
	}
}

// otherType returns the type that the gateway would give a letter, or "" if it is the
// requested type. The gateway itself reports a type that it refuses. A payload without a type
// needs no warning.
func (a *app) otherType(ctx context.Context, cfg *config.Config, source config.Source, eventType string, l letter) string {
	arrival, err := a.foresee(ctx, cfg, source, eventType, l)
	if err != nil || arrival == nil || arrival.Event.Type == eventType || arrival.Event.Type == "event" {
		return ""
	}
	return arrival.Event.Type
}

// typePlace returns the place where a letter to a source names the type, in words.
func typePlace(source config.Source) string {
	if source.Type == "sns" {
		return "the subject"
	}
	return "the header " + strings.ToLower(typeHeader(source))
}

// shownURL returns an address without the parts that often are credentials.
func shownURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// The records of --json. They name the receiver, so that a script can check where an event
// would go.
type matchJSON struct {
	Name   string `json:"name"`
	Method string `json:"method"`
	URL    string `json:"url"`
}

type queueMatchJSON struct {
	Name string `json:"name"`
}

type workflowMatchJSON struct {
	Name string `json:"name"`
	Step string `json:"first_step"`
}

// matches are the consumers that would get a job for an event, and those declining it.
type matches struct {
	Handlers  []matchJSON         `json:"handlers"`
	Queues    []queueMatchJSON    `json:"queues"`
	Workflows []workflowMatchJSON `json:"workflows"`
	Declined  []wire.Declined     `json:"declined"`
}

// matchesOf returns the consumers with a job or a run in an arrival. Its lists are never nil:
// JSON shows empty lists, not null.
func matchesOf(cfg *config.Config, arrival *core.Arrival) matches {
	m := matches{[]matchJSON{}, []queueMatchJSON{}, []workflowMatchJSON{}, []wire.Declined{}}
	for _, j := range arrival.Jobs {
		if name := j.Lane.Queue(); name != "" {
			m.Queues = append(m.Queues, queueMatchJSON{name})
		}
		if h, ok := cfg.Handlers[j.Lane.Handler()]; ok {
			m.Handlers = append(m.Handlers, matchJSON{h.Name, h.Method, shownURL(h.URL)})
		}
	}
	for _, r := range arrival.Runs {
		m.Workflows = append(m.Workflows, workflowMatchJSON{r.Workflow, r.Step})
	}
	return m
}

// printMatches prints the consumers that would get the event, and the declining ones with the reason. Consumers whose filter fails are reported on standard error, since nothing says
// whether they want the event.
func (a *app) printMatches(cfg *config.Config, arrival *core.Arrival) error {
	m := matchesOf(cfg, arrival)
	unwilling, err := declined(cfg, arrival)
	if err != nil {
		return err
	}
	m.Declined = append(m.Declined, wire.DeclinedBy(unwilling)...)
	for _, u := range arrival.Undecided {
		a.Notef("%s: %v; it would get no job", u.Lane.Filter(), u.Why)
	}
	if a.json {
		return a.PrintJSON(m)
	}
	if len(arrival.Jobs) == 0 && len(arrival.Undecided) == 0 {
		a.Notef("no handler, queue or workflow wants this event")
	} else {
		a.PrintGrid(m.grid())
	}
	if len(unwilling) > 0 {
		if len(arrival.Jobs) > 0 {
			a.Printf("")
		}
		a.PrintGrid(declinedGrid(unwilling))
	}
	return nil
}

// grid returns the table of the consumers that would get the event.
func (m matches) grid() terminal.Grid {
	g := terminal.Grid{Heading: []string{"HANDLER", "DELIVERS TO"}}
	for _, h := range m.Handlers {
		g.Add(terminal.Visible(h.Name), terminal.Visible(fmt.Sprintf("%s %s", h.Method, h.URL)))
	}
	for _, q := range m.Queues {
		g.Add(terminal.Visible(string(core.QueueLane(q.Name))), terminal.Visible("consumers of queue "+q.Name))
	}
	for _, w := range m.Workflows {
		g.Add(terminal.Visible(string(core.WorkflowLane(w.Name))), terminal.Visible("a run that begins with "+w.Step))
	}
	return g
}

// AcceptAll accepts one arrival after the other.
func (d *dryInbox) AcceptAll(ctx context.Context, all []core.Arrival) (receipts []core.Receipt, err error) {
	for _, a := range all {
		r, err := d.Accept(ctx, a)
		if err != nil {
			return nil, err
		}
		receipts = append(receipts, r)
	}
	return receipts, nil
}
