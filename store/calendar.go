package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/order"
)

// Marks returns the marks of cron sources. See core.Calendar.
func (s *Store) Marks(ctx context.Context, sources []string) (map[string]core.Mark, error) {
	if len(sources) == 0 {
		return nil, nil
	}
	rows := make([][]any, len(sources))
	for i, source := range sources {
		rows[i] = []any{source}
	}
	results, err := s.readBatch(ctx, s.sql.marks.on(rows...))
	if err != nil {
		return nil, fmt.Errorf("read marks: %w", err)
	}
	marks := make(map[string]core.Mark, len(sources))
	for _, row := range results[0].Rows {
		r := rowReader{row}
		m := core.Mark{Source: r.text(), Schedule: r.text(), Until: r.time()}
		marks[m.Source] = m
	}
	return marks, nil
}

// Mark moves marks. See core.Calendar. An UPDATE changes each row of the table once, even if
// several rows of the row source match it, and which of them decides is undefined. So each
// source has one row here. A Conn may also merge the batches of two calls into one UPDATE, so
// markMutex lets one call send at a time.
func (s *Store) Mark(ctx context.Context, marks ...core.Mark) error {
	if len(marks) == 0 {
		return nil
	}
	marks = latestMarks(marks)
	inserts, moves := make([][]any, len(marks)), make([][]any, len(marks))
	for i, m := range marks {
		until := millis(m.Until)
		inserts[i] = []any{m.Source, m.Schedule, until}
		moves[i] = []any{m.Schedule, until, m.Source, until, m.Schedule}
	}
	s.markMutex.Lock()
	defer s.markMutex.Unlock()
	_, err := s.write(ctx, s.sql.insertMark.on(inserts...), s.sql.moveMark.on(moves...))
	if err != nil {
		return fmt.Errorf("move marks: %w", err)
	}
	return nil
}

// latestMarks returns one mark for each source: the last one, unless an earlier one of the same
// schedule is further. They are sorted by source, so that two processes lock them in one order.
func latestMarks(marks []core.Mark) []core.Mark {
	of := make(map[string]core.Mark, len(marks))
	for _, m := range marks {
		earlier, ok := of[m.Source]
		if !ok || earlier.Schedule != m.Schedule || m.Until.After(earlier.Until) {
			of[m.Source] = m
		}
	}
	newest := slices.Collect(maps.Values(of))
	order.Sort(newest, func(a, b core.Mark) int { return cmp.Compare(a.Source, b.Source) })
	return newest
}

// calendarSQL are the statements of the Calendar.
type calendarSQL struct{ marks, insertMark, moveMark statement }

func newCalendarSQL(d Dialect) calendarSQL {
	return calendarSQL{
		marks: reading("marks", d.selectRows(`cron_marks.source, cron_marks.schedule, cron_marks.until_at`,
			"cron_marks{use PRIMARY}", `cron_marks.source = r.source`)),
		insertMark: writing("insert_mark", d.insertIfAbsent("cron_marks", `source, schedule, until_at`, `r.source, r.schedule, r#until_at`, "", "", "source")),
		// A mark never moves back, except with another schedule: that begins anew.
		moveMark: writing("move_mark", d.updateRows("cron_marks", `schedule = r.schedule, until_at = r#until_at`,
			`cron_marks.source = r.source AND (cron_marks.until_at < r#later OR cron_marks.schedule <> r.other)`)),
	}
}
