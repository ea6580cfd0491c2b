package proc

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/event"
)

// Ran is the result of a command.
type Ran struct {
	Took time.Duration
	Peak int64 // of the resident set in bytes, at the last reading; 0 if the command ended at once
}

// lookEvery is how often the memory of a command is read. The kernel keeps the highest
// value, so only an increase after the last reading is missed.
const lookEvery = 10 * time.Millisecond

// Run runs a command, whose output goes nowhere, and waits for it. Of a Spec it needs no
// Addr.
func Run(ctx context.Context, s Spec) (ran Ran, err error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, s.Path, s.Args...)
	cmd.Dir, cmd.Env, cmd.Stderr = s.Dir, append(environment(), s.Env...), &said
	start := event.Nanos()
	if err := cmd.Start(); err != nil {
		return ran, err
	}
	// It is a child without an address: only its memory is read.
	child := &Child{cmd: cmd, exited: make(chan struct{})}
	go func() {
		child.err = cmd.Wait()
		ran.Took = time.Duration(event.Nanos() - start)
		close(child.exited)
	}()
	ran.Peak = child.watch()
	if child.err != nil {
		err = fmt.Errorf("%s %q: %w\n%s", filepath.Base(s.Path), s.Args, child.err, bytes.TrimSpace(said.Bytes()))
	}
	return ran, err
}

// watch returns the highest memory of a child once it has ended.
func (c *Child) watch() (highest int64) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-c.exited:
			return highest
		case <-look.C:
			// A process that has just begun is this one still, by its memory.
			if name, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", c.cmd.Process.Pid)); err != nil || name != c.cmd.Path {
				continue
			}
			if _, peak, err := c.Memory(); err == nil {
				highest = max(highest, peak)
			}
		}
	}
}
