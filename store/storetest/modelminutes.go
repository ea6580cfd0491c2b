package storetest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A minuteRow identifies the counts of a process.
type minuteRow struct {
	at      time.Time
	lane    core.Lane
	process core.ID
}

// CountMinutes implements [core.Minutes].
func (m *Model) CountMinutes(_ context.Context, process core.ID, counts []core.LaneCounts) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := func(c core.Counts) int { return c.Accepted + c.Completed + c.Failed + c.Dead }
	for _, c := range counts {
		row := minuteRow{c.At.UTC(), c.Lane, process}
		if had, ok := m.minutes[row]; !ok || sum(had) < sum(c.Counts) {
			m.minutes[row] = c.Counts
		}
	}
	return nil
}

// SumMinutes implements [core.Minutes].
func (m *Model) SumMinutes(_ context.Context, from, until time.Time, step time.Duration) (sums []core.LaneCounts, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	type span struct {
		at   int64
		lane core.Lane
	}
	all, whole := map[span]core.Counts{}, map[span]int{}
	for row, c := range m.minutes {
		if row.at.Before(from) || !row.at.Before(until) {
			continue
		}
		ms := row.at.UnixMilli()
		s := span{ms - ms%step.Milliseconds(), row.lane}
		if row.process == "" {
			whole[s] += c.Accepted
			c.Accepted = 0
		}
		all[s] = all[s].Add(c)
	}
	for s, c := range all {
		c.Accepted = max(c.Accepted, whole[s])
		sums = append(sums, core.LaneCounts{At: time.UnixMilli(s.at).UTC(), Lane: s.lane, Counts: c})
	}
	slices.SortFunc(sums, func(a, b core.LaneCounts) int { return cmp.Or(cmp.Compare(a.Lane, b.Lane), a.At.Compare(b.At)) })
	return sums, nil
}

// Received implements [core.Minutes].
func (m *Model) Received(_ context.Context, from, until time.Time, sources []string) (map[string]int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := map[string]int{}
	for _, e := range m.events {
		if slices.Contains(sources, e.Source) && e.ID >= core.FirstID(from) && e.ID < core.FirstID(until) {
			counts[e.Source]++
		}
	}
	return counts, nil
}

// PurgeMinutes implements [core.Minutes].
func (m *Model) PurgeMinutes(_ context.Context, before time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := before
	for row := range m.minutes {
		if row.at.Before(first) {
			first = row.at
		}
	}
	for row := range m.minutes {
		if row.at.Before(before) && row.at.Before(first.Add(core.MinutesPurged*time.Minute)) {
			delete(m.minutes, row)
		}
	}
	return nil
}
