package store

import "testing"

// TestFreeNumber: a held source keeps its number, and a further one gets the lowest that is free.
func TestFreeNumber(t *testing.T) {
	held := func(numbers ...int64) (all []sourceHold) {
		for i, n := range numbers {
			all = append(all, sourceHold{number: n, source: string(rune('a' + i))})
		}
		return all
	}
	for _, tc := range []struct {
		all    []sourceHold
		source string
		want   int64
	}{
		{nil, "x", 1},
		{held(1, 2, 3), "x", 4},
		{held(2, 3), "x", 1},
		{held(1, 3), "x", 2},
		{held(1, 3), "b", 3},
		{held(1, 2, 3), "a", 1},
	} {
		if got := freeNumber(tc.all, tc.source); got != tc.want {
			t.Errorf("freeNumber(%v, %q) = %d, want %d", tc.all, tc.source, got, tc.want)
		}
	}
}

// TestDueOfParkedJobs: a parked job shows the time at which it was due, under every number, and no
// due time of a claim is in a band.
func TestDueOfParkedJobs(t *testing.T) {
	const due = 1_800_000_000_123
	for _, number := range []int64{1, 2, 31, maxHeldSources} {
		from, below := bandOf(number)
		parked := due - number*parkedBand
		if parked < from || parked >= below || below > 0 || from < -(1<<53) {
			t.Errorf("number %d: %d is not in its band from %d to %d, or the band is beyond what JSON keeps", number, parked, from, below)
		}
		r := rowReader{[]any{parked}}
		if got := r.due().UnixMilli(); got != due {
			t.Errorf("number %d: due = %d, want %d", number, got, due)
		}
	}
	r := rowReader{[]any{int64(due), nil}}
	if got := r.due().UnixMilli(); got != due {
		t.Errorf("due = %d, want %d", got, due)
	}
	if got := r.due(); !got.IsZero() {
		t.Errorf("due of null = %v, want none", got)
	}
}
