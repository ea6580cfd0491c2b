package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/eventgateway/gateway/store"
	"github.com/spf13/cobra"
)

// newMigrate makes "gateway migrate", which only holds other commands. It works on the
// configured database only and takes no --url: a running server has migrated its database when
// it started.
func newMigrate(a *app) *cobra.Command {
	return newParent(&cobra.Command{
		Use:   "migrate",
		Short: "Bring the tables of the database up to date",
		Long: `The gateway stores its data in tables whose form changes from version to version, in
numbered steps. The version before goes on receiving and delivering with them, while some
of its listings may fail. "gateway start" and the commands that look and repair take the
steps that are missing by themselves. Functions never do, and refuse to work before they
are taken: run "gateway migrate up" before a new version of them is deployed.`,
		Example: `  gateway migrate status
  gateway migrate up`,
		GroupID: groupServe,
	}, newMigrateUp(a), newMigrateStatus(a))
}

// newMigrateUp makes "gateway migrate up", for functions, which never change tables, and for
// deployments that change tables before they start the new version. It exits with 1 if the
// database cannot be reached or is of a newer version. Steps that another process takes at the
// same time count as taken.
func newMigrateUp(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "Take the steps that are missing",
		Long: `Take the steps that are missing, in their order, and say which they were. It may be
run at any time, beside gateways that run, by several at once and again after it broke
off. A database of a newer version is refused. A SQLite database that does not exist is
made.`,
		Example: `  gateway migrate up
  gateway migrate up -c gateway.yaml --env production`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return a.migrateUp(c.Context()) },
	}
}

// newMigrateStatus makes "gateway migrate status". Unlike all other listings it exits with 1 if
// there is something to do: a deployment asks it whether to run "up".
func newMigrateStatus(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show which steps are missing",
		Long: `Show up to which step the database has come and which are missing. It changes nothing.
Exits with 0 if there is nothing to do, and with 1 if steps are missing, if the
database is of a newer version, or if it cannot be asked.`,
		Example: `  gateway migrate status
  gateway migrate status --json | jq '.pending | length'`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return a.migrateStatus(c.Context()) },
	}
}

// A standing is the state of a database's schema.
type standing struct {
	name    string // of the database
	at      int    // number of the last step that was done
	newest  int    // number of the newest step of this version
	pending []store.SchemaStep
}

// fromNewer reports whether a newer version has changed the tables.
func (s standing) fromNewer() bool { return s.at > s.newest }

// standing reads the state of the schema. A nil store stands for a file that does not exist
// yet.
func (a *app) standing(ctx context.Context, cfg *config.Config, s *store.Store) (now standing, err error) {
	now.name = terminal.Visible(describe(cfg.Database))
	if s == nil {
		now.pending = store.SchemaSteps()
		now.newest = len(now.pending)
		return now, nil
	}
	if now.at, now.newest, err = s.Schema(ctx); err == nil {
		now.pending, err = s.Pending(ctx)
	}
	return now, err
}

// migrateStatus prints the state of the schema. It does not open a SQLite file that does not
// exist, since that would create the file.
func (a *app) migrateStatus(ctx context.Context) error {
	cfg, err := a.loadConfig(ctx)
	if err != nil {
		return err
	}
	var s *store.Store
	if !blank(cfg.Database) {
		if s, err = a.connectStore(ctx, cfg); err != nil {
			return err
		}
		defer s.Close()
	}
	now, err := a.standing(ctx, cfg, s)
	if err != nil {
		return err
	}
	return a.printStanding(now)
}

// printStanding prints the state of the schema, and returns an error if it is not the state
// that this version needs.
func (a *app) printStanding(now standing) error {
	switch {
	case a.json:
		if err := a.PrintJSON(pendingJSON{now.record(), wire.List(now.pending, stepRecord)}); err != nil {
			return err
		}
	case now.fromNewer():
		a.Printf("%s is at step %d; this version knows %d", now.name, now.at, now.newest)
	case len(now.pending) == 0:
		a.Printf("%s is up to date, at step %d", now.name, now.at)
	default:
		a.Printf("%s is at step %d of %d; missing:\n", now.name, now.at, now.newest)
		a.PrintGrid(stepGrid(now.pending))
	}
	switch {
	case now.fromNewer():
		a.Complain("the database is of a newer version of the gateway; run that one")
	case len(now.pending) > 0:
		a.Complain(terminal.Count(len(now.pending), "step") + ` missing; "gateway migrate up" takes what is missing`)
	default:
		return nil
	}
	return errReported
}

// migrateUp takes the missing steps. It creates a SQLite file that does not exist.
func (a *app) migrateUp(ctx context.Context) error {
	cfg, err := a.loadConfig(ctx)
	if err != nil {
		return err
	}
	s, err := a.connectStore(ctx, cfg)
	if err != nil {
		return err
	}
	defer s.Close()
	before, err := a.standing(ctx, cfg, s)
	if err == nil {
		err = s.Migrate(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", before.name, err)
	}
	after, err := a.standing(ctx, cfg, s)
	if err != nil {
		return err
	}
	return a.printTaken(before.pending, after)
}

// printTaken prints the steps that were taken, and the state after them.
func (a *app) printTaken(taken []store.SchemaStep, now standing) error {
	if a.json {
		return a.PrintJSON(takenJSON{now.record(), wire.List(taken, stepRecord)})
	}
	if len(taken) == 0 {
		a.Printf("%s was up to date, at step %d", now.name, now.at)
		return nil
	}
	a.Printf("%s is up to date now, at step %d; taken:\n", now.name, now.at)
	a.PrintGrid(stepGrid(taken))
	return nil
}

// stepGrid returns the table of schema steps.
func stepGrid(steps []store.SchemaStep) terminal.Grid {
	g := terminal.Grid{Heading: []string{"STEP", "CHANGE"}}
	for _, s := range steps {
		g.Add(strconv.Itoa(s.Number), s.Name)
	}
	return g
}

// The records of --json. Status and up share the fields about the database.
type standingJSON struct {
	Database string `json:"database"`
	Step     int    `json:"step"`
	Newest   int    `json:"newest"`
}

type stepJSON struct {
	Step   int    `json:"step"`
	Change string `json:"change"`
}

type pendingJSON struct {
	standingJSON
	Pending []stepJSON `json:"pending"`
}

type takenJSON struct {
	standingJSON
	Taken []stepJSON `json:"taken"`
}

// record returns the part of the JSON that both commands share.
func (s standing) record() standingJSON { return standingJSON{s.name, s.at, s.newest} }

// stepRecord returns a schema step as --json prints it.
func stepRecord(s store.SchemaStep) stepJSON { return stepJSON{s.Number, s.Name} }
