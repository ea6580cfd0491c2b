package storetest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// manyLanes are more lanes than a store may ask for one by one, not sorted. A MySQL statement returns
// the lanes of 100 jobs.
func manyLanes() (lanes []core.Lane) {
	for i := range 600 {
		lanes = append(lanes, core.Lane(fmt.Sprintf("handler/%03d", 599-i)))
	}
	return lanes
}

// dueOfMany checks that many lanes have the outlooks that they have in smaller calls, with jobs in
// few of them and then in all.
func dueOfMany(r *rig) {
	lanes := manyLanes()
	r.lane = "handler/007"
	r.openBreaker()
	r.lane = "handler/100"
	r.putMany(120)
	r.accepted(r.arrival("handler/003", "handler/250", "handler/599", "handler/2", "queue/other"))
	r.holdLane("handler/250", core.NoEnd, "")
	r.holdLane("handler/300", core.NoEnd, "")
	r.holdLane("queue/other", core.NoEnd, "")
	r.takeQuotas(core.Quota{Lane: "handler/599", N: 1, Hold: leaseTime})
	r.manyDue(lanes, 6)
	r.accepted(r.arrival(lanes...))
	r.manyDue(lanes, len(lanes))
}

// manyDue checks that so many of the lanes have an outlook.
func (r *rig) manyDue(lanes []core.Lane, n int) {
	r.Helper()
	want := map[core.Lane]core.Outlook{}
	for some := range slices.Chunk(lanes, 200) {
		maps.Copy(want, r.outlooks(some...))
	}
	r.equal("the number of outlooks", len(want), n)
	r.equal("Due of many lanes", r.outlooks(lanes...), want)
}

// straysOfMany checks that strays are found beside many known lanes, and that many are found.
func straysOfMany(r *rig) {
	lanes := manyLanes()
	r.lane = "handler/100"
	r.putMany(120)
	r.accepted(r.arrival(append(lanes, "handler/2", "queue/other")...))
	r.equal("Strays beside many", r.strays(lanes...), map[core.Lane]time.Time{"handler/2": r.now, "queue/other": r.now})
	want := map[core.Lane]time.Time{"queue/other": r.now}
	for _, l := range lanes {
		want[l] = r.now
	}
	r.equal("many Strays", r.strays("handler/2"), want)
	r.equal("Strays once many are known again", r.strays(append(lanes, "handler/2")...), map[core.Lane]time.Time{"queue/other": r.now})
	r.now = r.now.Add(time.Minute)
	r.equal("a stray once more", r.strays(append(lanes[1:], "handler/2")...), map[core.Lane]time.Time{lanes[0]: r.now, "queue/other": r.now.Add(-time.Minute)})
}
