package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/units"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// newTopology makes "gateway topology": the configured sources, and where their events go. It asks
// GET /api/topology with --url, and reads the configuration otherwise; it needs no database.
//
// It differs from status: topology shows the configuration, and status the work.
func newTopology(a *app) *cobra.Command {
	return remotely(&cobra.Command{
		Use:   "topology",
		Short: "Show which events go where",
		Long: `Show each source with its consumers: the handlers, queues and workflows that get its
events, the types that they want, and the settings that decide whether and when. Addresses
are shown without user, password and query.

Reads the configuration, or asks the server at --url for its configuration.`,
		Example: `  gateway topology
  gateway topology --json | jq -r '.consumers[] | select(.source == "shop") | .name'`,
		GroupID: groupInspect,
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return a.topology(c.Context()) },
	})
}

// topology prints the topology, in the form of the API with --json.
func (a *app) topology(ctx context.Context) error {
	t, err := a.readTopology(ctx)
	switch {
	case err != nil:
		return err
	case a.json:
		return a.PrintJSON(t)
	case len(t.Sources) == 0:
		a.Notef("no source is configured")
		return nil
	}
	a.PrintGrid(topologyGrid(t))
	return nil
}

// readTopology returns the topology of the server at --url, or of the configuration.
func (a *app) readTopology(ctx context.Context) (wire.Topology, error) {
	if !a.remote() {
		cfg, err := a.loadConfig(ctx)
		if err != nil {
			return wire.Topology{}, err
		}
		return gateway.Topology(cfg, a.clock()), nil
	}
	c, err := a.client(ctx)
	if err != nil {
		return wire.Topology{}, err
	}
	defer c.Close()
	return c.Topology(ctx)
}

// topologyGrid returns the table of a topology: a row for each consumer, below its source. A source
// without consumers has a row of its own.
func topologyGrid(t wire.Topology) terminal.Grid {
	g := terminal.Grid{Heading: []string{"SOURCE", "ENTRANCE", "EVENTS", "CONSUMER", "SETTINGS"}}
	for _, s := range t.Sources {
		name, entrance := terminal.Visible(s.Name), terminal.Visible(entranceOf(s))
		alone := true
		for _, c := range t.Consumers {
			if c.Source != s.Name {
				continue
			}
			events := "all"
			if len(c.Events) > 0 {
				events = strings.Join(c.Events, ", ")
			}
			g.Add(name, entrance, terminal.Visible(events), terminal.Visible(c.Name), terminal.OrDash(terminal.Visible(settingsOf(c))))
			name, entrance, alone = "", "", false
		}
		if alone {
			g.Add(name, entrance, "-", "none", "-")
		}
	}
	return g
}

// entranceOf returns how events come in at a source.
func entranceOf(s wire.ConfiguredSource) string {
	switch {
	case s.Verify != "":
		return fmt.Sprintf("%s, %s", s.Path, s.Verify)
	case s.Path != "":
		return s.Path
	case len(s.Next) > 0:
		return fmt.Sprintf("%s %s, next %s", s.Schedule, s.Timezone, core.FormatTime(s.Next[0].Time))
	}
	return strings.TrimSpace(s.Schedule + " " + s.Timezone)
}

// settingsOf returns the settings of a consumer in short.
func settingsOf(c wire.ConfiguredConsumer) string {
	var all []string
	add := func(given bool, format string, values ...any) {
		if given {
			all = append(all, fmt.Sprintf(format, values...))
		}
	}
	add(c.URL != "", "to %s", c.URL)
	add(c.Filter != "", "if %s", terminal.Clip(strings.Join(strings.Fields(c.Filter), " "), 60))
	add(c.Transform, "transformed")
	add(c.IdempotencyKey != "", "once for each %s", c.IdempotencyKey)
	add(c.Delay > 0, "after %s", seconds(c.Delay))
	if c.Lines != nil {
		add(c.Lines.Limit == 1, "in order of %s", c.Lines.Key)
		add(c.Lines.Limit > 1, "%d at a time of %s", c.Lines.Limit, c.Lines.Key)
	}
	add(c.RateLimit > 0, "%d/s", c.RateLimit)
	add(len(c.Steps) > 0, "steps %s", strings.Join(c.Steps, ", "))
	return strings.Join(all, "; ")
}

// seconds returns a number of seconds as the configuration writes a duration.
func seconds(n float64) string {
	return units.Duration{Duration: time.Duration(n * float64(time.Second))}.String()
}
