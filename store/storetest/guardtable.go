package storetest

import (
	"regexp"
	"slices"
)

// A guard is a condition in a statement that keeps the statement from changing rows that another
// caller has changed in the meantime.
type guard struct {
	name string
	in   []string       // names of the statements that have it; nil means each statement in which find matches
	find *regexp.Regexp // the guard
	weak string         // the text without the guard; it keeps every parameter
}

// guards lists the guards of the statements of all dialects. Some match several spellings. A
// statement may have several guards, and a guard may be in several statements. Each pair of a
// statement and a guard is a mutation of its own.
var guards = slices.Concat(basicGuards, lineGuards, sourceGuards)

// basicGuards are the guards that have nothing to do with lines or held sources.
var basicGuards = []guard{
	// Leases and row locks: a worker stores results only of jobs that it holds, and takers do not
	// wait for each other.
	{"lease", []string{"insert_attempts", "insert_attempts_recorded", "insert_events_if", "settle", "settle_at_once", "release", "claimed", "claimed_lined", "claimed_steps", "succeed", "fail"}, regexp.MustCompile(`AND ((?:jobs\.)?lease = (?:\?|r\.\w+))`), `AND ($1 OR 1 = 1)`},
	{"SKIP LOCKED", nil, regexp.MustCompile(`FOR UPDATE SKIP LOCKED`), `FOR UPDATE`},
	{"FOR UPDATE", nil, regexp.MustCompile(`FOR UPDATE SKIP LOCKED`), ``},
	{"conflict", nil, regexp.MustCompile(` ON CONFLICT DO NOTHING| ON DUPLICATE KEY UPDATE \S+ = \S+`), ``},
	{"sent", []string{"insert_jobs", "insert_scheduled_jobs", "insert_keyless_jobs_if", "insert_keyless_scheduled_jobs_if", "insert_taken_jobs"}, regexp.MustCompile(`\(SELECT stored\.id FROM jobs AS stored WHERE stored\.id = (r\.\w+)\) IS NULL`), `$1 <> ''`},
	// Claims: the lane, the due time, and that a repeated batch claims no further jobs.
	{"lane", []string{"claim", "claim_passed"}, regexp.MustCompile(`WHERE (\w*lane = \?) AND due_at`), `WHERE ($1 OR 1 = 1) AND due_at`},
	{"mine", []string{"claim", "claim_passed", "refund"}, regexp.MustCompile(`AND NOT (EXISTS \(SELECT 1 FROM jobs AS mine[^)]*(?:\([^)]*\)[^)]*)?\))`), `AND (1 = 1 OR $1)`},
	{"due", []string{"claim", "claim_passed"}, regexp.MustCompile(`AND (due_at <= \?)`), `AND ($1 OR due_at IS NOT NULL)`},
	// Operators: a Retry of dead and of waiting jobs, a recovery, and a purge of finished rows.
	{"dead", []string{"retry"}, regexp.MustCompile(`status = 'dead'|list_name = 'dead'|status IN \('dead', 'canceled'\)`), `1 = 1`},
	{"of the event", []string{"cancel"}, regexp.MustCompile(`WHERE (event_id = \?)`), `WHERE ($1 OR 1 = 1)`},
	{"waits", []string{"cancel"}, regexp.MustCompile(`AND \((status IN \('available', 'scheduled', 'waiting', 'retryable'\) OR status = 'running' AND due_at <= \?)\)`), `AND ($1 OR 1 = 1)`},
	{"over", []string{"cancel"}, regexp.MustCompile(`status = 'running' AND (due_at <= \?)`), `status = 'running' AND ($1 OR 1 = 1)`},
	// Operations: a slice picks matches only if it is the slice of its number, and acts on picked ones.
	{"slice", []string{"pick_finished", "pick_waiting", "pick_events"}, regexp.MustCompile(`(EXISTS \(SELECT 1 FROM operations AS o[^)]*\))`), `(1 = 1 OR $1)`},
	{"picked", []string{"revive_picked", "enter_picked", "cancel_picked"}, regexp.MustCompile(`(EXISTS \(SELECT 1 FROM operation_picks AS p[^)]*\))`), `(1 = 1 OR $1)`},
	{"all picked", []string{"move_operation"}, regexp.MustCompile(`AND (\(SELECT COUNT\(\*\) FROM operation_picks[^)]*\) >= \?(?:::bigint| \+ 0)?)`), `AND ($1 OR 1 = 1)`},
	{"runs", []string{"begin_slice", "end_operation"}, regexp.MustCompile(`AND state = 'running'`), ``},
	{"waiting", []string{"retry_early"}, regexp.MustCompile(`status IN \('available', 'scheduled', 'retryable'\) AND`), ``},
	{"waits", []string{"retry_early"}, regexp.MustCompile(`AND (due_at > \?)`), `AND ($1 OR due_at IS NOT NULL)`},
	{"hold", []string{"insert_attempts", "insert_attempts_recorded"}, regexp.MustCompile(` FOR UPDATE(?: OF jobs)?`), ``},
	{"running", []string{"recover"}, regexp.MustCompile(`AND status = 'running'`), ``},
	{"finished", []string{"purge_jobs", "purge_runs"}, regexp.MustCompile(`AND ((?:jobs|runs)\.finished_at < (?:\?|r\.\w+))`), `AND ($1 OR 1 = 1)`},
	{"bare", []string{"drop_bare_event", "purge_events", "purge_attempts", "drain_attempts", "purge_steps", "purge_texts", "purge_history", "purge_callbacks",
		"delete_attempts", "delete_steps", "delete_texts", "delete_history", "delete_callbacks"}, regexp.MustCompile(`AND NOT EXISTS \(SELECT [^)]*\)`), ``},
	// Marks move forward, except for those of another schedule.
	{"later", []string{"move_mark"}, regexp.MustCompile(`(cron_marks\.until_at < (?:\?|r\.\w+)) OR (cron_marks\.schedule <> (?:\?|r\.\w+))`), `$1 OR $2 OR 1 = 1`},
	{"another", []string{"move_mark"}, regexp.MustCompile(`OR (cron_marks\.schedule <> (?:\?|r\.\w+))`), `OR ($1 AND 1 = 0)`},
	// Gates: a claim without a Pass, with an interval, and for a probe. Each has a case for a
	// clock that was set back.
	{"open", []string{"claim", "insert_taken_jobs"}, regexp.MustCompile(`gates\.open_until <> 0 OR`), `1 = 0 OR`},
	{"ramp", []string{"claim", "insert_taken_jobs"}, regexp.MustCompile(`OR (gates\.closed_at > (?:\?\d*|r\.\w+)(?: [-+] \d+)? AND)`), `OR 1 = 0 AND $1`},
	{"free", []string{"claim", "insert_taken_jobs"}, regexp.MustCompile(`OR (gates\.held_until > (?:\?|r\.\w+))`), `OR 1 = 0 AND $1`},
	{"free", []string{"admit", "admit_probe", "claim_passed"}, regexp.MustCompile(`AND (gates\.held_until <= \?)`), `AND ($1 OR 1 = 1)`},
	{"held", []string{"unhold_lanes"}, regexp.MustCompile(`AND (gates\.held_until > (?:\?|r\.\w+))`), `AND ($1 OR 1 = 1)`},
	{"free", []string{"insert_taken_step_jobs"}, regexp.MustCompile(`AND (gates\.held_until > (?:\?\d*|r\.\w+))`), `AND $1 AND 1 = 0`},
	{"source", []string{"insert_taken_jobs", "insert_taken_step_jobs"}, regexp.MustCompile(`AND (held\.held_until > (?:\?\d*|r\.\w+)(?: [-+] \d+)?)`), `AND $1 AND 1 = 0`},
	{"future", []string{"claim", "insert_taken_jobs"}, regexp.MustCompile(`AND (gates\.closed_at <= (?:\?\d*|r\.\w+)(?: [-+] \d+)?)`), `AND ($1 OR 1 = 1)`},
	{"admitted", []string{"claim_passed"}, regexp.MustCompile(`AND (EXISTS \(SELECT 1 FROM gates[^)]*\))`), `AND (1 = 1 OR $1)`},
	{"again", []string{"admit"}, regexp.MustCompile(`AND (taker <> \?)`), `AND ($1 OR 1 = 1)`},
	{"known", []string{"admit", "admit_probe"}, regexp.MustCompile(`AND (closed_at = \?)`), `AND ($1 OR 1 = 1)`},
	{"closed", []string{"admit"}, regexp.MustCompile(`AND gates\.open_until = 0`), ``},
	{"ahead", []string{"admit"}, regexp.MustCompile(`AND \((next_us <= \? OR next_us > \?)\)`), `AND ($1 OR 1 = 1)`},
	{"set back", []string{"admit"}, regexp.MustCompile(`OR (next_us > \?)\)`), `OR $1 AND 1 = 0)`},
	{"start set back", []string{"admit"}, regexp.MustCompile(`OR (next_us > \?) THEN`), `OR $1 AND 1 = 0 THEN`},
	{"start", []string{"admit"}, regexp.MustCompile(`WHEN (next_us < \?) OR`), `WHEN $1 AND 1 = 0 OR`},
	{"open", []string{"admit_probe", "end_probe"}, regexp.MustCompile(`AND gates\.open_until <> 0`), ``},
	{"time", []string{"admit_probe"}, regexp.MustCompile(`AND \((open_until <= \? OR open_until > \?)\)`), `AND ($1 OR 1 = 1)`},
	{"set back", []string{"admit_probe"}, regexp.MustCompile(`OR (open_until > \?)\)`), `OR $1 AND 1 = 0)`},
	{"job", []string{"admit_probe"}, regexp.MustCompile(`AND (EXISTS \(SELECT 1 FROM jobs(?: FORCE INDEX \([^)]*\))? WHERE [^)]*\))`), `AND (1 = 1 OR $1)`},
	{"mine", []string{"charge"}, regexp.MustCompile(`AND (EXISTS \(SELECT 1 FROM jobs AS mine[^)]*(?:\([^)]*\)[^)]*)?\))`), `AND (1 = 1 OR $1)`},
	{"taker", []string{"charge", "refund", "bases", "end_probe"}, regexp.MustCompile(`AND ((?:gates\.)?taker = (?:\?|r\.\w+))`), `AND ($1 OR 1 = 1)`},
	// Gates: which outcomes move them, and when those of strays are reset.
	{"newest", []string{"succeed", "fail"}, regexp.MustCompile(`AND \((gates\.open_until = 0 OR gates\.taker = (?:\?|r\.\w+))\)`), `AND ($1 OR 1 = 1)`},
	{"trouble", []string{"succeed", "close_gates"}, regexp.MustCompile(`AND gates\.failures > 0`), ``},
	{"held", []string{"succeed", "fail"}, regexp.MustCompile(`AND (EXISTS \(SELECT 1 FROM jobs\s+WHERE [^)]*\))`), `AND (1 = 1 OR $1)`},
	{"first", []string{"mark_strays"}, regexp.MustCompile(`AND gates\.stray_since IS NULL`), ``},
	{"long", []string{"set_back"}, regexp.MustCompile(`AND (gates\.stray_since <= (?:\?|r\.\w+))`), `AND ($1 OR 1 = 1)`},
	// Queues: the meaning of a ref, expired leases, and the jobs that a drain must leave.
	{"lease", []string{"ack", "extend", "held"}, regexp.MustCompile(`AND (jobs\.lease = COALESCE\((?:\?|r\.\w+), jobs\.lease\))`), `AND ($1 OR 1 = 1)`},
	{"any holder", []string{"ack", "extend", "held"}, regexp.MustCompile(`COALESCE\(((?:\?|r\.\w+)), jobs\.lease\)`), `$1`},
	{"lane", []string{"ack", "extend", "held"}, regexp.MustCompile(`AND (jobs\.lane = (?:\?|r\.\w+))`), `AND ($1 OR 1 = 1)`},
	{"last", []string{"lapsed"}, regexp.MustCompile(`status = 'running' AND attempt >= max_attempts`), `1 = 1`},
	{"over", []string{"lapsed", "peek"}, regexp.MustCompile(`AND ((?:due_at|lapses_at) <= \?)`), `AND ($1 OR due_at IS NOT NULL)`},
	{"completed", []string{"drain_jobs"}, regexp.MustCompile(`NOT IN \('completed', 'canceled'\)`), `NOT IN ('canceled')`},
	{"canceled", []string{"drain_jobs"}, regexp.MustCompile(`NOT IN \('completed', 'canceled'\)`), `NOT IN ('completed')`},
	{"workflow", []string{"retry", "retry_early", "cancel", "canceled"}, regexp.MustCompile(`AND \(lane < 'workflow/' OR lane >= 'workflow0'\)`), ``},
	// Runs: the fence of a transition, and the validity of tokens and receipts.
	{"behind", []string{"insert_history", "move_runs"}, regexp.MustCompile(`AND (runs\.seq = (?:\?|r\.\w+))`), `AND ($1 OR 1 = 1)`},
	{"mark", ifHeld, regexp.MustCompile(`AND (mine\.mark = (?:\?|r\.\w+))`), `AND ($1 OR 1 = 1)`},
	{"newest", slices.DeleteFunc(slices.Clone(ifHeld), func(name string) bool { return name == "insert_texts" }), regexp.MustCompile(`AND (mine\.seq = \(SELECT runs\.seq \+ 1 FROM runs[^)]*\))`), `AND ($1 OR 1 = 1)`},
	{"expired", []string{"awaited"}, regexp.MustCompile(`OR (expires_at > \?)`), `OR ($1 OR 1 = 1)`},
	{"receipt", []string{"awaited"}, regexp.MustCompile(`step_id = '' OR `), ``},
	{"hold", []string{"hold_events"}, regexp.MustCompile(` FOR UPDATE OF events`), ``},
	// Periodic duties and listings.
	{"over", []string{"turn"}, regexp.MustCompile(`AND \((until_at <= \? OR until_at > \?)\)`), `AND ($1 OR 1 = 1)`},
	{"set back", []string{"turn"}, regexp.MustCompile(`OR (until_at > \?)\)`), `OR $1 AND 1 = 0)`},
	{"idle", []string{"forget_gates"}, regexp.MustCompile(`AND gates\.failures = 0`), ``},
	{"held", []string{"forget_gates"}, regexp.MustCompile(`AND (gates\.held_until < (?:\?|r\.\w+))`), `AND ($1 OR 1 = 1)`},
	{"alerts", []string{"finished"}, regexp.MustCompile(`AND \(lane < 'alert/' OR lane >= 'alert0'\)`), ``},
	{"all of it", []string{"drop_bare_event"}, regexp.MustCompile(`WHERE`), `WHERE 1 = 0 AND`},
}

