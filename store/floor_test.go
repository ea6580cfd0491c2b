package store

import (
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

const lane = core.Lane("handler/a")

// TestFloor: for a second, a look may begin at the job that the last look found.
func TestFloor(t *testing.T) {
	var f floors
	now := time.UnixMilli(1_000_000)
	if from, bottom := f.trusted(lane, now); from != 0 || !bottom {
		t.Errorf("the first look begins at %d, want the bottom", from)
	}
	f.found(lane, int64(900_000), true, now)
	if from, bottom := f.trusted(lane, now.Add(time.Millisecond)); from != 900_000 || bottom {
		t.Errorf("the next look begins at %d, want at what was found", from)
	}
	f.found(lane, nil, false, now.Add(time.Millisecond))
	if got, want := f.at(lane), now.Add(time.Millisecond-floorSlack).UnixMilli(); got != want {
		t.Errorf("after nothing was found a claim begins at %d, want a little before now, %d", got, want)
	}
	f.lower(time.UnixMilli(500_000))
	if got := f.at(lane); got != 500_000 {
		t.Errorf("after a job was written a claim begins at %d, want at that job", got)
	}
	if from, bottom := f.trusted(lane, now.Add(floorTrust)); from != 0 || !bottom {
		t.Errorf("a second later a look begins at %d, want the bottom", from)
	}
	if from, bottom := f.trusted(lane, now.Add(-time.Hour)); from != 0 || !bottom {
		t.Errorf("with the clock set back a look begins at %d, want the bottom", from)
	}
}

// TestFloorStaysBelowWhatWasWrittenMeanwhile: a look that began before a job was written may have
// missed that job, so it does not raise the floor above it.
func TestFloorStaysBelowWhatWasWrittenMeanwhile(t *testing.T) {
	var f floors
	now := time.UnixMilli(1_000_000)
	f.trusted(lane, now)
	f.lower(time.UnixMilli(500_000))
	f.found(lane, nil, true, now)
	if got := f.at(lane); got != 500_000 {
		t.Errorf("a claim begins at %d, want at the job, 500000", got)
	}
	f.trusted(lane, now)
	f.found(lane, int64(999_999), false, now)
	if got := f.at(lane); got != now.Add(-floorSlack).UnixMilli() {
		t.Errorf("after another look a claim begins at %d, want %d", got, now.Add(-floorSlack).UnixMilli())
	}
}
