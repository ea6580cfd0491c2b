package alert

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// The schedule of a mark tells marks of alerts from marks of cron sources. Their names cannot be
// the same, since the name of a source has no slash.
const markedBy = "health"

// mark returns the mark which says that the alerts of this name are dealt with up to a time.
func mark(name string, until time.Time) core.Mark {
	return core.Mark{Source: name, Schedule: markedBy, Until: until}
}

// A circuit watches the breakers of handlers.
//
// An interval has at most one alert that a breaker opened. For another opening within the
// interval, the alert comes at its end, if the breaker is still open then. Otherwise the opening
// is left out, and the next alert counts it. A closing causes an alert if its opening did. So a
// breaker that opens and closes each minute causes two alerts in an interval, and the last alert
// is always true.
type circuit struct {
	interval       time.Duration
	opened, closed mailing
}

func (c circuit) key() string { return c.interval.String() }

// of returns the check of one breaker. Its marks are the newest opening with an alert, the newest
// opening whose closing has an alert, and the time of the last alert about an opening, with the
// number of openings until then.
func (c circuit) of(l core.Lane, g core.Gate) check {
	at := "/" + string(l) + "/" + c.key()
	opened, closed, last := string(CircuitOpened)+at, string(CircuitClosed)+at, "circuit_last"+at
	return check{[]string{opened, closed, last}, func(now time.Time, m marks) *news {
		newest := m.until(opened)
		switch {
		case newest.After(m.until(closed)) && (!g.Open() || g.OpenedAt.After(newest)):
			return &news{mail: c.closed, id: idOf(closed, newest), notice: closedNotice(l, g, newest), marks: []core.Mark{mark(closed, newest)}}
		case !g.OpenedAt.After(newest):
			return nil
		}
		next := m.until(last).Add(c.interval)
		atOnce := !g.OpenedAt.Before(next) && (g.Open() || now.Sub(g.OpenedAt) < longOver)
		if !atOnce && (!g.Open() || now.Before(next)) {
			return nil
		}
		before, _ := strconv.Atoi(m[last].Schedule)
		if before > g.Openings || newest.IsZero() {
			before = g.Openings - 1 // the gate was reset, or no place asked before
		}
		return &news{
			mail: c.opened, id: idOf(opened, g.OpenedAt), notice: openedNotice(l, g, g.Openings-before-1),
			marks: []core.Mark{mark(opened, g.OpenedAt), {Source: last, Schedule: strconv.Itoa(g.Openings), Until: now}},
		}
	}}
}

// idOf returns the delivery id of the alert about a transition at a time.
func idOf(of string, at time.Time) string { return of + "/" + strconv.FormatInt(at.UnixMilli(), 10) }

func openedNotice(l core.Lane, g core.Gate, leftOut int) notice {
	n := about(l)
	n.Since, n.LeftOut = core.FormatTime(g.OpenedAt), leftOut
	n.Message = fmt.Sprintf("The circuit breaker of handler %q opened after %d failures in a row. Deliveries wait until a probe succeeds. To close it now: gateway breaker reset %s",
		n.Handler, g.Failures, n.Handler)
	if !g.Open() {
		n.Message = fmt.Sprintf("The circuit breaker of handler %q opened at %s, and has closed since", n.Handler, n.Since)
	}
	if leftOut > 0 {
		n.Message += fmt.Sprintf(". Openings without an alert since the last one: %d", leftOut)
	}
	return n
}

func closedNotice(l core.Lane, g core.Gate, opened time.Time) notice {
	n := about(l)
	n.Since = core.FormatTime(opened)
	n.Message = fmt.Sprintf("The circuit breaker of handler %q closed, and deliveries go on", n.Handler)
	if d := g.ClosedAt.Sub(opened); d > 0 {
		n.Message += ". It was open for " + span(d)
	}
	return n
}

// A lag watches the oldest due job of each lane. One alert says that the lane lags, and another
// that it has caught up. If it lags again within the interval, the alert comes at the end of the
// interval, if it still lags then.
type lag struct {
	after, interval time.Duration
	mail            mailing
}

func (g lag) key() string { return g.after.String() + "/" + g.interval.String() }

