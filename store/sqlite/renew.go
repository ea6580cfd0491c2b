package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"modernc.org/sqlite"
)

// A file that was moved to another file system and back is another file under the same name,
// and so is a backup. A server goes over to it by itself if the file has the noted mark, which
// says that it lacks no commits of this server. See marks.go.
//
// All sessions are closed before one is opened anew. SQLite keeps the index of the log for all
// sessions of a process, and POSIX locks do not keep a process from itself: sessions of the old
// and of the new file at once could overwrite each other's pages. A session that is closed
// leaves the log alone if its database was moved.

// settleTime is how long files must not have changed before a server goes over to them. A move
// between file systems copies the log last and over some time, and half of it would do for
// SQLite.
const settleTime = time.Second

// renew closes all sessions if another database or log is at the path, and returns nil if
// sessions may be opened. See file.
func (c *conn) renew() error {
	f := c.file
	f.use.Lock()
	defer f.use.Unlock()
	switch now, err := os.Stat(f.path); {
	case c.closed.Load():
		return errClosed
	case err != nil:
		return displaced(f.path)
	case os.SameFile(f.info, now):
		return c.renewLog()
	case c.writer.marker == nil: // a command
		return displaced(f.path)
	default:
		return c.follow(now)
	}
}

// A sighting is another database at the path.
type sighting struct {
	files [2]os.FileInfo // the database and its log, which may be nil
	since time.Time
	why   error // it was refused
}

// settled tells whether files are as they were for some time.
func (s *sighting) settled(files [2]os.FileInfo) bool {
	if !unchanged(s.files[0], files[0]) || !unchanged(s.files[1], files[1]) {
		*s = sighting{files: files, since: time.Now()}
	}
	return time.Since(s.since) >= settleTime
}

func unchanged(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// renewLog keeps the commits of a log that was moved or deleted: it moves them into the file.
// SQLite makes a new log when a session is opened.
func (c *conn) renewLog() error {
	w := c.writer
	if w.inPlace() == nil {
		return nil // another caller has been here
	}
	if s := cmp.Or(w.session, w.checkpointer.session); s != nil {
		if written, moved, err := move(s); err != nil || moved < written {
			return errors.Join(displaced(c.file.log), err)
		}
	}
	return c.closeSessions()
}

// follow goes over to another file at the path, if it is a later state of the database.
func (c *conn) follow(now os.FileInfo) error {
	log, _ := os.Stat(c.file.log)
	if !c.seen.settled([2]os.FileInfo{now, log}) {
		return displaced(c.file.path)
	}
	if c.seen.why == nil {
		c.seen.why = c.accept(now)
	}
	return c.seen.why
}

func (c *conn) accept(now os.FileInfo) error {
	f, m := c.file, c.writer.marker
	_ = c.closeSessions() // of a file that is gone
	if _, err := examine(f.path, m.lock.note.mark); err != nil {
		return err
	}
	data, err := lockInode(f.path)
	if err != nil {
		return err
	}
	if err := reaches(f.path, m.lock.note.mark); err != nil {
		data.Close()
		return err
	}
	m.lock.data.Close() // the old file's lock
	m.lock.data, f.info, c.seen = data, now, sighting{}
	m.expect()
	return nil
}

// reaches refuses a database whose mark is lower than a noted one. Its session keeps the log,
// which may have been put there meanwhile.
func reaches(path string, noted int64) error {
	s, err := dial(dsn(path, "query_only(1)"))
	if err != nil {
		return err
	}
	defer s.close()
	if _, err := s.conn.(sqlite.FileControl).FileControlPersistWAL("main", 1); err != nil {
		return fmt.Errorf("keep the log of %s: %w", path, classify(err))
	}
	mark, err := markOf(s)
	if err != nil {
		return fmt.Errorf("read the database %s: %w", path, err)
	}
	if mark < noted {
		return behind(path)
	}
	return nil
}

// closeSessions needs use.
func (c *conn) closeSessions() error {
	c.writer.disconnect()
	c.writer.log = nil
	return errors.Join(c.writer.checkpointer.disconnect(), c.readers.drop())
}
