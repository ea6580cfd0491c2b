package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime reads the process's CPU clock, see clock_getcpuclockid(3). It is the
// same sum as utime and stime of /proc/PID/stat, which count in steps of 10 ms:
// too coarse for an idle process.
func cpuTime(pid int) (time.Duration, error) {
	const processClock = 2 // CPUCLOCK_SCHED of the whole process
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|processClock), &ts); err != nil {
		return 0, err
	}
	return time.Duration(ts.Nano()), nil
}
