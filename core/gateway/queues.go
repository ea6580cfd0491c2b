package gateway

import (
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/pull"
	"github.com/eventgateway/gateway/core/web"
)

// Queues returns the service of queues for operators. The command line, which works beside
// a running gateway, uses it too.
func Queues(c *config.Config, store core.Store, clock core.Clock) *manage.Queues {
	var all []manage.Queue
	for _, q := range c.SortedQueues() {
		all = append(all, manage.Queue{
			Name:        q.Name,
			Source:      q.Source,
			Events:      q.Events,
			Visibility:  q.VisibilityTimeout.Duration,
			MaxAttempts: q.MaxAttempts,
		})
	}
	queues := manage.NewQueues(store, clock, all)
	queues.Bulk = retries(c, store, clock)
	return queues
}

// newPuller makes the service of the consumers of queues.
func (g *Gateway) newPuller(c *config.Config, bell *core.Bell, obituary obituary) *pull.Puller {
	var all []pull.Queue
	for _, q := range c.SortedQueues() {
		all = append(all, pull.Queue{Name: q.Name, Visibility: q.VisibilityTimeout.Duration, Lines: lineRules(q.Lines)})
	}
	p := pull.New(pull.Deps{
		Worklist: g.Store,
		Bell:     bell,
		Clock:    g.Clock,
		Observe:  g.observe,
		Obituary: obituary,
		Rest:     g.Rest,
	}, all)
	g.shared.express.Serve(p)
	return p
}

// queueRoutes serve the consumers of queues and their operators.
func (g *Gateway) queueRoutes(c *config.Config) web.Piece {
	keys := map[string][]string{}
	for _, q := range c.SortedQueues() {
		// The key of a queue opens that queue only, and only for consumers.
		keys[q.Name] = reveal(q.APIKey)
	}
	// The two services share the lanes and not their state: a consumer sees a change by an operator
	// as one by another consumer.
	return web.Queues(web.QueuesOptions{
		Puller:  g.Puller,
		Manager: g.Queues,
		Tokens:  apiTokens(c),
		Keys:    keys,

		// Only a function has a bound.
		MaxReply: g.MaxReply,
	})
}

// queueLanes returns the lanes from which consumers take.
func queueLanes(c *config.Config) []core.Lane {
	var all []core.Lane
	for _, q := range c.SortedQueues() {
		all = append(all, core.QueueLane(q.Name))
	}
	return all
}
