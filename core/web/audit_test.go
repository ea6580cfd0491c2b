package web_test

import (
	"context"

	"github.com/eventgateway/gateway/core"
)

// auditor has an entry with each field, and one with as few as possible.
type auditor struct{ *archivist }

func (a auditor) List(_ context.Context, f core.AuditFilter) (core.Page[core.AuditEntry], error) {
	return core.Page[core.AuditEntry]{More: f.Limit == 2, Items: []core.AuditEntry{
		{
			ID:     "01KAGVBZVT0C0Q1V7Y5C8H5M2P",
			Actor:  core.Actor{Name: "alice", Role: core.RoleOperate, Address: "203.0.113.9", Via: core.ViaAPI},
			Change: core.Change{Action: core.AuditHold, Target: "handler/billing", Detail: map[string]string{"reason": hostile}},
		},
		{
			ID:     "01KAGVBZVT0C0Q1V7Y5C8H5M2N",
			Actor:  core.Actor{Name: "os:" + hostile, Via: core.ViaCommand},
			Change: core.Change{Action: core.AuditRetry, Target: core.AllTargets},
		},
	}}, a.say("list the audit %q %q %q %d", f.Actor, f.Action, f.After, f.Limit)
}
