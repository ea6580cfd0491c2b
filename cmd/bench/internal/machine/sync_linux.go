package machine

import (
	"os"
	"syscall"
)

// datasync is what SQLite calls for each commit.
func datasync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
