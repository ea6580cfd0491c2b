package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// What Month plays.
const (
	monthDays = 30
	monthKept = 72 * time.Hour // what purge is to keep

	// flatFrom is the day from which on as much goes as comes.
	flatFrom = 4

	// wobble is how many rows of a table more or less there may be. What is left behind
	// each day would be more by the end.
	wobble = 10
)

// Month plays thirty days in the life of a store in which every kind of row comes each
// day, with a purge every hour of what has been over for 72 hours, and looks each day that
// no table grows and that nothing goes too early. It sleeps, and so wants a bubble of
// testing/synctest, by whose clock the store goes. rows counts the rows of each table.
func Month(t *testing.T, s core.Store, purge func(), rows func() map[string]int) {
	r := newRig(t, s, Options{})
	r.ids = core.NewIDs(core.SystemClock)
	m := &month{rig: r, over: map[core.ID]time.Time{}}
	m.wake(0)
	open := m.put() // nobody ever takes it
	low, high := map[string]int{}, map[string]int{}
	for day := 1; day <= monthDays; day++ {
		for hour := range 24 {
			if hour == 6 {
				m.live(day)
			}
			m.repeats()
			m.wake(time.Hour)
			purge()
		}
		m.look()
		if day >= flatFrom {
			bounds(low, high, rows())
		}
	}
	m.wantJob(open)
	m.storedEvent(open.EventID)
	for table, n := range high {
		if n-low[table] > wobble || low[table] == 0 {
			t.Errorf("from day %d on %s has %d to %d rows, want about as many every day, and some", flatFrom, table, low[table], n)
		}
	}
	t.Logf("rows: %v", high)
}

// bounds widens bounds to the rows of a day.
func bounds(low, high, rows map[string]int) {
	for table, n := range rows {
		if _, known := high[table]; !known {
			low[table], high[table] = n, n
		}
		low[table], high[table] = min(low[table], n), max(high[table], n)
	}
}

// A month under way.
type month struct {
	*rig
	over    map[core.ID]time.Time // events, and since when nothing happens for them
	last    time.Time             // when the delivery and the key that come again were stored
	refused int                   // how often they were not, since
}

// wake sleeps, and looks at the clock.
func (m *month) wake(d time.Duration) {
	time.Sleep(d)
	m.now = time.Now().UTC().Truncate(time.Millisecond)
}

// live is what happens in a day.
func (m *month) live(day int) {
	m.deliver()
	m.pull()
	m.flow(core.RunCompleted)
	m.flow(core.RunFailed)
	m.breaks(core.HandlerLane(fmt.Sprint("of day ", day)))
	bare := m.arrival()
	m.accepted(bare)
	m.ends(bare.Event.ID)
	m.marked(m.mark("hourly", 0), m.mark("daily", 0))
	m.strays("handler/another")
}

// ends notes that an event is done with.
func (m *month) ends(events ...core.ID) {
	for _, id := range events {
		m.over[id] = m.now
	}
}

// deliver delivers some jobs, of which one is tried twice, and one dies and raises an
// alert.
func (m *month) deliver() {
	m.lane = "handler/daily"
	for i, status := range []core.Status{core.Completed, core.Completed, core.Retryable, core.Dead} {
		a := m.arrival(m.lane)
		a.Event.DeliveryID, a.Jobs[0].Key = string(a.Event.ID), fmt.Sprint(i, a.Event.ID)
		m.accepted(a)
		o := m.ended(m.brings(a.Jobs[0].ID, m.quota(1)).Job, status)
		if status == core.Dead {
			_, rises := m.riseOf(core.TakenJob{})
			o.GivesRise = &rises
			defer m.alarmed(rises)
		}
		m.settle(o)
		if status == core.Retryable {
			m.wake(hold)
			m.settle(m.ended(m.brings(a.Jobs[0].ID, m.quota(1)).Job, core.Completed))
		}
		m.ends(a.Event.ID)
	}
}

