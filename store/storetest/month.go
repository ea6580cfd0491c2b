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

// The long simulation. Rows that are stored and never deleted do no harm in a short test, and fill
// a disk within a year. Month lets a store live for 30 days, in simulated time, with each kind of
// row, and requires that every table stays about as large.

// The times and bounds of Month.
const (
	monthDays = 30
	monthKept = 72 * time.Hour // the retention of finished rows

	// flatFrom is the first day on which as many rows are purged as are stored.
	flatFrom = 4

	// rowTolerance is by how many rows a table may grow or shrink. Rows left behind every day would
	// exceed it within the month.
	rowTolerance = 10
)

// Month simulates 30 days of a store. Every kind of row is stored each day, and each hour a purge
// deletes rows finished for more than 72 h. Each day, Month checks that no table grows and that
// no row was purged too early. It sleeps, so it must run in a bubble of testing/synctest whose
// clock the store uses. rows counts the rows of each table.
func Month(t *testing.T, s core.Store, purge func(), rows func() map[string]int) {
	r := newRig(t, s, Options{})
	r.ids, r.auditing = core.NewIDs(core.SystemClock), true
	m := &month{rig: r, finishedAt: map[core.ID]time.Time{}}
	m.sleep(0)
	open := m.put() // never taken
	waiting := m.openLine()
	low, high := map[string]int{}, map[string]int{}
	for day := 1; day <= monthDays; day++ {
		for hour := range 24 {
			if hour == 6 {
				m.storeDay(day)
			}
			m.sendRepeats()
			m.sleep(time.Hour)
			purge()
		}
		m.checkRetention()
		if day >= flatFrom {
			bounds(low, high, rows())
		}
	}
	m.wantJob(open)
	m.storedEvent(open.EventID)
	m.wantStatus(core.Waiting, waiting)
	for table, n := range high {
		if n-low[table] > rowTolerance || low[table] == 0 && !mayBeEmpty[table] {
			t.Errorf("from day %d on %s has %d to %d rows, want about as many every day, and some", flatFrom, table, low[table], n)
		}
	}
	t.Logf("rows: %v", high)
}

// bounds extends the smallest and largest counts of each table by the counts of one day.
func bounds(low, high, rows map[string]int) {
	for table, n := range rows {
		if _, known := high[table]; !known {
			low[table], high[table] = n, n
		}
		low[table], high[table] = min(low[table], n), max(high[table], n)
	}
}

// A month is a run of Month.
type month struct {
	*rig
	finishedAt map[core.ID]time.Time // events, with the time since when all their work is finished
	last       time.Time             // when the repeated delivery id and key were stored last
	refusals   int                   // how often they were refused since then
}

// sleep sleeps for d and then sets the rig's time. In a bubble of testing/synctest it returns as
// soon as all goroutines wait.
func (m *month) sleep(d time.Duration) {
	time.Sleep(d)
	m.now = time.Now().UTC().Truncate(time.Millisecond)
}

// storeDay stores and finishes all rows of a day. Everything is finished on the same day, except
// for one job that is never taken.
func (m *month) storeDay(day int) {
	m.endOperation(m.begun(core.CancelAction).ID, "")
	for _, j := range m.takeQuotas(core.Quota{Lane: core.OperationLane, N: 1, Hold: leaseTime}) {
		m.settle(m.ended(j.Job, core.Completed))
	}
	m.count("P", core.LaneCounts{At: m.now.Truncate(time.Minute), Lane: m.lane, Counts: core.Counts{Completed: day}})
	m.deliver()
	m.pull()
	m.passLine(day)
	m.endWorkflow(core.RunCompleted)
	m.endWorkflow(core.RunFailed)
	m.openAndClose(core.HandlerLane(fmt.Sprint("of day ", day)))
	bare := m.arrival()
	m.accepted(bare)
	m.noteFinished(bare.Event.ID)
	m.marked(m.mark("hourly", 0), m.mark("daily", 0))
	m.strays("handler/another")
}

// openLine stores a line of two jobs that are never taken, and returns the waiting one.
func (m *month) openLine() core.ID {
	before := m.lane
	defer func() { m.lane = before }()
	m.lane = "handler/of an open line"
	return m.putLined("open", 1, 2)[1]
}

// passLine completes the jobs of a line one after the other.
func (m *month) passLine(day int) {
	m.lane = "handler/of lines"
	for _, id := range m.putLined(fmt.Sprint("day ", day), 1, 3) {
		j := m.takeLined(1, id)[0]
		m.endLined(j, core.Completed, 1)
		m.noteFinished(j.EventID)
	}
}

// noteFinished notes that all work of the events is finished now. checkRetention then expects them
// for 72 h.
func (m *month) noteFinished(events ...core.ID) {
	for _, id := range events {
		m.finishedAt[id] = m.now
	}
}

