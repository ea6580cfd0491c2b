package store

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/order"
)

// lineOf returns the name of a line: its lane, a character that no lane contains, and its key.
// So the lines of a lane are a range of names. It is null for a job that is in no line.
func lineOf(lane core.Lane, key string) any {
	if key == "" {
		return nil
	}
	return string(lane) + "#" + key
}

// lineKey returns the key in the name of a line.
func lineKey(line string) string {
	_, key, _ := strings.Cut(line, "#")
	return key
}

// linesOf returns the bounds of the names of a lane's lines; without a lane, those of all lines.
func linesOf(lane core.Lane) (above, below string) {
	if lane == "" {
		return "", "\x7f"
	}
	return string(lane) + "#", string(lane) + "$"
}

// A lineRef is a job that enters its line or leaves its slot.
type lineRef struct {
	line  string
	job   core.ID
	limit int

	// The job's status and lease. A statement does nothing if the job has another status, and
	// one that makes a job enter its line also if the job has another lease.
	status core.Status
	lease  core.Lease
}

// entering is the status of a new job between the statements of its batch.
const entering = "entering"

// byLine sorts refs by line, and those of a line by job.
func byLine(refs []lineRef) {
	order.Sort(refs, func(a, b lineRef) int { return cmp.Or(strings.Compare(a.line, b.line), cmp.Compare(a.job, b.job)) })
}

// lockLines returns the statement that locks the lines of refs until the commit; none on a
// database with one writer. A line has no row of its own: the statement locks one of 65,536 rows,
// which lines share by their hash. Each row is inserted when it is first needed, and stays.
func (s *Store) lockLines(refs []lineRef) []Stmt {
	if s.sql.lockLines.sql == "" {
		return nil
	}
	var rows [][]any
	for _, r := range refs {
		h := fnv.New32a()
		h.Write([]byte(r.line))
		rows = append(rows, []any{fmt.Sprintf("%04x", h.Sum32()&0xffff)})
	}
	slices.SortFunc(rows, byKey)
	rows = slices.CompactFunc(rows, func(a, b []any) bool { return rowKey(a) == rowKey(b) })
	return []Stmt{s.sql.lockLines.on(rows...).sortedBy(keyColumn)}
}

// enterStmts are the statements that give each job a slot of its line, or else the next place in
// it. The lines are locked. A statement gives at most one slot of each line, so jobs that may get
// several are divided by their rank in the line. Such a batch cannot be merged with others: the
// jobs of two callers would get the same slot.
func (s *Store) enterStmts(join statement, refs []lineRef) (stmts []Stmt) {
	byLine(refs)
	rows := make([][]any, len(refs))
	var single [][]any
	ranks := map[int][][]any{}
	rank := 0
	for i, r := range refs {
		rows[i] = []any{string(r.job), string(r.status), string(r.lease)}
		if rank++; i == 0 || refs[i-1].line != r.line {
			rank = 0
		}
		if r.limit == 1 {
			single = append(single, rows[i])
		} else if limit := slotBound(r.limit); int64(rank) < limit {
			ranks[rank] = append(ranks[rank], append(slices.Clone(rows[i]), limit))
		}
	}
	if len(single) > 0 {
		stmts = append(stmts, s.sql.takeOnlySlot.on(single...))
	}
	for k := range len(ranks) {
		stmts = append(stmts, s.sql.takeFreeSlot.on(ranks[k]...).noMerge())
	}
	return append(stmts, join.on(rows...))
}

// slotBound returns the highest slot of a line with a limit. A line without a limit has one too:
// it bounds the statements of a batch.
func slotBound(limit int) int64 {
	if limit <= 0 {
		return core.MaxLineLimit
	}
	return int64(limit)
}

