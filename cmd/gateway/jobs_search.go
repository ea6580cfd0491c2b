package main

import (
	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// registerJobSearch adds the flags of a search for jobs that no index serves.
func registerJobSearch(a *app, c *cobra.Command, s *manage.JobSearch) {
	flags := c.Flags()
	flags.StringVar(&s.Source, "source", "", "only jobs of events of this `source`")
	flags.StringVarP(&s.Type, "event-type", "t", "", "only jobs of events of "+exactType)
	flags.StringVar(&s.Error, "error", "", "only jobs whose last error contains this `text`")
	a.complete(c, "source", a.sourceNames)
	a.complete(c, "event-type", a.recentTypes)
}

// jobsSearch prints one page of a search, and on standard error how many jobs were scanned and the
// command that goes on. With --json the fields scanned and next say so.
func (a *app) jobsSearch(c *cobra.Command, s manage.JobSearch) error {
	return a.ask(c.Context(), func(op *operator) error {
		found, err := op.jobs.Search(c.Context(), s)
		switch {
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.FoundJobsOf(found))
		case len(found.Items) > 0:
			a.PrintGrid(a.jobGrid(found.JobPage))
		default:
			a.Notef("no job matches")
		}
		a.noteScanned(c, terminal.Count(found.Scanned, "job"), found.Next)
		return nil
	})
}
