package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Lines lists the lines of a lane that have jobs. See core.Lines. Each of them has a slot, so the
// slots are read, in the order of the primary key.
func (s *Store) Lines(ctx context.Context, lane core.Lane, after string, limit int) (core.Page[core.LineState], error) {
	limit = pageLimit(limit)
	above, below := linesOf(lane)
	found, err := s.readBatch(ctx, s.sql.lineList.with(above+after, below, int64(limit+1)))
	if err != nil {
		return core.Page[core.LineState]{}, fmt.Errorf("list the lines of lane %q: %w", lane, err)
	}
	rows := found[0].Rows
	page := core.Page[core.LineState]{More: len(rows) > limit}
	var counts []Stmt
	for _, row := range rows[:min(limit, len(rows))] {
		r := rowReader{row}
		line := r.text()
		page.Items = append(page.Items, core.LineState{Key: lineKey(line), Admitted: r.number(),
			StoppedAt: timeUnlessZero(r.value(), time.UnixMilli)})
		counts = append(counts, s.sql.countPlaces.with(line, int64(core.MaxDepth)), s.sql.stoppedBy.with(line))
	}
	if len(counts) == 0 {
		return page, nil
	}
	results, err := s.readBatch(ctx, counts...)
	if err != nil {
		return core.Page[core.LineState]{}, fmt.Errorf("count the jobs of lines: %w", err)
	}
	for i := range page.Items {
		page.Items[i].Waiting, err = countIn(s.sql.countPlaces, results[2*i].Rows)
		if err != nil {
			return core.Page[core.LineState]{}, fmt.Errorf("count the jobs of lines: %w", err)
		}
		if rows := results[2*i+1].Rows; len(rows) > 0 {
			page.Items[i].StoppedBy = core.ID(rowKey(rows[0]))
		}
	}
	return page, nil
}

// LinesOf reads lines by their keys. See core.Lines.
func (s *Store) LinesOf(ctx context.Context, lane core.Lane, next int, keys ...string) ([]core.LineJobs, error) {
	lines := make([]core.LineJobs, len(keys))
	at := map[string]int{}
	var rows [][]any
	var stmts []Stmt
	for i, k := range keys {
		line := lineOf(lane, k).(string)
		lines[i].Key, at[line] = k, i
		rows = append(rows, []any{line})
		stmts = append(stmts, s.sql.nextPlaces.with(line, int64(next)))
	}
	if len(keys) == 0 {
		return nil, nil
	}
	if next <= 0 {
		stmts = nil
	}
	found, err := s.readBatch(ctx, append(stmts, s.sql.slotHolders.on(rows...))...)
	if err != nil {
		return nil, fmt.Errorf("read lines of lane %q: %w", lane, err)
	}
	for i := range stmts {
		for _, row := range found[i].Rows {
			lines[i].Next = append(lines[i].Next, core.ID(rowKey(row)))
		}
		lines[i].Waiting = len(lines[i].Next)
	}
	for _, row := range found[len(stmts)].Rows {
		r := rowReader{row}
		l := &lines[at[r.text()]]
		id, stopped := r.id(), timeUnlessZero(r.value(), time.UnixMilli)
		l.Holders, l.Admitted = append(l.Holders, id), l.Admitted+1
		if !stopped.IsZero() {
			l.StoppedAt, l.StoppedBy = stopped, id
		}
	}
	for i := range lines {
		slices.Sort(lines[i].Holders)
	}
	return lines, nil
}

// LinedLanes returns the lanes that have lines with jobs. See core.Lines. It jumps from one lane to
// the next, so it costs a statement for each of them.
func (s *Store) LinedLanes(ctx context.Context) (lanes []core.Lane, err error) {
	for above := ""; ; {
		rows, err := s.read(ctx, s.sql.firstLine, above)
		if err != nil {
			return nil, fmt.Errorf("list the lanes with lines: %w", err)
		}
		if len(rows) == 0 {
			return lanes, nil
		}
		lane, _, _ := strings.Cut(rowKey(rows[0]), "#")
		lanes = append(lanes, core.Lane(lane))
		_, above = linesOf(core.Lane(lane))
	}
}

