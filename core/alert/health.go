package alert

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	// checkEvery is the time between two checks of lag, holds and quiet sources. checkTurn is
	// shorter, so that the holder of the last turn may get the next.
	checkEvery = time.Minute
	checkTurn  = checkEvery - 5*time.Second

	// turnName is the name of the turn of a check.
	turnName = "health"

	// longOver is the age from which an opening that has ended already is no news. It is for
	// places that are configured after the opening.
	longOver = time.Hour
)

// Thresholds are the settings of a place for alerts on health. A place that wants no such
// alerts has zero Thresholds.
type Thresholds struct {
	Interval time.Duration            // the shortest time between two alerts that the same breaker opened, or the same lane lags
	Lag      time.Duration            // the age of a due job from which its lane lags
	Held     time.Duration            // the age of a hold from which it may be forgotten
	Quiet    map[string]time.Duration // by source: the time without an event from which it is quiet
}

// A HealthStore is the part of a store that Health uses.
type HealthStore interface {
	Accept(ctx context.Context, a core.Arrival) (core.Receipt, error)
	Due(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error)
	Holding(ctx context.Context, now time.Time) ([]core.Hold, error)
	Nth(ctx context.Context, f core.EventFilter, n int) (core.ID, error)
	Marks(ctx context.Context, sources []string) (map[string]core.Mark, error)
	Mark(ctx context.Context, marks ...core.Mark) error
	Turn(ctx context.Context, now time.Time, name string, hold time.Duration) (bool, error)
}

// HealthDeps are the dependencies of Health. Bell and Observe may be nil.
type HealthDeps struct {
	Store HealthStore
	IDs   *core.IDs
	Clock core.Clock

	Bell    *core.Bell    // rung for every lane that got an alert
	Observe core.Observer // of Accepted, and of Troubled if a check failed

	MaxAttempts int // to deliver an alert; at least 1
	Places      []Place
	Lanes       []core.Lane // of all handlers, queues and workflows

	// Moves are the moves of breakers that this process noticed. Nil begins with none.
	Moves *Moves
}

// Moves are the lanes whose breakers moved in this process since Health last looked at them.
// Successive Health of one process share them.
type Moves struct {
	moved chan struct{} // signals that there are lanes

	mu    sync.Mutex
	lanes map[core.Lane]bool
}

// NewMoves returns Moves without lanes.
func NewMoves() *Moves { return &Moves{moved: make(chan struct{}, 1), lanes: map[core.Lane]bool{}} }

func (m *Moves) add(lanes ...core.Lane) {
	m.mu.Lock()
	for _, l := range lanes {
		m.lanes[l] = true
	}
	m.mu.Unlock()
	m.signal()
}

func (m *Moves) signal() {
	select {
	case m.moved <- struct{}{}:
	default:
	}
}

// take returns the lanes and forgets them.
func (m *Moves) take() []core.Lane {
	m.mu.Lock()
	defer m.mu.Unlock()
	lanes := slices.Sorted(maps.Keys(m.lanes))
	clear(m.lanes)
	return lanes
}

// Health makes alerts about breakers that open and close, lanes that lag, holds that are old,
// and quiet sources. It is safe for concurrent use. Nil Health makes no alerts.
//
// The idea to know: each transition has one name, made of stored facts alone, and the name is
// the delivery id of its alert. So of several processes that notice the transition, one stores
// the alert. The breaker's row keeps when it last opened, so an opening is noticed also if the
// process that caused it dies before it stores the alert. After the alert is stored, a mark
// (see [core.Calendar]) records it. If the process dies in between, the next check makes the
// alert again under the same name, which stores nothing, and sets the mark.
type Health struct {
	HealthDeps
	watches
}

// NewHealth makes Health; it is nil if no place wants alerts on health.
func NewHealth(d HealthDeps) *Health {
	h := &Health{HealthDeps: d, watches: watchesOf(d)}
	if len(h.circuits)+len(h.lags)+len(h.holds)+len(h.silences) == 0 {
		return nil
	}
	if h.Observe == nil {
		h.Observe = func(core.Fact) {}
	}
	if h.Moves == nil {
		h.Moves = NewMoves()
	}
	return h
}

// Noticed is a core.Observer: it remembers breakers that moved, for Tick and Flush.
func (h *Health) Noticed(f core.Fact) {
	if moved, ok := f.(core.BreakerMoved); ok && h != nil && len(h.circuits) > 0 {
		h.Moves.add(moved.Lane)
	}
}

