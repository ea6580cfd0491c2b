package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/google/go-cmp/cmp"
)

var errDisk = errors.New("disk full")

// A box is an Inbox in memory. Like a store it accepts a delivery id once.
type box struct {
	mu    sync.Mutex
	calls int
	taken []core.Arrival

	// before, if set, runs before each call, and the call returns its error. after runs when
	// the arrival is stored.
	before, after func(context.Context) error
}

func (b *box) Accept(ctx context.Context, a core.Arrival) (core.Receipt, error) {
	if b.before != nil {
		if err := b.before(ctx); err != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.calls++
			return core.Receipt{}, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	for _, known := range b.taken {
		if known.Event.Source == a.Event.Source && known.Event.DeliveryID == a.Event.DeliveryID {
			return core.Receipt{EventID: known.Event.ID, Duplicate: true}, nil
		}
	}
	b.taken = append(b.taken, a)
	if b.after != nil {
		if err := b.after(ctx); err != nil {
			return core.Receipt{}, err
		}
	}
	return core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}, nil
}

// notices returns the alerts about a source, the oldest first.
func (b *box) notices(t *testing.T, source string) (all []notice) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.taken {
		var n notice
		if err := json.Unmarshal(a.Event.Payload, &n); err != nil {
			t.Fatalf("payload %s: %v", a.Event.Payload, err)
		}
		if n.Source == source {
			all = append(all, n)
		}
	}
	return all
}

// counts returns the counts in the alerts about a source.
func (b *box) counts(t *testing.T, source string) (all []int) {
	t.Helper()
	for _, n := range b.notices(t, source) {
		all = append(all, n.Count)
	}
	return all
}

// seen collects the reported facts.
type seen struct {
	mu    sync.Mutex
	facts []core.Fact
}

func (s *seen) observe(f core.Fact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.facts = append(s.facts, f)
}

// troubles returns how many facts report an alert that could not be stored.
func (s *seen) troubles() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.facts {
		if trouble, ok := f.(core.Troubled); ok && trouble.Doing == "alert" {
			n++
		}
	}
	return n
}

var places = []Place{
	{Lane: Lane("https://example.com/a"), On: []Kind{VerificationFailure}},
	{Lane: Lane("https://example.com/b"), On: []Kind{DLQ}},
	{Lane: Lane("https://example.com/c"), On: []Kind{DLQ, VerificationFailure}},
	{Lane: Lane("https://example.com/a"), On: []Kind{VerificationFailure}}, // again
}

// newDesk makes a Desk for a synctest bubble, with the bubble's clock.
func newDesk(b *box, s *seen) *Desk {
	return New(Deps{
		Inbox: b, IDs: core.NewIDs(time.Now), Clock: time.Now, Bell: &core.Bell{}, Observe: s.observe,
		MaxAttempts: 5, Places: places,
	})
}

func failure(source string) core.Unverified {
	return core.Unverified{Source: source, Reason: "Invalid signature: X-Signature is absent", ClientIP: "192.0.2.1"}
}

func TestLane(t *testing.T) {
	if got, want := Lane("https://example.com/a"), core.Lane("alert/2dce0a4c5044"); got != want {
		t.Errorf("Lane = %q, want %q", got, want)
	}
}

