package sqlite

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// Marks tell a database that lost commits. Nothing in a database file says that commits are
// missing which are in the log alone: without its log the file is an older state, and sound.
//
// A mark is a number in the header of the database (user_version). The first commit after a
// checkpoint raises it, and is then the first that only the log has. Once that commit is
// synced the number is noted in the file of the lock. A database that a gateway opens has the
// noted mark or a higher one, whichever process moved its log into it. If the mark is lower,
// commits are missing.
//
// That costs one page for each checkpoint, which moves some 2000. A note for each commit was
// the alternative: a write more, and a sync of the note for nothing. So commits may go
// unnoticed that are behind a checkpoint which this process did not make.

// A marker puts marks into commits.
type marker struct {
	lock *Lock
	next int64
	due  atomic.Bool // the next commit gets a mark
}

func newMarker(l *Lock) *marker {
	m := &marker{lock: l, next: l.note.mark}
	m.due.Store(true)
	return m
}

// put adds a mark to a transaction, if one is due. A mark that is rolled back is not used
// again, since it may have been committed after all.
func (m *marker) put(s *session) (put bool, err error) {
	if m == nil || !m.due.Load() {
		return false, nil
	}
	m.next++
	return true, s.pragma(fmt.Sprintf("user_version = %d", m.next))
}

// committed notes the mark of a commit that was synced.
func (m *marker) committed() {
	m.due.Store(false)
	m.lock.note.mark = m.next
	m.lock.note.write(m.lock.beside)
}

// expect makes the next commit get a mark: those before it were moved into the file.
func (m *marker) expect() {
	if m != nil {
		m.due.Store(true)
	}
}

// markOf reads the mark of a database.
func markOf(s *session) (int64, error) {
	r, err := s.run(store.Stmt{Name: "mark", SQL: "PRAGMA user_version", Reads: true})
	if err != nil {
		return 0, err
	}
	return r.Rows[0][0].(int64), nil
}

// A note is what the lock file says.
type note struct {
	process int
	mark    int64 // zero: none
}

func readNote(f io.ReaderAt) (n note) {
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, 200))
	lines := strings.SplitN(string(text), "\n", 3)
	_, _ = fmt.Sscanf(lines[0], "process %d", &n.process)
	if len(lines) > 1 {
		_, _ = fmt.Sscanf(lines[1], "mark %d", &n.mark)
	}
	return n
}

// noteBeside reads the note beside a database.
func noteBeside(path string) note {
	f, err := os.Open(path + ".lock")
	if err != nil {
		return note{}
	}
	defer f.Close()
	return readNote(f)
}

// write replaces a note by one that is as long or longer, unless the process is another. A
// process that is killed in between leaves the lines whole. A note that cannot be written
// leaves the one before, which asks for less.
func (n note) write(f *os.File) {
	text := fmt.Sprintf("process %d\nmark %d\n", n.process, n.mark)
	if _, err := f.WriteAt([]byte(text), 0); err == nil {
		_ = f.Truncate(int64(len(text)))
	}
}

func (n note) holder() string {
	if n.process == 0 {
		return "process unknown"
	}
	return fmt.Sprintf("process %d", n.process)
}

// walHeader is the size in bytes of a log without commits.
const walHeader = 32

// Examine refuses a database file at path that lost its commits, as far as that can be told
// without opening it. A file that a gateway is yet to make is fine.
func Examine(path string) error {
	real, err := target(path)
	if err == nil {
		_, err = examine(real, noteBeside(real).mark)
	}
	return err
}

// examine refuses a database file that is empty or missing although commits of it are known:
// SQLite would make an empty database, and delete the log.
func examine(path string, mark int64) (missing bool, err error) {
	size := sizeOf(path)
	if size > 0 {
		return false, nil
	}
	state := "empty"
	if missing = size < 0; missing {
		state = "missing"
	}
	logged := sizeOf(path+"-wal") > walHeader
	remove := path + ".lock"
	switch {
	case logged && mark > 0:
		remove = path + "-wal and " + remove
	case logged:
		remove = path + "-wal"
	case missing || mark == 0:
		return missing, nil
	}
	have := "a gateway stored events in it"
	if logged {
		have += ", and the newest are in " + path + "-wal"
	}
	return missing, core.Refuse(core.Unavailable, "the database file %s is %s, though %s: put the file back, or a backup without that log, "+
		"or remove %s to begin with an empty database", path, state, have, remove)
}

// behind is the refusal of a database whose mark is lower than the noted one.
func behind(path string) error {
	return core.Refuse(core.Unavailable, "the database %[1]s lacks commits that a gateway made, so accepted events are missing: "+
		"its log %[1]s-wal is gone, or an older file was put in its place. Put the log back beside the file; "+
		"or, to go on with what the file has, such as a backup, remove %[1]s.lock", path)
}
