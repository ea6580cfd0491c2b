package gateway

import (
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/alert"
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
	doer := g.newDoer(w, bell)
	doer.Ending = alert.NewEndings(g.ids(), c.Delivery.DefaultRetry.Max, places(c)).Of
	return worker.Target{Lane: core.OperationLane, Steps: doer, Timeout: operate.Timeout, Hold: operate.Lease}, nil
}

// rushTime bounds a request that does an operation at once. A function's caller gives up after about 29 s,
// and many a proxy before a gateway after 30 s.
const rushTime = 20 * time.Second

// newDoer returns a Doer that rings and reports in this process.
func (g *Gateway) newDoer(w operate.Walker, bell *core.Bell) *operate.Doer {
	return operate.New(operate.Deps{
		Walker: w, Worklist: g.Store, Mover: g.runner, IDs: g.ids(), Clock: g.Clock, Bell: bell, Observe: g.observe, Every: sliceEvery(g.Rest),
	})
}

// Operations returns the service of operations. A worker of a running gateway does them.
func Operations(c *config.Config, store operate.Store, clock core.Clock) (*manage.Operations, error) {
	ids := core.NewIDs(clock)
	w, err := walker(c, store, ids)
	if err != nil {
		return nil, err
	}
	operations := manage.NewOperations(w, ids, clock)
	operations.Names = names(c)
	return operations, nil
}

// newOperations makes the service for this process, which does bulk work of other services at once.
func (g *Gateway) newOperations(c *config.Config, bell *core.Bell) (*manage.Operations, error) {
	w, err := walker(c, g.Store, g.ids())
	if err != nil {
		return nil, err
	}
	operations := manage.NewOperations(w, g.ids(), g.Clock)
	operations.Names, operations.Doer, operations.Bell, operations.Observe = names(c), g.newDoer(w, bell), bell, g.observe
	operations.Within = rushTime
	return operations, nil
}

// retries returns the service that retries many jobs at once. It matches no events, so it cannot replay.
func retries(c *config.Config, store operate.Store, clock core.Clock) *manage.Operations {
	return bulk(c, operate.Walker{Store: store}, core.NewIDs(clock), clock)
}

// replays returns the service that replays many events at once.
func replays(c *config.Config, store operate.Store, clock core.Clock) (*manage.Operations, error) {
	ids := core.NewIDs(clock)
	w, err := walker(c, store, ids)
	return bulk(c, w, ids, clock), err
}

// bulk returns the service that does operations at once, for a program without a worker.
func bulk(c *config.Config, w operate.Walker, ids *core.IDs, clock core.Clock) *manage.Operations {
	operations := manage.NewOperations(w, ids, clock)
	operations.Names = names(c)
	operations.Doer = operate.New(operate.Deps{Walker: w, IDs: ids, Clock: clock, Bell: &core.Bell{}, Observe: func(core.Fact) {}})
	return operations
}

// Doer returns a Doer for a program that has no worker: see [operate.Doer.Drive].
func Doer(c *config.Config, store core.Store, clock core.Clock) (*operate.Doer, error) {
	ids := core.NewIDs(clock)
	w, err := walker(c, store, ids)
	if err != nil {
		return nil, err
	}
	return operate.New(operate.Deps{
		Walker: w, Worklist: store, Mover: quietRunner(c, store, clock), IDs: ids, Clock: clock, Bell: &core.Bell{},
		Observe: func(core.Fact) {}, Every: sliceEvery(RestOf(c.Database)),
	}), nil
}

// sliceEvery returns the time between two slices at the default rate. On a database with a long rest each
// commit is a request, and it gets fewer and larger slices.
func sliceEvery(rest time.Duration) time.Duration {
	if rest > DefaultRest {
		return time.Second
	}
	return 100 * time.Millisecond
}