// ifHeld names the statements of a transition after the insert of its first entry and before the
// update of its run.
var ifHeld = []string{"more_history", "insert_step_attempts", "insert_step_attempts_recorded", "insert_rises", "insert_texts", "insert_steps", "change_steps", "hold_steps", "insert_step_jobs", "insert_taken_step_jobs",
	"change_jobs", "insert_tokens", "disarm"}

// The conditions of lineGuards. r.x is the name of a parameter in the dialects that join a row of
// parameters.
const (
	param    = `(?:\?|r\.\w+)`
	hint     = `(?: FORCE INDEX \([^)]*\))?`
	ownSlot  = `EXISTS \(SELECT 1 FROM line_slots WHERE line_slots\.line = jobs\.line AND line_slots\.job_id = jobs\.id\)`
	lastInIt = `\(SELECT p\.place FROM line_places AS p` + hint + ` WHERE p\.line = (?:jobs|line_slots)\.line ORDER BY p\.place DESC LIMIT 1\)`
)

// lineGuards are the guards of lines. They keep a repeated or late batch from undoing later
// changes to its jobs by other callers.
var lineGuards = []guard{
	{"locked", []string{"lock_lines"}, regexp.MustCompile(`WHERE 1 = 1 ORDER BY 1`), `WHERE 1 = 0 ORDER BY 1`},
	// A job enters its line: once, and only if it has no slot. It takes a slot only if no job waits,
	// and only below the limit.
	{"entering", []string{"entered"}, regexp.MustCompile(`AND jobs\.status = 'entering'`), ``},
	{"entering", []string{"take_only_slot", "take_free_slot", "join_line"}, regexp.MustCompile(`AND (jobs\.status = ` + param + `)`), `AND ($1 OR 1 = 1)`},
	{"no slot", []string{"join_line", "rejoin_line", "reentered"}, regexp.MustCompile(`AND NOT ` + ownSlot), ``},
	{"none waits", []string{"take_free_slot"}, regexp.MustCompile(`AND ` + lastInIt + ` IS NULL`), ``},
	{"limit", []string{"take_free_slot", "fill_slots"}, regexp.MustCompile(`END <= (` + param + ` \+ 0)`), `END <= 1000000 + $1`},
	// A job that has ended gives its slot to the next, if it has a slot, and if it has ended.
	{"holder", []string{"pass_slots", "vacate_slots", "stop_lines", "start_lines"}, regexp.MustCompile(`AND (line_slots\.job_id = ` + param + `)`), `AND ($1 OR 1 = 1)`},
	{"limit", []string{"pass_slots"}, regexp.MustCompile(`(line_slots\.slot <= ` + param + `) AND`), `($1 OR 1 = 1) AND`},
	{"one waits", []string{"pass_slots"}, regexp.MustCompile(`AND ` + lastInIt + ` IS NOT NULL`), ``},
	{"ended", []string{"pass_slots", "vacate_slots"}, regexp.MustCompile(`AND NOT EXISTS \(SELECT 1 FROM jobs WHERE (jobs\.id = ` + param + ` AND jobs\.status <> ` + param + `)\)`), `AND NOT EXISTS (SELECT 1 FROM jobs WHERE $1 AND 1 = 0)`},
	{"admitted", []string{"leave_places"}, regexp.MustCompile(`AND line_places\.job_id = line_slots\.job_id`), ``},
	{"waiting", []string{"admit_holders"}, regexp.MustCompile(`AND jobs\.status = 'waiting'`), ``},
	{"holder", []string{"pass_and_admit"}, regexp.MustCompile(`AND (line_slots\.job_id = ` + param + `)`), `AND ($1 OR 1 = 1)`},
	{"limit", []string{"pass_and_admit"}, regexp.MustCompile(`(line_slots\.slot <= ` + param + `) AND`), `($1 OR 1 = 1) AND`},
	{"ended", []string{"pass_and_admit", "leave_and_vacate"}, regexp.MustCompile(`AND COALESCE\(ended\.status, (` + param + `)\) = ` + param), `AND $1 <> ''`},
	{"admitted", []string{"leave_and_vacate"}, regexp.MustCompile(`AND p\.job_id = s\.job_id`), ``},
	{"holder", []string{"leave_and_vacate"}, regexp.MustCompile(`AND v\.slot = s\.slot AND (s\.job_id = ` + param + `)`), `AND v.slot = s.slot AND ($1 OR 1 = 1)`},
	{"dead", []string{"stop_lines"}, regexp.MustCompile(`AND (\(SELECT jobs\.status FROM jobs WHERE jobs\.id = ` + param + `\)) = 'dead'`), `AND COALESCE($1, '') <> 'none'`},
	// Operators: a retry and a skip of dead jobs, and the cancel of waiting ones.
	{"dead", []string{"revive_holders", "revive_others"}, regexp.MustCompile(`AND (jobs\.status = ` + param + `)`), `AND ($1 OR 1 = 1)`},
	{"slot", []string{"revive_holders"}, regexp.MustCompile(`AND ` + ownSlot), ``},
}

