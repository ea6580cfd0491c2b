//go:build !linux

package proc

import (
	"errors"
	"time"
)

// cpuTime fails: a benchmark without CPU times would print half of its table.
func cpuTime(int) (time.Duration, error) {
	return 0, errors.New("the CPU time of another process is only read on Linux")
}
