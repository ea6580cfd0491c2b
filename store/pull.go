package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
)

// Ack completes taken jobs. See core.Counter. It stays apart from the batches of
// others, since it has to know how many jobs were its own. Where a connection sends it
// again because no answer came, what the first one completed is not counted.
func (s *Store) Ack(ctx context.Context, now time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	return s.changeHeld(ctx, Stmt{Name: "ack", SQL: s.sql.ack, Rows: refRows(lane, refs, millis(now)), Apart: true})
}

// Extend moves the ends of leases. See core.Counter. It stays apart as Ack does.
func (s *Store) Extend(ctx context.Context, end time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	n, err := s.changeHeld(ctx, Stmt{Name: "extend", SQL: s.sql.extend, Rows: refRows(lane, refs, end.UnixMilli()), Apart: true})
	if err == nil {
		s.floors.lower(end)
	}
	return n, err
}

// changeHeld runs a statement on the rows of refs, and returns how many it changed.
func (s *Store) changeHeld(ctx context.Context, stmt Stmt) (int, error) {
	if len(stmt.Rows) == 0 {
		return 0, nil
	}
	results, err := s.write(ctx, stmt)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", stmt.Name, err)
	}
	return int(results[0].Changed), nil
}

// Held returns taken jobs. See core.Counter.
func (s *Store) Held(ctx context.Context, lane core.Lane, refs []core.Ref) ([]core.TakenJob, error) {
	rows := refRows(lane, refs)
	if len(rows) == 0 {
		return nil, nil
	}
	results, err := s.readBatch(ctx, Stmt{Name: "held", SQL: s.sql.held, Rows: rows, Reads: true})
	if err != nil {
		return nil, fmt.Errorf("held: %w", err)
	}
	jobs := scanTaken(nil, results[0].Rows)
	slices.SortFunc(jobs, func(a, b core.TakenJob) int { return cmp.Compare(a.ID, b.ID) })
	return jobs, nil
}

// refRows are the rows of a statement on taken jobs, in the order of ids, so that
// callers who meet wait in line: values that all of them have, then id, lane and
// lease. Each ref is there once, and beside one without a lease there is none for the
// same job, so that no job is counted twice. Consumers may send any text: what no
// database takes for one is left out, since no job is called so.
func refRows(lane core.Lane, refs []core.Ref, values ...any) (rows [][]any) {
	refs = slices.DeleteFunc(slices.Clone(refs), func(r core.Ref) bool {
		text := string(r.ID) + string(r.Lease)
		return strings.Contains(text, "\x00") || !utf8.ValidString(text)
	})
	slices.SortFunc(refs, func(a, b core.Ref) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Lease, b.Lease)) })
	var last core.Ref
	for i, ref := range refs {
		if i > 0 && ref.ID == last.ID && (last.Lease == "" || ref.Lease == last.Lease) {
			continue
		}
		last = ref
		rows = append(rows, slices.Concat(values, []any{string(ref.ID), string(lane), orNull(string(ref.Lease))}))
	}
	return rows
}

// scanTaken reads rows of jobStored and eventStored, and adds them.
func scanTaken(jobs []core.TakenJob, rows [][]any) []core.TakenJob {
	for _, row := range rows {
		jobs = append(jobs, core.TakenJob{Job: scanJob(row), Event: scanEvent(row[jobWidth:])})
	}
	return jobs
}

// Lapsed returns jobs whose last lease is over. See core.Worklist.
func (s *Store) Lapsed(ctx context.Context, now time.Time, lanes []core.Lane, limit int) (jobs []core.TakenJob, err error) {
	if len(lanes) == 0 || limit <= 0 {
		return nil, nil
	}
	stmts := make([]Stmt, len(lanes))
	for i, l := range lanes {
		stmts[i] = Stmt{Name: "lapsed", SQL: s.sql.lapsed, Args: []any{string(l), now.UnixMilli(), int64(limit)}, Reads: true}
	}
	results, err := s.readBatch(ctx, stmts...)
	if err != nil {
		return nil, fmt.Errorf("look for lapsed jobs: %w", err)
	}
	for _, r := range results {
		jobs = scanTaken(jobs, r.Rows)
	}
	return jobs[:min(limit, len(jobs))], nil
}

