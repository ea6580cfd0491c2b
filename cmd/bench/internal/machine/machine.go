// Package machine describes the machine of a benchmark: processor, medium, and the share of
// the processor that other processes used meanwhile. A figure without these says little;
// the same disk has synced 160 and 10,000 times a second within an hour.
//
// Everything is read from Linux's /proc; elsewhere the answers are "unknown".
//
// It imports the standard library only.
package machine

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Processor names the model and the number of CPUs in use.
func Processor() string {
	model := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		model = firstField(string(text), "model name", model)
	}
	return fmt.Sprintf("%s, %d CPUs", model, runtime.NumCPU())
}

// firstField returns the value of the first line "name: value" of a text.
func firstField(text, name, otherwise string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return otherwise
}

// System names the operating system, its version and the Go version.
func System() string {
	release := ""
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		release = " " + strings.TrimSpace(string(text))
	}
	return fmt.Sprintf("%s%s/%s, %s", runtime.GOOS, release, runtime.GOARCH, runtime.Version())
}

// Medium names the file system that holds dir: type, device and mount point.
func Medium(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "unknown"
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "unknown"
	}
	return mount(string(text), abs)
}

// mount finds the longest mount point above dir; of equals the last is on top.
// The format is proc_pid_mountinfo(5).
func mount(mountinfo, dir string) string {
	best, name := "", "unknown"
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 2 {
			continue
		}
		point := left[4]
		if under(dir, point) && len(point) >= len(best) {
			best, name = point, fmt.Sprintf("%s (%s on %s)", right[0], right[1], point)
		}
	}
	return name
}

// under reports whether a mount point is dir or above it.
func under(dir, point string) bool {
	return point == "/" || dir == point || strings.HasPrefix(dir, point+"/")
}

// SyncRate is how many appends of 8 KiB, each with an fdatasync, a file in dir
// takes in a second. It writes for at most that long and at most 64 MiB.
func SyncRate(dir string, limit time.Duration) (float64, error) {
	f, err := os.CreateTemp(dir, "probe")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	// The file grows with each append, as the log of a database does, so the file system writes
	// its length too.
	block := make([]byte, 8<<10)
	start, n := time.Now(), 0
	for ; n < 8192 && time.Since(start) < limit; n++ {
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := datasync(f); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(start).Seconds(), nil
}

// tick is the unit of /proc/stat, USER_HZ, 100 on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// CPU is the time that all CPUs together have spent since the machine started.
// Guest time is part of Busy, since the kernel adds it to user time as well.
type CPU struct {
	Busy  time.Duration // by anyone, kernel included
	Steal time.Duration // taken by the host
	Total time.Duration // idle included
}

// Usage reads the CPU times.
func Usage() (CPU, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return CPU{}, err
	}
	return usage(string(text))
}

// Since returns the time that was spent after an earlier reading.
func (c CPU) Since(earlier CPU) CPU {
	return CPU{c.Busy - earlier.Busy, c.Steal - earlier.Steal, c.Total - earlier.Total}
}

// usage reads the first line of /proc/stat: user nice system idle iowait irq
// softirq steal, and guest times that user already contains.
func usage(stat string) (CPU, error) {
	lines := bufio.NewScanner(strings.NewReader(stat))
	lines.Scan()
	fields := strings.Fields(lines.Text())
	if len(fields) < 9 || fields[0] != "cpu" {
		return CPU{}, errors.New("no cpu line in /proc/stat")
	}
	var ticks [8]time.Duration
	for i := range ticks {
		n, err := strconv.ParseInt(fields[i+1], 10, 64)
		if err != nil {
			return CPU{}, fmt.Errorf("read /proc/stat: %w", err)
		}
		ticks[i] = time.Duration(n) * tick
	}
	user, nice, system, idle, iowait, irq, softirq, steal := ticks[0], ticks[1], ticks[2], ticks[3], ticks[4], ticks[5], ticks[6], ticks[7]
	busy := user + nice + system + irq + softirq
	return CPU{Busy: busy, Steal: steal, Total: busy + idle + iowait + steal}, nil
}
