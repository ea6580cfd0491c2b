package wait

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestChecksTakeATenth: checks of any duration take at most a tenth of the time, unless the pause between
// them would be too long.
func TestChecksTakeATenth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		check  time.Duration
		checks int // in 10 s
	}{
		{0, 5000},
		{time.Millisecond, 1000},
		{20 * time.Millisecond, 50},
		{time.Second, 8},
	} {
		synctest.Test(t, func(t *testing.T) {
			checks := 0
			if Until(10*time.Second, func() bool { checks++; time.Sleep(c.check); return false }) {
				t.Error("the condition never holds, but the wait says that it did")
			}
			if checks != c.checks+1 && checks != c.checks { // with the one at the end
				t.Errorf("checks of %v in 10 s = %d, want %d", c.check, checks, c.checks)
			}
		})
	}
}

// TestHoldsAtTheEnd: a condition that begins to hold when the limit passes counts, and one that begins
// to hold after it does not.
func TestHoldsAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{0, time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			held := Until(time.Second, func() bool { return time.Since(began) >= time.Second+late })
			if held != (late == 0) {
				t.Errorf("a condition that holds %v after the limit: held = %v", late, held)
			}
			if took := time.Since(began); took != time.Second {
				t.Errorf("the wait took %v, want 1s", took)
			}
		})
	}
}

// TestPauseIsBounded: a wait ends at most longest after its condition.
func TestPauseIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		const check, holds = 100 * time.Millisecond, 5 * time.Second
		For(t, time.Minute, "five seconds", func() bool { time.Sleep(check); return time.Since(began) >= holds })
		if late := time.Since(began) - holds; late > check+longest {
			t.Errorf("the wait ended %v after its condition", late)
		}
	})
}