// Tick checks everything at once and then each minute, if this process gets the turn, and
// breakers as soon as they move in this process. It ends when ctx is done, and reports errors
// as [core.Troubled]. With a zero Rest it makes one check instead, and returns its error.
func (h *Health) Tick(ctx context.Context, b core.Budget) error {
	if h == nil {
		return nil
	}
	if b.Rest == 0 {
		return h.round(ctx)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			h.report(ctx, h.round(ctx))
			timer.Reset(checkEvery)
		case <-h.Moves.moved:
			h.Flush(ctx)
		case <-ctx.Done():
			h.Moves.signal() // to the Health that takes over: the signal may be for that one
			return nil
		}
	}
}

// Flush stores the alerts about breakers that have moved in this process, and reports whether it
// stored one. An alert that cannot be stored now is stored by the next round.
func (h *Health) Flush(ctx context.Context) (stored bool) {
	if h == nil {
		return false
	}
	lanes := h.Moves.take()
	if len(lanes) == 0 {
		return false
	}
	stored, err := h.lookAtCircuits(ctx, lanes)
	if ctx.Err() != nil {
		h.Moves.add(lanes...) // for the Health that takes over
	}
	h.report(ctx, err)
	return stored
}

// report reports an error of a check. The end of ctx is none.
func (h *Health) report(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		h.Observe(core.Troubled{Doing: "check health", Err: err})
	}
}

// round checks everything, if this process gets the turn.
func (h *Health) round(ctx context.Context) error {
	hasTurn, err := h.Store.Turn(ctx, h.Clock(), turnName, checkTurn)
	if err != nil || !hasTurn {
		return err
	}
	now := h.Clock()
	var s sight
	if len(h.circuits)+len(h.lags) > 0 {
		if s.due, err = h.Store.Due(ctx, h.lanes()); err != nil {
			return err
		}
	}
	if len(h.holds) > 0 {
		if s.held, err = h.Store.Holding(ctx, now); err != nil {
			return err
		}
	}
	if s.newest, err = h.newest(ctx); err != nil {
		return err
	}
	_, err = h.tell(ctx, now, h.all(s))
	return err
}

// lanes returns the lanes that a check looks at. Without alerts of lag those are the lanes of
// handlers.
func (h *Health) lanes() []core.Lane {
	if len(h.lags) > 0 {
		return h.Lanes
	}
	return slices.DeleteFunc(slices.Clone(h.Lanes), func(l core.Lane) bool { return l.Handler() == "" })
}

// newest returns when the newest event of each watched source came; zero if none is stored.
func (h *Health) newest(ctx context.Context) (map[string]time.Time, error) {
	at := map[string]time.Time{}
	for _, q := range h.silences {
		if _, known := at[q.source]; known {
			continue
		}
		id, err := h.Store.Nth(ctx, core.EventFilter{Source: q.source}, 1)
		if err != nil {
			return nil, err
		}
		at[q.source] = id.Time()
	}
	return at, nil
}

// lookAtCircuits checks the breakers of some lanes. It asks for no turn: the names of the alerts
// ensure that each is stored once.
func (h *Health) lookAtCircuits(ctx context.Context, lanes []core.Lane) (stored bool, err error) {
	lanes = slices.DeleteFunc(lanes, func(l core.Lane) bool { return l.Handler() == "" || !slices.Contains(h.Lanes, l) })
	if len(lanes) == 0 {
		return false, nil
	}
	due, err := h.Store.Due(ctx, lanes)
	if err != nil {
		return false, err
	}
	var checks []check
	for _, l := range lanes {
		for _, c := range h.circuits {
			checks = append(checks, c.of(l, due[l].Gate))
		}
	}
	return h.tell(ctx, h.Clock(), checks)
}

// tell stores the alerts of checks, and sets their marks. Each alert comes before its marks. It
// reports whether it stored an alert.
func (h *Health) tell(ctx context.Context, now time.Time, checks []check) (stored bool, err error) {
	var names []string
	for _, c := range checks {
		names = append(names, c.names...)
	}
	known, err := h.Store.Marks(ctx, names)
	if err != nil {
		return false, err
	}
	marks := marks{}
	maps.Copy(marks, known)
	for _, c := range checks {
		// One look may find two transitions: a breaker that opened and closed.
		for news := c.next(now, marks); news != nil; news = c.next(now, marks) {
			isNew, err := h.store(ctx, now, *news)
			if stored = stored || isNew; err != nil {
				return stored, err
			}
			if err := h.Store.Mark(ctx, news.marks...); err != nil {
				return stored, err
			}
			for _, m := range news.marks {
				marks[m.Source] = m
			}
		}
	}
	return stored, nil
}

