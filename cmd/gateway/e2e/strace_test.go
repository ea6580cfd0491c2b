//go:build linux

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/wait"
)

// A tracer is strace attached to a running gateway. After strace has detached, it injects no
// more errors, and the gateway goes on.
type tracer struct {
	t    *testing.T
	file string
	*process
}

// trace attaches strace with the given options to every thread of a process.
func trace(t *testing.T, p *process, options ...string) *tracer {
	t.Helper()
	_, err := exec.LookPath("strace")
	need(t, "strace", err)
	tr := &tracer{t: t, file: filepath.Join(t.TempDir(), "trace")}
	args := append([]string{"-f", "-y", "-s", "512", "-o", tr.file}, options...)
	tr.process = spawn(t, command{name: "strace", args: append(args, "-p", fmt.Sprint(p.pid()))})
	attached := wait.Until(10*time.Second, func() bool { return tr.ended() || strings.Contains(tr.log.String(), "attached") })
	if !attached || tr.ended() {
		need(t, "the right to trace", fmt.Errorf("strace says: %s", tr.log))
	}
	return tr
}

// detach ends strace, and the process goes on.
func (tr *tracer) detach() {
	tr.t.Helper()
	tr.signal(syscall.SIGINT)
	tr.wait(10 * time.Second)
}

// A call is a system call in the output of strace. The numbers start and end are the lines of
// its entry and its return. strace stops a thread at both, so the order of the lines is the
// order in time.
type call struct {
	name       string
	file       string // the file of the first argument
	text       string // arguments and result
	result     string
	start, end int
}

var (
	// 12 fdatasync(7</tmp/gateway.db-wal>) = 0
	entered = regexp.MustCompile(`^(\d+) +(\w+)\((?:\d+<(.*?)>(?:[,)]| ))?(.*)$`)
	// 12 <... fdatasync resumed>) = 0
	resumed = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>(.*)$`)
)

// parseTrace reads the lines of strace -f -y. It leaves out calls that had not returned at the
// end.
func parseTrace(lines []string) []call {
	var calls []call
	open := map[string]call{} // by thread
	for i, line := range lines {
		if m := resumed.FindStringSubmatch(line); m != nil {
			if c, ok := open[m[1]]; ok && c.name == m[2] {
				c.returned(m[3], i)
				calls = append(calls, c)
			}
			delete(open, m[1])
			continue
		}
		m := entered.FindStringSubmatch(line)
		if m == nil {
			continue // signals and exits
		}
		c := call{name: m[2], file: m[3], start: i}
		text, unfinished := strings.CutSuffix(m[4], "<unfinished ...>")
		if unfinished {
			c.text = text
			open[m[1]] = c
			continue
		}
		c.returned(text, i)
		calls = append(calls, c)
	}
	return calls
}

// returned adds the rest of the arguments and the result.
func (c *call) returned(rest string, line int) {
	c.end = line
	if i := strings.LastIndex(rest, " = "); i >= 0 {
		rest, c.result = rest[:i], rest[i+3:]
	}
	c.text += strings.TrimRight(rest, " ")
}

func (tr *tracer) calls() []call {
	tr.t.Helper()
	f, err := os.Open(tr.file)
	if err != nil {
		tr.t.Fatal(err)
	}
	defer f.Close()
	var lines []string
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		lines = append(lines, s.Text())
	}
	if err := s.Err(); err != nil {
		tr.t.Fatal(err)
	}
	return parseTrace(lines)
}

func TestParseTrace(t *testing.T) {
	t.Parallel()
	calls := parseTrace(strings.Split(`7 read(9<TCP:[1.2.3.4:5->6]>, "POST / HTTP/1.1\r\n\r\nprobe-1", 4096) = 42
8 fdatasync(5</x/gateway.db-wal> <unfinished ...>
7 --- SIGURG {si_signo=SIGURG} ---
7 write(9<TCP:[1.2.3.4:5->6]>, "HTTP/1.1 202 Accepted\r\n = ", 99 <unfinished ...>
8 <... fdatasync resumed>)              = 0
7 <... write resumed>)                  = 99
9 fsync(6</x/gateway.db>)               = -1 EIO (Input/output error) (INJECTED)
9 read(9<TCP:[1.2.3.4:5->6]>,  <unfinished ...>
9 <... read resumed>"later", 4096) = 5
9 read(3,  <unfinished ...>
9 +++ killed by SIGKILL +++`, "\n"))
	want := []call{
		{"read", "TCP:[1.2.3.4:5->6]", ` "POST / HTTP/1.1\r\n\r\nprobe-1", 4096)`, "42", 0, 0},
		{"fdatasync", "/x/gateway.db-wal", `)`, "0", 1, 4},
		{"write", "TCP:[1.2.3.4:5->6]", ` "HTTP/1.1 202 Accepted\r\n = ", 99 )`, "99", 3, 5},
		{"fsync", "/x/gateway.db", ``, "-1 EIO (Input/output error) (INJECTED)", 6, 6},
		{"read", "TCP:[1.2.3.4:5->6]", `  "later", 4096)`, "5", 7, 8},
	}
	if len(calls) != len(want) {
		t.Fatalf("calls = %+v, want %d", calls, len(want))
	}
	for i := range want {
		if calls[i] != want[i] {
			t.Errorf("call %d = %+v\nwant     %+v", i, calls[i], want[i])
		}
	}
}
