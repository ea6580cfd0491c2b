package intake

import (
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
)

// TestHops: the count of hops is kept with the event. A count above the bound is refused. A
// value that is no number counts as zero.
func TestHops(t *testing.T) {
	for _, tt := range []struct {
		name    string
		values  []string
		want    string // the stored header
		refused bool
	}{
		{"none", nil, "", false},
		{"zero", []string{"0"}, "", false},
		{"some", []string{"3"}, "3", false},
		{"at the bound", []string{"16"}, "16", false},
		{"above it", []string{"17"}, "", true},
		{"far above it", []string{strings.Repeat("9", 100)}, "", true},
		{"several", []string{"2", "17"}, "", true},
		{"several, within the bound", []string{"5", "2"}, "5", false},
		{"no count", []string{"many"}, "", false},
		{"negative", []string{"-17"}, "", false},
	} {
		for kind, source := range map[Kind]string{Event: "app", Webhook: "plain"} {
			t.Run(tt.name, func(t *testing.T) {
				d := newDoor(testSources)
				r := request(kind, source, "{}")
				if tt.values != nil {
					r.Header[core.HopsHeader] = tt.values
				}
				_, err := d.Receive(t.Context(), r)
				if core.IsKind(err, core.Looped) != tt.refused || (err != nil) != tt.refused {
					t.Fatalf("Receive() = %v, want refused %v", err, tt.refused)
				}
				if tt.refused {
					if len(d.inbox.got) != 0 || d.facts[0] != (core.TurnedAway{Source: source, Kind: core.Looped}) {
						t.Errorf("stored %d, facts %v, want none and that it was turned away", len(d.inbox.got), d.facts)
					}
					return
				}
				if got := d.inbox.got[0].Event.Headers[core.Hops]; got != tt.want {
					t.Errorf("kept %q, want %q", got, tt.want)
				}
			})
		}
	}
}
