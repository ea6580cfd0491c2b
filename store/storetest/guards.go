package storetest

import (
	"bufio"
	"context"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// The mutation of guards. A guard is a condition of a statement, and most guards matter only when
// two callers meet at the same row. A suite that never makes them meet passes a store without the
// guard. So this file removes each guard in turn and requires that the suite fails.
//
// Guards are found by regular expressions in the text of statements, as each dialect spells them.
// The text without the guard keeps every parameter, so the arguments still fit. A test process has
// one guard removed, from all stores that it opens. An environment variable says which, so the
// parent process needs no second build.

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
var guards = []guard{
	// Leases and row locks: a worker stores results only of jobs that it holds, and takers do not
	// wait for each other.
	{"lease", []string{"insert_attempts", "insert_events_if", "settle", "release", "claimed", "claimed_steps", "above_taken", "succeed", "fail"}, regexp.MustCompile(`AND ((?:jobs\.)?lease = (?:\?|r\.\w+))`), `AND ($1 OR 1 = 1)`},
	{"SKIP LOCKED", nil, regexp.MustCompile(`FOR UPDATE SKIP LOCKED`), `FOR UPDATE`},
	{"FOR UPDATE", nil, regexp.MustCompile(`FOR UPDATE SKIP LOCKED`), ``},
	{"conflict", nil, regexp.MustCompile(` ON CONFLICT DO NOTHING| ON DUPLICATE KEY UPDATE \S+ = \S+`), ``},
	// Claims: the lane, the due time, and that a repeated batch claims no further jobs.
	{"lane", []string{"claim", "claim_passed"}, regexp.MustCompile(`WHERE (\w*lane = \?) AND due_at`), `WHERE ($1 OR 1 = 1) AND due_at`},
	{"mine", []string{"claim", "claim_passed", "refund"}, regexp.MustCompile(`AND NOT (EXISTS \(SELECT 1 FROM jobs AS mine[^)]*(?:\([^)]*\)[^)]*)?\))`), `AND (1 = 1 OR $1)`},
	{"due", []string{"claim", "claim_passed"}, regexp.MustCompile(`AND (due_at <= \?)`), `AND ($1 OR due_at IS NOT NULL)`},
	// Operators: a Retry of dead and of waiting jobs, a recovery, and a purge of finished rows.
	{"dead", []string{"retry"}, regexp.MustCompile(`status = 'dead'|dead_lane IS NOT NULL|status IN \('dead', 'canceled'\)`), `1 = 1`},
	{"of the event", []string{"cancel"}, regexp.MustCompile(`WHERE (event_id = \?)`), `WHERE ($1 OR 1 = 1)`},
	{"waits", []string{"cancel"}, regexp.MustCompile(`AND \((status IN \('available', 'scheduled', 'retryable'\) OR status = 'running' AND due_at <= \?)\)`), `AND ($1 OR 1 = 1)`},
	{"over", []string{"cancel"}, regexp.MustCompile(`status = 'running' AND (due_at <= \?)`), `status = 'running' AND ($1 OR 1 = 1)`},
	{"waiting", []string{"retry_early"}, regexp.MustCompile(`status IN \('available', 'scheduled', 'retryable'\) AND`), ``},
	{"waits", []string{"retry_early"}, regexp.MustCompile(`AND (due_at > \?)`), `AND ($1 OR due_at IS NOT NULL)`},
	{"hold", []string{"insert_attempts"}, regexp.MustCompile(` FOR UPDATE(?: OF jobs)?`), ``},
	{"running", []string{"recover"}, regexp.MustCompile(`AND status = 'running'`), ``},
	{"finished", []string{"purge_jobs", "purge_runs"}, regexp.MustCompile(`AND ((?:jobs|runs)\.finished_at < (?:\?|r\.\w+))`), `AND ($1 OR 1 = 1)`},
	{"bare", []string{"drop_bare_event", "purge_events", "purge_attempts", "drain_attempts", "purge_steps", "purge_texts", "purge_history", "purge_callbacks",
		"delete_attempts", "delete_steps", "delete_texts", "delete_history", "delete_callbacks"}, regexp.MustCompile(`AND NOT EXISTS \(SELECT [^)]*\)`), ``},
	// Marks move forward, except for those of another schedule.
	{"later", []string{"move_mark"}, regexp.MustCompile(`(cron_marks\.until_at < (?:\?|r\.\w+)) OR (cron_marks\.schedule <> (?:\?|r\.\w+))`), `$1 OR $2 OR 1 = 1`},
	{"another", []string{"move_mark"}, regexp.MustCompile(`OR (cron_marks\.schedule <> (?:\?|r\.\w+))`), `OR ($1 AND 1 = 0)`},
	// Gates: a claim without a Pass, with an interval, and for a probe. Each has a case for a
	// clock that was set back.
	{"open", []string{"claim"}, regexp.MustCompile(`gates\.open_until <> 0 OR`), `1 = 0 OR`},
	{"ramp", []string{"claim"}, regexp.MustCompile(`OR (gates\.closed_at > \? AND)`), `OR 1 = 0 AND $1`},
	{"free", []string{"claim"}, regexp.MustCompile(`OR (gates\.held_until > \?)`), `OR 1 = 0 AND $1`},
	{"free", []string{"admit", "admit_probe", "claim_passed"}, regexp.MustCompile(`AND (gates\.held_until <= \?)`), `AND ($1 OR 1 = 1)`},
	{"held", []string{"unhold_lanes"}, regexp.MustCompile(`AND (gates\.held_until > (?:\?|r\.\w+))`), `AND ($1 OR 1 = 1)`},
	{"future", []string{"claim"}, regexp.MustCompile(`AND (gates\.closed_at <= \?)`), `AND ($1 OR 1 = 1)`},
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
	{"over", []string{"lapsed", "peek"}, regexp.MustCompile(`AND (due_at <= \?)`), `AND ($1 OR due_at IS NOT NULL)`},
	{"completed", []string{"drain_jobs"}, regexp.MustCompile(`NOT IN \('completed', 'canceled'\)`), `NOT IN ('canceled')`},
	{"canceled", []string{"drain_jobs"}, regexp.MustCompile(`NOT IN \('completed', 'canceled'\)`), `NOT IN ('completed')`},
	{"workflow", []string{"retry", "retry_early", "cancel", "canceled"}, regexp.MustCompile(`AND \(lane < 'workflow/' OR lane >= 'workflow0'\)`), ``},
	// Runs: the fence of a transition, and the validity of tokens and receipts.
	{"behind", []string{"insert_history", "move_runs"}, regexp.MustCompile(`AND (runs\.seq = (?:\?|r\.\w+))`), `AND ($1 OR 1 = 1)`},
	{"mark", ifHeld, regexp.MustCompile(`AND (mine\.mark = (?:\?|r\.\w+))`), `AND ($1 OR 1 = 1)`},
	{"newest", ifHeld, regexp.MustCompile(`AND (mine\.seq = \(SELECT runs\.seq \+ 1 FROM runs[^)]*\))`), `AND ($1 OR 1 = 1)`},
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
var ifHeld = []string{"more_history", "insert_step_attempts", "insert_rises", "insert_texts", "insert_steps", "change_steps", "hold_steps", "insert_step_jobs",
	"change_jobs", "insert_tokens", "disarm"}

// guardsOf returns the guards of a statement, each as "statement: guard".
func guardsOf(s store.Stmt) (names []string) {
	for _, g := range guards {
		if (g.in == nil || slices.Contains(g.in, s.Name)) && g.find.MatchString(s.SQL) {
			names = append(names, s.Name+": "+g.name)
		}
	}
	return names
}

// weakVar is the environment variable that names the guard which a child process of [Guards]
// removes.
const weakVar = "GATEWAY_TEST_WEAKEN"

// Weakened returns the connection itself. In a process that [Guards] started, it returns a
// connection that removes one guard from the statements that have it. So each driver's tests must
// open their stores over it.
func Weakened(conn store.Conn) store.Conn {
	statement, name, found := strings.Cut(os.Getenv(weakVar), ": ")
	if !found {
		return conn
	}
	i := slices.IndexFunc(guards, func(g guard) bool { return g.name == name && (g.in == nil || slices.Contains(g.in, statement)) })
	return watched{conn, func(s *store.Stmt) {
		if s.Name == statement {
			s.SQL = guards[i].find.ReplaceAllString(s.SQL, guards[i].weak)
		}
	}}
}

// A watched connection passes each statement to see before it runs it.
type watched struct {
	store.Conn
	see func(*store.Stmt)
}

// Batch passes copies of the statements, because callers may send the same statements again.
func (w watched) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	stmts = slices.Clone(stmts)
	for i := range stmts {
		w.see(&stmts[i])
	}
	return w.Conn.Batch(ctx, stmts...)
}

// Guards proves that the suite notices a missing guard. For each guard of each statement, it runs
// the calling package's tests of guards in a process without that guard, and requires that they
// fail. It takes minutes, and runs only if GATEWAY_VERIFY is set, as `make verify` does.
//
// open opens an empty, migrated store over wrap's connection. The tests must open theirs over
// [Weakened].
func Guards(t *testing.T, open func(t *testing.T, wrap func(store.Conn) store.Conn) core.Store) {
	if os.Getenv("GATEWAY_VERIFY") == "" {
		t.Skip("set GATEWAY_VERIFY=1 to run this, or run make verify")
	}
	began := time.Now()
	// Without this run, a test that always fails would pass for a proof.
	if failure := runWithout(t, "", 30*time.Minute); failure != "" {
		t.Fatalf("with all guards in place: %s", failure)
	}
	patience := 3*time.Since(began) + time.Minute
	for _, name := range guardsIn(t, open) {
		t.Run(name, func(t *testing.T) {
			failure := runWithout(t, name, patience)
			if failure == "" {
				t.Error("nothing fails without it")
			}
			t.Log(failure)
		})
	}
}

// guardsIn returns the guards of all statements that a scenario sends.
func guardsIn(t *testing.T, open func(t *testing.T, wrap func(store.Conn) store.Conn) core.Store) []string {
	var mu sync.Mutex
	found := map[string]bool{}
	s := open(t, func(c store.Conn) store.Conn {
		return watched{c, func(s *store.Stmt) {
			mu.Lock()
			defer mu.Unlock()
			for _, g := range guardsOf(*s) {
				found[g] = true
			}
		}}
	})
	eachCall(newRig(t, s, Options{}))
	if t.Failed() {
		t.FailNow()
	}
	mu.Lock()
	defer mu.Unlock()
	return slices.Sorted(maps.Keys(found))
}

// eachCall makes each call of a store, so that each statement is sent.
func eachCall(r *rig) {
	p := newPlay(r, &Fault{}, 0)
	p.record, p.states = true, []scene{{}}
	scenario(p)
	// The scenario lacks a purge, the calls of queues and those of operators.
	r.settled(core.Dead)
	r.now = r.now.Add(leaseTime)
	r.purge(10)
	r.putMany(10)
	eachPull(r)
	eachOperation(r, r.take(1)[0])
	gatesBeside(r)
	eachPurge(r)
}

// guarding matches the tests of a driver that need guards: the suite, and the tests of several
// processes or transactions at once.
const guarding = "^Test(Store|Faults|Migrations|TakeDoesNotWait|RetryDoesNotWait|CancelDoesNotWait|TwoProcesses|TwoStores|SeveralStores|ProbeDoesNotWait|Claimers)$"

// runWithout runs these tests without a guard. It returns the first line that reports a failure,
// without waiting for more, or "" if the tests pass. A run longer than the limit counts as a
// failure, because some loops never end without their guard.
func runWithout(t *testing.T, guard string, limit time.Duration) (failure string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.v", "-test.short", "-test.timeout", limit.String(), "-test.run", guarding)
	cmd.Env = append(os.Environ(), weakVar+"="+guard, "GATEWAY_VERIFY=")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "--- FAIL") || strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			return line
		}
	}
	if err := cmd.Wait(); err != nil {
		return err.Error()
	}
	return ""
}