// passStmts are the statements by which jobs that ended give their slots to the next jobs of
// their lines, or take the slots away if no job waits. The lines are locked. A slot whose job has
// another status than the ref says stays as it is, so a batch that is sent twice passes each slot
// on once.
func (s *Store) passStmts(now time.Time, refs []lineRef) (stmts []Stmt) {
	byLine(refs)
	ranks := map[int][]lineRef{}
	rank := 0
	for i, r := range refs {
		if rank++; i == 0 || refs[i-1].line != r.line {
			rank = 0
		}
		ranks[rank] = append(ranks[rank], r)
	}
	at := millis(now)
	joined := s.sql.passAndAdmit.sql != ""
	var admits, vacates [][]any
	for k := range len(ranks) {
		var passes, takes, ends [][]any
		for _, r := range ranks[k] {
			bound := slotBound(r.limit)
			if r.limit <= 0 {
				bound = 1 << 30 // slots of an earlier, higher limit
			}
			if joined {
				passes = append(passes, []any{at, bound, r.line, string(r.job), string(r.status)})
				ends = append(ends, []any{r.line, string(r.job), string(r.status)})
				continue
			}
			passes = append(passes, []any{bound, r.line, string(r.job), string(r.job), string(r.status)})
			takes = append(takes, []any{r.line})
			vacates = append(vacates, []any{r.line, string(r.job), string(r.job), string(r.status)})
			if k == 0 || s.dialect.admitsOne() {
				admits = append(admits, []any{at, at, at, r.line})
			}
		}
		pass, leave := s.sql.passSlots.on(passes...), s.sql.leavePlaces.on(takes...)
		if joined {
			pass, leave = s.sql.passAndAdmit.on(passes...), s.sql.leaveAndVacate.on(ends...)
		}
		pass.NoMerge = k > 0 || slices.ContainsFunc(ranks[k], func(r lineRef) bool { return r.limit != 1 })
		stmts = append(stmts, pass, leave)
	}
	if joined {
		return stmts
	}
	return append(stmts, s.sql.admitHolders.on(admits...), s.sql.vacateSlots.on(vacates...))
}

// linesSQL are the statements on lines. See "Lines" in doc.go.
type linesSQL struct {
	lockLines, insertLined, entered                   statement
	takeOnlySlot, takeFreeSlot, joinLine, rejoinLine  statement
	passSlots, leavePlaces, admitHolders, vacateSlots statement // on MySQL without the first and last
	passAndAdmit, leaveAndVacate                      statement // on MySQL only
	stopLines, reentered, stillHeld                   statement
}

const (
	// The slot of a job in its line.
	hasSlot = `EXISTS (SELECT 1 FROM line_slots WHERE line_slots.line = jobs.line AND line_slots.job_id = jobs.id)`

	// A job that is to enter its line.
	mayEnter = `jobs.id = r.id AND jobs.status = r.status AND COALESCE(jobs.lease, '') = r.lease`

	// The places behind and before all others of the job's line. Places grow while the line has a
	// slot.
	lastPlace  = `COALESCE(` + endOfJobs + `DESC LIMIT 1), (SELECT MAX(s.reached) FROM line_slots AS s WHERE s.line = jobs.line), 0)`
	firstPlace = `COALESCE(` + endOfJobs + `LIMIT 1), (SELECT MAX(s.reached) + 1000000 FROM line_slots AS s WHERE s.line = jobs.line), 0)`

	// The condition that no job waits in the job's line. The search begins at its end: PostgreSQL
	// keeps index entries of deleted places at its front. MySQL would read the whole line for MAX.
	noneWaits  = endOfJobs + `DESC LIMIT 1) IS NULL`
	endOfJobs  = `(SELECT p.place FROM line_places AS p{use PRIMARY} WHERE p.line = jobs.line ORDER BY p.place `
	rankInLine = `ROW_NUMBER() OVER (PARTITION BY jobs.line ORDER BY jobs.id)`

	// A job that ended as the row says, or is gone.
	hasEnded = `NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = r.ended AND jobs.status <> r.status)`

	// The condition that a job waits in the slot's line.
	someWait = `(SELECT p.place FROM line_places AS p{use PRIMARY} WHERE p.line = line_slots.line ORDER BY p.place DESC LIMIT 1) IS NOT NULL`
)

// freeSlotOf is the lowest number that no slot of a row's line has.
func freeSlotOf(table string) string {
	return `CASE WHEN NOT EXISTS (SELECT 1 FROM line_slots AS f WHERE f.line = ` + table + `.line AND f.slot = 1) THEN 1
		ELSE (SELECT MIN(s.slot) + 1 FROM line_slots AS s WHERE s.line = ` + table + `.line
		AND NOT EXISTS (SELECT 1 FROM line_slots AS f WHERE f.line = s.line AND f.slot = s.slot + 1)) END`
}

