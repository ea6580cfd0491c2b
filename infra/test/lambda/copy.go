//go:build linux

package lambda

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Copy is one execution environment of a function: a process with its own Runtime API.
type Copy struct {
	// Number counts all copies of a service from 1. It is the end of the variable
	// AWS_LAMBDA_LOG_STREAM_NAME, which differs between copies on Lambda too.
	Number int

	function *Function
	server   *httptest.Server
	cmd      *exec.Cmd
	began    time.Time
	begun    chan struct{} // closed when the process was started, or could not be
	exited   chan struct{} // closed when it has ended
	next     chan *invocation

	mu         sync.Mutex
	busy       int // invocations that it has or will get
	pending    map[string]*invocation
	initTook   time.Duration
	frozen     bool
	registered bool // an extension is registered, so the copy gets SIGTERM at its end
}

// An invocation is one event for a copy.
type invocation struct {
	id      string
	payload []byte

	handed  time.Time
	until   time.Time
	started chan struct{} // closed when the event is handed out
	answer  *Result       // guarded by the copy's lock
	over    chan struct{} // closed when the copy asks for its next event
}

// termGrace is the time between SIGTERM and SIGKILL for a copy with an internal extension.
const termGrace = 500 * time.Millisecond

// newCopy makes a copy that is reserved for one invocation.
func newCopy(f *Function) *Copy {
	return &Copy{
		Number: f.service.number(), function: f, busy: 1, pending: map[string]*invocation{},
		begun: make(chan struct{}), exited: make(chan struct{}), next: make(chan *invocation),
	}
}

// start starts the process.
func (c *Copy) start() error {
	c.server = httptest.NewServer(http.HandlerFunc(c.serve))
	c.cmd = exec.Command(c.function.Bootstrap)
	c.cmd.Dir = c.root()
	c.cmd.Env = c.environment()
	c.cmd.Stdout, c.cmd.Stderr = c.function, c.function
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.cmd.WaitDelay = time.Second
	defer close(c.begun)
	c.mu.Lock()
	c.began = time.Now()
	c.mu.Unlock()
	started := make(chan error)
	go func() {
		// The kernel sends Pdeathsig when the thread that forked ends, so this thread must
		// live as long as the child.
		runtime.LockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			_ = c.cmd.Wait() // ProcessState has the result
			c.end()
		}
	}()
	err := <-started
	if err != nil {
		c.server.Close()
		close(c.exited)
	}
	return err
}

// end removes a copy whose process has ended.
func (c *Copy) end() {
	c.function.drop(c)
	close(c.exited)
	c.server.CloseClientConnections()
	c.server.Close()
}

func (c *Copy) root() string {
	return cmp.Or(c.function.Root, filepath.Dir(c.function.Bootstrap))
}

func (c *Copy) environment() []string {
	f := c.function
	env := []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=en_US.UTF-8", "TZ=:UTC",
		"LAMBDA_TASK_ROOT=" + c.root(), "LAMBDA_RUNTIME_DIR=/var/runtime", "_HANDLER=bootstrap",
		"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(c.server.URL, "http://"),
		"AWS_REGION=" + Region, "AWS_DEFAULT_REGION=" + Region,
		"AWS_ACCESS_KEY_ID=" + AccessKey, "AWS_SECRET_ACCESS_KEY=" + SecretKey, "AWS_SESSION_TOKEN=" + Session,
		"AWS_LAMBDA_FUNCTION_NAME=" + f.Name, "AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=" + strconv.Itoa(f.Memory),
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/" + f.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME=2026/01/01/[$LATEST]" + strconv.Itoa(c.Number),
		"AWS_ENDPOINT_URL_LAMBDA=" + f.service.URL,
	}
	if f.Concurrency > 1 {
		env = append(env, "AWS_LAMBDA_MAX_CONCURRENCY="+strconv.Itoa(f.Concurrency))
	}
	if f.Secrets != nil {
		env = append(env, "PARAMETERS_SECRETS_EXTENSION_HTTP_PORT="+f.Secrets.port())
	}
	return append(env, f.Env...)
}

// take reserves the copy for one more invocation, if it has fewer than most.
func (c *Copy) take(most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy >= most {
		return false
	}
	c.busy++
	return true
}

// run passes one event to the copy. It returns when the copy has ended or has asked for its
// next event, which may be long after its answer.
func (c *Copy) run(payload []byte) Result {
	inv := &invocation{
		id: fmt.Sprintf("%08x-0000-4000-8000-%012x", c.Number, time.Now().UnixNano()&0xffffffffffff), payload: payload,
		started: make(chan struct{}), over: make(chan struct{}),
	}
	if r, ok := c.hand(inv); !ok {
		return r
	}
	timer := time.NewTimer(time.Until(inv.until))
	defer timer.Stop()
	failure := Exited
	select {
	case <-inv.over:
	case <-c.exited:
	case <-timer.C:
		failure = TimedOut
		c.Kill()
	}
	return c.result(inv, failure)
}

// result returns the copy's answer, or a failure if there is none.
func (c *Copy) result(inv *invocation, failure string) Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	if inv.answer == nil {
		return c.failed(inv, failure)
	}
	return *inv.answer
}

// hand waits until the copy takes the event.
func (c *Copy) hand(inv *invocation) (Result, bool) {
	timer := time.NewTimer(c.function.InitLimit)
	defer timer.Stop()
	select {
	case c.next <- inv:
		<-inv.started
		return Result{}, true
	case <-c.exited:
		return c.failed(inv, Exited), false
	case <-timer.C:
		c.Kill()
		return c.failed(inv, TimedOut), false
	}
}

func (c *Copy) failed(inv *invocation, how string) Result {
	r := Result{Error: how, Copy: c.Number, ID: inv.id, Began: inv.handed}
	if !inv.handed.IsZero() {
		r.Took = time.Since(inv.handed)
	}
	r.Payload = fmt.Appendf(nil, `{"errorType":%q,"errorMessage":"RequestId: %s Error: %s"}`, how, inv.id, how)
	return r
}

// init returns the time from the start of the process until it first asked for work; 0 if it
// has not.
func (c *Copy) init() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.initTook
}

// Pid returns the process id. It waits until the process is started.
func (c *Copy) Pid() int {
	<-c.begun
	return c.cmd.Process.Pid
}

// Frozen reports whether the copy is frozen while it waits for work.
func (c *Copy) Frozen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frozen
}

// Busy reports whether the copy has work.
func (c *Copy) Busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending) > 0
}

// Kill ends the process at once with SIGKILL, and waits for its end. Its invocations fail.
func (c *Copy) Kill() {
	c.signal(syscall.SIGKILL)
	<-c.exited
}

// Stop ends the process like Lambda when it does not need the copy any more. A copy with a
// registered extension gets SIGTERM, and SIGKILL after 500 ms. Other copies get SIGKILL at
// once.
func (c *Copy) Stop() {
	if c.Tell() {
		select {
		case <-c.exited:
			return
		case <-time.After(termGrace):
		}
	}
	c.Kill()
}

// Tell sends SIGTERM to the process and returns. It reports whether it did: only a copy with a
// registered extension gets the signal.
func (c *Copy) Tell() bool {
	c.mu.Lock()
	told := c.registered
	c.mu.Unlock()
	if told {
		c.signal(syscall.SIGCONT)
		c.signal(syscall.SIGTERM)
	}
	return told
}

// signal sends a signal. It has no effect on a process that has ended or was not started.
func (c *Copy) signal(s syscall.Signal) {
	<-c.begun
	select {
	case <-c.exited:
	default:
		_ = c.cmd.Process.Signal(s)
	}
}
