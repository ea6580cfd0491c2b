package worker

import (
	"testing"

	"github.com/eventgateway/gateway/core"
)

// TestLooked: a look replaces the gates of the lanes that it asked about, also of those that have none
// any more. It leaves the gates of other lanes, and gates that were learned after it began.
func TestLooked(t *testing.T) {
	failed := func(n int) core.Gate { return core.Gate{Failures: n} }
	v := newGateView(nil, 0, 1)
	v.learn(map[core.Lane]core.Gate{"changed": failed(1), "gone": failed(2), "other": failed(3)})
	version := v.now()
	v.learn(map[core.Lane]core.Gate{"later": failed(4), "latergone": failed(5)})
	v.looked([]core.Lane{"changed", "gone", "later", "latergone", "new"},
		map[core.Lane]core.Outlook{"changed": {Gate: failed(6)}, "later": {Gate: failed(7)}, "new": {Gate: failed(8)}}, version)
	for l, want := range map[core.Lane]int{"changed": 6, "gone": 0, "other": 3, "later": 4, "latergone": 5, "new": 8} {
		if got := v.gate(l).Failures; got != want {
			t.Errorf("the gate of lane %s has %d failures, want %d", l, got, want)
		}
	}
}