// alarmed tells the alerts of an arrival.
func (m *month) alarmed(a core.Arrival) {
	for _, n := range a.Jobs {
		m.settle(m.ended(m.brings(n.ID, core.Quota{Lane: n.Lane, N: 1, Hold: hold}).Job, core.Completed))
	}
	m.ends(a.Event.ID)
}

func (m *month) pull() {
	m.lane = "queue/daily"
	jobs, refs := m.pulled(3)
	m.equal("Ack", m.ack(m.lane, refs[:2]...), 2)
	m.settle(m.ended(jobs[2].Job, core.Dead))
	m.ends(jobs[0].EventID)
}

// flow has a run begin, wait for a callback and end.
func (m *month) flow(status core.RunStatus) {
	j := m.entered()
	t := m.leap(j)
	rises := *t.GivesRise
	m.makes(t)
	m.alarmed(rises)
	end := m.finished(t.Run, status)
	end.JobsEnd = []core.JobChange{{ID: t.Jobs[0].ID, Status: core.Completed, FinishedAt: m.now}}
	m.makes(end)
	m.ends(j.EventID)
}

// breaks opens the breaker of a lane and closes it again.
func (m *month) breaks(lane core.Lane) {
	m.lane = lane
	m.puts(core.BreakerThreshold)
	jobs := m.take(core.BreakerThreshold)
	m.settle(m.verdicts(jobs, failures(core.BreakerThreshold)...)...)
	m.wake(core.BreakerCooldown)
	m.settle(m.verdict(m.bringsSome("for a probe", 1, m.probe())[0], core.Success))
	m.wake(core.RampTime)
	m.settle(m.verdicts(m.take(core.BreakerThreshold-1), slices.Repeat([]core.Verdict{core.Success}, core.BreakerThreshold-1)...)...)
	m.ends(jobs[0].EventID)
}

// repeats sends a delivery and a key that were there before: they are so for 72 hours
// after they were stored, and an hour later they are new.
func (m *month) repeats() {
	m.lane = "handler/repeats"
	delivered, keyed := m.delivered("again"), m.keyed("again")
	if m.last.IsZero() || m.now.Sub(m.last) > monthKept+time.Hour {
		if !m.last.IsZero() && m.refused < int(monthKept/time.Hour)-2 {
			m.Errorf("they were refused %d times, want nearly every hour", m.refused)
		}
		m.accepted(delivered)
		m.accepted(keyed)
		for _, j := range m.take(2) {
			m.settle(m.ended(j.Job, core.Completed))
		}
		m.ends(delivered.Event.ID, keyed.Event.ID)
		m.last, m.refused = m.now, 0
	} else if m.now.Sub(m.last) <= monthKept {
		m.equal("Accept of the delivery once more: duplicate", m.accept(delivered).Duplicate, true)
		m.equal("Accept of the key once more: duplicate", m.accept(keyed).Duplicate, true)
		m.refused++
	}
}

// look wants what has been over for less than 72 hours to be there, and the rest, but for
// what ended within the last hour of that, to be gone.
func (m *month) look() {
	for _, id := range slices.Sorted(maps.Keys(m.over)) {
		_, err := m.store.Event(context.Background(), id)
		switch age := m.now.Sub(m.over[id]); {
		case age < monthKept:
			m.equal(fmt.Sprintf("Event(%s) %v after it was over: error", id, age), err, nil)
		case age > monthKept+time.Hour:
			m.eventGone(id)
			delete(m.over, id)
		}
	}
}

// Rows are how many of each kind a model holds.
func (m *Model) Rows() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := map[string]int{"events": len(m.events), "firsts": len(m.firsts), "jobs": len(m.jobs), "cron_marks": len(m.marks), "turns": len(m.turns),
		"definitions": len(m.definitions), "runs": len(m.runs), "steps": len(m.steps), "callbacks": len(m.tokens) + len(m.receipts)}
	for _, l := range m.attempts {
		rows["attempts"] += len(l)
	}
	for _, h := range m.history {
		rows["history"] += len(h)
	}
	for _, g := range m.gates {
		if g.Gate != (core.Gate{}) {
			rows["gates"]++
		}
	}
	return rows
}
