package core

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestRetryDelay(t *testing.T) {
	tests := []struct {
		name    string
		retry   Retry
		attempt int
		want    time.Duration // before jitter
	}{
		{"first", Retry{Interval: 30 * time.Second}, 1, 30 * time.Second},
		{"doubles", Retry{Interval: 30 * time.Second}, 4, 240 * time.Second},
		{"fixed", Retry{Interval: 30 * time.Second, Fixed: true}, 9, 30 * time.Second},
		{"is capped", Retry{Interval: 30 * time.Second}, 20, MaxBackoff},
		{"does not overflow", Retry{Interval: 30 * time.Second}, math.MaxInt, MaxBackoff},
		{"long base", Retry{Interval: 1 << 62}, 2, MaxBackoff},
		{"no interval", Retry{}, 5, 0},
		{"negative interval", Retry{Interval: -time.Second}, 3, 0},
		{"attempt zero", Retry{Interval: time.Second}, 0, time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			low, high := tt.want*8/10, min(tt.want*12/10, MaxBackoff)
			for range 200 {
				if got := tt.retry.Delay(tt.attempt); got < low || got > high {
					t.Fatalf("Delay(%d) = %v, want %v to %v", tt.attempt, got, low, high)
				}
			}
		})
	}
}

func TestIDsOnlyGrow(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	ids := NewIDs(func() time.Time { return at })
	last := ids.Next()
	for i := range 1000 {
		if i%100 == 0 {
			at = at.Add(time.Duration(i%300-100) * time.Millisecond) // now and then backwards
		}
		id := ids.Next()
		if id <= last {
			t.Fatalf("id %d: %s after %s", i, id, last)
		}
		if len(id) != 26 || strings.ToUpper(string(id)) != string(id) {
			t.Fatalf("%q is not 26 upper-case characters", id)
		}
		last = id
	}
}

func TestIDsAreUniqueAcrossGoroutines(t *testing.T) {
	ids := NewIDs(SystemClock)
	var mu sync.Mutex
	seen := map[ID]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				id := ids.Next()
				mu.Lock()
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != 8000 {
		t.Errorf("%d different ids of 8000", len(seen))
	}
}

func TestIDsBorrowTheNextMillisecond(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	ids := NewIDs(func() time.Time { return at })
	ids.Next()
	ids.high, ids.low = math.MaxUint16, math.MaxUint64
	first, second := ID(ids.newest().String()), ids.Next()
	if second <= first || !second.Time().Equal(at.Add(time.Millisecond)) {
		t.Errorf("%s (%v) after %s", second, second.Time(), first)
	}
}

func TestParseID(t *testing.T) {
	id := NewIDs(SystemClock).Next()
	for _, s := range []string{string(id), strings.ToLower(string(id))} {
		if got, err := ParseID(s); got != id || err != nil {
			t.Errorf("ParseID(%q) = %q, %v, want %q", s, got, err, id)
		}
	}
	for _, s := range []string{"", "1", string(id) + "0", "ZZZZZZZZZZZZZZZZZZZZZZZZZZ", "01J0000000000000000000000I", strings.Repeat("é", 13)} {
		if got, err := ParseID(s); !IsKind(err, Invalid) {
			t.Errorf("ParseID(%q) = %q, %v, want a refusal", s, got, err)
		}
	}
}

