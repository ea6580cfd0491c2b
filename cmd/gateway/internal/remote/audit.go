package remote

import (
	"context"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/wire"
)

// Audit is the audit of a server.
type Audit struct{ c *Client }

// Audit returns the audit of a server.
func (c *Client) Audit() Audit { return Audit{c} }

// List reads a page of entries, newest first: GET /api/audit.
func (a Audit) List(ctx context.Context, f core.AuditFilter) (core.Page[core.AuditEntry], error) {
	var page wire.AuditPage
	err := a.c.get(ctx, &page, parameters("actor", f.Actor, "action", string(f.Action), "target", f.Target,
		"since", core.FormatTime(f.Since), "until", core.FormatTime(f.Until), "after", string(f.After), "limit", atMost(f.Limit)), "audit")
	return page.Core(), err
}
