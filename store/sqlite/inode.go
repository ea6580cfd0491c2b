package sqlite

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/eventgateway/gateway/core"
)

// lockByte is the byte of the database file whose lock says that a gateway serves the file.
// It is behind the 512 bytes that SQLite locks, and in the page that SQLite leaves out for
// locks: https://www.sqlite.org/fileformat.html#the_lock_byte_page
const lockByte = 1<<30 + 512

// lockInode locks the database file itself, which may have several names. The lock belongs to the
// open file and not to the process: a POSIX lock would end when SQLite closes any descriptor of
// the file. It covers a single byte, since a lock of flock(2) covers the whole file on NFS and on
// macOS and would keep SQLite out. The file must stay open until SQLite has closed it, because
// closing it ends the POSIX locks of SQLite.
//
// On a system without such locks, only the lock beside the file protects the database.
func lockInode(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, core.Refuse(core.Unavailable, "lock the database: %v", err)
	}
	err = fileLock(f, setLock)
	switch {
	case err == nil || errors.Is(err, errNoSuchLocks):
		return f, nil
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES):
		err = core.Refuse(core.Unavailable, "database %s is in use by another gateway, under another name of the file or "+
			"without its lock file; SQLite serves one instance only: stop that one (\"fuser %s\" names its process)", path, path)
	default:
		err = unlockable(path, err)
	}
	f.Close()
	return nil, err
}

var errNoSuchLocks = errors.New("this system has no locks of open files")

// fileLock takes the lock of an open file (setLock), or looks for a lock of another open file
// (findLock).
func fileLock(f *os.File, command int) error {
	if command == 0 {
		return errNoSuchLocks
	}
	want := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: lockByte, Len: 1}
	err := syscall.FcntlFlock(f.Fd(), command, &want)
	switch {
	case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOSYS):
		return errNoSuchLocks
	case err == nil && command == findLock && want.Type != syscall.F_UNLCK:
		return syscall.EAGAIN
	}
	return err
}

// unlockable is the refusal of a file that cannot be locked at all.
func unlockable(path string, cause error) error {
	return core.Refuse(core.Unavailable, "lock %s: %v: %s", path, cause, remote)
}

// checkNames refuses a file that a gateway serves under another name. SQLite would keep the
// commits of this process in a log of their own, and each log overwrites the other's pages.
func checkNames(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil // opening the file reports the error
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || s.Nlink < 2 {
		return nil
	}
	if real, err := target(path); err != nil || sizeOf(real+"-wal") >= 0 {
		return nil // path is the name that the gateway serves: the log is beside it
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if errors.Is(fileLock(f, findLock), syscall.EAGAIN) {
		return core.Refuse(core.Unavailable, "a gateway serves the database file %s under another name, a hard link; open it by that name", path)
	}
	return nil
}

// sizeOf returns the size of a file in bytes. It is negative if there is no file.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return info.Size()
}