// Skip ends the stop of a line. See core.Lines. It reads first whether the job stops the line: the
// answer is the same if the batch is sent twice.
func (s *Store) Skip(ctx context.Context, now time.Time, id core.ID) (bool, error) {
	job, err := s.Job(ctx, id)
	if err != nil || job.Status != core.Dead || job.Line == "" {
		return false, err
	}
	ref := lineRef{line: lineOf(job.Lane, job.Line).(string), job: id, status: core.Dead}
	found, err := s.readBatch(ctx, s.sql.slotHolders.on([]any{ref.line}))
	if err != nil {
		return false, fmt.Errorf("skip job %s: %w", id, err)
	}
	if !slices.ContainsFunc(found[0].Rows, func(row []any) bool {
		return textOf(row[holderJob]) == string(id) && intOf(row[holderStopped]) != 0
	}) {
		return false, nil
	}
	stmts := append(s.lockLines([]lineRef{ref}), s.audited(ctx, s.sql.auditSkipped, []any{string(id), ref.line})...)
	if _, err := s.write(ctx, append(stmts, s.passStmts(now, []lineRef{ref})...)...); err != nil {
		return false, fmt.Errorf("skip job %s: %w", id, err)
	}
	s.floors.jobWritten(now)
	return true, nil
}

// The columns of slot_holders: the line, the job that has the slot, when it stopped the line, and
// its status.
const (
	holderJob     = 1
	holderStopped = 2
)

// fillLines is how many lines one Fill looks at.
const fillLines = 200

// Fill brings lines to a limit. See core.Lines. It reads the slots of some lines with the statuses
// of their jobs, and decides for each line how many slots it lacks.
func (s *Store) Fill(ctx context.Context, now time.Time, lane core.Lane, limit int, after string) (next string, err error) {
	above, below := linesOf(lane)
	found, err := s.readBatch(ctx, s.sql.lineList.with(above+after, below, int64(fillLines)))
	if err != nil {
		return "", fmt.Errorf("fill the lines of lane %q: %w", lane, err)
	}
	rows := found[0].Rows
	if len(rows) == fillLines {
		next = lineKey(rowKey(rows[fillLines-1]))
	}
	var stmts []Stmt
	var refs []lineRef
	fills := map[int][][]any{}
	for _, row := range rows {
		r := rowReader{row}
		line, slots := r.text(), r.number()
		refs = append(refs, lineRef{line: line, limit: limit})
		for k := range min(int(slotBound(limit))-slots, core.MaxLineLimit) {
			fills[k] = append(fills[k], []any{line, line, slotBound(limit)})
		}
	}
	ended, err := s.endedHolders(ctx, rows, limit)
	if err != nil || len(fills)+len(ended) == 0 {
		return next, err
	}
	stmts = s.lockLines(refs)
	if len(ended) > 0 {
		stmts = append(stmts, s.passStmts(now, ended)...)
	}
	var admits [][]any
	for k := range len(fills) {
		var takes [][]any
		for _, row := range fills[k] {
			takes = append(takes, []any{row[0]})
			if k == 0 || s.dialect.admitsOne() {
				admits = append(admits, []any{millis(now), millis(now), millis(now), row[0]})
			}
		}
		stmts = append(stmts, s.sql.fillSlots.on(fills[k]...), s.sql.leavePlaces.on(takes...))
	}
	if len(admits) > 0 {
		stmts = append(stmts, s.sql.admitHolders.on(admits...))
	}
	stmts[0].NoMerge = true
	if _, err := s.write(ctx, stmts...); err != nil {
		return "", fmt.Errorf("fill the lines of lane %q: %w", lane, err)
	}
	s.floors.jobWritten(now)
	return next, nil
}

// endedHolders returns the slots of lines whose jobs are completed or gone, or dead without a stop.
// There are some if a process whose configuration has no lines ended the jobs.
func (s *Store) endedHolders(ctx context.Context, lines [][]any, limit int) (ended []lineRef, err error) {
	if len(lines) == 0 {
		return nil, nil
	}
	rows := make([][]any, len(lines))
	for i, l := range lines {
		rows[i] = []any{rowKey(l)}
	}
	found, err := s.readBatch(ctx, s.sql.slotHolders.on(rows...))
	if err != nil {
		return nil, fmt.Errorf("read the slots of lines: %w", err)
	}
	for _, row := range found[0].Rows {
		r := rowReader{row}
		ref := lineRef{line: r.text(), job: r.id(), limit: limit}
		stopped := r.number() != 0
		ref.status = core.Status(r.text())
		if ref.status == "" || ref.status == core.Completed || ref.status == core.Dead && !stopped {
			ended = append(ended, ref)
		}
	}
	return slices.Clip(ended), nil
}

