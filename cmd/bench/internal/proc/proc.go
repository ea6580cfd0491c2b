// Package proc runs the system under test as a process of its own, so that its CPU time and
// memory are separate from the benchmark's.
//
// It imports event, wire, the standard library and x/sys.
package proc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/event"
	"github.com/eventgateway/gateway/cmd/bench/internal/wire"
)

// Bounds of a child: how long it may take to answer and to end, how often it is asked
// meanwhile, and how much of its log an error shows.
const (
	readyTimeout = 15 * time.Second
	stopTimeout  = 15 * time.Second
	pollEvery    = 100 * time.Microsecond
	tail         = 2 << 10 // bytes of the log shown with a failure
)

// Spec has the settings for starting a system.
type Spec struct {
	Path string   // of the executable
	Args []string // without the executable
	Env  []string // in addition to the benchmark's own environment
	Dir  string   // working directory; its output goes to Dir/log
	Addr string   // host:port where GET /health answers 200 once it is ready
}

// Child is a running system. err is read only after exited is closed.
type Child struct {
	Addr  string        // where it listens, from its Spec
	Ready time.Duration // from exec to the first answered /health

	interrupt sync.Once
	cmd       *exec.Cmd
	exited    chan struct{}
	err       error // of Wait, once exited is closed
	log       string
}

// Start returns once the system answers, or stops it and says why it does not.
func Start(ctx context.Context, s Spec) (*Child, error) {
	log, err := os.OpenFile(filepath.Join(s.Dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own copy
	// Not CommandContext: it would kill the child at the end of ctx, and a killed system cannot
	// be judged.
	cmd := exec.Command(s.Path, s.Args...)
	cmd.Dir, cmd.Env = s.Dir, append(environment(), s.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	c := &Child{Addr: s.Addr, cmd: cmd, exited: make(chan struct{}), log: log.Name()}
	start := event.Nanos()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		c.err = cmd.Wait()
		close(c.exited)
	}()
	// A child that does not answer is killed here, so the caller has nothing to stop after an
	// error.
	if err := c.await(ctx, s.Addr); err != nil {
		c.kill()
		return nil, fmt.Errorf("start %s: %w%s", filepath.Base(s.Path), err, c.said())
	}
	c.Ready = time.Duration(event.Nanos() - start)
	return c, nil
}

// environment is the benchmark's own without the variables that would configure
// a gateway behind its back.
func environment() []string {
	var out []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GATEWAY_") && !strings.HasPrefix(v, "OTEL_") && !strings.HasPrefix(v, "RUST_LOG=") {
			out = append(out, v)
		}
	}
	return out
}

// await asks until there is an answer. The pause is short because it is the
// resolution of Ready.
func (c *Child) await(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := healthy(addr)
		if err == nil {
			return nil
		}
		select {
		case <-c.exited:
			return fmt.Errorf("it exited: %w", errors.Join(c.err, err))
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", err)
		case <-time.After(pollEvery):
		}
	}
}

// healthy asks once, on a connection of its own. net/http would keep connections and goroutines
// beside the measured process.
func healthy(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(conn, "GET /health HTTP/1.1\r\nHost: "+addr+"\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	head, body, err := wire.NewReader(conn).Next()
	if err != nil {
		return err
	}
	if status := wire.Status(head); status != 200 {
		return fmt.Errorf("GET /health: status %d %.200q", status, body)
	}
	return nil
}

// Interrupt sends SIGTERM, once however often it is called, and does not wait: a
// second SIGTERM would mean to end at once.
func (c *Child) Interrupt() {
	c.interrupt.Do(func() { _ = c.cmd.Process.Signal(syscall.SIGTERM) })
}

// Stop sends SIGTERM and waits for the end, which it forces after a while. It may be called
// again. Its error says that the end was not a clean one. An exit code other than 0 after
// SIGTERM is an error: the system has not given its work back in an orderly way.
func (c *Child) Stop() error {
	c.Interrupt()
	select {
	case <-c.exited:
	case <-time.After(stopTimeout):
		c.kill()
		return fmt.Errorf("killed %v after SIGTERM%s", stopTimeout, c.said())
	}
	if c.err != nil {
		return fmt.Errorf("it ended with %w%s", c.err, c.said())
	}
	return nil
}

// kill ends the child at once and waits until it is gone.
func (c *Child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.exited
}

// said is the end of the child's output, for an error.
func (c *Child) said() string {
	text, err := os.ReadFile(c.log)
	if err != nil || len(text) == 0 {
		return ""
	}
	return "; its output ends:\n" + string(bytes.TrimSpace(text[max(0, len(text)-tail):]))
}

// CPU is the time that all the child's threads have used, user and system.
func (c *Child) CPU() (time.Duration, error) { return cpuTime(c.cmd.Process.Pid) }

// OwnCPU returns the same for the calling process.
func OwnCPU() (time.Duration, error) { return cpuTime(os.Getpid()) }

// Memory is the resident set in bytes, now and at its highest.
func (c *Child) Memory() (now, peak int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	return memory(text)
}

// memory reads VmRSS and VmHWM, in kB, from the text of /proc/PID/status.
func memory(status []byte) (now, peak int64, err error) {
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		// The kernel keeps the high-water mark, so no peak between two readings is missed.
		into := map[string]*int64{"VmRSS:": &now, "VmHWM:": &peak}[fields[0]]
		if into == nil {
			continue
		}
		kb, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("read %s %q", fields[0], fields[1])
		}
		*into = kb << 10
	}
	if now == 0 || peak == 0 {
		return 0, 0, errors.New("no VmRSS or VmHWM in the status")
	}
	return now, peak, nil
}
