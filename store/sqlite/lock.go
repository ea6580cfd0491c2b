package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/eventgateway/gateway/core"
)

// A Lock marks a database file as served by this process.
type Lock struct {
	path   string   // of the database, behind symbolic links
	beside *os.File // the lock file, which holds the note
	data   *os.File // the database
	note   note
	anew   bool // the database is new, though a gateway has served one at path before
}

// Acquire locks the database file, and makes it if there is none. If another process holds the
// lock, the error names that process. SQLite would let two processes work on one file, but each
// would take the running jobs of the other for its own when it starts.
//
// There are two locks. One is on a lock file beside the database, which names the process that
// holds the lock. The other is on the database itself: it holds under all names of the file, and
// it cannot be removed with the lock file. Both are locks of the kernel, so they end with the
// process, even after a crash. The lock file stays, since it has the note that marks.go
// describes.
func Acquire(path string) (*Lock, error) {
	if err := checkFolder(path); err != nil {
		return nil, err
	}
	path, err := target(path)
	if err != nil {
		return nil, err
	}
	l := &Lock{path: path}
	if err := l.take(); err != nil {
		l.Release()
		return nil, err
	}
	return l, nil
}

func (l *Lock) take() (err error) {
	if l.beside, err = lockBeside(l.path); err != nil {
		return err
	}
	before := readNote(l.beside)
	missing, err := examine(l.path, before.mark)
	if err != nil {
		return err
	}
	if err := prepareFile(l.path); err != nil {
		return err
	}
	if l.data, err = lockInode(l.path); err != nil {
		return err
	}
	l.note = note{process: os.Getpid(), mark: before.mark}
	if missing {
		l.note.mark, l.anew = 0, before.mark > 0
	}
	l.note.write(l.beside)
	return nil
}

// lockBeside locks the file beside the database.
func lockBeside(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		return nil, core.Refuse(core.Unavailable, "lock beside the database: %v: %s", err, rights)
	}
	if err != nil {
		return nil, core.Refuse(core.Unavailable, "lock beside the database: %v", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	defer f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, core.Refuse(core.Unavailable,
			"database %s is in use by another gateway (%s); SQLite serves one instance only: stop that one", path, readNote(f).holder())
	}
	return nil, unlockable(path+".lock", err)
}

// target returns the file that path leads to through symbolic links. SQLite follows such links
// too, and two names of one database must not have two logs and locks. The file need not exist.
func target(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		next, err := os.Readlink(path)
		switch {
		case err != nil:
			return path, nil
		case !filepath.IsAbs(next):
			next = filepath.Join(filepath.Dir(path), next)
		}
		return target(next)
	}
	if err != nil {
		return "", core.Refuse(core.Unavailable, "lock beside the database: %v", err)
	}
	return real, nil
}

// Warnings returns facts about the file that a server should log.
func (l *Lock) Warnings() (all []string) {
	if l.anew {
		all = append(all, fmt.Sprintf("a new database was made: %s was not there, though a gateway served it before", l.path))
	}
	if info, err := l.data.Stat(); err == nil {
		if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
			all = append(all, fmt.Sprintf("the database file %s has other names, hard links: after a crash its newest commits are in a log "+
				"beside the name it was served by, so serve it by one name", l.path))
		}
	}
	return all
}

// Release releases the lock. SQLite must have closed the file before.
func (l *Lock) Release() error {
	var errs []error
	for _, f := range []*os.File{l.data, l.beside} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