// deliver settles some jobs. One of them is tried twice, and another dies and raises an alert.
func (m *month) deliver() {
	m.lane = "handler/daily"
	for i, status := range []core.Status{core.Completed, core.Completed, core.Retryable, core.Dead} {
		a := m.arrival(m.lane)
		a.Event.DeliveryID, a.Jobs[0].Key = string(a.Event.ID), fmt.Sprint(i, a.Event.ID)
		m.accepted(a)
		o := m.ended(m.takeOnly(a.Jobs[0].ID, m.quota(1)).Job, status)
		if status == core.Dead {
			_, rises := m.riseOf(core.TakenJob{})
			o.GivesRise = &rises
			defer m.settleAlerts(rises)
		}
		m.settle(o)
		if status == core.Retryable {
			m.sleep(leaseTime)
			m.settle(m.ended(m.takeOnly(a.Jobs[0].ID, m.quota(1)).Job, core.Completed))
		}
		m.noteFinished(a.Event.ID)
	}
}

// settleAlerts completes the alert jobs of an arrival.
func (m *month) settleAlerts(a core.Arrival) {
	for _, n := range a.Jobs {
		m.settle(m.ended(m.takeOnly(n.ID, core.Quota{Lane: n.Lane, N: 1, Hold: leaseTime}).Job, core.Completed))
	}
	m.noteFinished(a.Event.ID)
}

// pull acks two messages and lets one die.
func (m *month) pull() {
	m.lane = "queue/daily"
	jobs, refs := m.putAndTake(3)
	m.equal("Ack", m.ack(m.lane, refs[:2]...), 2)
	m.settle(m.ended(jobs[2].Job, core.Dead))
	m.noteFinished(jobs[0].EventID)
}

// endWorkflow starts a run, which waits for a callback, and ends it with the given status.
func (m *month) endWorkflow(status core.RunStatus) {
	j := m.takeNewRun()
	t := m.fullTransition(j)
	rises := *t.GivesRise
	m.mustTransit(t)
	m.settleAlerts(rises)
	end := m.finished(t.Run, status)
	end.JobsEnd = []core.JobChange{{ID: t.Jobs[0].ID, Status: core.Completed, FinishedAt: m.now}}
	m.mustTransit(end)
	m.noteFinished(j.EventID)
}

// openAndClose opens the breaker of a lane and closes it again. The gate then has no failures, and
// a purge must delete it once its times are old.
func (m *month) openAndClose(lane core.Lane) {
	m.lane = lane
	m.putMany(core.BreakerThreshold)
	jobs := m.take(core.BreakerThreshold)
	m.settle(m.verdicts(jobs, failures(core.BreakerThreshold)...)...)
	m.sleep(core.BreakerCooldown)
	m.settle(m.verdict(m.takeCount("for a probe", 1, m.probe())[0], core.Success))
	m.sleep(core.RampTime)
	m.settle(m.verdicts(m.take(core.BreakerThreshold-1), slices.Repeat([]core.Verdict{core.Success}, core.BreakerThreshold-1)...)...)
	m.noteFinished(jobs[0].EventID)
}

// sendRepeats sends a delivery id and a key that were stored before. The store must refuse them
// for 72 h after they were stored, and take them as new an hour later. This is the promise to
// senders: repetitions are recognized as long as the event is kept.
func (m *month) sendRepeats() {
	m.lane = "handler/repeats"
	delivered, keyed := m.delivered("again"), m.keyed("again")
	if m.last.IsZero() || m.now.Sub(m.last) > monthKept+time.Hour {
		if !m.last.IsZero() && m.refusals < int(monthKept/time.Hour)-2 {
			m.Errorf("they were refused %d times, want nearly every hour", m.refusals)
		}
		m.accepted(delivered)
		m.accepted(keyed)
		for _, j := range m.take(2) {
			m.settle(m.ended(j.Job, core.Completed))
		}
		m.noteFinished(delivered.Event.ID, keyed.Event.ID)
		m.last, m.refusals = m.now, 0
	} else if m.now.Sub(m.last) <= monthKept {
		m.equal("Accept of the delivery once more: duplicate", m.accept(delivered).Duplicate, true)
		m.equal("Accept of the key once more: duplicate", m.accept(keyed).Duplicate, true)
		m.refusals++
	}
}

// checkRetention checks that events finished for less than 72 h are stored, and that events
// finished for more than 73 h are deleted. Between 72 h and 73 h both is permitted, because purges
// run once an hour.
func (m *month) checkRetention() {
	for _, id := range slices.Sorted(maps.Keys(m.finishedAt)) {
		_, err := m.store.Event(context.Background(), id)
		switch age := m.now.Sub(m.finishedAt[id]); {
		case age < monthKept:
			m.equal(fmt.Sprintf("Event(%s) %v after it was over: error", id, age), err, nil)
		case age > monthKept+time.Hour:
			m.wantNoEvent(id)
			delete(m.finishedAt, id)
		}
	}
}

// Rows returns the number of rows of each kind that the model holds.
func (m *Model) Rows() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := map[string]int{"events": len(m.events), "firsts": len(m.firsts), "jobs": len(m.jobs), "cron_marks": len(m.marks), "turns": len(m.turns),
		"definitions": len(m.definitions), "runs": len(m.runs), "steps": len(m.steps), "callbacks": len(m.tokens) + len(m.receipts)}
	m.auditMutex.Lock()
	defer m.auditMutex.Unlock()
	rows["audit"] = len(m.entries)
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

// mayBeEmpty are the tables that a month need not fill: the rows of line_locks are only locked, and
// source_holds has rows while sources are held.
var mayBeEmpty = map[string]bool{"operation_picks": true, "line_locks": true, "source_holds": true}
