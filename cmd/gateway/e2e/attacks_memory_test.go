//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/wait"
)

const (
	// memoryLimit is mem_limit of infra/compose/compose.yaml, in bytes. The kernel kills a
	// gateway that needs more.
	memoryLimit = 512 << 20

	// residentLimit is the resident memory that the gateway may have under any attack, in
	// bytes. The program sets GOMEMLIMIT to the same figure.
	residentLimit = 384 << 20
)

// A memoryCage kills a process that needs more than memoryLimit. It is a memory cgroup
// (version 2, or version 1) where the tests may make one. Elsewhere it reads the resident
// memory of the process every 10 ms and sends SIGKILL.
type memoryCage struct {
	t    *testing.T
	path string // of the cgroup; empty without one
	peak string // the file in it with the highest memory use, page cache included
}

// cgroupFiles are the names of one version of cgroups.
type cgroupFiles struct{ root, marker, limit, swap, swapLimit, peak string }

var cgroupVersions = []cgroupFiles{
	{"/sys/fs/cgroup", "cgroup.controllers", "memory.max", "memory.swap.max", "0", "memory.peak"},
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", strconv.Itoa(memoryLimit), "memory.max_usage_in_bytes"},
}

// newMemoryCage makes a cage. The caller makes it before its process starts, so that at the
// end the process is gone before the cgroup is removed.
func newMemoryCage(t *testing.T) *memoryCage {
	t.Helper()
	var why []error
	for _, v := range cgroupVersions {
		if !exists(filepath.Join(v.root, v.marker)) {
			continue
		}
		path, err := v.make()
		if err != nil {
			why = append(why, err)
			continue
		}
		t.Cleanup(func() {
			if !wait.Until(5*time.Second, func() bool { return os.Remove(path) == nil }) {
				t.Errorf("cgroup %s cannot be removed", path)
			}
		})
		return &memoryCage{t, path, filepath.Join(path, v.peak)}
	}
	t.Logf("no memory cgroup (%v): the test reads the resident memory itself", errors.Join(why...))
	return &memoryCage{t: t}
}

// make makes a cgroup of this version with the limit set.
func (v cgroupFiles) make() (string, error) {
	path, err := os.MkdirTemp(v.root, "gateway-attack-")
	if err != nil {
		return "", err
	}
	err = os.WriteFile(filepath.Join(path, v.limit), []byte(strconv.Itoa(memoryLimit)), 0)
	if err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	// Some kernels do not count swap. Without that file the process may use the machine's
	// swap.
	_ = os.WriteFile(filepath.Join(path, v.swap), []byte(v.swapLimit), 0)
	return path, nil
}

// hold puts a process into the cage.
func (c *memoryCage) hold(p *process) {
	c.t.Helper()
	if c.path == "" {
		go c.watch(p)
		return
	}
	if err := os.WriteFile(filepath.Join(c.path, "cgroup.procs"), []byte(strconv.Itoa(p.pid())), 0); err != nil {
		c.t.Fatalf("put process %d into its cgroup: %v", p.pid(), err)
	}
}

// watch kills the process if its resident memory exceeds memoryLimit, in place of a cgroup. It
// returns when the process has ended.
func (c *memoryCage) watch(p *process) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !p.ended() {
		if kilobytes, _ := statusFigure(p.pid(), "VmRSS"); kilobytes<<10 > memoryLimit {
			_ = p.cmd.Process.Kill() // the process may be gone already
		}
		<-tick.C
	}
}

// highest is the most memory that the cgroup has used, for the log. It includes page cache,
// which the kernel takes back when it needs memory.
func (c *memoryCage) highest() string {
	if c.path == "" {
		return "not counted"
	}
	text, err := os.ReadFile(c.peak)
	if err != nil {
		return err.Error()
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// statusFigure is a figure of /proc/<pid>/status, in KiB.
func statusFigure(pid int, name string) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	words := strings.Fields(lineWith(string(status), name+":"))
	if len(words) != 3 {
		return 0, fmt.Errorf("no %s in the status of process %d", name, pid)
	}
	return strconv.Atoi(words[1])
}
