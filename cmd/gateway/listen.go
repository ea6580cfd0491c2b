package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/egress"
	"github.com/eventgateway/gateway/core/endpoint"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/units"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

const listenLong = `Follow the events of the gateway at --url, and post each one to --to, such as a server that
you develop on this machine: with the headers, the body and the signature of a delivery. The
answers are printed.

This is no tunnel, and nothing is settled: the gateway delivers to its own handlers and
retries as if no command listened, and does not learn of the answers here. A token that
may read suffices.

Without --handler, all events are posted unchanged, as to a handler named listen; --source,
--event-type and --match select some. They are signed with the secret of --secret or of
GATEWAY_SIGNING_SECRET. With --handler, the configuration here (-c) says which events that
handler wants, and its transform, headers, method, timeout and secret are used. No secret is
fetched from the gateway.

It begins now, at --since, or after the event --after. Events are posted one at a time, in the
order of their ids. If they come faster than they are answered, they wait in the gateway, and
listen says how far it is behind. If the gateway does not answer, listen tries again and goes on
where it was: no event is left out or posted twice.

An event that was answered is not posted again, also if the status is an error. Only if no
connection comes about, as while the server here restarts, the same event is tried again
for up to --wait. Once that time is over, each event is tried once, until the server is
back. Redirects are not followed.`

