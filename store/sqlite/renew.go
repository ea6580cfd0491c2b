package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"modernc.org/sqlite"
)

// A file that was moved to another file system and back is another file under the same name, and
// so is a backup. A server switches to such a file by itself if the file has the noted mark: then
// it lacks no commits of this server. See marks.go.
//
// All sessions are closed before a new one is opened. SQLite shares the index of the WAL between
// all sessions of a process, and POSIX locks do not protect a process from itself. So sessions of
// the old and of the new file at the same time could overwrite the pages of each other. A closing
// session leaves the WAL alone if its database was moved.

// settleTime is how long files must be unchanged before a server switches to them. A move between
// file systems copies the WAL last, and the copy takes some time. SQLite would accept half of a
// WAL.
const settleTime = time.Second

// renew closes all sessions if another database or WAL is at the path. It returns nil if new
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

// A sighting is another database that was found at the path.
type sighting struct {
	files [2]os.FileInfo // the database and its WAL; nil if there is none
	since time.Time
	why   error // the refusal of the database; nil if it was not tried
}

// settled reports whether the files have been unchanged for settleTime.
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

// renewLog saves the commits of a WAL that was moved or deleted: it moves them into the database
// file. SQLite makes a new WAL for the next session.
func (c *conn) renewLog() error {
	w := c.writer
	if w.inPlace() == nil {
		return nil // another caller has renewed it
	}
	if s := cmp.Or(w.session, w.checkpointer.session); s != nil {
		if written, moved, err := move(s); err != nil || moved < written {
			return errors.Join(displaced(c.file.log), err)
		}
	}
	return c.closeSessions()
}

// follow switches to another file at the path, if the file has all commits of the database.
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

// accept switches to the file now, or returns why it must not be used.
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

// reaches refuses a database whose mark is lower than a noted one. Its session does not delete
// the WAL when it closes: another program may have put the WAL there meanwhile.
func reaches(path string, noted int64) error {
	s, err := dial(dsn(path, "query_only(1)"))
	if err != nil {
		return err
	}
	defer s.close()
	if _, err := s.conn.(sqlite.FileControl).FileControlPersistWAL("main", 1); err != nil {
		return fmt.Errorf("keep the log of %s: %w", path, classify(err))
	}
	r, err := s.run(readMark)
	if err != nil {
		return fmt.Errorf("read the database %s: %w", path, err)
	}
	if rowMark(r) < noted {
		return behind(path)
	}
	return nil
}

// closeSessions closes all sessions. The caller holds file.use for writing.
func (c *conn) closeSessions() error {
	c.writer.disconnect()
	c.writer.log = nil
	return errors.Join(c.writer.checkpointer.disconnect(), c.readers.drop())
}