// reviveLined makes dead or canceled jobs of lines available again. A job that stops its line goes on with its
// slot; any other enters its line at the end. The limit of the line is not known here: if it is
// higher than 1, the job may wait for a slot that is free until the next job of the line ends.
func (s *Store) reviveLined(ctx context.Context, now time.Time, refs []lineRef) (int, error) {
	if len(refs) == 0 {
		return 0, nil
	}
	at := millis(now)
	var holders, starts, others, guards [][]any
	for i := range refs {
		refs[i].limit = 1
		id, status := string(refs[i].job), string(refs[i].status)
		holders = append(holders, []any{at, id, status})
		starts = append(starts, []any{refs[i].line, id, id})
		others = append(others, []any{at, id, status})
		guards = append(guards, []any{status, id})
	}
	// The caller has found the jobs dead or canceled, and the lines are locked.
	stmts := append(s.lockLines(refs), s.audited(ctx, s.sql.auditRevived, guards...)...)
	stmts = append(stmts, s.sql.reviveHolders.on(holders...), s.sql.startLines.on(starts...))
	held := len(stmts) - 2
	stmts = append(stmts, s.enterStmts(s.sql.joinLine, refs)...)
	stmts = append(stmts, s.sql.reviveOthers.on(others...).once(), s.sql.forgetStrays.with())
	stmts[held] = stmts[held].noMerge()
	results, err := s.write(ctx, stmts...)
	if err != nil {
		return 0, fmt.Errorf("retry: %w", err)
	}
	s.floors.jobWritten(now)
	return int(results[held].Changed + results[len(results)-2].Changed), nil
}

// reviveLinedLane makes all dead jobs of a lane's lines available again, in the order of their ids.
// So it sees each job once, also if the job dies again meanwhile.
func (s *Store) reviveLinedLane(ctx context.Context, now time.Time, lane string) (total int, err error) {
	after := ""
	for ctx.Err() == nil {
		found, err := s.readBatch(ctx, s.sql.deadLined.with(lane, after, int64(retryChunk)))
		if err != nil {
			return total, fmt.Errorf("retry: %w", err)
		}
		var refs []lineRef
		for _, row := range found[0].Rows {
			r := rowReader{row}
			refs = append(refs, lineRef{job: r.id(), line: r.text(), status: core.Dead})
			after = string(refs[len(refs)-1].job)
		}
		n, err := s.reviveLined(ctx, now, refs)
		total += n
		if err != nil || len(refs) < retryChunk {
			return total, err
		}
	}
	return total, ctx.Err()
}

// lineListSQL are the statements that read lines, and those of an operator.
type lineListSQL struct {
	lineList, firstLine, countPlaces, nextPlaces, stoppedBy, slotHolders, deadLined, linesHeld statement
	fillSlots, reviveHolders, startLines, reviveOthers                                         statement
	tallyWaiting, depthWaiting, jobsInLines                                                    statement
}

