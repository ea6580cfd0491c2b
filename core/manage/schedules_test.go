package manage

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

func TestFireASchedule(t *testing.T) {
	holds := &holdBook{all: []core.Hold{{Lane: "source/weekly"}, {Lane: "handler/nightly"}}}
	var fired []string
	var entry core.AuditEntry
	var broken error
	s := &Schedules{
		Cron: []string{"nightly", "weekly"}, Holding: holds.Holding, Clock: func() time.Time { return noon },
		Names: &Names{Sources: []string{"nightly", "shop", "weekly"}, Unknown: func(kind, name string, _ []string) error {
			return core.Refuse(core.NotFound, "no %s %s", kind, name)
		}},
		FireNow: func(ctx context.Context, source string) (core.Receipt, time.Time, error) {
			fired = append(fired, source)
			entry, _ = core.EntryOf(ctx, func() core.ID { return "E" })
			return core.Receipt{EventID: "X", Jobs: 2}, noon, broken
		},
	}
	ctx := core.WithActor(t.Context(), core.Actor{Name: "alice", Role: core.RoleOperate})
	for source, held := range map[string]bool{"nightly": false, "weekly": true} {
		got, err := s.Fire(ctx, source)
		if want := (Fired{Source: source, Event: "X", Jobs: 2, At: noon, Held: held}); err != nil || got != want {
			t.Errorf("Fire(%s) = %+v, %v, want %+v", source, got, err, want)
		}
		if entry.Action != core.AuditFire || entry.Target != "source/"+source || entry.Name != "alice" {
			t.Errorf("entry of %s = %+v", source, entry)
		}
	}
	fired = nil
	for source, want := range map[string]string{"shop": `source "shop" has no schedule; only sources of type cron can be fired`, "nobody": "no source nobody", "": "no source "} {
		if _, err := s.Fire(ctx, source); err == nil || err.Error() != want || !core.IsKind(err, core.NotFound) {
			t.Errorf("Fire(%q) = %v, want %s", source, err, want)
		}
	}
	holds.err = errors.New("disk full")
	if _, err := s.Fire(ctx, "nightly"); !errors.Is(err, holds.err) || len(fired) > 0 {
		t.Errorf("Fire without holds = %v, fired %s, want an error and nothing stored", err, strings.Join(fired, " "))
	}
	holds.err, broken = nil, errors.New("no room")
	if _, err := s.Fire(ctx, "nightly"); !errors.Is(err, broken) {
		t.Errorf("Fire = %v, want %v", err, broken)
	}
}
