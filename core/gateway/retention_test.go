package gateway_test

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
)

// Entries of the audit are kept for the configured number of days, by default 90.
func TestRetentionOfTheAudit(t *testing.T) {
	for worker, kept := range map[string]time.Duration{"": 90 * 24 * time.Hour, "worker: {audit_retention_days: 1}": 24 * time.Hour} {
		s := openStore(t, filepath.Join(t.TempDir(), "gateway.db"))
		c := load(t, "sources: {shop: {type: event}}\n"+worker)
		ctx := core.WithActor(t.Context(), core.Actor{Name: "alice", Via: core.ViaAPI})
		now := time.Now().UTC().Truncate(time.Millisecond)
		if err := s.Record(core.WithChange(ctx, core.Change{Action: core.AuditReload, Target: "gateway.yaml"})); err != nil {
			t.Fatal(err)
		}
		left(t, c, s, now.Add(kept-passes*time.Minute), 1)
		left(t, c, s, now.Add(kept+time.Minute), 0)
	}
}

// passes is how many purges left makes. Each purges one of three kinds, chosen at random, so that all
// of them leave the audit out once in 10^17 runs.
const passes = 100

// left purges once a minute from a time on, and fails unless so many entries are left.
func left(t *testing.T, c *config.Config, s core.Store, at time.Time, want int) {
	t.Helper()
	g, err := gateway.New(c, gateway.Deps{Store: s, Clock: func() time.Time { return at }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for range passes {
		if err := g.Purger.Tick(t.Context(), core.Budget{}); err != nil {
			t.Errorf("Tick = %v, want none", err)
		}
		at = at.Add(time.Minute)
	}
	page, err := s.Audited(t.Context(), core.AuditFilter{})
	if err != nil || len(page.Items) != want {
		t.Errorf("%d entries are left at %v, %v; want %d", len(page.Items), at, err, want)
	}
}

// Finished records are kept for the configured number of hours, by default 72.
func TestRetention(t *testing.T) {
	for _, tc := range []struct {
		worker string
		kept   time.Duration
	}{
		{"", 72 * time.Hour},
		{"worker: {retention_hours: 5}", 5 * time.Hour},
	} {
		t.Run(tc.worker, func(t *testing.T) {
			s, now := openStore(t, filepath.Join(t.TempDir(), "gateway.db")), time.Now().UTC().Truncate(time.Millisecond)
			c, ids := load(t, "sources: {shop: {type: event}}\n"+tc.worker), core.NewIDs(func() time.Time { return now })
			e := core.Event{ID: ids.Next(), Source: "shop", Type: "t", Payload: []byte("{}"), CreatedAt: now}
			if _, err := s.Accept(t.Context(), core.Arrival{Event: e}); err != nil {
				t.Fatal(err)
			}
			for _, at := range []struct {
				after time.Duration
				there bool
			}{{tc.kept, true}, {tc.kept + time.Minute, false}} {
				clock := func() time.Time { return now.Add(at.after) }
				g, err := gateway.New(c, gateway.Deps{Store: s, Clock: clock, Log: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				if err := g.Purger.Tick(t.Context(), core.Budget{}); err != nil {
					t.Errorf("Tick = %v, want none", err)
				}
				if _, err := s.Event(t.Context(), e.ID); core.IsKind(err, core.NotFound) == at.there {
					t.Errorf("Event %v after it came: %v", at.after, err)
				}
			}
		})
	}
}