// newListen makes "gateway listen": it posts the events of a gateway elsewhere to an address of
// this machine, until Ctrl-C (exit code 130). It asks GET /api/tail as "gateway tail" does, and GET
// /api/events/{id} for each event that it posts. The request is made by package egress, which makes
// the deliveries of a gateway.
//
// It asks once a second and does not wait in the gateway: a waiting call would occupy a function
// for the whole time. After [quietFor] without an event it asks every three seconds.
func newListen(a *app) *cobra.Command {
	var f listenFlags
	c := &cobra.Command{
		Use:   "listen",
		Short: "Post the events of a gateway elsewhere to this machine",
		Long:  listenLong,
		Example: `  gateway listen --url https://events.example.com --to http://localhost:3000/hooks
  gateway listen --url https://events.example.com --to http://localhost:3000/hooks --handler billing -c gateway.yaml
  gateway listen --url https://events.example.com --to http://localhost:3000/hooks --source shop -t 'order.*' --match '$.total > 100' --since 10m`,
		GroupID: groupInspect,
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := a.prepareListen(c.Context(), f)
			if err != nil {
				return err
			}
			defer l.calls.Close()
			l.again = func(last core.ID) string {
				return a.commandLine(c.CommandPath(), c.Flags(), f.unsaid()...) + " --after " + string(last)
			}
			return a.ask(c.Context(), func(op *operator) error {
				l.tail, l.events = op.tail, op.events
				return l.listen(c.Context())
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.to, "to", "", "post the events to this `address`, such as http://localhost:3000/hooks")
	flags.StringVar(&f.handler, "handler", "", "post the deliveries that this `handler` of the configuration here would get")
	flags.StringVar(&f.source, "source", "", "only events of this `source`")
	flags.StringVarP(&f.eventType, "event-type", "t", "", "only events of exactly this `type`, or, with a * at its end, of all that begin so")
	flags.StringVar(&f.match, "match", "", "only events that this `filter` matches, such as '$.total > 100'")
	flags.StringVar(&f.secret, "secret", "", "sign with this `secret`; other users see it in the process list, unlike GATEWAY_SIGNING_SECRET")
	flags.StringVar(&f.timeout, "timeout", "", "the `time` that one answer may take, 1ms to 1h (default the handler's, or 30s)")
	flags.StringVar(&f.wait, "wait", "30s", "the `time` for which an event is tried again if no connection comes about, 0s to 1h")
	sinceFlag(c, &f.since, "begin at this `time`")
	flags.StringVar(&f.after, "after", "", "begin after the event with this `id`")
	a.complete(c, "handler", a.ownHandlers)
	a.complete(c, "source", a.sourceNames)
	a.complete(c, "event-type", a.recentTypes)
	return remotely(c)
}

// ownHandlers offers the handlers of the configuration here.
func (a *app) ownHandlers(c *cobra.Command) []cobra.Completion {
	cfg, err := a.loadConfig(c.Context())
	if err != nil {
		return nil
	}
	return wire.List(cfg.SortedHandlers(), func(h config.Handler) cobra.Completion { return ofSource(h.Name, h.Source) })
}

// listenFlags are the flags of the command.
type listenFlags struct {
	to, handler, source, eventType, match, secret, timeout, wait, since, after string
}

// unsaid are the flags that the command to go on with leaves out: --since, which may be later than
// --after by then, and an address that may hold a secret.
func (f listenFlags) unsaid() []string {
	if shownURL(f.to) == f.to {
		return []string{"since"}
	}
	return []string{"since", "to"}
}

// prepareListen checks the flags before anything is asked.
func (a *app) prepareListen(ctx context.Context, f listenFlags) (*listening, error) {
	if err := f.check(a); err != nil {
		return nil, err
	}
	l := &listening{app: a, drop: drop{to: f.to}, choice: choice{source: f.source, eventType: f.eventType}, seen: map[core.ID]bool{}}
	var err error
	if l.at, err = cursorAt(f.since, a.clock()); err != nil {
		return nil, err
	}
	if f.after != "" {
		if l.at.Event, err = parseID(f.after); err != nil {
			return nil, err
		}
	}
	// Jobs are not shown, so no finished job is asked for: none finishes that late.
	l.at.Finished = never
	if f.match != "" {
		if l.match, err = intake.Select(f.match); err != nil {
			return nil, usagef("--match: %v", err)
		}
	}
	if l.wait, err = span("--wait", f.wait, 0); err != nil {
		return nil, err
	}
	return l, a.addressee(ctx, f, l)
}

// never is a time at which no job finishes.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// check refuses missing flags, and flags that contradict each other.
func (f listenFlags) check(a *app) error {
	switch {
	case !a.remote():
		return usagef("--url is missing: the address of the gateway whose events are posted, such as https://events.example.com")
	case f.to == "":
		return usagef("--to is missing: the address to which the events are posted, such as http://localhost:3000/hooks")
	case f.since != "" && f.after != "":
		return usagef("give --since or --after, not both")
	case f.source == core.AlertSource: // a look leaves them out
		return usagef("--source %s is not followed: alerts are for people, and no handler gets them", core.AlertSource)
	case f.handler != "" && f.source != "":
		return usagef("give --handler or --source, not both: the events of a handler are those of its source")
	}
	if err := endpoint.CheckURL(f.to); err != nil {
		return usagef("--to %v", err)
	}
	return nil
}

// span reads a duration from least to an hour.
func span(flag, text string, least time.Duration) (time.Duration, error) {
	d, err := units.ParseDuration(text)
	if err != nil {
		return 0, usagef("%s %v", flag, err)
	}
	if d.Duration < least || d.Duration > time.Hour {
		return 0, usagef("%s must be %s to 1h, not %s", flag, least, text)
	}
	return d.Duration, nil
}

// addressee sets the handler as which events are delivered, and its sender.
func (a *app) addressee(ctx context.Context, f listenFlags, l *listening) error {
	cfg, h, err := a.handlerOf(ctx, f)
	if err != nil {
		return err
	}
	if f.handler != "" {
		consumers, err := gateway.Consumers(cfg)
		if err != nil {
			return err
		}
		// The rules are those by which the gateway makes a job for a handler.
		l.declined = intake.Decline(slices.DeleteFunc(consumers, func(c intake.Consumer) bool { return c.Lane != core.HandlerLane(h.Name) }))
		l.source = h.Source
	}
	if f.secret != "" {
		h.SigningSecret = config.Secrets{config.Secret(f.secret)}
	}
	l.signed = len(h.SigningSecret)+len(cfg.Delivery.SigningSecret) > 0
	if l.timeout = h.Timeout.Duration; f.timeout != "" {
		if l.timeout, err = span("--timeout", f.timeout, time.Millisecond); err != nil {
			return err
		}
	}
	h.URL, l.lane = f.to, core.HandlerLane(h.Name)
	// The address is the user's own choice, so a private one is permitted, as this machine is.
	l.calls = egress.New(egress.Options{AllowPrivate: true, Concurrency: 1, Version: readBuild().Version})
	if l.sender, err = gateway.Sender(cfg, h, l.calls); err != nil {
		return usageError(strings.NewReplacer(fmt.Sprintf("handler %q: url ", h.Name), "--to ", fmt.Sprintf("handler %q: signing secret ", h.Name), "the secret ").Replace(err.Error()))
	}
	return nil
}

// handlerOf returns the handler that --handler names, with its configuration. Without that flag it
// returns a handler with the default settings, and reads no configuration.
func (a *app) handlerOf(ctx context.Context, f listenFlags) (*config.Config, config.Handler, error) {
	if f.handler == "" {
		cfg := config.Default()
		h := config.Handler{Name: "listen", Timeout: cfg.Delivery.Timeout}
		if secret := a.env("GATEWAY_SIGNING_SECRET"); secret != "" {
			h.SigningSecret = config.Secrets{config.Secret(secret)}
		}
		return cfg, h, nil
	}
	cfg, err := a.loadConfig(ctx)
	if err != nil {
		return nil, config.Handler{}, err
	}
	h, ok := cfg.Handlers[f.handler]
	if !ok {
		names := wire.List(cfg.SortedHandlers(), func(h config.Handler) string { return h.Name })
		return nil, h, config.Unknown("handler", f.handler, names)
	}
	return cfg, h, nil
}
