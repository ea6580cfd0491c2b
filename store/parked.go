package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// This file has the holds of sources. See "Held sources" in doc.go.

const (
	// parkedBand is the distance, in milliseconds, between a due time and that of the same job
	// parked under the number 1. It is more than every due time of a job that is due, until the
	// year 2248. The number times the band stays below 2^53, up to which JSON is exact.
	parkedBand = 1 << 43

	// maxHeldSources is the largest number of a held source.
	maxHeldSources = 1000

	// parkWindow is how many due jobs of a lane a claim looks at for jobs of held sources. A
	// lookup takes a few microseconds for each.
	parkWindow = 200

	// returnAtOnce is how many jobs of a lane a Take returns at once after a hold has ended.
	returnAtOnce = 500

	// forgetAfter is how long the number of a source stays reserved after its hold. A claim that
	// read the hold before it ended may park jobs until its batch ends, which is much sooner.
	forgetAfter = time.Minute
)

// due reads a due time. That of a parked job is the time at which it was due.
func (r *rowReader) due() time.Time {
	v := r.value()
	if ms, ok := v.(int64); ok && ms < 0 {
		v = ms & (parkedBand - 1) // subtracting whole bands left these bits as they were
	}
	return timeOf(v)
}

// bandOf returns the lowest due time of jobs that are parked under a number, and the first one
// above them.
func bandOf(number int64) (from, below int64) {
	return -number * parkedBand, (1 - number) * parkedBand
}

// A sourceHold is a row of source_holds with the end of the hold, from the source's gate.
type sourceHold struct {
	number int64
	source string
	heldAt int64
	until  int64 // 0 if the source has no gate any more
}

// ended reports whether the hold is over.
func (h sourceHold) ended(now time.Time) bool { return h.until <= now.UnixMilli() }

// holdsSource reports whether a source is held.
func holdsSource(holds []sourceHold, source string, now time.Time) bool {
	return slices.ContainsFunc(holds, func(h sourceHold) bool { return h.source == source && !h.ended(now) })
}

// knownHolds are the holds of sources as this process read them last.
type knownHolds struct {
	mu  sync.Mutex // guards all
	all []sourceHold
}

func (k *knownHolds) get() []sourceHold {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all
}

