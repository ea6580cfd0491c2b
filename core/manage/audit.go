package manage

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// The services name the changes, and the edge names the actor: see [core.Change]. A service
// begins a change right before the call of the store that makes it. So a request that is refused
// earlier leaves no entry.

// audited returns the context for a change. Details are names and values in turn.
func audited(ctx context.Context, action core.AuditAction, target string, details ...string) context.Context {
	return core.WithChange(ctx, change(action, target, details...))
}

// change returns a change. Details are names and values in turn.
func change(action core.AuditAction, target string, details ...string) core.Change {
	c := core.Change{Action: action, Target: cmp.Or(target, core.AllTargets), Detail: map[string]string{}}
	for i := 0; i < len(details); i += 2 {
		c.Detail[details[i]] = details[i+1]
	}
	return c
}

// timeText returns a time as entries show it; "" for the zero time.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return core.FormatTime(t)
}

// numberText returns a number as entries show it; "" for 0.
func numberText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// replaying returns the change of a replay of the events that a filter selects.
func replaying(f core.EventFilter, s Span) core.Change {
	return change(core.AuditReplay, core.AllTargets,
		"source", f.Source, "event_type", f.Type, "delivery_id", f.DeliveryID, "since", timeText(f.Since), "until", timeText(f.Until),
		"limit", numberText(f.Limit), "first", string(s.First), "last", string(s.Last))
}

// beginning returns the context for the begin of an operation.
func beginning(ctx context.Context, op core.Operation, shown core.Lane) context.Context {
	to := make([]string, len(op.To))
	for i, l := range op.To {
		to[i] = l.Consumer()
	}
	f := op.Filter
	return audited(ctx, core.AuditOperation, string(op.ID),
		"action", string(op.Action), "rate", numberText(op.Rate), "to", strings.Join(to, ", "),
		"consumer", shown.Consumer(), "status", f.Status, "source", f.Source, "event_type", f.Type, "since", timeText(f.Since), "until", timeText(f.Until),
		"error", f.Error, "match", f.Match, "delivery_id", f.DeliveryID, "first", string(f.First), "last", string(f.Last))
}

// An Audit lists changes with their actors. It is safe for concurrent use.
type Audit struct{ store AuditStore }

// An AuditStore has the method of a store that an Audit uses.
type AuditStore interface {
	Audited(ctx context.Context, f core.AuditFilter) (core.Page[core.AuditEntry], error)
}

// NewAudit makes the service.
func NewAudit(store AuditStore) *Audit { return &Audit{store} }

// List lists entries, newest first. An action that does not exist is refused as [core.Invalid], and
// so is a span that ends before it begins.
func (a *Audit) List(ctx context.Context, f core.AuditFilter) (core.Page[core.AuditEntry], error) {
	if f.Action != "" {
		if _, err := core.ParseAuditAction(string(f.Action)); err != nil {
			return core.Page[core.AuditEntry]{}, err
		}
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return core.Page[core.AuditEntry]{}, core.Refuse(core.Invalid, "since must be before until")
	}
	return a.store.Audited(ctx, f)
}
