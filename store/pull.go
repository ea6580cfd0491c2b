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
	return s.changeHeld(ctx, s.sql.ack.on(refRows(lane, refs, millis(now))...).noMerge())
}

// Extend moves the ends of leases. See core.Counter. It stays apart as Ack does.
func (s *Store) Extend(ctx context.Context, end time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	n, err := s.changeHeld(ctx, s.sql.extend.on(refRows(lane, refs, end.UnixMilli())...).noMerge())
	if err == nil {
		s.floors.jobWritten(end)
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
	results, err := s.readBatch(ctx, s.sql.held.on(rows...))
	if err != nil {
		return nil, fmt.Errorf("held: %w", err)
	}
	jobs := addTaken(nil, results[0].Rows)
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

// addTaken reads rows of takenColumns, and adds them.
func addTaken(jobs []core.TakenJob, rows [][]any) []core.TakenJob {
	for _, row := range rows {
		r := rowReader{row}
		jobs = append(jobs, r.taken())
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
		stmts[i] = s.sql.lapsed.with(string(l), now.UnixMilli(), int64(limit))
	}
	results, err := s.readBatch(ctx, stmts...)
	if err != nil {
		return nil, fmt.Errorf("look for lapsed jobs: %w", err)
	}
	for _, r := range results {
		jobs = addTaken(jobs, r.Rows)
	}
	return jobs[:min(limit, len(jobs))], nil
}

// Tallies counts jobs. See core.Backlog. It looks at nothing but indexes.
func (s *Store) Tallies(ctx context.Context, now time.Time, lanes []core.Lane) (map[core.Lane]core.Tally, error) {
	tallies := make(map[core.Lane]core.Tally, len(lanes))
	var stmts []Stmt
	for _, l := range lanes {
		lane, ms, most := string(l), now.UnixMilli(), int64(core.MaxDepth)
		stmts = append(stmts,
			s.sql.tally.with(ms, ms, ms, ms, lane, most),
			s.sql.tallyDead.with(lane, most))
	}
	if len(stmts) == 0 {
		return tallies, nil
	}
	results, err := s.readBatch(ctx, stmts...)
	if err != nil {
		return nil, fmt.Errorf("tallies: %w", err)
	}
	for i, l := range lanes {
		waiting, err := onlyRow(s.sql.tally, results[2*i].Rows)
		if err != nil {
			return nil, fmt.Errorf("tallies: %w", err)
		}
		dead, err := countIn(s.sql.tallyDead, results[2*i+1].Rows)
		if err != nil {
			return nil, fmt.Errorf("tallies: %w", err)
		}
		tallies[l] = tallyOf(now, waiting, dead)
	}
	return tallies, nil
}

// tallyOf reads a row of tally.
func tallyOf(now time.Time, waiting []any, dead int) core.Tally {
	r := rowReader{waiting}
	t := core.Tally{Pending: r.number(), Retryable: r.number(), Processing: r.number(), Dead: dead}
	if oldest := r.time(); !oldest.After(now) {
		t.OldestDue = oldest
	}
	t.Scheduled = r.number()
	return t
}

// Peek returns due jobs. See core.Backlog. It looks from the bottom and not from the
// lane's floor, which is as old as the last look of whoever takes there.
func (s *Store) Peek(ctx context.Context, now time.Time, lane core.Lane, limit int) ([]core.TakenJob, error) {
	n := int64(min(max(limit, 1), core.MaxPage))
	results, err := s.readBatch(ctx, s.sql.peek.with(string(lane), now.UnixMilli(), n).upTo(core.MaxRead))
	if err != nil {
		return nil, fmt.Errorf("peek: %w", err)
	}
	jobs := addTaken(nil, results[0].Whole())
	for i := range jobs {
		jobs[i].Status = shownAs(jobs[i].Job, now)
	}
	return jobs, nil
}

// DeadLetters lists dead jobs. See core.Backlog.
func (s *Store) DeadLetters(ctx context.Context, lane core.Lane, after core.ID, limit int) (core.Page[core.TakenJob], error) {
	limit = pageLimit(limit)
	results, err := s.readBatch(ctx, s.sql.deadLetters.with(string(lane), pageTop(after), int64(limit+1)).upTo(core.MaxRead))
	if err != nil {
		return core.Page[core.TakenJob]{}, fmt.Errorf("list dead letters: %w", err)
	}
	rows := results[0].Whole()
	rows = rows[:min(limit, len(rows))]
	return core.Page[core.TakenJob]{Items: addTaken(nil, rows), More: len(results[0].Rows) > len(rows)}, nil
}

// Drain deletes jobs of a lane. See core.Operations. As Purge does it looks first and
// deletes by id. Where others were quicker with some, it looks for more.
func (s *Store) Drain(ctx context.Context, lane core.Lane, below core.ID, limit int) (total int, err error) {
	for total < limit {
		wanted := limit - total
		picked, deleted, err := s.drainChunk(ctx, lane, below, wanted)
		total += deleted
		if err != nil || picked < wanted {
			return total, err
		}
	}
	return total, nil
}

// drainSome picks up to limit jobs and deletes those that are still there and not
// completed, apart from the batches of others, to know how many they were.
func (s *Store) drainChunk(ctx context.Context, lane core.Lane, below core.ID, limit int) (picked, deleted int, err error) {
	found, err := s.readBatch(ctx,
		s.sql.drainWaiting.with(string(lane), string(below), int64(limit)),
		s.sql.drainDead.with(string(lane), string(below), int64(limit)))
	if err != nil {
		return 0, 0, fmt.Errorf("drain: %w", err)
	}
	picks := slices.Concat(found[0].Rows, found[1].Rows)
	picks = picks[:min(limit, len(picks))]
	if len(picks) == 0 {
		return 0, 0, nil
	}
	slices.SortFunc(picks, byKey)
	results, err := s.write(ctx,
		s.sql.drainJobs.on(picks...).noMerge(),
		s.sql.drainedAttempts.on(picks...).noMerge())
	if err != nil {
		return 0, 0, fmt.Errorf("drain: %w", err)
	}
	return len(picks), int(results[0].Changed), nil
}

// meant is the guard of a taken job for a core.Ref, whose lease may be missing.
const refGuard = `jobs.id = r.id AND jobs.lane = r.lane AND jobs.status = 'running' AND jobs.lease = COALESCE(r.lease, jobs.lease)`

type pullSQL struct {
	ack, extend, held, lapsed, peek, deadLetters        statement
	tally, tallyDead                                    statement
	drainWaiting, drainDead, drainJobs, drainedAttempts statement
}

func newPullSQL(d Dialect) pullSQL {
	t := d.sql
	return pullSQL{
		ack: writing("ack", d.updateRows("jobs",
			`status = 'completed', due_at = NULL, lease = NULL, last_error = '', finished_at = r#finished_at`, refGuard)),
		// A job counts that is found, also if its time was the same: see ClientFoundRows in
		// store/mysql.
		extend: writing("extend", d.updateRows("jobs", `due_at = r#due_at`, refGuard)),
		held:   reading("held", d.selectRows(takenColumns, "jobs{use PRIMARY}"+withEvents, refGuard)),

		lapsed: reading("lapsed", t(`SELECT `+takenColumns+` FROM jobs{use jobs_lapsing}`+withEvents+`
			WHERE {in_lapsing} AND {lapsing_lane} = ? AND due_at <= ? ORDER BY due_at, jobs.id LIMIT {limit}`)),

		peek: reading("peek", t(`SELECT `+takenColumns+` FROM jobs{use jobs_waiting}`+withEvents+`
			WHERE {waiting_lane} = ? AND due_at <= ? ORDER BY due_at, jobs.id LIMIT {limit}`)),
		deadLetters: reading("dead_letters", t(`SELECT `+takenColumns+` FROM jobs{use jobs_dead}`+withEvents+`
			WHERE {in_dead} AND {dead_lane} = ? AND jobs.id < ? ORDER BY jobs.id DESC LIMIT {limit}`)),

		// All of it is in the index. The columns are those of tallyOf.
		tally: reading("tally", t(`SELECT COUNT(CASE WHEN status <> 'running' OR due_at <= ? THEN 1 END) AS pending,
			COUNT(CASE WHEN status = 'retryable' OR status = 'running' AND due_at <= ? THEN 1 END) AS retryable,
			COUNT(CASE WHEN status = 'running' AND due_at > ? THEN 1 END) AS processing, MIN(due_at) AS oldest,
			COUNT(CASE WHEN status = 'scheduled' AND due_at > ? THEN 1 END) AS scheduled
			FROM (SELECT status, due_at FROM jobs{use jobs_waiting} WHERE {in_waiting} AND {waiting_lane} = ? ORDER BY due_at, id LIMIT {limit}) AS counted`)),
		tallyDead: reading("tally_dead", t(`SELECT COUNT(*) AS dead FROM (SELECT 1 AS one FROM jobs{use jobs_dead} WHERE {in_dead} AND {dead_lane} = ? LIMIT {limit}) AS counted`)),

		drainWaiting: reading("drain_waiting", t(`SELECT id FROM jobs{use jobs_waiting} WHERE {in_waiting} AND {waiting_lane} = ? AND id < ?`+oldestFirst)),
		drainDead:    reading("drain_dead", t(`SELECT id FROM jobs{use jobs_dead} WHERE {in_dead} AND {dead_lane} = ? AND id < ? ORDER BY id LIMIT {limit}`)),
		// Whatever happened since they were picked: a job that was completed stays.
		drainJobs:       writing("drain_jobs", d.deleteRows("jobs", `jobs.id = r.id AND jobs.status <> 'completed'`)),
		drainedAttempts: writing("drain_attempts", d.deleteRows("attempts", `attempts.job_id = r.id AND `+jobGone)),
	}
}
