package main

import (
	"context"
	"fmt"

	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/eventgateway/gateway/core/workflow"
	"github.com/spf13/cobra"
)

// newWorkflow makes "gateway workflow", which only holds the command graph. Commands about
// stored runs are under "gateway workflow-runs": they need a database, and this one only the
// configuration.
func newWorkflow(a *app) *cobra.Command {
	return newParent(&cobra.Command{
		Use:     "workflow",
		Short:   "Draw workflows",
		Long:    `The workflows of the configuration. "gateway workflow-runs" shows their runs.`,
		Example: "  gateway workflow graph fulfil-order",
		GroupID: groupServe,
	}, newWorkflowGraph(a))
}

// newWorkflowGraph makes "gateway workflow graph". It reads the configuration, opens no
// database and calls no server, so it also works where the gateway is not deployed yet. It
// exits with 1 if the configuration or its workflow is not valid.
//
// The form is Mermaid, since a pull request on GitHub or GitLab shows it as a picture without
// another tool.
func newWorkflowGraph(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "graph <workflow>",
		Short: "Draw a workflow as a Mermaid flowchart",
		Long: `Print a workflow of the configuration as a Mermaid flowchart (https://mermaid.js.org),
which GitHub, GitLab and many editors draw.`,
		Example: `  gateway workflow graph fulfil-order
  gateway workflow graph fulfil-order > fulfil-order.mmd
  gateway workflow graph fulfil-order --json | jq -r .graph`,
		Args:              arguments(1, 1, "the workflow"),
		ValidArgsFunction: a.completeArgument(a.workflowNames),
		RunE:              func(c *cobra.Command, args []string) error { return a.workflowGraph(c.Context(), args[0]) },
	}
}

// workflowGraph prints the flowchart of one workflow. It compiles the workflow like a server,
// so a picture exists only of a workflow that can run.
func (a *app) workflowGraph(ctx context.Context, name string) error {
	cfg, err := a.loadConfig(ctx)
	if err != nil {
		return err
	}
	w, ok := cfg.Workflows[name]
	if !ok {
		return noSuchWorkflow(cfg, name)
	}
	d, err := workflow.Compile(w)
	if err != nil {
		return fmt.Errorf("workflows.%s: %w", name, err)
	}
	if a.json {
		return a.PrintJSON(struct {
			Name  string `json:"name"`
			Graph string `json:"graph"`
		}{name, d.Graph()})
	}
	fmt.Fprint(a.stdout, d.Graph())
	return nil
}

// noSuchWorkflow returns the error for an unknown name, with the names that exist and the
// nearest one.
func noSuchWorkflow(cfg *config.Config, name string) error {
	names := wire.List(cfg.SortedWorkflows(), func(w config.Workflow) string { return w.Name })
	return config.Unknown("workflow", name, names)
}
