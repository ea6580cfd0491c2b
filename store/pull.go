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
	"github.com/eventgateway/gateway/core/order"
)

// Ack completes taken jobs and returns how many. See core.Counter. If a Conn repeats the batch after
// a lost answer, jobs that the first sending completed are not counted.
func (s *Store) Ack(ctx context.Context, now time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	return s.changeCounted(ctx, s.sql.ack, refRows(lane, refs, millis(now)))
}

// Extend moves the ends of leases and returns how many. See core.Counter.
func (s *Store) Extend(ctx context.Context, end time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	n, err := s.changeCounted(ctx, s.sql.extend, refRows(lane, refs, end.UnixMilli()))
	if err == nil {
		s.floors.jobWritten(end)
	}
	return n, err
}

// changeCounted sends a statement of Dialect.updateCounted on the rows of refs, and returns how many
// jobs it changed for this caller. The number has to be exact, also where the statement is merged
// with those of other callers.
func (s *Store) changeCounted(ctx context.Context, st statement, rows [][]any) (int, error) {
	if len(rows) == 0 {
		return 0, nil
	}
	stmt, caller := s.counted(st, rows)
	results, err := s.write(ctx, stmt)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", st.name, err)
	}
	if !stmt.Returns {
		return int(results[0].Changed), nil
	}
	n := 0
	for _, row := range results[0].Rows {
		if row[0] == caller {
			n++
		}
	}
	return n, nil
}

// refID is the position of the id in the rows of ack and extend. They are sorted by it.
const refID = 1

// counted makes a Stmt of Dialect.updateCounted. If it returns the changed rows, each row gets the
// number of its caller, which no other caller of this Store has.
func (s *Store) counted(st statement, rows [][]any) (stmt Stmt, caller any) {
	if st.returns {
		caller = s.callers.Add(1)
		for i := range rows {
			rows[i] = append(rows[i], caller)
		}
	}
	return st.on(rows...).sortedBy(refID), caller
}

// Held returns taken jobs. See core.Counter.
func (s *Store) Held(ctx context.Context, lane core.Lane, refs []core.Ref) ([]core.TakenJob, error) {
	rows := refRows(lane, refs)
	if len(rows) == 0 {
		return nil, nil
	}
	results, err := s.readBatch(ctx, s.sql.held.on(rows...))
	if err != nil {
		return nil, fmt.Errorf("read held jobs of lane %q: %w", lane, err)
	}
	jobs := addTaken(nil, results[0].Rows)
	order.Sort(jobs, func(a, b core.TakenJob) int { return cmp.Compare(a.ID, b.ID) })
	return jobs, nil
}

// refRows returns rows of a statement on taken jobs: the values that all rows share, then id,
// lane and lease. They are sorted by id, the lock order of jobs. Each ref occurs once. A ref
// without a lease means any lease, so further refs for its job are left out: no job may count
// twice. Refs come from consumers and may be any text; text that databases reject cannot be a
// job's id and is left out as well.
func refRows(lane core.Lane, refs []core.Ref, values ...any) (rows [][]any) {
	refs = slices.DeleteFunc(slices.Clone(refs), func(r core.Ref) bool {
		text := string(r.ID) + string(r.Lease)
		return strings.Contains(text, "\x00") || !utf8.ValidString(text)
	})
	order.Sort(refs, func(a, b core.Ref) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Lease, b.Lease)) })
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

// addTaken reads rows of takenColumns and appends the jobs.
func addTaken(jobs []core.TakenJob, rows [][]any) []core.TakenJob {
	for _, row := range rows {
		r := rowReader{row}
		jobs = append(jobs, r.taken())
	}
	return jobs
}

// Lapsed returns running jobs whose last lease has expired. See core.Worklist. They are found
// by jobs_lapsing, without a Take.
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
		return nil, fmt.Errorf("find jobs whose last lease expired: %w", err)
	}
	for _, r := range results {
		jobs = addTaken(jobs, r.Rows)
	}
	return jobs[:min(limit, len(jobs))], nil
}

