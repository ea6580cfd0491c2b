package sqlite

import "golang.org/x/sys/unix"

// Commands of fcntl(2) for locks of open files.
const (
	setLock  = unix.F_OFD_SETLK
	findLock = unix.F_OFD_GETLK
)
