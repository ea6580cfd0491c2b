package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// tick is the unit of CPU times in /proc/PID/stat, USER_HZ, 100 on every Linux
// that Go runs on.
const tick = 10 * time.Millisecond

// TreeCPU returns the time that a process and all its descendants have used, user and
// system. It includes the time of their ended children. It counts in steps of 10 ms.
func TreeCPU(pid int) (time.Duration, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	// All processes are read first, since children can come before their parents in the
	// listing.
	parents, used := map[int]int{}, map[int]time.Duration{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended meanwhile, and its parent has its time
		}
		id, parent, cpu, err := stat(text)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", f, err)
		}
		parents[id], used[id] = parent, cpu
	}
	if _, ok := parents[pid]; !ok {
		return 0, fmt.Errorf("no process %d", pid)
	}
	var sum time.Duration
	for id, cpu := range used {
		if below(parents, id, pid) {
			sum += cpu
		}
	}
	return sum, nil
}

// below reports whether a process is root or descends from it.
func below(parents map[int]int, id, root int) bool {
	for ; id > 1; id = parents[id] {
		if id == root {
			return true
		}
	}
	return false
}

// stat reads pid, ppid and the sum of utime, stime, cutime and cstime, see
// proc_pid_stat(5). The name in brackets may hold anything.
func stat(text []byte) (id, parent int, cpu time.Duration, err error) {
	end := bytes.LastIndexByte(text, ')')
	head, _, _ := bytes.Cut(text, []byte(" "))
	if id, err = strconv.Atoi(string(head)); err != nil || end < 0 {
		return 0, 0, 0, errors.Join(errors.New("malformed"), err)
	}
	fields := bytes.Fields(text[end+1:])
	const ppid, utime, cstime = 1, 11, 14
	if len(fields) <= cstime {
		return 0, 0, 0, errors.New("too few fields")
	}
	if parent, err = strconv.Atoi(string(fields[ppid])); err != nil {
		return 0, 0, 0, err
	}
	for _, f := range fields[utime : cstime+1] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, 0, 0, err
		}
		cpu += time.Duration(n) * tick
	}
	return id, parent, cpu, nil
}