// store stores the alert of a transition, and reports whether it did: not if no place wants the
// alert, or if it is stored already.
func (h *Health) store(ctx context.Context, now time.Time, n news) (bool, error) {
	if len(n.mail.lanes) == 0 {
		return false, nil
	}
	a := n.mail.arrival(n.notice, now)
	a.Event.DeliveryID = n.id
	receipt, err := h.Store.Accept(ctx, a)
	if err != nil || receipt.Duplicate {
		return false, err
	}
	for _, lane := range n.mail.lanes {
		h.Bell.Ring(lane)
	}
	h.Observe(core.Accepted{Event: a.Event, Jobs: receipt.Jobs, Asked: a.Jobs})
	return true, nil
}

// watches are the conditions that the places want alerts about. Places with the same settings
// share a watch, and so its alerts.
type watches struct {
	circuits []circuit
	lags     []lag
	holds    []holding
	silences []silence
}

func watchesOf(d HealthDeps) (w watches) {
	// with returns the places whose settings satisfy same, and a mailing to the places among them
	// that want a kind.
	mail := func(kind Kind, same func(Thresholds) bool) mailing {
		some := slices.DeleteFunc(slices.Clone(d.Places), func(p Place) bool { return !same(p.Health) })
		return mailing{kind: kind, ids: d.IDs, lanes: wanting(kind, some), maxAttempts: d.MaxAttempts}
	}
	for _, p := range d.Places {
		t := p.Health
		wants := func(kind Kind) bool { return slices.Contains(p.On, kind) }
		if wants(CircuitOpened) || wants(CircuitClosed) {
			same := func(o Thresholds) bool { return o.Interval == t.Interval }
			w.circuits = addNew(w.circuits, circuit{interval: t.Interval, opened: mail(CircuitOpened, same), closed: mail(CircuitClosed, same)})
		}
		if wants(Lag) {
			same := func(o Thresholds) bool { return o.Interval == t.Interval && o.Lag == t.Lag }
			w.lags = addNew(w.lags, lag{after: t.Lag, interval: t.Interval, mail: mail(Lag, same)})
		}
		if wants(Held) {
			w.holds = addNew(w.holds, holding{after: t.Held, mail: mail(Held, func(o Thresholds) bool { return o.Held == t.Held })})
		}
		if !wants(Quiet) {
			continue
		}
		for _, source := range slices.Sorted(maps.Keys(t.Quiet)) {
			after := t.Quiet[source]
			same := func(o Thresholds) bool { return o.Quiet[source] == after }
			w.silences = addNew(w.silences, silence{source: source, after: after, mail: mail(Quiet, same)})
		}
	}
	return w
}

// addNew adds a watch, unless there is one with the same settings.
func addNew[W interface{ key() string }](all []W, w W) []W {
	if slices.ContainsFunc(all, func(o W) bool { return o.key() == w.key() }) {
		return all
	}
	return append(all, w)
}

// A sight has the records that a check has read.
type sight struct {
	due    map[core.Lane]core.Outlook
	held   []core.Hold
	newest map[string]time.Time
}

// all returns the checks of all watches.
func (h *Health) all(s sight) (checks []check) {
	for _, l := range h.Lanes {
		for _, c := range h.circuits {
			if l.Handler() != "" {
				checks = append(checks, c.of(l, s.due[l].Gate))
			}
		}
		for _, g := range h.lags {
			checks = append(checks, g.of(l, s.due[l]))
		}
	}
	for _, w := range h.holds {
		for _, hold := range s.held {
			checks = append(checks, w.of(hold))
		}
	}
	for _, q := range h.silences {
		checks = append(checks, q.of(s.newest[q.source]))
	}
	return checks
}

// marks are the stored marks, by name.
type marks map[string]core.Mark

// until returns the time of a mark; zero if there is none.
func (m marks) until(name string) time.Time { return m[name].Until }

// A check compares one thing with its marks.
type check struct {
	names []string // of the marks
	next  func(now time.Time, m marks) *news
}

// News is a transition without an alert so far.
type news struct {
	mail   mailing // without lanes if no place wants it
	id     string  // of its delivery
	notice notice
	marks  []core.Mark // that record the alert
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	return slices.MaxFunc([]time.Time{a, b}, func(a, b time.Time) int { return cmp.Compare(a.UnixNano(), b.UnixNano()) })
}