func TestAlertIsAnEvent(t *testing.T) {
	var b box
	var s seen
	at := time.Date(2026, 11, 20, 7, 28, 11, 123456789, time.FixedZone("", 3600))
	bell := &core.Bell{}
	heard := bell.Listen(places[0].Lane, places[1].Lane, places[2].Lane)
	clock := func() time.Time { return at }
	d := New(Deps{Inbox: &b, IDs: core.NewIDs(clock), Clock: clock, Bell: bell, Observe: s.observe, MaxAttempts: 5, Places: places})

	d.Unverified(t.Context(), failure("github"))

	if len(b.taken) != 1 || len(b.taken[0].Jobs) != 2 {
		t.Fatalf("stored %+v, want one event with two jobs", b.taken)
	}
	got := b.taken[0]
	want := core.Arrival{
		Event: core.Event{
			ID:     got.Event.ID,
			Source: "_alerts",
			Type:   "alert.verification_failure",
			Payload: []byte(`{"alert":"verification_failure","message":"A request to source \"github\" could not be verified","source":"github",` +
				`"reason":"Invalid signature: X-Signature is absent","client_ip":"192.0.2.1","count":1,"created_at":"2026-11-20T06:28:11.123"}`),
			ContentType: "application/json",
			DeliveryID:  "verification_failure/github/29919268",
			CreatedAt:   time.Date(2026, 11, 20, 6, 28, 11, 123e6, time.UTC),
		},
		Jobs: []core.NewJob{
			{ID: got.Jobs[0].ID, Lane: places[0].Lane, MaxAttempts: 5},
			{ID: got.Jobs[1].ID, Lane: places[2].Lane, MaxAttempts: 5},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stored other than wanted:\n%s", diff)
	}
	ids := []core.ID{got.Event.ID, got.Jobs[0].ID, got.Jobs[1].ID}
	if slices.Contains(ids, "") || len(slices.Compact(ids)) != 3 {
		t.Errorf("ids %v, want three", ids)
	}
	if rung := heard.Rung(); len(rung) != 2 || slices.Contains(rung, places[1].Lane) {
		t.Errorf("rung %v, want the lanes of the jobs", rung)
	}
	if diff := cmp.Diff([]core.Fact{core.Accepted{Event: want.Event, Jobs: 2, Asked: want.Jobs}}, s.facts); diff != "" {
		t.Errorf("facts other than wanted:\n%s", diff)
	}
}

func TestFailuresWithinAMinuteAreToldTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b box
		d := newDesk(&b, &seen{})
		time.Sleep(50 * time.Second) // so that minutes of the clock differ from minutes since the first failure
		d.Unverified(t.Context(), failure("github"))
		for range 4 {
			time.Sleep(time.Second)
			d.Unverified(t.Context(), failure("github"))
		}
		d.Unverified(t.Context(), failure("shop")) // it has its own minute
		due := time.Now().Add(56 * time.Second)    // of the first source
		if next := d.Flush(t.Context()); !next.Equal(due) || len(b.taken) != 2 {
			t.Fatalf("Flush = %v with %d alerts, want %v with 2", next, len(b.taken), due)
		}
		time.Sleep(56*time.Second - time.Millisecond)
		if d.Flush(t.Context()); len(b.taken) != 2 {
			t.Fatal("reported before the minute was over")
		}
		time.Sleep(time.Millisecond)
		if next := d.Flush(t.Context()); !next.IsZero() {
			t.Errorf("Flush = %v, want nothing more to tell", next)
		}
		if got, want := b.counts(t, "github"), []int{1, 4}; !slices.Equal(got, want) {
			t.Errorf("counts %v, want %v", got, want)
		}
		if got, want := b.notices(t, "github")[1].Message, `4 requests to source "github" could not be verified`; got != want {
			t.Errorf("message %q, want %q", got, want)
		}
		time.Sleep(30 * time.Second)
		d.Unverified(t.Context(), failure("github"))
		time.Sleep(30 * time.Second)
		d.Unverified(t.Context(), failure("github")) // stores an alert without a Flush
		if got, want := b.counts(t, "github"), []int{1, 4, 2}; !slices.Equal(got, want) {
			t.Errorf("counts %v, want %v", got, want)
		}
	})
}

// TestFlood: many concurrent callers, for some time, in each of several processes.
func TestFlood(t *testing.T) {
	for _, processes := range []int{1, 3} {
		t.Run(fmt.Sprint(processes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { flood(t, processes) })
		})
	}
}

