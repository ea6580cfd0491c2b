package alert

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	// window is the shortest time between two alerts about one source.
	window = time.Minute

	// patience is the time limit for storing one alert. The refused sender waits for that.
	patience = 2 * time.Second

	// maxReason is how many bytes of a reason are kept.
	maxReason = 1 << 10
)

// Deps are the dependencies of a Desk. Bell and Observe may be nil.
type Deps struct {
	Inbox core.Inbox
	IDs   *core.IDs
	Clock core.Clock

	Bell    *core.Bell    // rung for every lane that got an alert
	Observe core.Observer // of Accepted, and of Troubled if an alert could not be stored

	MaxAttempts int // to deliver an alert; at least 1
	Places      []Place

	// Tallies are the tallies of the desk that this one replaces. Nil begins with none.
	Tallies *Tallies
}

// Tallies are the counts of desks: one for each source with a failure. Such sources are
// configured, so their number is bounded.
type Tallies struct {
	counted chan struct{} // signals that an alert is due later

	mu sync.Mutex
	of map[string]*tally
}

// NewTallies returns Tallies without counts.
func NewTallies() *Tallies {
	return &Tallies{counted: make(chan struct{}, 1), of: map[string]*tally{}}
}

// A Desk receives failures and makes alerts of them. It is safe for concurrent use. A nil
// Desk ignores failures.
//
// Counts not yet sent when the process ends are lost.
type Desk struct {
	Deps
	mail mailing
}

// A tally counts the failures of one source.
type tally struct {
	untold  int             // failures since the last stored alert
	newest  core.Unverified // of them
	next    time.Time       // when the next alert may be made
	telling bool            // a goroutine is storing an alert
}

// New makes a desk; it is nil if no place wants alerts of verification failures.
func New(d Deps) *Desk {
	mail := mailing{kind: VerificationFailure, ids: d.IDs, lanes: wanting(VerificationFailure, d.Places), maxAttempts: d.MaxAttempts}
	if len(mail.lanes) == 0 {
		return nil
	}
	if d.Observe == nil {
		d.Observe = func(core.Fact) {}
	}
	if d.Tallies == nil {
		d.Tallies = NewTallies()
	}
	return &Desk{Deps: d, mail: mail}
}

// Unverified records that a sender was refused. It stores an alert about the first failure
// of a source before it returns. It counts the failures within a minute after that. The
// first later call, of Unverified or Flush, sends one alert about all of them.
//
// It continues when ctx is done, and takes 2 seconds at most. The count is kept for the
// next minute in two cases: the alert cannot be stored, or another process has sent one
// about this source in this minute. If the store's answer is lost, two alerts may count the
// same failure; no failure is lost.
func (d *Desk) Unverified(ctx context.Context, u core.Unverified) {
	if d == nil {
		return
	}
	if draft, ok := d.count(u); ok {
		d.tell(ctx, draft)
	}
}

// Flush stores the alerts that are due, until ctx is done. It returns when the next alert
// will be due, or zero if none waits.
func (d *Desk) Flush(ctx context.Context) (next time.Time) {
	if d == nil {
		return time.Time{}
	}
	for ctx.Err() == nil {
		draft, ok := d.anyDue()
		if !ok {
			break
		}
		d.tell(ctx, draft)
	}
	return d.next()
}

// Run flushes whenever an alert is due, until ctx is done.
func (d *Desk) Run(ctx context.Context) {
	if d == nil {
		return
	}
	for {
		var due <-chan time.Time
		if next := d.Flush(ctx); !next.IsZero() {
			due = time.After(next.Sub(d.Clock()))
		}
		select {
		case <-due:
		case <-d.Tallies.counted:
		case <-ctx.Done():
			d.signal() // to the desk that takes over: the signal may be for that one
			return
		}
	}
}

// A draft is an alert that is being stored.
type draft struct {
	*tally
	count  int
	newest core.Unverified
	began  time.Time
}

