package storetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// mayBeIn reports whether the guard is one of a statement's, if the statement has its text.
func (g guard) mayBeIn(statement string) bool { return g.in == nil || slices.Contains(g.in, statement) }

// guardsOf returns the guards of a statement, each as "statement: guard".
func guardsOf(s store.Stmt) (names []string) {
	for _, g := range guards {
		if g.mayBeIn(s.Name) && g.find.MatchString(plain(s.SQL)) {
			names = append(names, s.Name+": "+g.name)
		}
	}
	return names
}

// plain returns the text of a statement with single spaces, as the guards expect it.
func plain(sql string) string { return strings.Join(strings.Fields(sql), " ") }

// The environment variables of the child processes of [Guards]: the guard that a process removes,
// and the file to which it adds the guards that it meets.
const (
	weakVar = "GATEWAY_TEST_WEAKEN"
	metVar  = "GATEWAY_TEST_MET_GUARDS"
)

// Mutated reports whether [Guards] started this process.
func Mutated() bool { return os.Getenv(weakVar) != "" || os.Getenv(metVar) != "" }

// Weakened returns the connection itself. In a process that [Guards] started, it returns a
// connection that removes one guard from the statements that have it, or notes the guards that it
// meets. So each driver's tests must open their stores over it.
func Weakened(conn store.Conn) store.Conn {
	if path := os.Getenv(metVar); path != "" {
		return watched{conn, func(s *store.Stmt) { met.note(path, *s) }}
	}
	statement, name, found := strings.Cut(os.Getenv(weakVar), ": ")
	if !found {
		return conn
	}
	i := slices.IndexFunc(guards, func(g guard) bool { return g.name == name && g.mayBeIn(statement) })
	return watched{conn, func(s *store.Stmt) {
		if s.Name == statement {
			s.SQL = guards[i].find.ReplaceAllString(plain(s.SQL), guards[i].weak)
		}
	}}
}

// endAtFailure ends a process without a guard as soon as the first check has failed. The other checks
// say nothing more, and the testing package reports a failed check only when all are done.
func endAtFailure(of tb) {
	t, ok := of.(*testing.T)
	if !ok || os.Getenv(weakVar) == "" {
		return
	}
	t.Cleanup(func() {
		if t.Failed() {
			fmt.Printf("\n--- FAIL: %s\n", t.Name())
			os.Exit(1)
		}
	})
}

// met are the guards that this process has met.
var met metGuards

// metGuards notes each guard once.
type metGuards struct {
	mu    sync.Mutex      // guards both
	texts map[string]bool // of statements
	names map[string]bool // of guards
}

// note adds the guards of a statement to a file, a line each.
func (m *metGuards) note(path string, s store.Stmt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.texts[s.SQL] {
		return
	}
	if m.texts == nil {
		m.texts, m.names = map[string]bool{}, map[string]bool{}
	}
	m.texts[s.SQL] = true
	for _, name := range guardsOf(s) {
		if !m.names[name] {
			m.names[name] = true
			if err := appendLine(path, name); err != nil {
				panic(err) // an unlisted guard would count as proven although no mutation removes it
			}
		}
	}
}

// appendLine adds a line to a file.
func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
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

// Guards proves that the suite notices a missing guard. It runs the calling package's tests of
// guards once, and notes the guards of the statements that they send. Then it runs them for each
// guard in a process without that guard, and requires that they fail. It takes minutes, and runs
// only if GATEWAY_VERIFY is set, as `make verify` does. The tests must open their stores over
// [Weakened].
func Guards(t *testing.T) {
	if os.Getenv("GATEWAY_VERIFY") == "" {
		t.Skip("set GATEWAY_VERIFY=1 to run this, or run make verify")
	}
	began := time.Now()
	// Without this run, a test that always fails would pass for a proof.
	path := filepath.Join(t.TempDir(), "met")
	if failure := runTests(t, metVar+"="+path, 30*time.Minute); failure != "" {
		t.Fatalf("with all guards in place: %s", failure)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	patience := 3*time.Since(began) + time.Minute
	for _, name := range slices.Sorted(strings.SplitSeq(strings.TrimSpace(string(text)), "\n")) {
		t.Run(name, func(t *testing.T) {
			failure := runTests(t, weakVar+"="+name, patience)
			if failure == "" {
				t.Error("nothing fails without it")
			}
			t.Log(failure)
		})
	}
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

// runTests runs these tests with a variable of the environment. It returns the first line that
// reports a failure, without waiting for more, or "" if the tests pass. A run longer than the limit
// counts as a failure, because some loops never end without their guard.
func runTests(t *testing.T, variable string, limit time.Duration) (failure string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.v", "-test.short", "-test.timeout", limit.String(), "-test.run", guarding)
	cmd.Env = append(os.Environ(), variable, "GATEWAY_VERIFY=")
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
