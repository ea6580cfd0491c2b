package store

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

const lane = core.Lane("handler/a")

// TestFloorIsTrustedForASecond: for floorMaxAge, a look may begin at the job that the last look
// found. If floors were trusted for longer, a job that another process wrote below the floor
// would wait for longer.
func TestFloorIsTrustedForASecond(t *testing.T) {
	var f dueFloors
	now := time.UnixMilli(1_000_000)
	if from, bottom := f.lookFrom(lane, now); from != 0 || !bottom {
		t.Errorf("the first look begins at %d, want the bottom", from)
	}
	f.observed(lane, int64(900_000), true, now)
	if from, bottom := f.lookFrom(lane, now.Add(time.Millisecond)); from != 900_000 || bottom {
		t.Errorf("the next look begins at %d, want at what was found", from)
	}
	f.observed(lane, nil, false, now.Add(time.Millisecond))
	if got, want := f.claimFrom(lane), now.Add(time.Millisecond-floorSlack).UnixMilli(); got != want {
		t.Errorf("after nothing was found a claim begins at %d, want a little before now, %d", got, want)
	}
	f.jobWritten(time.UnixMilli(500_000))
	if got := f.claimFrom(lane); got != 500_000&^(writeGrain-1) {
		t.Errorf("after a job was written a claim begins at %d, want at that job", got)
	}
	if from, bottom := f.lookFrom(lane, now.Add(floorMaxAge)); from != 0 || !bottom {
		t.Errorf("a second later a look begins at %d, want the bottom", from)
	}
	if from, bottom := f.lookFrom(lane, now.Add(-time.Hour)); from != 0 || !bottom {
		t.Errorf("with the clock set back a look begins at %d, want the bottom", from)
	}
}

// TestFloorStaysBelowNewJobs: a look that began before a job was written may have missed that
// job, so it does not raise the floor above it. Otherwise the job would wait for up to a
// second.
func TestFloorStaysBelowNewJobs(t *testing.T) {
	var f dueFloors
	now := time.UnixMilli(1_000_000)
	f.lookFrom(lane, now)
	f.jobWritten(time.UnixMilli(500_000))
	f.observed(lane, nil, true, now)
	if got := f.claimFrom(lane); got != 500_000&^(writeGrain-1) {
		t.Errorf("a claim begins at %d, want at the job, 500000", got)
	}
	f.lookFrom(lane, now)
	f.observed(lane, int64(999_999), false, now)
	if got := f.claimFrom(lane); got != now.Add(-floorSlack).UnixMilli() {
		t.Errorf("after another look a claim begins at %d, want %d", got, now.Add(-floorSlack).UnixMilli())
	}
}

// TestRecentWrites: least returns the due time that a search through all later writes finds, rounded
// down. Once old writes have become one it may return less, and never more.
func TestRecentWrites(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var w recentWrites
	var all []int64
	exact := 0
	for i := range int64(5000) {
		due := 1_000_000 + i*20 + r.Int64N(100)
		if r.IntN(10) == 0 {
			due -= r.Int64N(50_000)
		}
		w.add(due)
		all = append(all, due&^(writeGrain-1))
		if len(w.left) > mostWrites {
			t.Fatalf("%d writes are kept, want at most %d", len(w.left), mostWrites)
		}
		since := i + 1 - r.Int64N(min(i+1, 3000))
		want := int64(math.MaxInt64)
		for _, d := range all[since:] {
			want = min(want, d)
		}
		got := w.least(since)
		if got > want || i-since < 60 && got != want {
			t.Fatalf("after %d writes, the earliest since %d is %d, want %d", i+1, since, got, want)
		}
		if got == want {
			exact++
		}
	}
	if exact < 4500 {
		t.Errorf("%d of 5000 answers were exact, want nearly all", exact)
	}
}
