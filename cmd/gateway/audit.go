package main

import (
	"context"
	"maps"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// An auditService lists the entries of the audit; see [manage.Audit].
type auditService interface {
	List(ctx context.Context, f core.AuditFilter) (core.Page[core.AuditEntry], error)
}

// newAudit makes "gateway audit": the newest changes of operators, a page at a time. It asks
// GET /api/audit with --url, and manage.Audit.List otherwise. No entry is not an error (exit code 0).
func newAudit(a *app) *cobra.Command {
	var (
		page                  pageFlags
		made                  timeFlags
		actor, action, target string
	)
	c := remotely(&cobra.Command{
		Use:   "audit",
		Short: "List changes and their actors, newest first",
		Long: `List the changes of operators, newest first: retries, replays, drains, holds, releases and so
on, and configurations that a running gateway applied. Each entry was stored in the commit
of its change. A request that was refused or that changed nothing has no entry.

ACTOR is the name of a token, auth_token, anonymous (the API has no tokens), os: and a user
(a command that worked on the database) or gateway (the process itself). ADDRESS is the
address of the client of the API.

Reads the configured database, beside the running gateway, or asks the one at --url, which
takes a token with the role admin.`,
		Example: `  gateway audit --since 1d
  gateway audit --actor alice --action queues.drain
  gateway audit --target handler/billing
  gateway audit --json | jq -r '.entries[].actor'`,
		GroupID: groupInspect,
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			f := core.AuditFilter{Actor: actor, Action: core.AuditAction(action), Target: target}
			var err error
			if f.After, f.Limit, err = page.parse(); err != nil {
				return err
			}
			if action != "" {
				if _, err := core.ParseAuditAction(action); err != nil {
					return usageError("--" + err.Error())
				}
			}
			if f.Since, f.Until, err = made.parse(a.clock()); err != nil {
				return err
			}
			return a.listAudit(c, f)
		},
	})
	page.register(c)
	made.register(c, "changes made")
	c.Flags().StringVar(&actor, "actor", "", "only changes of this `actor`, such as alice or os:root")
	c.Flags().StringVar(&action, "action", "", "only changes of this `kind`, such as jobs.retry or holds.hold")
	c.Flags().StringVar(&target, "target", "", "only changes of this `target`, such as handler/billing or an id")
	a.complete(c, "action", actionNames)
	return c
}

// actionNames offers the actions.
func actionNames(*cobra.Command) (words []cobra.Completion) {
	for _, action := range core.AuditActions() {
		words = append(words, string(action))
	}
	return words
}

// listAudit prints one page of entries, and on standard error the command for the next page.
func (a *app) listAudit(c *cobra.Command, f core.AuditFilter) error {
	return a.ask(c.Context(), func(op *operator) error {
		page, err := op.audit.List(c.Context(), f)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.AuditPageOf(page))
		case len(page.Items) == 0:
			a.Notef("no changes")
			return nil
		}
		g := terminal.Grid{Heading: []string{"TIME", "ACTOR", "ADDRESS", "ACTION", "TARGET", "DETAIL"}}
		for _, e := range page.Items {
			g.Add(core.FormatTime(e.ID.Time()), terminal.Visible(e.Name), terminal.OrDash(terminal.Visible(e.Address)),
				terminal.Visible(string(e.Action)), terminal.Visible(e.Target), terminal.OrDash(detailText(e.Detail)))
		}
		a.PrintGrid(g)
		if page.More {
			a.noteMore(c, page.Items[len(page.Items)-1].ID)
		}
		return nil
	})
}

// listedDetail is the number of characters of a value in the list.
const listedDetail = 80

// detailText returns the details of a change, by name, on one line.
func detailText(detail map[string]string) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(detail)) {
		words = append(words, terminal.Visible(name)+"="+shellQuote(terminal.Clip(terminal.Visible(detail[name]), listedDetail)))
	}
	return strings.Join(words, " ")
}

// identify puts the user of this machine into the context of a command that works on the database,
// for the audit. With --url the server knows the token.
func (a *app) identify(c *cobra.Command) {
	if takes(c, "url") && !a.remote() {
		c.SetContext(core.WithActor(c.Context(), core.Actor{Name: "os:" + userName(), Via: core.ViaCommand}))
	}
}

// userName returns the name of the user that runs this process, or the number of a user without a
// name.
func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}
