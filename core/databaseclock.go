package core

import (
	"sync"
	"sync/atomic"
	"time"
)

// Constants by which a [DatabaseClock] follows the database's clock.
const (
	// measureEvery is for how long the clock relies on a measurement. It repeats a rough
	// measurement, whose error may exceed roughly, after measureSoon. It also repeats a
	// measurement without an answer then. The first measurement is often rough, because the
	// connection is new.
	measureEvery = time.Minute
	measureSoon  = 2 * time.Second
	roughly      = 25 * time.Millisecond

	// slewPart sets the speed of a correction: a tenth of the time that passes. Two
	// processes that learn of a jump a minute apart therefore differ by 6 seconds at most.
	// A call of 30 seconds loses 3 seconds of its lease. Leases outlast calls by 15
	// seconds.
	slewPart = 10

	// slewMost is the largest correction that is made gradually. It takes ten minutes.
	slewMost = time.Minute

	// driftPart bounds the drift between two clocks: one part in 10,000, or 100 ppm.
	driftPart = 10_000

	// granularity is the resolution of the database's time.
	granularity = time.Millisecond

	// stepped bounds the difference between the machine's wall clock and its monotonic
	// clock. From this difference on, the wall clock was set or the process was suspended.
	stepped = 500 * time.Millisecond

	// tellFrom is the smallest difference between machine and database that is stated as a
	// fact.
	tellFrom = time.Second
)

// A DatabaseClock tells the time of a database. All processes of one database compare its
// stored times with this clock, so the clocks of their machines may differ.
//
// The idea to know: the clock is measured seldom and counts for itself in between. It adds
// the machine's monotonic time to the last measurement, so a step of the machine's wall
// clock does not move it. A later measurement that differs is followed gradually, at a
// tenth of real time, and the clock never runs backwards for it. Only corrections of more
// than a minute are made at once: the database has another clock then, for example after
// a failover. Leases under way may then seem over too early, once.
//
// The error of an answer is at most half its round trip. A new measurement replaces the
// known one in two cases: it is more exact, counting 100 ppm of drift since the known one,
// or it proves the known time wrong.
//
// Until the first measurement it returns the machine's time. It is safe for concurrent use.
type DatabaseClock struct {
	read  func() instant
	asked atomic.Int64 // instant.up in ns before which no other measurement is due
	known atomic.Pointer[course]

	mu      sync.Mutex // held while known is replaced
	observe Observer
	told    time.Duration // the offset of the last fact
}

// An instant is a moment by both clocks of the machine.
type instant struct {
	wall time.Time     // without the monotonic reading that time.Time can have
	up   time.Duration // monotonic, since the clock was made
}

// A course is the known time of the database from an instant on.
type course struct {
	from instant
	time time.Time     // of the database at from
	owed time.Duration // correction of time that is still to be made
	blur time.Duration // the largest error of time and owed together
	due  time.Duration // instant.up of the next measurement
}

// NewDatabaseClock makes a clock that has not been measured.
func NewDatabaseClock(machine Clock) *DatabaseClock {
	epoch := machine()
	return &DatabaseClock{read: func() instant {
		now := machine()
		return instant{now.Round(0).UTC(), now.Sub(epoch)}
	}}
}

// Now is a [Clock] that returns the database's time. The result has no monotonic reading.
func (c *DatabaseClock) Now() time.Time {
	now, k := c.read(), c.known.Load()
	if k == nil {
		return now.wall
	}
	return k.at(now.up)
}

// Ahead returns how far the database's clock is ahead of the machine's. It is negative if
// the database's clock is behind, and 0 before the first measurement.
func (c *DatabaseClock) Ahead() time.Duration {
	now, k := c.read(), c.known.Load()
	if k == nil {
		return 0
	}
	return k.target(now.up).Sub(now.wall)
}

// Due returns for how long a measurement has been due, or false if none is due.
// Measurements are due a minute apart. One is due at once when the machine's wall clock was
// set or the process was suspended.
func (c *DatabaseClock) Due() (since time.Duration, due bool) {
	now, k := c.read(), c.known.Load()
	switch {
	case now.up < time.Duration(c.asked.Load()):
		return 0, false
	case k == nil || k.gap(now).Abs() > stepped:
		return measureEvery, true
	case now.up >= k.due:
		return now.up - k.due, true
	}
	return 0, false
}

