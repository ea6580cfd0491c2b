package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/eventgateway/gateway/core"
)

// A Lock marks a database file as served by this process.
type Lock struct{ file *os.File }

// Acquire takes the lock beside the database file, or says who holds it. SQLite
// would let two processes work on one file, but each would take the other's
// running jobs for its own when it starts. The lock is the kernel's: it ends with
// the process, however that ends, and the file that stays behind means nothing.
func Acquire(path string) (*Lock, error) {
	path, err := target(path)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		return nil, core.Refuse(core.Unavailable, "lock beside the database: %v: %s", err, rights)
	}
	if err != nil {
		return nil, core.Refuse(core.Unavailable, "lock beside the database: %v", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		defer f.Close()
		holder, _ := io.ReadAll(io.LimitReader(f, 200))
		return nil, core.Refuse(core.Unavailable,
			"database %s is in use by another gateway (%s); SQLite serves one instance only: stop that one",
			path, orUnknown(strings.TrimSpace(string(holder))))
	}
	if err != nil {
		f.Close()
		return nil, core.Refuse(core.Unavailable, "lock %s.lock: %v", path, err)
	}
	if err := f.Truncate(0); err == nil {
		fmt.Fprintf(f, "process %d\n", os.Getpid())
	}
	return &Lock{file: f}, nil
}

// target is the file that path leads to. SQLite follows symbolic links, and two
// names of one database must not have two locks.
func target(path string) (string, error) {
	if err := prepareFile(path); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", core.Refuse(core.Unavailable, "lock beside the database: %v", err)
	}
	return real, nil
}

func orUnknown(s string) string {
	if s == "" {
		return "process unknown"
	}
	return s
}

// Release gives the lock up.
func (l *Lock) Release() error { return l.file.Close() }
