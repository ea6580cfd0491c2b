package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/google/go-cmp/cmp"
)

// A session is a process as tests make one.
type session struct {
	stdin    io.Reader
	terminal bool
	attended bool
	env      map[string]string
}

// run runs a command line and returns its exit code and output.
func (s session) run(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(ctx, args, s.system(&out, &err))
	return code, out.String(), err.String()
}

func (s session) system(out, err io.Writer) system {
	if s.stdin == nil {
		s.stdin = strings.NewReader("")
	}
	lookup := func(name string) (string, bool) { v, ok := s.env[name]; return v, ok }
	return system{stdin: s.stdin, stdout: out, stderr: err, terminal: s.terminal, attended: s.attended, lookup: lookup, clock: time.Now}
}

func (s session) app(out io.Writer) *app { return newApp(s.system(out, io.Discard)) }

var sampleJobs = []core.Job{
	{ID: "01J90000000000000000000001", EventID: "01J90000000000000000000000", Lane: "handler/mail", Status: core.Dead,
		Attempt: 3, MaxAttempts: 3, LastError: "status: 500 \x1b[2J"},
	{ID: "01J90000000000000000000002", EventID: "01J90000000000000000000000", Lane: "handler/世界", Status: core.Retryable,
		Attempt: 1, MaxAttempts: 3, DueAt: time.Date(2024, 10, 1, 10, 0, 0, 0, time.UTC)},
}

const plainJobs = `ID                          EVENT                       HANDLER  STATUS     ATTEMPT  NEXT                     WAITS FOR  LAST ERROR
01J90000000000000000000001  01J90000000000000000000000  mail     dead       3/3      -                        -          status: 500 \x1b[2J
01J90000000000000000000002  01J90000000000000000000000  世界     retryable  1/3      2024-10-01T10:00:00.000  its time   -
`

func TestGridInAPipe(t *testing.T) {
	var out bytes.Buffer
	a := session{}.app(&out)
	a.PrintGrid(a.jobGrid(manage.JobPage{Page: core.Page[core.Job]{Items: sampleJobs}, Waits: map[core.ID]manage.Wait{sampleJobs[1].ID: {For: manage.NotDue}}}))
	if diff := cmp.Diff(plainJobs, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestGridOnATerminal(t *testing.T) {
	var out bytes.Buffer
	a := session{terminal: true}.app(&out)
	a.PrintGrid(a.jobGrid(manage.JobPage{Page: core.Page[core.Job]{Items: sampleJobs}, Waits: map[core.ID]manage.Wait{sampleJobs[1].ID: {For: manage.NotDue}}}))
	lines := strings.Split(out.String(), "\n")
	if !strings.HasPrefix(lines[0], "\x1b[1mID\x1b[0m ") {
		t.Errorf("heading %q is not bold", lines[0])
	}
	if strings.Trim(lines[1], "─") != "" {
		t.Errorf("line %q is not a line", lines[1])
	}
	if !strings.Contains(lines[2], "  \x1b[31mdead\x1b[0m  ") || !strings.Contains(lines[3], "  \x1b[33mretryable\x1b[0m  ") {
		t.Errorf("statuses are not coloured:\n%q\n%q", lines[2], lines[3])
	}
	uncoloured := strings.NewReplacer("\x1b[1m", "", "\x1b[31m", "", "\x1b[33m", "", "\x1b[0m", "")
	got := uncoloured.Replace(strings.Join(append(lines[:1:1], lines[2:]...), "\n"))
	if diff := cmp.Diff(plainJobs, got); diff != "" {
		t.Errorf("colours change the alignment (-plain +coloured):\n%s", diff)
	}
}

func TestPayloadLines(t *testing.T) {
	long := strings.Repeat("x", shownWidth+1)
	many := strings.Repeat("line\n", shownLines+1)
	for _, c := range []struct {
		name, payload string
		lines         int
		first         string
		all           bool
	}{
		{"json", `{"n":1.50}`, 3, "{", true},
		{"text", "a\nb", 2, "a", true},
		{"empty", "", 0, "", true},
		{"steering", "\x1b[2J\r", 1, `\x1b[2J\r`, true},
		{"long line", long, 1, long[:shownWidth-1] + "…", false},
		{"many lines", many, shownLines, "line", false},
	} {
		lines, all := payloadLines([]byte(c.payload))
		if len(lines) != c.lines || all != c.all || len(lines) > 0 && lines[0] != c.first {
			t.Errorf("%s: payloadLines = %q, %v", c.name, lines, all)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(context.Background())
	stdin, _ := io.Pipe() // no data ever comes
	interrupt()
	t.Chdir(t.TempDir())
	if code, _, stderr := (session{}).run(ctx, "init"); code != exitDone {
		t.Fatalf("init = %d, %s", code, stderr)
	}
	code, _, stderr := session{stdin: stdin}.run(ctx, "send", "--env", "local", "-s", "app", "-t", "x", "-f", "-")
	if code != exitInterrupted || stderr != "gateway: interrupted\n" {
		t.Errorf("send = %d, %q; want %d", code, stderr, exitInterrupted)
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestOutputThatCannotBeWritten(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   int
		stderr string
	}{
		{errors.New("disk full"), exitFailed, "gateway: write output: disk full\n"},
		{syscall.EPIPE, exitDone, ""}, // the reader has all that it wanted
	} {
		var stderr bytes.Buffer
		for _, args := range [][]string{{"version"}, {"version", "--json"}, {"help"}, {"completion", "bash"}} {
			stderr.Reset()
			code := run(context.Background(), args, session{}.system(brokenWriter{c.err}, &stderr))
			if code != c.code || stderr.String() != c.stderr {
				t.Errorf("%v: %q = %d, %q; want %d, %q", c.err, args, code, stderr.String(), c.code, c.stderr)
			}
		}
	}
}
