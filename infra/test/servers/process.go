package servers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/eventgateway/gateway/infra/test/ports"
)

// ErrMissing is wrapped by errors that say a component is not installed. Their
// text names it and says how to get it.
var ErrMissing = errors.New("make test installs what it can")

// A process is a program in a folder of its own. One at a time runs there; its
// output goes to the file "log", its id to the file "pid" for the janitor.
type process struct {
	dir     string
	as      *account // nil: as the user of the tests
	env     []string // beside this process's own
	janitor *exec.Cmd
	leash   *os.File

	port *ports.Port // nil if no server of this folder listens on TCP

	mu      sync.Mutex
	cmd     *exec.Cmd // nil when nothing runs
	stopped bool
}

// folderPrefix begins the name of every folder; the id of the process that made
// it follows.
const folderPrefix = "gateway-test-"

// newProcess makes a folder below parent, or below the system's folder for temporary files if
// parent is "". It also starts the janitor that will remove the folder. When this process
// ends, programs that still run in the folder get signal, and SIGKILL after five seconds.
func newProcess(parent, signal string, as *account) (*process, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	sweep(parent)
	// Names are short, since a socket's path may have 107 bytes.
	dir, err := os.MkdirTemp(parent, fmt.Sprintf("%s%d-", folderPrefix, os.Getpid()))
	if err != nil {
		return nil, err
	}
	p := &process{dir: dir, as: as, env: []string{"HOME=" + dir, "TMPDIR=" + dir, "LC_ALL=C"}}
	if err = p.hireJanitor(signal); err == nil && as != nil {
		err = os.Chown(dir, as.uid, as.gid)
	}
	if err != nil {
		p.remove()
		return nil, err
	}
	return p, nil
}

// The janitor reads until the last writer is gone. A server is the leader of a process group,
// so that its children end with it. A dead server may still be listed as a zombie, if no
// process collects orphans, as in many containers.
const janitor = `
read -r _
alive() {
  read -r id 2>/dev/null <"$1/pid" && kill -s 0 -- "-$id" 2>/dev/null || return 1
  ! grep -q '^State:[[:space:]]*Z' "/proc/$id/status" 2>/dev/null
}
for signal in "$2" KILL; do
  alive "$1" && kill -s "$signal" -- "-$id"
  n=0
  while alive "$1" && [ $n -lt 250 ]; do sleep 0.02; n=$((n+1)); done
done
rm -rf "$1"
`

func (p *process) hireJanitor(signal string) error {
	if find("sh") == "" {
		return missing("POSIX shell", "servers are started on Unix alone")
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	p.leash = w
	p.janitor = exec.Command("sh", "-c", janitor, "janitor", p.dir, signal)
	p.janitor.Dir, p.janitor.Stdin = "/", r
	detach(p.janitor)
	if err := p.janitor.Start(); err != nil {
		p.janitor = nil
		return fmt.Errorf("start a janitor for %s: %w", p.dir, err)
	}
	return os.WriteFile(filepath.Join(p.dir, "janitor"), []byte(strconv.Itoa(p.janitor.Process.Pid)), 0o600)
}

// sweep removes folders of dead processes in parent, unless their janitor still runs: the
// janitor needs the folder to find the programs to end.
func sweep(parent string) {
	left, _ := filepath.Glob(filepath.Join(parent, folderPrefix+"*"))
	for _, dir := range left {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), folderPrefix), "-")
		keeper, _ := os.ReadFile(filepath.Join(dir, "janitor"))
		if !running(owner) && !running(string(keeper)) {
			_ = os.RemoveAll(dir)
		}
	}
}

// running reports whether there is, or may be, a process of this id that is not
// a zombie.
func running(id string) bool {
	pid, err := strconv.Atoi(id)
	status, _ := os.ReadFile(filepath.Join("/proc", id, "status"))
	return err == nil && exists(pid) && !bytes.Contains(status, []byte("\nState:\tZ"))
}

// start starts a program. The shell writes its own id before it becomes the
// program, so there is no moment at which the janitor would not know it.
func (p *process) start(program string, args ...string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stopped:
		return fmt.Errorf("%s: stopped for good, its folder is gone", filepath.Base(program))
	case p.cmd != nil:
		return fmt.Errorf("%s: already runs", filepath.Base(program))
	}
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	const tell = `echo $$ >"$0/pid" && exec "$@"`
	cmd := exec.Command("sh", append([]string{"-c", tell, p.dir, program}, args...)...)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	ownGroup(cmd, p.as)
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd = cmd
	return nil
}