// Tallies counts the unfinished jobs of lanes. See core.Backlog. It reads only indexes, and stops at
// core.MaxDepth.
func (s *Store) Tallies(ctx context.Context, now time.Time, lanes []core.Lane) (map[core.Lane]core.Tally, error) {
	tallies := make(map[core.Lane]core.Tally, len(lanes))
	var stmts []Stmt
	for _, l := range lanes {
		ms := now.UnixMilli()
		stmts = append(stmts, s.sql.tally.with(ms, ms, ms, ms, string(l), int64(core.MaxDepth)), s.tallyWaiting(l))
	}
	results, err := s.readBatch(ctx, stmts...)
	if err != nil {
		return nil, fmt.Errorf("count the unfinished jobs of lanes: %w", err)
	}
	for i, l := range lanes {
		if tallies[l], err = s.tallyOf(now, results[2*i], results[2*i+1]); err != nil {
			return nil, fmt.Errorf("count the unfinished jobs of lanes: %w", err)
		}
	}
	return tallies, nil
}

// Ended counts the dead and canceled jobs of lanes. See core.Backlog. It reads only indexes, and stops
// at core.MaxDepth.
func (s *Store) Ended(ctx context.Context, lanes []core.Lane) (map[core.Lane]core.Ended, error) {
	ended := make(map[core.Lane]core.Ended, len(lanes))
	var stmts []Stmt
	for _, l := range lanes {
		stmts = append(stmts, s.sql.tallyDead.with(string(l), int64(core.MaxDepth)), s.sql.tallyCanceled.with(string(l), int64(core.MaxDepth)))
	}
	results, err := s.readBatch(ctx, stmts...)
	if err != nil {
		return nil, fmt.Errorf("count the dead and canceled jobs of lanes: %w", err)
	}
	for i, l := range lanes {
		var e core.Ended
		if e.Dead, err = countIn(s.sql.tallyDead, results[2*i].Rows); err == nil {
			e.Canceled, err = countIn(s.sql.tallyCanceled, results[2*i+1].Rows)
		}
		if err != nil {
			return nil, fmt.Errorf("count the dead and canceled jobs of lanes: %w", err)
		}
		ended[l] = e
	}
	return ended, nil
}

// tallyWaiting counts the jobs of a lane that wait in its lines, and the lines that are stopped.
func (s *Store) tallyWaiting(l core.Lane) Stmt {
	above, below := linesOf(l)
	return s.sql.tallyWaiting.with(above, below, int64(core.MaxDepth), above, below, int64(core.MaxDepth))
}

// tallyOf reads the results of a lane: of jobs_waiting and of line_places.
func (s *Store) tallyOf(now time.Time, unfinished, lined Result) (core.Tally, error) {
	waiting, err := onlyRow(s.sql.tally, unfinished.Rows)
	if err != nil {
		return core.Tally{}, err
	}
	inLines, err := onlyRow(s.sql.tallyWaiting, lined.Rows)
	if err != nil {
		return core.Tally{}, err
	}
	r := rowReader{waiting}
	t := core.Tally{Pending: r.number(), Retryable: r.number(), Processing: r.number()}
	if oldest := r.time(); !oldest.After(now) {
		t.OldestDue = oldest
	}
	t.Scheduled = r.number()
	r = rowReader{inLines}
	t.Waiting, t.Stopped = r.number(), r.number()
	t.Pending += t.Waiting
	return t, nil
}

// Peek returns due jobs without leasing them. See core.Backlog. It begins at the first job of
// the lane and not at the floor: the floor is as old as this process's last look, and the
// process may not take from the lane at all. If it meets jobs of a held source, it looks again and
// steps over them.
func (s *Store) Peek(ctx context.Context, now time.Time, lane core.Lane, limit int) ([]core.TakenJob, error) {
	n, at := int64(min(max(limit, 1), core.MaxPage)), now.UnixMilli()
	results, err := s.readBatch(ctx, s.sql.peek.with(string(lane), at, n).upTo(core.MaxRead), s.sql.sourceHolds.with())
	if err != nil {
		return nil, fmt.Errorf("peek at lane %q: %w", lane, err)
	}
	jobs, holds := addTaken(nil, results[0].Whole()), s.sources.observe(results[1].Rows)
	if slices.ContainsFunc(jobs, func(j core.TakenJob) bool { return holdsSource(holds, j.Event.Source, now) }) {
		if results, err = s.readBatch(ctx, s.sql.peekSifted.with(string(lane), at, at, n).upTo(core.MaxRead)); err != nil {
			return nil, fmt.Errorf("peek at lane %q: %w", lane, err)
		}
		jobs = addTaken(nil, results[0].Whole())
	}
	for i := range jobs {
		jobs[i].Status = shownAs(jobs[i].Job, now)
	}
	return jobs, nil
}

