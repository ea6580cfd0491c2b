//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/sources"
)

// A command is a command line with its environment.
type command struct {
	name string   // a program; empty means the gateway
	args []string // after the name
	dir  string
	env  []string // besides PATH and HOME; nothing else is inherited
	user *syscall.Credential

	whole bool // a spawned process keeps its whole output, not the end alone
}

func (c command) cmd(ctx context.Context) *exec.Cmd {
	if err := sources.Open(); err != nil {
		panic(err)
	}
	if c.name == "" {
		c.name = binary
	}
	cmd := exec.CommandContext(ctx, c.name, c.args...)
	cmd.Dir = c.dir
	// The environment of the test run must not configure the gateway.
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "LC_ALL=C", "GORACE=halt_on_error=1"}, c.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: c.user}
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// A process is a child that dies with this one.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	log  *logBuffer
	done chan struct{} // closed when it has ended
}

// spawn starts a process, and kills it when the test ends. It prints the output if the test
// failed. A process that prints a secret of its configuration fails the test.
func spawn(t testing.TB, c command) *process {
	t.Helper()
	p := &process{t: t, cmd: c.cmd(context.Background()), log: &logBuffer{secrets: secretsOf(c), whole: c.whole}, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	started := make(chan error)
	go func() {
		// The kernel sends Pdeathsig when the thread that forked ends, so this thread must
		// live as long as the child.
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // ProcessState has the result
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", p.cmd.Path, err)
	}
	t.Cleanup(func() {
		killed := p.ended() && p.cmd.ProcessState.ExitCode() < 0
		p.kill()
		if said := p.log.told(); said != "" {
			t.Errorf("process %d said a secret of its configuration: %q", p.pid(), said)
		}
		if said := p.log.String(); strings.Contains(said, "WARNING: DATA RACE") {
			t.Errorf("process %d has a data race:\n%s", p.pid(), said)
			return
		}
		if killed {
			return // killed by the test, which reports its own finding
		}
		if said := p.log.String(); t.Failed() && said != "" {
			t.Logf("process %d said:\n%s", p.pid(), said)
		}
	})
	return p
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("signal %v to process %d: %v", s, p.pid(), err)
	}
}

// kill ends the process like a power cut, and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
}

// wait returns the exit code, -1 if a signal ended the process.
func (p *process) wait(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		p.t.Fatalf("process %d still runs after %v", p.pid(), limit)
		return 0
	}
}

// stop sends SIGTERM and requires exit code 0.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if code := p.wait(20 * time.Second); code != 0 {
		p.t.Fatalf("exit code after SIGTERM = %d, want 0", code)
	}
}

// A result is the output and exit code of a command.
type result struct {
	stdout, stderr string
	code           int
}

// run runs a command to its end. A command that prints a secret of its configuration fails the
// test.
func run(t testing.TB, c command) result {
	t.Helper()
	r := runUnwatched(t, c)
	for _, s := range secretsOf(c) {
		if strings.Contains(r.stdout+r.stderr, s) {
			t.Errorf("%v said a secret of its configuration: %q", c.args, s)
		}
	}
	return r
}

// runUnwatched is run for tests that check secrets themselves.
func runUnwatched(t testing.TB, c command) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := c.cmd(ctx)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	runtime.LockOSThread() // see spawn
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("run %v: %v\n%s%s", c.args, err, stdout.String(), stderr.String())
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// maxLog is the number of bytes of a process's output that are kept, unless the command says that
// all are: the newest.
const maxLog = 16 << 10

// A logBuffer keeps the end of an output, or all of it, and a secret that was written to it.
type logBuffer struct {
	secrets []string
	whole   bool

	mu     sync.Mutex
	text   []byte
	lines  int // written lines, including lines before the kept end
	secret string
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	b.lines += bytes.Count(p, []byte("\n"))
	for _, s := range b.secrets {
		// The secret may have begun in the previous write.
		if bytes.Contains(b.text[max(0, len(b.text)-len(p)-len(s)):], []byte(s)) {
			b.secret = s
		}
	}
	if !b.whole && len(b.text) > 2*maxLog {
		b.text = append(b.text[:0], b.text[len(b.text)-maxLog:]...)
	}
	return len(p), nil
}

// watchFor adds a secret that must not be written from now on.
func (b *logBuffer) watchFor(secret string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.secrets = append(b.secrets, secret)
}

// told returns a secret that was written, or "".
func (b *logBuffer) told() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.secret
}

// count returns the number of written lines.
func (b *logBuffer) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}

// unprivileged returns an unprivileged user if the tests run as root. Otherwise it returns nil,
// which means the same user.
func unprivileged() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.Credential{Uid: 65534, Gid: 65534}
}
