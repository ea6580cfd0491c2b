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
	// window is how far apart alerts about one source are.
	window = time.Minute

	// patience is how long one alert may take to be stored: a sender who was
	// refused waits for that.
	patience = 2 * time.Second

	// maxReason is how many bytes of a reason are kept.
	maxReason = 1 << 10
)

// Deps is what a Desk works with. Bell and Observe may be nil.
type Deps struct {
	Inbox core.Inbox
	IDs   *core.IDs
	Clock core.Clock

	Bell    *core.Bell    // rung for every lane that got an alert
	Observe core.Observer // told Accepted, and Troubled if an alert could not be stored

	MaxAttempts int // to deliver an alert; at least 1
	Places      []Place

	// Tallies are those of the desk whose place this one takes. Nil begins with none.
	Tallies *Tallies
}

// Tallies are what desks remember: one tally for each source that they were told of, and
// those are configured ones.
type Tallies struct {
	counted chan struct{} // signals that there is something to tell later

	mu sync.Mutex
	of map[string]*tally
}

// NewTallies makes empty ones.
func NewTallies() *Tallies {
	return &Tallies{counted: make(chan struct{}, 1), of: map[string]*tally{}}
}

// A Desk hears of failures and makes alerts of them. It is safe for concurrent
// use; a nil one hears of them in vain.
//
// What is counted and not yet told when a process ends is told by nobody.
type Desk struct {
	Deps
	mail mailing
}

// A tally is what a desk knows about the failures of one source.
type tally struct {
	untold  int             // failures that no stored alert has counted
	newest  core.Unverified // of them
	next    time.Time       // when the next alert may be made
	telling bool            // somebody is making it
}

// New makes a desk; it is nil if no place wants to be told of verification failures.
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

// Unverified hears that a sender was refused. The first failure of a source is
// told before it returns; those within a minute of that are counted, and told
// together by the first call, of Unverified or Flush, after it.
//
// It goes on when ctx is done, and takes 2 seconds at most. If the alert cannot be
// stored, or another process has told of this source in this minute, the count is
// kept for the next minute. A store whose answer was lost may so count a failure
// in two alerts; none is forgotten.
func (d *Desk) Unverified(ctx context.Context, u core.Unverified) {
	if d == nil {
		return
	}
	if draft, ok := d.count(u); ok {
		d.tell(ctx, draft)
	}
}

// Flush tells what has been counted and may be told by now, until ctx is done. It
// returns when there will be more to tell, as far as is known; zero if nothing
// waits.
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

// Run flushes whenever something may be told, until ctx is done.
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
			d.signal() // to the desk that takes over: it may have been meant
			return
		}
	}
}

// A draft is an alert that is being made.
type draft struct {
	*tally
	count  int
	newest core.Unverified
	began  time.Time
}

// count adds a failure, and begins an alert if the time has come.
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

// anyDue begins an alert about some source, if one is due.
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

// next is when the first alert that is not being made is due.
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

// tell stores an alert. The delivery id lets the store take one a minute, from
// whichever process comes first.
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

// finish takes what was told from the tally and says when it may be told of again:
// a window after an alert, else when the next minute gives the next chance.
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

// arrival is the alert. Its delivery id names the source and the minute.
func (d *Desk) arrival(f draft) core.Arrival {
	a := d.mail.arrival(f.notice(), f.began)
	a.Event.DeliveryID = fmt.Sprintf("%s/%s/%d", VerificationFailure, f.newest.Source, f.began.Unix()/int64(window/time.Second))
	return a
}

// notice is what an alert about a source says. Reason and address are those of the
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

// clip keeps the beginning of a reason that is too long: some quote what they refuse.
func clip(s string) string {
	if len(s) <= maxReason {
		return s
	}
	return strings.ToValidUTF8(s[:maxReason], "") + "…" // without the character that is cut in two
}
