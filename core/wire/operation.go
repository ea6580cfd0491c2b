package wire

import (
	"math"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// An OperationFilter is the filter of an operation.
type OperationFilter struct {
	Consumer  Text `json:"consumer"`
	Status    Text `json:"status"`
	Source    Text `json:"source"`
	EventType Text `json:"event_type"`
	Since     Time `json:"since"`
	Until     Time `json:"until"`
	Error     Text `json:"error"`
	Match     Text `json:"match"`

	DeliveryID Text `json:"delivery_id"`
	First      Text `json:"first"`
	Last       Text `json:"last"`
}

// An Operation is bulk work, with its progress.
type Operation struct {
	ID         string          `json:"id"`
	Action     string          `json:"action"`
	Filter     OperationFilter `json:"filter"`
	To         []string        `json:"to"`
	Rate       int             `json:"rate"`
	By         Text            `json:"by"`
	State      string          `json:"state"`
	Error      Text            `json:"error"`
	Looked     int             `json:"looked"`
	Acted      int             `json:"acted"`
	Skipped    int             `json:"skipped"`
	CreatedAt  Time            `json:"created_at"`
	StartedAt  Time            `json:"started_at"`
	FinishedAt Time            `json:"finished_at"`
}

// OperationOf returns the record of an operation.
func OperationOf(op core.Operation) Operation {
	f := op.Filter
	return Operation{
		ID: string(op.ID), Action: string(op.Action), To: List(op.To, core.Lane.Consumer), Rate: op.Rate, By: Text(op.By),
		Filter: OperationFilter{Consumer: Text(f.Lane.Consumer()), Status: Text(f.Status), Source: Text(f.Source), EventType: Text(f.Type),
			Since: Time{f.Since}, Until: Time{f.Until}, Error: Text(f.Error), Match: Text(f.Match),
			DeliveryID: Text(f.DeliveryID), First: Text(f.First), Last: Text(f.Last)},
		State: string(op.State), Error: Text(op.Error), Looked: op.Looked, Acted: op.Acted, Skipped: op.Skipped,
		CreatedAt: Time{op.CreatedAt}, StartedAt: Time{op.StartedAt}, FinishedAt: Time{op.FinishedAt},
	}
}

// Operations is a page of operations, newest first. Next is the id to continue after.
type Operations struct {
	Operations []Operation `json:"operations"`
	Next       Text        `json:"next"`
}

// OperationsOf returns the record of a page.
func OperationsOf(p core.Page[core.Operation]) Operations {
	page := Operations{Operations: List(p.Items, OperationOf)}
	if n := len(p.Items); p.More && n > 0 {
		page.Next = Text(p.Items[n-1].ID)
	}
	return page
}

// An OperationPlan is an operation that was not begun, with the number of its matches.
type OperationPlan struct {
	Action    string         `json:"action"`
	Matches   int            `json:"matches"`
	More      bool           `json:"more"`
	Skipped   int            `json:"skipped"`
	Consumers map[string]int `json:"consumers"`
	Sample    []string       `json:"sample"`
	Rate      int            `json:"rate"`
	Seconds   int            `json:"seconds"`
}

// OperationPlanOf returns the record of a plan. Seconds are rounded up.
func OperationPlanOf(p manage.Plan) OperationPlan {
	plan := OperationPlan{
		Action: string(p.Operation.Action), Matches: p.Matches, More: p.More, Skipped: p.Skipped, Consumers: map[string]int{},
		Sample: List(p.Sample, func(id core.ID) string { return string(id) }), Rate: p.Operation.Rate,
		Seconds: int(math.Ceil(float64(p.Takes) / float64(time.Second))),
	}
	for lane, n := range p.Consumers {
		plan.Consumers[lane.Consumer()] = n
	}
	return plan
}

// Core returns the operation.
func (o Operation) Core() core.Operation {
	return core.Operation{
		ID: core.ID(o.ID), Action: core.Action(o.Action), To: List(o.To, LaneOf), Rate: o.Rate, By: string(o.By),
		Filter: o.Filter.Core(), State: core.OperationState(o.State), Error: string(o.Error), Looked: o.Looked, Acted: o.Acted, Skipped: o.Skipped,
		CreatedAt: o.CreatedAt.Time, StartedAt: o.StartedAt.Time, FinishedAt: o.FinishedAt.Time,
	}
}

// Core returns the filter.
func (f OperationFilter) Core() core.OperationFilter {
	filter := core.OperationFilter{
		Status: string(f.Status), Source: string(f.Source), Type: string(f.EventType), Since: f.Since.Time, Until: f.Until.Time,
		Error: string(f.Error), Match: string(f.Match), DeliveryID: string(f.DeliveryID), First: core.ID(f.First), Last: core.ID(f.Last),
	}
	if f.Consumer != "" {
		filter.Lane = LaneOf(string(f.Consumer))
	}
	return filter
}

// Core returns the page.
func (o Operations) Core() core.Page[core.Operation] {
	return core.Page[core.Operation]{Items: List(o.Operations, Operation.Core), More: o.Next != ""}
}

// Core returns the plan of an operation.
func (p OperationPlan) Core(op core.Operation) manage.Plan {
	op.Rate = p.Rate
	plan := manage.Plan{Operation: op, Matches: p.Matches, More: p.More, Skipped: p.Skipped, Consumers: map[core.Lane]int{},
		Sample: List(p.Sample, func(id string) core.ID { return core.ID(id) }), Takes: time.Duration(p.Seconds) * time.Second}
	for name, n := range p.Consumers {
		plan.Consumers[LaneOf(name)] = n
	}
	return plan
}
