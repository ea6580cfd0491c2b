package main

import (
	"context"
	"errors"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
	"github.com/spf13/cobra"
)

// A breakerService resets the circuit breakers of handlers; see [manage.Breakers].
type breakerService interface {
	Reset(ctx context.Context, handler string) (bool, error)
}

// newBreaker makes "gateway breaker", which only holds the command reset.
func newBreaker(a *app) *cobra.Command {
	return newParent(&cobra.Command{
		Use:   "breaker",
		Short: "Close the circuit breaker of a handler",
		Long: `A circuit breaker opens when deliveries to its handler fail several times in a row.
Then jobs wait, and one delivery is tried after each cooldown. "gateway doctor" says
which breakers are open.`,
		Example: `  gateway breaker reset billing`,
		GroupID: groupInspect,
	}, newBreakerReset(a))
}

// newBreakerReset makes "gateway breaker reset": the circuit breaker of a handler closes before
// its cooldown is over. It asks POST /api/handlers/{name}/breaker/reset with --url, and
// manage.Breakers.Reset otherwise. A breaker that was not open exits with 0, since the wanted
// state is reached; an unknown handler exits with 1 and names the handlers that exist.
//
// The reset is stored in the gate of the handler's lane, so it holds for each process of the
// database. Workers read gates again at least once a second, with hosted_sql every five.
func newBreakerReset(a *app) *cobra.Command {
	return remotely(&cobra.Command{
		Use:   "reset <handler>",
		Short: "Close the circuit breaker of a handler now",
		Long: `Close the circuit breaker of a handler, for when the handler works again and the jobs
are not to wait for the next probe. Deliveries go on slowly for ten seconds. If they
still fail, the breaker opens again. A running gateway notices within 1.25 s, with
hosted_sql within 6.25 s.`,
		Example: `  gateway breaker reset billing
  gateway breaker reset billing --url https://events.example.com`,
		Args:              arguments(1, 1, "the handler"),
		ValidArgsFunction: a.completeArgument(a.handlerNames),
		RunE:              func(c *cobra.Command, args []string) error { return a.breakerReset(c.Context(), args[0]) },
	})
}

// breakerReset resets the breaker and says which state it had.
func (a *app) breakerReset(ctx context.Context, handler string) error {
	return a.ask(ctx, func(op *operator) error {
		was, err := op.breakers.Reset(ctx, handler)
		switch {
		case errors.Is(err, manage.ErrHandler):
			return noHandler(ctx, op, handler, err)
		case err != nil:
			return err
		case a.json:
			return a.PrintJSON(wire.BreakerReset{Reset: was})
		case !was:
			a.Notef("the circuit breaker of %s is not open; its count of failures is zero now", terminal.Visible(handler))
			return nil
		}
		a.Printf("the circuit breaker of %s is closed", terminal.Visible(handler))
		return nil
	})
}

// noHandler adds the names of the handlers to err, if they are known.
func noHandler(ctx context.Context, op *operator, handler string, err error) error {
	names, unknown := op.handlers(ctx)
	if unknown != nil {
		return err
	}
	return config.Unknown("handler", handler, names)
}