func newLineListSQL(d Dialect) lineListSQL {
	t := d.sql
	inLines := `FROM line_places{use PRIMARY} WHERE line_places.line > ? AND line_places.line < ?`
	return lineListSQL{
		lineList: reading("line_list", t(`SELECT line, COUNT(*) AS slots, MAX(stopped_at) AS stopped FROM line_slots{use PRIMARY}
			WHERE line > ? AND line < ? GROUP BY line ORDER BY line LIMIT {limit}`)),
		firstLine:   reading("first_line", t(`SELECT line FROM line_slots{use PRIMARY} WHERE line > ? ORDER BY line LIMIT 1`)),
		countPlaces: walking("count_places", t(`SELECT COUNT(*) AS places FROM (SELECT 1 AS one FROM line_places{use PRIMARY} WHERE line = ? LIMIT {limit}) AS counted`)),
		nextPlaces:  reading("next_places", t(`SELECT job_id FROM line_places{use PRIMARY} WHERE line = ? ORDER BY place LIMIT {limit}`)),
		stoppedBy:   reading("stopped_by", t(`SELECT job_id FROM line_slots{use PRIMARY} WHERE line = ? AND stopped_at > 0 ORDER BY slot LIMIT 1`)),
		slotHolders: reading("slot_holders", d.selectRows(`line_slots.line AS line, line_slots.job_id AS job, line_slots.stopped_at AS stopped,
			(SELECT jobs.status FROM jobs WHERE jobs.id = line_slots.job_id) AS status`, "line_slots{use PRIMARY}", `line_slots.line = r.line`)),
		deadLined: reading("dead_lined", t(`SELECT id, line FROM jobs{use jobs_dead} WHERE {in_dead} AND lane = ? AND id > ?
			AND line IS NOT NULL ORDER BY id LIMIT {limit}`)),
		linesHeld: reading("lines_held", d.selectRows(`jobs.id AS job, jobs.line AS line`, "jobs{use PRIMARY}", refGuard+` AND jobs.line IS NOT NULL`)),

		// The lines are locked, and each has one row in a statement, so no slot is taken twice.
		fillSlots: writing("fill_slots", d.insert("line_slots", slotColumns,
			`line_places.line, `+freeSlotOf("line_places")+`, line_places.job_id, line_places.place, 0`, "line_places{use PRIMARY}",
			`line_places.line = r.line AND line_places.place = (SELECT p.place FROM line_places AS p{use PRIMARY} WHERE p.line = r.same ORDER BY p.place LIMIT 1)
			AND `+freeSlotOf("line_places")+` <= r#highest + 0`)),
		reviveHolders: writing("revive_holders", d.updateRows("jobs", "status = 'available', due_at = r#now, "+revivedBudget, `jobs.id = r.id AND jobs.status = r.status AND `+hasSlot)),
		startLines: writing("start_lines", d.updateRows("line_slots", `stopped_at = 0`,
			`line_slots.line = r.line AND line_slots.job_id = r.job AND COALESCE((SELECT jobs.status FROM jobs WHERE jobs.id = r.same), '') <> 'dead'`)),
		reviveOthers: writing("revive_others", d.updateRows("jobs", `status = CASE WHEN `+hasSlot+` THEN 'available' ELSE 'waiting' END,
			due_at = CASE WHEN `+hasSlot+` THEN r#now END, scheduled_at = NULL, `+revivedBudget, `jobs.id = r.id AND jobs.status = r.status`)),

		tallyWaiting: walking("tally_waiting", t(`SELECT (SELECT COUNT(*) FROM (SELECT 1 AS one `+inLines+` LIMIT {limit}) AS counted) AS waiting,
			(SELECT COUNT(*) FROM (SELECT stopped_at FROM line_slots{use PRIMARY} WHERE line > ? AND line < ? LIMIT {limit}) AS counted WHERE stopped_at > 0) AS stopped`)),
		depthWaiting: walking("depth_waiting", t(`SELECT COUNT(*) FROM (SELECT 1 AS one FROM line_places LIMIT {limit}) AS counted`)),
		jobsInLines:  reading("jobs_in_lines", t(`SELECT job_id AS job `+inLines+` AND COALESCE(job_id, '') < ? ORDER BY job_id DESC LIMIT {limit}`)),
	}
}

// AckLined completes taken jobs of lines. See core.Lines. The refs do not say of which lines the
// jobs are, so that is read before.
func (s *Store) AckLined(ctx context.Context, now time.Time, lane core.Lane, limit int, refs []core.Ref) (int, error) {
	rows := refRows(lane, refs, millis(now))
	if len(rows) == 0 {
		return 0, nil
	}
	found, err := s.readBatch(ctx, s.sql.linesHeld.on(refRows(lane, refs)...))
	if err != nil {
		return 0, fmt.Errorf("ack: %w", err)
	}
	var ended []lineRef
	for _, row := range found[0].Rows {
		r := rowReader{row}
		ended = append(ended, lineRef{job: r.id(), line: r.text(), limit: limit, status: core.Completed})
	}
	if len(ended) == 0 {
		return s.changeCounted(ctx, s.sql.ack, rows)
	}
	ack, _ := s.counted(s.sql.ack, rows)
	stmts := append([]Stmt{ack.noMerge()}, s.lockLines(ended)...)
	results, err := s.write(ctx, append(stmts, s.passStmts(now, ended)...)...)
	if err != nil {
		return 0, fmt.Errorf("ack: %w", err)
	}
	s.floors.jobWritten(now)
	return int(results[0].Changed), nil
}
