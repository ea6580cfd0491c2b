package machine

import (
	"os"
	"syscall"
)

// datasync makes the system call that SQLite makes for each commit.
func datasync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
