package gateway

import (
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/operate"
	"github.com/eventgateway/gateway/core/worker"
)

// walker returns the walker through the matches of operations. Replays match events with the
// configured consumers.
func walker(c *config.Config, store operate.Store, ids *core.IDs) (operate.Walker, error) {
	consumers, err := Consumers(c)
	if err != nil {
		return operate.Walker{}, err
	}
	return operate.Walker{Store: store, Match: intake.Rematch(consumers, ids), Select: intake.Select}, nil
}

// operationTarget returns the worker's target for the lane of operations.
func (g *Gateway) operationTarget(c *config.Config, bell *core.Bell) (worker.Target, error) {
	w, err := walker(c, g.Store, g.ids())
	if err != nil {
		return worker.Target{}, err
	}
	every := 100 * time.Millisecond
	if g.Rest > DefaultRest { // each commit is a request
		every = time.Second
	}
	doer := operate.New(operate.Deps{
		Walker: w, Worklist: g.Store, Mover: g.runner, IDs: g.ids(), Clock: g.Clock, Bell: bell, Observe: g.observe, Every: every,
	})
	return worker.Target{Lane: core.OperationLane, Steps: doer, Timeout: operate.Timeout, Hold: c.Worker.Lease(operate.Timeout)}, nil
}

// Operations returns the service of operations. A worker of a running gateway does them.
func Operations(c *config.Config, store operate.Store, clock core.Clock) (*manage.Operations, error) {
	return operationsOf(c, store, clock, core.NewIDs(clock))
}

// operationsOf makes the service with a given source of ids.
func operationsOf(c *config.Config, store operate.Store, clock core.Clock, ids *core.IDs) (*manage.Operations, error) {
	w, err := walker(c, store, ids)
	if err != nil {
		return nil, err
	}
	operations := manage.NewOperations(w, ids, clock)
	operations.Names = names(c)
	return operations, nil
}
