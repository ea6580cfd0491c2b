package sqlite

// Commands of fcntl(2) for locks of open files.
const (
	setLock  = 90 // F_OFD_SETLK of <sys/fcntl.h>
	findLock = 92 // F_OFD_GETLK
)