func flood(t *testing.T, processes int) {
	const callers, calls = 8, 200
	sources := []string{"github", "shop", "stripe"}
	b := &box{before: func(context.Context) error {
		time.Sleep(5 * time.Millisecond)
		return nil
	}}
	ctx, stop := context.WithCancel(t.Context())
	var running, calling sync.WaitGroup
	for range processes {
		d := newDesk(b, &seen{})
		running.Go(func() { d.Run(ctx) })
		for range callers {
			calling.Go(func() {
				for i := range calls {
					time.Sleep(rand.N(4 * time.Second))
					d.Unverified(ctx, failure(sources[i%len(sources)]))
				}
			})
		}
	}
	calling.Wait()
	time.Sleep(time.Duration(processes+1) * time.Minute) // each process reports the rest of its count
	stop()
	running.Wait()

	total := 0
	for _, source := range sources {
		var last time.Time
		for _, n := range b.notices(t, source) {
			total += n.Count
			at, err := core.ParseTime(n.CreatedAt)
			if err != nil {
				t.Fatal(err)
			}
			if processes == 1 && at.Sub(last) < time.Minute || at.Truncate(time.Minute).Equal(last.Truncate(time.Minute)) {
				t.Errorf("alerts about %s at %v and %v", source, last, at)
			}
			last = at
		}
	}
	if want := processes * callers * calls; total != want {
		t.Errorf("alerts tell of %d failures, want %d", total, want)
	}
}

func TestRunTellsWhatWasCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b box
		d := newDesk(&b, &seen{})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { d.Run(ctx) })
		began := time.Now()
		d.Unverified(ctx, failure("github"))
		time.Sleep(20 * time.Second)
		synctest.Wait() // Run waits and has nothing to report
		d.Unverified(ctx, failure("github"))
		time.Sleep(time.Hour)
		synctest.Wait()
		all := b.notices(t, "github")
		if len(all) != 2 || all[1].CreatedAt != core.FormatTime(began.Add(time.Minute)) || all[1].Count != 1 {
			t.Errorf("alerts %+v, want a second one after a minute", all)
		}
		stop()
		running.Wait()
	})
}

func TestAnotherProcessWasFaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b box
		var s seen
		time.Sleep(40 * time.Second)
		first, second := newDesk(&b, &seen{}), newDesk(&b, &s)
		first.Unverified(t.Context(), failure("github"))
		second.Unverified(t.Context(), failure("github"))
		second.Unverified(t.Context(), failure("github"))
		due := time.Now().Add(20 * time.Second) // the next minute of the clock
		if next := second.Flush(t.Context()); !next.Equal(due) || b.calls != 2 || len(s.facts) != 0 {
			t.Fatalf("Flush = %v after %d calls and facts %v, want %v after 2 and none", next, b.calls, s.facts, due)
		}
		time.Sleep(20 * time.Second)
		second.Flush(t.Context())
		if got, want := b.counts(t, "github"), []int{1, 2}; !slices.Equal(got, want) {
			t.Errorf("counts %v, want %v", got, want)
		}
	})
}

func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s seen
		failing := true
		b := &box{before: func(context.Context) error {
			if failing {
				return errDisk
			}
			return nil
		}}
		d := newDesk(b, &s)
		for range 3 {
			d.Unverified(t.Context(), failure("github"))
		}
		if b.calls != 1 || s.troubles() != 1 {
			t.Fatalf("%d calls, %d troubles, want one of each in a minute", b.calls, s.troubles())
		}
		time.Sleep(time.Minute)
		if next := d.Flush(t.Context()); b.calls != 2 || s.troubles() != 2 || !next.Equal(time.Now().Add(time.Minute)) {
			t.Fatalf("%d calls, %d troubles, next %v, want two and a third chance in a minute", b.calls, s.troubles(), next)
		}
		failing = false
		time.Sleep(time.Minute)
		d.Unverified(t.Context(), failure("github"))
		if got, want := b.counts(t, "github"), []int{4}; !slices.Equal(got, want) {
			t.Errorf("counts %v, want %v", got, want)
		}
	})
}

func TestAnswerOfTheStoreIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &box{after: func(context.Context) error { return errDisk }}
		d := newDesk(b, &seen{})
		d.Unverified(t.Context(), failure("github"))
		b.after = nil
		time.Sleep(time.Minute)
		d.Unverified(t.Context(), failure("github"))
		if got, want := b.counts(t, "github"), []int{1, 2}; !slices.Equal(got, want) {
			t.Errorf("counts %v, want %v: reported twice rather than never", got, want)
		}
	})
}

func TestStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s seen
		b := &box{before: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		d := newDesk(b, &s)
		gone, cancel := context.WithCancel(t.Context())
		cancel() // a caller that hangs up does not keep the alert from being stored
		began := time.Now()
		var first sync.WaitGroup
		first.Go(func() { d.Unverified(gone, failure("github")) })
		synctest.Wait()
		for range 10 {
			d.Unverified(t.Context(), failure("github"))
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("others waited %v for the first", took)
		}
		if next := d.Flush(t.Context()); !next.IsZero() {
			t.Errorf("Flush = %v while the alert is being made", next)
		}
		first.Wait()
		if took := time.Since(began); took != patience {
			t.Errorf("the caller waited %v, want %v", took, patience)
		}
		b.before = nil
		time.Sleep(time.Minute)
		if d.Flush(t.Context()); !slices.Equal(b.counts(t, "github"), []int{11}) || s.troubles() != 1 {
			t.Errorf("counts %v, %d troubles, want all 11 and one", b.counts(t, "github"), s.troubles())
		}
	})
}

func TestFailuresWhileAnAlertIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b box
		d := newDesk(&b, &seen{})
		d.Unverified(t.Context(), failure("github"))
		b.before = func(context.Context) error {
			time.Sleep(time.Second)
			return nil
		}
		time.Sleep(time.Minute)
		var second sync.WaitGroup
		second.Go(func() { d.Unverified(t.Context(), failure("github")) })
		synctest.Wait()
		for _, reason := range []string{"older", "newest"} {
			u := failure("github")
			u.Reason = reason
			d.Unverified(t.Context(), u)
		}
		if next := d.Flush(t.Context()); !next.IsZero() {
			t.Errorf("Flush = %v while the alert is being made; it would be asked again at once", next)
		}
		second.Wait()
		time.Sleep(time.Minute)
		d.Flush(t.Context())
		if got, want := b.counts(t, "github"), []int{1, 1, 2}; !slices.Equal(got, want) {
			t.Errorf("counts %v, want %v", got, want)
		}
		if got := b.notices(t, "github")[2].Reason; got != "newest" {
			t.Errorf("reason %q, want that of the newest failure", got)
		}
	})
}

func TestFlushEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &box{before: func(context.Context) error { return errDisk }}
		d := newDesk(b, &seen{})
		for i := range 5 {
			d.Unverified(t.Context(), failure(fmt.Sprint("source", i)))
		}
		time.Sleep(time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		b.before = func(context.Context) error {
			cancel()
			return nil
		}
		if next := d.Flush(ctx); len(b.taken) != 1 || next.After(time.Now()) {
			t.Errorf("%d alerts after the context was done, next %v; want 1, and the others still due", len(b.taken), next)
		}
	})
}

func TestNobodyToTell(t *testing.T) {
	d := New(Deps{Places: []Place{{Lane: Lane("https://example.com/b"), On: []Kind{DLQ}}}})
	if d != nil {
		t.Fatal("a desk although nobody wants to be told")
	}
	d.Unverified(t.Context(), failure("github"))
	if next := d.Flush(t.Context()); !next.IsZero() {
		t.Errorf("Flush = %v", next)
	}
	d.Run(t.Context()) // returns
}

func TestLongReasonsAreClipped(t *testing.T) {
	for name, reason := range map[string]string{
		"runes":    strings.Repeat("é", 10_000),
		"shifted":  "x" + strings.Repeat("é", 10_000),
		"no runes": strings.Repeat("\x80", 10_000),
	} {
		synctest.Test(t, func(t *testing.T) {
			var b box
			d := newDesk(&b, &seen{})
			u := failure("github")
			u.Reason = reason
			d.Unverified(t.Context(), u)
			got := b.notices(t, "github")[0].Reason
			if kept, cut := strings.CutSuffix(got, "…"); !cut || len(kept) > maxReason || strings.ContainsRune(kept, '�') {
				t.Errorf("%s: reason of %d bytes kept as %q", name, len(reason), got)
			}
		})
	}
}

func (b *box) AcceptAll(ctx context.Context, all []core.Arrival) (receipts []core.Receipt, err error) {
	for _, a := range all {
		r, err := b.Accept(ctx, a)
		if err != nil {
			return nil, err
		}
		receipts = append(receipts, r)
	}
	return receipts, nil
}