// Measure begins a measurement. The caller asks the database for its time at once, and
// calls answered as soon as it has the time. No other measurement is due meanwhile, for two
// seconds at most.
func (c *DatabaseClock) Measure() (answered func(database time.Time)) {
	asked := c.read()
	c.asked.Store(int64(asked.up + measureSoon))
	return func(database time.Time) {
		now := c.read()
		half := (now.up - asked.up) / 2
		c.follow(now, database.Round(0).UTC().Add(half), half+granularity)
		c.asked.Store(0)
	}
}

// Doubt makes a measurement due at once. A caller that lost its connection to the database
// calls it, because the database may come back on another machine.
func (c *DatabaseClock) Doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.known.Load(); k != nil {
		sooner := *k
		sooner.due = min(k.due, c.read().up)
		c.known.Store(&sooner)
	}
	c.asked.Store(0)
}

// Forget forgets all measurements, so that the next one is followed at once and not gradually.
// It is for a process that has not used the time yet.
func (c *DatabaseClock) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.Store(nil)
}

// Resume adds the time of a suspension to the clock. It is for a process that is suspended
// between two calls, as functions are. Its monotonic clock may have stood still meanwhile, so the
// wall clock gives that time.
func (c *DatabaseClock) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, k := c.read(), c.known.Load()
	if k == nil {
		return
	}
	if gap := k.gap(now); gap > 0 {
		next := k.rebased(now)
		next.time = next.time.Add(gap)
		next.blur += gap / driftPart
		next.due -= gap
		c.known.Store(&next)
	}
}

// follow corrects the clock by a measurement: the database's time now is seen, with an
// error of at most blur.
func (c *DatabaseClock) follow(now instant, seen time.Time, blur time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.known.Load()
	if k == nil {
		k = &course{from: now, time: seen, blur: blur}
	}
	next := k.rebased(now)
	off := seen.Sub(next.time.Add(next.owed))
	jumped := off.Abs() > blur+next.blur
	if gap := k.gap(now); jumped && gap > stepped && (off-gap).Abs() <= blur+next.blur+gap/driftPart {
		next.time, off, jumped = next.time.Add(gap), off-gap, false // the process was suspended
	}
	if jumped || blur <= next.blur {
		next.owed += off
		next.blur = blur
	}
	if next.owed.Abs() > slewMost {
		next.time, next.owed = next.time.Add(next.owed), 0
	}
	next.due = now.up + measureEvery
	if next.blur > roughly {
		next.due = now.up + measureSoon
	}
	c.known.Store(&next)
	if jumped && off.Abs() >= tellFrom {
		c.tell(DatabaseClockJumped{By: off})
	}
	c.tellAhead(now, &next)
}

// Tell sets the observer of facts about the clock: [ClocksDiffer] and
// [DatabaseClockJumped]. If the clocks differ at the moment, the observer receives that
// fact at once.
func (c *DatabaseClock) Tell(o Observer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.observe, c.told = o, 0
	if k := c.known.Load(); k != nil {
		c.tellAhead(c.read(), k)
	}
}

// tellAhead states how far the clocks are apart, if that is certain and has changed.
func (c *DatabaseClock) tellAhead(now instant, k *course) {
	ahead := k.target(now.up).Sub(now.wall)
	if (ahead-c.told).Abs()-k.blur >= tellFrom && c.observe != nil {
		c.observe(ClocksDiffer{Ahead: ahead})
		c.told = ahead
	}
}

func (c *DatabaseClock) tell(f Fact) {
	if c.observe != nil {
		c.observe(f)
	}
}

// at returns the clock's time at a later instant.
func (k *course) at(up time.Duration) time.Time {
	passed := max(0, up-k.from.up)
	part := passed / slewPart
	return k.time.Add(passed + max(-part, min(k.owed, part)))
}

// target returns the time that the clock would show if no correction were owed.
func (k *course) target(up time.Duration) time.Time {
	return k.time.Add(max(0, up-k.from.up) + k.owed)
}

// gap returns how much farther the wall clock has moved than the monotonic clock.
func (k *course) gap(now instant) time.Duration {
	return now.wall.Sub(k.from.wall) - (now.up - k.from.up)
}

// rebased returns the same course, expressed from a later instant.
func (k *course) rebased(now instant) course {
	passed := max(0, now.up-k.from.up)
	told := k.at(now.up)
	return course{
		from: now,
		time: told,
		owed: k.target(now.up).Sub(told),
		blur: k.blur + passed/driftPart,
		due:  k.due,
	}
}
