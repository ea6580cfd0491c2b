package wire

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

// TestAuditThereAndBack: --url shows the same entries as the database.
func TestAuditThereAndBack(t *testing.T) {
	want := core.Page[core.AuditEntry]{More: true, Items: []core.AuditEntry{
		{
			ID:     "01KAGVBZVT0C0Q1V7Y5C8H5M2P",
			Actor:  core.Actor{Name: "alice", Role: core.RoleAdmin, Address: "2001:db8::1", Via: core.ViaAPI},
			Change: core.Change{Action: core.AuditHold, Target: "handler/billing", Detail: map[string]string{"reason": "it's \"due\" 火", "until": "2026-01-02"}},
		},
		{ID: "01KAGVBZVT0C0Q1V7Y5C8H5M2N", Actor: core.Actor{Name: "os:root", Via: core.ViaCommand}, Change: core.Change{Action: core.AuditRetry, Target: core.AllTargets}},
	}}
	text, err := json.Marshal(AuditPageOf(want))
	if err != nil {
		t.Fatal(err)
	}
	var got AuditPage
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Core()); diff != "" {
		t.Errorf("%s\n(-want +got):\n%s", text, diff)
	}
	if got.Next != "01KAGVBZVT0C0Q1V7Y5C8H5M2N" {
		t.Errorf("next = %q, want the id of the last entry", got.Next)
	}
}
