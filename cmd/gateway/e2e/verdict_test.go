//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"
)

// A serial identifies an event for the witness. It is in the body, so it does not depend on
// the gateway's ids.
type serial uint64

// A sighting is a delivery in the notes of the witness.
type sighting struct {
	serial  serial
	job     string
	attempt int
	life    int // number of the gateway's start, from the delivery
	at      time.Time
}

// A witness records which events were sent, accepted and delivered, and when the gateway was
// killed. It keeps only the newest sighting of each event, and irregularities, so that a
// million events fit into memory.
type witness struct {
	mu       sync.Mutex
	sent     map[serial]bool
	accepted map[serial]string // event id in the answer
	last     map[serial]sighting
	awaited  int // accepted and not delivered yet
	repeats  []repeat
	alien    []string          // deliveries of events that were never sent
	kills    map[int]time.Time // time of the kill, by life
	misses   map[string]int    // posts that were not accepted, by status or error
}

// A repeat is two consecutive deliveries of the same event.
type repeat struct{ first, second sighting }

// wrong describes a repeat that no failure explains. It returns "" for other repeats.
func (r repeat) wrong() string {
	switch {
	case r.first.job != r.second.job:
		return fmt.Sprintf("event %d was delivered under two jobs, %s and %s", r.first.serial, r.first.job, r.second.job)
	case r.second.attempt <= r.first.attempt:
		return fmt.Sprintf("event %d: attempt %d came after attempt %d", r.first.serial, r.second.attempt, r.first.attempt)
	}
	return ""
}

func newWitness() *witness {
	return &witness{
		sent:     map[serial]bool{},
		accepted: map[serial]string{},
		last:     map[serial]sighting{},
		kills:    map[int]time.Time{},
		misses:   map[string]int{},
	}
}

func (w *witness) send(s serial) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent[s] = true
}

func (w *witness) accept(s serial, event string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accepted[s] = event
	if _, ok := w.last[s]; !ok {
		w.awaited++
	}
}

func (w *witness) miss(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.misses[what]++
}

func (w *witness) kill(life int, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kills[life] = at
}

func (w *witness) see(s sighting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.sent[s.serial] {
		w.alien = append(w.alien, fmt.Sprintf("event %d, job %s", s.serial, s.job))
	}
	first, again := w.last[s.serial]
	_, accepted := w.accepted[s.serial]
	switch {
	case again:
		w.repeats = append(w.repeats, repeat{first, s})
	case accepted:
		w.awaited--
	}
	w.last[s.serial] = s
}

// counts returns how many events were accepted and how many were delivered.
func (w *witness) counts() (accepted, delivered int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.accepted), len(w.last)
}

// idle reports whether all accepted events are delivered.
func (w *witness) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.awaited == 0
}

// acceptedIDs returns the event ids of all accepted events.
func (w *witness) acceptedIDs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.accepted))
}

// missing lists accepted events that are not delivered yet.
func (w *witness) missing() []serial {
	w.mu.Lock()
	defer w.mu.Unlock()
	var missing []serial
	for s := range w.accepted {
		if _, ok := w.last[s]; !ok {
			missing = append(missing, s)
		}
	}
	return missing
}

// twice lists repeats that no failure explains: an attempt that was made before, or one event
// under two jobs.
func (w *witness) twice() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, r := range w.repeats {
		if why := r.wrong(); why != "" {
			all = append(all, why)
		}
	}
	return all
}

// shares counts the events that each life delivered.
func (w *witness) shares() map[int]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	shares := map[int]int{}
	for _, s := range w.last {
		shares[s.life]++
	}
	return shares
}

// A verdict is the result of judging a witness.
type verdict struct {
	accepted, delivered, duplicates int
	worst                           int // duplicates of one kill

	lost        []serial // accepted and never delivered
	unexpected  []string // delivered and never sent
	unexplained []string // delivered again, not because of a kill
}

// judge checks the notes of a witness. A kill explains a second delivery if it ended the life
// that made the first delivery, at most reach after it: later, the outcome is stored. One life
// never delivers an attempt twice.
func (w *witness) judge(reach time.Duration) verdict {
	v := verdict{lost: w.missing()}
	v.accepted, v.delivered = w.counts()
	w.mu.Lock()
	defer w.mu.Unlock()
	v.unexpected = w.alien
	v.duplicates = len(w.repeats)
	perLife := map[int]int{}
	for _, r := range w.repeats {
		perLife[r.first.life]++
		v.worst = max(v.worst, perLife[r.first.life])
		if why := w.unexplained(r, reach); why != "" {
			v.unexplained = append(v.unexplained, why)
		}
	}
	return v
}

func (w *witness) unexplained(r repeat, reach time.Duration) string {
	if why := r.wrong(); why != "" {
		return why
	}
	killed, ok := w.kills[r.first.life]
	switch {
	case r.second.life <= r.first.life:
		return fmt.Sprintf("event %d was delivered twice, by life %d and then by life %d, job %s", r.first.serial, r.first.life, r.second.life, r.first.job)
	case !ok:
		return fmt.Sprintf("event %d was delivered again although life %d was not killed, job %s", r.first.serial, r.first.life, r.first.job)
	case killed.Sub(r.first.at) > reach:
		return fmt.Sprintf("event %d was delivered again although its gateway lived on for %v, job %s", r.first.serial, killed.Sub(r.first.at), r.first.job)
	}
	return ""
}

