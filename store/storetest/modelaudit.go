package storetest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// auditRows are the audit entries of a Model. They have a lock of their own, so that a method adds
// an entry while it holds the lock of the Model.
type auditRows struct {
	auditMutex sync.Mutex
	auditIDs   *core.IDs
	entries    map[core.ID]core.AuditEntry
}

// audit stores the entry of the context's change, if the call changed something.
func (m *Model) audit(ctx context.Context, changed bool) {
	e, ok := core.EntryOf(ctx, m.auditIDs.Next)
	if !ok || !changed {
		return
	}
	m.auditMutex.Lock()
	defer m.auditMutex.Unlock()
	m.entries[e.ID] = e
}

// Record implements [core.Audit].
func (m *Model) Record(ctx context.Context) error {
	m.audit(ctx, true)
	return nil
}

// Audited implements [core.Audit].
func (m *Model) Audited(_ context.Context, f core.AuditFilter) (p core.Page[core.AuditEntry], err error) {
	m.auditMutex.Lock()
	defer m.auditMutex.Unlock()
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(m.entries))) {
		e := m.entries[id]
		switch at := id.Time(); {
		case f.After != "" && id >= f.After, at.Before(f.Since), !f.Until.IsZero() && !at.Before(f.Until),
			f.Actor != "" && e.Name != f.Actor, f.Action != "" && e.Action != f.Action, f.Target != "" && e.Target != f.Target:
		case len(p.Items) == min(cmp.Or(f.Limit, core.DefaultPage), core.MaxPage):
			p.More = true
			return p, nil
		default:
			p.Items = append(p.Items, e)
		}
	}
	return p, nil
}

// PurgeAudit implements [core.Audit].
func (m *Model) PurgeAudit(_ context.Context, before time.Time, limit int) (n int, err error) {
	m.auditMutex.Lock()
	defer m.auditMutex.Unlock()
	for _, id := range slices.Sorted(maps.Keys(m.entries)) {
		if id < core.FirstID(before) && n < limit {
			delete(m.entries, id)
			n++
		}
	}
	return n, nil
}
