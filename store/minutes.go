package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/order"
)

// CountMinutes stores the counts of a process. See core.Minutes. Each row is inserted if it is
// absent, and then raised if it is lower, so the batch can be sent twice.
func (s *Store) CountMinutes(ctx context.Context, process core.ID, counts []core.LaneCounts) error {
	if len(counts) == 0 {
		return nil
	}
	var inserts, raises [][]any
	for _, c := range counts {
		at, lane, sum := millis(c.At), string(c.Lane), int64(c.Accepted+c.Completed+c.Failed+c.Dead)
		numbers := []any{int64(c.Accepted), int64(c.Completed), int64(c.Failed), int64(c.Dead)}
		inserts = append(inserts, append([]any{at, lane, string(process)}, numbers...))
		raises = append(raises, append(numbers, at, lane, string(process), sum))
	}
	// A power failure may take minutes from a picture, so no commit waits for the disk.
	insert, raise := s.sql.insertMinutes.on(inserts...), s.sql.raiseMinutes.on(raises...)
	insert.Lazy, raise.Lazy = true, true
	if _, err := s.write(ctx, insert, raise); err != nil {
		return fmt.Errorf("count minutes: %w", err)
	}
	return nil
}

// SumMinutes returns sums of minutes. See core.Minutes. The rows are sorted here: the database
// groups them in memory, in an order of its own.
func (s *Store) SumMinutes(ctx context.Context, from, until time.Time, step time.Duration) (sums []core.LaneCounts, err error) {
	results, err := s.readBatch(ctx, s.sql.sumMinutes.with(step.Milliseconds(), millis(from), millis(until)))
	if err != nil {
		return nil, fmt.Errorf("sum minutes: %w", err)
	}
	for _, row := range results[0].Rows {
		r := rowReader{row}
		c := core.LaneCounts{Lane: core.Lane(r.text()), At: r.time()}
		c.Accepted = max(r.number(), r.number())
		c.Completed, c.Failed, c.Dead = r.number(), r.number(), r.number()
		sums = append(sums, c)
	}
	order.Sort(sums, func(a, b core.LaneCounts) int { return cmp.Or(cmp.Compare(a.Lane, b.Lane), a.At.Compare(b.At)) })
	return sums, nil
}

// Received counts events. See core.Minutes.
func (s *Store) Received(ctx context.Context, from, until time.Time, sources []string) (map[string]int, error) {
	if len(sources) == 0 {
		return nil, nil
	}
	var rows [][]any
	for _, source := range sources {
		rows = append(rows, []any{source, source, string(core.FirstID(from)), source, string(core.FirstID(until))})
	}
	results, err := s.readBatch(ctx, s.sql.received.on(rows...))
	if err != nil {
		return nil, fmt.Errorf("count the events of sources: %w", err)
	}
	counts := map[string]int{}
	for _, row := range results[0].Rows {
		r := rowReader{row}
		if source, n := r.text(), r.number(); n > 0 {
			counts[source] = n
		}
	}
	return counts, nil
}

// PurgeMinutes deletes old minutes. See core.Minutes. It looks for the oldest one first, so that a
// gateway that was stopped for a day does not delete all minutes of that day in one commit.
func (s *Store) PurgeMinutes(ctx context.Context, before time.Time) error {
	results, err := s.readBatch(ctx, s.sql.oldestMinute.with())
	var row []any
	if err == nil {
		row, err = onlyRow(s.sql.oldestMinute, results[0].Rows)
	}
	if err != nil {
		return fmt.Errorf("purge minutes: %w", err)
	}
	oldest := rowReader{row}
	first := oldest.time()
	if first.IsZero() || !first.Before(before) {
		return nil
	}
	purge := s.sql.purgeMinutes.with(millis(earlier(before, first.Add(core.MinutesPurged*time.Minute))))
	purge.Lazy = true
	if _, err := s.write(ctx, purge); err != nil {
		return fmt.Errorf("purge minutes: %w", err)
	}
	return nil
}

// minutesSQL are the statements on counts of minutes.
type minutesSQL struct {
	insertMinutes, raiseMinutes, sumMinutes, received, oldestMinute, purgeMinutes statement
}

func newMinutesSQL(d Dialect) minutesSQL {
	t := d.sql
	return minutesSQL{
		insertMinutes: writing("insert_minutes", d.insertIfAbsent("minutes", `at, lane, process, accepted, completed, failed, dead`,
			`r#at, r.lane, r.process, r#accepted, r#completed, r#failed, r#dead`, "", "", "at")),
		raiseMinutes: writing("raise_minutes", d.updateRows("minutes", `accepted = r#accepted, completed = r#completed, failed = r#failed, dead = r#dead`,
			`minutes.at = r#at AND minutes.lane = r.lane AND minutes.process = r.process
			AND minutes.accepted + minutes.completed + minutes.failed + minutes.dead < r#sum + 0`)),
		// Only the inner SELECT has the step as a parameter. With the parameter in the GROUP BY as
		// well, PostgreSQL would see two different expressions and refuse the statement.
		sumMinutes: reading("sum_minutes", t(`SELECT lane, span,
			{sum CASE WHEN process = '' THEN accepted ELSE 0 END} AS whole, {sum CASE WHEN process = '' THEN 0 ELSE accepted END} AS accepted_sum,
			{sum completed} AS completed_sum, {sum failed} AS failed_sum, {sum dead} AS dead_sum
			FROM (SELECT lane, process, at - at % ({limit}) AS span, accepted, completed, failed, dead
				FROM minutes{use PRIMARY} WHERE at >= ? AND at < ?) AS counted GROUP BY lane, span`)),
		received: reading("received", d.selectRanges(`r.source AS source, (SELECT COUNT(*) FROM events{use events_by_source}
			WHERE `+d.eventsOf("r.same", ">=", "r.from")+` AND `+d.eventsOf("r.other", "<", "r.below")+`) AS n`)),
		oldestMinute: reading("oldest_minute", t(`SELECT MIN(at) AS at FROM minutes`)),
		purgeMinutes: writing("purge_minutes", t(`DELETE FROM minutes WHERE at < ?`)),
	}
}

// eventsOf is one end of a range of the ids of a source's events, with columns of the row source. See
// Dialect.idBound.
func (d Dialect) eventsOf(source, operator, id string) string {
	if d.compareAsRow {
		return "(events.source, events.id) " + operator + " (" + source + ", " + id + ")"
	}
	return "events.source = " + source + " AND events.id " + operator + " " + id
}
