package metrics

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// auditOps measures [core.Audit]. Most entries are part of the changes that they are about.
type auditOps struct{ record, audited, purgeAudit *op }

func newAuditOps(f opFamilies) auditOps {
	return auditOps{
		record:     f.op("record"),
		audited:    f.op("audited"),
		purgeAudit: f.op("purge_audit"),
	}
}

func (m *measured) Record(ctx context.Context) (err error) {
	defer m.record.ended(time.Now(), &err)
	return m.Store.Record(ctx)
}

func (m *measured) Audited(ctx context.Context, f core.AuditFilter) (_ core.Page[core.AuditEntry], err error) {
	defer m.audited.ended(time.Now(), &err)
	return m.Store.Audited(ctx, f)
}

func (m *measured) PurgeAudit(ctx context.Context, before time.Time, limit int) (_ int, err error) {
	defer m.purgeAudit.ended(time.Now(), &err)
	return m.Store.PurgeAudit(ctx, before, limit)
}