// Tallies counts jobs. See core.Ledger. It looks at nothing but indexes.
func (s *Store) Tallies(ctx context.Context, now time.Time, lanes []core.Lane) (map[core.Lane]core.Tally, error) {
	tallies := make(map[core.Lane]core.Tally, len(lanes))
	var stmts []Stmt
	for _, l := range lanes {
		lane, ms, most := string(l), now.UnixMilli(), int64(core.MaxDepth)
		stmts = append(stmts,
			Stmt{Name: "tally", SQL: s.sql.tally, Args: []any{ms, ms, ms, ms, lane, most}, Reads: true},
			Stmt{Name: "tally_dead", SQL: s.sql.tallyDead, Args: []any{lane, most}, Reads: true})
	}
	if len(stmts) == 0 {
		return tallies, nil
	}
	results, err := s.readBatch(ctx, stmts...)
	if err != nil {
		return nil, fmt.Errorf("tallies: %w", err)
	}
	for i, l := range lanes {
		waiting, err := lone("tally", results[2*i].Rows)
		if err != nil {
			return nil, fmt.Errorf("tallies: %w", err)
		}
		dead, err := lone("tally_dead", results[2*i+1].Rows)
		if err != nil {
			return nil, fmt.Errorf("tallies: %w", err)
		}
		tallies[l] = tallyOf(now, waiting, dead)
	}
	return tallies, nil
}

func tallyOf(now time.Time, waiting, dead []any) core.Tally {
	t := core.Tally{Pending: whole(waiting[0]), Retryable: whole(waiting[1]), Processing: whole(waiting[2]), Scheduled: whole(waiting[4]), Dead: whole(dead[0])}
	if oldest := instant(waiting[3]); !oldest.After(now) {
		t.OldestDue = oldest
	}
	return t
}

// Peek returns due jobs. See core.Ledger. It looks from the bottom and not from the
// lane's floor, which is as old as the last look of whoever takes there.
func (s *Store) Peek(ctx context.Context, now time.Time, lane core.Lane, limit int) ([]core.TakenJob, error) {
	n := int64(min(max(limit, 1), core.MaxPage))
	results, err := s.readBatch(ctx, Stmt{Name: "peek", SQL: s.sql.peek, Args: []any{string(lane), now.UnixMilli(), n}, Reads: true, MaxBytes: core.MaxRead})
	if err != nil {
		return nil, fmt.Errorf("peek: %w", err)
	}
	jobs := scanTaken(nil, results[0].Whole())
	for i := range jobs {
		jobs[i].Status = shownAs(jobs[i].Job, now)
	}
	return jobs, nil
}

// DeadLetters lists dead jobs. See core.Ledger.
func (s *Store) DeadLetters(ctx context.Context, lane core.Lane, after core.ID, limit int) (core.Page[core.TakenJob], error) {
	limit = pageLimit(limit)
	args := []any{string(lane), pageTop(after), int64(limit + 1)}
	results, err := s.readBatch(ctx, Stmt{Name: "dead_letters", SQL: s.sql.deadLetters, Args: args, Reads: true, MaxBytes: core.MaxRead})
	if err != nil {
		return core.Page[core.TakenJob]{}, fmt.Errorf("list dead letters: %w", err)
	}
	rows := results[0].Whole()
	rows = rows[:min(limit, len(rows))]
	return core.Page[core.TakenJob]{Items: scanTaken(nil, rows), More: len(results[0].Rows) > len(rows)}, nil
}

// Drain deletes jobs of a lane. See core.Upkeep. As Purge does it looks first and
// deletes by id. Where others were quicker with some, it looks for more.
func (s *Store) Drain(ctx context.Context, lane core.Lane, below core.ID, limit int) (total int, err error) {
	for total < limit {
		wanted := limit - total
		picked, deleted, err := s.drainSome(ctx, lane, below, wanted)
		total += deleted
		if err != nil || picked < wanted {
			return total, err
		}
	}
	return total, nil
}

// drainSome picks up to limit jobs and deletes those that are still there and not
// completed, apart from the batches of others, to know how many they were.
func (s *Store) drainSome(ctx context.Context, lane core.Lane, below core.ID, limit int) (picked, deleted int, err error) {
	found, err := s.readBatch(ctx,
		Stmt{Name: "drain_waiting", SQL: s.sql.drainWaiting, Args: []any{string(lane), string(below), int64(limit)}, Reads: true},
		Stmt{Name: "drain_dead", SQL: s.sql.drainDead, Args: []any{string(lane), string(below), int64(limit)}, Reads: true})
	if err != nil {
		return 0, 0, fmt.Errorf("drain: %w", err)
	}
	picks := slices.Concat(found[0].Rows, found[1].Rows)
	picks = picks[:min(limit, len(picks))]
	if len(picks) == 0 {
		return 0, 0, nil
	}
	slices.SortFunc(picks, func(a, b []any) int { return cmp.Compare(str(a[0]), str(b[0])) })
	results, err := s.write(ctx,
		Stmt{Name: "drain_jobs", SQL: s.sql.drainJobs, Rows: picks, Apart: true},
		Stmt{Name: "drain_attempts", SQL: s.sql.deleteAttempts, Rows: picks, Apart: true})
	if err != nil {
		return 0, 0, fmt.Errorf("drain: %w", err)
	}
	return len(picks), int(results[0].Changed), nil
}