func (v verdict) String() string {
	return fmt.Sprintf("accepted %d, delivered %d, lost %d, unexpected %d, duplicates %d, unexplained %d",
		v.accepted, v.delivered, len(v.lost), len(v.unexpected), v.duplicates, len(v.unexplained))
}

// check fails the test for each kind of violation and names up to 5 examples.
func (v verdict) check(t *testing.T, maxDuplicates int) {
	t.Helper()
	if v.accepted == 0 {
		t.Error("nothing was accepted, so nothing was tested")
	}
	if n := len(v.lost); n > 0 {
		t.Errorf("lost %d accepted events, such as %v, want 0", n, v.lost[:min(n, 5)])
	}
	if n := len(v.unexpected); n > 0 {
		t.Errorf("%d deliveries of what was never sent, such as %q, want 0", n, v.unexpected[:min(n, 5)])
	}
	if n := len(v.unexplained); n > 0 {
		t.Errorf("%d duplicates without a reason, such as %q, want 0", n, v.unexplained[:min(n, 5)])
	}
	if v.duplicates > maxDuplicates {
		t.Errorf("duplicates = %d, want at most %d", v.duplicates, maxDuplicates)
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	zero := time.Now()
	after := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	type seen struct {
		s                 serial
		job               string
		attempt, life, ms int
	}
	tests := []struct {
		name           string
		sent, accepted []serial
		seen           []seen
		kills          []int // in milliseconds; the first one ends life 1
		want           string
	}{
		{"all well", []serial{1, 2}, []serial{1, 2}, []seen{{1, "a", 1, 1, 1}, {2, "b", 1, 1, 2}}, nil,
			"accepted 2, delivered 2, lost 0, unexpected 0, duplicates 0, unexplained 0"},
		{"lost", []serial{1, 2}, []serial{1, 2}, []seen{{1, "a", 1, 1, 1}}, nil,
			"accepted 2, delivered 1, lost 1, unexpected 0, duplicates 0, unexplained 0"},
		{"no answer and delivered", []serial{1}, nil, []seen{{1, "a", 1, 1, 1}}, nil,
			"accepted 0, delivered 1, lost 0, unexpected 0, duplicates 0, unexplained 0"},
		{"never sent", nil, nil, []seen{{1, "a", 1, 1, 1}}, nil,
			"accepted 0, delivered 1, lost 0, unexpected 1, duplicates 0, unexplained 0"},
		{"again after a kill", []serial{1}, []serial{1}, []seen{{1, "a", 1, 1, 1}, {1, "a", 2, 2, 9}}, []int{5},
			"accepted 1, delivered 1, lost 0, unexpected 0, duplicates 1, unexplained 0"},
		{"noted a little after the kill", []serial{1}, []serial{1}, []seen{{1, "a", 1, 1, 6}, {1, "a", 2, 2, 9}}, []int{5},
			"accepted 1, delivered 1, lost 0, unexpected 0, duplicates 1, unexplained 0"},
		{"twice in one life", []serial{1}, []serial{1}, []seen{{1, "a", 1, 1, 1}, {1, "a", 2, 1, 4}}, []int{5},
			"accepted 1, delivered 1, lost 0, unexpected 0, duplicates 1, unexplained 1"},
		{"again without a kill", []serial{1}, []serial{1}, []seen{{1, "a", 1, 1, 1}, {1, "a", 2, 2, 9}}, nil,
			"accepted 1, delivered 1, lost 0, unexpected 0, duplicates 1, unexplained 1"},
		{"long settled before the kill", []serial{1}, []serial{1}, []seen{{1, "a", 1, 1, 0}, {1, "a", 2, 2, 3000}}, []int{2500},
			"accepted 1, delivered 1, lost 0, unexpected 0, duplicates 1, unexplained 1"},
		{"three times around two kills", []serial{1}, []serial{1}, []seen{{1, "a", 1, 1, 1}, {1, "a", 2, 2, 9}, {1, "a", 3, 3, 19}}, []int{5, 15},
			"accepted 1, delivered 1, lost 0, unexpected 0, duplicates 2, unexplained 0"},
		{"the same attempt twice", []serial{1}, []serial{1}, []seen{{1, "a", 1, 1, 1}, {1, "a", 1, 2, 8}}, []int{5},
			"accepted 1, delivered 1, lost 0, unexpected 0, duplicates 1, unexplained 1"},
		{"two jobs for one event", []serial{1}, []serial{1}, []seen{{1, "a", 1, 1, 1}, {1, "b", 2, 2, 9}}, []int{5},
			"accepted 1, delivered 1, lost 0, unexpected 0, duplicates 1, unexplained 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWitness()
			for _, s := range tt.sent {
				w.send(s)
			}
			for _, s := range tt.accepted {
				w.accept(s, "E")
			}
			for _, s := range tt.seen {
				w.see(sighting{s.s, s.job, s.attempt, s.life, after(s.ms)})
			}
			for i, k := range tt.kills {
				w.kill(i+1, after(k))
			}
			if got := w.judge(2 * time.Second).String(); got != tt.want {
				t.Errorf("judge = %s\nwant    %s", got, tt.want)
			}
		})
	}
}