// of returns the check of one lane. Its marks are a number, which grows by one with each alert
// and is odd while the lane lags, and the time of the last alert.
func (g lag) of(l core.Lane, o core.Outlook) check {
	number, last := string(Lag)+"/"+string(l)+"/"+g.key(), "lag_last/"+string(l)+"/"+g.key()
	return check{[]string{number, last}, func(now time.Time, m marks) *news {
		var n int64
		if at := m.until(number); !at.IsZero() {
			n = at.UnixMilli()
		}
		since := lateSince(o, now)
		late, lags := now.Sub(since) > g.after && !since.IsZero(), n%2 == 1
		if late == lags || late && now.Before(m.until(last).Add(g.interval)) {
			return nil
		}
		next := news{mail: g.mail, id: number + "/" + strconv.FormatInt(n+1, 10), marks: []core.Mark{mark(number, time.UnixMilli(n+1).UTC())}}
		if next.notice = about(l); late {
			next.notice.Since = core.FormatTime(since)
			next.notice.Message = fmt.Sprintf("%s lags: its oldest due job waits since %s, for more than %s", subject(l), next.notice.Since, span(g.after))
			next.marks = append(next.marks, mark(last, now))
		} else {
			next.notice.Over = true
			next.notice.Message = fmt.Sprintf("%s has caught up: no job has been due for more than %s", subject(l), span(g.after))
		}
		return &next
	}}
}

// lateSince returns since when the oldest due job of a lane waits; zero if none is due, or if
// the lane is held. The time of a hold that has ended does not count: a person wanted the jobs
// to wait.
func lateSince(o core.Outlook, now time.Time) time.Time {
	if o.DueAt.IsZero() || o.DueAt.After(now) || o.Gate.Held(now) {
		return time.Time{}
	}
	return later(o.DueAt, o.Gate.HeldUntil)
}

// A holding watches the holds. Each hold causes one alert.
type holding struct {
	after time.Duration
	mail  mailing
}

func (w holding) key() string { return w.after.String() }

// of returns the check of a hold. Its mark is the beginning of the newest hold with an alert.
func (w holding) of(h core.Hold) check {
	since := string(Held) + "/" + string(h.Lane) + "/" + w.key()
	return check{[]string{since}, func(now time.Time, m marks) *news {
		if !h.Since.After(m.until(since)) || now.Sub(h.Since) <= w.after {
			return nil
		}
		n := about(h.Lane)
		n.Since, n.Reason = core.FormatTime(h.Since), clip(h.Reason)
		n.Message = fmt.Sprintf("%s is held since %s, for more than %s. To let it go on: gateway release %s",
			subject(h.Lane), n.Since, span(w.after), h.Lane.Consumer())
		return &news{mail: w.mail, id: idOf(since, h.Since), notice: n, marks: []core.Mark{mark(since, h.Since)}}
	}}
}

// A silence watches a source. It causes one alert until another event comes.
type silence struct {
	source string
	after  time.Duration
	mail   mailing
}

func (q silence) key() string { return q.source + "/" + q.after.String() }

// of returns the check of the source whose newest stored event came at a time; zero if no event
// is stored. Its marks are the time of the event before the last silence with an alert, and the
// time of an event that a check saw or, without any, of the first check. The second mark is for
// sources whose events are deleted before the alert is due. It follows the newest event at a
// distance, to save writes.
func (q silence) of(newest time.Time) check {
	before, seen := string(Quiet)+"/"+q.key(), "quiet_seen/"+q.key()
	return check{[]string{before, seen}, func(now time.Time, m marks) *news {
		last := later(newest, m.until(seen))
		switch {
		case last.IsZero():
			return &news{marks: []core.Mark{mark(seen, now)}}
		case last.Sub(m.until(seen)) > q.after/10:
			return &news{marks: []core.Mark{mark(seen, last)}}
		case now.Sub(last) <= q.after || !last.After(m.until(before)):
			return nil
		}
		n := notice{Source: q.source, Since: core.FormatTime(last)}
		n.Message = fmt.Sprintf("No event came from source %q since %s, for more than %s", q.source, n.Since, span(q.after))
		return &news{mail: q.mail, id: idOf(before, last), notice: n, marks: []core.Mark{mark(before, last)}}
	}}
}

// about returns a notice with the consumer of a lane, or with the source of a source's lane.
func about(l core.Lane) notice {
	return notice{Source: l.Source(), Handler: l.Handler(), Queue: l.Queue(), Workflow: l.Workflow()}
}

// subject returns the consumer or the source of a lane, at the beginning of a sentence.
func subject(l core.Lane) string {
	kind, name, _ := strings.Cut(string(l), "/")
	if kind == "" {
		return fmt.Sprintf("Lane %q", l)
	}
	return strings.ToUpper(kind[:1]) + kind[1:] + fmt.Sprintf(" %q", name)
}

// span returns a duration in words of the configuration, such as 90m or 2d, cut to seconds.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = d.Truncate(time.Second); {
	case d >= day && d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}