// DeadLetters lists dead jobs, the newest first. See core.Backlog.
func (s *Store) DeadLetters(ctx context.Context, lane core.Lane, after core.ID, limit int) (core.Page[core.TakenJob], error) {
	limit = pageLimit(limit)
	results, err := s.readBatch(ctx, s.sql.deadLetters.with(string(lane), pageTop(after), int64(limit+1)).upTo(core.MaxRead))
	if err != nil {
		return core.Page[core.TakenJob]{}, fmt.Errorf("list dead jobs of lane %q: %w", lane, err)
	}
	rows := results[0].Whole()
	rows = rows[:min(limit, len(rows))]
	return core.Page[core.TakenJob]{Items: addTaken(nil, rows), More: len(results[0].Rows) > len(rows)}, nil
}

// Drain deletes jobs of a lane. See core.Operations. Like Purge it reads ids first and deletes
// by id. Another process may complete some in between, so it goes on until it deleted limit
// jobs or finds no more.
func (s *Store) Drain(ctx context.Context, lane core.Lane, below core.ID, limit int) (total int, err error) {
	for total < limit {
		wanted := limit - total
		picked, deleted, err := s.drainChunk(ctx, s.clock(), lane, below, wanted)
		total += deleted
		if err != nil || picked < wanted {
			return total, err
		}
	}
	return total, nil
}

// drainChunk reads the ids of up to limit jobs and deletes the jobs that are neither completed nor canceled yet.
// The batch is not merged with others, so that the number is exact.
func (s *Store) drainChunk(ctx context.Context, now time.Time, lane core.Lane, below core.ID, limit int) (picked, deleted int, err error) {
	first, last := linesOf(lane)
	found, err := s.readBatch(ctx,
		s.sql.drainWaiting.with(string(lane), string(below), int64(limit)),
		s.sql.drainDead.with(string(lane), string(below), int64(limit)),
		s.sql.drainPlaces.with(first, last, string(below), int64(limit)))
	if err != nil {
		return 0, 0, fmt.Errorf("drain lane %q: %w", lane, err)
	}
	picks := slices.Concat(found[0].Rows, found[1].Rows, found[2].Rows)
	picks = picks[:min(limit, len(picks))]
	if len(picks) == 0 {
		return 0, 0, nil
	}
	slices.SortFunc(picks, byKey)
	ids := make([][]any, len(picks))
	for i, p := range picks {
		ids[i] = []any{rowKey(p)}
	}
	stmts := []Stmt{s.sql.drainJobs.on(ids...).noMerge(), s.sql.drainedAttempts.on(ids...).noMerge()}
	stmts = append(stmts, s.drainedLines(now, picks)...)
	results, err := s.write(ctx, append(stmts, s.audited(ctx, s.sql.audit)...)...)
	if err != nil {
		return 0, 0, fmt.Errorf("drain lane %q: %w", lane, err)
	}
	s.floors.jobWritten(now) // the next jobs of the lines
	return len(picks), int(results[0].Changed), nil
}

// The columns of a job that is drained: its id, its line and its place there.
const (
	drainedLine  = 1
	drainedPlace = 2
)

// drainedLines are the statements for the lines of deleted jobs: their places are deleted, and
// their slots go to the jobs that are left.
func (s *Store) drainedLines(now time.Time, picks [][]any) (stmts []Stmt) {
	var places [][]any
	var gone []lineRef
	for _, p := range picks {
		line := textOf(p[drainedLine])
		if line == "" {
			continue
		}
		gone = append(gone, lineRef{line: line, job: core.ID(rowKey(p)), status: drained})
		if len(p) > drainedPlace && p[drainedPlace] != nil {
			places = append(places, []any{line, p[drainedPlace]})
		}
	}
	if len(gone) == 0 {
		return nil
	}
	stmts = s.lockLines(gone)
	if len(places) > 0 {
		stmts = append(stmts, s.sql.drainedPlaces.on(places...))
	}
	return append(stmts, s.passStmts(now, gone)...)
}

// drained is a status that no job has. A slot whose job is gone passes on under any status.
const drained = "drained"

// refGuard is the guard of a taken job for a core.Ref. Unlike heldGuard it checks the lane,
// since consumers of a queue send ids, and it accepts a ref without a lease.
const refGuard = `jobs.id = r.id AND jobs.lane = r.lane AND jobs.status = 'running' AND jobs.lease = COALESCE(r.lease, jobs.lease)`

