package store

import (
	"slices"

	"github.com/eventgateway/gateway/core"
)

// The jobs of an event are found in two parts. An event and the jobs that are stored with it have ids of
// one [core.Block]: so these jobs are next to each other in the primary key. Later jobs, which are replays
// and steps of workflows, have other ids. They are in jobs_later, a partial index, whose condition compares
// the two ids of a row. So each job is in one of the parts, and most jobs have no entry in an index on
// events, which each change of a job would write anew on PostgreSQL.
//
// MySQL has no partial indexes. There jobs_event has all jobs, and there is one part. The fragment
// {use jobs_event} pins it, and says nothing of the other databases.

// laterJob is the condition of jobs_later, in statements as in the index: a planner compares the texts. The
// ids of a block begin with the same blockChars characters. The five others hold 25 bits; a block has 24.
const (
	laterJob   = `substr(id, 1, 21) <> substr(event_id, 1, 21)`
	blockChars = 21
)

// inSpan is the condition that a job is in a jobSpan.
const inSpan = `event_id = ? AND id >= ? AND id < ?`

// A jobSpan is a part of an event's jobs: those with ids from low on and below high.
type jobSpan struct {
	event     core.ID
	low, high string
}

func (s jobSpan) args() []any { return []any{string(s.event), s.low, s.high} }

// hasLater reports whether the database has jobs_later.
func (d Dialect) hasLater() bool { return d.createLaterSQL != "" }

// later is a statement on the later jobs of an event, or none on MySQL.
func (d Dialect) later(st statement) statement {
	if !d.hasLater() {
		return statement{}
	}
	return st
}

// jobsIn begins a listing of the jobs of an event. The inner LIMIT keeps planners from a further condition
// of the listing: for a status and a lane they would take jobs_waiting, and read all jobs of the lane.
func jobsIn(part string) string {
	return `SELECT ` + jobDetail + ` FROM (SELECT ` + jobStored + ` FROM jobs{use jobs_event} WHERE ` + part +
		` ORDER BY id DESC LIMIT {limit}) AS jobs WHERE 1 = 1`
}

// laterListing is a listing of the later jobs of an event, or none on MySQL.
func (d Dialect) laterListing(name, text string) listing {
	if !d.hasLater() {
		return listing{}
	}
	return listing{name, d.sql(text)}
}

// spans returns the part of an event's jobs for the first statement, and that for the second one, whose
// condition is laterJob besides.
func (d Dialect) spans(event core.ID) (first, later jobSpan) {
	later = jobSpan{event: event, high: newestID}
	if !d.hasLater() {
		return later, later
	}
	block := string(event[:min(len(event), blockChars)])
	return jobSpan{event, block, block + newestID}, later
}

// onJobsOf makes the Stmts that act on the jobs of an event: of a statement with the condition inSpan, and
// of the one for later jobs, if there is one. Their arguments are those before the span, the span, and
// those behind it.
func (s *Store) onJobsOf(event core.ID, st, later statement, before []any, behind ...any) []Stmt {
	with := func(st statement, span jobSpan) Stmt {
		return st.with(slices.Concat(before, span.args(), behind)...)
	}
	first, rest := s.dialect.spans(event)
	if later.sql == "" {
		return []Stmt{with(st, first)}
	}
	return []Stmt{with(st, first), with(later, rest)}
}

// jobsOf are the conditions of the parts of an event's jobs. event is the column that has its id.
func (d Dialect) jobsOf(event string) []string {
	of := `jobs.event_id = ` + event
	if !d.hasLater() {
		return []string{of}
	}
	block := `substr(` + event + `, 1, 21)`
	return []string{
		of + ` AND jobs.id >= ` + block + ` AND jobs.id < ` + block + ` || '` + newestID + `'`,
		of + ` AND ` + laterJob,
	}
}

// unreferenced is the condition that no job and no run refers to an event.
func (d Dialect) unreferenced() (condition string) {
	for _, jobs := range d.jobsOf(`events.id`) {
		condition += `NOT EXISTS (SELECT 1 FROM jobs WHERE ` + jobs + `) AND `
	}
	return condition + `NOT EXISTS (SELECT 1 FROM runs WHERE runs.event_id = events.id)`
}

// jobCount is how many jobs came with an event. A run came with one job; the jobs of its further steps
// do not count.
func (d Dialect) jobCount() (count string) {
	for _, jobs := range d.jobsOf(`events.id`) {
		count += `(SELECT COUNT(*) FROM jobs WHERE ` + jobs + ` AND NOT EXISTS (SELECT 1 FROM steps WHERE steps.id = jobs.id)) + `
	}
	return `(` + count + `(SELECT COUNT(*) FROM runs WHERE runs.event_id = events.id))`
}