// toNextPlace has the assignments that give a slot to the first place of its line.
//
// With a limit of 1 the search begins behind the place that the slot came from: PostgreSQL and MySQL
// keep entries of deleted places in the index for a while, and a search from the beginning of the
// line would read them all. SQLite and D1 keep none.
func toNextPlace(d Dialect) string {
	const from = ` FROM line_places AS p{use PRIMARY} WHERE p.line = line_slots.line`
	if d.lockConflict == "" { // one writer
		return `(job_id, reached, stopped_at) = (SELECT p.job_id, p.place, 0` + from + ` ORDER BY p.place LIMIT 1)`
	}
	next := func(column string) string {
		return `COALESCE((SELECT p.` + column + from + ` AND p.place > CASE WHEN r#highest = 1 THEN line_slots.reached ELSE -4611686018427387904 END ORDER BY p.place LIMIT 1),
			(SELECT p.` + column + from + ` ORDER BY p.place LIMIT 1))`
	}
	// job_id comes before reached: MySQL evaluates SET from left to right and reads the new values.
	return `job_id = ` + next("job_id") + `, reached = ` + next("place") + `, stopped_at = 0`
}

func newLinesSQL(d Dialect) linesSQL {
	// The lines are locked, and a job may enter once: later in the batch it gets another status.
	join := func(place string) string {
		return d.insert("line_places", "line, place, job_id", `jobs.line, `+place+`, jobs.id`,
			"jobs{use PRIMARY}", mayEnter+` AND NOT `+hasSlot)
	}
	s := linesSQL{
		lockLines: uncounted("lock_lines", lockLinesSQL(d)),

		// scheduled_at is when the job is to be due at the earliest.
		insertLined: uncounted("insert_lined_jobs", d.insertIfAbsent("jobs", jobColumns+", line, scheduled_at",
			`r.id, events.id, r.lane, r.job_key, '`+entering+`', 0, r#max_attempts, NULL, NULL, '', r#created_at, NULL, r.line, r#wanted_at`,
			"events{use PRIMARY}", `events.id = r.event_id`, "id")),
		takeOnlySlot: uncounted("take_only_slot", d.insertIfAbsent("line_slots", slotColumns, `jobs.line, 1, jobs.id, 0, 0`,
			"jobs{use PRIMARY}", mayEnter+` AND `+noneWaits, "line")),
		// A statement has one row of each line, see enterStmts, so no slot is taken twice.
		takeFreeSlot: writing("take_free_slot", d.insert("line_slots", slotColumns, `jobs.line, `+freeSlotOf("jobs")+`, jobs.id, 0, 0`,
			"jobs{use PRIMARY}", mayEnter+` AND NOT `+hasSlot+` AND `+noneWaits+` AND `+freeSlotOf("jobs")+` <= r#highest + 0`)),
		joinLine:   uncounted("join_line", join(lastPlace+` + `+rankInLine)),
		rejoinLine: writing("rejoin_line", join(firstPlace+` - `+rankInLine)),
		// scheduled_at comes last: MySQL evaluates SET from left to right and reads the new values.
		entered: uncounted("entered", d.updateRows("jobs", `due_at = CASE WHEN `+hasSlot+` THEN scheduled_at END,
			status = CASE WHEN NOT `+hasSlot+` THEN 'waiting' WHEN scheduled_at > created_at THEN 'scheduled' ELSE 'available' END,
			scheduled_at = CASE WHEN `+hasSlot+` THEN NULL ELSE scheduled_at END`, `jobs.id = r.id AND jobs.status = '`+entering+`'`)),

		passSlots: writing("pass_slots", d.updateOne("line_slots", toNextPlace(d),
			`line_slots.slot <= r#highest AND line_slots.line = r.line AND line_slots.job_id = r.job AND `+someWait+` AND `+hasEnded)),
		// A job that enters its line again may get the number of a place that an earlier job had, so
		// the job is compared too.
		leavePlaces: writing("leave_places", d.deleteVia("line_places", "line_slots",
			`line_slots.line = r.line AND line_places.line = line_slots.line AND line_places.place = line_slots.reached AND line_places.job_id = line_slots.job_id`)),
		admitHolders: writing("admit_holders", d.updateVia("jobs", "line_slots",
			`due_at = CASE WHEN jobs.scheduled_at > r#now THEN jobs.scheduled_at ELSE r#at END,
			status = CASE WHEN jobs.scheduled_at > r#same THEN 'scheduled' ELSE 'available' END`,
			`line_slots.line = r.line AND jobs.id = line_slots.job_id AND jobs.status = 'waiting'`)),
		vacateSlots:    writing("vacate_slots", d.deleteOne("line_slots", `line_slots.line = r.line AND line_slots.job_id = r.job AND `+hasEnded)),
		passAndAdmit:   uncounted("pass_and_admit", passAndAdmitSQL(d)),
		leaveAndVacate: uncounted("leave_and_vacate", leaveAndVacateSQL(d)),
		stopLines: writing("stop_lines", d.updateRows("line_slots", `stopped_at = r#at`,
			`line_slots.line = r.line AND line_slots.job_id = r.job AND (SELECT jobs.status FROM jobs WHERE jobs.id = r.ended) = 'dead'`)),

		// A job that got no slot waits; its attempt does not count. scheduled_at is null, so that
		// it is due once it is admitted.
		reentered: writing("reentered", d.updateRows("jobs", `status = 'waiting', attempt = attempt - 1, due_at = NULL, lease = NULL, scheduled_at = NULL`,
			heldGuard+` AND NOT `+hasSlot)),
		stillHeld: reading("still_held", d.selectRows(`jobs.id AS job`, "jobs{use PRIMARY}", heldGuard)),
	}
	if d.joinedChanges {
		s.passSlots, s.vacateSlots = statement{}, statement{}
	}
	return s
}