// pullSQL are the statements for queues and backlogs.
type pullSQL struct {
	ack, extend, held, lapsed, peek, deadLetters        statement
	tally, tallyDead, tallyCanceled                     statement
	drainWaiting, drainDead, drainJobs, drainedAttempts statement
	drainPlaces, drainedPlaces                          statement
}

func newPullSQL(d Dialect) pullSQL {
	t := d.sql
	return pullSQL{
		ack: d.updateCounted("ack", "jobs",
			`status = 'completed', due_at = NULL, lease = NULL, last_error = '', finished_at = r#finished_at`, refGuard),
		// A job counts if it is found, even if its due time stays the same. MySQL counts such
		// rows because of ClientFoundRows in store/mysql.
		extend: d.updateCounted("extend", "jobs", `due_at = r#due_at`, refGuard),
		held:   reading("held", d.selectRows(takenColumns, "jobs{use PRIMARY}"+withEvents, refGuard)),

		lapsed: reading("lapsed", t(`SELECT `+takenColumns+` FROM jobs{use jobs_lapsing}`+withEvents+`
			WHERE {in_lapsing} AND lane = ? AND {lapses_at} >= 0 AND {lapses_at} <= ? ORDER BY {lapses_at}, jobs.id LIMIT {limit}`)),

		// As a claim reads, without the floor.
		peek: reading("peek", t(`SELECT `+takenColumns+` FROM jobs{use jobs_waiting}`+withEvents+`
			WHERE {waiting_lane} = ? AND due_at >= 0 AND due_at <= ? ORDER BY due_at, jobs.id LIMIT {limit}`)),
		deadLetters: reading("dead_letters", t(`SELECT `+takenColumns+` FROM jobs{use jobs_dead}`+withEvents+`
			WHERE {in_dead} AND lane = ? AND jobs.id < ? ORDER BY jobs.id DESC LIMIT {limit}`)),

		// All columns are in jobs_waiting. tallyOf reads the columns in this order. The LIMIT
		// bounds the time in a lane with millions of jobs.
		tally: walking("tally", t(`SELECT COUNT(CASE WHEN status <> 'running' OR due_at <= ? THEN 1 END) AS pending,
			COUNT(CASE WHEN status = 'retryable' OR status = 'running' AND due_at <= ? THEN 1 END) AS retryable,
			COUNT(CASE WHEN status = 'running' AND due_at > ? THEN 1 END) AS processing, MIN(CASE WHEN due_at >= 0 THEN due_at END) AS oldest,
			COUNT(CASE WHEN status = 'scheduled' AND due_at > ? THEN 1 END) AS scheduled
			FROM (SELECT status, due_at FROM jobs{use jobs_waiting} WHERE {in_waiting} AND {waiting_lane} = ? ORDER BY due_at, id LIMIT {limit}) AS counted`)),
		tallyDead: walking("tally_dead", t(`SELECT COUNT(*) AS dead FROM (SELECT 1 AS one FROM jobs{use jobs_dead} WHERE {in_dead} AND lane = ? LIMIT {limit}) AS counted`)),

		tallyCanceled: walking("tally_canceled", t(`SELECT COUNT(*) AS canceled FROM (SELECT 1 AS one FROM jobs{use jobs_canceled} WHERE {in_canceled} AND lane = ? LIMIT {limit}) AS counted`)),

		drainWaiting: reading("drain_waiting", t(`SELECT id, line, NULL AS place FROM jobs{use jobs_waiting} WHERE {in_waiting} AND {waiting_lane} = ? AND id < ?`+oldestFirst)),
		drainDead:    reading("drain_dead", t(`SELECT id, line, NULL AS place FROM jobs{use jobs_dead} WHERE {in_dead} AND lane = ? AND id < ? ORDER BY id LIMIT {limit}`)),
		drainPlaces: reading("drain_places", t(`SELECT job_id AS id, line, place FROM line_places{use PRIMARY} WHERE line > ? AND line < ? AND job_id < ?
			ORDER BY line, place LIMIT {limit}`)),
		drainedPlaces: writing("drained_places", d.deleteRows("line_places", `line_places.line = r.line AND line_places.place = r#place
			AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = line_places.job_id)`)),
		// The guard keeps jobs that were completed or canceled since their ids were read, and
		// with them their attempts.
		drainJobs:       writing("drain_jobs", d.deleteRows("jobs", `jobs.id = r.id AND jobs.status NOT IN ('completed', 'canceled')`)),
		drainedAttempts: writing("drain_attempts", d.deleteRows("attempts", `attempts.job_id = r.id AND `+jobGone)),
	}
}
