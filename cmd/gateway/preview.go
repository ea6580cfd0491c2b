package main

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"runtime/debug"

	"github.com/eventgateway/gateway/cmd/gateway/internal/remote"
	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/preview"
	"github.com/spf13/cobra"
)

const previewLong = `Decide about stored events twice, by the configuration that serves and by the new one of
-c, and show the differences: events that a handler, queue or workflow wins or loses,
bodies, addresses, lines and delays that change, transforms and filters that fail, and
events that would be refused. Nothing is changed or delivered.

The configuration that serves is the file of --against, by default gateway.yaml or the
one that GATEWAY_CONFIG names; with --url it comes from the gateway there. --env
lays its overlay over both files. The events come from the database of the
configuration that serves, or from the gateway at --url.

A stored event lacks the signature, the address and the delay of its request, so these
are not compared. Nor is the pace of deliveries: timeouts, rate limits, retries.
Over --url the values of headers, of variables in addresses, and queries are not
compared, since a gateway keeps them to itself.

The exit code is 0 if nothing differs, and 3 if anything does. The output has parts
of payloads.`

// previewLimit is the default of --limit.
const previewLimit = 10_000

// previewExamples is how many events of each consumer and kind of difference are shown.
const previewExamples = 3

// newPreview makes "gateway preview": it compares two configurations over stored events. It
// reads GET /api/export/events and GET /api/config with --url, and the database and two files
// otherwise. It exits with 3 if an event makes a difference.
//
// The comparison is made here and not by the server: the new file and its variables are on this
// machine, and a server need not trust them.
func newPreview(a *app) *cobra.Command {
	var p previewing
	c := &cobra.Command{
		Use:   "preview",
		Short: "Show the effects of a new configuration",
		Long:  previewLong,
		Example: `  gateway preview -c new.yaml
  gateway preview -c new.yaml --since 1d --limit 100000
  gateway preview -c gateway.yaml --url https://gateway.example.com --token-file token
  gateway preview -c new.yaml --json | jq '.consumers[] | select(.lost > 0)'`,
		GroupID: groupServe,
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if !c.Flags().Changed("config") {
				return usagef("the new configuration is missing: give it with -c, as in -c new.yaml")
			}
			if p.limit < 1 {
				return usagef("--limit must be 1 or more, not %d", p.limit)
			}
			if p.filter, err = p.parse(a.clock()); err != nil {
				return err
			}
			return a.preview(c.Context(), p)
		},
	}
	p.register(a, c, exactType)
	c.Flags().StringVar(&p.against, "against", "", "`file` or address of the configuration that serves")
	c.Flags().IntVarP(&p.limit, "limit", "l", previewLimit, "only the newest `n` events")
	return annotated(c, takesURL, ownConfig)
}

// A previewing is the user's choice of events and of the configuration that serves.
type previewing struct {
	selection
	against string
	limit   int
	filter  core.EventFilter
}

// preview compares the two configurations, and prints the result.
func (a *app) preview(ctx context.Context, p previewing) error {
	next, err := a.loadAt(ctx, a.configFlag)
	if err != nil {
		return err
	}
	serving, events, done, err := a.serving(ctx, p)
	if err != nil {
		return err
	}
	defer done()
	if a.remote() && p.against == "" {
		// Both sides have the same parts then, without secrets.
		if next, err = config.ParseRules(next.Rules()); err != nil {
			return err
		}
	} else if !a.remote() && identify(serving.Database).ID != identify(next.Database).ID {
		a.Notef("the new configuration works on %s; the events come from %s", identify(next.Database).Name, identify(serving.Database).Name)
	}
	before, err := gateway.Preview(serving)
	if err != nil {
		return err
	}
	after, err := gateway.Preview(next)
	if err != nil {
		return err
	}
	report, err := a.compare(ctx, preview.New(before, after, preview.Options{Examples: previewExamples}), events, p)
	if err != nil {
		return err
	}
	if err := a.printPreview(report, p); err != nil {
		return err
	}
	if report.Differs() {
		return errDiffers
	}
	return nil
}

// loadAt reads the configuration at a path or address.
func (a *app) loadAt(ctx context.Context, path string) (*config.Config, error) {
	s, err := a.configAt(path)
	if err != nil {
		return nil, err
	}
	return s.load(ctx)
}

// serving returns the configuration that serves, and its events. The caller calls done.
func (a *app) serving(ctx context.Context, p previewing) (c *config.Config, events eventService, done func(), err error) {
	if a.remote() {
		return a.servingElsewhere(ctx, p)
	}
	path := cmp.Or(p.against, a.env("GATEWAY_CONFIG"), baseFile)
	if filepath.Clean(path) == filepath.Clean(a.configFlag) {
		return nil, nil, nil, usagef("%s would be compared with itself; give the configuration that serves with --against, or its gateway with --url", a.configFlag)
	}
	if c, err = a.loadAt(ctx, path); err != nil {
		return nil, nil, nil, err
	}
	a.configFlag = path // the commands in messages are about the gateway that serves
	a.warnOtherDatabase(ctx, c)
	s, err := a.openExisting(ctx, c)
	if err != nil {
		return nil, nil, nil, err
	}
	op, err := a.localOperator(c, s)
	if err != nil {
		return nil, nil, nil, errors.Join(err, s.Close())
	}
	return c, op.events, op.close, nil
}

// servingElsewhere is serving for the gateway at --url.
func (a *app) servingElsewhere(ctx context.Context, p previewing) (c *config.Config, events eventService, done func(), err error) {
	client, err := a.client(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if p.against != "" {
		c, err = a.loadAt(ctx, p.against)
	} else {
		c, err = servedRules(ctx, client)
	}
	if err != nil {
		client.Close()
		return nil, nil, nil, err
	}
	return c, client.Events(), client.Close, nil
}

// servedRules reads the rules of a gateway.
func servedRules(ctx context.Context, client *remote.Client) (*config.Config, error) {
	rules, err := client.Rules(ctx)
	if _, ok := errors.AsType[remote.UnknownRoute](err); ok {
		return nil, core.Refuse(core.Unsupported, "%v An older gateway does not tell its configuration; give a file of it with --against", err)
	}
	if err != nil {
		return nil, err
	}
	c, err := config.ParseRules(rules)
	var problems config.Problems
	if errors.As(err, &problems) {
		// They are no faults of a file of this machine, and one of them says enough.
		return nil, core.Refuse(core.Unsupported, "the configuration of the gateway at %s is not understood (%v); is it of this version (%s)? --against takes a file in its place",
			client.Base(), problems[0], readBuild().Version)
	}
	return c, err
}

// compare reads the events, and gives each of them to both sides. The percentage of the garbage
// collector has the same setting as in an export.
func (a *app) compare(ctx context.Context, c *preview.Comparison, events eventService, p previewing) (preview.Report, error) {
	if a.env("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(exportGC))
	}
	progress := a.Progress()
	defer progress.Clear()
	n := 0
	for told, err := range events.Export(ctx, p.filter, p.limit, true) {
		if err != nil {
			return preview.Report{}, err
		}
		c.Add(told.Event)
		n++
		progress.Show("compared %s", terminal.Count(n, "event"))
	}
	return c.Report(), nil
}