// count adds a failure, and begins an alert if one is due.
func (d *Desk) count(u core.Unverified) (draft, bool) {
	u.Reason = clip(u.Reason)
	now := d.Clock()
	d.Tallies.mu.Lock()
	defer d.Tallies.mu.Unlock()
	t := d.Tallies.of[u.Source]
	if t == nil {
		t = &tally{}
		d.Tallies.of[u.Source] = t
	}
	t.untold++
	t.newest = u
	begun, ok := t.begin(now)
	if !ok && t.untold == 1 {
		d.signal()
	}
	return begun, ok
}

// anyDue begins an alert that is due, if there is one.
func (d *Desk) anyDue() (draft, bool) {
	now := d.Clock()
	d.Tallies.mu.Lock()
	defer d.Tallies.mu.Unlock()
	for _, source := range slices.Sorted(maps.Keys(d.Tallies.of)) {
		if begun, ok := d.Tallies.of[source].begin(now); ok {
			return begun, true
		}
	}
	return draft{}, false
}

func (t *tally) begin(now time.Time) (draft, bool) {
	if latest := now.Add(window); t.next.After(latest) {
		t.next = latest // the clock was set back
	}
	if t.untold == 0 || t.telling || now.Before(t.next) {
		return draft{}, false
	}
	t.telling = true
	return draft{tally: t, count: t.untold, newest: t.newest, began: now}, true
}

// next returns the earliest due time of the alerts that are not being stored.
func (d *Desk) next() (first time.Time) {
	d.Tallies.mu.Lock()
	defer d.Tallies.mu.Unlock()
	for _, t := range d.Tallies.of {
		if t.untold > 0 && !t.telling && (first.IsZero() || t.next.Before(first)) {
			first = t.next
		}
	}
	return first
}

// tell stores an alert. Its delivery id makes the store accept one a minute, from the first
// process that sends one.
func (d *Desk) tell(ctx context.Context, f draft) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	a := d.arrival(f)
	receipt, err := d.Inbox.Accept(ctx, a)
	told := err == nil && !receipt.Duplicate
	d.finish(f, told)
	switch {
	case err != nil:
		d.Observe(core.Troubled{Doing: "alert", Err: err})
	case told:
		for _, lane := range d.mail.lanes {
			d.Bell.Ring(lane)
		}
		d.Observe(core.Accepted{Event: a.Event, Jobs: receipt.Jobs, Asked: a.Jobs})
	}
}

// finish subtracts a stored alert from the tally. It sets when the next alert may be sent:
// a window later, or after a failure in the next minute.
func (d *Desk) finish(f draft, told bool) {
	d.Tallies.mu.Lock()
	defer d.Tallies.mu.Unlock()
	f.telling = false
	if told {
		f.untold -= f.count
		f.next = f.began.Add(window)
	} else {
		f.next = f.began.Add(window - time.Duration(f.began.UnixNano())%window)
	}
	if f.untold > 0 {
		d.signal()
	}
}

func (d *Desk) signal() {
	select {
	case d.Tallies.counted <- struct{}{}:
	default:
	}
}

// arrival makes the alert's event. Its delivery id names the source and the minute.
func (d *Desk) arrival(f draft) core.Arrival {
	a := d.mail.arrival(f.notice(), f.began)
	a.Event.DeliveryID = fmt.Sprintf("%s/%s/%d", VerificationFailure, f.newest.Source, f.began.Unix()/int64(window/time.Second))
	return a
}

// notice makes the text of an alert about a source, with the reason and the address of the
// newest failure.
func (f draft) notice() notice {
	message := fmt.Sprintf("A request to source %q could not be verified", f.newest.Source)
	if f.count > 1 {
		message = fmt.Sprintf("%d requests to source %q could not be verified", f.count, f.newest.Source)
	}
	return notice{
		Message:  message,
		Source:   f.newest.Source,
		Reason:   f.newest.Reason,
		ClientIP: f.newest.ClientIP,
		Count:    f.count,
	}
}

// clip keeps the beginning of a reason that is too long: some reasons quote the refused
// input.
func clip(s string) string {
	if len(s) <= maxReason {
		return s
	}
	return strings.ToValidUTF8(s[:maxReason], "") + "…" // without a character that is cut in two
}