// sourceGuards are the guards of the holds of sources.
var sourceGuards = []guard{
	{"no source held", []string{"claim", "claim_passed"}, regexp.MustCompile(`AND NOT EXISTS \(SELECT 1 FROM source_holds\)`), ``},
	{"of a held source", []string{"claim_sifted", "park", "peek_sifted"}, ofHeldSource, `AND (1 = 1 OR $1)`},
	{"held", []string{"claim_sifted", "claim_sifted_passed", "park", "peek_sifted"}, regexp.MustCompile(`AND (gates\.held_until > \?)\)`), `AND ($1 OR 1 = 1))`},
	{"lane", []string{"claim_sifted", "claim_sifted_passed"}, regexp.MustCompile(`WHERE (\w*lane = \?) AND due_at`), `WHERE ($1 OR 1 = 1) AND due_at`},
	{"due", []string{"claim_sifted", "claim_sifted_passed"}, regexp.MustCompile(`AND (due_at <= \?)`), `AND ($1 OR due_at IS NOT NULL)`},
	{"mine", []string{"claim_sifted", "claim_sifted_passed"}, regexp.MustCompile(`AND NOT (EXISTS \(SELECT 1 FROM jobs AS mine[^)]*(?:\([^)]*\)[^)]*)?\))`), `AND (1 = 1 OR $1)`},
	{"open", []string{"claim_sifted"}, regexp.MustCompile(`gates\.open_until <> 0 OR`), `1 = 0 OR`},
	{"free", []string{"claim_sifted"}, regexp.MustCompile(`OR (gates\.held_until > \?)`), `OR 1 = 0 AND $1`},
	{"free", []string{"claim_sifted_passed"}, regexp.MustCompile(`AND (gates\.held_until <= \?)`), `AND ($1 OR 1 = 1)`},
	{"admitted", []string{"claim_sifted_passed"}, regexp.MustCompile(`AND (EXISTS \(SELECT 1 FROM gates` + hint + ` WHERE[^)]*\))`), `AND (1 = 1 OR $1)`},
	// A return and its ramp: of the jobs under this number, and never back in time.
	{"number", []string{"return_parked"}, regexp.MustCompile(`AND (due_at < \?)`), `AND ($1 OR due_at IS NOT NULL)`},
	{"later", []string{"begin_ramp"}, regexp.MustCompile(`AND (held_until < \?)`), `AND ($1 OR 1 = 1)`},
	{"parked", []string{"begin_ramp"}, regexp.MustCompile(`AND (EXISTS \(SELECT 1 FROM jobs[^)]*(?:\([^)]*\)[^)]*)?\))`), `AND (1 = 1 OR $1)`},
}

// ofHeldSource is the condition on the source of a job's event.
var ofHeldSource = regexp.MustCompile(`AND ((?:NOT )?EXISTS \(SELECT 1 FROM source_holds` + hint + ` JOIN.*?gates\.held_until > \?\))`)