func TestTimes(t *testing.T) {
	want := time.Date(2026, 11, 20, 7, 28, 11, 123e6, time.UTC)
	for s, want := range map[string]time.Time{
		"2026-11-20T07:28:11.123":    want,
		"2026-11-20T07:28:11.123Z":   want,
		"2026-11-20T07:28:11.123456": want,
		"2026-11-20T07:28:11":        want.Truncate(time.Second),
		"2026-11-20T07:28:11Z":       want.Truncate(time.Second),
		"2026-11-20T08:28:11+01:00":  want.Truncate(time.Second),
		"2026-11-20":                 want.Truncate(24 * time.Hour),
	} {
		if got, err := ParseTime(s); !got.Equal(want) || err != nil {
			t.Errorf("ParseTime(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "yesterday", "2026-11-20T07:28", "2026-11-20T07:28:11+0100", "1763623691", "2026-13-01"} {
		if got, err := ParseTime(s); !IsKind(err, Invalid) {
			t.Errorf("ParseTime(%q) = %v, %v, want a refusal", s, got, err)
		}
	}
	if got := FormatTime(want.In(time.FixedZone("", 3600))); got != "2026-11-20T07:28:11.123" {
		t.Errorf("FormatTime = %q", got)
	}
	if got := FormatTime(time.Time{}); got != "" {
		t.Errorf("FormatTime(zero) = %q, want empty", got)
	}
}

func TestStatuses(t *testing.T) {
	for _, s := range Statuses() {
		if got, err := ParseStatus(string(s)); got != s || err != nil {
			t.Errorf("ParseStatus(%q) = %q, %v", s, got, err)
		}
		if want := s == Completed || s == Dead || s == Canceled; s.Finished() != want {
			t.Errorf("%s.Finished() = %v", s, !want)
		}
	}
	if _, err := ParseStatus("done"); !IsKind(err, Invalid) || !strings.Contains(err.Error(), "retryable") {
		t.Errorf("ParseStatus(done) = %v, want a refusal that lists the statuses", err)
	}
}

func TestLanes(t *testing.T) {
	if l := HandlerLane("billing"); l != "handler/billing" || l.Handler() != "billing" || l.Consumer() != "billing" {
		t.Errorf("lane %q: handler %q, consumer %q", l, l.Handler(), l.Consumer())
	}
	if l := Lane("queue/mail"); l.Handler() != "" || l.Consumer() != "queue/mail" {
		t.Errorf("lane %q: handler %q, consumer %q", l, l.Handler(), l.Consumer())
	}
	// The lane of a source is the lane of no consumer, for every name of the source.
	for _, name := range []string{"github", "handler", "queue", "source"} {
		l := SourceLane(name)
		if l.Source() != name || l.Consumer() != "source/"+name || l.Handler()+l.Queue()+l.Workflow() != "" || l.Alert() {
			t.Errorf("lane %q: source %q, consumer %q", l, l.Source(), l.Consumer())
		}
		for _, other := range []Lane{HandlerLane(name), QueueLane(name), WorkflowLane(name), AlertLane(name)} {
			if other.Source() != "" || other == l {
				t.Errorf("lane %q: source %q, want none", other, other.Source())
			}
		}
	}
}

func TestRefusal(t *testing.T) {
	cause := errors.New("disk on fire")
	err := fmt.Errorf("accept: %w", &Refusal{Kind: Unavailable, Message: "database unavailable", Cause: cause})
	if !IsKind(err, Unavailable) || IsKind(err, Invalid) || IsKind(cause, Unavailable) {
		t.Errorf("kinds of %v", err)
	}
	if !errors.Is(err, cause) || err.Error() != "accept: database unavailable: disk on fire" {
		t.Errorf("error %q", err)
	}
}

func TestBell(t *testing.T) {
	var b Bell
	heard := b.Listen("a", "b", "c")
	other := b.Listen("d")
	b.Ring("x") // no listener has this lane
	b.Ring("b")
	b.Ring("a")
	b.Ring("b")
	select {
	case <-heard.C:
	default:
		t.Error("a bell was rung, and its listener was not woken")
	}
	if got := heard.Rung(); !slices.Equal(got, []Lane{"a", "b"}) {
		t.Errorf("Rung() = %v, want a and b, once each", got)
	}
	if got := heard.Rung(); len(got) != 0 {
		t.Errorf("Rung() again = %v, want none", got)
	}
	select {
	case <-heard.C:
		t.Error("one ring woke a listener twice")
	case <-other.C:
		t.Error("a ring woke the listener of another lane")
	default:
	}
	(*Bell)(nil).Ring("a") // a nil bell does nothing

	b.Others(other)
	for _, lane := range []Lane{"a", "x", "d"} {
		b.Ring(lane)
	}
	if got := other.Rung(); !slices.Equal(got, []Lane{"d", "x"}) {
		t.Errorf("Rung() of the listener to other lanes = %v, want its own lanes and the lanes without a listener", got)
	}
}

// A listener gets the earliest time of a lane with later work. When it leaves, the
// remaining listeners get its times.
func TestBellOfLaterWork(t *testing.T) {
	var b Bell
	heard, other := b.Listen("a", "b"), b.Listen("a")
	soon, late := time.Unix(100, 0), time.Unix(200, 0)
	b.RingAt("a", late)
	b.RingAt("a", soon)
	b.RingAt("a", late)
	b.Ring("b")
	select {
	case <-heard.C:
	default:
		t.Error("a bell was rung for a later time, and its listener was not woken")
	}
	if got := heard.Rung(); !slices.Equal(got, []Lane{"b"}) {
		t.Errorf("Rung() = %v, want b alone: nothing is due in a yet", got)
	}
	if got := heard.Coming(); len(got) != 1 || !got["a"].Equal(soon) {
		t.Errorf("Coming() = %v, want a at %v", got, soon)
	}
	if got := heard.Coming(); len(got) != 0 {
		t.Errorf("Coming() again = %v, want none", got)
	}
	(*Bell)(nil).RingAt("a", soon) // without effect

	other.Coming()
	b.RingAt("b", late)
	b.Others(other)
	b.Leave(heard)
	if got := other.Coming(); len(got) != 1 || !got["b"].Equal(late) {
		t.Errorf("Coming() of the remaining listener = %v, want b at %v", got, late)
	}
}

// TestBackoff: a call that keeps failing is repeated quickly at first, and then at most every
// two seconds, so that a database that comes back is found soon and is not flooded.
func TestBackoff(t *testing.T) {
	var b Backoff
	for i, want := range []time.Duration{50, 100, 200, 400, 800, 1600, 2000, 2000} {
		if got := b.Next(); got != want*time.Millisecond {
			t.Errorf("wait %d = %v, want %v", i+1, got, want*time.Millisecond)
		}
	}
	if b = 0; b.Next() != 50*time.Millisecond {
		t.Error("a Backoff that was set to zero does not begin again")
	}
}