// passAndAdmitSQL does in one statement what pass_slots and admit_holders do. It is "" on databases
// that cannot change two tables in one statement. With it and leave_and_vacate, passing a slot on takes
// 160 µs of CPU on MariaDB, instead of 202 with four statements (16 jobs a batch).
func passAndAdmitSQL(d Dialect) string {
	if !d.joinedChanges {
		return ""
	}
	const from = `(SELECT n.place FROM line_places AS n{use PRIMARY} WHERE n.line = line_slots.line`
	// The columns of r are bound in the order in which they are named first.
	set := `line_slots.job_id = p.job_id, line_slots.reached = p.place, line_slots.stopped_at = 0,
		jobs.due_at = CASE WHEN jobs.scheduled_at > r#now THEN jobs.scheduled_at ELSE r#now END,
		jobs.status = CASE WHEN jobs.scheduled_at > r#now THEN 'scheduled' ELSE 'available' END`
	where := `line_slots.slot <= r#highest AND line_slots.line = r.line AND line_slots.job_id = r.job AND COALESCE(ended.status, r.status) = r.status
		AND p.line = line_slots.line AND p.place = COALESCE(` + from + ` AND n.place > CASE WHEN r#highest = 1 THEN line_slots.reached ELSE -4611686018427387904 END
		ORDER BY n.place LIMIT 1), ` + from + ` ORDER BY n.place LIMIT 1))`
	joins := `STRAIGHT_JOIN line_slots{use PRIMARY} LEFT JOIN jobs AS ended{use PRIMARY} ON ended.id = r.job
		STRAIGHT_JOIN line_places AS p{use PRIMARY} LEFT JOIN jobs{use PRIMARY} ON jobs.id = p.job_id AND jobs.status = 'waiting'`
	source := d.bindRows(&set, &where, &joins)
	return "UPDATE " + source + " " + joins + " SET " + set + " WHERE " + where
}

// leaveAndVacateSQL does in one statement what leave_places and vacate_slots do. See
// passAndAdmitSQL. s are the slots of the line, and v is the slot that goes to no job. The statement
// reads, and so locks, the job that ended and not those with other slots, which other batches may
// have locked before they wait for the line.
func leaveAndVacateSQL(d Dialect) string {
	if !d.joinedChanges {
		return ""
	}
	where := `s.line = r.line`
	joins := `STRAIGHT_JOIN line_slots AS s{use PRIMARY} LEFT JOIN line_places AS p{use PRIMARY} ON p.line = s.line AND p.place = s.reached AND p.job_id = s.job_id
		LEFT JOIN jobs AS ended{use PRIMARY} ON ended.id = r.job
		LEFT JOIN line_slots AS v{use PRIMARY} ON v.line = s.line AND v.slot = s.slot AND s.job_id = r.job AND COALESCE(ended.status, r.status) = r.status`
	source := d.bindRows(&where, &joins)
	return "DELETE p, v FROM " + source + " " + joins + " WHERE " + where
}

// lockLinesSQL is the statement that locks lines, "" on SQLite and D1. PostgreSQL locks a row once
// in a statement, so the rows have to be distinct.
func lockLinesSQL(d Dialect) string {
	if d.lockConflict == "" {
		return ""
	}
	selection := "r.stripe"
	if d.insertValues == nil {
		selection = "DISTINCT r.stripe"
	}
	return d.insert("line_locks", "stripe", selection, "", "") + " " + d.lockConflict
}

// slotColumns are the columns of line_slots. reached is the place that the slot's job had; 0 if it
// got the slot at once.
const slotColumns = `line, slot, job_id, reached, stopped_at`
