// Package memory puts the files of tests into memory. Only tests import it.
package memory

import (
	"bytes"
	"os"
	"strconv"
)

// Use puts the temporary files of this test binary, and with them its database servers, into memory,
// where a sync costs nothing. It is for TestMain of packages whose tests are about what a database
// does, and not about disks; end-to-end tests use a disk. Use does nothing unless the system has
// /dev/shm with 4 GB left, and 8 GB of memory: then the tests take longer.
func Use() {
	const folder = "/dev/shm"
	if left, err := kilobytesLeft(folder); err == nil && enough(left, available()) {
		_ = os.Setenv("TMPDIR", folder)
	}
}

// enough reports whether the tests of one package fit into what is left of the folder and of memory,
// in KB. The largest tables that they make have a million rows.
func enough(left, memory int) bool { return left >= 4<<20 && memory >= 8<<20 }

// available returns the memory that programs can still get, in KB; 0 if the system does not say.
func available() int {
	said, _ := os.ReadFile("/proc/meminfo")
	for line := range bytes.Lines(said) {
		if f := bytes.Fields(line); len(f) > 1 && string(f[0]) == "MemAvailable:" {
			n, _ := strconv.Atoi(string(f[1]))
			return n
		}
	}
	return 0
}