// observe notes the rows of source_holds, and returns them.
func (k *knownHolds) observe(rows [][]any) []sourceHold {
	var all []sourceHold
	for _, row := range rows {
		r := rowReader{row}
		all = append(all, sourceHold{int64(r.number()), r.text(), int64(r.number()), int64(r.number())})
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = all
	return all
}

// numberSource gives the source of a lane a number, before its gate is held. It does nothing for
// other lanes. Of several processes that choose the same number at the same time, one has it, and
// the others choose again.
func (s *Store) numberSource(ctx context.Context, now time.Time, lane core.Lane) error {
	const tries = 100
	source, at := lane.Source(), now.UnixMilli()
	if source == "" {
		return nil
	}
	rows, err := s.read(ctx, s.sql.sourceHolds)
	if err != nil {
		return err
	}
	for range tries {
		number := freeNumber(s.sources.observe(rows), source)
		if number > maxHeldSources {
			return core.Refuse(core.Invalid, "at most %d sources can be held at the same time, and a release counts after a minute", maxHeldSources)
		}
		results, err := s.write(ctx,
			s.sql.numberSource.on([]any{source, number, string(lane), at}).noMerge(),
			s.sql.renewNumber.with(at, number, source),
			s.sql.sourceHolds.with())
		if err != nil {
			return err
		}
		rows = results[2].Rows
		if slices.ContainsFunc(s.sources.observe(rows), func(h sourceHold) bool { return h.source == source && h.number == number }) {
			return nil
		}
	}
	return core.Refuse(core.Unavailable, "other callers hold sources at the same time; send the request again")
}

// freeNumber returns the number that a source has, or else the lowest that no source has.
func freeNumber(all []sourceHold, source string) int64 {
	free := int64(1)
	for _, h := range all { // sorted by number
		if h.source == source {
			return h.number
		}
		if h.number == free {
			free++
		}
	}
	return free
}

// takeBesideHolds is a Take while sources are held, or were until a moment ago. Jobs of held
// sources are parked, so that no later claim meets them. If there are very many, some rounds pass
// until a claim finds other jobs.
func (s *Store) takeBesideHolds(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	const rounds = 20
	for range rounds {
		rows, err := s.read(ctx, s.sql.sourceHolds)
		if err != nil {
			return nil, fmt.Errorf("read held sources: %w", err)
		}
		holds := s.sources.observe(rows)
		if len(holds) == 0 {
			jobs, _, err := s.takeOnce(ctx, now, quotas, nil)
			return jobs, err
		}
		if err := s.returnParked(ctx, now, holds); err != nil {
			return nil, fmt.Errorf("return the jobs of released sources: %w", err)
		}
		bounds, err := s.dueBounds(ctx, now, quotas)
		if err != nil {
			return nil, err
		}
		jobs, parked, err := s.takeOnce(ctx, now, quotas, bounds)
		if err != nil || len(jobs) > 0 || parked == 0 {
			return jobs, err
		}
	}
	return nil, nil
}

// dueBounds returns the due time of the last of the first parkWindow due jobs for the lane of each
// quota, or the present if there are fewer. A claim beside holds looks no further, since all that
// it meets there may be jobs of held sources.
func (s *Store) dueBounds(ctx context.Context, now time.Time, quotas []core.Quota) ([]int64, error) {
	stmts, bounds := make([]Stmt, len(quotas)), make([]int64, len(quotas))
	for i, q := range quotas {
		stmts[i] = s.sql.dueBound.with(string(q.Lane), s.floors.claimFrom(q.Lane), now.UnixMilli(), int64(parkWindow-1))
	}
	results, err := s.readBatch(ctx, stmts...)
	if err != nil {
		return nil, fmt.Errorf("look for due jobs: %w", err)
	}
	for i, r := range results {
		bounds[i] = now.UnixMilli()
		if len(r.Rows) > 0 {
			bounds[i] = int64(intOf(r.Rows[0][0]))
		}
	}
	return bounds, nil
}

// returnParked makes the parked jobs of sources that are not held any more due again, some of each
// lane. The gates of their lanes get the end of the hold first, so that the ramp begins with them.
// A source of which no job is parked loses its number after a while.
func (s *Store) returnParked(ctx context.Context, now time.Time, holds []sourceHold) error {
	over := slices.DeleteFunc(slices.Clone(holds), func(h sourceHold) bool { return !h.ended(now) })
	if len(over) == 0 {
		return nil
	}
	lanes, err := s.distinct(ctx, s.sql.lanesWaiting)
	if err != nil {
		return err
	}
	// In the order of lanes, in which all batches lock gates.
	var stmts []Stmt
	for _, l := range lanes {
		if core.Lane(l).Queue() == "" {
			stmts = append(stmts, s.rampStmts(now, l, over)...)
		}
		for _, h := range over {
			from, below := bandOf(h.number)
			stmts = append(stmts, s.sql.returnParked.with(l, from, below, int64(returnAtOnce), h.number*parkedBand))
		}
	}
	if len(stmts) > 0 {
		stmts[0].NoMerge = true
		results, err := s.write(ctx, stmts...)
		if err != nil {
			return err
		}
		for i := range results {
			if stmts[i].Name == s.sql.returnParked.name && results[i].Changed > 0 {
				s.ForgetFloors() // these jobs were due long ago
				break
			}
		}
	}
	return s.forgetNumbers(ctx, now, over, lanes)
}

// rampStmts are the statements that let a lane in which jobs are parked begin slowly, if a hold
// ended a moment ago.
func (s *Store) rampStmts(now time.Time, lane string, over []sourceHold) (stmts []Stmt) {
	for _, h := range over {
		if now.Sub(time.UnixMilli(h.until)) < core.RampTime {
			from, below := bandOf(h.number)
			stmts = append(stmts, s.sql.insertGate.on([]any{lane}),
				s.sql.beginRamp.with(h.until, lane, h.until, lane, from, below))
		}
	}
	return stmts
}

// forgetNumbers deletes the numbers of released sources whose last hold ended long enough ago, if
// no job is parked under them in any lane. returnParked skips jobs that another process returns at
// the same time, so that it found none does not say that there is none.
func (s *Store) forgetNumbers(ctx context.Context, now time.Time, over []sourceHold, lanes []string) error {
	var looks, forgets []Stmt
	for _, h := range over {
		if max(h.heldAt, h.until) < now.Add(-forgetAfter).UnixMilli() {
			looks = append(looks, s.lookParked(h, lanes))
			forgets = append(forgets, s.sql.forgetNumber.with(h.number, h.heldAt, now.UnixMilli()))
		}
	}
	if len(looks) > 0 && len(lanes) > 0 {
		found, err := s.readBatch(ctx, looks...)
		if err != nil {
			return err
		}
		for i := len(found) - 1; i >= 0; i-- {
			if slices.ContainsFunc(found[i].Rows, isParked) {
				forgets = slices.Delete(forgets, i, i+1)
			}
		}
	}
	if len(forgets) == 0 {
		return nil
	}
	_, err := s.write(ctx, forgets...)
	return err
}

// lookParked is the statement that looks in lanes for jobs that are parked under a hold. Its rows
// have a lane and the due time of such a job.
func (s *Store) lookParked(h sourceHold, lanes []string) Stmt {
	from, below := bandOf(h.number)
	rows := make([][]any, len(lanes))
	for i, l := range lanes {
		rows[i] = []any{l, l, from, below}
	}
	return s.sql.parked.on(rows...)
}

// isParked reports whether a row of lookParked has a job.
func isParked(row []any) bool { return row[1] != nil }

// parkedDue lowers the due times of lanes to the end of a hold under which jobs of the lane are
// parked. It sends one statement if a hold has an end, and none otherwise.
func (s *Store) parkedDue(ctx context.Context, lanes []core.Lane, due map[core.Lane]core.Outlook) error {
	var stmts []Stmt
	var ends []time.Time
	names := make([]string, len(lanes))
	for i, l := range lanes {
		names[i] = string(l)
	}
	for _, h := range s.sources.get() {
		if end := time.UnixMilli(h.until).UTC(); !end.Equal(core.NoEnd) {
			stmts, ends = append(stmts, s.lookParked(h, names)), append(ends, end)
		}
	}
	if len(stmts) == 0 {
		return nil
	}
	results, err := s.readBatch(ctx, stmts...)
	if err != nil {
		return err
	}
	for i, r := range results {
		for _, row := range r.Rows {
			lane := core.Lane(rowKey(row))
			if o := due[lane]; isParked(row) && slices.Contains(lanes, lane) && (o.DueAt.IsZero() || ends[i].Before(o.DueAt)) {
				o.DueAt = ends[i]
				due[lane] = o
			}
		}
	}
	return nil
}

// parkedSQL are the statements on the holds of sources.
type parkedSQL struct {
	sourceHolds, numberSource, renewNumber, forgetNumber  statement
	dueBound, park, returnParked, parked                  statement
	beginRamp, claimSifted, claimSiftedPassed, peekSifted statement
}

const (
	// The hold of the source of a job's event. The inner SELECT makes every database look up the
	// event first.
	sourceOfJob = `source_holds.source = (SELECT events.source FROM events{use PRIMARY} WHERE events.id = jobs.event_id)`

	// A job whose event came from a source that is held now.
	ofHeldSource = `EXISTS (SELECT 1 FROM source_holds{use PRIMARY} JOIN gates{use PRIMARY} ON gates.lane = source_holds.lane
		WHERE ` + sourceOfJob + ` AND gates.held_until > ?)`

	// No source is held, or was a moment ago.
	noHeldSource = ` AND NOT EXISTS (SELECT 1 FROM source_holds)`
)

func newParkedSQL(d Dialect) parkedSQL {
	t := d.sql
	band := strconv.Itoa(parkedBand)
	return parkedSQL{
		sourceHolds: reading("source_holds", t(`SELECT number, source, held_at, COALESCE((SELECT gates.held_until FROM gates{use PRIMARY}
			WHERE gates.lane = source_holds.lane), 0) AS held_until FROM source_holds ORDER BY number`)),
		numberSource: writing("number_source", d.insertIfAbsent("source_holds", "source, number, lane, held_at", `r.source, r#number, r.lane, r#held_at`, "", "", "source")),
		renewNumber:  writing("renew_number", t(`UPDATE source_holds SET held_at = ? WHERE number = ? AND source = ?`)),
		forgetNumber: writing("forget_number", t(`DELETE FROM source_holds WHERE number = ? AND held_at = ?
			AND NOT EXISTS (SELECT 1 FROM gates WHERE gates.lane = source_holds.lane AND gates.held_until > ?)`)),

		dueBound: reading("due_bound", t(`SELECT due_at `+dueJobs+` ORDER BY due_at, id LIMIT 1 OFFSET {limit}`)),
		// COALESCE: the number may be gone if the statement does not read all at one moment.
		park: writing("park", d.updatePicked("jobs", `due_at = due_at - `+band+` * COALESCE((SELECT source_holds.number FROM source_holds{use PRIMARY} WHERE `+sourceOfJob+`), 0)`,
			dueJobs+` AND `+ofHeldSource+oldestFirst)),
		returnParked: writing("return_parked", d.updatePicked("jobs", `due_at = due_at + ?`,
			`FROM jobs{use jobs_waiting} WHERE {waiting_lane} = ? AND due_at >= ? AND due_at < ?`+oldestFirst)),
		parked: reading("parked", d.selectRanges(`r.lane AS lane, (SELECT due_at FROM jobs{use jobs_waiting}
			WHERE {waiting_lane} = r.same_lane AND due_at >= r#from AND due_at < r#below ORDER BY due_at LIMIT 1) AS due`)),

		beginRamp: writing("begin_ramp", t(`UPDATE gates SET held_until = ? WHERE lane = ? AND held_until < ?
			AND EXISTS (SELECT 1 FROM jobs{use jobs_waiting} WHERE {waiting_lane} = ? AND due_at >= ? AND due_at < ?)`)),

		// Peek, once it met jobs of a held source that no Take has met yet. It steps over them.
		peekSifted: reading("peek_sifted", t(`SELECT `+takenColumns+` FROM jobs{use jobs_waiting}`+withEvents+`
			WHERE {waiting_lane} = ? AND due_at >= 0 AND due_at <= ? AND NOT `+ofHeldSource+` ORDER BY due_at, jobs.id LIMIT {limit}`)),

		claimSifted:       writing("claim_sifted", d.updatePicked("jobs", setClaimed, claimableJobs+` AND NOT `+ofHeldSource+closedGate+oldestFirst)),
		claimSiftedPassed: writing("claim_sifted_passed", d.updatePicked("jobs", setClaimed, claimableJobs+` AND NOT `+ofHeldSource+passedGate+oldestFirst)),
	}
}