// run runs a program to its end.
func (p *process) run(limit time.Duration, program string, args ...string) error {
	if err := p.start(program, args...); err != nil {
		return err
	}
	status, err := p.wait(limit)
	switch {
	case err != nil:
		p.kill()
		return fmt.Errorf("%s: %w\n%s", filepath.Base(program), err, p.log())
	case status != 0:
		return fmt.Errorf("%s ended with status %d\n%s", filepath.Base(program), status, p.log())
	}
	return nil
}

// ready asks every few milliseconds until ask returns nil, the program has
// ended, or limit is over.
func (p *process) ready(limit time.Duration, ask func() error) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		err := ask()
		if err == nil {
			return nil
		}
		if status, ended := p.ended(); ended {
			return fmt.Errorf("ended with status %d before it was ready\n%s", status, p.log())
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not ready in %v: %w\n%s", limit, err, p.log())
		}
	}
}

var errStillRuns = errors.New("still runs")

// reserve returns the port of 127.0.0.1 for the servers of this folder, one after the other.
// The port stays reserved while none of them runs, so that no other process of the machine
// can take it before the next one.
func (p *process) reserve() (int, error) {
	if p.port == nil {
		port, err := ports.Reserve()
		if err != nil {
			return 0, err
		}
		p.port = port
	}
	return p.port.Number(), p.port.Lend()
}

// startNode starts a script of this repository on the folder's port. It waits for the
// script's file "ready.json" and decodes it into told.
func (p *process) startNode(command []string, told any) error {
	port, err := p.reserve()
	if err != nil {
		return err
	}
	ready := filepath.Join(p.dir, "ready.json")
	_ = os.Remove(ready)
	args := append(command[1:len(command):len(command)], "--port", strconv.Itoa(port))
	if err := p.start(command[0], args...); err != nil {
		return err
	}
	return p.ready(time.Minute, func() error {
		b, err := os.ReadFile(ready)
		if err != nil {
			return err
		}
		return json.Unmarshal(b, told)
	})
}

// wait waits until no program runs. The status of a program that a signal ended is 128 and the
// signal's number, as in a shell.
func (p *process) wait(limit time.Duration) (status int, err error) {
	for deadline := time.Now().Add(limit); ; time.Sleep(2 * time.Millisecond) {
		if status, ended := p.ended(); ended {
			return status, nil
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("%w after %v", errStillRuns, limit)
		}
	}
}

// ended reports whether nothing runs, without waiting. No goroutine waits for
// the program, so that tests which look for forgotten goroutines find none.
func (p *process) ended() (status int, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0, true
	}
	status, ended = reap(p.cmd)
	if ended {
		_ = os.Remove(filepath.Join(p.dir, "pid"))
		_ = p.cmd.Process.Release()
		p.cmd = nil
	}
	return status, ended
}

// log returns the last 16 KiB of the output, with at most 500 bytes of a line: a server that crashes
// writes the statement that it was at.
func (p *process) log() string {
	b, _ := os.ReadFile(filepath.Join(p.dir, "log"))
	const most, line = 16 << 10, 500
	var said []byte
	for l := range bytes.Lines(b) {
		if len(l) > line {
			l = append(l[:line:line], " [...]\n"...)
		}
		said = append(said, l...)
	}
	return string(said[max(len(said)-most, 0):])
}

// remove ends the program and removes the folder. It may be called again.
func (p *process) remove() error {
	p.kill()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil
	}
	p.stopped = true
	if p.leash != nil {
		_ = p.leash.Close()
	}
	if p.janitor != nil {
		_ = p.janitor.Wait()
	}
	if p.port != nil {
		_ = p.port.Close()
	}
	return os.RemoveAll(p.dir)
}

// kill ends the whole group with SIGKILL and waits for its leader.
func (p *process) kill() { p.end(sigKill, 0) }

// end sends a signal and waits. A program that still runs after grace gets SIGKILL.
func (p *process) end(signal sig, grace time.Duration) {
	if p.signal(signal); signal != sigKill {
		if _, err := p.wait(grace); err == nil {
			return
		}
		p.signal(sigKill)
	}
	_, _ = p.wait(time.Minute) // a program that survives this hangs in the kernel
}

func (p *process) signal(signal sig) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		signalGroup(p.cmd, signal)
	}
}

// signalAll signals a program and its children, including children with their own sessions.
func (p *process) signalAll(signal sig) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	signalGroup(p.cmd, signal)
	leader := strconv.Itoa(p.cmd.Process.Pid)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, _ := os.ReadFile(path)
		_, rest, _ := strings.Cut(string(stat), ") ") // state, parent, ...
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == leader {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			signalOne(pid, signal)
		}
	}
}

// find returns the path of a program: on PATH, else the last match in folders
// named by patterns, else "".
func find(name string, patterns ...string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, pattern := range patterns {
		if found, _ := filepath.Glob(filepath.Join(pattern, name)); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	return ""
}
