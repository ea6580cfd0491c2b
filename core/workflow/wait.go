package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/expr"
	"github.com/eventgateway/gateway/core/once"
)

// A waitStep lets time pass. It does not change the state. It has a delay from its beginning,
// or a time in its input.
type waitStep struct {
	leaf
	inline
	of    *step
	delay time.Duration
	until *expr.Reference // nil: the step has a delay
}

func newWait(s *step, c config.Step) kind {
	return &waitStep{of: s, delay: time.Duration(c.Seconds) * time.Second, until: c.TimestampPath.Value}
}

func (k *waitStep) typ() string { return "wait" }

// enter makes the step wait, if its time is in the future. A time in the past does not make the
// step wait, so it needs no job.
func (k *waitStep) enter(m *move, r *row) {
	until, err := k.due(m.scope(r, r.Attempt+1))
	switch {
	case err != nil:
		r.Attempt++
		m.attemptFailed(r, dataFailure(err))
	case until.After(m.now):
		if r.stored {
			r.putBack()
		}
		m.waits(r, until)
	default:
		r.Attempt++
		m.pass(r, r.step.next)
	}
}

// end handles the due time of the step's job. If the job was taken early, the step waits
// again. If the run's deadline came with the step's time, the step ends; if it came before,
// the step is skipped.
func (k *waitStep) end(m *move, r *row, e core.StepEnd) bool {
	if e.Kind != core.Elapsed || !m.expired {
		return m.enterByJob(r, e)
	}
	if m.failTakenTooOften(r, e) {
		return true
	}
	if until, err := k.due(m.scope(r, r.Attempt+1)); err != nil || !until.After(m.now) {
		k.enter(m, r)
	}
	return true
}

// due returns until when the step waits, in milliseconds precision. The time counts from when
// the run reached the step. So a job that is taken twice does not wait twice as long.
func (k *waitStep) due(s scope) (time.Time, error) {
	began := readCarry(s.row.Carry).began(s.row.StartedAt)
	if k.until == nil {
		return began.Add(k.delay), nil
	}
	seen, err := s.inputDocument(k.of.input)
	if err != nil {
		return time.Time{}, err
	}
	v, err := one(k.until, seen, s.context())
	if err != nil {
		return time.Time{}, err
	}
	t, err := timeOf(v)
	switch {
	case err != nil:
		return t, fmt.Errorf("%s: %w", k.until, err)
	// A run must not keep its definition and its rows for ever by a wrong time.
	case t.Sub(began) > maxWait:
		return t, fmt.Errorf("%s is more than a year away", k.until)
	}
	return t, nil
}

// layouts are the layouts of times in upper case: the extended and the basic format of ISO
// 8601. Parse accepts a fraction after the seconds without a layout that has one. A time
// without a zone is in UTC.
var layouts = []string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04:05",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02",
	"20060102T150405Z0700", "20060102T150405Z07", "20060102T150405",
	"20060102T1504Z0700", "20060102T1504Z07", "20060102T1504", "20060102",
}

// unixText is a Unix time as text. It has at least 9 digits, so it is after March 1973, or
// as long before 1970. A shorter text is a date, or a mistake that would make the step pass
// at once.
var unixText = once.Regexp(`^-?[0-9]{9,}(\.[0-9]+)?$`)

// timeOf reads a time: ISO 8601 or RFC 3339, or Unix seconds, as a number or as text. From
// 1e11 on, a number means milliseconds.
func timeOf(v any) (time.Time, error) {
	switch v := v.(type) {
	case json.Number:
		return unixTime(v)
	case string:
		if unixText().MatchString(v) {
			return unixTime(json.Number(v))
		}
		// RFC 3339 permits t and z, and a blank in place of the T.
		text := strings.ToUpper(strings.Replace(v, " ", "T", 1))
		for _, layout := range layouts {
			if t, err := time.Parse(layout, text); err == nil {
				return t.UTC().Truncate(time.Millisecond), nil
			}
		}
	}
	return time.Time{}, errors.New("must be a time as in 2006-01-02T15:04:05Z, or Unix seconds or milliseconds")
}

// unixTime reads seconds or milliseconds, with a fraction if there is one. A time beyond the
// years that can be stored becomes the last or first of them.
func unixTime(n json.Number) (time.Time, error) {
	ms, err := strconv.ParseFloat(n.String(), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return time.Time{}, err
	}
	// As seconds, 1e11 is in the year 5138. As milliseconds, it is in March 1973.
	if ms < 1e11 {
		ms *= 1000
	}
	const end = 253402300799999 // in the year 9999
	return time.UnixMilli(int64(math.Max(-end, math.Min(ms, end)))).UTC(), nil
}
