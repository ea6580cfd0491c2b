package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// TestBrokenAuditsFail requires that checks fail on stores that break one sentence about the audit
// each. See broken_test.go.
func TestBrokenAuditsFail(t *testing.T) {
	for _, tc := range []struct {
		breaks string
		open   func(*Model) core.Store
		fails  []string
	}{
		{"Unhold leaves no entry", func(m *Model) core.Store { return unholdsSilently{m} }, []string{saysAudit, saysAuditAgain}},
		{"Hold leaves an entry without a change", func(m *Model) core.Store { return holdsLoudly{m} }, []string{saysAuditNone}},
		{"Accept leaves no entry", func(m *Model) core.Store { return acceptsSilently{m} }, []string{saysAudit}},
		{"Accept leaves an entry of a duplicate", func(m *Model) core.Store { return acceptsLoudly{m} }, []string{saysAuditNone}},
		{"Skip leaves an entry with a new id each time", func(m *Model) core.Store { return skipsAnew{m} }, []string{saysAuditOne}},
		{"Record needs no change", func(m *Model) core.Store { return recordsAlways{m} }, []string{saysRecordNone}},
		{"Record forgets the detail", func(m *Model) core.Store { return recordsBare{m} }, []string{saysRecord}},
		{"Audited lists the oldest first", func(m *Model) core.Store { return auditsOldest{m} }, []string{saysAudited, saysAuditPages}},
		{"Audited ignores the target", func(m *Model) core.Store { return auditsAll{m} }, []string{saysAudited + "/with each filter"}},
		{"Audited includes Until", func(m *Model) core.Store { return auditsUntil{m} }, []string{saysAudited + "/with each filter"}},
		{"PurgeAudit deletes too much", func(m *Model) core.Store { return purgesAudit{m} }, []string{saysAuditPurged}},
	} {
		t.Run(tc.breaks, func(t *testing.T) {
			for _, name := range tc.fails {
				c := find(t, name)
				if failure(func(t tb) { c.run(newRig(t, tc.open(NewModel(core.SystemClock)), Options{})) }) == "" {
					t.Errorf("the check %q passes a store whose %s", name, tc.breaks)
				}
			}
		})
	}
}

// unholdsSilently stores no entry for an Unhold.
type unholdsSilently struct{ *Model }

func (s unholdsSilently) Unhold(_ context.Context, now time.Time, lanes ...core.Lane) ([]core.Lane, error) {
	return s.Model.Unhold(context.Background(), now, lanes...)
}

// acceptsSilently stores no entry for an Accept.
type acceptsSilently struct{ *Model }

func (s acceptsSilently) Accept(_ context.Context, a core.Arrival) (core.Receipt, error) {
	return s.Model.Accept(context.Background(), a)
}

// acceptsLoudly stores an entry for each Accept.
type acceptsLoudly struct{ *Model }

func (s acceptsLoudly) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	s.audit(ctx, true)
	return s.Model.Accept(ctx, a)
}

// holdsLoudly stores an entry for each Hold.
type holdsLoudly struct{ *Model }

func (s holdsLoudly) Hold(ctx context.Context, now time.Time, lane core.Lane, until time.Time, reason string) error {
	s.audit(ctx, true)
	return s.Model.Hold(ctx, now, lane, until, reason)
}

// skipsAnew stores the entry of a Skip under an id of its own.
type skipsAnew struct{ *Model }

func (s skipsAnew) Skip(ctx context.Context, now time.Time, job core.ID) (bool, error) {
	skipped, err := s.Model.Skip(context.Background(), now, job)
	if e, ok := core.EntryOf(ctx, s.auditIDs.Next); ok && skipped {
		e.ID = s.auditIDs.Next()
		s.entries[e.ID] = e
	}
	return skipped, err
}

// recordsAlways stores an entry also without a change.
type recordsAlways struct{ *Model }

func (s recordsAlways) Record(ctx context.Context) error {
	if _, ok := core.EntryOf(ctx, s.auditIDs.Next); !ok {
		id := s.auditIDs.Next()
		s.entries[id] = core.AuditEntry{ID: id}
	}
	return s.Model.Record(ctx)
}

// recordsBare stores entries without their details.
type recordsBare struct{ *Model }

func (s recordsBare) Record(ctx context.Context) error {
	if e, ok := core.EntryOf(ctx, s.auditIDs.Next); ok {
		e.Detail = nil
		s.entries[e.ID] = e
	}
	return nil
}

// auditsOldest lists the entries of a page in the order of their ids.
type auditsOldest struct{ *Model }

func (s auditsOldest) Audited(ctx context.Context, f core.AuditFilter) (core.Page[core.AuditEntry], error) {
	p, err := s.Model.Audited(ctx, f)
	slices.Reverse(p.Items)
	return p, err
}

// auditsAll lists the entries of all targets.
type auditsAll struct{ *Model }

func (s auditsAll) Audited(ctx context.Context, f core.AuditFilter) (core.Page[core.AuditEntry], error) {
	f.Target = ""
	return s.Model.Audited(ctx, f)
}

// auditsUntil lists also the entries at Until.
type auditsUntil struct{ *Model }

func (s auditsUntil) Audited(ctx context.Context, f core.AuditFilter) (core.Page[core.AuditEntry], error) {
	if !f.Until.IsZero() {
		f.Until = f.Until.Add(time.Millisecond)
	}
	return s.Model.Audited(ctx, f)
}

// purgesAudit ignores the limit.
type purgesAudit struct{ *Model }

func (s purgesAudit) PurgeAudit(ctx context.Context, before time.Time, _ int) (int, error) {
	return s.Model.PurgeAudit(ctx, before, 1000)
}
