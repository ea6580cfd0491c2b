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

// Marks detect a database that lost commits. Such a database looks sound: the newest commits are
// in the WAL only, and without its WAL the file is an older state without an error.
//
// A mark is a number in the header of the database (user_version). The first commit after a
// checkpoint raises it, and that commit is in the WAL only. Once the commit is synced, the
// gateway writes the mark into the lock file: this is the noted mark. A complete database has the
// noted mark or a higher one, even if another process moved the WAL into the file. If its mark is
// lower, commits are missing.
//
// A mark costs one page for each checkpoint, which moves about 2000 pages. The alternative was a
// note for each commit: one more write for each commit, and a sync for a note that has no further
// use. The price is a gap: if another process made a checkpoint, the loss of the commits after it
// may go unnoticed.

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

// put adds a mark to a transaction, if one is due. A mark is not used again after a rollback,
// since its commit may have taken effect all the same.
func (m *marker) put(s *session) (put bool, err error) {
	if m == nil || !m.due.Load() {
		return false, nil
	}
	m.next++
	return true, s.pragma(fmt.Sprintf("user_version = %d", m.next))
}

// committed notes the mark of the last commit, which is synced.
func (m *marker) committed() {
	m.due.Store(false)
	m.lock.note.mark = m.next
	m.lock.note.write(m.lock.beside)
}

// expect makes the next commit get a mark. It is called after a checkpoint moved the commits
// before into the file.
func (m *marker) expect() {
	if m != nil {
		m.due.Store(true)
	}
}

// readMark reads the mark of a database.
var readMark = store.Stmt{Name: "mark", SQL: "PRAGMA user_version", Reads: true}

// rowMark returns the mark that readMark read.
func rowMark(r store.Result) int64 { return r.Rows[0][0].(int64) }

// A note is the content of the lock file.
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

// write replaces the note in a file. The old note is at most as long, unless it is of another
// process, so a process killed between the two calls leaves whole lines. If a note cannot be
// written, the one before stays. Its mark is lower, so it asks for fewer commits.
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

// walHeader is the size in bytes of a WAL without commits.
const walHeader = 32

// Examine refuses the database file at path if it lost its commits. It finds only losses that are
// visible without opening the file: see examine. A file that does not exist yet is fine.
func Examine(path string) error {
	real, err := target(path)
	if err == nil {
		_, err = examine(real, noteBeside(real).mark)
	}
	return err
}

// examine refuses a database file that is empty or missing although its commits are known from
// the WAL or from the noted mark. SQLite would make an empty database, and delete the WAL.
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

// behind is the refusal of a database whose mark is lower than the noted mark.
func behind(path string) error {
	return core.Refuse(core.Unavailable, "the database %[1]s lacks commits that a gateway made, so accepted events are missing: "+
		"its log %[1]s-wal is gone, or an older file was put in its place. Put the log back beside the file; "+
		"or, to go on with what the file has, such as a backup, remove %[1]s.lock", path)
}
